"""The number of rows that a commit notes, for its own run only."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.frames import frame
from txnlib.engine.spark_tables import SparkTables
from txnlib.engine.store import RunStore
from txnlib.engine.tables import MANY_FILES, SMALL_FILE_BYTES, Commit, commit_of, newest_commit
from txnlib.spark.schemas import TABLES


def commit(run_id, **metrics):
    return {"operationParameters": {"predicate": f"run_id = '{run_id}'"}, "operationMetrics": metrics}


APPENDED = {"operationParameters": {"mode": "Append"}, "operationMetrics": {"numFiles": "1", "numOutputRows": "9"}}
MADE = {"operationParameters": None, "operationMetrics": None}


@pytest.mark.parametrize(
    ("history", "rows"),
    [
        ([commit("c-1", numFiles="1", numOutputRows="7")], 7),
        ([commit("c-10", numFiles="1", numOutputRows="8"), commit("c-1", numFiles="1", numOutputRows="7")], 7),
        (
            [
                APPENDED,
                MADE,
                commit("c-1", numFiles="1", numOutputRows="7"),
                commit("c-1", numFiles="1", numOutputRows="6"),
            ],
            7,
        ),
        ([commit("c-1", numFiles="0")], 0),
        ([commit("c-1")], None),
        ([commit("c-10", numFiles="1", numOutputRows="8"), MADE], 0),
        ([APPENDED, MADE], None),
        ([APPENDED, APPENDED | {"userMetadata": "c-1"}, commit("c-1", numFiles="1", numOutputRows="7")], 9),
        ([], None),
    ],
)
def test_the_newest_commit_of_the_run_tells(history, rows):
    assert commit_of("c-1", history).rows == rows


@pytest.mark.parametrize(
    ("files", "size", "is_scattered"),
    [
        (MANY_FILES + 1, SMALL_FILE_BYTES * (MANY_FILES + 1) - 1, True),
        (MANY_FILES + 1, SMALL_FILE_BYTES * (MANY_FILES + 1), False),
        (MANY_FILES, 1, False),
    ],
)
def test_many_small_files_are_scattered(files, size, is_scattered):
    assert commit_of("c-1", [commit("c-1", numFiles=str(files), numOutputBytes=str(size))]).is_scattered == is_scattered


@pytest.mark.classic
def test_spark_tells_the_size_of_a_commit(spark, tmp_path):
    name, tables = "aborted_transactions", SparkTables(spark, str(tmp_path))
    rows = frame(spark, TABLES[name], {"topic": "a"}, {"topic": "b"})
    written = tables.write(name, rows, {"cluster": "c", "run_id": "c-1"}, replaced="run_id = 'c-1'")
    assert (written.rows, written.files) == (2, 1)
    assert newest_commit(spark, tables.sql_name("nowhere"), "c-1") == Commit(None)


@pytest.mark.both
def test_small_files_of_a_run_are_put_together_and_its_rows_stay(engine, spark, tmp_path):
    name = "aborted_transactions"
    store = engine.store(str(tmp_path), None)
    other, run = RunStore(store, "c", "c-1"), RunStore(store, "c", "c-2")
    for topic in "abc":
        for each in (other, run):
            store.tables.write(name, frame(spark, TABLES[name], {"topic": topic}), each._stamps, replaced=None)
    run.compact(name)
    left = [Path(file).parent.name for file in DeltaTable(f"{tmp_path}/{name}").file_uris()]
    assert sorted(left) == ["run_id=c-1"] * 3 + ["run_id=c-2"]
    assert sorted(row["topic"] for row in run.read(name).collect()) == ["a", "b", "c"]
