"""`producer_spans` resumed from the earlier run: the windows run over new batches only.

The row of each producer's newest span contains the state that the windows remembered in the earlier run. A closed span
never changes. So the rows of the whole log are the unchanged rows of closed spans, and the rows that the windows make
of new batches, starting from that state.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import PRODUCER_ID_EXPIRATION_MS
from txnlib.spark.joins import broadcast, with_columns
from txnlib.spark.producers.producer_spans import (
    END_OF_SPAN,
    IS_NEWEST,
    batches_of,
    located_spans,
    read_batches_of,
    spans_of,
    with_snapshot,
)
from txnlib.spark.producers.producer_steps import EARLIER, with_states
from txnlib.spark.schemas import COPY, PRODUCER, TABLES, TOPIC_PARTITION, conform


def resumed_spans(
    record_batches: DataFrame,
    new_batches: DataFrame,
    producer_snapshots: DataFrame,
    coverage: DataFrame,
    earlier_spans: DataFrame,
    appended: DataFrame,
    *,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
) -> DataFrame:
    """The rows of `producer_spans` without those that closed in the earlier run and still count. Columns:
    PRODUCER_SPANS.

    `new_batches`: the rows of `record_batches` that are not in the earlier run, and possibly others. `appended`: the
    partitions to which batches were only appended (APPENDED).
    """
    copies = broadcast(appended)
    judged = with_snapshot(coverage, producer_snapshots)
    others = judged.join(copies, on=list(COPY), how="left_anti")
    added = judged.join(copies, on=list(COPY), how="left_semi")
    appended_batches = new_batches.join(copies, on=list(COPY)).where("base_offset >= appended_from")
    new = read_batches_of(appended_batches, added)
    newest = earlier_spans.where(IS_NEWEST).join(copies, on=list(TOPIC_PARTITION), how="left_semi")
    remembered = newest.select(*PRODUCER, memory().alias(EARLIER))
    resumed = new.join(remembered, on=list(PRODUCER), how="left")
    whole = batches_of(record_batches, producer_snapshots, others)
    batches = resumed.unionByName(whole, allowMissingColumns=True)
    steps = with_states(batches, producer_id_expiration_ms=producer_id_expiration_ms)
    spans = _earlier_newest_spans(newest, new).drop("is_start_exact").unionByName(spans_of(steps))
    return located_spans(spans, judged)


def _earlier_newest_spans(newest: DataFrame, new: DataFrame) -> DataFrame:
    """The newest spans of the earlier run, as of this run: those of producers with new batches are no longer the
    newest."""
    wrote = new.select(*PRODUCER).distinct().withColumn("wrote", F.lit(True))
    joined = newest.join(wrote, on=list(PRODUCER), how="left")
    is_kept = "NOT wrote OR marker_offset IS NOT NULL OR suspect IS NOT NULL"
    kept = with_columns(joined, {"wrote": "wrote IS NOT NULL"}).where(is_kept)
    end = {name: f"if(wrote AND marker_offset IS NULL, NULL, {name})" for name in END_OF_SPAN}
    state = {name: f"if(wrote, NULL, {name})" for name in ("state", "suspects_count")}
    return conform(with_columns(kept, end | state | {"is_newest": "NOT wrote"}), TABLES["producer_spans"])


def not_ended_before(spans: DataFrame, appended: DataFrame) -> DataFrame:
    """The spans of this run whose transactions had not ended in the earlier run."""
    copies = broadcast(appended.select(*TOPIC_PARTITION, "appended_from"))
    joined = spans.join(copies, on=list(TOPIC_PARTITION), how="left")
    return joined.where("NOT coalesce(marker_offset < appended_from, FALSE)").drop("appended_from")


#: What the windows remembered at the end of a producer's newest span, by the names of `producer_steps`. SQL.
_MEMORY: Final = {
    # Shows only that there was a batch before; lower than any offset.
    "base_offset": "-1L",
    "producer_epoch": "state.producer_epoch",
    "max_timestamp_ms": "state.last_timestamp",
    "is_marker": "marker_offset IS NOT NULL",
    "sequence": "state.last_sequence",
    "data_offset": "state.last_offset",
    "delta": "state.offset_delta",
    "coordinator": "state.coordinator_epoch",
    "start": "state.current_txn_first_offset",
    "first_epoch": "producer_epoch",
    "spans": "span + if(marker_offset IS NULL, 0, 1)",
    "marker": (
        "if(marker_offset IS NULL, marker_before, struct(marker_offset AS offset, marker_type AS type, marker_epoch AS"
        " epoch, marker_coordinator_epoch AS coordinator_epoch, marker_ms AS ms, marker_leader_epoch"
        " AS leader_epoch))"
    ),
    "suspects": "suspects_count",
}
#: The same of a span that no marker has ended.
_OF_OPEN: Final = {
    "first_timestamp": "first_timestamp_ms",
    "newest_timestamp": "last_timestamp_ms",
    "newest_offset": "last_offset",
    "batches": "batches",
    "records": "records",
    "uncounted": "if(first_offset IS NOT NULL AND records IS NULL, 1L, NULL)",
    "bytes": "bytes",
    "client_clocks": "if(NOT is_broker_clock, 1L, NULL)",
}


def memory() -> Column:
    """What the windows remembered at the end of a producer's newest span: a struct with the names of
    `producer_steps`."""
    of_open = {name: f"if(marker_offset IS NULL, {value}, NULL)" for name, value in _OF_OPEN.items()}
    return F.struct(*[F.expr(value).alias(name) for name, value in (_MEMORY | of_open).items()])


# ---- Partitions to which batches were only appended since the earlier run. Their producer state is resumed


#: For each such partition: its judged copy, and the offset from which its batches are new.
APPENDED: Final = "topic string, partition int, source string, appended_from long"
#: One such row.
AppendedPartition = tuple[str, int, str, int]
_SEGMENT: Final = (*COPY, "segment_base_offset")
#: Columns that describe where the windows begin, and with which state.
_ORIGIN: Final = ("begins_at", "snapshot_offset", "truncated", "producers", "fingerprint")
_OF_PRODUCERS: Final = [name for name in TABLES["producer_snapshots"].names if name not in (*COPY, "path")]


def appended_partitions(
    segments: DataFrame,
    coverage: DataFrame,
    producer_snapshots: DataFrame,
    earlier_segments: DataFrame,
    earlier_coverage: DataFrame,
    earlier_snapshots: DataFrame,
    resumed: DataFrame,
) -> DataFrame:
    """One row per partition whose judged copy has all batches of the earlier run and new ones only after them. Columns:
    APPENDED.

    `resumed`: the segments of which only appended bytes are read (`earlier_run.RESUMED`).
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
    """The copies whose segments are all read only after their last known batch. Columns: COPY, newest_segment,
    appended_from."""
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
    # Each segment is listed only once, in this run and in the earlier one.
    is_each_once = F.count("*") == F.size(F.collect_set("segment_base_offset"))
    every = (F.bool_and(fits) & is_each_once).alias("fits")
    return joined.groupBy(*COPY).agg(every, F.max("appended_from").alias("appended_from")).where("fits").drop("fits")


def _origins(coverage: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """Where the windows begin for each judged copy, and a fingerprint of the snapshot with which they begin.

    Columns: COPY and _ORIGIN.
    """
    judged = with_snapshot(coverage, producer_snapshots)
    fingerprints = producer_snapshots.groupBy(*COPY, "snapshot_offset").agg(
        F.count("*").alias("producers"), F.bit_xor(F.xxhash64(*_OF_PRODUCERS)).alias("fingerprint")
    )
    return judged.join(fingerprints, on=[*COPY, "snapshot_offset"], how="left")
