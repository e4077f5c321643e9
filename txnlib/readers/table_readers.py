"""Readers by kind of file and by table. The only module that opens files inside tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.text.console import read_console_text
from txnlib.core.text.lines import TextLines
from txnlib.errors import UnreadableInputError
from txnlib.readers import arrow_schemas, broker_files, segment, text_rows
from txnlib.readers.arrow_schemas import SAMPLE_BYTES, TableBatches, one_pass
from txnlib.readers.capture import READ_WHOLE, CaptureFile, FileKind
from txnlib.readers.fingerprints import bytes_per_request, known_begin
from txnlib.readers.header_columns import AT_START
from txnlib.readers.other_files import reason_of_unknown
from txnlib.readers.segment import Segment
from txnlib.readers.storage import files
from txnlib.readers.storage.block_buffer import BlockBuffer
from txnlib.readers.storage.local_files import is_link, reason_of
from txnlib.readers.storage.object_stores import may_pass
from txnlib.readers.storage.packed_text import COMPRESSED, READ_ERRORS, open_text
from txnlib.readers.text_events import read_located

Batches = Iterator[pa.RecordBatch]
#: Rows, or bytes, of small files that are enough for an Arrow batch.
JOINED_ROWS: Final = 10_000
JOINED_BYTES: Final = 4 << 20


def may_hold(table: str, file: CaptureFile) -> bool:
    """Whether a file may have rows of a table, by its kind and, for a segment, by its topic."""
    if table not in KINDS[file.kind][1]:
        return False
    return file.kind is not FileKind.SEGMENT or table not in ONLY_IN or file.topic == ONLY_IN[table]


def read_files(tables: Collection[str], files: Iterable[CaptureFile]) -> TableBatches:
    """Yields Arrow batches of `arrow_schemas.TABLES[table]`, each with its table, the rows of small files together.

    Spark handles each batch separately, which takes longer than reading a small file. Raises UnreadableInputError as
    `read_tables` does.
    """
    waiting: dict[str, _Waiting] = defaultdict(_Waiting)
    for table, batch in (found for file in files for found in read_tables(tables, file)):
        waiting[table].add(batch)
        if waiting[table].is_full:
            yield from waiting.pop(table).joined(table)
    for table, rest in waiting.items():
        yield from rest.joined(table)


@dataclass(slots=True)
class _Waiting:
    """The rows of some small files, until they are enough for an Arrow batch."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes

    @property
    def is_full(self) -> bool:
        return self.rows >= JOINED_ROWS or self.size >= JOINED_BYTES

    def joined(self, table: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        return ((table, batch) for batch in pa.Table.from_batches(self.batches).combine_chunks().to_batches())


def read_table(table: str, file: CaptureFile) -> Batches:
    """Yields Arrow batches of one table from one file; see `read_tables`."""
    return (batch for _, batch in read_tables((table,), file))


def read_tables(tables: Collection[str], file: CaptureFile) -> TableBatches:
    """Yields Arrow batches of `arrow_schemas.TABLES[table]`, each with its table, from one pass through a file.

    A file that cannot be opened becomes one row of `segments`, never an exception. Rows read before the file ended
    early are kept.

    Raises UnreadableInputError if a store fails in the middle of a file, or if it temporarily refuses a file that it
    may have delivered for `segments`: otherwise rows would be missing without notice.
    """
    wanted = [table for table in tables if may_hold(table, file)]
    if not wanted:
        return
    try:
        if not file.is_linked and is_link(file.path):
            raise OSError("it became a link after it was listed")
        read, readers = KINDS[file.kind]
        for table, batch in read(file, {table: readers[table] for table in wanted}):
            yield table, _of_part(_without_samples(batch) if file.is_outside else batch, file.part)
    except READ_ERRORS as error:
        problem = str(getattr(error, "strerror", None) or error)
        is_passing = isinstance(error, OSError) and may_pass(file.path, error)
        for table in wanted:
            if table == "segments":
                for batch in broker_files.read_unreadable_file(file, reason_of(error, "CANNOT_OPEN")):
                    yield table, _of_part(batch, file.part)
            elif is_passing:
                raise UnreadableInputError(file.path, f"cannot be opened: {problem}", "Run the audit again") from error


def _without_samples(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without samples, for a file outside the input: nothing permits keeping its content."""
    if "unreadable" not in batch.schema.names:
        return batch
    rows = [
        {**row, "unreadable": [{**one, "sample": ""} for one in row["unreadable"] or ()]} for row in batch.to_pylist()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def _of_part(batch: pa.RecordBatch, part: int | None) -> pa.RecordBatch:
    """The rows with the number of their part. In `segments`, only where the reader of the file has not set it."""
    if part is None or not _OF_PARTS & {*batch.schema.names}:
        return batch
    index = batch.num_columns - 1  # the last column of each such table
    kind, values = batch.schema.field(index).type, batch.column(index)
    own = pa.scalar(part if kind == pa.int64() else [part], kind)
    return batch.set_column(index, batch.schema.field(index), pc.coalesce(values, own))


_OF_PARTS: Final = {"part", "parts"}

#: Table -> what makes its rows. What is passed to it depends on the kind of file.
Readers = Mapping[str, Callable[..., Any]]


def _read_segment(file: CaptureFile, readers: Readers) -> TableBatches:
    """What follows the part of the segment that an earlier audit has read, if any."""
    known = known_begin(file.path, file.size, file.earlier) if file.earlier else None
    earlier, start = known or (None, AT_START)
    with files.open_buffer(file.path, bytes_per_request(file.size - start.position)) as buffer:
        read = replace(open_segment(file, buffer), start=start, earlier=earlier)
        yield from one_pass(read.blocks(), {table: rows(read) for table, rows in readers.items()})


def open_segment(file: CaptureFile, buffer: BlockBuffer) -> Segment:
    """The segment in a file, up to the size that it had when it was listed: what is read twice is the same."""
    where = (file.path, file.source, file.topic or "", file.partition or 0, file.offset)
    listed = buffer.size if file.path.endswith(COMPRESSED) else file.size
    return Segment(*where, buffer, min(listed, buffer.size), buffer.forget, listed_size=listed, part=file.part)


def _read_metadata_snapshot(file: CaptureFile, readers: Readers) -> TableBatches:
    of_file: Readers = {**readers, "metadata_log": partial(segment.metadata_rows, snapshot_offset=file.offset)}
    for table, batch in _read_segment(replace(file, offset=0), {table: of_file[table] for table in readers}):
        rows = broker_files.read_metadata_snapshot_problems(batch) if table == "segments" else (batch,)
        yield from ((table, each) for each in rows)


def _read_dump(file: CaptureFile, readers: Readers) -> TableBatches:
    from_name = None if file.topic is None or file.partition is None else (file.topic, file.partition)
    with open_text(file.path, file.size) as text:
        events = read_located(TextLines(text), file.source, from_name)
        yield from one_pass(events, {table: rows(file) for table, rows in readers.items()})


def _read_console(file: CaptureFile, readers: Readers) -> TableBatches:
    with open_text(file.path, file.size) as chunks:
        text = TextLines(chunks)
        yield from one_pass(read_console_text(text), {table: rows(file, text) for table, rows in readers.items()})


def _read_content(file: CaptureFile, readers: Readers) -> TableBatches:
    content = files.read_all(file.path, broker_files.MOST_BYTES)
    return ((table, batch) for table, rows in readers.items() for batch in rows(file, content))


def _read_no_content(file: CaptureFile, readers: Readers) -> TableBatches:
    return ((table, batch) for table, rows in readers.items() for batch in rows(file))


def _unknown_file(file: CaptureFile) -> Batches:
    sample = files.read_range(file.path, 0, SAMPLE_BYTES)
    reason = file.problem or reason_of_unknown(file.path)
    yield from broker_files.read_unreadable_file(file, reason, sample)


#: Table -> the only topic that has its records.
ONLY_IN: Final[Mapping[str, str]] = {
    "transaction_log": TRANSACTION_STATE_TOPIC,
    "committed_offsets": GROUP_METADATA_TOPIC,
    "metadata_log": CLUSTER_METADATA_TOPIC,
}
#: Kind of file -> how it is read, and the tables for which it may have rows.
KINDS: Final[Mapping[FileKind, tuple[Callable[[CaptureFile, Readers], TableBatches], Readers]]] = {
    FileKind.SEGMENT: (
        _read_segment,
        {
            "record_batches": segment.SegmentBatchRows,
            "transaction_log": segment.transaction_log_rows,
            "committed_offsets": segment.committed_offsets_rows,
            "metadata_log": segment.metadata_rows,
            "segments": segment.SegmentRow,
        },
    ),
    FileKind.METADATA_SNAPSHOT: (
        _read_metadata_snapshot,
        {"metadata_log": segment.metadata_rows, "segments": segment.SegmentRow},
    ),
    FileKind.DUMP: (
        _read_dump,
        {
            # Batch by batch: text may print a batch twice, and only single batches show that.
            "record_batches": lambda file: text_rows.DumpBatchRows(),
            "transaction_log": lambda file: text_rows.dump_transaction_log_rows(),
            "console_log": lambda file: text_rows.dump_console_rows(file.source),
            "metadata_log": lambda file: text_rows.dump_metadata_log_rows(file.path),
            "producer_snapshots": lambda file: text_rows.dump_snapshot_rows(file.path),
            "segments": lambda file: text_rows.DumpSegmentRows(file.source, file.path),
        },
    ),
    FileKind.CONSOLE: (
        _read_console,
        {
            "console_log": lambda file, text: text_rows.console_log_rows(file.source, file.partition),
            "segments": lambda file, text: text_rows.ConsoleSegmentRow(text, file.source, file.path, file.partition),
        },
    ),
    FileKind.PRODUCER_SNAPSHOT: (
        _read_content,
        {"producer_snapshots": broker_files.read_producer_snapshots, "segments": broker_files.read_snapshot_problem},
    ),
    FileKind.TRANSACTION_INDEX: (
        _read_content,
        {
            "aborted_transactions": broker_files.read_aborted_transactions,
            "segments": broker_files.read_transaction_index_problem,
        },
    ),
    FileKind.CHECKPOINT: (
        _read_content,
        {"checkpoints": broker_files.read_checkpoints, "segments": broker_files.read_checkpoint_problem},
    ),
    FileKind.LIVE_PRODUCERS: (
        _read_content,
        {
            "live_producers": broker_files.read_live_producers,
            "producer_snapshots": broker_files.read_answered_snapshots,
            "segments": broker_files.read_live_answer_problems,
        },
    ),
    FileKind.LIVE_TRANSACTIONS: (
        _read_content,
        {"live_transactions": broker_files.read_live_transactions, "segments": broker_files.read_live_answer_problems},
    ),
    FileKind.UNKNOWN: (_read_no_content, {"segments": _unknown_file}),
    FileKind.REFUSED: (
        _read_no_content,
        {"segments": lambda file: broker_files.read_unreadable_file(file, file.problem)},
    ),
}
#: Every table that files fill, with its columns.
SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    **arrow_schemas.TABLES,
    "console_log": arrow_schemas.TRANSACTION_LOG,
}
READ_TABLES: Final = tuple(SCHEMAS)


#: Number of bytes of small files per task: enough to be worth a task, and few enough to spread.
TASK_BYTES: Final = 32 << 20
#: In a large capture, a task reads more, because every Python task has a startup cost.
MOST_TASK_BYTES: Final = 256 << 20
#: A segment whose records are not decoded costs at most 1/4 of the time per byte of any other file.
HEADERS_ONLY: Final = 4
#: Number of small files per task, because opening each file takes time. In a large capture, a task reads more of them,
#: too.
TASK_FILES: Final = 256
MOST_TASK_FILES: Final = 2_048


def bundle(files: Sequence[CaptureFile], tasks: int) -> list[list[CaptureFile]]:
    """The files in lists of about equal work, in order: `tasks` lists, or fewer if these would be too small.

    If there are several lists, no list mixes topics that every audit reads in full with others.
    """
    works = [
        file.extent if file.kind is not FileKind.SEGMENT or file.topic in READ_WHOLE else file.extent // HEADERS_ONLY
        for file in files
    ]
    whole = max(sum(works), 1)
    count = -(-whole // min(max(TASK_BYTES, whole // tasks), MOST_TASK_BYTES))
    most_files = min(max(TASK_FILES, len(files) // tasks), MOST_TASK_FILES)
    bundles: list[list[CaptureFile]] = []
    done, last = 0, (-1, False)
    for file, work in zip(files, works, strict=True):
        kind = ((2 * done + work) * count // (2 * whole), count > 1 and file.topic in READ_WHOLE)
        if kind != last or len(bundles[-1]) == most_files:
            bundles.append([])
        bundles[-1].append(file)
        done, last = done + work, kind
    return bundles
