"""Findings about markers and decisions that do not match.

Spark finds those that may not, the core judges them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark import windows
from txnlib.spark.coordinators.transaction_markers import agrees, clock, markers_of
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import TOPIC_PARTITION

_PRODUCER: Final = ("producer_id", *TOPIC_PARTITION)
#: Maximum number of writes before their transaction to check per partition.
_SUSPECTS_OF_PARTITION: Final = 100


def _clocks(transactions: DataFrame) -> DataFrame:
    """The result of `clock_differences`, from the columns of `transactions`."""
    pair = ("coordinator_partition", *TOPIC_PARTITION)
    each = transactions.select("coordinator_partition", F.inline("markers"))
    return each.groupBy(*pair).agg(
        F.max("clock_offset_ms").alias("clock_offset_ms"), F.max("clocks_differ_ms").alias("clocks_differ_ms")
    )


def _decided_ms() -> Column:
    """When a transaction was decided, in ms: the time in its Prepare record, else that record's append time."""
    said = F.unix_millis("start") + F.col("time_to_decide_ms")
    return F.coalesce(said, F.unix_millis("prepared"))


def odd_markers(
    transactions: DataFrame, producer_spans: DataFrame, coordinator_states: DataFrame, coverage: DataFrame
) -> DataFrame:
    """The markers beside decisions of their producers, but for the first after each that matches it."""
    decision = F.struct(
        F.col("outcome").alias("type"),
        F.col("decided_epoch").alias("epoch"),
        F.unix_millis("start").alias("start_ms"),
        _decided_ms().alias("decided_ms"),
        F.unix_millis("completed").alias("completed_ms"),
        F.col("decided_coordinator_epoch").alias("coordinator_epoch"),
    )
    ids = ("transactional_id", "coordinator_partition")
    decided = transactions.where(_decided_ms().isNotNull() & (F.col("outcome") != "OPEN")).select(
        "producer_id",
        F.inline("markers"),
        _decided_ms().alias("at_ms"),
        F.struct(*ids).alias("owner"),
        decision.alias("decision"),
    )
    # Only markers of producers with decisions can be odd. Sorting those of all other producers would be most of the work of a
    # report.
    clocks = decided.groupBy(*_PRODUCER).agg(
        F.max("clock_offset_ms").alias("clock_offset_ms"), F.max("clocks_differ_ms").alias("clocks_differ_ms")
    )
    markers = (
        markers_of(producer_spans)
        .join(clocks, on=list(_PRODUCER), how="inner")
        .withColumn("at_ms", F.col("at_ms") - F.col("clock_offset_ms"))
        .drop("clock_offset_ms")
    )
    both = decided.select(*_PRODUCER, "at_ms", "owner", "decision").unionByName(markers, allowMissingColumns=True)
    forth, back = windows.decisions_and_markers(), windows.decisions_and_markers_downwards()
    beside = both.withColumns(
        {
            "before": F.last("decision", ignorenulls=True).over(windows.before_now(forth)),
            "after": F.last("decision", ignorenulls=True).over(windows.before_now(back)),
            "owner": F.coalesce(
                F.last("owner", ignorenulls=True).over(windows.before_now(forth)),
                F.last("owner", ignorenulls=True).over(windows.before_now(back)),
            ),
            "marker_before_ms": F.last(F.when(F.col("marker").isNotNull(), F.col("at_ms")), ignorenulls=True).over(
                windows.before_now(forth)
            ),
        }
    ).where(F.col("marker").isNotNull() & F.col("owner").isNotNull() & F.col("at_ms").isNotNull())
    is_first = F.coalesce(F.col("marker_before_ms") < F.col("before.decided_ms"), F.col("marker_before_ms").isNull())
    suspects = beside.withColumn("is_first", is_first).where(~_is_innocent())
    located = suspects.join(
        broadcast(_history(coordinator_states, coverage)), F.col("owner.coordinator_partition") == F.col("of_partition"), "left"
    )
    facts = F.struct(
        F.col("marker.marker_type").alias("type"),
        F.col("marker.marker_epoch").alias("epoch"),
        F.col("marker.marker_coordinator_epoch").alias("coordinator_epoch"),
        F.col("at_ms").alias("ms"),
        F.col("marker.first_offset").isNotNull().alias("ends_data"),
        "before",
        "after",
        "is_first",
        "complete_since_ms",
        "known_until_ms",
        "clocks_differ_ms",
    )
    return located.select(
        *TOPIC_PARTITION,
        "producer_id",
        "owner.transactional_id",
        F.col("marker.marker_offset").alias("offset"),
        "marker.first_offset",
        facts.alias("marker"),
    )


