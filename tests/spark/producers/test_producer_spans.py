"""Spans of random logs, whole and from a snapshot on."""

from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.spark.producers.test_producer_windows import _LOG, build
from tests.support.frames import assert_rows, examples, frame, record_batches
from tests.support.log_notation import A, C, D, T
from txnlib.core.kafka.producer_state import UNKNOWN_PRODUCER, ProducerState, append
from txnlib.core.kafka.record_batch import RecordBatch
from txnlib.spark.producers.producer_spans import SUSPECTS_KEPT, producer_spans
from txnlib.spark.schemas import TABLES

SUMMED = ("producer_epoch", "first_offset", "last_offset", "marker_offset", "batches", "records", "bytes")
TIMES = ("first_timestamp_ms", "last_timestamp_ms", "is_broker_clock")


def coverage(spark, first_offsets, log_starts=None):
    """One judged copy for each log, which begins at the given offset; some logs were deleted up to a later one."""
    known = {"topic": "orders", "source": "raw:1", "is_judged": True}
    starts = {**first_offsets, **(log_starts or {})}
    rows = [
        known | {"partition": p, "first_offset": o, "log_start_offset": starts[p]} for p, o in first_offsets.items()
    ]
    return frame(spark, TABLES["coverage"], *rows)


def snapshots(spark, states, offsets):
    """What a broker's snapshot at the given offset of each log says; -1 as the reader has it, NULL."""
    known = {"topic": "orders", "source": "raw:1"}
    rows = [
        known
        | {"partition": number, "snapshot_offset": offsets[number], "producer_id": producer_id, **asdict(state)}
        | {"last_timestamp_ms": state.last_timestamp}
        for number, producers in states.items()
        for producer_id, state in producers.items()
    ]
    return frame(spark, TABLES["producer_snapshots"], *rows)


def folded(log: list[RecordBatch]) -> dict[int, ProducerState]:
    states: dict[int, ProducerState] = {}
    for batch in log:
        states[batch.producer_id] = append(states.get(batch.producer_id, UNKNOWN_PRODUCER), batch).after
    return states


def spans_by_hand(log: list[RecordBatch]) -> dict[tuple[int, int], dict]:
    """What the spans of a log must say: a plain loop over each producer's batches."""
    spans: dict[tuple[int, int], dict] = {}
    numbers: dict[int, int] = {}
    for batch in log:
        number = numbers.setdefault(batch.producer_id, 0)
        span = spans.setdefault((batch.producer_id, number), dict.fromkeys(SUMMED + TIMES) | {"batches": 0})
        if span["producer_epoch"] is None:
            span["producer_epoch"] = batch.producer_epoch
        if batch.marker is not None:
            span["marker_offset"] = batch.base_offset
            numbers[batch.producer_id] += 1
        elif batch.is_transactional:
            if span["first_offset"] is None:
                span |= {"first_offset": batch.base_offset, "records": 0, "bytes": 0, "is_broker_clock": False}
                span["first_timestamp_ms"] = batch.max_timestamp
            span["last_offset"], span["last_timestamp_ms"] = batch.last_offset, batch.max_timestamp
            span["batches"] += 1
            span["records"] += batch.records_count
            span["bytes"] += 100
    return spans


@examples(3)
@given(logs=st.lists(_LOG, min_size=20, max_size=30))
def test_spans_add_up_what_lies_between_two_markers(spark, logs):
    built = {number: build(steps) for number, steps in enumerate(logs)}
    batches = record_batches(spark, {("orders", number): log for number, log in built.items()})
    found = producer_spans(batches, snapshots(spark, {}, {}), coverage(spark, dict.fromkeys(built, 0))).collect()
    ends = [row for row in found if row["marker_offset"] is not None or row["state"] is not None]
    got = {
        (row["partition"], row["producer_id"], row["span"]): {name: row[name] for name in SUMMED + TIMES}
        for row in ends
    }
    assert len(got) == len(ends), "one row for each span"
    assert got == {(number, *key): span for number, log in built.items() for key, span in spans_by_hand(log).items()}


