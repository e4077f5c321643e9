"""The rows of one table of a file, or of an open segment."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from txnlib.readers.arrow_schemas import one_pass
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.segment import (
    Segment,
    SegmentBatchRows,
    SegmentRow,
    committed_offsets_rows,
    metadata_rows,
    transaction_log_rows,
)
from txnlib.readers.table_readers import KINDS, read_table


def rows_of_file(table: str, file: CaptureFile) -> list[dict[str, Any]]:
    return [row for batch in read_table(table, file) for row in batch.to_pylist()]


def _read(rows: Callable[..., Any], segment: Segment, **options: Any) -> Iterator[pa.RecordBatch]:
    return (batch for _, batch in one_pass(segment.blocks(), {"": rows(segment, **options)}))


def read_rows(table: str, segment: Segment) -> list[dict[str, Any]]:
    """The rows of a table, by its name."""
    return [row for batch in _read(KINDS[FileKind.SEGMENT][1][table], segment) for row in batch.to_pylist()]


read_record_batches = partial(_read, SegmentBatchRows)
read_segments = partial(_read, SegmentRow)
read_transaction_log = partial(_read, transaction_log_rows)
read_committed_offsets = partial(_read, committed_offsets_rows)
read_metadata_log = partial(_read, metadata_rows)
