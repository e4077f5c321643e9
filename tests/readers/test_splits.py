"""Do parts of a file say what the file says, wherever it is cut, and whatever is damaged or imitated around the cuts?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.batches import TS, C, N, T, rec
from tests.support.dumps import COORDINATOR_PATH, Batch, Record, batch_lines, marker, print_dump, with_forgeries
from tests.support.log_bytes import encode_batch, encode_legacy, encode_transaction_log_batch, segment
from txnlib.core import dump_cuts
from txnlib.core.record_batch import Record as StoredRecord
from txnlib.readers import columns, splits
from txnlib.readers.capture import Capture, CaptureFile, FileKind
from txnlib.readers.capture_notes import CaptureNotes
from txnlib.readers.parts import Part, put_together
from txnlib.readers.splits import Chunk, chunks_of, parts_of, reach
from txnlib.readers.tables import SEGMENT_PARTS_TABLE, read_table

TABLES = ("record_batches", "transaction_log", "producer_snapshots")
KEY = ("path", "file_position")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("split") / "orders-0.txt"


@pytest.fixture(autouse=True)
def guesses_are_made_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_cuts, "_BATCHES", 2)
    monkeypatch.setattr(splits, "_HEAD_BYTES", 1_000)


def rows(table: str, file: CaptureFile) -> list[dict[str, Any]]:
    return [row for batch in read_table(table, file) for row in batch.to_pylist()]


def cut(file: CaptureFile, size: int) -> list[CaptureFile]:
    """The parts of a file that chunks of a size give."""
    chunks = [Chunk(file, number, size) for number in range(-(-file.size // size))]
    reached = {chunk.number: found for chunk in chunks if (found := reach(chunk)) is not None}
    return [file_of(file, part) for part in parts_of(reached)]


def file_of(file: CaptureFile, part: Part) -> CaptureFile:
    names = ("path", "kind", "source", "size", "topic", "partition", "offset")
    return CaptureFile(**{name: getattr(file, name) for name in names}, part=part)


def segments_of(parts: list[CaptureFile]) -> list[dict[str, Any]]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for part in parts:
        for row in rows(SEGMENT_PARTS_TABLE, part):
            found.setdefault(tuple(row[name] for name in KEY), []).append(row)
    together = [put_together(found[key]) for key in sorted(found)]
    return pa.RecordBatch.from_pylist(together, schema=columns.SEGMENTS).to_pylist()


def in_order(segments: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, segments))


def same_in_parts(file: CaptureFile, size: int) -> int:
    """Asserts that all tables are those of the whole file, and returns the number of parts."""
    parts = cut(file, size)
    assert [part.part.start for part in parts] == [0, *[part.part.stop for part in parts[:-1]]]
    for table in TABLES:
        assert [row for part in parts for row in rows(table, part)] == rows(table, file), table
    assert in_order(segments_of(parts)) == in_order(rows("segments", file))
    return len(parts)


def written(path: Path, content: bytes, topic: str = "orders", offset: int = 0) -> CaptureFile:
    path.write_bytes(content)
    return CaptureFile(str(path), FileKind.SEGMENT, "raw:1", len(content), topic, 0, offset)


def text(path: Path, content: bytes, topic: str | None = None) -> CaptureFile:
    path.write_bytes(content)
    return CaptureFile(str(path), FileKind.DUMP, "text:1", len(content), topic, None if topic is None else 0)


# ---- Segments

LARGE = encode_batch([StoredRecord(50, TS, None, bytes(6_000))], producer_id=1, producer_epoch=0, base_sequence=30)
LOG = segment([*(T(1, 0, n, at=n, ts=TS + n) for n in range(20)), C(1, 0, 15, at=20, ts=TS + 30), N(at=25, to=27, ts=TS + 31)])
#: A payload that holds a log, of offsets that fit and of some that do not.
NESTED = encode_batch([StoredRecord(60, TS, None, LOG + segment([T(9, 0, 0, at=61), T(9, 0, 1, at=900)]))], base_offset=60)
LATER = segment(T(1, 0, n, at=n + 50, ts=TS + n) for n in range(20, 60))


def test_a_segment_is_cut_about_where_it_was_asked_to_be(path):
    content = segment(T(1, 0, n, at=n, ts=TS + n) for n in range(400))
    parts = cut(written(path, content), 4_000)
    assert same_in_parts(written(path, content), 4_000) == -(-len(content) // 4_000)
    assert max(part.extent for part in parts) < 4_500


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=40, deadline=None)
@given(size=st.integers(60, 2_000), flipped=st.integers(0, 10_000), base=st.sampled_from([0, 3]))
def test_parts_of_a_coordinator_segment_are_the_segment(path, size, flipped, base):
    entry = rec("O", 7, 2, {"orders-0", "orders-1"}, id="billing")
    content = bytearray(b"".join(encode_transaction_log_batch([entry, "gone"], at=2 * n) for n in range(30)))
    if flipped < len(content):
        content[flipped] ^= 4
    same_in_parts(written(path, bytes(content), "__transaction_state", base), size)


# ---- Dumps

HOSTILE = print_dump(Batch(producer_id=666), marker("ABORT", 666), start=(2, 120)).split(b"\n", 2)[2]
_TEXT = st.sampled_from([b"", b"x", b"]", b"\n", b"y" * 900, HOSTILE, print_dump(Batch(), path="/x/b-3/" + "0" * 20 + ".log")])
_CONTENTS = st.none() | st.lists(_TEXT, max_size=3).map(b"".join)
_RECORD = st.builds(Record, _CONTENTS, _CONTENTS, st.sampled_from([(), (), (), (b"trace",), (HOSTILE,)]))
_BATCH = st.lists(_RECORD, min_size=1, max_size=3).map(lambda records: Batch(tuple(records)))
_MARKER = st.sampled_from([marker("COMMIT"), marker("ABORT")])
_LOG = st.lists(_BATCH | _MARKER | st.just(Batch()), max_size=14).map(lambda log: log * 2)


def path_of(topic: str, offset: int, directory: str = "/d") -> str:
    return f"{directory}/{topic}-0/{offset:020d}.log"


_NOTHING = Batch((Record(None, None),))


@st.composite
def dumped_files(draw: st.DrawFn) -> bytes:
    """The dump of a file, of which stretches may be printed with other options than the one before."""
    paths = [path_of("orders", 0), path_of("orders", 40), path_of("b", 0, "/e"), "/tmp/x.log", COORDINATOR_PATH]
    offset, position = draw(st.sampled_from([(0, 0), (0, 0), (40, 5_000)]))
    content = print_dump(path=draw(st.sampled_from(paths)), start=(offset, position)) if draw(st.integers(0, 7)) else b""
    for _ in range(draw(st.integers(1, 3))):
        log = draw(st.one_of(_LOG, st.sampled_from([[_NOTHING] * 20, [Batch()] * 20, [Batch(), marker("COMMIT")] * 8])))
        how = {name: draw(st.sampled_from(values)) for name, values in _OPTIONS.items()}
        for lines in batch_lines(*log, start=(offset, position), **how):
            content += b"".join(line + b"\n" for line in lines)
        offset, position = offset + sum(len(batch.records) for batch in log), position + sum(batch.size for batch in log)
    return content


_OPTIONS = {"deep": [True, True, False], "contents": [True, False], "bare": [False, False, True]}
_FILE = dumped_files()


def test_dumps_are_cut_about_where_they_were_asked_to_be(path):
    log = [Batch((Record(), Record(header_keys=(b"trace",)))), marker("COMMIT"), Batch()] * 60
    for deep, contents in ((False, False), (True, False), (True, True)):
        usual = print_dump(*([Batch(), marker("COMMIT")] * 100), deep=deep, contents=contents)
        assert same_in_parts(text(path, usual), 8_000) == -(-len(usual) // 8_000)
    # Of header keys nothing tells the size: the batches behind them do, if there are enough.
    with_keys = print_dump(*log * 4)
    assert same_in_parts(text(path, with_keys), 32_000) >= len(with_keys) // 32_000 - 1
    same_in_parts(text(path, print_dump(*log, contents=True)), 8_000)


@pytest.mark.parametrize("forged", [6, 10])
def test_many_imitated_batches_are_told_apart_the_same_way_in_parts(path, forged):
    for place in range(100, 124, 3):
        assert same_in_parts(text(path, with_forgeries(forged, place, count=330)), 30_000) > 1


@settings(max_examples=150, deadline=None)
@given(files=st.lists(_FILE, min_size=1, max_size=3), size=st.integers(300, 4_000), topic=st.sampled_from([None, "orders"]))
def test_parts_of_a_dump_are_the_dump(path, files, size, topic):
    same_in_parts(text(path, b"".join(files), topic), size)


@settings(max_examples=150, deadline=None)
@given(files=st.lists(_FILE, min_size=1, max_size=3), size=st.integers(300, 4_000), data=st.data(), seed=st.integers(0, 2**32))
def test_parts_of_a_damaged_dump_are_the_dump(path, files, size, data, seed):
    chance = random.Random(seed)
    content = bytearray(b"".join(files) or b"x")
    for _ in range(data.draw(st.integers(0, 4))):
        at = chance.randrange(len(content))
        if data.draw(st.booleans()):
            content[at] = chance.choice(b"0 9ab\n\r:|-")
        else:
            content[at : at + chance.choice([1, 50, 400, 1_000])] = b"x"
    same_in_parts(text(path, bytes(content)), size)


def lines_of(*log: Batch, start: tuple[int, int] = (0, 0)) -> bytes:
    return b"".join(line + b"\n" for lines in batch_lines(*log, start=start) for line in lines)


def test_what_stood_long_before_a_cut_decides_behind_it(path):
    """Contents printed once make a reader wary of a gap, where the lines around the cut show none."""
    content = print_dump(Batch(), *[_NOTHING] * 40, contents=True)
    behind_a_gap = lines_of(_NOTHING, start=(60, 7_200)).split(b"\n")[0] + b"\n"
    same_in_parts(text(path, content + behind_a_gap), 3_000)
    same_in_parts(text(path, print_dump(*[_NOTHING] * 41) + behind_a_gap), 3_000)


def test_the_same_file_printed_twice_is_known_by_its_first_batch(path):
    log = [Batch(), marker("COMMIT"), Batch()] * 8
    for again in (lines_of(*log), lines_of(Batch((Record(), Record())), *log)):
        assert same_in_parts(text(path, print_dump(*log) + again), 2_500) > 1
        same_in_parts(text(path, print_dump(*log) + again * 2), 9_000)
        same_in_parts(text(path, print_dump(*log) + again, "orders"), 2_500)


def test_a_stretch_ends_at_the_next_batch_on_whichever_side_of_a_cut(path):
    content = b"".join(lines[0] + b"\nsize: \n" + lines[1] + b"\n" for lines in batch_lines(*[Batch()] * 40))
    same_in_parts(text(path, print_dump() + content), 3_000)


def test_marker_types_are_printed_or_not_in_the_whole_file(path):
    log = [marker("COMMIT"), *[Batch()] * 60]
    assert same_in_parts(text(path, print_dump(*log, deep=False)), 8_000) > 1
    (row,) = segments_of(cut(text(path, print_dump(*log, deep=False)), 8_000))
    assert row["is_decoded"] is False


def test_coordinator_records_are_printed_or_not_in_the_whole_file(path):
    record = Record(b"\0\0\0\1a", None, printed_key=b"transaction_metadata::transactionalId=a", printed_value=b"<DELETE>")
    content = print_dump(Batch((record,)), *[_NOTHING] * 60, path=COORDINATOR_PATH, contents=True)
    assert same_in_parts(text(path, content), 4_000) > 2
    assert rows("segments", text(path, content))[0]["is_decoded"]


def test_the_first_log_directory_of_a_text_is_the_source_itself(path):
    files = [
        print_dump(*[Batch()] * 30, path=path_of(topic, 0, folder)) for topic, folder in (("a", "/d"), ("b", "/e"), ("c", "/d"))
    ]
    parts = cut(text(path, b"".join(files)), 4_000)
    assert {row["topic"]: row["source"] for row in segments_of(parts)} == {"a": "text:1", "b": "text:1:/e", "c": "text:1"}
    assert same_in_parts(text(path, b"".join(files)), 4_000) > 5


def test_real_dumps_are_read_the_same_in_parts(captures, path):
    dumps = [found for found in sorted(captures.rglob("dumps/*/**/*")) if found.is_file() and found.suffix not in (".err", ".gz")]
    counts = []
    for found in dumps[::3]:
        content = found.read_bytes()
        if len(content) < 200_000:
            counts.append(same_in_parts(text(path, content), max(len(content) // 4, 2_000)))
    assert sum(count > 1 for count in counts) > len(counts) / 4


# ---- Which files


def test_only_large_files_are_split_and_no_packed_ones(tmp_path):
    names = {"a-0.txt": 5_000, "a-1.txt.gz": 5_000, "a-2.txt": 500, "a-3.txt.zst": 5_000}
    dumps = [CaptureFile(name, FileKind.DUMP, "text:1", size) for name, size in names.items()]
    console = CaptureFile("c.txt", FileKind.CONSOLE, "text:1", 9_000)
    capture = Capture((*dumps, console), CaptureNotes(), ("x",))
    assert [(chunk.file.path, chunk.start) for chunk in chunks_of(capture, 2_000)] == [
        ("a-0.txt", 0),
        ("a-0.txt", 2_000),
        ("a-0.txt", 4_000),
    ]
    assert chunks_of(capture) == []
    assert splits.DUMP_BYTES < 10 << 30
    missing = CaptureFile(str(tmp_path / "gone"), FileKind.DUMP, "text:1", 9_000)
    assert reach(Chunk(missing, 0, 2_000)) is None
