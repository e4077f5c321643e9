"""The diff of two runs: new, ended, re-judged, and not captured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.golden import differences, printed

NIGHT = 86_400_000
THEN, LATER = f"test-{NOW}", f"test-{NOW + NIGHT}"


def opened(topic: str, partition: int, start: int, verdict: str = "OPEN", **more: Any) -> dict[str, Any]:
    row = {"topic": topic, "partition": partition, "start_offset": start, "producer_id": 7, "verdict": verdict}
    return {**row, "reason": f"REASON_OF_{verdict}", "explanation": f"as {verdict}", **more}


def captured(*places: tuple[str, int], missing: tuple[str, int] | None = None) -> list[dict[str, Any]]:
    rows = [{"topic": topic, "partition": partition, "status": "COMPLETE"} for topic, partition in places]
    return rows + ([{"topic": missing[0], "partition": missing[1], "status": "MISSING"}] if missing else [])


@pytest.fixture
def nights(tmp_path):
    """Two nights: orders-1 is not captured in the second, orders-3 not in the first."""
    for run_id, as_of in ((THEN, NOW), (LATER, NOW + NIGHT)):
        write_run(tmp_path, as_of)
        common = [("orders", 0), ("orders", 2)]
        seen = [*common, ("orders", 1)] if run_id == THEN else [*common, ("orders", 3)]
        write(tmp_path, "coverage", *captured(*seen, missing=("orders", 1) if run_id == LATER else None), run_id=run_id)
    then = [
        opened("orders", 0, 10),
        opened("orders", 0, 20),
        opened("orders", 1, 5, "LATE"),
        opened("orders", 2, 1, "LATE"),
    ]
    now = [
        opened("orders", 0, 20, "HANGING"),
        opened("orders", 2, 1, "LATE"),
        opened("orders", 2, 9),
        opened("orders", 3, 4),
    ]
    write(tmp_path, "open_transactions", *then, run_id=THEN)
    write(tmp_path, "open_transactions", *now, run_id=LATER)
    ended = {
        "topic": "orders",
        "partition": 0,
        "producer_id": 7,
        "first_offset": 10,
        "marker_offset": 12,
        "outcome": "ABORT",
    }
    write(tmp_path, "partition_transactions", {**ended, "completed": at(NOW + 5)}, run_id=LATER)
    return tmp_path


def changes(root, *argv: object) -> dict[tuple[str, int, int], str]:
    code, out, err = txn_audit(root, "diff", *argv, "--format", "json")
    assert (code, err) == (0, "")
    return {(row["topic"], row["partition"], row["start_offset"]): row["change"] for row in json.loads(out)["changes"]}


def test_what_changed_is_as_it_was_read_last(assert_as_read, nights):
    """Of what ended, the audit may know more than the marker."""
    base = printed(nights, ["diff"])
    cases = {"with itself": printed(nights, [f"diff {THEN} {THEN}"])}
    ended = {"topic": "orders", "partition": 0, "producer_id": 7, "start_offset": 10, "says": "ended by hand"}
    write(nights, "ended_transactions", ended, run_id=LATER)
    cases["the audit knows how it ended"] = printed(nights, ["diff"])
    assert_as_read("diff", differences(base, cases))


def test_the_other_way_round_new_and_ended_change_places(nights):
    backwards = changes(nights, LATER, THEN)
    assert (backwards["orders", 0, 10], backwards["orders", 2, 9]) == ("NEW", "ENDED")


@pytest.mark.parametrize(
    "argv", [(), (THEN, LATER), (THEN,), (NOW, NOW + NIGHT), ("--run", LATER), ("--as-of", NOW + NIGHT)]
)
def test_runs_are_named_by_id_or_instant_or_are_the_two_newest(nights, argv):
    assert changes(nights, *argv) == changes(nights)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        pytest.param(("--run", THEN), "there is no run of test before", id="the first run"),
        pytest.param(("another", LATER), "no such run: another", id="a name that is none"),
        pytest.param((1, LATER), "0 runs are as of 1", id="an instant that is none"),
        pytest.param((THEN, THEN, THEN), "at most two runs", id="too many"),
    ],
)
def test_runs_that_are_not_there_are_named(nights, argv, said):
    code, out, err = txn_audit(nights, "diff", *argv)
    assert (code, out) == (2, "")
    assert said in err


def test_two_clusters_are_not_compared(tmp_path):
    east, west = write_run(tmp_path, cluster="east"), write_run(tmp_path, NOW + 1, cluster="west")
    assert "different clusters" in txn_audit(tmp_path, "diff", east, west)[2]
    assert txn_audit(tmp_path, "diff")[0] == 2, "the newest has none before it"
