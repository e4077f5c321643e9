"""What brokers answered when a capture was taken over the wire: one JSON object per line.

`wire_capture.capture` writes these files. A line that is not such an answer is quarantined, and the others are used.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from txnlib.core.kafka.constants import MAX_INT16, MAX_INT32, MAX_INT64
from txnlib.readers import arrow_schemas
from txnlib.readers.broker_files import segment_without_batches
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.segment import SAMPLE_BYTES

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
    #: When the leader was asked, its log reached at least up to here.
    high_watermark: _Offset
    producers: list[_Producer]


class _Transaction(_Answer):
    transactional_id: str
    coordinator_partition: _Number
    producer_id: _ProducerId
    producer_epoch: _Epoch
    state: str
    #: When the coordinator was asked, its log reached at least up to here; None if it was not captured before.
    log_end_offset: _Offset | None


_KINDS: Final[dict[FileKind, type[_Producers | _Transaction]]] = {
    FileKind.LIVE_PRODUCERS: _Producers,
    FileKind.LIVE_TRANSACTIONS: _Transaction,
}


def read_live_producers(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per producer, and one with a null producer id per partition whose leader answered.

    Columns: `arrow_schemas.LIVE_PRODUCERS`.
    """
    rows: list[dict[str, Any]] = []
    for _, _, answer in _lines(file, content):
        if isinstance(answer, _Producers):
            where = answer.model_dump(exclude={"producers"})
            rows += [where, *(where | producer.model_dump() for producer in answer.producers)]
        if len(rows) >= arrow_schemas.DECODED_ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.LIVE_PRODUCERS)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.LIVE_PRODUCERS)


def read_answered_snapshots(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row per producer with an open transaction, as a snapshot of the state at or above the answered high watermark.

    Columns: `arrow_schemas.PRODUCER_SNAPSHOTS`.
    """
    rows = [
        {
            "topic": answer.topic,
            "partition": answer.partition,
            "source": file.source,
            "path": file.path,
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
    lines = _lines(file, content)
    rows = (answer.model_dump() for _, _, answer in lines if answer is not None)
    while some := list(islice(rows, arrow_schemas.DECODED_ROWS_PER_BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema=arrow_schemas.LIVE_TRANSACTIONS)


def read_live_answer_problems(file: CaptureFile, content: bytes) -> Iterator[pa.RecordBatch]:
    """One row of `arrow_schemas.SEGMENTS` if a line is no answer; none for a sound file."""
    lines = ((position, length) for position, length, answer in _lines(file, content) if answer is None)
    bad = list(islice(lines, _BAD_LINES + 1))
    if len(bad) > _BAD_LINES:
        position = bad[_BAD_LINES - 1][0]
        bad[_BAD_LINES - 1 :] = [(position, len(content) - position)]
    if bad:
        unreadable = [
            {
                "position": position,
                "length": length,
                "reason": "NOT_A_LIVE_ANSWER",
                "sample": content[position : position + min(length, SAMPLE_BYTES)].hex(),
                "next_offset": None,
            }
            for position, length in bad
        ]
        seen: dict[str, object] = {"bytes": len(content), "tail": "CORRUPT", "is_decoded": False, "unreadable": unreadable}
        yield segment_without_batches(file, seen)


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
