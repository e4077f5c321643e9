"""Broker files next to a log, as Arrow batches: producer snapshots, transaction indexes, text checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

import google_crc32c
import pyarrow as pa

from txnlib.core.kafka.checkpoint_file import EPOCH_FIELDS, OFFSET_FIELDS, CheckpointEntries, read_topic_id
from txnlib.core.kafka.producer_snapshot import CRC_STARTS_AT, read_producer_snapshot, stored_crc
from txnlib.core.kafka.transaction_index import ENTRY, read_transaction_index
from txnlib.core.kafka.wire import CorruptRecordError, optional
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import CHECKPOINTS, LEADER_EPOCH, TOPIC_ID, CaptureFile, FileKind
from txnlib.readers.segment import SAMPLE_BYTES

#: Size limit for a snapshot, index or checkpoint: 1.5 million producers, 1.9 million aborted transactions, or 200 000 partitions
#: with the longest possible names. Files that brokers write are far smaller.
MOST_BYTES: Final = 64 << 20


def read_producer_snapshots(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per producer, and one row with a null producer id to record that the snapshot was read (it may be empty).

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`. A corrupt snapshot has no rows: Kafka skips it and loads an older one.
    `snapshot_problem` names the problem.
    """
    if snapshot_problem(content) is not None:
        return
    where = _place_of(file) | {"snapshot_offset": file.offset}
    rows: list[dict[str, object]] = [where]
    for producer_id, state in read_producer_snapshot(content).items():
        if len(rows) == arrow_schemas.DECODED_ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.PRODUCER_SNAPSHOTS)
            rows = []
        rows.append(
            {
                **where,
                "producer_id": producer_id,
                "producer_epoch": state.producer_epoch,
                "last_sequence": state.last_sequence,
                "last_offset": state.last_offset,
                "offset_delta": state.offset_delta,
                "last_timestamp_ms": state.last_timestamp,
                "coordinator_epoch": state.coordinator_epoch,
                "current_txn_first_offset": state.current_txn_first_offset,
            }
        )
    yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.PRODUCER_SNAPSHOTS)


def _place_of(file: CaptureFile) -> dict[str, object]:
    return {"topic": file.topic, "partition": file.partition, "source": file.source, "path": file.path}


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
    """One row per entry of a `.txnindex`, and one row with a null producer id to record that the index was read (it may be empty).

    Columns: `arrow_schemas.ABORTED_TRANSACTIONS`. A corrupt index has no rows; `transaction_index_problem` names the problem.
    """
    if transaction_index_problem(content) is not None:
        return
    where = _place_of(file) | {"segment_base_offset": file.offset}
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
    """One row of `arrow_schemas.SEGMENTS` for an index that cannot be used or ends inside an entry; none for a complete one."""
    problem = transaction_index_problem(content)
    rest = len(content) % ENTRY.size
    if problem is not None:
        yield from read_unreadable_file(file, problem, content[:SAMPLE_BYTES].hex())
    elif rest:
        reason = f"INCOMPLETE_TRANSACTION_INDEX: {rest} bytes of an entry of {ENTRY.size}"
        sample = content[-rest:][:SAMPLE_BYTES].hex()
        unreadable = {"position": len(content) - rest, "length": rest, "reason": reason, "sample": sample, "next_offset": None}
        yield segment_without_batches(file, {"bytes": len(content), "tail": "TORN", "is_decoded": True, "unreadable": [unreadable]})


def read_unreadable_file(file: CaptureFile, reason: str, sample: str, position: int = 0) -> Iterator[pa.RecordBatch]:
    """One row for a file, or a part of a file, of which nothing can be used.

    Columns: `arrow_schemas.SEGMENTS` for a file, `arrow_schemas.SEGMENT_PARTS` for a part. `position` is the byte that shows the
    problem. Only a segment, or a whole partition folder, lowers the coverage of its partition.
    """
    end = file.size
    if file.part is not None:
        position, end = file.part.start, file.part.stop or file.size
    unreadable = {"position": position, "length": end - position, "reason": reason, "sample": sample, "next_offset": None}
    is_segment = file.kind is FileKind.SEGMENT or (file.kind is FileKind.REFUSED and file.topic is not None)
    seen = {"bytes": file.size, "tail": "CORRUPT", "is_decoded": is_segment and file.offset >= 0, "unreadable": [unreadable]}
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
        yield from read_unreadable_file(file, problem, content[:SAMPLE_BYTES].hex())


def read_skipped_segment(file: CaptureFile) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.SEGMENTS` for a segment that was not read because a producer snapshot replaces it."""
    yield segment_without_batches(file, {"bytes": 0, "tail": "SKIPPED", "is_decoded": True, "unreadable": []})


def segment_without_batches(file: CaptureFile, seen: dict[str, object]) -> pa.RecordBatch:
    """The row of `segments` for a file that has no batches, with what was seen of it."""
    row = _place_of(file) | {"kind": file.kind.value, "segment_base_offset": optional(file.offset), "batches": 0} | seen
    if file.part is None:
        return pa.RecordBatch.from_pylist([row], schema=arrow_schemas.SEGMENTS)
    return pa.RecordBatch.from_pylist([row | {"part_position": file.part.start}], schema=arrow_schemas.SEGMENT_PARTS)


def read_checkpoints(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.CHECKPOINTS` per complete entry of a checkpoint file.

    `read_checkpoint_problem` names what is wrong with the other entries.
    """
    name = CHECKPOINTS[PurePosixPath(file.path).name]
    rows: list[dict[str, object]] = []
    common: dict[str, object] = {"source": file.source, "path": file.path, "name": name}
    place = {"topic": file.topic, "partition": file.partition}
    if name == TOPIC_ID:
        topic_id = None if file.topic is None else read_topic_id(content)
        rows += [] if topic_id is None else [common | place | {"topic_id": topic_id}]
    else:
        for topic, number, offset in _entries(content, name):
            if len(rows) == arrow_schemas.DECODED_ROWS_PER_BATCH:
                yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.CHECKPOINTS)
                rows = []
            if name == LEADER_EPOCH:
                rows.append(common | place | {"value": number, "start_offset": offset})
            else:
                rows.append(common | {"topic": topic, "partition": number, "value": offset, "start_offset": None})
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.CHECKPOINTS)


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
        sample = content[position : position + SAMPLE_BYTES].hex()
        yield from read_unreadable_file(file, f"CORRUPT_CHECKPOINT: {problem}", sample, position)


def _entries(content: bytes, name: str) -> CheckpointEntries:
    """The entries with two or three numbers."""
    return CheckpointEntries(content, fields=EPOCH_FIELDS if name == LEADER_EPOCH else OFFSET_FIELDS)
