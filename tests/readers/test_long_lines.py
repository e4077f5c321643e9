"""Very long lines: one row of `quarantine` each, read with bounded memory."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import consoles
from tests.support.dumps import COORDINATOR_PATH, Batch, Record, lines_in, marker, print_dump, read_lines, unreadable_in
from txnlib.core.text.lines import HEAD_BYTES, LONGEST_LINE, LongLine
from txnlib.readers.capture import list_capture
from txnlib.readers.table_readers import read_table

TABLES = ("record_batches", "transaction_log", "segments", "producer_snapshots")
MIB = 1 << 20
REASON = "LINE_TOO_LONG: more than 16 MiB"


def rows(text: bytes, longest: int, chunk: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    """The rows of all readers, where no longer line is read."""
    return {
        table: [row for batch in read_lines(table, lines_in(text, chunk, longest)) for row in batch.to_pylist()]
        for table in TABLES
    }


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
    st.integers(1, 20),
    st.integers(1, 20),
)
def test_a_line_is_whole_or_too_long_in_chunks_of_any_size(lines, line_end, last_end, longest, chunk):
    text = line_end.join(lines) + last_end
    expected, position = [], 0
    for line in io.BytesIO(text).readlines():
        is_long = len(line) > longest
        expected.append((position, len(line), b"" if is_long else line, line if is_long else None))
        position += len(line)
    printed = list(lines_in(text, chunk, longest))
    assert [
        (at, line.size if type(line) is LongLine else len(line), line, line.head if type(line) is LongLine else None)
        for at, line in printed
    ] == expected


def test_only_the_head_of_a_long_line_is_kept():
    ((_, line),) = lines_in(b"x" * 9_000, 500, 640)
    assert (type(line), line.head, line.size) == (LongLine, b"x" * HEAD_BYTES, 9_000)


LOG: Final = [Batch(), Batch((Record(value=b"V"), Record())), marker("COMMIT"), Batch(), Batch()]


def with_value(value: bytes) -> bytes:
    """A dump in which one record has this value."""
    place = b"valueSize: %d sequence: 1 headerKeys: [] key: k payload: %b"
    return print_dump(*LOG, contents=True).replace(place % (1, b"V"), place % (len(value), value))


@pytest.mark.parametrize("chunk", [100, 1 << 20])
@pytest.mark.parametrize("is_deep", [True, False])
def test_a_line_that_is_too_long_is_one_range_and_costs_no_other_line(chunk, is_deep):
    text = print_dump(*LOG, deep=is_deep)
    place = text.index(b"baseOffset: 3 ")
    expected = rows(text, MIB)
    for junk in (b"x" * 2_000 + b"\n", b"\0" * 700 + b"\r\n"):
        tables = rows(text[:place] + junk + text[place:], 640, chunk)
        assert tables["record_batches"] == expected["record_batches"]
        assert unreadable_in(tables["segments"]) == [(REASON, place, len(junk))]
        assert tables["segments"][0]["tail"] == "CLEAN"


@pytest.mark.parametrize("chunk", [100, 1 << 20])
@pytest.mark.parametrize("value", [b"V" * 2_000, b"a\n" + b"b" * 2_000 + b"\nc", b"b" * 2_000 + b"\nc\nd"])
def test_behind_contents_with_a_line_that_is_too_long_nothing_is_read(chunk, value):
    text = with_value(value)
    tables = rows(text, 640, chunk)
    start = text.index(b"| offset: 1 ")
    assert [row["base_offset"] for row in tables["record_batches"]] == [0, 1]
    ((reason, at, length),) = unreadable_in(tables["segments"])
    assert (reason.partition(":")[0] in ("LINE_TOO_LONG", "SIZE_MISMATCH"), at, length) == (
        True, start, len(text) - start
    )  # fmt: skip
    assert unreadable_in(rows(text, MIB)["segments"]) == []


def test_a_coordinator_record_of_many_partitions_is_whole():
    partitions = b",".join(b"a-rather-long-name-of-a-topic-%d" % number for number in range(60_000))
    value = (
        b"producerId:1,producerEpoch:0,state=Ongoing,partitions=[%b],txnLastUpdateTimestamp=5,txnTimeoutMs=60000"
        % partitions
    )
    record = Record(b"\0\0\0\1a", b"v", printed_key=b"transaction_metadata::transactionalId=a", printed_value=value)
    text = print_dump(Batch((record,)), path=COORDINATOR_PATH, contents=True)
    assert len(text) > 2 * MIB
    (row,) = rows(text, LONGEST_LINE)["transaction_log"]
    assert len(row["partitions"]) == 60_000


def write_packed(path: Path, before: bytes, filling: bytes, size: int, after: bytes) -> None:
    """Writes a text with `size` bytes of `filling` in the middle, compressed according to the name."""

    def pieces() -> Any:
        yield before
        for _ in range(size // MIB):
            yield filling * (MIB // len(filling))
        yield after

    if path.name.endswith(".gz"):
        with gzip.open(path, "wb", compresslevel=1) as stream:
            stream.writelines(pieces())
    elif path.name.endswith(".zst"):
        compressor = cramjam.zstd.Compressor()
        path.write_bytes(
            b"".join(
                [
                    *(bytes(compressor.compress(piece) and compressor.flush()) for piece in pieces()),
                    bytes(compressor.finish()),
                ]
            )
        )
    else:
        with path.open("wb") as stream:
            stream.writelines(pieces())


def peak_of(path: Path, table: str) -> tuple[list[dict[str, Any]], int]:
    """The rows of a file, and the most memory taken for them."""
    (file,) = list_capture([str(path)]).files
    tracemalloc.start()
    try:
        batches = list(read_table(table, file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return [row for batch in batches for row in batch.to_pylist()], peak


ENDINGS: Final = pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
#: A line of 16 MiB, a copy of it, and the chunk that ends it.
MOST_MEMORY: Final = 60 * MIB


@ENDINGS
def test_behind_a_payload_of_50_mib_nothing_of_a_dump_is_read(tmp_path, ending):
    path = tmp_path / f"orders-0.txt{ending}"
    before, after = (
        with_value(b"V").replace(b"valueSize: 1 sequence: 1", b"valueSize: %d sequence: 1" % (50 * MIB)).split(b"V", 1)
    )
    write_packed(path, before, b"V", 50 * MIB, after)

    batches, peak_of_batches = peak_of(path, "record_batches")
    segments, peak_of_segments = peak_of(path, "segments")

    start = before.rindex(b"\n") + 1
    length = len(before) - start + 50 * MIB + len(after)
    assert [row["base_offset"] for row in batches] == [0, 1]
    assert unreadable_in(segments) == [(REASON, start, length)]
    assert max(peak_of_batches, peak_of_segments) < MOST_MEMORY


CONSOLES: Final[dict[str, Callable[[consoles.Record], bytes]]] = {"lines": consoles.as_line, "JSON": consoles.as_json}


@ENDINGS
@pytest.mark.parametrize("form", CONSOLES)
def test_a_line_of_50_mib_is_one_range_of_console_text(tmp_path, ending, form):
    path = tmp_path / f"console.txt{ending}"
    record = CONSOLES[form](consoles.Record("billing"))
    before = b"" if form == "lines" else b'{"key":{"type":0,"data":{"transactionalId":"'
    write_packed(path, record + before, b"x, producerId=1 ", 50 * MIB, b"\n" + record)

    printed, peak_of_printed = peak_of(path, "console_log")
    segments, peak_of_segments = peak_of(path, "segments")

    assert [row["transactional_id"] for row in printed] == ["billing"] * 2
    assert unreadable_in(segments) == [(REASON, len(record), len(before) + 50 * MIB + 1)]
    assert max(peak_of_printed, peak_of_segments) < MOST_MEMORY + 40 * MIB
