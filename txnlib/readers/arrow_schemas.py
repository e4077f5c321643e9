"""Arrow schemas of what readers yield, and rows that fill them.

The schemas are derived from the catalogue of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa

from txnlib.core.schema import Array, Column, Scalar, Struct, Type, ingested

_SCALARS: Final = {
    Scalar.STRING: pa.string(),
    Scalar.INT: pa.int32(),
    Scalar.LONG: pa.int64(),
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


def _type(kind: Type) -> Any:
    match kind:
        case Scalar():
            return _SCALARS[kind]
        case Array(element):
            return pa.list_(_type(element))
        case Struct(fields):
            return pa.struct(_fields(fields))


def _fields(columns: Iterable[Column]) -> list[Any]:
    return [pa.field(column.name, _type(column.type), column.nullable) for column in columns]


def arrow_schema(columns: Iterable[Column]) -> Any:
    """The columns without their comments."""
    return pa.schema(_fields(columns))


def commented_schema(columns: Iterable[Column]) -> Any:
    """The columns with their comments."""
    return pa.schema([_fields([column])[0].with_metadata({"comment": column.comment}) for column in columns])


RECORD_BATCHES: Final = arrow_schema(ingested.RECORD_BATCHES.columns)
TRANSACTION_LOG: Final = arrow_schema(ingested.TRANSACTION_LOG.columns)
METADATA_LOG: Final = arrow_schema(ingested.METADATA_LOG.columns)
COMMITTED_OFFSETS: Final = arrow_schema(ingested.COMMITTED_OFFSETS.columns)
#: One row per segment of a capture, raw or dumped, whether or not anything in it could be read.
SEGMENTS: Final = arrow_schema(ingested.SEGMENTS.columns)
PRODUCER_SNAPSHOTS: Final = arrow_schema(ingested.PRODUCER_SNAPSHOTS.columns)
ABORTED_TRANSACTIONS: Final = arrow_schema(ingested.ABORTED_TRANSACTIONS.columns)
CHECKPOINTS: Final = arrow_schema(ingested.CHECKPOINTS.columns)
LIVE_PRODUCERS: Final = arrow_schema(ingested.LIVE_PRODUCERS.columns)
LIVE_TRANSACTIONS: Final = arrow_schema(ingested.LIVE_TRANSACTIONS.columns)

TABLES: Final[Mapping[str, Any]] = {
    "record_batches": RECORD_BATCHES,
    "transaction_log": TRANSACTION_LOG,
    "metadata_log": METADATA_LOG,
    "committed_offsets": COMMITTED_OFFSETS,
    "segments": SEGMENTS,
    "producer_snapshots": PRODUCER_SNAPSHOTS,
    "aborted_transactions": ABORTED_TRANSACTIONS,
    "checkpoints": CHECKPOINTS,
    "live_producers": LIVE_PRODUCERS,
    "live_transactions": LIVE_TRANSACTIONS,
}

#: Rows per Arrow batch handed to Spark: enough to amortise the hand-over, little enough to keep a task small.
ROWS_PER_BATCH: Final = 65_536
#: Rows per Arrow batch, if rows are made record by record, as Python objects.
DECODED_ROWS_PER_BATCH: Final = 8_192


#: Number of bytes of an unreadable range that are shown.
SAMPLE_BYTES: Final = 32


def place_of(file: Any) -> dict[str, Any]:
    """The columns that say where a row of a file is from."""
    return {"topic": file.topic, "partition": file.partition, "source": file.source, "path": file.path}


def unreadable(
    position: int, length: int, reason: str, sample: bytes, next_offset: int | None = None
) -> dict[str, Any]:
    """An unreadable range in a row of `SEGMENTS`, with the first bytes of `sample`."""
    shown = sample[:SAMPLE_BYTES].hex()
    return {"position": position, "length": length, "reason": reason, "sample": shown, "next_offset": next_offset}


def in_batches(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields rows that are made as Python objects in Arrow batches of bounded size."""
    rest = iter(rows)
    while some := list(islice(rest, DECODED_ROWS_PER_BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema=schema)


# ---- One pass through a file, whose events fill several tables at once


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


class RowList(Generic[Event]):
    """Rows as dictionaries, until they fill an Arrow batch of `most` rows.

    `rows_of`: the rows that an event gives. `joins`: adds a row to the last one, if the two are one row.
    """

    def __init__(
        self,
        schema: pa.Schema,
        rows_of: Callable[[Event], Iterable[dict[str, Any]]],
        most: int | None = None,
        joins: Callable[[dict[str, Any], dict[str, Any]], bool] = lambda last, row: False,
    ) -> None:
        self._schema, self._rows_of, self._joins = schema, rows_of, joins
        self._most = ROWS_PER_BATCH if most is None else most
        self._rows: list[dict[str, Any]] = []

    def add(self, event: Event) -> Iterable[pa.RecordBatch]:
        rows = self._rows_of(event)
        return self._full_batches(rows) if rows else ()

    def _full_batches(self, rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        for row in rows:
            if not (self._rows and self._joins(self._rows[-1], row)):
                self._rows.append(row)
            if len(self._rows) >= self._most:
                yield from self.end()

    def end(self) -> Iterable[pa.RecordBatch]:
        taken, self._rows = self._rows, []
        return (pa.RecordBatch.from_pylist(taken, schema=self._schema),) if taken else ()
