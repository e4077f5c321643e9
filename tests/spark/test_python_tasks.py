"""Python tasks: their work, and workers without needless garbage collection."""

import os
import socket
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import functions as F

from txnlib.pipeline.run_owner import start_of
from txnlib.spark import python_tasks
from txnlib.spark.core_udfs import coordinator_partition_of
from txnlib.spark.python_tasks import _reader, begin_task, in_tasks


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


def test_a_task_brings_the_file_along_that_quietens_its_worker(numbered):
    for function in (_reader(numbered, [1]), coordinator_partition_of().func):
        assert b"txnlib.spark.python_tasks" in cloudpickle.dumps(function)


#: A worker as Spark's daemon runs it, without Spark: its first task has no rows, and then its connection is closed.
WORKER = """
from pyspark.serializers import read_int, write_int

def main(infile, outfile):
    import txnlib.spark.python_tasks
    try:
        read_int(infile)
    except EOFError as error:
        {last_words}
"""


@pytest.mark.parametrize(
    ("last_words", "is_told"),
    [
        ("write_int(-2, outfile); raise SystemExit(-1)", False),
        ("raise RuntimeError('a failure of its own') from error", True),
        ("raise BrokenPipeError('a connection of its own') from error", True),
    ],
    ids=["nobody reads", "failure", "another connection"],
)
def test_a_worker_that_spark_lets_go_prints_no_traceback(repository, tmp_path, last_words, is_told):
    (tmp_path / "pyspark_worker.py").write_text(WORKER.format(last_words=last_words))
    settings = {
        "PYTHONPATH": f"{tmp_path}:{repository}", "PYTHON_UNIX_DOMAIN_ENABLED": "true", "PYTHON_WORKER_FACTORY_SOCK_DIR": "/tmp",
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1", "SPARK_REUSE_WORKER": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pyspark.daemon", "pyspark_worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, **settings}, **pipes) as daemon:
        path = UTF8Deserializer().loads(daemon.stdout)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            with connection.makefile("rb") as from_worker:
                worker = read_int(from_worker)
        while start_of(worker) is not None:
            time.sleep(0.01)
        said = daemon.communicate()[1]
    assert (b"Traceback" in said) == is_told, said.decode()
