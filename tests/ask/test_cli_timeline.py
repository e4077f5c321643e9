"""The timeline of a partition or an id: bounded, in order, with its offsets."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.golden import printed
from txnlib.ask.story import OPEN

PLACE = {"topic": "orders", "partition": 0}


def ended(number: int, **more: Any) -> dict[str, Any]:
    """The transaction with this number: offsets 10·n to 10·n+1, a second after the one before it."""
    times = {"first_timestamp_ms": NOW + number * 1000, "marker_ms": NOW + number * 1000 + 5, "is_broker_clock": False}
    offsets = {
        "first_offset": number * 10,
        "last_offset": number * 10,
        "marker_offset": number * 10 + 1,
        "marker_type": "COMMIT",
    }
    return {
        **PLACE,
        "producer_id": 7,
        "producer_epoch": 0,
        "span": number,
        "records": 1,
        "batches": 1,
        **times,
        **offsets,
        **more,
    }


def states(number: int) -> list[dict[str, Any]]:
    common = {"transactional_id": "pay", "coordinator_partition": 3, "transaction_number": number, "producer_id": 7}
    steps = (("Ongoing", 0), ("PrepareCommit", 4), ("CompleteCommit", 6))
    return [
        {
            **common,
            "state": state,
            "offset": number * 3 + i,
            "timestamp_ms": NOW + number * 1000 + after,
            "partitions": [PLACE],
        }
        for i, (state, after) in enumerate(steps)
    ]


def outcome(number: int) -> dict[str, Any]:
    """What the audit matched with the transaction of this number."""
    own = {"transactional_id": "pay", "coordinator_partition": 3, "transaction_number": number, "producer_id": 7}
    span = ended(number)
    return {**PLACE, **own, "marker": "FOUND", **{name: span[name] for name in ("first_offset", "marker_offset")}}


@pytest.fixture
def tables(tmp_path):
    """Six transactions that ended, and producer 8's, open since before the fourth, of which no coordinator knows."""
    write_run(tmp_path)
    write(
        tmp_path, "coverage", {**PLACE, "status": "COMPLETE"}, {"topic": "orders", "partition": 9, "status": "MISSING"}
    )
    opened = ended(4, producer_id=8, first_offset=35, marker_offset=None, marker_ms=None, marker_type=None)
    write(tmp_path, "producer_spans", *[ended(number) for number in range(1, 7)], opened)
    write(tmp_path, "producer_id_owners", {"producer_id": 7, "transactional_id": "pay", "last_record_offset": 1})
    write(tmp_path, "transactional_ids", {"transactional_id": "pay"})
    write(tmp_path, "coordinator_states", *[row for number in range(1, 7) for row in states(number)])
    write(tmp_path, "transaction_outcomes", *map(outcome, range(1, 7)))
    write(tmp_path, "open_transactions", {**PLACE, "producer_id": 8, "start_offset": 35, "verdict": "HANGING"})
    stands = {
        "last_stable_offset": 35,
        "high_watermark": 62,
        "lag_offsets": 27,
        "lag_ms": 9000,
        "blocking_producer_id": 8,
    }
    write(tmp_path, "partitions", {**PLACE, **stands, "blocking_verdict": "HANGING"})
    return tmp_path


def told(root, *argv: object) -> list[tuple[str, str, int]]:
    code, out, err = txn_audit(root, "timeline", *argv, "--format", "json")
    assert (code, err) == (0, "")
    return [(row["log"], row["event"], row["offset"]) for row in json.loads(out)]


def test_a_transaction_that_follows_within_a_millisecond_begins_behind_both_records(tables):
    """The one before ends in the millisecond in which it is added; its client's clock is behind."""
    common = {"transactional_id": "pay", "coordinator_partition": 3, "producer_id": 7, "partitions": [PLACE]}
    before = [("Ongoing", 40, 7, 6990), ("PrepareCommit", 41, 7, 6995), ("CompleteCommit", 42, 7, 7000)]
    later = [*before, ("Ongoing", 43, 8, 7000), ("PrepareCommit", 44, 8, 7004)]
    rows = [
        {"state": state, "offset": at, "transaction_number": number, "timestamp_ms": NOW + ms}
        for state, at, number, ms in later
    ]
    write(tables, "coordinator_states", *[common | row for row in rows])
    write(tables, "transaction_outcomes", outcome(7), outcome(8))
    seven = ended(7, first_timestamp_ms=NOW + 6991, marker_ms=NOW + 6998)
    write(tables, "producer_spans", seven, ended(8, first_timestamp_ms=NOW + 6985, marker_ms=NOW + 7005))
    assert [event[1:] for event in told(tables, "orders", 0, "--last", 2)[-5:]] == [
        ("CompleteCommit", 42),
        ("Ongoing", 43),
        ("begins", 80),
        ("PrepareCommit", 44),
        ("COMMIT marker", 81),
    ]


