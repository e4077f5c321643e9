"""The named windows over a log. The only module that imports Window.

They are functions, because a window can only be created in a session.
"""

from __future__ import annotations

from pyspark.sql import Window, WindowSpec
from pyspark.sql import functions as F

from txnlib.spark.schemas import TOPIC_PARTITION


def batches_of_producer() -> WindowSpec:
    """The batches of one producer on one partition, in offset order. `producer_id` comes first: sorting compares it first."""
    return Window.partitionBy("producer_id", *TOPIC_PARTITION).orderBy("base_offset")


def commits_of_producer_downwards() -> WindowSpec:
    """The commits and markers of one producer on one partition, in descending order: what follows a row precedes it here."""
    return Window.partitionBy("producer_id", *TOPIC_PARTITION).orderBy(F.desc("offset"))


def until_now(window: WindowSpec) -> WindowSpec:
    """Everything up to and including the row."""
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def whole(window: WindowSpec) -> WindowSpec:
    """Every row of the group, computed once for all of them."""
    return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def before_now(window: WindowSpec) -> WindowSpec:
    """Everything strictly before the row."""
    return window.rowsBetween(Window.unboundedPreceding, -1)


def markers_of_producer_downwards() -> WindowSpec:
    """The markers of one producer on one partition, the newest first."""
    return Window.partitionBy(*TOPIC_PARTITION, "producer_id").orderBy(F.desc("marker_offset"))


def decisions_of_producer_downwards() -> WindowSpec:
    """The decided transactions of one producer id, the newest first."""
    return Window.partitionBy("producer_id").orderBy(F.desc("last_record_offset"), "transactional_id")


def pieces() -> WindowSpec:
    """The pieces of one leader epoch of a partition in offset order: ranges of offsets, split at points."""
    return Window.partitionBy(*TOPIC_PARTITION, "leader_epoch").orderBy("bucket", "cut")


def pieces_downwards() -> WindowSpec:
    """The same in descending order.

    What follows a row precedes it here. Spark scans a frame that ends in `unboundedFollowing` again for every row, which takes
    quadratic time.
    """
    return Window.partitionBy(*TOPIC_PARTITION, "leader_epoch").orderBy(F.desc("bucket"), F.desc("cut"))


def whole_partition() -> WindowSpec:
    """All copies of one partition."""
    return Window.partitionBy(*TOPIC_PARTITION)


def copies_of_record() -> WindowSpec:
    """The copies of one coordinator record. The highest leader epoch survived; raw files have more fields than text."""
    order = (F.desc_nulls_last("coordinator_epoch"), "lacks_start", "is_other", "source")
    return Window.partitionBy("partition", "offset").orderBy(*order)


def texts_of_coordinator() -> WindowSpec:
    """The console texts with records of one coordinator partition, the newest and longest first."""
    return Window.partitionBy("partition").orderBy(F.desc_nulls_last("newest_ms"), F.desc("records"), "source", "path")


def decisions_and_markers() -> WindowSpec:
    """The coordinators' decisions for one producer on one partition, and its markers there, in time order.

    At the same instant, the decision comes first.
    """
    return Window.partitionBy("producer_id", *TOPIC_PARTITION).orderBy("at_ms", F.col("marker.marker_offset").asc_nulls_first())


def decisions_and_markers_downwards() -> WindowSpec:
    """The same in descending order."""
    return Window.partitionBy("producer_id", *TOPIC_PARTITION).orderBy(
        F.desc("at_ms"), F.col("marker.marker_offset").desc_nulls_last()
    )


def spans_of_partition() -> WindowSpec:
    """Spans of one partition, in offset order."""
    return Window.partitionBy(*TOPIC_PARTITION).orderBy("first_offset")


def step_of_plan() -> WindowSpec:
    """The open transactions that one step of a plan ends. Few rows."""
    return Window.partitionBy("as_of", "action", "transactional_id", "producer_id", "step").orderBy("is_waiting")


