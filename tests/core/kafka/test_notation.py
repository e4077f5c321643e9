"""The notation of the tests against its bytes.

Other tests feed the readers with both.
"""

from __future__ import annotations

import pytest

from tests.support.crc32c import crc32c
from tests.support.log_bytes import segment, to_bytes
from tests.support.log_notation import TS, A, C, D, N, T, rec
from txnlib.core.kafka.record_batch import (
    CONTROL_FLAG,
    CRC_STARTS_AT,
    HEADER,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    ControlType,
    EndTxnMarker,
    RecordBatch,
    TimestampType,
    read_end_txn_marker,
    read_records,
)
from txnlib.core.kafka.transaction_log import TopicPartition
from txnlib.core.kafka.wire import optional

BATCHES = [
    D(1, 0, 5, at=9),
    D(1, 0, 2147483647, 1, at=9, partition_leader_epoch=4),
    T(4001, 3, 0, 4, at=16, ts=TS + 1, timestamp_type=TimestampType.LOG_APPEND_TIME),
    T(1, 0, None, at=3, to=5),
    T(1, 0, 0, 3, at=23, records_count=2),
    T(1, 0, 0, 3, at=23, records_count=0),
    N(at=5, to=7),
    C(1, 2, 15, at=21, ts=TS - 1, partition_leader_epoch=2),
    A(1, 2, None, at=21),
    C(1, 2, at=22, marker=None, records_count=0),
]


def read(content: bytes) -> RecordBatch:
    fields = HEADER.unpack_from(content)
    base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta = fields[:7]
    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count = fields[7:]
    assert (length + LOG_OVERHEAD, magic, crc) == (len(content), 2, crc32c(content[CRC_STARTS_AT:]))
    records = read_records(content[HEADER.size :], count, base_offset, base_timestamp)
    is_control = bool(attributes & CONTROL_FLAG)
    return RecordBatch(
        base_offset=base_offset,
        last_offset=base_offset + last_offset_delta,
        producer_id=optional(producer_id),
        producer_epoch=optional(producer_epoch),
        base_sequence=optional(base_sequence),
        max_timestamp=optional(max_timestamp),
        is_transactional=bool(attributes & TRANSACTIONAL_FLAG),
        is_control=is_control,
        marker=read_end_txn_marker(records[0]) if is_control and records else None,
        records_count=count,
        partition_leader_epoch=optional(leader_epoch),
        timestamp_type=TimestampType(bool(attributes & TIMESTAMP_TYPE_FLAG)),
    )


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_says_the_same_in_bytes(batch: RecordBatch) -> None:
    assert read(to_bytes(batch)) == batch


def test_a_segment_is_its_batches_back_to_back() -> None:
    assert segment(BATCHES) == b"".join(to_bytes(batch) for batch in BATCHES)


def test_one_sequence_number_means_one_record() -> None:
    assert (D(1, 0, 5, at=9).last_offset, D(1, 0, 5, 7, at=9).last_offset, N(at=9, to=12).last_offset) == (9, 11, 12)
    assert (D(1, 0, 5, 7, at=9).records_count, N(at=9, to=12).records_count) == (3, 4)


def test_a_marker_is_a_transactional_control_batch() -> None:
    marker = A(1, 2, 15, at=21)

    assert (marker.is_control, marker.is_transactional, marker.base_sequence) == (True, True, None)
    assert (marker.marker, C(1, 2, 15, at=21).marker) == (
        EndTxnMarker(ControlType.ABORT, 15),
        EndTxnMarker(ControlType.COMMIT, 15),
    )


def test_a_coordinator_s_record_has_what_its_state_demands() -> None:
    empty, ongoing, complete = rec("E", 1, 0), rec("O", 1, 0, ["b-1", "a-0"]), rec("CC", 1, 0)

    assert (empty.transaction_partitions, empty.start_timestamp_ms) == (None, None)
    assert ongoing.transaction_partitions == (TopicPartition("b", 1), TopicPartition("a", 0))
    assert (complete.transaction_partitions, complete.start_timestamp_ms) == ((), TS)
