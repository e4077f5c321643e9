"""Are tables written so that a run can be repeated, and do their columns keep their comments? Real Delta tables."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from tests.support.frames import empty
from txnlib.delta.store import RunStore, Store, stored_schema
from txnlib.errors import MissingTableError, UsageError
from txnlib.spark.schemas import QUARANTINE


def rows(spark, *positions):
    return spark.createDataFrame([("orders", 0, "raw:1", "x.log", p, 1, "why", "", None) for p in positions], QUARANTINE)


@pytest.fixture
def store(spark, tmp_path):
    return Store(spark, str(tmp_path / "out"))


def positions(run):
    return sorted(row["position"] for row in run.read("quarantine").collect())


def test_writing_a_run_again_replaces_its_rows_and_no_others(spark, store):
    monday, tuesday = RunStore(store, "eu", "eu-1"), RunStore(store, "eu", "eu-2")
    monday.write("quarantine", rows(spark, 1, 2))
    tuesday.write("quarantine", rows(spark, 3))
    monday.write("quarantine", rows(spark, 4))
    assert (positions(monday), positions(tuesday)) == ([4], [3])
    tuesday.write("quarantine", empty(spark, QUARANTINE))
    assert (positions(monday), positions(tuesday)) == ([4], [])


def test_every_row_names_cluster_and_run_and_every_column_keeps_its_comment(spark, store):
    RunStore(store, "eu", "eu-1").write("quarantine", rows(spark, 1))
    table = store.read_all("quarantine")
    assert [(row["cluster"], row["run_id"]) for row in table.collect()] == [("eu", "eu-1")]
    expected = {field.name: field.metadata["comment"] for field in stored_schema("quarantine")}
    assert {field.name: field.metadata.get("comment") for field in table.schema} == expected


def test_a_column_younger_than_the_table_is_not_known(spark, store):
    old = rows(spark, 1).drop("next_offset", "reason").withColumn("run_id", F.lit("eu-1"))
    old.write.format("delta").partitionBy("run_id").save(f"{store.output}/quarantine")
    (row,) = RunStore(store, "eu", "eu-1").read("quarantine").collect()
    assert (row["position"], row["next_offset"], row["reason"]) == (1, None, None)


def test_a_table_that_was_never_written_is_missing(store):
    with pytest.raises(MissingTableError, match="table quarantine is missing"):
        store.read_all("quarantine")
    assert not store.exists("quarantine")


@pytest.mark.parametrize(("output", "schema"), [(None, None), ("x", "a.b"), (None, "a.b; DROP TABLE c")])
def test_a_place_is_a_folder_or_a_schema(spark, output, schema):
    with pytest.raises(UsageError):
        Store(spark, output, schema)
