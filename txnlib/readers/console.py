"""Console consumer text as Arrow batches: the records of `__transaction_state` and one row of `segments`.

The formatter does not print partition, offset, timestamp and leader epoch of a record, so these columns are null. `position` is the
record's ordinal in the text. All records of one transactional id are printed in offset order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

import pyarrow as pa

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.text.console_events import ConsoleEnd, ConsoleRecord
from txnlib.core.text.console_reader import read_console_text
from txnlib.core.text.dump_events import Unreadable
from txnlib.core.text.tool_messages import Tail, UnreadableReason
from txnlib.readers import arrow_schemas
from txnlib.readers.coordinator_records import entry_row
from txnlib.readers.text_files import problem_of
from txnlib.readers.text_lines import CHUNK_BYTES

_NAMED_BY_PARTITION: Final = re.compile(re.escape(TRANSACTION_STATE_TOPIC) + r"-(\d{1,9})(?!\d)")


class Chunks:
    """The content of a stream in chunks."""

    def __init__(self, stream: BinaryIO, chunk_size: int = CHUNK_BYTES) -> None:
        self._stream, self._chunk_size = stream, chunk_size

    @property
    def problem(self) -> UnreadableReason | None:
        """Why the text is incomplete; None if it is complete."""
        return problem_of(self._stream)

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._stream.read(self._chunk_size):
            yield chunk


def iter_chunks(stream: BinaryIO, chunk_size: int = CHUNK_BYTES) -> Chunks:
    """The content of a stream in chunks of `chunk_size` bytes."""
    return Chunks(stream, chunk_size)


def partition_in_name(path: str) -> int | None:
    """The partition of `__transaction_state` in a file's name, as with `--partition`; None if there is none."""
    match = _NAMED_BY_PARTITION.match(PurePath(path).name)
    return int(match[1]) if match else None


def read_transaction_log(chunks: Iterable[bytes], source: str, path: str, partition: int | None = None) -> Iterator[pa.RecordBatch]:
    """The coordinator records in console consumer text. Columns: `arrow_schemas.TRANSACTION_LOG`; null if not printed.

    `partition` is the partition of all records in the text, if known. Kafka: `TransactionLogMessageFormatter`; formats.md 2.3.
    """
    where = {"topic": TRANSACTION_STATE_TOPIC, "partition": partition, "source": source, "path": path}
    rows: list[dict[str, Any]] = []
    ordinal = 0
    for printed in read_console_text(chunks):
        if type(printed) is not ConsoleRecord:
            continue
        row = {**where, "position": ordinal, "transactional_id": printed.transactional_id, **entry_row(printed.entry)}
        # Tools print only the tags that they know.
        rows.append({**row, "unknown_tags": None})
        ordinal += 1
        if len(rows) == arrow_schemas.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG)


def read_segments(chunks: Iterable[bytes], source: str, path: str, partition: int | None = None) -> Iterator[pa.RecordBatch]:
    """One row for the text. Columns: `arrow_schemas.SEGMENTS`; offsets are null, `bytes` is the size of the text.

    `batches` counts records, because a coordinator writes nearly every record in a batch of its own. `newest_broker_ms` is the
    newest `txnLastUpdateTimestamp`, which is on the coordinator's clock.
    """
    unreadable: list[dict[str, Any]] = []
    newest_ms: int | None = None
    records = size = 0
    tail = ""
    for printed in read_console_text(chunks):
        if type(printed) is ConsoleRecord:
            records += 1
            updated_ms = None if printed.entry is None else clock_ms(printed.entry.last_update_timestamp_ms)
            newest_ms = newest_ms if updated_ms is None else max(updated_ms, newest_ms or 0)
        elif isinstance(printed, ConsoleEnd):
            size, tail = printed.position, str(printed.tail)
        elif isinstance(printed, Unreadable):
            unreadable.append({**printed._asdict(), "reason": str(printed.reason)})
    if isinstance(chunks, Chunks) and (problem := chunks.problem) is not None:
        unreadable.append({"position": size, "length": 0, "reason": str(problem), "sample": ""})
        tail = str(Tail.CORRUPT)
    row = {
        "topic": TRANSACTION_STATE_TOPIC,
        "partition": partition,
        "source": source,
        "path": path,
        "kind": "console",
        "bytes": size,
        "batches": records,
        "tail": tail,
        "is_decoded": True,
        "newest_broker_ms": newest_ms,
        "unreadable": unreadable,
    }
    yield pa.RecordBatch.from_pylist([row], schema=arrow_schemas.SEGMENTS)
