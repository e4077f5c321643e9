"""A small capture, read in one pass through its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from txnlib.core.batch_runs import RUNS
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import Capture, CaptureFile
from txnlib.readers.file_parts import put_together
from txnlib.readers.table_readers import BATCH_RUNS_TABLE, CONSOLE_TEXTS_TABLE, READ_TABLES, SEGMENT_PARTS_TABLE, read_tables

_SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    **arrow_schemas.TABLES,
    "console_log": arrow_schemas.TRANSACTION_LOG,
    CONSOLE_TEXTS_TABLE: arrow_schemas.SEGMENTS,
}


def read_small_capture(
    capture: Capture, earlier_parts: Iterable[Mapping[str, Any]] = (), *, most_rows: int, most_bytes: int
) -> dict[str, pa.Table] | None:
    """The rows of every table that files fill, each file opened once; None as soon as a table has more rows or bytes than given.

    Compressed text may have many times the bytes of its file. `earlier_parts`: what an earlier run has read of files in this
    capture, as rows of `arrow_schemas.SEGMENT_PARTS`. Raises UnreadableInputError as `read_tables` does.
    """
    not_read = "record_batches" if capture.detail == RUNS else BATCH_RUNS_TABLE
    tables = [table for table in READ_TABLES if table != not_read]
    found: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    rows: dict[str, int] = defaultdict(int)
    size: dict[str, int] = defaultdict(int)
    for file in capture.files:
        parts = capture.parts.get(file.path)
        other = SEGMENT_PARTS_TABLE if parts is None else "segments"
        for part in files_of(capture, file):
            for table, batch in read_tables([table for table in tables if table != other], part):
                found[table].append(batch)
                rows[table] += batch.num_rows
                size[table] += batch.nbytes
                if rows[table] > most_rows or size[table] > most_bytes:
                    return None
    found["record_batches"] += found.pop(BATCH_RUNS_TABLE, [])
    of_parts = [*earlier_parts, *(row for batch in found.pop(SEGMENT_PARTS_TABLE, []) for row in batch.to_pylist())]
    found["segments"] += pa.Table.from_pylist(_put_together(of_parts), schema=arrow_schemas.SEGMENTS).to_batches()
    return {table: pa.Table.from_batches(found[table], schema).combine_chunks() for table, schema in _SCHEMAS.items()}


def files_of(capture: Capture, file: CaptureFile) -> tuple[CaptureFile, ...]:
    """The parts of a file that are read, or the whole file."""
    parts = capture.parts.get(file.path)
    return (file,) if parts is None else tuple(replace(file, part=part) for part in parts)


def _put_together(parts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    of_files: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for part in parts:
        of_files[part["path"]].append(part)
    return [put_together(rows) for rows in of_files.values()]
