"""Tables with rows carried over from the earlier run, and their new rows."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from txnlib.incremental.appended_partitions import APPENDED, AppendedPartition
from txnlib.incremental.carried_rows import CarriedRows, ResumedTable, RunTables
from txnlib.incremental.resumed_segments import changed_segments, flag_batches, resumed_frame
from txnlib.incremental.resumed_spans import flag_closed_spans, flag_ended_transactions, not_ended_before, resumed_spans
from txnlib.readers.capture import Capture
from txnlib.spark.capture_source import read_capture
from txnlib.spark.producers.partition_transactions import partition_transactions
from txnlib.spark.schemas import TOPIC_PARTITION

Partitions = frozenset[tuple[str, int]]


def resume_record_batches(spark: SparkSession, capture: Capture, earlier: RunTables) -> ResumedTable:
    """`record_batches`: the unchanged batches of resumed segments are carried over, all others are read."""
    resumed = resumed_frame(spark, capture)
    changed = _partitions_of(changed_segments(earlier.read("segments"), resumed))
    return ResumedTable(
        new=read_capture(spark, capture, "record_batches"),
        carried=CarriedRows(earlier, partial(flag_batches, resumed=resumed), changed),
    )


def resume_producer_spans(
    spark: SparkSession,
    capture: Capture,
    earlier: RunTables,
    tables: RunTables,
    appended: tuple[AppendedPartition, ...],
    new_batches: DataFrame,
) -> ResumedTable:
    """`producer_spans`: the closed spans of appended partitions are carried over, the windows resume after them.

    `tables`: those of this run. `new_batches`: the rows of `record_batches` that were not carried over in linked files.
    """
    partitions = _appended(appended)
    # In all other partitions every batch is new, unless the run resumed some of their segments.
    are_all_new = all((each.topic, each.partition) in partitions for each in capture.resumed)
    frame = spark.createDataFrame(appended, APPENDED)
    return ResumedTable(
        new=resumed_spans(
            new_batches if are_all_new else tables.read("record_batches"),
            new_batches,
            tables.read("producer_snapshots"),
            tables.read("coverage"),
            earlier.read("producer_spans"),
            frame,
        ),
        carried=CarriedRows(
            earlier,
            partial(flag_closed_spans, appended=frame),
            _others(earlier, appended),
            partition_values={"is_newest": "false"},
        ),
    )


def resume_partition_transactions(
    spark: SparkSession, earlier: RunTables, appended: tuple[AppendedPartition, ...], new_spans: DataFrame
) -> ResumedTable:
    """`partition_transactions`: those that had ended in appended partitions are carried over.

    `new_spans`: the rows of `producer_spans` that were not carried over in linked files.
    """
    frame = spark.createDataFrame(appended, APPENDED)
    return ResumedTable(
        new=partition_transactions(not_ended_before(new_spans, frame)),
        carried=CarriedRows(
            earlier, partial(flag_ended_transactions, appended=frame), _others(earlier, appended), not_null=("marker_offset",)
        ),
    )


def _others(earlier: RunTables, appended: tuple[AppendedPartition, ...]) -> Partitions:
    """The partitions of the earlier run that have changed other than by appended batches."""
    return _partitions_of(earlier.read("coverage")) - _appended(appended)


def _appended(appended: tuple[AppendedPartition, ...]) -> Partitions:
    return frozenset((topic, partition) for topic, partition, *_ in appended)


def _partitions_of(rows: DataFrame) -> Partitions:
    found = rows.select(*TOPIC_PARTITION).distinct().collect()
    return frozenset((row["topic"], row["partition"]) for row in found)
