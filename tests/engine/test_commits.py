"""The number of rows that a commit notes, for its own run only."""

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.frames import frame
from txnlib.engine.commits import MANY_FILES, SMALL_FILE_BYTES, Commit, commit_of, newest_commit
from txnlib.engine.store import RunStore, Store
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


def test_a_table_without_a_log_tells_nothing(tmp_path):
    assert newest_commit(None, "segments", "c-1", folder=f"{tmp_path}/segments") == Commit(None)


def test_a_store_is_asked_by_sql_and_says_the_same_as_the_folder(spark, tmp_path):
    name = "aborted_transactions"
    rows = frame(spark, TABLES[name], {"topic": "a"}, {"topic": "b"})
    store = Store(spark, f"file://{tmp_path}")
    run = RunStore(store, "c", "c-1")
    run.write(name, rows)
    written = run.commit(name)
    assert (written.rows, written.files) == (2, 1), "asked by SQL"
    assert newest_commit(spark, store.sql_name(name), "c-1", folder=f"{tmp_path}/{name}") == written
    assert newest_commit(spark, store.sql_name("nowhere"), "c-1", folder=None) == Commit(None)


def test_small_files_of_a_run_are_put_together_and_its_rows_stay(spark, tmp_path):
    name = "aborted_transactions"
    rows = frame(spark, TABLES[name], *[{"topic": topic} for topic in "abc"])
    store = Store(spark, str(tmp_path), is_small=True)
    other, run = RunStore(store, "c", "c-1"), RunStore(replace(store, is_small=False), "c", "c-2")
    for _ in range(2):
        other.append(name, rows)
    run.write(name, rows.repartition(3))
    assert run.commit(name).files > 1
    run.compact(name)
    left = [Path(file).parent.name for file in DeltaTable(f"{tmp_path}/{name}").file_uris()]
    assert sorted(left) == ["run_id=c-1"] * 2 + ["run_id=c-2"]
    assert sorted(row["topic"] for row in run.read(name).collect()) == ["a", "b", "c"]