def _is_innocent() -> Column:
    """Whether this is the first marker after a decision, and matches it, as nearly all markers do."""
    is_newer = F.coalesce(F.col("marker.marker_coordinator_epoch") >= F.col("before.coordinator_epoch"), F.lit(True))
    return agrees("marker", "before") & is_newer & F.col("is_first")


def _history(coordinator_states: DataFrame, coverage: DataFrame) -> DataFrame:
    """The instants between which no record of each coordinator partition is missing."""
    judged = coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & F.col("is_judged")).select(
        F.col("partition").alias("of_partition"),
        F.coalesce(F.greatest("gap_offset", "damaged_offset"), F.lit(0).cast("long")).alias("from_offset"),
        F.unix_millis("known_until").alias("known_until_ms"),
    )
    records = coordinator_states.join(broadcast(judged), F.col("coordinator_partition") == F.col("of_partition"), "inner").where(
        F.col("offset") >= F.col("from_offset")
    )
    return records.groupBy("of_partition").agg(
        F.min(clock_ms("timestamp_ms")).alias("complete_since_ms"), F.first("known_until_ms").alias("known_until_ms")
    )


def undecided_aborts(transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """ABORT markers of no decision, on a partition of a transaction of the producer that is Ongoing."""
    coordinators = coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & F.col("is_judged")).select(
        F.col("partition").alias("coordinator_partition"),
        F.unix_millis("known_until").alias("known_until_ms"),
        clock().alias("coordinator_clock"),
    )
    stamped_by = coverage.where("is_judged").select(*TOPIC_PARTITION, clock().alias("clock"))
    ongoing = (
        transactions.where((F.col("outcome") == "OPEN") & F.col("start").isNotNull())
        .select(
            "producer_id",
            "producer_epoch",
            "transactional_id",
            "coordinator_partition",
            F.unix_millis("start").alias("start_ms"),
            F.inline("partitions"),
        )
        .join(broadcast(coordinators), on="coordinator_partition", how="inner")
        .join(broadcast(_clocks(transactions)), on=["coordinator_partition", *TOPIC_PARTITION], how="left")
        .join(broadcast(stamped_by), on=list(TOPIC_PARTITION), how="left")
    )
    key = [*_PRODUCER, "marker_offset"]
    decided = transactions.select("producer_id", F.inline("markers")).where(F.col("marker_offset").isNotNull()).select(*key)
    written = (
        producer_spans.where((F.col("marker_type") == "ABORT") & F.col("first_offset").isNotNull())
        .select(*key, "marker_epoch", "marker_ms", "first_offset")
        .join(decided, on=key, how="left_anti")
    )
    is_of_epoch = F.col("marker_epoch") == F.col("producer_epoch")
    return written.join(broadcast(ongoing), on=list(_PRODUCER), how="inner").where(is_of_epoch)


def early_writes(transactions: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """Records whose first batch may be older than the transaction that ended them."""
    early = settled(
        transactions.where(F.col("start").isNotNull())
        .select("transactional_id", "producer_id", F.unix_millis("start").alias("began_ms"), F.inline("markers"))
        # On the partition's clock, as far as the two were compared.
        .withColumn("start_ms", F.col("began_ms") + F.col("clock_offset_ms") - F.col("clocks_differ_ms"))
        .where(F.col("first_offset").isNotNull() & (F.col("first_timestamp_ms") < F.col("start_ms")))
        .withColumn("number", F.row_number().over(windows.spans_of_partition()))
        .where(F.col("number") <= _SUSPECTS_OF_PARTITION)
    )
    stamps = markers_of(producer_spans).select(
        *TOPIC_PARTITION, F.col("at_ms").alias("stamp_ms"), F.col("marker.marker_offset").alias("stamp_offset")
    )
    is_between = F.col("stamp_offset").between(F.col("first_offset"), F.col("marker_offset"))
    key = [*TOPIC_PARTITION, "producer_id", "first_offset", "marker_offset", "start_ms"]
    # A log has many markers and few suspects, so the suspects are broadcast.
    oldest = (
        stamps.join(broadcast(early.select(*key)), on=list(TOPIC_PARTITION), how="inner")
        .where(is_between)
        .groupBy(*key)
        .agg(F.min("stamp_ms").alias("stamp_ms"))
    )
    return early.join(oldest, on=key, how="left")
