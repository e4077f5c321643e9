"""Python tasks of an engine: how they receive work."""

from __future__ import annotations

import gc
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.spark.frames import is_embedded, knowing, no_rows

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


def by_python(
    frame: DataFrame,
    columns: StructType,
    read: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """What `read` makes of each batch of rows of a frame, which has these columns, in Python tasks.

    The embedded engine has one task for all rows: its tasks share an interpreter, and to hand it to each other takes
    them a third of their time.
    """

    def begin_and_read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            yield from read(batch)

    rows = frame.coalesce(1) if is_embedded(frame.sparkSession) else frame
    return knowing(rows, columns).mapInArrow(begin_and_read, schema)


@lru_cache
def begin_task() -> None:
    """Prepares a worker: spares it garbage collection, and lets it end quietly. Does nothing from the second task on.

    Spark collects garbage after each task (`pyspark.daemon`). With numpy, pandas and pyarrow loaded, this takes 20 to
    40 ms, longer than most tasks of a small audit. No objects of a task exist yet when it begins, so nothing else is
    kept alive.
    """
    gc.freeze()
    if getattr(sys.modules["__main__"].__spec__, "name", None) == "pyspark.daemon":
        traceback.print_exc = _unless_ended(traceback.print_exc)  # type: ignore[assignment]


def _unless_ended(print_exc: Callable[[], None]) -> Callable[[], None]:
    """A hook that prints exceptions, except that of a worker whose socket Spark has closed.

    Spark ends workers that were idle for a minute, and those whose rows nobody needs. On a busy machine they notice it
    before they are killed, and print a traceback that tells users nothing.
    """

    def printed() -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            print_exc()

    return printed
