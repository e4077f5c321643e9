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


def until_now(window: WindowSpec) -> WindowSpec:
    """Everything up to and including the row."""
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def whole(window: WindowSpec) -> WindowSpec:
    """Every row of the group, computed once for all of them."""
    return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def before_now(window: WindowSpec) -> WindowSpec:
    """Everything strictly before the row."""
    return window.rowsBetween(Window.unboundedPreceding, -1)


def pieces() -> WindowSpec:
    """The pieces of one leader epoch of a partition in offset order: ranges of offsets, split at points."""
    return Window.partitionBy(*TOPIC_PARTITION, "leader_epoch").orderBy("block", "cut")


def pieces_downwards() -> WindowSpec:
    """The same in descending order.

    What follows a row precedes it here. Spark scans a frame that ends in `unboundedFollowing` again for every row, which takes
    quadratic time.
    """
    return Window.partitionBy(*TOPIC_PARTITION, "leader_epoch").orderBy(F.desc("block"), F.desc("cut"))


def ids_of_application() -> WindowSpec:
    """All transactional ids of one application."""
    return Window.partitionBy("application")


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


def open_on_partition() -> WindowSpec:
    """The open transactions of one partition, the one that blocks it first."""
    return Window.partitionBy(*TOPIC_PARTITION).orderBy("start_offset", "producer_id", "transactional_id")


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
