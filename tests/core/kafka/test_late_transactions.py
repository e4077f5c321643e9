"""The brokers' gauge `PartitionsWithLateTransactionsCount`. Group D restates Kafka's `ProducerStateManagerTest`."""

import pytest

from tests.support.log_bytes import encode_snapshot
from tests.support.log_notation import C, T
from tests.support.partition_state import PartitionState
from txnlib.core.kafka.log_dir_files import read_producer_snapshot
from txnlib.core.kafka.producer_state import has_late_transaction
from txnlib.core.kafka.record_batch import RecordBatch

T0 = 1_700_000_000_000
MAX_TIMEOUT = 300_000
LATE = 600_000  # the timeout and five minutes more


def is_late(state: PartitionState, now: int) -> bool:
    """By the producer whose open transaction has the lowest first offset, and by no other."""
    oldest = next(iter(state.open_transactions.values()), None)
    last_timestamp = None if oldest is None else state.producers[oldest].last_timestamp
    return has_late_transaction(last_timestamp, now, MAX_TIMEOUT)


FIRST, SECOND = T(39, 2, 0, at=100, ts=T0), T(57, 9, 0, at=150, ts=T0 + 500)
COMMIT_FIRST, COMMIT_SECOND = C(39, 2, at=200, ts=T0 + LATE), C(57, 9, at=250, ts=T0 + LATE)

#: id -> the log, now, whether the partition counts.
STORIES: dict[str, tuple[list[RecordBatch], int, bool]] = {
    "D01 both young": ([FIRST, SECOND], T0 + 500, False),
    "D02 the first is late": ([FIRST, SECOND], T0 + LATE + 1, True),
    "D03 both are late": ([FIRST, SECOND], T0 + LATE + 501, True),
    "D04 the second still is": ([FIRST, SECOND, COMMIT_FIRST], T0 + LATE + 501, True),
    "D05 both are done": ([FIRST, SECOND, COMMIT_FIRST, COMMIT_SECOND], T0 + LATE + 501, False),
    "D07 truncated below the transaction": ([], T0 + LATE + 1, False),
    "D09 at the limit": ([FIRST], T0 + LATE, False),
    "D10 a millisecond later": ([FIRST], T0 + LATE + 1, True),
    "D12 the last write counts": ([T(1, 0, 0, at=10, ts=T0), T(1, 0, 1, at=20, ts=T0 + LATE)], T0 + LATE + 1, False),
    "D13 only the lowest counts": ([T(1, 0, 0, at=10, ts=T0 + LATE), T(2, 0, 0, at=20, ts=T0)], T0 + LATE + 1, False),
    "D16 the newest batch, not the highest time": (
        [T(1, 0, 0, at=10, ts=T0 + 1000), T(1, 0, 1, at=20, ts=T0)],
        T0 + LATE + 1,
        True,
    ),
    "nothing open": ([FIRST, C(39, 2, at=101, ts=T0)], T0 + 10 * LATE, False),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_partition_is_late_by_the_last_write_of_its_oldest_transaction(name: str) -> None:
    log, now, expected = STORIES[name]
    assert is_late(PartitionState().append_all(log), now) is expected


def test_D06_a_partition_is_late_after_a_restart_too() -> None:
    snapshot = encode_snapshot(PartitionState().append_all([FIRST, SECOND]).producers)
    assert is_late(PartitionState(read_producer_snapshot(snapshot)), T0 + LATE + 1)


@pytest.mark.parametrize(("last_timestamp", "expected"), [(None, False), (-1, False), (0, False), (1, True)])
def test_without_a_time_nothing_is_late(last_timestamp: int | None, expected: bool) -> None:
    assert has_late_transaction(last_timestamp, T0, MAX_TIMEOUT) is expected
