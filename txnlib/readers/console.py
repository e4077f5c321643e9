"""Console consumer text as columns: `__transaction_state` records in the columns of `arrow_schemas.py`.

The formatter prints neither partition nor offset, time or leader epoch of a record: they are null, and `position` is the
record's ordinal in the text, which is the order of offsets for all records of one transactional id.
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
    """The contents of a stream, piece by piece."""

    def __init__(self, stream: BinaryIO, chunk_size: int = CHUNK_BYTES) -> None:
        self._stream, self._chunk_size = stream, chunk_size

    @property
    def problem(self) -> UnreadableReason | None:
        """Why the text goes on beyond what could be read; None if it does not."""
        return problem_of(self._stream)

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._stream.read(self._chunk_size):
            yield chunk


def iter_chunks(stream: BinaryIO, chunk_size: int = CHUNK_BYTES) -> Chunks:
    """The contents of a stream, piece by piece."""
    return Chunks(stream, chunk_size)


def partition_in_name(path: str) -> int | None:
    """The partition of `__transaction_state` that a file is named after, as with `--partition`; None if it is not."""
    match = _NAMED_BY_PARTITION.match(PurePath(path).name)
    return int(match[1]) if match else None


def read_transaction_log(chunks: Iterable[bytes], source: str, path: str, partition: int | None = None) -> Iterator[pa.RecordBatch]:
    """The coordinator records in a console consumer's text, null where it prints no field. Columns: TRANSACTION_LOG.

    `partition`: of all records in the text, where it is known. Kafka: `TransactionLogMessageFormatter`; formats.md 2.3.
    """
    where = {"topic": TRANSACTION_STATE_TOPIC, "partition": partition, "source": source, "path": path}
    rows: list[dict[str, Any]] = []
    ordinal = 0
    for printed in read_console_text(chunks):
        if type(printed) is not ConsoleRecord:
            continue
        row = {**where, "position": ordinal, "transactional_id": printed.transactional_id, **entry_row(printed.entry)}
        # No tool prints tags that it does not know.
        rows.append({**row, "unknown_tags": None})
        ordinal += 1
        if len(rows) == arrow_schemas.ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schemas.TRANSACTION_LOG)


def read_segments(chunks: Iterable[bytes], source: str, path: str, partition: int | None = None) -> Iterator[pa.RecordBatch]:
    """One row for the text. Columns: `arrow_schemas.SEGMENTS`; offsets are null, `bytes` are those of the text.

    `batches` are records: a coordinator writes nearly every one in a batch of its own. `newest_broker_ms` is the newest
    `txnLastUpdateTimestamp`, which is taken from the coordinator's clock.
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
