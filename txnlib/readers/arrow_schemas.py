"""The Arrow schemas of what readers yield, derived from the catalogue of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from txnlib.core.schema import Array, Column, Scalar, Struct, Type, ingested

_SCALARS: Final = {
    Scalar.STRING: pa.string(),
    Scalar.INT: pa.int32(),
    Scalar.LONG: pa.int64(),
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Scalar.BINARY: pa.binary(),
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
SEGMENT_PARTS: Final = arrow_schema(ingested.SEGMENT_PARTS.fields)
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
#: The same of rows that are made record by record, as Python objects.
DECODED_ROWS_PER_BATCH: Final = 8_192
