"""Random damage to raw files: rows of quarantine, one batch lost.

Segments, coordinators' segments, those of groups, snapshots and transaction indexes, each damaged in one place by a
seed: a bit, a cut, a stretch of zeros, one that stands there twice, bytes that encode extremes. Some hundred here,
10,000 when there is time for them (`./run-tests.sh slow`).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cramjam
import google_crc32c
import pytest

from tests.support.log_bytes import (
    encode_batch,
    encode_legacy,
    encode_offset_commit_key,
    encode_offset_commit_value,
    encode_snapshot,
    encode_transaction_index,
    encode_transaction_log_batch,
    to_bytes,
)
from tests.support.log_notation import TS, A, C, N, T, rec
from tests.support.segments import opened, read_rows, rows_of_file
from txnlib.core.kafka.log_dir_files import CRC_STARTS_AT as SNAPSHOT_CRC_STARTS_AT
from txnlib.core.kafka.log_dir_files import INDEX_ENTRY
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.record_batch import CRC_STARTS_AT, HEADER, MAGIC_POSITION, CompressionType, Record
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.storage.block_buffer import BlockBuffer
from txnlib.readers.table_readers import KINDS

#: Damages of each kind of file.
FEW, MANY = 60, 1_500
EXTREMES = [
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # varints of int64 and int32, from both ends
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x7f",
    b"\x80" * 11,
    struct.pack(">q", 2**63 - 1),
    struct.pack(">q", -(2**63)),
    struct.pack(">i", 2**31 - 1),
    struct.pack(">i", -(2**31)),
    b"\xff\xff",
    b"\x7f\xff",
]


def _data() -> list[bytes]:
    story = [T(1, 0, n, at=n, ts=TS + n) for n in range(6)]
    story += [
        C(1, 0, 15, at=6, ts=TS + 9),
        N(at=9, to=11, ts=TS),
        A(2, 4, 16, at=12, ts=TS + 5),
        T(3, 0, 0, 3, at=13, ts=TS),
    ]
    large = encode_batch(
        [Record(20, TS, None, random.Random(1).randbytes(5_000))], producer_id=1, producer_epoch=0, base_sequence=6
    )
    return [*map(to_bytes, story), large, to_bytes(C(1, 0, 15, at=30, ts=TS)), to_bytes(T(1, 0, 7, at=31, ts=TS))]


def _old() -> list[bytes]:
    return [
        *(encode_legacy(n, b"key", b"value", magic=n // 3) for n in range(6)),
        *map(to_bytes, (T(1, 0, 0, at=6), C(1, 0, at=7))),
    ]


def _coordinator() -> list[bytes]:
    entries = [rec(state, 7, 2, {"orders-0", "orders-11"}, id=f"id-{state}") for state in ("O", "PC", "CC", "E")]
    plain = [encode_transaction_log_batch([entry, "gone"], at=2 * n, leader_epoch=3) for n, entry in enumerate(entries)]
    tagged = rec("O", 7, 2, {"a-0"}, next_producer_id=8, previous_producer_id=6, client_transaction_version=2)
    return [*plain, encode_transaction_log_batch([tagged, rec("CA", 9, 0, version=0)], at=20, leader_epoch=3)]


def _packed_coordinator() -> list[bytes]:
    found = []
    for number, (codec, compress) in enumerate(CODECS.items()):
        plain = encode_transaction_log_batch([rec("O", 7, 2, {"orders-0"}, id="billing"), "gone"], at=2 * number)
        listed = [Record(2 * number + n, TS, None, None) for n in range(2)]
        found.append(encode_batch(listed, codec=codec, body=bytes(compress(plain[HEADER.size :])), leader_epoch=3))
    return found


CODECS: dict[CompressionType, Callable[[bytes], Any]] = {
    CompressionType.GZIP: cramjam.gzip.compress,
    CompressionType.SNAPPY: cramjam.snappy.compress_raw,
    CompressionType.LZ4: cramjam.lz4.compress,
    CompressionType.ZSTD: cramjam.zstd.compress,
}


def _commits() -> list[bytes]:
    found = []
    for version in range(5):
        commit = OffsetCommit(version=version, offset=5, metadata=b"m", commit_timestamp_ms=TS)
        key = encode_offset_commit_key(OffsetCommitKey("group", "orders", 1))
        records = [
            Record(2 * version, TS, key, encode_offset_commit_value(commit)),
            Record(2 * version + 1, TS, key, None),
        ]
        found.append(encode_batch(records, leader_epoch=3))
    return found


SEGMENTS: dict[str, tuple[str, list[bytes]]] = {
    "data": ("orders", _data()),
    "old message sets": ("orders", _old()),
    "coordinator": ("__transaction_state", _coordinator()),
    "packed coordinator": ("__transaction_state", _packed_coordinator()),
    "groups": ("__consumer_offsets", _commits()),
}

#: Topic -> the table of what its batches hold.
HELD = {
    "orders": "record_batches",
    "__transaction_state": "transaction_log",
    "__consumer_offsets": "committed_offsets",
}


def in_place(chance: random.Random, content: bytearray, start: int) -> tuple[int, int]:
    """Damages some bytes from `start` on, moves none, and returns which."""
    at = chance.randrange(start, len(content))
    kind = chance.randrange(3)
    count = min([1, chance.randint(1, 200), len(chance.choice(EXTREMES))][kind], len(content) - at)
    if kind == 0:
        content[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        content[at : at + count] = bytes(count)
    else:
        content[at : at + count] = chance.choice(EXTREMES).ljust(count, b"\xff")[:count]
    return at, at + count


def damaged(chance: random.Random, batches: list[bytes]) -> tuple[bytes, set[int]]:
    """The file with one damage, and the numbers of the batches that it struck."""
    content = bytearray(b"".join(batches))
    ends = [sum(map(len, batches[: number + 1])) for number in range(len(batches))]
    kind = chance.randrange(6)
    if kind == 0:  # what a CRC fits, but no decoder
        number = chance.choice([number for number, batch in enumerate(batches) if batch[MAGIC_POSITION] == 2])
        changed = bytearray(batches[number])
        in_place(chance, changed, HEADER.size)
        changed[17:CRC_STARTS_AT] = struct.pack(">I", google_crc32c.value(bytes(changed[CRC_STARTS_AT:])))
        return b"".join([*batches[:number], bytes(changed), *batches[number + 1 :]]), {number}
    start, stop = sorted(chance.choices(range(len(content) + 1), k=2))
    if kind == 1:
        content, start, stop = content[:start], start, len(content)
    elif kind == 2:
        del content[start:stop]
    elif kind == 3:
        content[stop:stop] = content[start:stop]
    else:
        start, stop = in_place(chance, content, 0)
    struck = {number for number, end in enumerate(ends) if start < end and stop > end - len(batches[number])}
    if kind == 3:
        struck = {number for number, end in enumerate(ends) if end - len(batches[number]) < stop < end}
    return bytes(content), struck


def by_offset(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    moved = {"position": None, "offset_gap": None}
    return {row["offset" if "offset" in row else "base_offset"]: row | moved for row in rows}


def check_segment(kind: str, seed: int) -> None:
    topic, batches = SEGMENTS[kind]
    content, struck = damaged(random.Random(seed), batches)
    ranges = BlockBuffer(lambda at, count: content[at : at + count], len(content), 512, 2_048)
    segment = opened(content if seed % 4 else ranges, topic)
    (seen,) = read_rows("segments", segment)
    listed = read_rows("record_batches", segment)

    # Each byte was read, is in quarantine, or is a zero at the end.
    lost = [
        (bad["position"], bad["length"])
        for bad in seen["unreadable"]
        if bad["reason"].startswith(("CORRUPT", "INCOMPLETE"))
    ]
    at = 0
    for position, length in sorted([(row["position"], row["size"]) for row in listed] + lost):
        assert position == at, (kind, seed)
        at += length
    assert at == len(content) or (seen["tail"] == "ZEROS" and not any(content[at:])), (kind, seed)
    assert seen["batches"] == len(listed)

    # Batches that the damage did not strike are as they were, and what they hold.
    for table in {"record_batches", HELD[topic]}:
        kept = by_offset(read_rows(table, segment))
        for number, batch in enumerate(batches):
            if number not in struck:
                true = by_offset(read_rows(table, opened(batch, topic)))
                assert true.items() <= kept.items(), (kind, seed, number)


def check_helper_file(kind: FileKind, path: Path, seed: int) -> None:
    chance = random.Random(seed)
    true = HELPER_FILES[kind]
    content = bytearray(true)
    if chance.random() < 0.3:
        cut = chance.randrange(len(content))
        content = content[:cut] if chance.random() < 0.5 else content + content[cut:]
    else:
        in_place(chance, content, 0)
        if kind is FileKind.PRODUCER_SNAPSHOT and chance.random() < 0.5:
            content[2:6] = struct.pack(">I", google_crc32c.value(bytes(content[SNAPSHOT_CRC_STARTS_AT:])))
    path.write_bytes(content)
    file = CaptureFile(str(path), kind, "raw:1", len(content), "orders", 0, 0)
    tables = {table: rows_of_file(table, file) for table in KINDS[kind][1]}
    unreadable = [bad for row in tables.pop("segments") for bad in row["unreadable"]]
    (rows,) = tables.values()
    whole = [(bad["position"], bad["length"]) for bad in unreadable]
    if kind is FileKind.TRANSACTION_INDEX and rows:
        rest = len(content) % INDEX_ENTRY.size
        assert whole == ([(len(content) - rest, rest)] if rest else []), seed
        assert len(rows) == 1 + len(content) // INDEX_ENTRY.size
    else:
        assert bool(rows) == (not whole), seed
        assert whole in ([], [(0, len(content))]), seed


HELPER_FILES: dict[FileKind, bytes] = {
    FileKind.PRODUCER_SNAPSHOT: encode_snapshot(
        {n: ProducerState(2, 1, 2 + n, 3, 3, 1 if n % 2 else None, TS) for n in range(4)}
    ),
    FileKind.TRANSACTION_INDEX: encode_transaction_index([(n, 10 * n, 10 * n + 5, 10 * n + 6) for n in range(5)]),
}


SEEDS = pytest.mark.parametrize(
    "seeds", [range(FEW), pytest.param(range(FEW, FEW + MANY), marks=pytest.mark.slow)], ids=["few", "many"]
)


@SEEDS
@pytest.mark.parametrize("kind", SEGMENTS)
def test_damage_of_a_segment_costs_what_it_struck(kind, seeds):
    for seed in seeds:
        check_segment(kind, seed)


@SEEDS
@pytest.mark.parametrize("kind", HELPER_FILES)
def test_damage_of_a_helper_file_costs_at_most_the_file(tmp_path, kind, seeds):
    for seed in seeds:
        check_helper_file(kind, tmp_path / "file", seed)
