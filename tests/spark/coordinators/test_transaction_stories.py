"""Whole stories in both logs: transactions and findings.

Each story has a partition and a transactional id of its own, so all of them are one run of the transforms.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.spark.producers.test_producer_spans import coverage
from tests.support.frames import assert_rows, empty, frame, kept, record_batches, transaction_log, transaction_log_row
from tests.support.log_notation import TS, A, C, T, rec
from tests.support.rules import found_by
from txnlib.core.copies import CoverageRow
from txnlib.core.findings.marker_findings import ODD_MARKERS
from txnlib.core.findings.transaction_findings import EARLY_WRITES, UNMARKED_PARTITIONS
from txnlib.core.verdicts.whose_clock import MeasuredClocks
from txnlib.spark.coordinators.coordinator_states import coordinator_states
from txnlib.spark.coordinators.measured_clocks import measured_clocks
from txnlib.spark.coordinators.transactional_ids import producer_id_owners
from txnlib.spark.coordinators.transactions import transactions
from txnlib.spark.core_rows import rows_of
from txnlib.spark.producers.producer_spans import producer_spans
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.dossiers import judged_copies

S = 1_000
#: Each: coordinator records and batches, (seconds since TS, what); pid is the story's number, {tp} its partition.
STORIES: dict[str, list[tuple[float, Any]]] = {}


def story(name: str, *events: tuple[float, Any]) -> None:
    STORIES[name] = list(events)


def r(
    state: str, epoch: int, start: float | None = None, **fields: Any
) -> tuple[str, str, int, float | None, dict[str, Any]]:
    return ("record", state, epoch, start, fields)


story(
    "M02 commit with transactions v2",
    (0, r("O", 3, 0)),
    (1, T),
    (5, r("PC", 4, 0)),
    (5.1, (C, 4)),
    (5.2, r("CC", 4, 0)),
)
story("M03 timeout", (0, r("O", 3, 0)), (1, T), (65, r("PA", 4, 0)), (65.1, (A, 4)), (65.2, r("CA", 4, 0)))
story(
    "M04 fenced", (0, r("O", 3, 0)), (1, T), (9, r("PA", 4, 0)), (9.1, (A, 4)), (9.2, r("CA", 4, 0)), (9.3, r("E", 5))
)
story("M10 failover", (0, r("O", 3, 0)), (1, T), (5, r("PC", 3, 0)), (5.1, (C, 3)), (7, (C, 3)), (7.1, r("CC", 3, 0)))
story(
    "M15 absorbed",
    *[(0, r("O", 3, 0)), (1, T), (5, r("PA", 3, 0)), (5.1, (A, 3)), (5.2, r("CA", 3, 0)), (10, T)],
    # Another producer's marker proves that the late batch was there before the next transaction began.
    *[(20, "other"), (30, r("O", 3, 30)), (31, T), (40, r("PC", 3, 30)), (40.1, (C, 3)), (40.2, r("CC", 3, 30))],
)
story(
    "M20 split",
    (0, r("O", 3, 0)),
    (1, T),
    (20, (A, 3)),
    (30, T),
    (40, r("PC", 3, 0)),
    (40.1, (C, 3)),
    (40.2, r("CC", 3, 0)),
)
story("M24 stuck", (0, r("O", 3, 0)), (1, T), (5, r("PC", 3, 0)))
story(
    "never marked",
    *[(-60, "other"), (0, r("O", 3, 0)), (1, T), (5, r("PC", 3, 0)), (5.2, r("CC", 3, 0)), (60, "other")],
)
story(
    "aborted by hand later",
    *[(0, r("O", 3, 0)), (1, T), (5, r("PA", 3, 0)), (5.1, (A, 3)), (5.2, r("CA", 3, 0)), (10, T), (600, (A, 3))],
)
#: The copy of the partition ends before the second marker, which came soon after the first one.
story(
    "copied between two quick ones",
    *[(0, r("O", 3, 0)), (0.1, T), (0.2, "other"), (0.3, r("PC", 3, 0)), (0.302, (C, 3)), (0.31, r("CC", 3, 0))],
    *[(1.25, r("O", 3, 1.25)), (1.3, r("PC", 3, 1.25)), (1.31, r("CC", 3, 1.25))],
)
#: The partition's clock is half a second behind that of the coordinator.
story(
    "a clock behind",
    *[(0, r("O", 3, 0)), (0.1, T), (2, r("PC", 3, 0)), (1.502, (C, 3)), (2.01, r("CC", 3, 0))],
    *[(3, r("O", 3, 3)), (3.1, T), (4, r("PC", 3, 3)), (3.502, (C, 3)), (4.01, r("CC", 3, 3))],
)
NUMBERS = {name: number for number, name in enumerate(STORIES, 1)}


def led(logs):
    """One broker leads all but one partition, whose clock was never compared with its own."""
    other = ("orders", NUMBERS["a clock behind"])
    return [
        CoverageRow(*place, is_judged=True, leader="2" if place == other else "1", status="COMPLETE", leader_epoch=0)
        for place in [*logs, ("__transaction_state", 0)]
    ]


def told(spark):
    """Transactions and findings of all stories."""
    logs, records = {}, []
    for name, number in NUMBERS.items():
        tp, log = f"orders-{number}", []
        for at, event in STORIES[name]:
            ms = TS + round(at * S)
            if isinstance(event, tuple) and event[0] == "record":
                _, state, epoch, start, fields = event
                began = {} if start is None else {"start_timestamp_ms": TS + round(start * S)}
                partitions = {tp} if state in ("O", "PC", "PA") else set()
                entry = rec(state, number, epoch, partitions, id=name, update=ms, **began, **fields)
                records.append((ms, entry))
                continue
            place = {"at": len(log), "ts": ms}
            if event == "other":
                log.append(C(900 + number, 0, **place))
            elif event is T:
                epoch = next(
                    e[2]
                    for a, e in reversed([x for x in STORIES[name] if x[0] <= at])
                    if isinstance(e, tuple) and e[0] == "record"
                )
                log.append(T(number, epoch, sum(b.producer_id == number and not b.is_control for b in log), **place))
            else:
                marker, epoch = event
                log.append(marker(number, epoch, **place))
        logs["orders", number] = log
    records.sort(key=lambda record: record[0])
    rows = [transaction_log_row(entry, 0, offset, ms) for offset, (ms, entry) in enumerate(records)]
    batches = record_batches(spark, logs)
    copies = coverage(spark, dict.fromkeys(NUMBERS.values(), 0))
    spans = kept(producer_spans(batches, empty(spark, TABLES["producer_snapshots"]), copies))
    states = kept(coordinator_states(transaction_log(spark, rows), empty(spark, TABLES["coverage"])))
    copies = whole(spark, logs)
    measured = measured_clocks(states, spans, judged_copies(copies), led(logs), ())
    found = kept(transactions(states, spans, rows_of(measured, MeasuredClocks), led(logs), (), ()))
    odd = [
        *found_by(ODD_MARKERS, producer_spans=spans, transactions=found, coordinator_states=states, coverage=copies),
        *found_by(UNMARKED_PARTITIONS, transactions=found, producer_spans=spans, coverage=copies),
        *found_by(EARLY_WRITES, transactions=found, producer_spans=spans),
    ]
    return found.collect(), odd


def whole(spark, logs):
    """Every copy whole, and known until an hour later."""
    known = {"source": "raw:1", "is_judged": True, "is_decoded": True, "first_offset": 0, "log_start_offset": 0}
    known |= {"read_from_offset": 0, "known_until": datetime.fromtimestamp((TS + 3_600 * S) / 1000, UTC)}
    return frame(
        spark,
        TABLES["coverage"],
        *[known | {"topic": t, "partition": p} for t, p in [*logs, ("__transaction_state", 0)]],
    )


@pytest.fixture(scope="module")
def both(spark):
    return told(spark)


def of(both, name):
    rows = sorted(
        (row for row in both[0] if row["transactional_id"] == name), key=lambda row: row["first_record_offset"]
    )
    return rows, sorted((row.name, row.offset) for row in both[1] if row.transactional_id == name)


@pytest.mark.parametrize(
    ("name", "ended_by", "findings"),
    [
        ("M02 commit with transactions v2", "CLIENT", []),
        ("M03 timeout", "TIMEOUT", []),
        ("M04 fenced", "NEW_PRODUCER", []),
        ("M10 failover", "CLIENT", []),
        ("M20 split", "CLIENT", [("SPLIT_OUTCOME", 1)]),
        ("M24 stuck", "CLIENT", []),
        ("never marked", "CLIENT", [("MARKER_MISSING", None)]),
        ("aborted by hand later", "CLIENT", [("MARKER_WITHOUT_DECISION", 3)]),
    ],
)
def test_a_story_has_its_end_and_its_findings(both, name, ended_by, findings):
    (transaction,), found = of(both, name)
    assert (transaction["ended_by"], found) == (ended_by, findings)


def test_M15_a_late_write_that_the_next_transaction_took_along_is_named(both):
    (first, second), found = of(both, "M15 absorbed")
    assert found == [("WRITTEN_BEFORE_TRANSACTION", 2)]
    assert [(row["outcome"], [m["first_offset"] for m in row["markers"]]) for row in (first, second)] == [
        ("ABORT", [0]),
        ("COMMIT", [2]),
    ]


def test_a_marker_belongs_to_one_decision_though_the_next_was_near(both):
    (first, second), found = of(both, "copied between two quick ones")
    assert found == []
    assert [[m["marker_offset"] for m in row["markers"]] for row in (first, second)] == [[2], [None]]


def test_a_marker_stamped_before_its_decision_is_still_its_own(both):
    (first, second), found = of(both, "a clock behind")
    assert found == []
    assert [[m["marker_offset"] for m in row["markers"]] for row in (first, second)] == [[1], [3]]


def test_each_partition_has_the_marker_of_its_own_decision_and_the_times_between(both):
    (transaction,), _ = of(both, "M03 timeout")
    (marker,) = transaction["markers"]
    assert (marker["marker_offset"], marker["marker_type"], marker["marker_ms"]) == (1, "ABORT", TS + 65_100)
    assert (transaction["time_to_decide_ms"], transaction["time_to_write_markers_ms"]) == (65_000, 200)


def test_a_decision_without_its_marker_says_so(both):
    (transaction,), _ = of(both, "M24 stuck")
    assert [(m["topic"], m["partition"], m["marker_offset"]) for m in transaction["markers"]] == [
        ("orders", NUMBERS["M24 stuck"], None)
    ]


#: id -> its records: (state, producer id, epoch); None is a tombstone.
LIVES = {
    "exhausted": [("E", 11, 0), ("E", 11, 32766), ("E", 12, 0)],
    "reborn": [("E", 13, 4), None, ("E", 14, 0)],
    "gone": [("E", 15, 0), None],
    "changed": [("E", 16, 0), ("E", 17, 0)],
}


def test_it_is_told_why_an_id_has_a_producer_id_no_longer(spark):
    records = [(name, record) for name, records in LIVES.items() for record in records]
    entries = [name if record is None else rec(*record, id=name) for name, record in records]
    rows = [transaction_log_row(entry, 0, offset, TS) for offset, entry in enumerate(entries)]
    found = producer_id_owners(coordinator_states(transaction_log(spark, rows), empty(spark, TABLES["coverage"])))
    expected = [
        (11, "ROTATED", "EPOCHS_EXHAUSTED"),
        (12, "CURRENT", None),
        (13, "ROTATED", "EXPIRED"),
        (14, "CURRENT", None),
        (15, "EXPIRED", "EXPIRED"),
        (16, "ROTATED", "UNKNOWN"),
        (17, "CURRENT", None),
    ]
    assert_rows(found, expected, "producer_id", "owner", "given_up")
