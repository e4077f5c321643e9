"""The rows of a capture: each file is read once."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from tests.support.dumps import Batch, print_dump
from tests.support.frames import assert_same
from tests.support.log_bytes import segment
from tests.support.log_notation import TS, C, T
from txnlib.readers.capture import list_capture
from txnlib.spark.capture_source import TaskSource, tasks_of
from txnlib.spark.frames import arrow_of

FIRST = f"{0:020d}.log"
TABLES = ("record_batches", "segments")


def capture_in(folder: Path) -> list[str]:
    """A segment with a damaged place, a dump, and a small segment."""
    log = bytearray(segment([*(T(1, 0, n, at=n, ts=TS + n) for n in range(900)), C(1, 0, 15, at=900, ts=TS + 400)]))
    log[9_000] ^= 1
    for name, content in {f"orders-0/{FIRST}": bytes(log), f"orders-1/{FIRST}": bytes(log[:500])}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(content)
    (folder / "dump.txt").write_bytes(print_dump(*[Batch()] * 200))
    return [str(folder)]


@pytest.mark.both
def test_each_file_is_read_once_for_all_tables(engine, tmp_path):
    source = engine.source(list_capture(capture_in(tmp_path)))
    before = {table: arrow_of(source.read(table)) for table in TABLES}
    for path in tmp_path.glob("*/*.log"):
        path.unlink()
    assert {table: arrow_of(source.read(table)) for table in TABLES} == before
    source.forget()
    again = [row for row in source.read("segments").collect() if row["path"].endswith(".log")]
    assert [row["unreadable"][0]["reason"] for row in again] == ["CANNOT_OPEN: No such file or directory"] * 2


@pytest.mark.classic
def test_where_spark_keeps_nothing_each_table_reads_the_files(spark, tmp_path, monkeypatch):
    capture = list_capture(capture_in(tmp_path))
    kept = {table: TaskSource(spark, capture).read(table) for table in TABLES}

    def refuse(*_: object) -> None:
        raise PySparkException("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported on serverless compute.")

    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.persist", refuse)
    source = TaskSource(spark, capture)
    for table in TABLES:
        rows = source.read(table)
        assert "transaction_log" not in rows._jdf.queryExecution().toString(), "it reads other tables, too"
        assert_same(rows, kept[table])


@pytest.mark.parametrize(("told", "tasks"), [("8", 8), ("auto", 200), ("0", 1)])
def test_work_is_spread_over_as_many_tasks_as_a_shuffle(told, tasks):
    class Session:
        class conf:
            @staticmethod
            def get(name):
                return {"spark.sql.shuffle.partitions": told}[name]

    assert tasks_of(Session) == tasks
