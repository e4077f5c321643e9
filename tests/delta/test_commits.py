"""Are the rows that a commit wrote told from its own note, and never those of another run?"""

from __future__ import annotations

import pytest

from txnlib.delta.commits import rows_of, rows_written
from txnlib.delta.store import RunStore, Store
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
        ([APPENDED, MADE, commit("c-1", numFiles="1", numOutputRows="7"), commit("c-1", numFiles="1", numOutputRows="6")], 7),
        ([commit("c-1", numFiles="0")], 0),
        ([commit("c-1")], None),
        ([commit("c-10", numFiles="1", numOutputRows="8"), MADE], 0),
        ([APPENDED, MADE], None),
        ([], None),
    ],
)
def test_the_newest_commit_of_the_run_tells(history, rows):
    assert rows_of("c-1", history) == rows


def test_a_table_without_a_log_tells_nothing(tmp_path):
    assert rows_written(None, "segments", "c-1", folder=f"{tmp_path}/segments") is None


def test_a_store_is_asked_by_sql_and_says_the_same_as_the_folder(spark, tmp_path):
    name = "aborted_transactions"
    rows = spark.createDataFrame([(topic, *[None] * (len(TABLES[name]) - 1)) for topic in "ab"], TABLES[name])
    store = Store(spark, f"file://{tmp_path}")
    run = RunStore(store, "c", "c-1")
    run.write(name, rows)
    assert run.rows_written(name) == 2, "asked by SQL"
    assert rows_written(spark, store.sql_name(name), "c-1", folder=f"{tmp_path}/{name}") == 2
    assert rows_written(spark, store.sql_name("nowhere"), "c-1", folder=None) is None
