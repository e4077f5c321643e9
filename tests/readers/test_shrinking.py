"""Files that shrink while they are read.

Kafka truncates followers; rsync and log rolling cut files, too. Mapped memory would end the process (SIGBUS).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.dumps import Batch, print_dump
from tests.support.log_bytes import encode_batch, segment, to_bytes
from tests.support.log_notation import TS, C, T
from tests.support.segments import in_batches, read_segment, rows_of_file
from txnlib.core.kafka.record_batch import Record
from txnlib.readers.capture import CaptureFile, list_capture
from txnlib.readers.segment import FILE_SHRANK
from txnlib.readers.storage import files
from txnlib.readers.table_readers import read_tables

COUNT = 60
BATCHES = [to_bytes(C(1, 0, at=n) if n % 3 == 2 else T(1, 0, n, at=n)) for n in range(COUNT)]
LARGE = encode_batch([Record(0, TS, None, bytes(9_000))], producer_id=1, producer_epoch=0, base_sequence=0)
ENDS = [sum(map(len, BATCHES[: n + 1])) for n in range(COUNT)]
SIZE = ENDS[-1]


@pytest.fixture
def listed(tmp_path) -> CaptureFile:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(BATCHES))
    (file,) = list_capture([str(tmp_path)]).files
    return file


def lost(row: dict[str, Any]) -> list[tuple[int, int]]:
    return [(bad["position"], bad["length"]) for bad in row["unreadable"] if bad["reason"].startswith(FILE_SHRANK)]


def whole_batches(size: int) -> list[int]:
    return [number for number, end in enumerate(ENDS) if end <= size]


CUTS = [0, 1, 70, ENDS[0], ENDS[9], ENDS[9] + 1, ENDS[9] + 20, ENDS[30] - 1, SIZE - 1]


@pytest.mark.parametrize("size", CUTS)
def test_a_file_that_was_cut_after_it_was_listed_keeps_what_is_left(listed, size):
    os.truncate(listed.path, size)
    assert [row["base_offset"] for row in rows_of_file("record_batches", listed)] == whole_batches(size)
    (row,) = rows_of_file("segments", listed)
    ((position, length),) = lost(row)
    assert (position <= size, position + length) == (True, SIZE)
    assert (row["batches"], row["bytes"], row["tail"]) == (len(whole_batches(size)), SIZE, "CORRUPT")
    assert f"it had {SIZE} bytes, and now {size}" in row["unreadable"][-1]["reason"]
    covered = sum(stretch["length"] for stretch in row["unreadable"])
    assert covered + (ENDS[len(whole_batches(size)) - 1] if whole_batches(size) else 0) == SIZE


@contextmanager
def cut_during_reads(path: str, size: int, after: int) -> Iterator[None]:
    """The file is cut right before one of the reads of its ranges."""
    read, reads = os.pread, 0

    def pread(descriptor: int, count: int, position: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == after + 1:
            os.truncate(path, size)
        return read(descriptor, count, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("txnlib.readers.storage.local_files.os.pread", pread)
        patch.setattr(files, "LOCAL_BLOCK_BYTES", 512)
        yield


@pytest.mark.parametrize("size", CUTS)
@pytest.mark.parametrize("after", [0, 1, 3, 8, 9])
def test_a_file_that_is_cut_between_two_reads_keeps_what_was_read_and_tells_what_was_lost(listed, size, after):
    with cut_during_reads(listed.path, size, after):
        found = list(read_tables(("record_batches", "segments"), listed))
    offsets = [row["base_offset"] for table, rows in found if table == "record_batches" for row in in_batches(rows)]
    assert offsets[: len(whole_batches(size))] == whole_batches(size), "what is still there is not lost"
    assert offsets == list(range(len(offsets))), "nothing is invented"
    ((row,),) = [rows.to_pylist() for table, rows in found if table == "segments"]
    assert row["batches"] == len(offsets)
    assert [position + length for position, length in lost(row)] == [SIZE] * (len(offsets) < COUNT)
    assert (row["tail"] == "CORRUPT") == (len(offsets) < COUNT)
    assert row["end_offset"] in (None, len(offsets))


def test_a_cut_between_two_tables_is_in_the_one_that_is_read_last(listed):
    assert len(rows_of_file("record_batches", listed)) == COUNT
    os.truncate(listed.path, ENDS[9])
    assert lost(rows_of_file("segments", listed)[0]) == [(ENDS[9], SIZE - ENDS[9])]


def resumed(tmp_path: Path) -> CaptureFile:
    """A segment of 40 large batches, of which an earlier audit has read the first ten."""
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    batches = [n.to_bytes(8, "big") + LARGE[8:] for n in range(40)]
    path.write_bytes(b"".join(batches[:10]))
    (file,) = list_capture([str(tmp_path)]).files
    (before,) = rows_of_file("segments", replace(file, part=1))
    path.write_bytes(b"".join(batches))
    (file,) = list_capture([str(tmp_path)]).files
    return replace(file, part=2, earlier=(read_segment(before),))


def test_a_resumed_segment_that_is_cut_tells_what_it_lost(tmp_path):
    file = resumed(tmp_path)
    os.truncate(file.path, 150_000)
    (row,) = rows_of_file("segments", file)
    assert sum(length for _, length in lost(row)) == file.size - 150_000
    assert (row["tail"], row["batches"], row["parts"]) == ("CORRUPT", 150_000 // len(LARGE), [1, 2])


@pytest.mark.parametrize("what", ["gone", "FIFO"])
def test_a_file_that_cannot_be_opened_any_more_is_lost_whatever_is_known_of_it(tmp_path, what):
    file = resumed(tmp_path)
    os.unlink(file.path)
    if what == "FIFO":
        os.mkfifo(file.path)
    (row,) = rows_of_file("segments", file)
    (stretch,) = row["unreadable"]
    assert (stretch["position"], stretch["length"], stretch["reason"][:11]) == (0, file.size, "CANNOT_OPEN")
    assert (row["batches"], row["tail"], row["parts"]) == (0, "UNOPENED", [2])


def test_a_segment_that_grew_is_read_up_to_the_size_it_was_listed_with(listed):
    """So each table that is read of it by itself is of the same bytes."""
    with Path(listed.path).open("ab") as stream:
        stream.write(segment([T(1, 0, COUNT, at=COUNT)]))
    (row,) = rows_of_file("segments", listed)
    assert (row["batches"], row["bytes"], row["tail"], lost(row)) == (COUNT, SIZE, "CLEAN", [])
    assert len(rows_of_file("record_batches", listed)) == COUNT


TEXTS = {
    "dump": ("orders-0.txt", print_dump(*(Batch() for _ in range(30)))),
    "console text": ("console.txt", b'{"key":{"type":0,"data":{"transactionalId":"a"}},"value":null}\n' * 30),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_that_was_cut_after_it_was_listed_says_where(tmp_path, kind):
    name, text = TEXTS[kind]
    (tmp_path / name).write_bytes(text)
    (file,) = list_capture([str(tmp_path)]).files
    (whole,) = rows_of_file("segments", file)
    assert not lost(whole)
    size = text.rindex(b"\n", 0, len(text) // 2) + 1
    os.truncate(file.path, size)
    *_, row = rows_of_file("segments", file)
    assert (lost(row), row["tail"]) == ([(size, 0)], "CORRUPT")
    assert 0 < row["batches"] < whole["batches"]
