"""Very long lines, read with bounded memory."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import consoles
from tests.support.dumps import COORDINATOR_PATH, Batch, Record, marker, print_dump
from txnlib.core.text.long_line import LongLine, behind, find_last, size_of
from txnlib.readers import console, dump
from txnlib.readers.text_lines import TextLines

TABLES = ("record_batches", "transaction_log", "segments", "producer_snapshots")
MIB = 1 << 20


def rows(text: bytes, longest: int, chunk: int = 1 << 20) -> list[list[dict]]:
    """The rows of all readers, where no longer line is held."""
    return [
        [
            row
            for batch in getattr(dump, f"read_{table}")(
                TextLines(io.BytesIO(text), chunk, longest=longest), "text:1", "d.txt", None
            )
            for row in batch.to_pylist()
        ]
        for table in TABLES
    ]


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
    st.integers(1, 20),
    st.integers(1, 20),
)
def test_a_long_line_keeps_its_beginning_its_end_and_its_size(lines, line_end, last_end, longest, chunk):
    text = line_end.join(lines) + last_end
    expected, position = [], 0
    for line in io.BytesIO(text).readlines():
        expected.append((position, len(line), line[:longest], line[-2:]))
        position += len(line)
    found = list(TextLines(io.BytesIO(text), chunk, longest=longest))
    assert [
        (at, size_of(line), line[:longest], (line.tail if type(line) is LongLine else line)[-2:]) for at, line in found
    ] == expected
    for _at, line in found:
        assert len(line) <= longest + 2
        assert line[longest:] in (b"", b"\n", b"\r\n") or size_of(line) <= longest + 2


def test_the_rest_of_a_long_line_is_as_long_as_it_would_be():
    whole = b"offset: 1 " + b"x" * 100 + b"baseOffset: 7\n"
    (_, line), *_ = TextLines(io.BytesIO(whole), longest=20)
    assert type(line) is LongLine
    assert (size_of(behind(line, 10)), behind(line, 10)[:5]) == (len(whole) - 10, b"xxxxx")
    assert find_last(line, b"baseOffset: ") == (110, b"baseOffset: 7\n") == find_last(whole, b"baseOffset: ")
    assert find_last(line, b"offset: ") is None
    assert find_last(whole, b"offset: ") is None


_TEXT = st.sampled_from([b"", b"x", b"]", b"payload: ", b"x" * 700, b"y" * 1_500, b"\n", b"\r", b"z" * 641])
_CONTENTS = st.none() | st.lists(_TEXT, max_size=6).map(b"".join)
_RECORD = st.builds(Record, _CONTENTS, _CONTENTS, st.sampled_from([(), (b"trace",), (b"h" * 300, b"]")]))
_BATCH = st.lists(_RECORD, min_size=1, max_size=3).map(lambda records: Batch(tuple(records))) | st.just(marker("COMMIT"))


@settings(deadline=None)
@given(st.lists(_BATCH, min_size=1, max_size=6), st.booleans(), st.integers(0, 400), st.integers(100, 3_000))
def test_payloads_are_measured_off_however_little_of_them_is_held(batches, is_converted, cut, chunk):
    text = print_dump(*batches, contents=True)
    text = text.replace(b"\n", b"\r\n") if is_converted else text
    text = text[: len(text) - cut] if cut < 100 else text
    assert rows(text, longest=640, chunk=chunk) == rows(text, longest=MIB)


def test_a_genuine_line_behind_a_piece_of_a_long_one_is_found():
    text = b"v" * 9_000 + print_dump(Batch(), path="/d/b-1/" + "0" * 20 + ".log")
    assert rows(text, longest=640) == rows(text, longest=MIB)
    assert [row["topic"] for row in rows(text, longest=640)[0]] == ["b"]


def test_a_coordinator_record_of_many_partitions_is_held():
    partitions = b",".join(b"a-rather-long-name-of-a-topic-%d" % number for number in range(300))
    value = b"producerId:1,producerEpoch:0,state=Ongoing,partitions=[%b],txnLastUpdateTimestamp=5,txnTimeoutMs=60000" % partitions
    record = Record(b"\0\0\0\1a", b"v", printed_key=b"transaction_metadata::transactionalId=a", printed_value=value)
    text = print_dump(Batch((record,)), path=COORDINATOR_PATH, contents=True)
    ((_, (row,), _, _), whole) = rows(text, longest=640), rows(text, longest=MIB)
    assert len(row["partitions"]) == 300
    assert rows(text, longest=640) == whole


def big_dump(path: Path, value_size: int) -> None:
    """A record of one long line between others, of which the sizes tell: the readers see a short one as they see this."""
    log = [Batch(), Batch((Record(value=b"V"), Record())), marker("COMMIT"), Batch()]
    before, behind_it = print_dump(*log, contents=True).split(b"valueSize: 1 sequence: 1 headerKeys: [] key: k payload: V")
    with path.open("wb") as stream:
        stream.write(before + b"valueSize: %d sequence: 1 headerKeys: [] key: k payload: " % value_size)
        for _ in range(value_size // MIB):
            stream.write(b"V" * MIB)
        stream.write(b"V" * (value_size % MIB) + behind_it)


def peak_of(path: Path, table: str) -> tuple[list[dict], int]:
    tracemalloc.start()
    try:
        with path.open("rb", buffering=0) as stream:
            batches = list(getattr(dump, f"read_{table}")(dump.iter_lines(stream), "text:1", "d.txt", None))
        found = [row for batch in batches for row in batch.to_pylist()]
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("table", ["record_batches", "segments"])
def test_a_payload_of_50_mb_takes_a_few(tmp_path, table):
    big_dump(tmp_path / "long", 50 * MIB)
    big_dump(tmp_path / "short", 1)
    found, peak = peak_of(tmp_path / "long", table)
    assert found == peak_of(tmp_path / "short", table)[0]
    assert found[-1].get("base_offset", 4) == 4
    assert peak < 10 * MIB


def test_a_line_of_50_mb_among_console_text_is_held_no_further_than_a_record(tmp_path):
    path = tmp_path / "console.txt"
    record = consoles.as_line(consoles.Record("billing"))
    with path.open("wb") as stream:
        stream.write(record)
        for _ in range(50):
            stream.write(b"x" * MIB)
        stream.write(b"\n" + record)
    tracemalloc.start()
    try:
        with path.open("rb", buffering=0) as stream:
            batches = list(console.read_transaction_log(console.iter_chunks(stream), "text:1", "c.txt"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [row["transactional_id"] for batch in batches for row in batch.to_pylist()] == ["billing"] * 2
    assert peak < 60 * MIB, peak / MIB
