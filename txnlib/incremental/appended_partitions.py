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

from txnlib.spark.producers.producer_spans import with_snapshot
from txnlib.spark.schemas import COPY, PRODUCER_SNAPSHOTS

#: For each such partition: its judged copy, and the offset from which its batches are new.
GROWN: Final = "topic string, partition int, source string, grows_at long"
_SEGMENT: Final = (*COPY, "segment_base_offset")
#: Columns that describe where the windows begin, and with which state.
_ORIGIN: Final = ("begins_at", "snapshot_offset", "truncated", "producers", "print")
_OF_PRODUCERS: Final = [name for name in PRODUCER_SNAPSHOTS.names if name not in (*COPY, "path")]


def grown_partitions(
    segments: DataFrame,
    coverage: DataFrame,
    producer_snapshots: DataFrame,
    earlier_segments: DataFrame,
    earlier_coverage: DataFrame,
    earlier_snapshots: DataFrame,
    continued: DataFrame,
) -> DataFrame:
    """One row per partition whose judged copy has all batches of the earlier run and new ones only after them. Columns: GROWN.

    `continued`: the segments from which only appended bytes are read (`resumed_segments.CONTINUED`).
    """
    complete = _complete_copies(earlier_segments, continued)
    grew = _only_grew(segments, earlier_segments, complete)
    origin, before = _origins(coverage, producer_snapshots), _origins(earlier_coverage, earlier_snapshots)
    is_same = reduce(and_, [F.col(name).eqNullSafe(F.col(f"{name}_before")) for name in _ORIGIN])
    earlier_origin = before.withColumnsRenamed({name: f"{name}_before" for name in _ORIGIN})
    is_behind = F.coalesce(F.col("snapshot_offset") <= F.col("grows_at"), F.lit(True))
    same = origin.join(earlier_origin, on=list(COPY), how="inner").where(is_same)
    return same.join(grew, on=list(COPY), how="inner").where(is_behind).select(*COPY, "grows_at")


def _complete_copies(earlier_segments: DataFrame, continued: DataFrame) -> DataFrame:
    """The copies whose segments are all read only after their last known batch. Columns: COPY, newest_segment, grows_at."""
    last = F.element_at("landmarks", -1)["position"]
    read_on = continued.select(*_SEGMENT, F.col("position").alias("read_from"))
    is_whole = F.coalesce(F.col("read_from") > last, F.lit(False))
    return (
        earlier_segments.join(F.broadcast(read_on), on=list(_SEGMENT), how="left")
        .groupBy(*COPY)
        .agg(
            F.bool_and(is_whole).alias("is_held"),
            F.max("segment_base_offset").alias("newest_segment"),
            F.max("end_offset").alias("grows_at"),
            F.max_by("end_offset", "segment_base_offset").alias("newest_end"),
        )
        .where(F.col("is_held") & (F.col("grows_at") == F.col("newest_end")))
        .drop("is_held", "newest_end")
    )


def _only_grew(segments: DataFrame, earlier_segments: DataFrame, complete: DataFrame) -> DataFrame:
    """The copies among these whose new batches all come after the known ones. Columns: COPY, grows_at."""
    ends = earlier_segments.select(*_SEGMENT, F.col("end_offset").alias("known_end"))
    joined = segments.join(F.broadcast(complete), on=list(COPY), how="inner").join(ends, on=list(_SEGMENT), how="left")
    is_newest = F.col("segment_base_offset") == F.col("newest_segment")
    is_new = F.col("known_end").isNull() & F.coalesce(F.col("first_offset") >= F.col("grows_at"), F.lit(True))
    is_as_it_was = F.col("end_offset") == F.col("known_end")
    fits = F.coalesce(is_newest | is_new | is_as_it_was, F.lit(False))
    grew = joined.groupBy(*COPY).agg((F.bool_and(fits) & _is_each_once()).alias("fits"), F.max("grows_at").alias("grows_at"))
    return grew.where("fits").drop("fits")


def _is_each_once() -> Column:
    """Whether each segment of a copy is listed only once, in this run and in the earlier one."""
    return F.count("*") == F.size(F.collect_set("segment_base_offset"))


def _origins(coverage: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """Where the windows begin for each judged copy, and a fingerprint of the snapshot with which they begin.

    Columns: COPY, begins_at, snapshot_offset, truncated, producers, print.
    """
    judged = with_snapshot(coverage.where("is_judged"), producer_snapshots)
    prints = producer_snapshots.groupBy(*COPY, "snapshot_offset").agg(
        F.count("*").alias("producers"), F.bit_xor(F.xxhash64(*_OF_PRODUCERS)).alias("print")
    )
    return judged.join(prints, on=[*COPY, "snapshot_offset"], how="left")
