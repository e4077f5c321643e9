"""Windows over batches against a fold of the core, row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.support.frames import assert_rows, empty, examples, record_batches
from tests.support.log_notation import TS, A, C, D, T
from txnlib.core.finding import Finding
from txnlib.core.kafka.producer_state import UNKNOWN_PRODUCER, ProducerState, append, append_origin
from txnlib.core.kafka.record_batch import RecordBatch, increment_sequence
from txnlib.spark import windows
from txnlib.spark.producers.producer_spans import batches_of, with_snapshot
from txnlib.spark.producers.producer_steps import with_states
from txnlib.spark.schemas import TABLES

#: Few producers, epochs and coordinator epochs, so that they meet; sequences that fit, jump, repeat and wrap.
_STEP = st.tuples(
    st.sampled_from("TTTDDCCAAL"),  # L: a marker that is lost before it reaches the log
    st.integers(1, 3),
    st.sampled_from([0, 0, 0, 1, 1, 2]),
    st.sampled_from(["next", "next", "next", "zero", "jump", "repeat", "none", "wrap"]),
    st.integers(0, 2),
    st.sampled_from([0, 1, 1_000, 90_000_000, -50_000]),
    st.integers(0, 4),
)
_LOG = st.lists(_STEP, min_size=1, max_size=40)
#: Of clients, and of a coordinator.
TOPICS = ("orders", "__consumer_offsets")


def build(steps: list[tuple]) -> list[RecordBatch]:
    """A log that goes through the steps; offsets rise, with holes now and then."""
    log: list[RecordBatch] = []
    sequences: dict[int, int | None] = {}
    offset, now = 0, TS
    for kind, pid, epoch, how, coordinator_epoch, later, span in steps:
        now += later
        offset += 1 + (3 if later == 1 else 0)
        if kind in "CA":
            marker = C if kind == "C" else A
            log.append(marker(pid, epoch, coordinator_epoch, at=offset, ts=now))
        elif kind in "TD":
            last = sequences.get(pid)
            before = -1 if last is None else last
            first = {
                "next": increment_sequence(before, 1),
                "zero": 0,
                "jump": increment_sequence(before, 7),
                "repeat": max(before, 0),
                "none": None,
                "wrap": 2**31 - 1,
            }[how]
            data = T if kind == "T" else D
            last_of_batch = None if how == "none" else increment_sequence(first, span)
            log.append(data(pid, epoch, first, last_of_batch, at=offset, to=offset + span, ts=now))
            sequences[pid] = log[-1].last_sequence
            offset = log[-1].last_offset
    return log


def folded(log: list[RecordBatch], topic: str) -> dict[int, tuple[ProducerState, ProducerState, tuple[Finding, ...]]]:
    """By base offset: the state before, the state after, and the findings, as the core sees them."""
    states: dict[int, ProducerState] = {}
    rows = {}
    for batch in log:
        before = states.get(batch.producer_id, UNKNOWN_PRODUCER)
        appended = append(before, batch, origin=append_origin(topic))
        states[batch.producer_id] = appended.after
        rows[batch.base_offset] = (before, appended.after, appended.findings)
    return rows


def _as_state(row) -> ProducerState:
    return UNKNOWN_PRODUCER if row is None else ProducerState(**row.asDict())


@pytest.mark.both
@examples(6)
@given(logs=st.lists(_LOG, min_size=30, max_size=40))
def test_windows_remember_what_a_fold_of_the_core_remembers(spark, logs):
    built = {(topic, number): build(steps) for topic in TOPICS for number, steps in enumerate(logs)}
    expected = {where: folded(log, where[0]) for where, log in built.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_BUCKETS", 1)  # all producers share one window
        steps = with_states(prepared(spark, record_batches(spark, built)))
    rows = steps.select("topic", "partition", "base_offset", "before", "after", "is_suspect").collect()
    assert len(rows) == sum(len(log) for log in built.values())
    for row in rows:
        before, after, findings = expected[row["topic"], row["partition"]][row["base_offset"]]
        where = (row["topic"], row["partition"], row["base_offset"], built[row["topic"], row["partition"]])
        assert _as_state(row["before"]) == before, where
        assert _as_state(row["after"]) == after, where
        if not row["is_suspect"]:
            assert findings == (), where


def test_a_part_that_a_dump_prints_twice_counts_once(spark):
    log = [T(1, 0, 0, at=0), T(1, 0, 1, at=1), C(1, 0, at=2)]
    printed = record_batches(spark, {("orders", 0): [*log, *log[:2]]})
    assert_rows(with_states(prepared(spark, printed)), [(0,), (1,), (2,)], "base_offset")


def prepared(spark, batches):
    """`record_batches` as `producer_spans` prepares them for its windows: of one judged copy, read from its
    beginning."""
    copies = batches.select("topic", "partition", "source").distinct()
    known = {
        field.name: F.lit(None).cast(field.dataType) for field in TABLES["coverage"] if field.name not in copies.columns
    }
    known |= {"is_judged": F.lit(True), "first_offset": F.lit(0), "log_start_offset": F.lit(0)}
    snapshots = empty(spark, TABLES["producer_snapshots"])
    return batches_of(batches, snapshots, with_snapshot(copies.withColumns(known), snapshots))
