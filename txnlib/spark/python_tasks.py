"""Python tasks on Spark: how work reaches them, and how their workers end quietly."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.spark.worker_daemon import quieten

Work = TypeVar("Work")

#: Files that a list of work names at most. A task loads all of the list that its stage is sent, at 2 µs a file; of more work
#: each task is sent its own piece, which costs a shuffle of the pieces first (0.3 s of 21 tasks).
LISTED: Final = 4_096


def in_tasks(
    spark: SparkSession,
    work: Sequence[Work],
    read: Callable[[Work], Iterable[pa.RecordBatch]],
    schema: StructType | str,
    *,
    weight: Callable[[Work], int] = lambda work: 1,
) -> DataFrame:
    """The rows that `read` makes of each piece of work, in a task for each. `weight`: how many files a piece names."""
    if not work:
        return spark.createDataFrame([], schema)
    count = len(work)
    if sum(map(weight, work)) <= LISTED:
        return spark.range(0, count, 1, count).mapInArrow(_reader(read, list(work)), schema)
    pieces = {"number": pa.array(range(count), pa.int32()), "piece": [pickle.dumps(piece) for piece in work]}
    sent = spark.createDataFrame(pa.table(pieces)).repartitionById(count, "number")
    return sent.select("piece").mapInArrow(_reader(read, None), schema)


def _reader(
    read: Callable[[Work], Iterable[pa.RecordBatch]], listed: list[Work] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with the numbers of pieces that are listed, or with pieces that it is sent."""

    def read_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            for sent in batch.column(0).to_pylist():
                yield from read(pickle.loads(sent) if listed is None else listed[sent])

    return read_pieces


@lru_cache
def begin_task() -> None:
    """Keeps what a worker has loaded out of garbage collection; does nothing from its second task on.

    Spark collects after each task (`pyspark.daemon`), which with numpy, pandas and pyarrow loaded takes 20 to 40 ms: more
    than most tasks of a small audit do. Nothing of a task's own exists when it begins, so nothing is kept that would
    otherwise go.
    """
    gc.freeze()


def _quieten_worker() -> None:
    """Installs the filter of `worker_daemon` in a worker that pyspark's own daemon started."""
    daemon = sys.modules["__main__"]
    if getattr(daemon.__spec__, "name", None) == "pyspark.daemon":
        quieten(daemon)


# A worker loads this file with its first task of ours, before it knows whether that has any rows.
_quieten_worker()
