"""Values that fit no column: one record lost each."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from tests.support.log_bytes import (
    encode_batch,
    encode_offset_commit_key,
    encode_offset_commit_value,
    encode_records,
    encode_transaction_log_key,
    encode_transaction_log_value,
    uvarint,
)
from tests.support.log_notation import TS, rec
from tests.support.segments import opened, read_rows
from txnlib.core.kafka.record_batch import Record
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey

ENTRY = rec("O", 7, 2, {"orders-0"}, id="billing")
KEY, VALUE = encode_transaction_log_key("billing"), encode_transaction_log_value(ENTRY)
COMMIT_KEY = encode_offset_commit_key(OffsetCommitKey("group", "orders", 1))
COMMIT_VALUE = encode_offset_commit_value(OffsetCommit(version=4, offset=5, metadata=b"", commit_timestamp_ms=TS))


def read(content: bytes, topic: str = "__transaction_state") -> tuple[list[dict[str, Any]], list[tuple[int, int, str]]]:
    """The rows of what is decoded, and what is unreadable."""
    segment = opened(content, topic)
    tables = {"__transaction_state": "transaction_log", "__consumer_offsets": "committed_offsets"}
    (row,) = read_rows("segments", segment)
    unreadable = [(bad["position"], bad["length"], bad["reason"]) for bad in row["unreadable"]]
    return read_rows(tables.get(topic, "record_batches"), segment), unreadable


def batch_with(odd: Record, key: bytes = KEY, value: bytes = VALUE, base_timestamp: int = TS, **fields: Any) -> bytes:
    """A batch of offsets 4 to 6, of which one record is odd."""
    listed = [Record(4, base_timestamp, key, value), odd, Record(6, base_timestamp, key, value)]
    body = encode_records(listed, 4, base_timestamp)
    return encode_batch(
        listed,
        base_offset=4,
        last_offset=6,
        base_timestamp=base_timestamp,
        max_timestamp=base_timestamp,
        body=body,
        **fields,
    )


#: The odd record of a batch -> why it cannot be read. Deltas are varints of any size.
ODD = {
    "an offset beyond its batch": (Record(7, TS, KEY, VALUE), TS, "offset 7 lies outside of its batch, 4 to 6"),
    "an offset beyond int32": (
        Record(4 + 2**33, TS, KEY, VALUE),
        TS,
        "offset 8589934596 lies outside of its batch, 4 to 6",
    ),
    "an offset below zero": (Record(-1, TS, KEY, VALUE), TS, "offset -1 lies outside of its batch, 4 to 6"),
    "a time above int64": (Record(5, 2**63, KEY, VALUE), TS, "offset 5, its time 9223372036854775808 is no int64"),
    "a time below int64": (
        Record(5, -(2**63) - 1, KEY, VALUE),
        -(2**63),
        "offset 5, its time -9223372036854775809 is no int64",
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_sum_that_leaves_its_column_costs_its_record(odd):
    record, since, problem = ODD[odd]
    content = batch_with(record, base_timestamp=since)
    rows, unreadable = read(content)
    assert [row["offset"] for row in rows] == [4, 6]
    assert unreadable == [(0, len(content), f"UNDECODABLE_RECORD: {problem}")]


@pytest.mark.parametrize("odd", ODD)
def test_it_does_so_in_the_log_of_groups_and_no_marker_is_lost_by_it(odd):
    record, since, problem = ODD[odd]
    commit = Record(record.offset, record.timestamp, COMMIT_KEY, COMMIT_VALUE)
    content = batch_with(commit, COMMIT_KEY, COMMIT_VALUE, since)
    rows, unreadable = read(content, "__consumer_offsets")
    assert [row["offset"] for row in rows] == [4, 6]
    assert unreadable == [(0, len(content), f"UNDECODABLE_COMMIT: {problem}")]

    marker = Record(record.offset, record.timestamp, b"\0\0\0\1", bytes(6))
    for padded in (marker, replace(marker, value=bytes(8))):  # as brokers write it, and as a later version may
        body = encode_records([padded], 4, since)
        listed = [Record(4, since, None, None)]
        content = encode_batch(listed, base_offset=4, last_offset=6, producer_id=1, is_control=True, body=body)
        rows, unreadable = read(content, "orders")
        assert ([row["control_type"] for row in rows], unreadable) == (["COMMIT"], [])


@pytest.mark.parametrize("time", [-(2**63), 2**63 - 1])
def test_times_at_the_ends_of_int64_are_read(time):
    content = encode_batch([Record(4, time, KEY, VALUE)], base_offset=4)
    rows, unreadable = read(content)
    assert ([row["timestamp_ms"] for row in rows], unreadable) == ([time], [])


@pytest.mark.parametrize(("tag", "is_read"), [(2**31 - 1, True), (2**31, False), (2**32 - 1, False), (2**34, False)])
def test_a_tag_is_an_int32(tag, is_read):
    tagged = VALUE[:-1] + uvarint(1) + uvarint(tag) + uvarint(0)
    content = batch_with(Record(5, TS, KEY, tagged))
    rows, unreadable = read(content)
    assert [row["offset"] for row in rows] == ([4, 5, 6] if is_read else [4, 6])
    assert [row["unknown_tags"] for row in rows if row["offset"] == 5] == ([[tag]] if is_read else [])
    assert [reason.partition(":")[0] for *_, reason in unreadable] == ([] if is_read else ["UNDECODABLE_VALUE"])


@pytest.mark.parametrize("at", range(len(VALUE)))
def test_no_extreme_in_a_value_raises(at):
    for extreme in (b"\xff" * 12, b"\x7f" + b"\xff" * 7, b"\x80" * 12, bytes(8), struct.pack(">q", -(2**63))):
        value = VALUE[:at] + extreme + VALUE[at + len(extreme) :]
        rows, unreadable = read(batch_with(Record(5, TS, KEY, value)))
        assert len(rows) + len(unreadable) == 3
