"""The rows of one table of a file, or of an open segment."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from txnlib.core.batch_runs import single_batches
from txnlib.readers.arrow_schemas import one_pass
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.fingerprints import ReadSegment
from txnlib.readers.segment import (
    Segment,
    SegmentBatchRows,
    SegmentRow,
    committed_offsets_rows,
    metadata_rows,
    transaction_log_rows,
)
from txnlib.readers.table_readers import KINDS, read_table


def in_batches(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """The single batches of rows of `record_batches`, in order; the rows of any other table."""
    if "run_batches" not in rows.schema.names:
        return rows.to_pylist()
    return sorted((batch for row in rows.to_pylist() for batch in single_batches(row)), key=lambda row: row["position"])


def rows_of_file(table: str, file: CaptureFile) -> list[dict[str, Any]]:
    """The rows of a table; of `record_batches`, the single batches."""
    return [row for rows in read_table(table, file) for row in in_batches(rows)]


def read_segment(row: dict[str, Any]) -> ReadSegment:
    """What a later audit knows of a segment, by its row of `segments`."""
    return ReadSegment(**{name: {"run_id": "eu-1", **row}[name] for name in ReadSegment.__dataclass_fields__})


def _read(rows: Callable[..., Any], segment: Segment) -> Iterator[pa.RecordBatch]:
    return (batch for _, batch in one_pass(segment.blocks(), {"": rows(segment)}))


def read_rows(table: str, segment: Segment) -> list[dict[str, Any]]:
    """The rows of a table, by its name; of `record_batches`, the single batches."""
    return [row for rows in _read(KINDS[FileKind.SEGMENT][1][table], segment) for row in in_batches(rows)]


def read_record_batches(segment: Segment) -> Iterator[pa.RecordBatch]:
    """The single batches."""
    for rows in read_runs(segment):
        yield pa.RecordBatch.from_pylist(in_batches(rows), schema=rows.schema)


read_runs = partial(_read, SegmentBatchRows)
read_segments = partial(_read, SegmentRow)
read_transaction_log = partial(_read, transaction_log_rows)
read_committed_offsets = partial(_read, committed_offsets_rows)
read_metadata_log = partial(_read, metadata_rows)
