"""Readers by table and kind of file. The only module that opens files inside tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.errors import UnreadableInputError
from txnlib.readers import arrow_schemas, broker_files, console, dump, live_answers, segment
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.reader_state import AT_START
from txnlib.readers.segment import SAMPLE_BYTES, Segment
from txnlib.readers.storage import files
from txnlib.readers.storage.local_files import is_link
from txnlib.readers.storage.object_stores import may_pass
from txnlib.readers.text_files import READ_ERRORS, can_be_unpacked, is_compressed, open_text

Batches = Iterator[pa.RecordBatch]
#: The rows of `segments` for parts of a file.
SEGMENT_PARTS_TABLE: Final = "segment_parts"
#: The rows of `record_batches`, with runs of batches. Text is read batch by batch: it may print a batch twice, and only single
#: batches show that.
BATCH_RUNS_TABLE: Final = "batch_runs"
#: Rows, or bytes, of small files that are enough for an Arrow batch.
JOINED_ROWS: Final = 10_000
JOINED_BYTES: Final = 4 << 20


def may_hold(table: str, file: CaptureFile) -> bool:
    """Whether a file may have rows of a table, by its kind and, for a segment, by its topic."""
    if (table, file.kind) not in READERS:
        return False
    return file.kind is not FileKind.SEGMENT or table not in ONLY_IN or file.topic == ONLY_IN[table]


def read_files(table: str, files: Iterable[CaptureFile]) -> Batches:
    """Yields Arrow batches of `arrow_schemas.TABLES[table]` from several files, the rows of small files together.

    Spark handles each batch separately, which takes longer than reading a small file. Raises UnreadableInputError as `read_table`
    does.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in (batch for file in files for batch in read_table(table, file)):
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= JOINED_ROWS or size >= JOINED_BYTES:
            yield from _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


def read_table(table: str, file: CaptureFile) -> Batches:
    """Yields Arrow batches of `arrow_schemas.TABLES[table]` from one file; none if the file has no rows of that table.

    A file that cannot be opened becomes one row of `segments`, never an exception. Rows read before the file ended early are kept.

    Raises UnreadableInputError if a store fails in the middle of a file, or if it temporarily refuses a file that it may have
    delivered for `segments`: otherwise rows would be missing without notice.
    """
    if not may_hold(table, file):
        return
    try:
        if not file.is_linked and is_link(file.path):
            raise OSError("it became a link after it was listed")
        batches = READERS[table, file.kind](file)
        yield from map(_without_samples, batches) if file.is_outside else batches
    except READ_ERRORS as error:
        problem = str(getattr(error, "strerror", None) or error)
        if table in ("segments", SEGMENT_PARTS_TABLE):
            yield from broker_files.read_unreadable_file(file, f"CANNOT_OPEN: {problem}", "")
        elif isinstance(error, OSError) and may_pass(file.path, error):
            raise UnreadableInputError(file.path, f"cannot be opened: {problem}", "Run the audit again") from error


