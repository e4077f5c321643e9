"""Ranges of a file, with bounded memory and no needless reading."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_bytes import encode_batch, encode_legacy, segment, to_bytes
from tests.support.log_notation import TS, A, C, D, N, T
from tests.support.segments import opened, read_batches, read_rows
from txnlib.core.kafka.record_batch import Record
from txnlib.readers.storage.block_buffer import BlockBuffer

TABLES = ("record_batches", "transaction_log", "segments")


class Ranges:
    """A store of one object that notes what was fetched."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.fetched: list[tuple[int, int]] = []

    def read_at(self, position: int, count: int) -> bytes:
        assert count > 0
        assert position + count <= len(self.content)
        self.fetched.append((position, count))
        return self.content[position : position + count]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.fetched)


def read(table: str, buffer: BlockBuffer, topic: str = "orders") -> list[dict]:
    return read_rows(table, opened(buffer, topic, forget=buffer.forget))


@given(
    content=st.binary(min_size=1, max_size=200),
    block=st.integers(1, 64),
    held=st.integers(1, 128),
    keys=st.lists(st.tuples(st.integers(-220, 220), st.integers(-220, 220)), max_size=30),
)
def test_any_slice_is_that_of_the_bytes(content, block, held, keys):
    buffer = BlockBuffer(Ranges(content).read_at, len(content), block, held)
    for start, stop in keys:
        assert buffer[start:stop] == content[start:stop]
        assert buffer[start:] == content[start:]
        assert buffer[start:stop:3] == content[start:stop:3]
        assert buffer[start % len(content)] == content[start % len(content)]
        if stop >= 0:
            buffer.forget(stop)
    assert len(buffer) == len(content)
    with pytest.raises(IndexError):
        buffer[len(content)]


BIG = encode_batch([Record(50, TS, None, bytes(5_000))], producer_id=1, producer_epoch=0, base_sequence=30)
LOG = segment(
    [
        *(T(1, 0, n, at=n, ts=TS + n) for n in range(20)),
        C(1, 0, 15, at=20, ts=TS + 30),
        N(at=25, to=27, ts=TS + 31),
        D(3, 0, 0, at=28, ts=TS + 32),
        A(3, 1, 16, at=40, ts=TS + 33),
    ]
)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), block=st.integers(1, 4_096), held=st.integers(1, 8_192), seed=st.integers(0, 2**32))
def test_a_damaged_log_reads_alike(data, block, held, seed):
    """Where the walk pauses must not decide what is believed: offsets and lengths are judged by the batch behind."""
    content = bytearray(LOG + BIG + to_bytes(T(1, 0, 1, at=60)))
    chance = random.Random(seed)
    for _ in range(data.draw(st.integers(0, 3))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    content = content[: data.draw(st.sampled_from([len(content), chance.randrange(len(content)) + 1]))]
    content += data.draw(st.sampled_from([b"", bytes(700), b"\x01", encode_legacy(70, b"k", b"v")]))
    whole = bytes(content)
    for table in TABLES:
        ranges = BlockBuffer(Ranges(whole).read_at, len(whole), block, held)
        assert read(table, ranges) == read_rows(table, opened(whole))


def test_headers_of_large_batches_are_fetched_without_the_rest():
    one = encode_batch([Record(0, TS, None, bytes(16_384 - 100))], producer_id=1, producer_epoch=0, base_sequence=0)
    log = b"".join(n.to_bytes(8, "big") + one[8:] for n in range(2_000))
    ranges = Ranges(log)
    rows = read("record_batches", BlockBuffer(ranges.read_at, len(log), block_bytes=512))
    assert [row["base_offset"] for row in rows] == list(range(2_000))
    assert ranges.total < len(log) / 10


def test_a_log_is_fetched_once_in_large_requests_and_little_of_it_is_held():
    small = encode_batch([Record(0, TS, None, bytes(900))], producer_id=1, producer_epoch=0, base_sequence=0)
    log = b"".join(n.to_bytes(8, "big") + small[8:] for n in range(4_000))
    ranges = Ranges(log)
    block, held = 32_768, 8 * 32_768
    buffer = BlockBuffer(ranges.read_at, len(log), block, held)
    most = 0
    for _ in read_batches("record_batches", opened(buffer, forget=buffer.forget)):
        most = max(most, sum(map(len, buffer._blocks.values())))
    assert ranges.total == len(log)
    assert len(ranges.fetched) < 0.6 * len(log) / block
    assert most <= held


def test_real_logs_read_alike(repository):
    """Markers and the coordinator's records with them."""
    paths = sorted((repository / "examples" / "quickstart").rglob("*.log"))
    assert paths
    for path in paths:
        topic, content = path.parent.name.rpartition("-")[0], path.read_bytes()
        for table in TABLES:
            ranges = BlockBuffer(Ranges(content).read_at, len(content), 100, 1_000)
            assert read(table, ranges, topic) == read_rows(table, opened(content, topic))
