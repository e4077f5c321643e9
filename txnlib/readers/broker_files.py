"""Small files next to a log, as Arrow batches: snapshots, transaction indexes, checkpoints, and what brokers
answered."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Annotated, Final

import google_crc32c
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from txnlib.core.copies import UNOPENED
from txnlib.core.coverage.unread import why_not_opened
from txnlib.core.kafka.constants import MAX_INT16, MAX_INT32, MAX_INT64
from txnlib.core.kafka.log_dir_files import (
    CRC_STARTS_AT,
    EPOCH_FIELDS,
    INDEX_ENTRY,
    OFFSET_FIELDS,
    CheckpointEntries,
    read_producer_snapshot,
    read_topic_id,
    read_transaction_index,
    stored_crc,
)
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.wire import CorruptRecordError, optional
from txnlib.readers import arrow_schemas
from txnlib.readers.arrow_schemas import SAMPLE_BYTES, in_batches, place_of, unreadable
from txnlib.readers.capture import CHECKPOINTS, CLEANER_OFFSET, LEADER_EPOCH, TOPIC_ID, CaptureFile, FileKind

#: Size limit for a snapshot, index or checkpoint: 1.5 million producers, 1.9 million aborted transactions, or 200 000
#: partitions with the longest possible names. Files that brokers write are far smaller.
MOST_BYTES: Final = 64 << 20

#: Columns of `producer_snapshots` with the name of a field of the state.
_OF_STATE: Final = tuple({field.name for field in fields(ProducerState)} & {*arrow_schemas.PRODUCER_SNAPSHOTS.names})


def read_producer_snapshots(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per producer, and one row with a null producer id to record that the snapshot was read (it may be empty).

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`. A corrupt snapshot has no rows: Kafka skips it and loads an older one.
    `snapshot_problem` names the problem.
    """
    if snapshot_problem(content) is not None:
        return
    where = place_of(file) | {"snapshot_offset": file.offset}
    producers = (
        {**where, "producer_id": producer_id, "last_timestamp_ms": state.last_timestamp}
        | {name: getattr(state, name) for name in _OF_STATE}
        for producer_id, state in read_producer_snapshot(content).items()
    )
    yield from in_batches(chain([where], producers), arrow_schemas.PRODUCER_SNAPSHOTS)


def snapshot_problem(content: bytes) -> str | None:
    """Why a snapshot cannot be used; None if it can."""
    try:
        stored = stored_crc(content)
        read_producer_snapshot(content)
    except CorruptRecordError as error:
        return f"CORRUPT_SNAPSHOT: {error}"
    computed = google_crc32c.value(content[CRC_STARTS_AT:])
    return None if computed == stored else f"CORRUPT_SNAPSHOT: CRC is {computed}, {stored} is stored"


