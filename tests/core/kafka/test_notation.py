"""The notation of the tests against its bytes.

Other tests feed the readers with both.
"""

import pytest

from tests.support.crc32c import crc32c
from tests.support.log_bytes import read_records, to_bytes
from tests.support.log_notation import TS, A, C, D, N, T
from txnlib.core.kafka.record_batch import (
    CONTROL_FLAG,
    CRC_STARTS_AT,
    HEADER,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    RecordBatch,
    TimestampType,
    read_end_txn_marker,
)
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
        base_offset=base_offset, last_offset=base_offset + last_offset_delta, producer_id=optional(producer_id),
        producer_epoch=optional(producer_epoch), base_sequence=optional(base_sequence),
        max_timestamp=optional(max_timestamp),
        is_transactional=bool(attributes & TRANSACTIONAL_FLAG), is_control=is_control,
        marker=read_end_txn_marker(records[0]) if is_control and records else None, records_count=count,
        partition_leader_epoch=optional(leader_epoch),
        timestamp_type=TimestampType(bool(attributes & TIMESTAMP_TYPE_FLAG)),
    )  # fmt: skip


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_says_the_same_in_bytes(batch: RecordBatch) -> None:
    assert read(to_bytes(batch)) == batch
