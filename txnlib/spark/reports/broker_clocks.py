"""`broker_clocks`: the offset between the clocks of two brokers."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.clock_offset import Fastest, clock_offset
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.coverage.leaders import NO_LEADER
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import local_rows
from txnlib.spark.schemas import BROKER_CLOCKS, PRODUCER, TOPIC_PARTITION, conform

#: Rows of the pairs of brokers, before the instant of the audit is added.
_PAIR: Final = (
    "broker string, other_broker string, offset_ms long, error_ms long, lower_ms long, upper_ms long, basis string, "
    "samples long, samples_back long, applied_ms long, is_far boolean"
)


def broker_clocks(transactions: DataFrame, coverage: DataFrame, *, as_of_ms: int) -> DataFrame:
    """One row per pair of brokers whose clocks a marker compares. Columns: BROKER_CLOCKS.

    Of each producer and partition, only the newest completed decision counts: the present leaders stamped it, unless they have
    moved since. Pairs of brokers are few, so the driver computes their offsets. Source: DESIGN.md 5.3, rule 7.
    """
    said_ms = F.unix_millis("start") + F.col("time_to_decide_ms")
    newest = (
        transactions.where(F.col("completed").isNotNull())
        .select(
            "producer_id",
            "coordinator_partition",
            F.coalesce(said_ms, F.unix_millis("prepared")).alias("at_ms"),
            F.inline("markers"),
        )
        .where(F.col("marker_offset").isNotNull() & F.col("at_ms").isNotNull())
        .groupBy(*PRODUCER)
        .agg(F.max_by(F.struct("coordinator_partition", "at_ms", "marker_ms", "clock_offset_ms"), "at_ms").alias("newest"))
        .select(*TOPIC_PARTITION, "newest.*")
    )
    led = coverage.where(F.col("is_judged") & F.col("leader").isNotNull() & (F.col("leader") != NO_LEADER))
    leaders = led.select(*TOPIC_PARTITION, F.col("leader").alias("marked_by"))
    coordinators = led.where(F.col("topic") == TRANSACTION_STATE_TOPIC).select(
        F.col("partition").alias("coordinator_partition"), F.col("leader").alias("decided_by")
    )
    compared = (
        newest.join(broadcast(leaders), on=list(TOPIC_PARTITION), how="inner")
        .join(broadcast(coordinators), on="coordinator_partition", how="inner")
        .where(F.col("marked_by") != F.col("decided_by"))
        .withColumn("took_ms", clock_ms("marker_ms") - F.col("at_ms"))
        .groupBy("decided_by", "marked_by")
        .agg(
            F.count("took_ms").alias("samples"),
            F.min("took_ms").alias("least_ms"),
            F.max_by("clock_offset_ms", F.abs("clock_offset_ms")),
        )
    )
    ways = {(row[0], row[1]): (Fastest(row[2], row[3]), row[4]) for row in compared.collect() if row[3] is not None}
    rows = [_pair(one, other, ways) for one, other in sorted({(min(pair), max(pair)) for pair in ways})]
    made = local_rows(transactions.sparkSession, rows, _PAIR)
    return conform(made.withColumn("as_of", instant(F.lit(as_of_ms))), BROKER_CLOCKS)


def _pair(one: str, other: str, ways: dict[tuple[str, str], tuple[Fastest, int | None]]) -> tuple[object, ...]:
    there, applied = ways.get((one, other), (None, None))
    back, applied_back = ways.get((other, one), (None, None))
    found = clock_offset(there, back)
    applied_ms = applied or (-applied_back if applied_back else 0)
    samples = (0 if there is None else there.samples, 0 if back is None else back.samples)
    enclosed = (found.offset_ms, found.error_ms, found.lower_ms, found.upper_ms, found.basis.value)
    return (one, other, *enclosed, *samples, applied_ms, found.is_far)