@examples(3)
@given(logs=st.lists(st.tuples(_LOG, st.integers(0, 40), st.integers(0, 15)), min_size=20, max_size=30))
def test_a_log_read_from_a_snapshot_on_knows_what_the_whole_log_knows(spark, logs):
    """The snapshot stands at the first batch read, or some batches behind it, as when the log start moved since."""
    tails, states, firsts, offsets, expected, whole_spans = {}, {}, {}, {}, {}, {}
    for number, (steps, cut, behind) in enumerate(logs):
        log = build(steps)
        if not 0 < cut < len(log):
            continue
        at = min(cut + behind, len(log) - 1)
        tails["orders", number] = log[cut:]
        firsts[number], offsets[number] = log[cut].base_offset, log[at].base_offset
        states[number] = folded(log[:at])
        expected |= {(number, producer_id): state for producer_id, state in folded(log).items()}
        for (producer_id, _), span in spans_by_hand(log).items():
            ends_at = span["marker_offset"]
            if span["first_offset"] is not None and (ends_at is None or ends_at >= firsts[number]):
                whole_spans[number, producer_id, ends_at] = span["first_offset"]
    rows = producer_spans(
        record_batches(spark, tails), snapshots(spark, states, offsets), coverage(spark, firsts)
    ).collect()

    spans = {
        (r["partition"], r["producer_id"], r["marker_offset"]): r["first_offset"]
        for r in rows
        if r["first_offset"] is not None
    }
    for (number, producer_id, ends_at), start in whole_spans.items():
        # Of what began before the cut and ended before the snapshot, nobody knows the beginning.
        if start >= firsts[number] or ends_at is None or ends_at >= offsets[number]:
            assert spans.pop((number, producer_id, ends_at)) == start
    assert all(ends_at < offsets[number] and (number, p, ends_at) in whole_spans for number, p, ends_at in spans)

    newest = {(r["partition"], r["producer_id"]): r["state"] for r in rows if r["state"] is not None}
    assert newest.keys() == expected.keys()
    for key, state in newest.items():
        whole = expected[key]
        assert state["current_txn_first_offset"] == whole.current_txn_first_offset, key
        assert (state["producer_epoch"], state["last_timestamp"]) == (whole.producer_epoch, whole.last_timestamp), key
        # A snapshot behind the first batch says nothing of the sequences before it.
        if offsets[key[0]] == firsts[key[0]] or state["last_sequence"] is not None:
            assert state["last_sequence"] == whole.last_sequence, key


#: Log start, and the first snapshot: its offset, and where it has the transaction from offset 10 open -> whether it is
#: open.
DELETED = [
    (0, None, True),
    (0, (70, None), True),
    (10, (70, None), True),
    (11, (70, None), False),
    (50, None, True),
    (50, (40, None), True),
    (50, (50, None), False),
    (50, (70, None), False),
    (50, (70, 55), False),
    (50, (70, 10), True),
]


def test_a_broker_forgets_what_began_below_the_log_start(spark):
    """It reads nothing below when it starts, unless a snapshot has it. Until then it remembers."""
    log = [T(1, 0, 0, at=10), T(9, 0, 0, at=60), C(9, 0, at=61)]
    batches = record_batches(spark, {("orders", number): log for number in range(len(DELETED))})
    other = ProducerState(producer_epoch=0)
    states, offsets = {}, {}
    for number, (_, shown, _) in enumerate(DELETED):
        if shown is not None:
            offsets[number], states[number] = shown[0], {9: other, 1: replace(other, current_txn_first_offset=shown[1])}
    known = {"topic": "orders", "source": "raw:1", "is_judged": True, "first_offset": 10}
    copies = frame(
        spark,
        TABLES["coverage"],
        *[known | {"partition": n, "log_start_offset": at} for n, (at, *_) in enumerate(DELETED)],
    )
    found = producer_spans(batches, snapshots(spark, states, offsets), copies).where("producer_id = 1").collect()
    opened = {
        row["partition"]: (row["first_offset"], row["state"]["current_txn_first_offset"], row["records"])
        for row in found
    }
    assert opened == {n: (10, 10, 1) if is_open else (None, None, None) for n, (*_, is_open) in enumerate(DELETED)}


def test_a_producer_gone_mad_fills_no_table_but_is_counted(spark):
    log = [T(1, 0, 7 * number, at=number) for number in range(3 * SUSPECTS_KEPT)]
    found = producer_spans(
        record_batches(spark, {("orders", 0): log}), snapshots(spark, {}, {}), coverage(spark, {0: 0})
    )
    rows = found.where("suspect is not null").collect()
    assert len(rows) == SUSPECTS_KEPT
    (newest,) = found.where("state is not null").collect()
    assert newest["suspects_count"] == 3 * SUSPECTS_KEPT - 1


def test_records_that_a_dump_does_not_count_are_unknown_not_none(spark):
    log = [T(1, 0, 0, at=0), C(1, 0, at=1), T(1, 0, 1, at=2), C(1, 0, at=3)]
    uncounted = F.when(F.col("base_offset") != 2, F.col("records_count"))
    batches = record_batches(spark, {("orders", 0): log}).withColumn("records_count", uncounted)
    found = producer_spans(batches, snapshots(spark, {}, {}), coverage(spark, {0: 0}))
    assert_rows(found, [(0, 1, 1), (1, 1, None)], "span", "batches", "records")


def test_the_open_span_remembers_the_marker_before_it(spark):
    log = [T(1, 3, 0, at=0), C(1, 3, 5, at=1, ts=70), T(1, 3, 1, at=2), D(2, 0, 0, at=3), A(2, 0, 9, at=4)]
    found = producer_spans(
        record_batches(spark, {("orders", 0): log}), snapshots(spark, {}, {}), coverage(spark, {0: 0})
    )
    (opened,) = found.where("first_offset is not null and marker_offset is null").collect()
    assert opened["marker_before"].asDict() == {
        "offset": 1,
        "type": "COMMIT",
        "epoch": 3,
        "coordinator_epoch": 5,
        "ms": 70,
        "leader_epoch": None,
    }
