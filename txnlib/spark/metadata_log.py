"""`metadata_log`: the records of `__cluster_metadata`, and which of them count.

The state of the cluster follows from one unbroken run of records: from the newest complete snapshot, or from offset 0, up to the
first record that is missing. Records before that snapshot count as history if they belong to the same run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.verdicts.known_metadata import MetadataReach
from txnlib.spark import windows
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import METADATA_LOG, conform

_MARKS: Final = (MetadataType.BEGIN_TRANSACTION, MetadataType.END_TRANSACTION, MetadataType.ABORT_TRANSACTION)


def metadata_log(records: DataFrame) -> DataFrame:
    """The records of all copies, each with `is_effective`. Columns: METADATA_LOG.

    `records`: what the readers yield. Of several copies of one record, one is effective. Kafka: `QuorumController`, its
    transactions (KIP-868), `RecordsSnapshotReader`.
    """
    snapshot = _newest_snapshot(records)
    log = _with_marks(_with_runs(records.where(F.col("snapshot_offset").isNull())))
    known = _known_run(log, snapshot)
    is_ended = F.coalesce(F.col("mark_after") == MetadataType.END_TRANSACTION.value, F.lit(False))
    is_aborted = F.col("mark").isNull() & (F.col("mark_before") == MetadataType.BEGIN_TRANSACTION.value) & ~is_ended
    is_counted = F.col("is_first") & (F.col("run") == F.col("known_run")) & ~F.coalesce(is_aborted, F.lit(False))
    of_log = log.join(broadcast(known)).withColumn("is_effective", F.coalesce(is_counted, F.lit(False)))
    is_newest = F.struct("snapshot_offset", "path") == F.col("newest")
    of_snapshots = (
        records.where(F.col("snapshot_offset").isNotNull())
        .join(broadcast(snapshot))
        .withColumn("is_effective", F.coalesce(is_newest, F.lit(False)))
    )
    return conform(of_log.unionByName(of_snapshots, allowMissingColumns=True), METADATA_LOG)


def effective(metadata_log: DataFrame, types: Collection[MetadataType]) -> DataFrame:
    """The records of these types that count."""
    return metadata_log.where(F.col("is_effective") & F.col("type").isin(*(each.value for each in types)))


def reach(metadata_log: DataFrame) -> MetadataReach:
    """How far the records reach that count, and those of any copy."""
    counts, is_in_snapshot = F.col("is_effective"), F.col("snapshot_offset").isNotNull()
    at_offset = F.coalesce(F.col("snapshot_offset") - 1, F.col("last_offset"))
    found = metadata_log.agg(
        F.max(F.when(counts, clock_ms("timestamp_ms"))).alias("known_ms"),
        F.max(F.when(counts, at_offset)).alias("last_offset"),
        F.bool_or(counts & (F.col("type") == MetadataType.NO_OP.value)).alias("has_no_ops"),
        F.bool_or(counts & (is_in_snapshot | (F.col("offset") == 0))).alias("is_complete"),
        F.max(F.when(~is_in_snapshot, F.col("last_offset"))).alias("end"),
    ).first()
    return MetadataReach() if found is None else MetadataReach(**found.asDict())


def _newest_snapshot(records: DataFrame) -> DataFrame:
    """One row: `newest`, the offset and the path of the newest snapshot that is complete; NULL if there is none."""
    files = (
        records.where(F.col("snapshot_offset").isNotNull())
        .groupBy("snapshot_offset", "path")
        .agg(
            F.min_by("type", "offset").alias("first_type"),
            F.max_by("type", "offset").alias("last_type"),
            F.sum(F.col("last_offset") - F.col("offset") + 1).alias("count"),
            (F.max("last_offset") - F.min("offset") + 1).alias("length"),
        )
    )
    is_whole = (
        (F.col("first_type") == MetadataType.SNAPSHOT_HEADER.value)
        & (F.col("last_type") == MetadataType.SNAPSHOT_FOOTER.value)
        & (F.col("count") == F.col("length"))
    )
    return files.where(is_whole).agg(F.max(F.struct("snapshot_offset", "path")).alias("newest"))


def _with_runs(log: DataFrame) -> DataFrame:
    """Each record with the number of its unbroken run, and whether it is the first copy of itself that no later leader replaced.

    Leader epochs never fall as offsets rise: what follows a higher one at a lower offset was truncated.
    """
    ordered = windows.metadata_records()
    epoch = F.coalesce("controller_epoch", F.lit(-1))
    survives = log.withColumn("epoch", epoch).withColumn(
        "survives", F.col("epoch") >= F.max("epoch").over(windows.until_now(ordered))
    )
    end = F.max(F.when(F.col("survives"), F.col("last_offset"))).over(windows.before_now(ordered))
    starts = F.col("survives") & (F.col("offset") > end + 1)
    runs = survives.withColumn("starts", F.coalesce(starts.cast("int"), F.lit(0)))
    return runs.withColumns(
        {
            "run": F.sum("starts").over(windows.until_now(ordered)),
            "is_first": F.col("survives") & (F.row_number().over(windows.copies_of_metadata_record()) == 1),
        }
    )


def _with_marks(log: DataFrame) -> DataFrame:
    """Each record with the nearest begin or end of a controller transaction before and after it."""
    mark = F.when(F.col("is_first") & F.col("type").isin(*(each.value for each in _MARKS)), F.col("type"))
    marked = log.withColumn("mark", mark)
    return marked.withColumns(
        {
            "mark_before": F.last("mark", ignorenulls=True).over(windows.before_now(windows.metadata_records_of_run())),
            "mark_after": F.last("mark", ignorenulls=True).over(windows.before_now(windows.metadata_records_of_run_downwards())),
        }
    )


def _known_run(log: DataFrame, snapshot: DataFrame) -> DataFrame:
    """One row: `known_run`, the run from which the state follows; NULL if no run continues the newest snapshot.

    Without a snapshot: the run from offset 0, else the newest one, whose beginning is unknown.
    """
    extents = log.where("survives").groupBy("run").agg(F.min("offset").alias("first"), F.max("last_offset").alias("last"))
    at = F.col("newest.snapshot_offset")
    goes_on = (F.col("first") <= at) & (F.col("last") >= at - 1)
    rank = F.when(at.isNotNull(), F.when(goes_on, 1)).when(F.col("first") == 0, 2).otherwise(1)
    ranked = extents.join(broadcast(snapshot)).withColumn("rank", rank).where("rank IS NOT NULL")
    return ranked.agg(F.max_by("run", F.struct("rank", "run")).alias("known_run"))
