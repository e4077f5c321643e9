"""Partitions that only grew since the earlier run. Their producer state is resumed.

A partition that lost its beginning is another log to the windows: what they remembered of it a full audit would not know.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.spark.producers.producer_spans import with_snapshot
from txnlib.spark.schemas import COPY, PRODUCER_SNAPSHOTS

#: Of a grown partition: its judged copy, and the offset from which on its batches are new.
GROWN: Final = "topic string, partition int, source string, grows_at long"
_SEGMENT: Final = (*COPY, "segment_base_offset")
#: What tells where the windows begin, and with what.
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
    """One row per partition whose judged copy holds all batches of the run before, and new ones behind them. Columns: GROWN.

    `continued`: the segments that are read on (`continued_segments.CONTINUED`).
    """
    held = _held_copies(earlier_segments, continued)
    grew = _only_grew(segments, earlier_segments, held)
    origin, before = _origins(coverage, producer_snapshots), _origins(earlier_coverage, earlier_snapshots)
    is_same = reduce(and_, [F.col(name).eqNullSafe(F.col(f"{name}_before")) for name in _ORIGIN])
    known = before.withColumnsRenamed({name: f"{name}_before" for name in _ORIGIN})
    is_behind = F.coalesce(F.col("snapshot_offset") <= F.col("grows_at"), F.lit(True))
    same = origin.join(known, on=list(COPY), how="inner").where(is_same)
    return same.join(grew, on=list(COPY), how="inner").where(is_behind).select(*COPY, "grows_at")


def _held_copies(earlier_segments: DataFrame, continued: DataFrame) -> DataFrame:
    """The copies of which every segment is read on behind its last batch: COPY, newest_segment, grows_at."""
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


def _only_grew(segments: DataFrame, earlier_segments: DataFrame, held: DataFrame) -> DataFrame:
    """Those of the copies whose new batches all lie behind the known ones: COPY, grows_at."""
    ends = earlier_segments.select(*_SEGMENT, F.col("end_offset").alias("known_end"))
    told = segments.join(F.broadcast(held), on=list(COPY), how="inner").join(ends, on=list(_SEGMENT), how="left")
    is_newest = F.col("segment_base_offset") == F.col("newest_segment")
    is_new = F.col("known_end").isNull() & F.coalesce(F.col("first_offset") >= F.col("grows_at"), F.lit(True))
    is_as_it_was = F.col("end_offset") == F.col("known_end")
    fits = F.coalesce(is_newest | is_new | is_as_it_was, F.lit(False))
    grew = told.groupBy(*COPY).agg((F.bool_and(fits) & _is_each_once()).alias("fits"), F.max("grows_at").alias("grows_at"))
    return grew.where("fits").drop("fits")


def _is_each_once() -> Column:
    """Whether no segment of a copy was given twice, tonight or before."""
    return F.count("*") == F.size(F.collect_set("segment_base_offset"))


def _origins(coverage: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """Of each judged copy where the windows begin, and a fingerprint of the snapshot they begin with: COPY, begins_at,
    snapshot_offset, producers, print."""
    judged = with_snapshot(coverage.where("is_judged"), producer_snapshots)
    prints = producer_snapshots.groupBy(*COPY, "snapshot_offset").agg(
        F.count("*").alias("producers"), F.bit_xor(F.xxhash64(*_OF_PRODUCERS)).alias("print")
    )
    return judged.join(prints, on=[*COPY, "snapshot_offset"], how="left")
