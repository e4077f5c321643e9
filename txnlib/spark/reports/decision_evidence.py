"""Coordinator decisions for producers of open transactions, and their markers elsewhere."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.kafka.transaction_state import COMPLETE_STATES
from txnlib.spark.instants import clock_ms, is_shown, latest_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import OPEN_TRANSACTION

_COMPLETE: Final = [state.kafka_name for state in COMPLETE_STATES]
#: Maximum number of partitions in a row.
SIBLINGS_SHOWN: Final = 20


def decisions(opened: DataFrame, transactions: DataFrame) -> DataFrame:
    """One row per open transaction whose producer id has a decided transaction that lists, or may list, the partition.

    `opened`: OPEN_TRANSACTION, marker_before. Columns: the identity; ended_at_ms, last_prepared_ms and is_end_untimed over all
    decided transactions; `decision`, the newest decision; `commit_due`, the newest COMMIT without a known marker here that is newer
    than the newest decision with one; clocks_differ_ms.
    """
    ended = transactions.where(F.col("outcome") != "OPEN").select(
        "producer_id",
        "outcome",
        "state",
        "decided_epoch",
        F.col("decided_coordinator_epoch").alias("coordinator_epoch"),
        F.col("producer_epoch").alias("first_epoch"),
        "transaction_version",
        "partitions",
        "markers",
        "last_record_offset",
        F.unix_millis("start").alias("start_ms"),
        F.unix_millis("prepared").alias("prepared_ms"),
        F.unix_millis("completed").alias("completed_ms"),
        (F.unix_millis("start") + F.col("time_to_decide_ms")).alias("said_ms"),
        (F.col("first_record_offset") == F.col("last_record_offset")).alias("is_last_record_only"),
    )
    here = F.struct("topic", "partition")
    # If only the last record of a transaction is left, its partitions are unknown: this may have been one of them.
    lists_it = F.coalesce(F.array_contains("partitions", here), F.lit(True))
    placed = F.try_element_at(F.filter("markers", _is_here), F.lit(1))
    about = (
        opened.select(*OPEN_TRANSACTION, "marker_before")
        .join(ended, on="producer_id", how="inner")
        .where(lists_it)
        .withColumns({"placed": placed, "lists_partition": F.col("partitions").isNotNull()})
        .withColumn("differ_ms", F.coalesce("placed.clocks_differ_ms", F.lit(UNKNOWN_CLOCKS_DIFFER_MS).cast("long")))
    )
    # Markers are matched by time: one without a time may belong to any decision.
    is_untimed = F.coalesce(~is_shown("marker_before.ms"), F.lit(False))
    is_marked = (
        F.when(F.col("placed.marker_offset").isNotNull(), F.lit(True))
        .when(F.col("placed").isNotNull() & ~is_untimed, F.lit(False))
        .otherwise(_seems_marked())
    )
    matched = about.withColumn("is_marked", is_marked).withColumn(
        "decided",
        F.struct(
            F.col("outcome").alias("type"),
            F.coalesce("decided_epoch", F.when(F.col("is_last_record_only"), F.col("first_epoch"))).alias("producer_epoch"),
            "coordinator_epoch",
            F.coalesce("said_ms", "prepared_ms", "completed_ms").alias("decided_ms"),
            "completed_ms",
            "transaction_version",
            "is_marked",
            "lists_partition",
        ),
    )
    newest_marked = F.max(F.when(F.col("is_marked"), F.col("last_record_offset")))
    of_commit = F.when((F.col("outcome") == "COMMIT") & ~F.coalesce("is_marked", F.lit(False)), F.col("last_record_offset"))
    summed = matched.groupBy(*OPEN_TRANSACTION).agg(
        F.max(F.greatest("prepared_ms", "completed_ms")).alias("ended_at_ms"),
        F.max("prepared_ms").alias("last_prepared_ms"),
        F.bool_or(F.col("completed_ms").isNull() & (F.col("state").isin(_COMPLETE) | F.col("prepared_ms").isNull())).alias(
            "is_end_untimed"
        ),
        F.max_by("decided", "last_record_offset").alias("decision"),
        F.max_by("differ_ms", "last_record_offset").alias("clocks_differ_ms"),
        F.max_by("decided", of_commit).alias("last_commit"),
        F.max(of_commit).alias("commit_offset"),
        newest_marked.alias("marked_offset"),
    )
    is_due = F.coalesce(F.col("commit_offset") > F.col("marked_offset"), F.col("commit_offset").isNotNull())
    return summed.withColumn("commit_due", F.when(is_due, F.col("last_commit"))).drop(
        "last_commit", "commit_offset", "marked_offset"
    )


def _is_here(marker: Column) -> Column:
    return (marker["topic"] == F.col("topic")) & (marker["partition"] == F.col("partition"))


def _seems_marked() -> Column:
    """Whether the marker before the open records may belong to a decision whose Prepare record is lost; NULL if unknown."""
    marker = F.col("marker_before")
    epoch = F.coalesce("decided_epoch", F.when(F.col("is_last_record_only"), F.col("first_epoch")))
    is_possible = (
        marker.isNotNull()
        & F.coalesce(marker["type"] == F.col("outcome"), F.lit(True))
        & F.coalesce(marker["epoch"] == epoch, F.lit(True))
    )
    latest = F.coalesce(F.col("completed_ms"), F.lit(1 << 60)) + F.col("differ_ms")
    marker_ms = clock_ms(marker["ms"])
    is_timely = (marker_ms >= F.col("start_ms")) & (marker_ms <= latest)
    return F.when(F.coalesce(is_possible & is_timely, F.lit(False)), F.lit(True)).when(
        F.col("lists_partition") & marker_ms.isNotNull() & (marker_ms < F.col("start_ms") - F.col("differ_ms")), F.lit(False)
    )


def siblings(opened: DataFrame, producer_spans: DataFrame, transactions: DataFrame) -> DataFrame:
    """Per open transaction, what the markers of its producer on all partitions show.

    Columns: newest_marker_ms, over the markers that no known transaction explains; newest_commit, over the COMMIT markers among
    them; commits_elsewhere, one struct per other partition with a COMMIT marker: its name, committed_ms of the newest one, and
    unexplained_ms of the newest unexplained one.
    `opened`: OPEN_TRANSACTION, state.
    """
    written = producer_spans.where(F.col("marker_offset").isNotNull()).select(
        "producer_id",
        F.col("topic").alias("of_topic"),
        F.col("partition").alias("of_partition"),
        "marker_offset",
        "marker_type",
        "marker_epoch",
        "marker_coordinator_epoch",
        "marker_ms",
    )
    keys = broadcast(opened.select(*OPEN_TRANSACTION, F.col("state.producer_epoch").alias("epoch")))
    explained = (
        transactions.join(broadcast(opened.select("producer_id").distinct()), on="producer_id", how="left_semi")
        .where(F.col("partitions").isNotNull())
        .select("producer_id", F.inline("markers"))
        .where(F.col("marker_offset").isNotNull())
        .select(
            "producer_id",
            F.col("topic").alias("of_topic"),
            F.col("partition").alias("of_partition"),
            "marker_offset",
            F.lit(True).alias("is_explained"),
        )
        .distinct()
    )
    key = ["producer_id", "of_topic", "of_partition", "marker_offset"]
    joined = written.join(keys, on="producer_id", how="inner").join(broadcast(explained), on=key, how="left")
    is_elsewhere = (F.col("of_topic") != F.col("topic")) | (F.col("of_partition") != F.col("partition"))
    is_commit = is_elsewhere & (F.col("marker_type") == "COMMIT") & (F.col("marker_epoch") >= F.col("epoch"))
    stamp = F.struct(latest_ms("marker_ms").alias("ms"), F.col("marker_coordinator_epoch").alias("coordinator_epoch"))
    is_unexplained = F.col("is_explained").isNull()
    of_siblings = joined.groupBy(*OPEN_TRANSACTION, "of_topic", "of_partition").agg(
        F.max(F.when(is_unexplained, latest_ms("marker_ms"))).alias("marker_ms"),
        F.max(F.when(is_unexplained & (F.col("marker_type") == "COMMIT"), stamp)).alias("commit"),
        F.bool_or(is_commit).alias("is_committed"),
        F.max(F.when(is_commit, F.coalesce(clock_ms("marker_ms"), F.lit(NO_INSTANT_MS)))).alias("committed_ms"),
        F.max(F.when(is_commit & is_unexplained, latest_ms("marker_ms"))).alias("unexplained_ms"),
    )
    elsewhere = F.struct(F.concat_ws("-", "of_topic", "of_partition").alias("partition"), "committed_ms", "unexplained_ms")
    return of_siblings.groupBy(*OPEN_TRANSACTION).agg(
        F.max("marker_ms").alias("newest_marker_ms"),
        F.max("commit").alias("newest_commit"),
        F.collect_list(F.when(F.col("is_committed"), elsewhere)).alias("commits_elsewhere"),
    )


def sibling_commit_ms() -> Column:
    """Time of the newest unexplained COMMIT marker elsewhere, since the open records may have begun; in ms."""
    newest = F.array_max(F.transform("commits_elsewhere", lambda commit: commit["unexplained_ms"]))
    return F.when(F.coalesce(newest >= _earliest(), F.lit(True)), newest)


def committed_siblings() -> Column:
    """Names of the other partitions with a COMMIT marker since the open records may have begun."""
    since = F.filter("commits_elsewhere", lambda commit: F.coalesce(commit["committed_ms"] >= _earliest(), F.lit(True)))
    return F.slice(F.sort_array(F.transform(since, lambda commit: commit["partition"])), 1, SIBLINGS_SHOWN)


def _earliest() -> Column:
    """The open records are not older than this, by any broker's clock; in ms."""
    return F.col("stamped_before_ms") - UNKNOWN_CLOCKS_DIFFER_MS
