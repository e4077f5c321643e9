"""Splits of large files of a capture. Tasks find the boundaries themselves.

One task per chunk of a large file runs `readers.file_splits.reach`. The driver receives the boundaries and the reader's state at
each: some hundred bytes, and no content of the files.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from txnlib.readers.capture import Capture
from txnlib.readers.file_splits import Chunk, Reached, chunks_of, parts_of, reach
from txnlib.spark.python_tasks import in_tasks

_REACHED: Final = pa.schema([("chunk", pa.int64()), ("reached", pa.binary())])


def split_large_files(spark: SparkSession, capture: Capture, split_bytes: int | None = None) -> Capture:
    """The capture, with the parts of its files that are larger than `split_bytes`; None: larger than is good for one task."""
    chunks = chunks_of(capture, split_bytes)
    if not chunks:
        return capture
    reached: dict[str, dict[int, Reached]] = defaultdict(dict)
    for row in in_tasks(spark, list(enumerate(chunks)), _reached, "chunk long, reached binary").collect():
        chunk = chunks[row["chunk"]]
        reached[chunk.file.path][chunk.number] = pickle.loads(row["reached"])
    parts = {path: parts_of(found) for path, found in reached.items()}
    return replace(capture, parts={**capture.parts, **{path: found for path, found in parts.items() if len(found) > 1}})


def _reached(numbered: tuple[int, Chunk]) -> Iterator[pa.RecordBatch]:
    number, chunk = numbered
    found = reach(chunk)
    if found is not None:
        yield pa.RecordBatch.from_pylist([{"chunk": number, "reached": pickle.dumps(found)}], schema=_REACHED)
