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
TABLES = ("open_transactions", "coverage")
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


def made(capture: Path, *options: str) -> dict[str, Any]:
    """The tables of an audit, as text, without the columns that name the run."""
    tables = audited_anew([capture], *options)
    return {name: [{k: v for k, v in row.items() if k != "run_id"} for row in tables.rows(name)] for name in TABLES}


def judged(tables: AuditTables) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in JUDGED) for row in tables.rows("open_transactions")]


def test_it_counts_as_a_note_of_all_copies(capture: Path) -> None:
    noted = made(with_instants(capture, {"default": NOON + END}))
    assert [row["verdict"] for row in noted["open_transactions"]] == ["HANGING"]
    assert made(with_instants(capture, None), "--captured-at", str(NOON + END)) == noted


def test_copies_have_no_instant_without_it(capture: Path) -> None:
    assumed = made(with_instants(capture, None))
    assert [row["verdict"] for row in assumed["open_transactions"]] != ["HANGING"]
    assert {row["captured_at"] for row in assumed["coverage"]} == {None}


def test_a_note_of_a_copy_wins(capture: Path) -> None:
    noted = {"1/orders-0": NOON + END - MINUTE}
    rows = made(with_instants(capture, noted), "--captured-at", str(NOON + END))["coverage"]
    found = {row["topic"]: int(row["captured_at"].timestamp() * 1000) - NOON for row in rows}
    assert found == {"orders": END - MINUTE, "__transaction_state": END}


def test_a_note_of_all_copies_wins(capture: Path) -> None:
    noted = with_instants(capture, {"default": NOON + END})
    assert made(noted, "--captured-at", str(NOON + END - HOUR)) == made(noted)


def test_it_does_not_make_copies_older_than_what_they_contain(capture: Path) -> None:
    found = audited_anew([with_instants(capture, None)], "--captured-at", str(NOON), "--as-of", str(NOON + END))
    without = audited_anew([capture], "--as-of", str(NOON + END))
    assert judged(found) == judged(without)


@pytest.mark.parametrize("given", ["yesterday", "-1", "2026-13-01", "99999999999999999"])
def test_other_words_are_bad_usage(given: str) -> None:
    with pytest.raises(UsageError, match="captured_at="):
        request_of(parse(AUDIT, "", ["--input", "x", "--output", "y", "--captured-at", given]))
