"""Laws of split segments: the parts have the rows of the whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_bytes import encode_batch, encode_legacy, encode_transaction_log_batch, segment
from tests.support.log_notation import TS, C, N, T, rec
from tests.support.segments import rows_of_file
from txnlib.core.kafka.record_batch import Record as StoredRecord
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import Capture, CaptureFile, FileKind, Part
from txnlib.readers.capture_notes import CaptureNotes
from txnlib.readers.file_parts import put_together
from txnlib.readers.file_splits import Chunk, chunks_of, parts_of, reach
from txnlib.readers.table_readers import SEGMENT_PARTS_TABLE

TABLES = ("record_batches", "transaction_log", "producer_snapshots")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("split") / "orders-0.log"


def cut(file: CaptureFile, size: int) -> list[CaptureFile]:
    """The parts of a file that chunks of a size give."""
    chunks = [Chunk(file, number, size) for number in range(-(-file.size // size))]
    reached = {chunk.number: found for chunk in chunks if (found := reach(chunk)) is not None}
    return [file_of(file, part) for part in parts_of(reached)]


def file_of(file: CaptureFile, part: Part) -> CaptureFile:
    names = ("path", "kind", "source", "size", "topic", "partition", "offset")
    return CaptureFile(**{name: getattr(file, name) for name in names}, part=part)


def segments_of(parts: list[CaptureFile]) -> list[dict[str, Any]]:
    together = put_together(row for part in parts for row in rows_of_file(SEGMENT_PARTS_TABLE, part))
    return pa.RecordBatch.from_pylist([together], schema=arrow_schemas.SEGMENTS).to_pylist()


def in_order(segments: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, segments))


def same_in_parts(file: CaptureFile, size: int) -> int:
    """Asserts that all tables are those of the whole file, and returns the number of parts."""
    parts = cut(file, size)
    assert [part.part.start for part in parts] == [0, *[part.part.stop for part in parts[:-1]]]
    for table in TABLES:
        assert [row for part in parts for row in rows_of_file(table, part)] == rows_of_file(table, file), table
    assert in_order(segments_of(parts)) == in_order(rows_of_file("segments", file))
    return len(parts)


def written(path: Path, content: bytes, topic: str = "orders", offset: int = 0) -> CaptureFile:
    path.write_bytes(content)
    return CaptureFile(str(path), FileKind.SEGMENT, "raw:1", len(content), topic, 0, offset)


# ---- Segments

LARGE = encode_batch([StoredRecord(50, TS, None, bytes(6_000))], producer_id=1, producer_epoch=0, base_sequence=30)
LOG = segment(
    [*(T(1, 0, n, at=n, ts=TS + n) for n in range(20)), C(1, 0, 15, at=20, ts=TS + 30), N(at=25, to=27, ts=TS + 31)]
)
#: A payload that holds a log, of offsets that fit and of some that do not.
NESTED = encode_batch(
    [StoredRecord(60, TS, None, LOG + segment([T(9, 0, 0, at=61), T(9, 0, 1, at=900)]))], base_offset=60
)
LATER = segment(T(1, 0, n, at=n + 50, ts=TS + n) for n in range(20, 60))


def test_a_segment_is_cut_about_where_it_was_asked_to_be(path):
    content = segment(T(1, 0, n, at=n, ts=TS + n) for n in range(400))
    parts = cut(written(path, content), 4_000)
    assert same_in_parts(written(path, content), 4_000) == -(-len(content) // 4_000)
    assert max(part.extent for part in parts) < 4_500


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.integers(40, 3_000), seed=st.integers(0, 2**32))
def test_parts_of_a_damaged_segment_are_the_segment(path, data, size, seed):
    chance = random.Random(seed)
    content = bytearray(LOG + LARGE + data.draw(st.sampled_from([b"", NESTED])) + LATER)
    for _ in range(data.draw(st.integers(0, 4))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    content = content[: data.draw(st.sampled_from([len(content), chance.randrange(len(content)) + 1]))]
    content += data.draw(st.sampled_from([b"", bytes(5_000), b"\x01", encode_legacy(300, b"k", b"v"), LATER]))
    same_in_parts(written(path, bytes(content)), size)


def test_an_offset_that_no_crc_covers_makes_no_cut(path):
    """The batch in front of a place proves itself there, but not to who knows what stands before it."""
    log = [segment([T(1, 0, n, at=n, ts=TS + n)]) for n in range(12)]
    for wrong in range(len(log)):
        for at, bit in ((5, 1), (7, 8)):
            changed = bytearray(log[wrong])
            changed[at] ^= bit
            same_in_parts(written(path, b"".join([*log[:wrong], bytes(changed), *log[wrong + 1 :]])), 90)


@settings(max_examples=20, deadline=None)
@given(size=st.integers(60, 2_000), flipped=st.integers(0, 10_000), base=st.sampled_from([0, 3]))
def test_parts_of_a_coordinator_segment_are_the_segment(path, size, flipped, base):
    entry = rec("O", 7, 2, {"orders-0", "orders-1"}, id="billing")
    content = bytearray(b"".join(encode_transaction_log_batch([entry, "gone"], at=2 * n) for n in range(30)))
    if flipped < len(content):
        content[flipped] ^= 4
    same_in_parts(written(path, bytes(content), "__transaction_state", base), size)


def test_only_large_segments_are_split(tmp_path):
    sizes = {"a-0": 5_000, "a-1": 500}
    segments = [CaptureFile(name, FileKind.SEGMENT, "raw:1", size) for name, size in sizes.items()]
    others = [CaptureFile(f"{kind}.txt", kind, "text:1", 9_000) for kind in (FileKind.DUMP, FileKind.CONSOLE)]
    capture = Capture((*segments, *others), CaptureNotes(), ("x",))
    assert [(chunk.file.path, chunk.start) for chunk in chunks_of(capture, 2_000)] == [
        ("a-0", 0),
        ("a-0", 2_000),
        ("a-0", 4_000),
    ]
    assert chunks_of(capture) == []
    missing = CaptureFile(str(tmp_path / "gone"), FileKind.SEGMENT, "raw:1", 9_000)
    assert reach(Chunk(missing, 0, 2_000)) is None
