"""Python tasks on Spark: how they receive work, and how their workers end without tracebacks."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.spark.local_rows import local_relation, no_rows
from txnlib.spark.worker_daemon import quieten

Work = TypeVar("Work")

#: Maximum number of files in a list of work. Each task loads the whole list, at 2 µs per file. With more work, each
#: task is sent only its own piece, which costs a shuffle of the pieces first (0.3 s for 21 tasks).
LISTED: Final = 4_096


def in_tasks(
    spark: SparkSession,
    work: Sequence[Work],
    read: Callable[[Work], Iterable[pa.RecordBatch]],
    schema: StructType | str,
    *,
    weight: Callable[[Work], int] = lambda work: 1,
) -> DataFrame:
    """The rows that `read` returns for each piece of work, with one task per piece. `weight`: the number of files in a
    piece."""
    if not work:
        return no_rows(spark, schema)
    count = len(work)
    if sum(map(weight, work)) <= LISTED:
        return spark.range(0, count, 1, count).mapInArrow(_reader(read, list(work)), schema)
    pieces = {"number": pa.array(range(count), pa.int32()), "piece": [pickle.dumps(piece) for piece in work]}
    sent = spark.createDataFrame(pa.table(pieces)).repartitionById(count, "number")
    return sent.select("piece").mapInArrow(_reader(read, None), schema)


def _reader(
    read: Callable[[Work], Iterable[pa.RecordBatch]], listed: list[Work] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of a task. Its input is the numbers of pieces in `listed`, or the pieces themselves."""

    def read_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            for sent in batch.column(0).to_pylist():
                yield from read(pickle.loads(sent) if listed is None else listed[sent])

    return read_pieces


def mapped(
    frame: DataFrame,
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
    *,
    in_driver: bool,
) -> DataFrame:
    """What `read` makes of the rows of a frame: in Python tasks, or in the driver, if there are few."""

    def begin_and_read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        yield from read(batches)

    if not in_driver:
        return frame.mapInArrow(begin_and_read, schema)
    columns = schema if isinstance(schema, StructType) else cast(StructType, StructType.fromDDL(schema))
    rows = list(read(iter(frame.toArrow().to_batches())))
    return (
        local_relation(frame.sparkSession, pa.Table.from_batches(rows), columns)
        if rows
        else no_rows(frame.sparkSession, columns)
    )


@lru_cache
def begin_task() -> None:
    """Excludes everything that a worker has loaded from garbage collection. Does nothing from the second task on.

    Spark collects garbage after each task (`pyspark.daemon`). With numpy, pandas and pyarrow loaded, this takes 20 to
    40 ms, longer than most tasks of a small audit. No objects of a task exist yet when it begins, so nothing else is
    kept alive.
    """
    gc.freeze()


# A worker of pyspark's own daemon loads this module with its first task of ours, before it knows whether the task has
# any rows.
_daemon = sys.modules["__main__"]
if getattr(_daemon.__spec__, "name", None) == "pyspark.daemon":
    quieten(_daemon)
