"""Laws of a capture that tasks or the driver read: the rows are the same."""

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql.classic.dataframe import DataFrame

from tests.support.dumps import Batch, print_dump
from tests.support.frames import assert_same
from tests.support.log_bytes import segment
from tests.support.log_notation import TS, C, T
from txnlib.readers.capture import list_capture
from txnlib.readers.table_readers import READ_TABLES, SEGMENT_PARTS_TABLE
from txnlib.spark import capture_source
from txnlib.spark.capture_source import CaptureSource

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


def mixed(repository, tmp_path):
    """The same and a console's text, beside the sample."""
    (tmp_path / "console.txt").write_bytes(b'{"key":{"type":0,"data":{"transactionalId":"a"}},"value":null}\n' * 30)
    return list_capture([*capture_in(tmp_path), str(repository / "examples" / "quickstart" / "brokers")])


def test_the_driver_reads_the_rows_that_tasks_read(spark, repository, tmp_path, monkeypatch):
    monkeypatch.setattr(capture_source, "_ARRAY_BYTES", 1_000)  # many arrays, as in a large capture
    capture = mixed(repository, tmp_path)
    source, by_tasks = (CaptureSource(spark, capture, is_small) for is_small in (True, False))
    for table in READ_TABLES:
        if table != SEGMENT_PARTS_TABLE:
            read = source.read(table)
            assert not isinstance(read, DataFrame)
            assert_same(source.frame(table), by_tasks.frame(table))
            assert source.may_have(table) >= (read.num_rows > 0)


def test_tasks_read_what_is_too_much_for_the_driver(spark, repository, tmp_path, monkeypatch):
    monkeypatch.setattr(capture_source, "MAX_ROWS", 10)
    capture = mixed(repository, tmp_path)
    source, by_tasks = (CaptureSource(spark, capture, is_small) for is_small in (True, False))
    for table in (*TABLES, "transaction_log"):
        assert isinstance(source.read(table), DataFrame)
        assert_same(source.frame(table), by_tasks.frame(table))
        assert source.may_have(table)


def test_tasks_read_each_file_once_for_all_tables(spark, tmp_path):
    source = CaptureSource(spark, list_capture(capture_in(tmp_path)))
    before = {table: source.frame(table).toArrow() for table in TABLES}
    for path in tmp_path.glob("*/*.log"):
        path.unlink()
    assert {table: source.frame(table).toArrow() for table in TABLES} == before
    source.forget()
    again = [row for row in source.frame("segments").collect() if row["path"].endswith(".log")]
    assert [row["unreadable"][0]["reason"] for row in again] == ["CANNOT_OPEN: No such file or directory"] * 2


def test_where_spark_keeps_nothing_each_table_reads_the_files(spark, tmp_path, monkeypatch):
    capture = list_capture(capture_in(tmp_path))
    kept = {table: CaptureSource(spark, capture).frame(table) for table in TABLES}

    def refuse(*_: object) -> None:
        raise PySparkException("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported on serverless compute.")

    monkeypatch.setattr(DataFrame, "persist", refuse)
    source = CaptureSource(spark, capture)
    for table in TABLES:
        rows = source.frame(table)
        assert "transaction_log" not in rows._jdf.queryExecution().toString(), "it reads other tables, too"
        assert_same(rows, kept[table])
