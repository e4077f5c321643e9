"""Chains of runs: what a run has of earlier ones, in a folder by Spark and without it, and in a catalog."""

import pytest
from pyspark.sql import functions as F

from txnlib.core.chains import Chain
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.delta.retention import forget_runs
from txnlib.delta.store import RunStore, Store
from txnlib.spark.schemas import COVERAGE, RECORD_BATCHES

FIRST = Chain("eu-1")


# A catalog is written by Spark too, so CI has no time for a folder that is.
BY_SPARK = ("by Spark", "catalog")
KINDS = ["without Spark", pytest.param("by Spark", marks=pytest.mark.slow), "catalog"]


@pytest.fixture(params=KINDS)
def store(request, spark, tmp_path):
    if request.param != "catalog":
        yield Store(spark, str(tmp_path / "out"), is_small=request.param == "without Spark")
        return
    spark.sql(f"CREATE SCHEMA chains LOCATION '{tmp_path / 'chains'}'")
    yield Store(spark, schema="chains")
    spark.sql("DROP SCHEMA chains CASCADE")


def batches(spark, *offsets):
    known = {"topic": "orders", "partition": 0, "source": "raw:1"}
    given = [F.lit(known.get(field.name)).cast(field.dataType).alias(field.name) for field in RECORD_BATCHES]
    offset = F.col("id").cast("long")
    rows = spark.createDataFrame([(each,) for each in offsets], "id long")
    named = ("segment_base_offset", "base_offset", "last_offset")
    return rows.select(*given, "id").withColumns(dict.fromkeys(named, offset)).drop("id")


def copies(spark, since, first):
    known = {"topic": "orders", "partition": 0, "source": "raw:1", "status": "COMPLETE", "is_judged": True}
    known |= {"batches_since": since, "batches_from": first}
    return spark.range(1).select(*[F.lit(known.get(field.name)).cast(field.dataType).alias(field.name) for field in COVERAGE])


def run_of(store, day, chain):
    return RunStore(store, "eu", f"eu-{day}", chain)


def written(store, day, chain, *offsets, since=None, first=0):
    run = run_of(store, day, chain)
    run.write("record_batches", batches(store.spark, *offsets))
    run.write("coverage", copies(store.spark, since, first))
    return run


def offsets(run):
    """What the run reads while it lasts; the same is read of it later."""
    found = read(run)
    assert read(RunStore(run.store, run.cluster, run.run_id, run.chain)) == found
    return found


def read(run):
    return sorted(row["base_offset"] for row in run.read("record_batches").select("base_offset").collect())


# How earlier rows are read is the same for all; those that Spark writes take it ten times as long.
@pytest.mark.parametrize("store", [KINDS[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in BY_SPARK)], indirect=True)
def test_a_night_has_its_rows_and_the_earlier_ones_that_count(store):
    written(store, 1, FIRST, 1, 2)
    assert offsets(written(store, 2, Chain("eu-1", 1), 3, since=0)) == [1, 2, 3]
    third = written(store, 3, Chain("eu-1", 2), 4, since=0, first=2)  # retention deleted offset 1
    assert offsets(third) == [2, 3, 4]
    fourth = written(store, 4, Chain("eu-1", 3), 7, since=None)  # the copy was rewritten, and read again
    assert offsets(fourth) == [7]
    assert offsets(written(store, 5, Chain("eu-1", 4), 8, since=3)) == [7, 8]
    assert [read(run_of(store, day, Chain("eu-1", day - 1))) for day in (1, 2, 3, 4)] == [[1, 2], [1, 2, 3], [2, 3, 4], [7]]


def test_a_night_again_and_one_that_died_are_replaced(store):
    written(store, 1, FIRST, 1, 2)
    written(store, 2, Chain("eu-1", 1), 3, since=0)
    assert offsets(written(store, 2, Chain("eu-1", 1), 4, since=0)) == [1, 2, 4]
    # It died; another run takes its place.
    assert offsets(written(store, 3, Chain("eu-1", 1), 5, since=0)) == [1, 2, 5]
    left = store.read_all("record_batches").select("base_offset").collect()
    assert sorted(row["base_offset"] for row in left) == [1, 2, 5]


def test_rows_that_later_runs_need_survive_another_attempt(store):
    written(store, 1, FIRST, 1, 2)
    second = written(store, 2, Chain("eu-1", 1), 3, since=0)
    again = written(store, 1, Chain("eu-1-2", kept=("eu-1",)), 8, 9)
    assert (offsets(again), offsets(RunStore(store, "eu", "eu-2", second.chain))) == ([8, 9], [1, 2, 3])


def test_a_run_of_a_version_without_chains_has_its_rows(store):
    old = RunStore(store, "eu", "eu-0")
    stamps = {"cluster": F.lit("eu"), "run_id": F.lit("eu-0")}
    rows = batches(store.spark, 5).withColumns(stamps).write.format("delta").partitionBy("run_id")
    if store.output is None:
        rows.saveAsTable(f"{store.schema}.record_batches")
    else:
        rows.save(f"{store.output}/record_batches")
    assert offsets(old) == [5]
    assert offsets(written(store, 1, FIRST, 1, 2)) == [1, 2]
    assert offsets(written(store, 2, Chain("eu-1", 1), 3, since=0)) == [1, 2, 3]
    assert offsets(RunStore(store, "eu", "eu-0")) == [5]


def test_rows_of_the_log_go_with_the_last_run_of_their_chain(store):
    spark, runs = store.spark, [(1, FIRST), (2, Chain("eu-1", 1)), (3, Chain("eu-3"))]
    for day, chain in runs:
        run = run_of(store, day, chain)
        run.write("record_batches", batches(spark, day))
        row = {"as_of": day * 86_400_000, "status": "DONE", "chain": chain.name, "night": chain.night}
        row |= {"started_at": 0, "settings": "{}", "version": "0"}
        columns = {column.name: column for column in CATALOGUE["audit_runs"].columns}
        noted = [
            (F.timestamp_millis(F.lit(row[name])) if name in ("as_of", "started_at") else F.lit(row.get(name))).alias(name)
            for name in columns
        ]
        run.write("audit_runs", spark.range(1).select(*noted))
    left = []
    for days in (2, 3):
        forget_runs(store, "eu", days * 86_400_000)
        left.append(sorted(row["run_id"] for row in store.read_all("record_batches").select("run_id").collect()))
    assert left == [["eu-1", "eu-2", "eu-3"], ["eu-3"]]
