"""Python tasks: their work, and workers without needless garbage collection."""

import os

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from txnlib.spark import python_tasks
from txnlib.spark.python_tasks import begin_task, in_tasks

#: Only Spark has tasks: on the embedded engine, a pool of processes reads files.
pytestmark = pytest.mark.classic


@pytest.fixture
def numbered():
    """Gives a piece back; a function of its own, which workers are sent whole."""

    def read(piece):
        yield pa.RecordBatch.from_pylist([{"piece": piece}])

    return read


@pytest.mark.parametrize("listed", [8, 7], ids=["listed", "sent"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_each_piece_of_work_is_done_once_and_in_a_task_of_its_own(spark, monkeypatch, numbered, listed, adaptive):
    monkeypatch.setattr(python_tasks, "LISTED", listed)
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        rows = (
            in_tasks(spark, list(range(8)), numbered, "piece long").withColumn("task", F.spark_partition_id()).collect()
        )
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)
    assert sorted(row["piece"] for row in rows) == list(range(8))
    assert len({row["task"] for row in rows}) == 8


def test_pieces_weigh_as_much_as_they_name_and_no_work_gives_no_rows(spark, monkeypatch, numbered, capsys):
    monkeypatch.setattr(python_tasks, "LISTED", 4)
    for size, is_sent in ((2, False), (3, True)):
        in_tasks(spark, [[1, 2], [3] * size], numbered, "piece array<long>", weight=len).explain()
        assert ("Exchange" in capsys.readouterr().out) == is_sent
    assert in_tasks(spark, [], numbered, "piece long").collect() == []


def test_a_worker_keeps_what_it_loaded_out_of_garbage_collection(spark):
    def read(tasks):
        import gc

        begin_task()
        begin_task()
        for _ in tasks:
            pass
        yield pa.RecordBatch.from_pylist([{"worker": os.getpid(), "frozen": gc.get_freeze_count()}])

    rows = spark.range(0, 2, 1, 2).mapInArrow(read, "worker long, frozen long").collect()
    assert all(row["worker"] != os.getpid() and row["frozen"] > 10_000 for row in rows), rows


def test_a_worker_that_spark_has_ended_prints_no_traceback(spark):
    def read(tasks):
        import contextlib
        import io
        import traceback

        begin_task()
        for _ in tasks:
            pass
        told = io.StringIO()
        for error in (BrokenPipeError("its socket"), ValueError("anything else")):
            with contextlib.redirect_stderr(told):
                try:
                    raise error
                except (OSError, ValueError):
                    traceback.print_exc()
        yield pa.RecordBatch.from_pylist([{"told": told.getvalue()}])

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(read, "told string").collect()
    assert "anything else" in row["told"]
    assert "its socket" not in row["told"]
