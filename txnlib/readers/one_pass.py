"""One pass through a file, whose events fill several tables at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from txnlib.readers import arrow_schemas

Event = TypeVar("Event", contravariant=True)
#: Arrow batches, each with the table that it belongs to.
TableBatches = Iterator[tuple[str, pa.RecordBatch]]


class TableRows(Protocol[Event]):
    """The rows that the events of a file give one table. Each call returns the Arrow batches that are full, if any."""

    def add(self, event: Event, /) -> Iterable[pa.RecordBatch]:
        """Adds what the table takes from an event."""
        ...

    def end(self) -> Iterable[pa.RecordBatch]:
        """Returns the rest, after the last event."""
        ...


def one_pass(events: Iterable[Event], tables: Mapping[str, TableRows[Event]]) -> TableBatches:
    """Yields the rows of all tables while it passes through the events once."""
    for event in events:
        for table, rows in tables.items():
            for batch in rows.add(event):
                yield table, batch
    for table, rows in tables.items():
        for batch in rows.end():
            yield table, batch


def only(events: Iterable[Event], rows: TableRows[Event]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a single table."""
    return (batch for _, batch in one_pass(events, {"": rows}))


class RowList:
    """Rows as dictionaries, until they fill an Arrow batch of `most` rows."""

    def __init__(self, schema: pa.Schema, most: int | None = None) -> None:
        self._schema, self._most = schema, arrow_schemas.ROWS_PER_BATCH if most is None else most
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Adds rows, and yields those that fill a batch."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) >= self._most:
                yield from self.end()

    def end(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that are left."""
        if self._rows:
            yield pa.RecordBatch.from_pylist(self._rows, schema=self._schema)
            self._rows = []
