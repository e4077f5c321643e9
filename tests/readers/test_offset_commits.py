"""Offset commits in segments of `__consumer_offsets`, and bytes that are none."""

from __future__ import annotations

import pytest

from tests.support.log_bytes import (
    encode_batch,
    encode_marker,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from tests.support.log_notation import TS
from tests.support.segments import opened, read_batches, read_rows
from txnlib.core.kafka.record_batch import CompressionType, Record
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey
from txnlib.readers import arrow_schemas, batch_headers
from txnlib.readers.segment import Segment

AT = OffsetCommitKey("audit", "orders", 7)
GROUP_METADATA = encode_offset_commit_key(AT, version=2)


def commit(at: int, offset: int | None, key: OffsetCommitKey = AT, version: int = 3) -> Record:
    """A commit of a group; without an offset, its tombstone."""
    value = None
    if offset is not None:
        value = encode_offset_commit_value(
            OffsetCommit(version=version, offset=offset, metadata=b"x", commit_timestamp_ms=TS + at)
        )
    return Record(at, TS + at, encode_offset_commit_key(key), value)


#: A commit and a record of the group itself; one inside a transaction, its marker; a tombstone.
BATCHES = [
    encode_batch([commit(0, 10), Record(1, TS, GROUP_METADATA, b"members")]),
    encode_batch([commit(2, 20, version=4)], producer_id=7, producer_epoch=1, is_transactional=True),
    encode_marker(7, 1, 1, 0, at=3),
    encode_batch([commit(4, None)], producer_id=9, producer_epoch=0),  # idempotent, not transactional
]


def of_groups(content: bytes) -> Segment:
    return opened(content, "__consumer_offsets", partition=3)


def rows(content: bytes) -> list[dict]:
    return read_rows("committed_offsets", of_groups(content))


def unreadable(content: bytes) -> list[dict]:
    return read_rows("segments", of_groups(content))[0]["unreadable"]


def brief(content: bytes) -> list[tuple]:
    return [(row["offset"], row["committed_offset"], row["producer_id"], row["is_tombstone"]) for row in rows(content)]


BRIEF = [(0, 10, None, False), (2, 20, 7, False), (4, None, None, True)]


def test_a_commit_becomes_a_row():
    (row,) = rows(BATCHES[0])
    assert row == {
        "topic": "__consumer_offsets",
        "partition": 3,
        "source": "raw:1",
        "segment_base_offset": 0,
        "position": 0,
        "offset": 0,
        "producer_id": None,
        "group_id": "audit",
        "committed_topic": "orders",
        "committed_partition": 7,
        "is_tombstone": False,
        "committed_offset": 10,
        "commit_timestamp_ms": TS,
        "part": None,
    }


def test_commits_of_groups_and_transactions_and_tombstones_are_told_apart_and_other_kinds_skipped():
    assert brief(b"".join(BATCHES)) == BRIEF
    assert unreadable(b"".join(BATCHES)) == []


def test_sentinels_are_null():
    value = encode_offset_commit_value(OffsetCommit(version=3, offset=None, metadata=b"", commit_timestamp_ms=None))
    (row,) = rows(encode_batch([Record(0, TS, encode_offset_commit_key(AT), value)]))
    assert (row["committed_offset"], row["commit_timestamp_ms"], row["is_tombstone"]) == (None, None, False)


def test_of_a_segment_cut_at_any_byte_the_whole_batches_are_read():
    content, counts = b"".join(BATCHES), [1, 2, 2, 3]
    ends = [sum(map(len, BATCHES[: i + 1])) for i in range(len(BATCHES))]
    for cut in range(len(content)):
        whole = sum(end <= cut for end in ends)
        assert brief(content[:cut]) == BRIEF[: counts[whole - 1] if whole else 0], cut


#: name -> a record that is no commit anybody could understand.
ODD = {
    "a null key": Record(0, TS, None, b"x"),
    "a key that is cut": Record(0, TS, encode_offset_commit_key(AT)[:-1], b"x"),
    "a value of a version to come": Record(0, TS, encode_offset_commit_key(AT), b"\0\5"),
    "a value that is cut": Record(0, TS, encode_offset_commit_key(AT), b"\0\3\0"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_record_is_told_and_costs_no_other(name):
    content = encode_batch([ODD[name], commit(1, 11)])
    assert [row["offset"] for row in rows(content)] == [1]
    (stretch,) = unreadable(content)
    assert stretch["reason"].startswith("UNDECODABLE_COMMIT: offset 0, ")
    assert (stretch["position"], stretch["length"], stretch["next_offset"]) == (0, len(content), 1)


def test_a_batch_that_does_not_decompress_is_told():
    content = encode_batch([commit(0, 10)], codec=CompressionType.GZIP)
    assert rows(content) == []
    assert unreadable(content)[0]["reason"].startswith("UNDECODABLE_COMMIT: gzip stream is broken")


@pytest.mark.parametrize("block", [1, 2, 65_536])
def test_odd_records_are_told_once_a_segment_however_many_there_are(monkeypatch, block):
    monkeypatch.setattr(batch_headers, "BLOCK", block + 1)  # the last one of a full block is read again with the next
    odd = [Record(at, TS, encode_offset_commit_key(AT), b"\0\5") for at in range(6)]
    content = b"".join(encode_batch(odd[at : at + 2]) for at in range(0, 6, 2))
    assert [stretch["position"] for stretch in unreadable(content)] == [0]


def test_a_large_batch_with_a_flipped_bit_is_not_believed():
    whole = encode_batch([commit(at, at) for at in range(100)])
    assert len(whole) > 4096
    flipped = whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:]
    content = flipped + encode_batch([commit(100, 100)])
    assert [row["offset"] for row in rows(content)] == [100]
    assert [stretch["length"] for stretch in unreadable(content)] == [len(flipped)]


def test_a_large_segment_is_handed_over_in_small_parts(monkeypatch):
    monkeypatch.setattr(arrow_schemas, "DECODED_ROWS_PER_BATCH", 4)
    content = b"".join(encode_batch([commit(at, at), commit(at + 1, at)]) for at in range(0, 20, 2))
    assert [batch.num_rows for batch in read_batches("committed_offsets", of_groups(content))] == [4] * 5