def read_aborted_transactions(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per entry of a `.txnindex`, and one row with a null producer id to record that the index was read (it may
    be empty).

    Columns: `arrow_schemas.ABORTED_TRANSACTIONS`. A corrupt index has no rows; `transaction_index_problem` names the
    problem.
    """
    if transaction_index_problem(content) is not None:
        return
    where = place_of(file) | {"segment_base_offset": file.offset}
    rows = [where, *[where | entry._asdict() for entry in read_transaction_index(content)]]
    yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.ABORTED_TRANSACTIONS)


def transaction_index_problem(content: bytes) -> str | None:
    """Why a transaction index cannot be used; None if it can."""
    try:
        read_transaction_index(content)
    except CorruptRecordError as error:
        return f"CORRUPT_TRANSACTION_INDEX: {error}"
    return None


def read_transaction_index_problem(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.SEGMENTS` for an index that cannot be used or ends inside an entry; none for a complete
    one."""
    problem = transaction_index_problem(content)
    rest = len(content) % INDEX_ENTRY.size
    if problem is not None:
        yield from read_unreadable_file(file, problem, content)
    elif rest:
        reason = f"INCOMPLETE_TRANSACTION_INDEX: {rest} bytes of an entry of {INDEX_ENTRY.size}"
        lost = unreadable(len(content) - rest, rest, reason, content[-rest:])
        yield segment_without_batches(
            file, {"bytes": len(content), "tail": "TORN", "is_decoded": True, "unreadable": [lost]}
        )


def read_unreadable_file(
    file: CaptureFile, reason: str, sample: bytes = b"", position: int = 0
) -> Iterator[pa.RecordBatch]:
    """One row for a file of which nothing, or nothing more, can be used.

    Columns: `arrow_schemas.SEGMENTS`. `position` is the byte that shows the problem. Only a segment, or a whole
    partition folder, lowers the coverage of its partition.
    """
    is_segment = file.kind is FileKind.SEGMENT or (file.kind is FileKind.REFUSED and file.topic is not None)
    lost = [unreadable(position, file.size - position, reason, sample)]
    tail = "CORRUPT" if why_not_opened(reason) is None else UNOPENED
    seen = {"bytes": file.size, "tail": tail, "is_decoded": is_segment and file.offset >= 0, "unreadable": lost}
    yield segment_without_batches(file, {**seen, **({"kind": "raw"} if is_segment else {})})


def read_metadata_snapshot_problems(read: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The row of `segments` for a snapshot of `__cluster_metadata` if something in it is unreadable.

    `read`: the row of `segment.SegmentRow`. The kind is the file's, so that it is no segment of the log.
    """
    for row in read.to_pylist():
        if row["unreadable"]:
            kind = {"kind": FileKind.METADATA_SNAPSHOT.value, "segment_base_offset": None, "landmarks": None}
            yield pa.RecordBatch.from_pylist([row | kind], schema=arrow_schemas.SEGMENTS)


def read_snapshot_problem(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.SEGMENTS` for a producer snapshot that cannot be used; none for any other."""
    problem = snapshot_problem(content)
    if problem is not None:
        yield from read_unreadable_file(file, problem, content)


def segment_without_batches(file: CaptureFile, seen: dict[str, object]) -> pa.RecordBatch:
    """The row of `segments` for a file that has no batches, with what was seen of it."""
    row = place_of(file) | {"kind": file.kind.value, "segment_base_offset": optional(file.offset), "batches": 0} | seen
    return pa.RecordBatch.from_pylist([row], schema=arrow_schemas.SEGMENTS)


def read_checkpoints(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.CHECKPOINTS` per complete entry of a checkpoint file.

    And one without a partition for each file of the cleaner, which is empty until it has cleaned a log.
    `read_checkpoint_problem` names what is wrong with the other entries.
    """
    name = CHECKPOINTS[PurePosixPath(file.path).name]
    common: dict[str, object] = {"source": file.source, "path": file.path, "name": name}
    place = {"topic": file.topic, "partition": file.partition}
    rows: Iterable[dict[str, object]]
    if name == TOPIC_ID:
        topic_id = None if file.topic is None else read_topic_id(content)
        rows = () if topic_id is None else (common | place | {"topic_id": topic_id},)
    elif name == LEADER_EPOCH:
        rows = (
            common | place | {"value": epoch, "start_offset": offset} for _, epoch, offset in _entries(content, name)
        )
    else:
        rows = (
            common | {"topic": topic, "partition": number, "value": value}
            for topic, number, value in _entries(content, name)
        )
    if name == CLEANER_OFFSET:
        rows = chain([common], rows)
    return in_batches(rows, arrow_schemas.CHECKPOINTS)


def read_checkpoint_problem(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.SEGMENTS` for a truncated or corrupt checkpoint file; none for a complete one."""
    name = CHECKPOINTS[PurePosixPath(file.path).name]
    if name == TOPIC_ID:
        problem, position = (None if read_topic_id(content) is not None else "no topic id of version 0"), 0
    else:
        entries = _entries(content, name)
        for _entry in entries:
            pass
        problem, position = entries.problem, entries.position
    if problem is not None:
        yield from read_unreadable_file(file, f"CORRUPT_CHECKPOINT: {problem}", content[position:], position)


def _entries(content: bytes, name: str) -> CheckpointEntries:
    """The entries with two or three numbers."""
    # Line by line, because a file may have millions.
    return CheckpointEntries(io.BytesIO(content), fields=EPOCH_FIELDS if name == LEADER_EPOCH else OFFSET_FIELDS)


# ---- What brokers answered when a capture was taken over the wire


#: Number of bad lines of a file that are quarantined one by one; the rest of the file is one stretch.
_BAD_LINES: Final = 100

_Number = Annotated[int, Field(strict=True, ge=0, le=MAX_INT32)]
_Epoch = Annotated[int, Field(strict=True, ge=-1, le=MAX_INT16)]
_Offset = Annotated[int, Field(strict=True, ge=0, le=MAX_INT64)]
_Sequence = Annotated[int, Field(strict=True, ge=0, le=MAX_INT32)]
_Time = Annotated[int, Field(strict=True, ge=-MAX_INT64, le=MAX_INT64)]
_ProducerId = Annotated[int, Field(strict=True, ge=-1, le=MAX_INT64)]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Producer(_Answer):
    producer_id: _ProducerId
    producer_epoch: _Epoch
    coordinator_epoch: _Sequence | None = None
    last_sequence: _Sequence | None = None
    last_timestamp_ms: _Time | None = None
    current_transaction_start_offset: _Offset | None


class _Producers(_Answer):
    topic: str
    partition: _Number
    #: The offset that the leader's log had reached, at least, when it was asked.
    high_watermark: _Offset
    producers: list[_Producer]


class _Transaction(_Answer):
    transactional_id: str
    coordinator_partition: _Number
    producer_id: _ProducerId
    producer_epoch: _Epoch
    state: str
    #: The offset that the coordinator's log had reached, at least, when it was asked; None if it was not captured
    #: before.
    log_end_offset: _Offset | None


_KINDS: Final[dict[FileKind, type[_Producers | _Transaction]]] = {
    FileKind.LIVE_PRODUCERS: _Producers,
    FileKind.LIVE_TRANSACTIONS: _Transaction,
}


def read_live_producers(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per producer, and one with a null producer id per partition whose leader answered.

    Columns: `arrow_schemas.LIVE_PRODUCERS`.
    """
    answers = (answer for _, _, answer in _lines(file, content) if isinstance(answer, _Producers))
    rows = (
        where | producer
        for answer in answers
        for where in (answer.model_dump(exclude={"producers"}),)
        for producer in ({}, *(each.model_dump() for each in answer.producers))
    )
    return in_batches(rows, arrow_schemas.LIVE_PRODUCERS)


def read_answered_snapshots(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per producer with an open transaction, as a snapshot of the state at or above the answered high
    watermark.

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`.
    """
    rows = [
        {
            **place_of(file),
            "topic": answer.topic,
            "partition": answer.partition,
            "snapshot_offset": answer.high_watermark,
            "is_answer": True,
            "current_txn_first_offset": producer.current_transaction_start_offset,
            **producer.model_dump(exclude={"current_transaction_start_offset"}),
        }
        for _, _, answer in _lines(file, content)
        if isinstance(answer, _Producers)
        for producer in answer.producers
        if producer.current_transaction_start_offset is not None
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.PRODUCER_SNAPSHOTS)


def read_live_transactions(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per transactional id. Columns: `arrow_schemas.LIVE_TRANSACTIONS`."""
    rows = (answer.model_dump() for _, _, answer in _lines(file, content) if answer is not None)
    return in_batches(rows, arrow_schemas.LIVE_TRANSACTIONS)


def read_live_answer_problems(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.SEGMENTS` if a line is no answer; none for a sound file."""
    lines = ((position, length) for position, length, answer in _lines(file, content) if answer is None)
    bad = list(islice(lines, _BAD_LINES + 1))
    if len(bad) > _BAD_LINES:
        position = bad[_BAD_LINES - 1][0]
        bad[_BAD_LINES - 1 :] = [(position, len(content) - position)]
    if bad:
        lost = [
            unreadable(at, length, "NOT_A_LIVE_ANSWER", content[at : at + min(length, SAMPLE_BYTES)])
            for at, length in bad
        ]
        yield segment_without_batches(
            file, {"bytes": len(content), "tail": "CORRUPT", "is_decoded": False, "unreadable": lost}
        )


def _lines(file: CaptureFile, content: bytes) -> Iterator[tuple[int, int, _Producers | _Transaction | None]]:
    """Position, length and answer of each line; None for a line that is no answer. Keeps one: there may be millions."""
    position = 0
    for line in io.BytesIO(content):
        try:
            answer = None if line.isspace() else _KINDS[file.kind].model_validate_json(line)
        except ValidationError:
            answer = None
        yield position, len(line), answer
        position += len(line)
