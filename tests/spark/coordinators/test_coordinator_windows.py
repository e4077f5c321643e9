"""Windows over coordinator records against a fold of the core."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.support.frames import assert_rows, empty, examples, kept, transaction_log, transaction_log_row
from tests.support.log_notation import TS, judged
from tests.support.rules import selected
from txnlib.core.findings.coordinator_findings import ODD_RECORDS
from txnlib.core.kafka.odd_coordinator_records import SuspectStep, oddities
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import STEPS, TransactionState
from txnlib.core.rows import TopicPartition
from txnlib.spark.coordinators.coordinator_states import coordinator_states
from txnlib.spark.core_udfs import legality
from txnlib.spark.frames import local_rows
from txnlib.spark.schemas import TABLES

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]

_ENTRY = st.builds(
    TransactionLogEntry,
    transactional_id=st.sampled_from(["a", "b", "c"]),
    producer_id=st.sampled_from([7, 7, 7, 8]),
    producer_epoch=st.sampled_from([0, 0, 1, 1, 2, 32766, 32767]),
    transaction_timeout_ms=st.sampled_from([60_000, 60_000, 60_000, 900_000]),
    transaction_state=st.sampled_from([*TransactionState, TransactionState.ONGOING, TransactionState.PREPARE_COMMIT]),
    transaction_partitions=st.one_of(st.none(), st.lists(st.sampled_from(PARTITIONS), unique=True).map(tuple)),
    last_update_timestamp_ms=st.integers(TS, TS + 10),
    start_timestamp_ms=st.sampled_from([TS, TS, TS + 1, None]),
    version=st.sampled_from([0, 1]),
    next_producer_id=st.sampled_from([None, None, None, 7, 8]),
    next_producer_epoch=st.sampled_from([None, None, None, 0, 1]),
)
#: (an entry, or the id of a tombstone; offsets missing before it; leader epoch)
_LOG = st.lists(
    st.tuples(
        st.one_of(_ENTRY, _ENTRY, _ENTRY, st.sampled_from(["a", "b"])),
        st.sampled_from([0, 0, 0, 0, 1]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)


def folded(log):
    """By offset: the step's name and the findings, as the core sees them; UNKNOWN if records may be missing."""
    before, rows, offset, dense, last_dense = {}, {}, -1, 0, {}
    for entry, gap, epoch in log:
        offset += 1 + gap
        dense += gap
        name = entry if isinstance(entry, str) else entry.transactional_id
        record = judged(None if isinstance(entry, str) else entry, epoch)
        is_consecutive = name in before and last_dense[name] == dense
        step = STEPS[before[name].state, record.state].name if is_consecutive else "UNKNOWN"
        rows[offset] = step, list(oddities(SuspectStep(before.get(name), record, is_consecutive)))
        before[name], last_dense[name] = record, dense
    return rows


@pytest.mark.both
@examples(5)
@given(logs=st.lists(_LOG, min_size=25, max_size=30))
def test_windows_judge_coordinator_records_as_a_fold_of_the_core_does(spark, logs):
    rows = []
    for partition, log in enumerate(logs):
        offset = -1
        for entry, gap, epoch in log:
            offset += 1 + gap
            rows.append(transaction_log_row(entry, partition, offset, TS, epoch))
    states = kept(coordinator_states(transaction_log(spark, rows), empty(spark, TABLES["coverage"])))
    actual = states.collect()
    expected = {(partition, offset): row for partition, log in enumerate(logs) for offset, row in folded(log).items()}
    assert len(actual) == len(expected)
    suspects = selected(ODD_RECORDS, coordinator_states=states)
    found = {(each.coordinator_partition, each.offset): each.suspect for each in suspects}
    for row in actual:
        place = row["coordinator_partition"], row["offset"]
        suspect = found.get(place)
        seen = row["legality"], [] if suspect is None else list(oddities(suspect))
        assert seen == expected[place], (place, logs[row["coordinator_partition"]])
    assert len(found) < len(actual)


def test_spark_and_python_read_the_same_table_of_steps(spark):

    pairs = [(name(before), name(after), step.name) for (before, after), step in STEPS.items()]
    frame = local_rows(spark, pairs, "b string, a string, expected string")
    different = frame.withColumn("actual", legality(F.col("b"), F.col("a"))).where(
        "actual IS NULL OR actual <> expected"
    )
    assert_rows(different, [])
    assert len(pairs) == 81


def name(state: TransactionState | None) -> str | None:
    return None if state is None else state.kafka_name