def test_the_last_stable_offset_is_never_below_the_log_start(tables):
    """Records were deleted behind the start of what is open: which offset was stable while nothing was is not known."""
    stands = {"last_stable_offset": 40, "log_start_offset": 40, "high_watermark": 62, "lag_offsets": 22, "lag_ms": 9000}
    shutil.rmtree(tables / "partitions")
    write(tables, "partitions", {**PLACE, **stands, "blocking_producer_id": 8, "blocking_verdict": "HANGING"})
    rows = json.loads(txn_audit(tables, "timeline", "orders", 0, "--format", "json")[1])
    after = {row["offset"]: row["last_stable_offset"] for row in rows if row["log"] == "orders-0"}
    assert (after[31], after[35], after[41], after[61]) == (None, 40, 40, 40)


def test_what_is_told_of_it_is_as_it_was_read_last(assert_as_read, tables):
    """Then what holds the partition only looks late, and another one waits behind it."""
    told = printed(tables, ["timeline orders 0 --last 2"])
    waits = ended(9, producer_id=9, first_offset=58, marker_offset=None, marker_ms=None, marker_type=None)
    write(tables, "producer_spans", waits)
    write(tables, "transactional_ids", {"transactional_id": "wal"})
    write(tables, "transactions")
    shutil.rmtree(tables / "open_transactions")
    late = {**PLACE, "verdict": "LATE", "reason": "TIMEOUT_NOT_PASSED"}
    holder = late | {"producer_id": 8, "start_offset": 35, "holds": True}
    own = {"producer_id": 9, "start_offset": 58, "transactional_id": "wal", "holds": False}
    write(tables, "open_transactions", holder, late | own)
    told += printed(tables, ["timeline orders 0 --last 1", "timeline wal"])
    assert_as_read("timeline", told)


def test_of_many_that_are_open_the_first_are_shown_and_the_rest_counted(tables):
    """More than a timeline shows, all beginning at once: what holds the last stable offset is among those shown."""
    offsets = range(1_000, 1_000 + 3 * OPEN)
    spans = [
        ended(9, producer_id=n, first_offset=n, marker_offset=None, marker_ms=None, marker_type=None) for n in offsets
    ]
    write(tables, "producer_spans", *spans)
    write(
        tables,
        "open_transactions",
        *[{**PLACE, "producer_id": n, "start_offset": n, "verdict": "OPEN"} for n in offsets],
    )
    begins = [offset for log, event, offset in told(tables, "orders", 0) if event == "begins" and offset >= 35]
    assert begins == [35, 40, 50, 60, *offsets[: OPEN - 1]]
    assert (
        f"{2 * OPEN + 1} open transactions beginning behind those shown"
        in txn_audit(tables, "timeline", "orders", 0)[1]
    )


def test_an_id_is_followed_over_its_partitions(tables):
    known = {"transactional_id": "pay", "transaction_number": 6, "producer_id": 7, "first_record_offset": 18}
    write(tables, "transactions", {**known, "start": at(NOW)})
    assert told(tables, "pay") == told(tables, "orders", 0, "--last", 1)[-5:]


@pytest.mark.parametrize("argv", [("pay",), ("orders", 0)], ids=["of the id", "of the partition"])
def test_a_time_that_no_clock_shows_is_no_time(tables, argv):
    write(tables, "producer_spans", ended(8, first_timestamp_ms=10**17))
    write(tables, "transaction_outcomes", outcome(8))
    known = {"transactional_id": "pay", "transaction_number": 8, "producer_id": 7, "first_record_offset": 18}
    write(tables, "transactions", {**known, "start": at(NOW)})
    rows = json.loads(txn_audit(tables, "timeline", *argv, "--last", 1, "--format", "json")[1])
    assert [row["at_ms"] for row in rows if row["event"] == "begins"][-1] is None
