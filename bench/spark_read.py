"""The time for a warm Spark session to read a capture: `record_batches` into a DataFrame whose rows are dropped.

The session is one of its own, in a process of its own, so that its cores can be chosen; its start is not counted. With
`--ready` the rows lie ready as Arrow batches: what it takes to hand them to Spark, without any reading.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from machine import CORES
from processes import output_of, spark_python, timed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.engine.spark import delta_session
from txnlib.readers.arrow_schemas import RECORD_BATCHES
from txnlib.readers.capture import Capture, CaptureFile, list_capture
from txnlib.readers.table_readers import may_hold, read_table
from txnlib.spark.capture_source import bundle, read_capture, tasks_of
from txnlib.spark.python_tasks import in_tasks
from txnlib.spark.schemas import TABLES

TABLE = "record_batches"
#: Seconds of reading again and again: a dozen reads of a small capture are slower, until the JVM has compiled what they
#: need.
SECONDS = 15


def read_seconds(capture: Path, tasks: int = CORES, cores: int = CORES) -> float:
    """The shortest read by so many tasks at a time, on so many cores."""
    return _shortest(tasks, str(capture), "--cores", str(cores))


def hand_over_seconds(capture: Path) -> float:
    """The shortest time in which Spark takes the same rows where they lie ready."""
    return _shortest(CORES, str(capture), "--ready")


def _shortest(tasks: int, *arguments: str) -> float:
    command, environment = spark_python(tasks, __file__, *arguments)
    return min(map(float, output_of(command, environment).split()))


def ready(spark: SparkSession, capture: Capture, folder: str) -> DataFrame:
    """The rows of a capture by as many tasks as read it, out of files of Arrow that are written first."""

    def write(work: tuple[int, list[CaptureFile]]) -> Iterator[pa.RecordBatch]:
        number, files = work
        with pa.ipc.new_stream(f"{folder}/{number}", RECORD_BATCHES) as stream:
            for file in files:
                for batch in read_table(TABLE, file):
                    stream.write_batch(batch)
        return iter(())

    def read(work: tuple[int, list[CaptureFile]]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(f"{folder}/{work[0]}") as source:
            yield from pa.ipc.open_stream(source)

    pieces = list(enumerate(bundle([file for file in capture.files if may_hold(TABLE, file)], tasks_of(spark))))
    in_tasks(spark, pieces, write, TABLES[TABLE]).count()
    return in_tasks(spark, pieces, read, TABLES[TABLE])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("capture")
    parser.add_argument("--cores", type=int, default=CORES)
    parser.add_argument("--ready", action="store_true")
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    spark = delta_session("bench")
    spark.sparkContext.setLogLevel("ERROR")
    capture = list_capture([given.capture])
    with TemporaryDirectory() as folder:
        read = read_capture(spark, capture, [TABLE])
        rows = ready(spark, capture, folder) if given.ready else read.select(F.inline(TABLE))
        sink = rows.write.format("noop").mode("overwrite")
        until = time.perf_counter() + SECONDS
        while time.perf_counter() < until:
            print(timed(sink.save))


if __name__ == "__main__":
    main()
