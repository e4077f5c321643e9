"""The instant of copies that have no note of it: `--captured-at`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited_anew
from tests.support.cluster import HOUR, MINUTE, NOON, Cluster
from txnlib.errors import UsageError
from txnlib.jobs.options import AUDIT, parse, request_of

END = 3 * HOUR
ORDERS = ("orders", 0)
#: Of an open transaction, what the instants of the copies decide.
JUDGED = ("as_of", "verdict", "reason", "safe_to_abort", "broker_clock_age_ms")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A transaction that hangs, and whose partition nobody wrote to for hours."""
    cluster = Cluster()
    cluster.beat(ORDERS, (0, 5 * MINUTE), 900)
    cluster.write(ORDERS, 7, 0, 6 * MINUTE)
    return cluster.capture(tmp_path / "capture", END)


def with_instants(capture: Path, instants: dict[str, int] | None) -> Path:
    """The same capture, whose `capture.json` notes these instants."""
    path = capture / "capture.json"
    notes = json.loads(path.read_text()) | {"captured_at_ms": instants}
    path.write_text(json.dumps({name: value for name, value in notes.items() if value is not None}))
    return capture


def coverage_of(tables: AuditTables) -> list[dict[str, Any]]:
    """The rows, without the column that names the run."""
    return [{k: v for k, v in row.items() if k != "run_id"} for row in tables.rows("coverage")]


def judged(tables: AuditTables) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in JUDGED) for row in tables.rows("open_transactions")]


def test_it_counts_as_a_note_of_all_copies_and_such_a_note_wins(capture: Path) -> None:
    given = audited_anew([with_instants(capture, None)], "--captured-at", str(NOON + END))
    assert [row["verdict"] for row in given.rows("open_transactions")] == ["HANGING"]
    noted = with_instants(capture, {"default": NOON + END})
    noted_and_given = audited_anew([noted], "--captured-at", str(NOON + END - HOUR))
    assert coverage_of(noted_and_given) == coverage_of(given)
    assert noted_and_given.run.settings.as_of_ms == given.run.settings.as_of_ms


def test_it_does_not_make_copies_older_than_what_they_contain(capture: Path) -> None:
    """Without it, copies have no instant."""
    at_end = ("--as-of", str(NOON + END))
    without = audited_anew([with_instants(capture, None)], *at_end)
    assert [row["verdict"] for row in without.rows("open_transactions")] != ["HANGING"]
    assert {row["captured_at"] for row in without.rows("coverage")} == {None}
    assert judged(audited_anew([capture], "--captured-at", str(NOON), *at_end)) == judged(without)


def test_a_note_of_a_copy_wins(capture: Path) -> None:
    noted = {"1/orders-0": NOON + END - MINUTE}
    rows = audited_anew([with_instants(capture, noted)], "--captured-at", str(NOON + END)).rows("coverage")
    found = {row["topic"]: int(row["captured_at"].timestamp() * 1000) - NOON for row in rows}
    assert found == {"orders": END - MINUTE, "__transaction_state": END}


@pytest.mark.parametrize("given", ["yesterday", "-1", "2026-13-01", "99999999999999999"])
def test_other_words_are_bad_usage(given: str) -> None:
    with pytest.raises(UsageError, match="captured_at="):
        request_of(parse(AUDIT, "", ["--input", "x", "--output", "y", "--captured-at", given]))
