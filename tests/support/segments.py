"""The rows of one table of a file, or of an open segment."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from txnlib.core.batch_runs import single_batches
from txnlib.readers.arrow_schemas import one_pass
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.fingerprints import ReadSegment
from txnlib.readers.segment import Segment
from txnlib.readers.storage.block_buffer import Buffer
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


def opened(
    content: Buffer,
    topic: str = "orders",
    partition: int = 0,
    base_offset: int = 0,
    forget: Callable[[int], None] = lambda position: None,
) -> Segment:
    """A segment with these bytes."""
    return Segment("x.log", "raw:1", topic, partition, base_offset, content, len(content), forget)


def read_batches(table: str, segment: Segment) -> Iterator[pa.RecordBatch]:
    """The rows of a table, by its name, in the batches in which they are read."""
    rows = KINDS[FileKind.SEGMENT][1][table]
    return (batch for _, batch in one_pass(segment.blocks(), {"": rows(segment)}))


def read_rows(table: str, segment: Segment) -> list[dict[str, Any]]:
    """The same rows, one after the other; of `record_batches`, the single batches."""
    return [row for rows in read_batches(table, segment) for row in in_batches(rows)]
