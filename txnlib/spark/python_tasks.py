"""How do tasks in Python get their work, and what do they cost beside it?"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

Work = TypeVar("Work")

#: What a list of work weighs at most, in files: a task loads all of the list that it is in (4 µs a file), and each list is a
#: branch of the plan (900 of a petabyte in segments of 1 GiB).
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
    lists = lists_of(work, weight)
    if not lists:
        return spark.createDataFrame([], schema)
    frames = [spark.range(0, len(each), 1, len(each)).mapInArrow(_reader(each, read), schema) for each in lists]
    return reduce(DataFrame.unionAll, frames)


def lists_of(work: Sequence[Work], weight: Callable[[Work], int]) -> list[list[Work]]:
    """The work in order, in lists of which none weighs more than LISTED without its last piece."""
    lists: list[list[Work]] = []
    room = 0
    for piece in work:
        if room <= 0:
            lists.append([])
            room = LISTED
        lists[-1].append(piece)
        room -= weight(piece)
    return lists


def _reader(
    listed: list[Work], read: Callable[[Work], Iterable[pa.RecordBatch]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read_listed(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read(listed[number])

    return read_listed


@lru_cache
def begin_task() -> None:
    """Keeps what a worker has loaded out of garbage collection; does nothing from its second task on.

    Spark collects after each task (`pyspark.daemon`), which with numpy, pandas and pyarrow loaded takes 20 to 40 ms: more
    than most tasks of a small audit do. Nothing of a task's own exists when it begins, so nothing is kept that would
    otherwise go.
    """
    gc.freeze()