def _without_samples(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without samples, for a file outside the input: nothing permits keeping its content."""
    if "unreadable" not in batch.schema.names:
        return batch
    rows = [{**row, "unreadable": [{**one, "sample": ""} for one in row["unreadable"] or ()]} for row in batch.to_pylist()]
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def _from_segment(read: Callable[[Segment], Batches], file: CaptureFile) -> Batches:
    with files.open_buffer(file.path) as opened:
        yield from read(open_segment(file, opened))


def open_segment(file: CaptureFile, opened: files.OpenFile) -> Segment:
    """The segment in a file, or the part of it that `file.part` gives."""
    topic, partition, part = file.topic or "", file.partition or 0, file.part
    start = part.state if part is not None and part.state is not None else AT_START
    until = None if part is None else part.stop
    where = (file.path, file.source, topic, partition, file.offset)
    return Segment(*where, opened.buffer, opened.size, opened.forget, start, until, file.size)


def _from_dump(read: Callable[..., Batches], file: CaptureFile) -> Batches:
    from_name = None if file.topic is None or file.partition is None else (file.topic, file.partition)
    with open_text(file.path, file.size) as stream:
        yield from read(dump.iter_lines(stream), file.source, file.path, topic_partition=from_name)


def _from_console(read: Callable[..., Batches], file: CaptureFile) -> Batches:
    with open_text(file.path, file.size) as stream:
        yield from read(console.iter_chunks(stream), file.source, file.path, file.partition)


def _from_metadata_snapshot(file: CaptureFile) -> Batches:
    yield from _from_segment(partial(segment.read_metadata_log, snapshot_offset=file.offset), replace(file, offset=0))


def _metadata_snapshot_problems(file: CaptureFile) -> Batches:
    yield from broker_files.read_metadata_snapshot_problems(_from_segment(segment.read_segments, replace(file, offset=0)))


def _unknown_file(file: CaptureFile) -> Batches:
    sample = files.read_head(file.path, SAMPLE_BYTES).hex()
    is_packed = is_compressed(file.path) and not can_be_unpacked(file.path)
    yield from broker_files.read_unreadable_file(file, "CANNOT_UNPACK" if is_packed else "NOT_A_KAFKA_FILE", sample)


def _refused(file: CaptureFile) -> Batches:
    yield from broker_files.read_unreadable_file(file, file.problem, "")


def _corrupt(problem_of: Callable[[bytes], str | None], file: CaptureFile) -> Batches:
    content = files.read_all(file.path, broker_files.MOST_BYTES)
    problem = problem_of(content)
    if problem is not None:
        yield from broker_files.read_unreadable_file(file, problem, content[:SAMPLE_BYTES].hex())


#: Table -> the only topic that has its records.
ONLY_IN: Final[Mapping[str, str]] = {
    "transaction_log": TRANSACTION_STATE_TOPIC,
    "committed_offsets": GROUP_METADATA_TOPIC,
    "metadata_log": CLUSTER_METADATA_TOPIC,
}
#: (table, kind of file) -> reader. Files of any other kind have no rows of that table.
READERS: Final[Mapping[tuple[str, FileKind], Callable[[CaptureFile], Batches]]] = {
    ("record_batches", FileKind.SEGMENT): partial(_from_segment, segment.read_record_batches),
    ("record_batches", FileKind.DUMP): partial(_from_dump, dump.read_record_batches),
    (BATCH_RUNS_TABLE, FileKind.SEGMENT): partial(_from_segment, partial(segment.read_record_batches, has_runs=True)),
    (BATCH_RUNS_TABLE, FileKind.DUMP): partial(_from_dump, dump.read_record_batches),
    ("transaction_log", FileKind.SEGMENT): partial(_from_segment, segment.read_transaction_log),
    ("transaction_log", FileKind.DUMP): partial(_from_dump, dump.read_transaction_log),
    ("committed_offsets", FileKind.SEGMENT): partial(_from_segment, segment.read_committed_offsets),
    ("metadata_log", FileKind.SEGMENT): partial(_from_segment, segment.read_metadata_log),
    ("metadata_log", FileKind.METADATA_SNAPSHOT): _from_metadata_snapshot,
    ("metadata_log", FileKind.DUMP): partial(_from_dump, dump.read_metadata_log),
    ("segments", FileKind.METADATA_SNAPSHOT): _metadata_snapshot_problems,
    ("console_log", FileKind.CONSOLE): partial(_from_console, console.read_transaction_log),
    ("segments", FileKind.SEGMENT): partial(_from_segment, segment.read_segments),
    ("segments", FileKind.DUMP): partial(_from_dump, dump.read_segments),
    (SEGMENT_PARTS_TABLE, FileKind.SEGMENT): partial(
        _from_segment, partial(segment.read_segments, schema=arrow_schemas.SEGMENT_PARTS)
    ),
    ("segments", FileKind.PRODUCER_SNAPSHOT): partial(_corrupt, broker_files.snapshot_problem),
    ("segments", FileKind.TRANSACTION_INDEX): broker_files.read_transaction_index_problem,
    ("segments", FileKind.CONSOLE): partial(_from_console, console.read_segments),
    ("segments", FileKind.CHECKPOINT): broker_files.read_checkpoint_problem,
    ("segments", FileKind.UNKNOWN): _unknown_file,
    ("segments", FileKind.REFUSED): _refused,
    ("segments", FileKind.SKIPPED_SEGMENT): broker_files.read_skipped_segment,
    ("producer_snapshots", FileKind.PRODUCER_SNAPSHOT): broker_files.read_producer_snapshots,
    ("producer_snapshots", FileKind.DUMP): partial(_from_dump, dump.read_producer_snapshots),
    ("producer_snapshots", FileKind.LIVE_PRODUCERS): live_answers.read_answered_snapshots,
    ("aborted_transactions", FileKind.TRANSACTION_INDEX): broker_files.read_aborted_transactions,
    ("checkpoints", FileKind.CHECKPOINT): broker_files.read_checkpoints,
    ("live_producers", FileKind.LIVE_PRODUCERS): live_answers.read_live_producers,
    ("live_transactions", FileKind.LIVE_TRANSACTIONS): live_answers.read_live_transactions,
    ("segments", FileKind.LIVE_PRODUCERS): live_answers.read_live_answer_problems,
    ("segments", FileKind.LIVE_TRANSACTIONS): live_answers.read_live_answer_problems,
}
