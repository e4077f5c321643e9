"""The session of a small audit, and rows of the driver."""

from datetime import UTC, datetime

import pytest
from pyspark import SparkContext
from pyspark.sql import functions as F
from txnlib.delta.tuning import Plans, Tuning, settings_kept

from txnlib.engine.spark import delta_session
from txnlib.spark import local_rows as local_rows_module
from txnlib.spark.frames import local_rows, settled
from txnlib.spark.joins import BROADCAST_LIMIT, NEVER, broadcast

SCHEMA = (
    "name string, at timestamp, numbers array<int>, place struct<topic: string, partition: int>, is_seen boolean, bytes"
    " long"
)
ROW = ("a", datetime(2026, 3, 11, 1, 20, tzinfo=UTC), [1, 2], {"topic": "t", "partition": 0}, True, 1 << 40)


def is_marked(frame) -> bool:
    return "ResolvedHint" in frame._jdf.queryExecution().analyzed().toString()


def test_a_large_audit_broadcasts_again_after_a_small_one(spark):
    few = spark.range(1)
    with settings_kept(spark):
        before, tuning = spark.conf.get(BROADCAST_LIMIT), Tuning(spark)
        tuning.tune(Plans.SMALL)
        assert spark.conf.get(BROADCAST_LIMIT) == NEVER
        assert not is_marked(broadcast(few))
        tuning.tune(Plans.MANY_ROWS)
        assert spark.conf.get(BROADCAST_LIMIT) == before != NEVER
        assert is_marked(broadcast(few))


def test_rows_of_the_driver_arrive_unchanged(spark):
    (row,) = (
        local_rows(spark, [ROW, (None,) * 6], SCHEMA)
        .where("name = 'a'")
        .selectExpr("*", "unix_millis(at) AS ms")
        .collect()
    )
    assert (row["name"], row["numbers"], row["place"].asDict(), row["is_seen"], row["bytes"]) == (*ROW[:1], *ROW[2:])
    assert row["ms"] == ROW[1].timestamp() * 1000


@pytest.mark.parametrize("rows", [[], [ROW]])
def test_the_optimiser_knows_the_rows_of_the_driver(spark, rows):
    plan = local_rows(spark, rows, SCHEMA).where("name = 'b'")._jdf.queryExecution().optimizedPlan()
    assert plan.toString().startswith("LocalRelation <empty>")


def test_a_small_audit_computes_a_settled_frame_once(spark, monkeypatch):
    struct = F.struct(F.lit("a").alias("name"), F.array(F.struct("id")).alias("ids"))
    # Its fields are never NULL, as opposed to the struct.
    frame = spark.range(5).where("id > 2").withColumn("odd", F.when(F.col("id") == 3, struct))
    with settings_kept(spark):
        tuning = Tuning(spark)
        tuning.tune(Plans.MANY_ROWS)
        assert settled(frame) is frame
        tuning.tune(Plans.SMALL)
        rows = settled(frame)
        assert "Range" not in rows._jdf.queryExecution().optimizedPlan().toString()
        assert (rows.columns, rows.collect()) == (frame.columns, frame.collect())
        monkeypatch.setattr(local_rows_module, "KEPT_ROWS", 1)
        assert settled(frame) is frame, "too many rows to hold"


def test_java_classes_are_looked_up_once(spark):
    assert delta_session("test") is spark
    functions = SparkContext._jvm.functions
    assert functions is SparkContext._jvm.functions
    assert functions.col is functions.col
