"""Raw segments: whole, cut, flipped, padded or foreign, to the byte."""

from __future__ import annotations

import random
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_bytes import (
    encode_batch,
    encode_legacy,
    encode_marker,
    encode_transaction_log_batch,
    segment,
    to_bytes,
)
from tests.support.log_notation import TS, A, C, D, N, T, rec
from tests.support.segments import opened, read_rows
from txnlib.core.kafka.record_batch import CompressionType, Record, TimestampType
from txnlib.readers import batch_headers

STORY = [
    T(1, 0, 0, 4, at=0, ts=TS),
    N(at=5, to=7, ts=TS + 1),
    T(2, 3, 7, 8, at=8, ts=TS + 2),
    C(1, 0, 15, at=10, ts=TS + 3),
    D(3, 0, 0, at=11, ts=TS + 4),
    A(2, 4, 16, at=12, ts=TS + 5),
]


def rows(content: bytes, **where) -> list[dict]:
    return read_rows("record_batches", opened(content, **where))


def seen(content: bytes, **where) -> dict:
    (row,) = read_rows("segments", opened(content, **where))
    return row


def lost(content: bytes, **where) -> list[tuple[int, int]]:
    return [(stretch["position"], stretch["length"]) for stretch in seen(content, **where)["unreadable"]]


def test_every_header_field_becomes_a_column():
    row = rows(to_bytes(T(2, 3, 2**31 - 1, at=8, to=9, ts=TS, partition_leader_epoch=4)))[0]
    del row["crc"]
    assert row == {
        "topic": "orders",
        "partition": 0,
        "source": "raw:1",
        "segment_base_offset": 0,
        "position": 0,
        "size": len(to_bytes(T(2, 3, 2**31 - 1, at=8, to=9, ts=TS))),
        "base_offset": 8,
        "last_offset": 9,
        "offset_gap": None,
        "records_count": 2,
        "producer_id": 2,
        "producer_epoch": 3,
        "base_sequence": 2**31 - 1,
        "last_sequence": 0,
        "partition_leader_epoch": 4,
        "is_transactional": True,
        "is_control": False,
        "control_type": None,
        "coordinator_epoch": None,
        "timestamp_type": "CREATE_TIME",
        "max_timestamp_ms": TS,
        "delete_horizon_ms": None,
        "compression_type": "none",
        "magic": 2,
        "batches_count": 1,
        "last_batch_offset": 8,
        "first_timestamp_ms": TS,
        "batches_hash": None,
        "run_batches": None,
        "part": None,
    }


@pytest.mark.parametrize(
    "marker",
    [
        encode_marker(1, 0, 1, 15, at=10, delete_horizon=TS - 10**9),  # compaction made its timestamp delta long
        encode_marker(1, 0, 1, 15, at=10, value_version=1, more_value=b"\0\0"),  # a later version appends fields
        encode_marker(1, 0, 1, 15, at=10, key_version=3, more_key=b"\0"),
        encode_marker(1, 0, 1, 2**31 - 1, at=10),
    ],
)
def test_markers_of_unusual_size_are_read_by_their_prefix(marker):
    assert rows(marker)[0]["control_type"] == "COMMIT"