def first_of_step(step: WindowSpec) -> WindowSpec:
    """The same, ordered: first the transaction that determines the last stable offset of a partition and blocks most."""
    return step.orderBy("is_waiting", F.desc_nulls_last("blocked_offsets"), *TOPIC_PARTITION, "start_offset")


def plan_in_order() -> WindowSpec:
    """All open transactions that need an operator; those that block consumers most come first. Few rows."""
    return Window.partitionBy("as_of").orderBy(
        "is_idle",
        "is_waiting",
        "action_order",
        F.desc_nulls_last("blocked_offsets"),
        "blocks_since",
        *TOPIC_PARTITION,
        "producer_id",
        "start_offset",
    )


def records_of_coordinator() -> WindowSpec:
    """The records of one coordinator partition, in offset order."""
    return Window.partitionBy("partition").orderBy("offset")


def records_of_id() -> WindowSpec:
    """The records of one transactional id, in offset order."""
    return Window.partitionBy("coordinator_partition", "transactional_id").orderBy("offset")


def metadata_records() -> WindowSpec:
    """The records of the cluster's metadata log in all copies, in offset order, the newest leader epoch first.

    None of them has a `snapshot_offset`, so they are one group. By a constant there would be no group for Spark, which warns then.
    """
    return Window.partitionBy("snapshot_offset").orderBy("offset", F.desc("epoch"), F.desc("last_offset"), "source", "path")


def metadata_records_of_run() -> WindowSpec:
    """The records of one unbroken run of the metadata log, in offset order."""
    return Window.partitionBy("run").orderBy("offset", F.desc("epoch"), F.desc("last_offset"), "source", "path")


def metadata_records_of_run_downwards() -> WindowSpec:
    """The same in descending order."""
    return Window.partitionBy("run").orderBy(F.desc("offset"), "epoch", "last_offset", F.desc("source"), F.desc("path"))


def copies_of_metadata_record() -> WindowSpec:
    """The copies of one metadata record, the one to use first. Raw files come before text, which an old tool may have printed."""
    return Window.partitionBy("snapshot_offset", "offset").orderBy(F.desc("survives"), F.desc("last_offset"), "source", "path")


def changes_of_partition() -> WindowSpec:
    """The metadata records of one partition, in order; the state in a snapshot comes after the records that led to it."""
    return Window.partitionBy("topic_id", "partition_id").orderBy("at_offset", "is_in_snapshot")


def changes_since_partition_record() -> WindowSpec:
    """The changes of one partition since the last record that contains all of its state."""
    return Window.partitionBy("topic_id", "partition_id", "base").orderBy("at_offset", "is_in_snapshot")


def states_of_assignment() -> WindowSpec:
    """The states of one partition, in order."""
    return Window.partitionBy("topic_id", "partition").orderBy("at_offset")


def changes_of_setting() -> WindowSpec:
    """The values of one setting, in order."""
    return Window.partitionBy("scope", "scope_name", "name").orderBy("at_offset", "is_in_snapshot")


def assignments_of_partition() -> WindowSpec:
    """The stored states of one partition of one topic id, in order; what only a snapshot shows comes first."""
    return Window.partitionBy("topic_id", *TOPIC_PARTITION).orderBy(F.col("since_offset").asc_nulls_first())


def sessions_of_broker() -> WindowSpec:
    """The stored states of one broker, in order; what only a snapshot shows comes first."""
    return Window.partitionBy("broker_id").orderBy(F.col("since_offset").asc_nulls_first())


def values_of_setting() -> WindowSpec:
    """The stored values of one setting, in order; what only a snapshot shows comes first."""
    return Window.partitionBy("scope", "scope_name", "name").orderBy(F.col("since_offset").asc_nulls_first())


def changes_of_broker() -> WindowSpec:
    """The metadata records of one broker, in order."""
    return Window.partitionBy("broker_id").orderBy("at_offset", "is_in_snapshot")


def blocks_of_producer_ids() -> WindowSpec:
    """The blocks of producer ids, in the order in which they were given out. Few rows."""
    return Window.partitionBy("type").orderBy("at_offset", "is_in_snapshot")
