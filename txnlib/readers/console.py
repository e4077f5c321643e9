"""Console consumer text as Arrow batches: the records of `__transaction_state` and one row of `segments`.

The formatter does not print partition, offset, timestamp and leader epoch of a record, so these columns are null. `position` is the
record's ordinal in the text. All records of one transactional id are printed in offset order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.text.console import ECHO_LABEL, read_console_text
from txnlib.core.text.events import ConsoleEnd, ConsoleRecord, DumpTail, Printed, Unreadable, UnreadableReason
from txnlib.core.text.lines import Lines, TextLines
from txnlib.readers import arrow_schemas
from txnlib.readers.coordinator_records import entry_row
from txnlib.readers.one_pass import RowList

_NAMED_BY_PARTITION: Final = re.compile(re.escape(TRANSACTION_STATE_TOPIC) + r"-(\d{1,9})(?!\d)")


def find_console_record(head: bytes) -> int | None:
    """The position of the first record in the beginning of a file; None if it is no console consumer text.

    A record of an id with line feeds counts, although it is ambiguous. Tombstones count only if all other text is chatter, because
    `::NULL` occurs in other texts, too.
    """
    if head.startswith(b"\0"):
        return None
    first_tombstone = None
    for printed in read_console_text(TextLines((head,))):
        if type(printed) is ConsoleRecord:
            if printed.entry is not None or head[printed.position : printed.position + 1] == b"{":
                return printed.position
            first_tombstone = printed.position if first_tombstone is None else first_tombstone
        elif type(printed) is Unreadable and printed.reason is not UnreadableReason.CUT_LINE:
            if printed.reason is UnreadableReason.AMBIGUOUS_RECORD and head.find(ECHO_LABEL, printed.position, printed.end) >= 0:
                return printed.position
            first_tombstone = None
            break
    return first_tombstone


def partition_in_name(path: str) -> int | None:
    """The partition of `__transaction_state` in a file's name, as with `--partition`; None if there is none."""
    match = _NAMED_BY_PARTITION.match(PurePath(path).name)
    return int(match[1]) if match else None


class ConsoleLogRows:
    """The coordinator records in console consumer text. Columns: `arrow_schemas.TRANSACTION_LOG`; null if not printed.

    `partition` is the partition of all records in the text, if known. Kafka: `TransactionLogMessageFormatter`.
    """

    def __init__(self, source: str, path: str, partition: int | None = None) -> None:
        self._where = {"topic": TRANSACTION_STATE_TOPIC, "partition": partition, "source": source, "path": path}
        self._rows, self._ordinal = RowList(arrow_schemas.TRANSACTION_LOG), 0

    def add(self, printed: Printed) -> Iterable[pa.RecordBatch]:
        if type(printed) is not ConsoleRecord:
            return ()
        row = {**self._where, "position": self._ordinal, "transactional_id": printed.transactional_id, **entry_row(printed.entry)}
        self._ordinal += 1
        # Tools print only the tags that they know.
        return self._rows.add([{**row, "unknown_tags": None}])

    def end(self) -> Iterable[pa.RecordBatch]:
        return self._rows.end()


class ConsoleSegmentRow:
    """One row for the text. Columns: `arrow_schemas.SEGMENTS`; offsets are null, `bytes` is the size of the text.

    `batches` counts records, because a coordinator writes nearly every record in a batch of its own. `newest_broker_ms` is the
    newest `txnLastUpdateTimestamp`, which is on the coordinator's clock. `text`: what it is read from.
    """

    def __init__(self, text: Lines, source: str, path: str, partition: int | None = None) -> None:
        self._text = text
        self._where = {"topic": TRANSACTION_STATE_TOPIC, "partition": partition, "source": source, "path": path, "kind": "console"}
        self._unreadable: list[dict[str, Any]] = []
        self._newest_ms: int | None = None
        self._records = self._size = 0
        self._tail = ""

    def add(self, printed: Printed) -> Iterable[pa.RecordBatch]:
        if type(printed) is ConsoleRecord:
            self._records += 1
            updated_ms = None if printed.entry is None else clock_ms(printed.entry.last_update_timestamp_ms)
            self._newest_ms = self._newest_ms if updated_ms is None else max(updated_ms, self._newest_ms or 0)
        elif isinstance(printed, ConsoleEnd):
            self._size, self._tail = printed.position, str(printed.tail)
        elif isinstance(printed, Unreadable):
            self._unreadable.append({**printed._asdict(), "reason": str(printed.reason)})
        return ()

    def end(self) -> Iterable[pa.RecordBatch]:
        if (problem := self._text.problem) is not None:
            self._unreadable.append({"position": self._size, "length": 0, "reason": str(problem), "sample": ""})
            self._tail = str(DumpTail.CORRUPT)
        seen = {
            "bytes": self._size,
            "batches": self._records,
            "tail": self._tail,
            "is_decoded": True,
            "newest_broker_ms": self._newest_ms,
            "unreadable": self._unreadable,
        }
        yield pa.RecordBatch.from_pylist([self._where | seen], schema=arrow_schemas.SEGMENTS)