def test_a_control_batch_that_compaction_emptied_has_no_type():
    emptied = encode_batch(
        [],
        base_offset=7,
        last_offset=7,
        max_timestamp=TS,
        producer_id=1,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    assert [(r["is_control"], r["records_count"], r["control_type"]) for r in rows(emptied)] == [(True, 0, None)]


def test_other_control_batches_have_no_type():
    leader_change = encode_marker(-1, -1, 2, 0, at=0)
    assert rows(leader_change)[0]["control_type"] is None


@given(st.binary(min_size=0, max_size=300), st.integers(0, 5))
def test_no_content_whatever_makes_the_reader_raise(noise, at):
    content = segment(STORY[:at]) + noise + segment(STORY[at:])
    found = seen(content)
    assert found["batches"] == len(rows(content))
    assert found["batches"] + sum(length > 0 for _, length in lost(content)) >= len(STORY) - 1


@pytest.mark.parametrize("cut", range(len(segment(STORY)) + 1))
def test_a_segment_cut_anywhere_keeps_every_whole_batch_and_counts_the_rest(cut):
    ends = [len(segment(STORY[: n + 1])) for n in range(len(STORY))]
    whole = sum(end <= cut for end in ends)
    content = segment(STORY)[:cut]
    found = seen(content)
    rest = content[[0, *ends][whole] :]
    assert found["batches"] == len(rows(content)) == whole
    if rest and not any(rest):  # the first bytes of an offset: nothing tells them from a preallocated end
        assert (found["tail"], lost(content)) == ("ZEROS", [])
    else:
        assert sum(length for _, length in lost(content)) == len(rest)
        assert found["tail"] == ("TORN" if rest else "CLEAN")


def test_every_flipped_bit_costs_at_most_its_own_batch_and_never_passes_unseen():
    content = segment(STORY)
    starts = [len(segment(STORY[:n])) for n in range(len(STORY) + 1)]
    true = rows(content)
    rng = random.Random(3)
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << rng.randrange(8)
        number = next(n for n in range(len(STORY)) if position < starts[n + 1])
        found = rows(bytes(flipped))
        kept = [row for row in true if row["position"] != starts[number]]
        others = [row for row in found if row["position"] != starts[number]]
        for row in (*kept, *others):
            row.pop("offset_gap", None)
        assert others == kept, position
        # No CRC covers offset, length, leader epoch and magic; of those an offset or epoch may be believed if it fits.
        in_header = position - starts[number] < 17
        believed = [row for row in found if row["position"] == starts[number]]
        assert in_header or not believed, position
        assert believed or lost(bytes(flipped)), position


def test_a_preallocated_tail_of_zeros_is_no_loss():
    found = seen(segment(STORY) + bytes(5_000))
    assert (found["tail"], found["unreadable"], found["batches"]) == ("ZEROS", [], len(STORY))


def test_garbage_is_one_stretch():
    garbage = random.Random(1).randbytes(5_000)
    assert lost(garbage) == [(0, 5_000)]
    assert seen(garbage)["tail"] == "CORRUPT"


def test_holes_in_the_offsets_are_counted():
    log = [T(1, 0, 0, at=3), T(1, 0, 1, at=4), T(1, 0, 2, at=9)]
    assert [row["offset_gap"] for row in rows(segment(log))] == [None, 0, 4]
    assert seen(segment(log))["last_gap_offset"] == 9


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_counted_and_tell_nothing_of_producers(magic):
    old = [encode_legacy(offset, b"key", b"value", magic=magic) for offset in range(3)]
    content = b"".join(old) + segment([T(1, 0, 0, at=3)])
    found = rows(content)
    assert [(row["magic"], row["base_offset"], row["producer_id"]) for row in found] == [
        (magic, 0, None),
        (magic, 1, None),
        (magic, 2, None),
        (2, 3, 1),
    ]


def test_broker_stamped_times_are_those_of_markers_and_of_log_append_time():
    create = [T(1, 0, 0, at=0, ts=TS + 99), C(1, 0, at=1, ts=TS + 5)]
    assert seen(segment(create))["newest_broker_ms"] == TS + 5
    append = [D(1, 0, 0, at=0, ts=TS + 99, timestamp_type=TimestampType.LOG_APPEND_TIME)]
    assert seen(segment(append))["newest_broker_ms"] == TS + 99


# Coordinator records.

ENTRY = rec("O", 7, 2, {"orders-0", "orders-1"}, id="billing")


def entries(content: bytes) -> list[dict]:
    return read_rows("transaction_log", opened(content, "__transaction_state"))


def xerial(body: bytes) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(body))
    return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block


CODECS = {
    CompressionType.NONE: bytes,
    CompressionType.GZIP: cramjam.gzip.compress,
    CompressionType.SNAPPY: xerial,
    CompressionType.LZ4: cramjam.lz4.compress,
    CompressionType.ZSTD: cramjam.zstd.compress,
}


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_coordinator_records_are_decoded_compressed_or_not(codec):
    plain = encode_transaction_log_batch([ENTRY, "gone"], at=4)
    records = plain[61:]
    from txnlib.readers.decoded_records import iter_batch_records

    listed = list(iter_batch_records(plain))
    batch = encode_batch(listed, codec=codec, body=bytes(CODECS[codec](records)), leader_epoch=9)
    found = entries(batch)
    assert [(r["offset"], r["transactional_id"], r["state"], r["is_tombstone"]) for r in found] == [
        (4, "billing", "Ongoing", False),
        (5, "gone", None, True),
    ]
    assert found[0]["coordinator_epoch"] == 9
    assert found[0]["partitions"] == [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]


def test_F03_an_unknown_key_version_is_skipped_and_its_neighbours_are_loaded():
    unknown = Record(0, TS, struct.pack(">h", 32767) + b"??", b"v")
    batch = encode_batch([unknown]) + encode_transaction_log_batch([ENTRY], at=1)
    assert [r["offset"] for r in entries(batch)] == [1]
    assert [u["reason"] for u in seen(batch, topic="__transaction_state")["unreadable"]] == [
        "UNKNOWN_KEY_VERSION: version 32767 at offset 0"
    ]


def test_an_unknown_value_version_is_reported_not_guessed():
    key = struct.pack(">hh", 0, 1) + b"a"
    batch = encode_batch([Record(0, TS, key, struct.pack(">h", 9) + bytes(40))])
    assert entries(batch) == []
    assert seen(batch, topic="__transaction_state")["unreadable"][0]["reason"].startswith(
        "UNKNOWN_VALUE_VERSION: version 9"
    )


def test_a_block_boundary_changes_nothing(monkeypatch):
    log = segment([T(1, 0, n, at=n, ts=TS) for n in range(50)])
    whole = rows(log)
    monkeypatch.setattr(batch_headers, "BLOCK", 7)
    assert rows(log) == whole


def test_large_batches_are_trusted_by_their_headers_unless_they_look_odd():
    big = Record(0, TS, None, bytes(5_000))
    content = bytearray(
        encode_batch([big], producer_id=1, producer_epoch=0, base_sequence=0) + to_bytes(T(1, 0, 1, at=1))
    )
    content[3_000] ^= 1
    assert [row["base_offset"] for row in rows(bytes(content))] == [0, 1]
    content[9] ^= 0x40  # its length is wrong: now its CRC is looked at, too
    assert [row["base_offset"] for row in rows(bytes(content))] == [1]
