"""How is one file of a capture opened and read for one table? The only place that opens files inside tasks."""

from __future__ import annotations

import io
import mmap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from txnlib.readers import broker_files, console, dump, segment
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.segment import SAMPLE_BYTES, Segment
from txnlib.readers.text_files import READ_ERRORS, open_text

Batches = Iterator[pa.RecordBatch]


def read_table(table: str, file: CaptureFile) -> Batches:
    """Arrow batches of `columns.TABLES[table]` from one file; nothing if the file does not hold that table.

    A file that cannot be opened is one row of `segments`, never an exception.
    """
    reader = READERS.get((table, file.kind))
    if reader is None:
        return
    try:
        yield from reader(file)
    except READ_ERRORS as error:
        if table == "segments":
            yield from broker_files.read_unreadable_file(file, f"CANNOT_OPEN: {getattr(error, 'strerror', None) or error}", "")


@contextmanager
def _open_segment(file: CaptureFile) -> Iterator[Segment]:
    """The bytes of a segment, mapped: only pages that are looked at are read, and read pages are given back."""
    topic, partition = file.topic or "", file.partition or 0
    with Path(file.path).open("rb") as stream:
        size = stream.seek(0, io.SEEK_END)
        if size == 0:
            yield Segment(file.path, file.source, topic, partition, file.offset, b"", 0, lambda position: None)
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield Segment(file.path, file.source, topic, partition, file.offset, mapped, size, partial(_forget, mapped))


def _forget(mapped: mmap.mmap, position: int) -> None:
    whole_pages = position - position % mmap.ALLOCATIONGRANULARITY
    if whole_pages and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED, 0, whole_pages)


def _from_segment(read: Callable[[Segment], Batches], file: CaptureFile) -> Batches:
    with _open_segment(file) as opened:
        yield from read(opened)


def _from_dump(read: Callable[..., Batches], file: CaptureFile) -> Batches:
    known = None if file.topic is None or file.partition is None else (file.topic, file.partition)
    with open_text(file.path) as stream:
        yield from read(dump.iter_lines(stream, 1 << 20), file.source, file.path, topic_partition=known)


def _from_console(read: Callable[..., Batches], file: CaptureFile) -> Batches:
    with open_text(file.path) as stream:
        yield from read(console.iter_chunks(stream), file.source, file.path, file.partition)


def _coordinator_segment(file: CaptureFile) -> Batches:
    if file.topic == "__transaction_state":
        yield from _from_segment(segment.read_transaction_log, file)


def _unknown_file(file: CaptureFile) -> Batches:
    with Path(file.path).open("rb") as stream:
        sample = stream.read(SAMPLE_BYTES).hex()
    yield from broker_files.read_unreadable_file(file, "NOT_A_KAFKA_FILE", sample)


def _corrupt(problem_of: Callable[[bytes], str | None], file: CaptureFile) -> Batches:
    content = Path(file.path).read_bytes()
    problem = problem_of(content)
    if problem is not None:
        yield from broker_files.read_unreadable_file(file, problem, content[:SAMPLE_BYTES].hex())


#: (table, kind of file) -> reader; what is not here holds nothing of that table.
READERS: Final[Mapping[tuple[str, FileKind], Callable[[CaptureFile], Batches]]] = {
    ("record_batches", FileKind.SEGMENT): partial(_from_segment, segment.read_record_batches),
    ("record_batches", FileKind.DUMP): partial(_from_dump, dump.read_record_batches),
    ("transaction_log", FileKind.SEGMENT): _coordinator_segment,
    ("transaction_log", FileKind.DUMP): partial(_from_dump, dump.read_transaction_log),
    ("transaction_log", FileKind.CONSOLE): partial(_from_console, console.read_transaction_log),
    ("segments", FileKind.SEGMENT): partial(_from_segment, segment.read_segments),
    ("segments", FileKind.DUMP): partial(_from_dump, dump.read_segments),
    ("segments", FileKind.PRODUCER_SNAPSHOT): partial(_corrupt, broker_files.snapshot_problem),
    ("segments", FileKind.TRANSACTION_INDEX): partial(_corrupt, broker_files.transaction_index_problem),
    ("segments", FileKind.CONSOLE): partial(_from_console, console.read_segments),
    ("segments", FileKind.UNKNOWN): _unknown_file,
    ("segments", FileKind.SKIPPED_SEGMENT): broker_files.read_skipped_segment,
    ("producer_snapshots", FileKind.PRODUCER_SNAPSHOT): broker_files.read_producer_snapshots,
    ("producer_snapshots", FileKind.DUMP): partial(_from_dump, dump.read_producer_snapshots),
    ("aborted_transactions", FileKind.TRANSACTION_INDEX): broker_files.read_aborted_transactions,
    ("checkpoints", FileKind.CHECKPOINT): broker_files.read_checkpoints,
}
