"""Partitions to which batches were only appended since the earlier run. Their producer state is resumed.

A partition whose log start has moved is a different log to the windows: a full audit would not know what the windows remembered
from its former beginning.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.spark.joins import broadcast
from txnlib.spark.producers.producer_spans import with_snapshot
from txnlib.spark.schemas import COPY, PRODUCER_SNAPSHOTS

#: For each such partition: its judged copy, and the offset from which its batches are new.
APPENDED: Final = "topic string, partition int, source string, appended_from long"
#: One such row.
AppendedPartition = tuple[str, int, str, int]
_SEGMENT: Final = (*COPY, "segment_base_offset")
#: Columns that describe where the windows begin, and with which state.
_ORIGIN: Final = ("begins_at", "snapshot_offset", "truncated", "producers", "fingerprint")
_OF_PRODUCERS: Final = [name for name in PRODUCER_SNAPSHOTS.names if name not in (*COPY, "path")]


def appended_partitions(
    segments: DataFrame,
    coverage: DataFrame,
    producer_snapshots: DataFrame,
    earlier_segments: DataFrame,
    earlier_coverage: DataFrame,
    earlier_snapshots: DataFrame,
    resumed: DataFrame,
) -> DataFrame:
    """One row per partition whose judged copy has all batches of the earlier run and new ones only after them. Columns: APPENDED.

    `resumed`: the segments of which only appended bytes are read (`resumed_segments.RESUMED`).
    """
    complete = _complete_copies(earlier_segments, resumed)
    appended = _only_appended(segments, earlier_segments, complete)
    origin, before = _origins(coverage, producer_snapshots), _origins(earlier_coverage, earlier_snapshots)
    is_same = reduce(and_, [F.col(name).eqNullSafe(F.col(f"{name}_before")) for name in _ORIGIN])
    earlier_origin = before.withColumnsRenamed({name: f"{name}_before" for name in _ORIGIN})
    is_snapshot_known = F.coalesce(F.col("snapshot_offset") <= F.col("appended_from"), F.lit(True))
    same = origin.join(earlier_origin, on=list(COPY), how="inner").where(is_same)
    return same.join(appended, on=list(COPY), how="inner").where(is_snapshot_known).select(*COPY, "appended_from")


def _complete_copies(earlier_segments: DataFrame, resumed: DataFrame) -> DataFrame:
    """The copies whose segments are all read only after their last known batch. Columns: COPY, newest_segment, appended_from."""
    last = F.element_at("landmarks", -1)["position"]
    read_from = resumed.select(*_SEGMENT, F.col("position").alias("read_from"))
    is_resumed_at_end = F.coalesce(F.col("read_from") > last, F.lit(False))
    return (
        earlier_segments.join(broadcast(read_from), on=list(_SEGMENT), how="left")
        .groupBy(*COPY)
        .agg(
            F.bool_and(is_resumed_at_end).alias("is_complete"),
            F.max("segment_base_offset").alias("newest_segment"),
            F.max("end_offset").alias("appended_from"),
            F.max_by("end_offset", "segment_base_offset").alias("newest_end"),
        )
        .where(F.col("is_complete") & (F.col("appended_from") == F.col("newest_end")))
        .drop("is_complete", "newest_end")
    )


def _only_appended(segments: DataFrame, earlier_segments: DataFrame, complete: DataFrame) -> DataFrame:
    """The copies among these whose new batches all come after the known ones. Columns: COPY, appended_from."""
    ends = earlier_segments.select(*_SEGMENT, F.col("end_offset").alias("known_end"))
    joined = segments.join(broadcast(complete), on=list(COPY), how="inner").join(ends, on=list(_SEGMENT), how="left")
    is_newest = F.col("segment_base_offset") == F.col("newest_segment")
    is_new = F.col("known_end").isNull() & F.coalesce(F.col("first_offset") >= F.col("appended_from"), F.lit(True))
    is_unchanged = F.col("end_offset") == F.col("known_end")
    fits = F.coalesce(is_newest | is_new | is_unchanged, F.lit(False))
    copies = joined.groupBy(*COPY).agg(
        (F.bool_and(fits) & _is_each_once()).alias("fits"), F.max("appended_from").alias("appended_from")
    )
    return copies.where("fits").drop("fits")


def _is_each_once() -> Column:
    """Whether each segment of a copy is listed only once, in this run and in the earlier one."""
    return F.count("*") == F.size(F.collect_set("segment_base_offset"))


def _origins(coverage: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """Where the windows begin for each judged copy, and a fingerprint of the snapshot with which they begin.

    Columns: COPY, begins_at, snapshot_offset, truncated, producers, fingerprint.
    """
    judged = with_snapshot(coverage.where("is_judged"), producer_snapshots)
    fingerprints = producer_snapshots.groupBy(*COPY, "snapshot_offset").agg(
        F.count("*").alias("producers"), F.bit_xor(F.xxhash64(*_OF_PRODUCERS)).alias("fingerprint")
    )
    return judged.join(fingerprints, on=[*COPY, "snapshot_offset"], how="left")
