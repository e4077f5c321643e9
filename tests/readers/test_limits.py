"""Bounds of memory and time: bombs of each codec, crafted headers."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from typing import Any

import cramjam
import google_crc32c
import pytest

from tests.support.log_bytes import encode_batch, encode_legacy, encode_transaction_log_batch, to_bytes, uvarint
from tests.support.log_notation import TS, C, T, rec
from tests.support.segments import opened, read_rows
from txnlib.core.kafka.record_batch import CompressionType, Record
from txnlib.core.kafka.wire import CorruptRecordError
from txnlib.readers import decoded_records
from txnlib.readers.storage.block_buffer import BlockBuffer

MIB = 1 << 20


def xerial(*blocks: bytes) -> bytes:
    return (
        b"\x82SNAPPY\x00"
        + struct.pack(">ii", 1, 1)
        + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    )


def streams(size: int) -> dict[str, tuple[CompressionType, bytes]]:
    """Bodies that unpack to `size` zeros."""
    raw = bytes(cramjam.snappy.compress_raw(bytes(size)))
    parts = [bytes(cramjam.snappy.compress_raw(bytes(count))) for count in (size // 2, size - size // 2)]
    return {
        "gzip": (CompressionType.GZIP, bytes(cramjam.gzip.compress(bytes(size)))),
        "lz4": (CompressionType.LZ4, bytes(cramjam.lz4.compress(bytes(size)))),
        "zstd": (CompressionType.ZSTD, bytes(cramjam.zstd.compress(bytes(size)))),
        "snappy": (CompressionType.SNAPPY, raw),
        "snappy-java": (CompressionType.SNAPPY, xerial(*parts)),
    }


def bombs() -> dict[str, tuple[CompressionType, bytes]]:
    """Bodies that unpack to 320 MiB, or of snappy's blocks to 96 MiB; brokers' codecs read several streams as one."""
    found = {
        name: (codec, body * 10)
        for name, (codec, body) in streams(32 * MIB).items()
        if codec is not CompressionType.SNAPPY
    }
    block = bytes(cramjam.snappy.compress_raw(bytes(4 * MIB)))
    claim = uvarint(320 * MIB) + block
    return found | {
        "snappy": (CompressionType.SNAPPY, claim),
        "snappy-java": (CompressionType.SNAPPY, xerial(*[block] * 24)),
    }


def batch_of(codec: CompressionType, body: bytes, **fields: Any) -> bytes:
    """A batch whose one record is said to be in the body."""
    header = encode_batch([Record(0, TS, b"", b"")], codec=codec, body=b"", **fields)
    covered = header[21:] + body
    return (
        header[:8]
        + struct.pack(">i", 9 + len(covered))
        + header[12:17]
        + struct.pack(">I", google_crc32c.value(covered))
        + covered
    )


#: Reads each file it is given as a segment of a topic, in little memory, and prints what of it is unreadable.
CHILD = """
import json, resource, sys
from pathlib import Path
from tests.support.segments import opened, read_rows
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
for path in sys.argv[1:]:
    content = Path(path).read_bytes()
    topic = Path(path).name.partition("-")[0]
    segment = opened(content, topic)
    (row,) = read_rows("segments", segment)
    entries = len(read_rows("transaction_log", segment)) if topic == "__transaction_state" else 0
    batches = [row["control_type"] for row in read_rows("record_batches", segment)]
    found = [[bad["position"], bad["length"], bad["reason"]] for bad in row["unreadable"]]
    print(json.dumps([found, entries, batches]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="how much is used already is read from /proc")
def test_a_bomb_of_any_codec_costs_its_batch_and_no_more_memory_than_the_limit(tmp_path, repository):
    expected = {}
    entry, marker = (
        encode_transaction_log_batch([rec("O", 7, 2, {"a-0"}, id="billing")], at=5),
        to_bytes(C(1, 0, 15, at=5)),
    )
    for name, (codec, body) in bombs().items():
        of_coordinator, of_marker = batch_of(codec, body), batch_of(codec, body, producer_id=1, is_control=True)
        reason = f"its {codec.name.lower()} stream holds more than 64 MiB"
        for topic, bomb, good, problem, rows in (
            ("__transaction_state", of_coordinator, entry, "UNDECODABLE_RECORDS", [1, [None, None]]),
            ("orders", of_marker, marker, "UNDECODABLE_MARKER", [0, [None, "COMMIT"]]),
        ):
            path = tmp_path / f"{topic}-{name}"
            path.write_bytes(bomb + good)
            expected[str(path)] = [[[0, len(bomb), f"{problem}: {reason}"]], *rows]
    said = subprocess.run(
        [sys.executable, "-c", CHILD, *expected], cwd=repository, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert [json.loads(line) for line in said.stdout.splitlines()] == list(expected.values())


@pytest.mark.parametrize("name", [*streams(0), "plain"])
def test_a_body_of_just_the_limit_is_read_whatever_its_codec(monkeypatch, name):
    monkeypatch.setattr(decoded_records, "MAX_BODY_BYTES", 1_000)
    just, more = (streams(size).get(name, (CompressionType.NONE, bytes(size))) for size in (1_000, 1_001))
    assert bytes(decoded_records.decompress(*just)) == bytes(1_000)
    with pytest.raises(CorruptRecordError, match="holds more than"):
        decoded_records.decompress(*more)


@pytest.mark.parametrize(
    "body", [b"\xff\xff\xff\xff\x0f" + bytes(20), xerial(b"")[:-4] + struct.pack(">i", -4), xerial(b""), b""]
)
def test_a_snappy_stream_that_lies_about_lengths_is_broken(body):
    with pytest.raises(CorruptRecordError, match="snappy stream"):
        decoded_records.decompress(CompressionType.SNAPPY, body)


def test_a_batch_of_very_many_undecodable_records_names_some_and_counts_the_rest():
    listed = [Record(n, TS, None, b"") for n in range(2_500)]
    unreadable = seen(encode_batch(listed), topic="__transaction_state")["unreadable"]
    assert [bad["reason"] for bad in unreadable[-2:]] == [
        "NULL_KEY: record 99 has no key",
        "UNDECODABLE_RECORDS: 2,400 more in this batch",
    ]
    assert len(unreadable) == 101


def seen(content: bytes, topic: str = "orders") -> dict[str, Any]:
    (row,) = read_rows("segments", opened(content, topic))
    return row


# ---- Time, by what is looked at


class Counted(BlockBuffer):
    """A file in memory that counts the bytes that anyone looks at."""

    __slots__ = ("looked_at",)

    def __init__(self, content: bytes) -> None:
        super().__init__(lambda position, count: content[position : position + count], len(content), 1 << 16, 1 << 20)
        self.looked_at = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        self.looked_at += 1 if isinstance(found, int) else len(found)
        return found


def header(offset: int, length: int, magic: int = 2, attributes: int = 0) -> bytes:
    """What could be a batch, but for its CRC."""
    fields = struct.pack(">qiibIhiqqqhii", offset, length, 0, magic, 7, attributes, 0, TS, TS, 1, 0, 0, 1)
    return fields if magic == 2 else fields[:26]


def reaching(size: int, magic: int) -> bytes:
    """Each header reaches nearly to the end, and none has a CRC that fits."""
    step = len(header(1, 100, magic))
    return b"".join(header(1, size - at - step - 12, magic) for at in range(0, size, step))


def between(size: int) -> bytes:
    """Good batches, each followed by one that reaches nearly to the end."""
    good = to_bytes(T(1, 0, 0, at=0))
    step = len(good) + 61
    pairs = []
    for number in range(size // step):
        offset = (2 * number).to_bytes(8, "big")
        rest = size // step * step - number * step - len(good) - 12
        pairs += [offset, good[8:], header(2 * number + 1, rest, attributes=0x20)]
    return b"".join(pairs)


def flipped(size: int) -> bytes:
    """Every second batch is damaged."""
    good = to_bytes(T(1, 0, 0, at=0))
    return b"".join(n.to_bytes(8, "big") + good[8:-1] + bytes([good[-1] ^ n & 1]) for n in range(size // len(good)))


def misplaced(size: int) -> bytes:
    """Every second batch has an offset that does not follow, and zeros behind it."""
    good = to_bytes(T(1, 0, 0, at=0))
    return b"".join(
        (n * (n & 1)).to_bytes(8, "big") + good[8:] + bytes(900 * (n & 1)) for n in range(size // (len(good) + 450))
    )


CRAFTED = {
    "headers that reach far": lambda size: reaching(size, 2),
    "old headers that reach far": lambda size: reaching(size, 1),
    "good ones between those that reach far": between,
    "every second damaged": flipped,
    "every second out of order": misplaced,
    "zeros and an end": lambda size: to_bytes(T(1, 0, 0, at=0)) + (bytes(600) + b"\1") * (size // 601),
    "beginnings of offsets": lambda size: bytes(range(256)) * (size // 256),
    "all the same": lambda size: b"\x01" * size,
}


@pytest.mark.parametrize("name", CRAFTED)
def test_what_is_looked_at_grows_with_the_size_whatever_the_file_holds(name):
    looked_at = []
    for size in (8_000, 64_000):
        content = CRAFTED[name](size)
        buffer = Counted(content)
        read_rows("segments", opened(buffer, forget=buffer.forget))
        looked_at.append(buffer.looked_at / len(content))
    assert looked_at[1] < 3 * looked_at[0]  # eight times as much, were each to look at the rest


@pytest.mark.parametrize("name", ["headers that reach far", "good ones between those that reach far"])
def test_what_a_crafted_file_hides_is_told(name):
    row = seen(CRAFTED[name](64_000))
    assert row["unreadable"][-1]["reason"].startswith("CORRUPT_BATCH: more of the file looks like batches")
    assert row["unreadable"][-1]["position"] + row["unreadable"][-1]["length"] == row["bytes"]


@pytest.mark.parametrize("reach", [3_000, 30_000])
def test_a_good_batch_behind_damage_is_found_however_large_it_is(reach):
    """Message sets have another CRC."""
    large = encode_batch([Record(20, TS, None, random.Random(7).randbytes(reach))])
    old = encode_legacy(10, b"k", random.Random(8).randbytes(reach))
    content = to_bytes(T(1, 0, 0, at=0)) + b"\7" * 5_000 + old + b"\7" * 999 + large + b"\7"
    row = seen(content)
    begins = len(to_bytes(T(1, 0, 0, at=0)))
    behind = begins + 5_000 + len(old)
    assert [(bad["position"], bad["length"]) for bad in row["unreadable"]] == [
        (begins, 5_000),
        (behind, 999),
        (len(content) - 1, 1),
    ]
    assert row["batches"] == 3
