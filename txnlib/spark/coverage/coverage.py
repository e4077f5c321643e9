"""`coverage`: what each copy contains, and which copy is judged.

One row per copy, and one row with status MISSING for each partition that is known but has no file. The table in
`core.verdicts.copies` decides what a copy proves; this module finds its inputs. Source: DESIGN.md 5.3, rules 1 and 2.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.copies import HARMLESS_REASONS, End, KnownBy, LeaderBasis, Role
from txnlib.spark import windows
from txnlib.spark.core_udfs import known_by
from txnlib.spark.coverage.answers import with_answers, with_nothing_open
from txnlib.spark.coverage.contradicted_batches import contradicted_batches, epochs_of_segments
from txnlib.spark.coverage.deleted_topics import with_gone
from txnlib.spark.coverage.leaders import NO_LEADER, broker
from txnlib.spark.coverage.roles import with_leader_in_force, with_role
from txnlib.spark.coverage.sound_copies import with_empty_logs
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.schemas import COPY, COVERAGE, TOPIC_PARTITION, conform

#: Reasons for the end of a copy whose log or dump was still being written.
CUT_REASONS: Final = ("INCOMPLETE_BATCH", "CUT_LINE")
#: Kind of the rows of `segments` for records of one coordinator partition that a console consumer printed.
PRINTED: Final = "printed"


def coverage(
    segments: DataFrame,
    record_batches: DataFrame,
    checkpoints: DataFrame,
    partition_notes: DataFrame,
    leaders: DataFrame,
    instants: DataFrame,
    expected: DataFrame,
    deleted_copies: DataFrame | None = None,
    *,
    metadata_reach_ms: int | None = None,
    whole_metadata_ms: int | None = None,
    metadata_basis: LeaderBasis | None = None,
    hides_leaders: bool = False,
) -> DataFrame:
    """One row per copy of a partition, then one per expected partition without a copy. Columns: COVERAGE.

    `partition_notes` (topic, partition, leader, replicas, ANSWERS) and `instants` (broker, folder, captured_at_ms) come from
    capture.json. A null broker is the default; `<broker>/<name>` is one of several copies from a broker. `leaders`: see
    `coverage.leaders`.
    `expected` (topic, partition) lists the partitions that should have been captured. `deleted_copies` (COPY): copies of deleted
    topics, which are not judged; None if there are none. `metadata_reach_ms`: a copy that was taken later may have had another
    leader than the metadata log says. `whole_metadata_ms`: up to when the metadata log is known to name every
    partition; None if it is not. `hides_leaders`: whether a leader that it does not name may be lost in it.
    """
    if deleted_copies is not None:
        deleted = _deleted(_with_checkpoints(_summaries(_only(segments, deleted_copies)), checkpoints), instants)
        segments, checkpoints, record_batches = (_without(each, deleted_copies) for each in (segments, checkpoints, record_batches))
    copies = _with_instants(_with_checkpoints(_summaries(segments), checkpoints), instants)
    copies = with_answers(copies, partition_notes)
    copies = copies.join(broadcast(leaders), on=list(TOPIC_PARTITION), how="left")
    epochs = settled(epochs_of_segments(record_batches))
    contradicted = contradicted_batches(epochs, segments, checkpoints)
    copies = _with_contradictions(copies, contradicted)
    copies = settled(_with_leader_epochs(copies, _without_refuted(epochs, contradicted), checkpoints))
    copies = _with_noted_high_watermark(copies, checkpoints, instants)
    copies = with_empty_logs(copies)
    copies = with_role(with_leader_in_force(copies, metadata_reach_ms, metadata_basis, hides_leaders=hides_leaders))
    copies = _with_known_until(copies)
    copies = settled(_with_judged(_with_status(copies)))
    marks = checkpoints.where(F.col("name") == "high_watermark")
    noted = marks.groupBy(*TOPIC_PARTITION).agg(F.max("value").alias("high_watermark"))
    named = expected.unionByName(noted.select(*TOPIC_PARTITION)).distinct()
    missing = named.join(copies, on=list(TOPIC_PARTITION), how="left_anti").join(noted, on=list(TOPIC_PARTITION), how="left")
    listed = marks.select(*TOPIC_PARTITION, broker().alias("broker"))
    missing = with_gone(missing, listed, partition_notes, instants)
    missing = missing.join(broadcast(leaders), on=list(TOPIC_PARTITION), how="left")
    if whole_metadata_ms is not None:
        missing = _with_unassigned(missing, whole_metadata_ms)
    missing = with_nothing_open(missing, partition_notes)
    absent = missing.withColumns({"status": F.lit("MISSING"), "detail": _absence(), "is_judged": F.lit(False)})
    rows = copies.withColumn("is_deleted", F.lit(False)).unionByName(absent, allowMissingColumns=True)
    if deleted_copies is not None:
        rows = rows.unionByName(deleted, allowMissingColumns=True)
    return conform(rows.withColumns({name: F.lit(None) for name in OF_EARLIER_RUNS}), COVERAGE)


#: Columns that say which rows of earlier runs count. A run that continues another one fills them.
OF_EARLIER_RUNS: Final = ("batches_since", "batches_from", "spans_since")


#: Detail of a copy that is not judged, because its topic id is that of a deleted topic.
OF_DELETED_TOPIC: Final = "of a deleted topic, or of an earlier topic of the same name"


def _without(rows: DataFrame, copies: DataFrame) -> DataFrame:
    return rows.join(broadcast(copies), on=list(COPY), how="left_anti")


def _only(rows: DataFrame, copies: DataFrame) -> DataFrame:
    return rows.join(broadcast(copies), on=list(COPY), how="left_semi")


def _deleted(copies: DataFrame, instants: DataFrame) -> DataFrame:
    """Copies of deleted topics, with what coverage says about them."""
    facts = {
        "role": F.lit(Role.OTHER.value),
        "ends": F.lit(End.TORN.value),
        "is_current": F.lit(False),
        "is_judged": F.lit(False),
        "is_deleted": F.lit(True),
        "captured_at": instant("captured_at_ms"),
        "status": F.lit("PARTIAL"),
        "detail": F.lit(OF_DELETED_TOPIC),
    }
    return _with_instants(copies, instants).withColumns(facts)


def _with_unassigned(missing: DataFrame, whole_metadata_ms: int) -> DataFrame:
    """`missing`, where the metadata log proves that a partition no longer exists."""
    is_gone = F.col("assigned_leader").isNull() & (F.col("topic") != TRANSACTION_STATE_TOPIC)
    known_at = F.when(is_gone, instant(F.lit(whole_metadata_ms))).otherwise(F.col("checkpointed_at"))
    return missing.withColumns({"checkpointed_at": known_at, "is_gone": F.when(is_gone, True).otherwise(F.col("is_gone"))})


def _absence() -> Column:
    """What to do about a partition without a copy, in words."""
    in_sync = F.concat(F.lit("; no broker leads it; in sync last: "), F.concat_ws(", ", "in_sync"))
    where = F.when(F.col("leader") == NO_LEADER, in_sync).otherwise(F.concat(F.lit("; broker "), "leader", F.lit(" leads it")))
    quiet = F.concat(
        F.lit("nothing was open at "),
        F.date_format("answered_at", "yyyy-MM-dd'T'HH:mm:ss'Z'"),
        F.concat(F.lit(", by the word of broker "), "leader"),
        F.concat(F.lit(": its last stable offset was its high watermark, "), "answered_stable_offset"),
        F.lit("; its log was not fetched (--scope open)"),
    )
    return (
        F.when(F.col("is_gone"), "its topic no longer exists")
        .when(F.col("is_nothing_open"), quiet)
        .otherwise(F.concat(F.lit("not captured"), F.coalesce(where, F.lit(""))))
    )


def lowered(coverage: DataFrame, checked_batches: DataFrame) -> DataFrame:
    """The coverage, reduced by batches whose CRC was found wrong after they were read. Columns: COVERAGE.

    Idempotent.
    """
    refuted = (
        checked_batches.where(~F.col("is_crc_valid"))
        .select(*COPY, "base_offset", "last_offset", F.col("size").cast("long").alias("size"))
        .distinct()
        .groupBy(*COPY)
        .agg(F.max(F.col("last_offset") + 1).alias("refuted_offset"), F.sum("size").alias("refuted_bytes"))
    )
    is_new = F.col("refuted_offset").isNotNull() & ~F.coalesce(F.col("detail").contains(_REFUTED), F.lit(False))
    changes = {
        "status": F.lit("DAMAGED"),
        "detail": F.concat_ws("; ", "detail", F.lit(_REFUTED)),
        "damaged_offset": F.greatest("damaged_offset", "refuted_offset"),
        "unreadable_bytes": F.coalesce("unreadable_bytes", F.lit(0).cast("long")) + F.col("refuted_bytes"),
    }
    joined = coverage.join(broadcast(refuted), on=list(COPY), how="left")
    return conform(joined.withColumns({name: F.when(is_new, to).otherwise(F.col(name)) for name, to in changes.items()}), COVERAGE)


_REFUTED: Final = "a batch whose CRC does not fit"


def is_harmful(unreadable: Column) -> Column:
    """`copies.is_harmful` over a column of unreadable ranges."""
    return ~unreadable["reason"].rlike(f"^({'|'.join(HARMLESS_REASONS)})")


def paths_of_segments(segments: DataFrame) -> DataFrame:
    """The file of each segment, and its kind. Columns: COPY, segment_base_offset, path, kind (raw or text)."""
    files = segments.where(F.col("kind").isin("raw", "text"))
    return files.groupBy(*COPY, "segment_base_offset").agg(F.max_by("path", "bytes").alias("path"), F.max("kind").alias("kind"))


def begins_at_snapshot() -> Column:
    """Whether a copy was read only from above its log start on: by scope, or from a snapshot (`readers.snapshot_start`)."""
    return F.coalesce(F.col("read_from_offset") > F.col("log_start_offset"), F.lit(False))


def survives() -> Column:
    """Whether a batch or record survived: no newer leader truncated it. Columns: truncated, leader_epoch, at_offset."""

    def cuts(cut: Column) -> Column:
        return (cut["leader_epoch"] == F.col("leader_epoch")) & (cut["from_offset"] <= F.col("at_offset"))

    return ~F.coalesce(F.exists("truncated", cuts), F.lit(False))


def _place() -> Column:
    """The last two names in a source: `1/first` for the coordinators that were copied from broker 1 before the partitions."""
    return F.concat_ws("/", F.slice(F.split("source", "[:/]"), -2, 2))


def _summaries(segments: DataFrame) -> DataFrame:
    by_base = ["segment_base_offset"]
    once = (
        segments.where(F.col("kind").isin("raw", "text", "skipped", PRINTED) & F.col("partition").isNotNull())
        # A dump may print a segment twice; the longer one counts.
        .groupBy(*COPY, *by_base)
        .agg(
            F.min("first_offset").alias("first_offset"),
            F.max("end_offset").alias("end_offset"),
            F.max("last_gap_offset").alias("last_gap_offset"),
            (F.count(F.when(F.col("kind") == "raw", True)) > 1).alias("is_twice"),
            F.bool_and(F.col("kind") == "skipped").alias("is_skipped"),
            F.bool_or(F.col("kind") == PRINTED).alias("is_printed"),
            F.max("bytes").alias("bytes"),
            F.max("batches").alias("batches"),
            F.max_by("tail", F.struct("end_offset")).alias("tail"),
            F.bool_and("is_decoded").alias("is_decoded"),
            F.max(clock_ms("newest_broker_ms")).alias("newest_broker_ms"),
            F.flatten(F.collect_list("unreadable")).alias("unreadable"),
        )
    )
    window = windows.segments_of_copy()
    begins = F.coalesce("first_offset", "segment_base_offset")
    end_before = F.last("end_offset", ignorenulls=True).over(windows.before_now(window))
    begins_after = F.lead(begins).over(window)
    overlaps = F.col("is_twice") | (begins < F.max("end_offset").over(windows.before_now(window)))
    harmful = F.filter("unreadable", is_harmful)
    lost_below = F.transform(harmful, lambda unreadable: F.coalesce(unreadable["next_offset"], F.col("begins_after")))
    chained = once.withColumns({"end_before": end_before, "begins_after": begins_after, "overlaps": overlaps}).withColumns(
        {
            "boundary_gap": F.when(begins > F.col("end_before"), begins),
            "overlap_offset": F.when(F.col("overlaps"), begins),
            "damaged_offset": F.array_max(lost_below),
            "harm": F.size(F.filter(harmful, lambda unreadable: ~unreadable["reason"].isin(*CUT_REASONS))),
            "unreadable_bytes": F.aggregate("unreadable", F.lit(0).cast("long"), lambda sum_, s: sum_ + s["length"]),
        }
    )
    return chained.groupBy(*COPY).agg(
        F.min("first_offset").alias("first_offset"),
        F.max(F.coalesce("end_offset", "segment_base_offset")).alias("end_offset"),
        F.min("segment_base_offset").alias("first_segment_offset"),
        F.min(F.when(~F.col("is_skipped"), F.col("segment_base_offset"))).alias("read_from_offset"),
        F.sum("bytes").alias("bytes"),
        F.sum("batches").alias("batches"),
        F.sum("unreadable_bytes").alias("unreadable_bytes"),
        F.sum("harm").alias("harm"),
        F.max("damaged_offset").alias("damaged_offset"),
        F.greatest(F.max("last_gap_offset"), F.max("boundary_gap")).alias("gap_offset"),
        F.max("boundary_gap").alias("boundary_gap"),
        F.min("overlap_offset").alias("overlap_offset"),
        F.max("last_gap_offset").alias("last_gap_offset"),
        F.max_by("tail", "segment_base_offset").alias("tail"),
        F.bool_and("is_decoded").alias("is_decoded"),
        F.bool_or("is_printed").alias("is_printed"),
        F.max("newest_broker_ms").alias("newest_broker_ms"),
    )


def _with_checkpoints(copies: DataFrame, checkpoints: DataFrame) -> DataFrame:
    names = ("high_watermark", "log_start_offset", "recovery_point")
    values = [F.max(F.when(F.col("name") == name, F.col("value"))).alias(name) for name in names]
    marks = checkpoints.groupBy(*COPY).agg(*values, F.max("topic_id").alias("topic_id"))
    joined = copies.join(marks, on=list(COPY), how="left")
    # The checkpoint lists a partition only if its log start is above its first segment.
    return joined.withColumn("log_start_offset", F.greatest("log_start_offset", "first_segment_offset"))


_CHECKPOINT: Final = "replication-offset-checkpoint"


def _with_instants(copies: DataFrame, instants: DataFrame) -> DataFrame:
    noted = instants.where(F.col("broker").isNotNull())
    of_place = noted.withColumnsRenamed({"broker": "place", "captured_at_ms": "of_place_ms"})
    default = instants.where(F.col("broker").isNull()).select(F.col("captured_at_ms").alias("default_ms"))
    own = noted.where(F.col("folder") == _CHECKPOINT).select("broker", F.col("captured_at_ms").alias("own_checkpoint_ms"))
    joined = (
        copies.withColumns({"broker": broker(), "place": _place(), "folder": F.concat_ws("-", "topic", "partition")})
        .join(broadcast(own), on="broker", how="left")
        .join(broadcast(of_place), on=["place", "folder"], how="left")
        .join(broadcast(noted), on=["broker", "folder"], how="left")
        .join(broadcast(default), how="left")
    )
    captured_at_ms = F.coalesce(clock_ms("of_place_ms"), clock_ms("captured_at_ms"), clock_ms("default_ms"))
    return joined.withColumn("captured_at_ms", captured_at_ms)


def _with_contradictions(copies: DataFrame, contradicted: DataFrame) -> DataFrame:
    """Each copy; batches contradicted by their own neighbours or checkpoints count as damage."""
    lost = contradicted.groupBy(*COPY).agg(
        F.count("*").alias("contradictions"),
        F.max(F.col("last_offset") + 1).alias("contradicted_offset"),
        F.sum(F.col("size").cast("long")).alias("contradicted_bytes"),
    )
    joined = copies.join(broadcast(lost), on=list(COPY), how="left")
    return joined.withColumns(
        {
            "damaged_offset": F.greatest("damaged_offset", "contradicted_offset"),
            "unreadable_bytes": F.col("unreadable_bytes") + F.coalesce("contradicted_bytes", F.lit(0).cast("long")),
            "harm": F.col("harm") + F.coalesce("contradictions", F.lit(0).cast("long")),
        }
    )


def _without_refuted(epochs: DataFrame, contradicted: DataFrame) -> DataFrame:
    """The leader epochs of segments, without those that only a contradicted batch has."""
    refuted = contradicted.select(*COPY, "segment_base_offset", "epoch", F.col("base_offset").alias("begins"))
    return epochs.join(broadcast(refuted), on=refuted.columns, how="left_anti")


def _with_leader_epochs(copies: DataFrame, epochs_of_segments: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """Each copy with its newest leader epoch, the batches that a newer leader truncated (`truncated`), and the end of the others.

    Leader epochs never fall as offsets rise. So a batch at or above the first offset of a higher epoch, in any copy, did not
    survive. Kafka: `LeaderEpochFileCache`, KIP-101.
    """
    of_batches = (
        epochs_of_segments.where(F.col("epoch").isNotNull())
        .groupBy(*COPY, "epoch")
        .agg(F.min("begins").alias("begins"), F.max("ends").alias("ends"))
    )
    of_checkpoints = checkpoints.where((F.col("name") == "leader_epoch") & F.col("start_offset").isNotNull()).select(
        *COPY,
        F.col("value").cast("int").alias("epoch"),
        F.col("start_offset").alias("begins"),
        F.lit(None).cast("long").alias("ends"),
    )
    begins_above = F.min("begins").over(windows.higher_leader_epochs())
    epochs = of_batches.unionByName(of_checkpoints).withColumn("begins_above", begins_above)
    is_truncated = F.col("ends") >= F.col("begins_above")
    cut = F.struct(F.col("epoch").alias("leader_epoch"), F.col("begins_above").alias("from_offset"))
    of_copies = epochs.groupBy(*COPY).agg(
        F.max("epoch").alias("leader_epoch"),
        F.max(F.when(F.col("ends").isNull(), F.col("epoch"))).alias("checkpoint_leader_epoch"),
        F.collect_list(F.when(is_truncated, cut)).alias("truncated"),
        F.max(F.least(F.col("ends") + 1, F.col("begins_above"))).alias("survives_until"),
        # The copy's own checkpoint has an epoch that began at this offset, so its log reached it.
        F.max(F.when(F.col("ends").isNull(), F.col("begins"))).alias("reached_offset"),
    )
    joined = copies.join(of_copies, on=list(COPY), how="left")
    has_cut = F.size("truncated") > 0
    return joined.withColumns(
        {
            "truncated": F.when(has_cut, F.sort_array("truncated")),
            "survives_until": F.when(has_cut, F.col("survives_until")).otherwise(F.col("end_offset")),
        }
    )


def _with_noted_high_watermark(copies: DataFrame, checkpoints: DataFrame, instants: DataFrame) -> DataFrame:
    """Each copy with the highest high watermark in any broker's checkpoint that was not taken after the copy.

    High watermarks count only up to the first record that was truncated since.
    """
    default = instants.where(F.col("broker").isNull()).select(F.col("captured_at_ms").alias("checkpoints_ms"))
    is_data = ~F.col("broker").contains("/") & ~F.col("folder").startswith(TRANSACTION_STATE_TOPIC)
    of_broker = instants.where(F.col("broker").isNotNull()).groupBy(F.col("broker").alias("noted_by"))
    # Checkpoints are copied before the partitions of a log directory (scripts/capture.sh).
    own = of_broker.agg(
        F.coalesce(
            F.min(F.when(F.col("folder") == _CHECKPOINT, F.col("captured_at_ms"))),
            F.min(F.when(is_data, F.col("captured_at_ms"))),
        ).alias("checkpoint_ms")
    )
    cuts = copies.where("truncated IS NOT NULL").select(*COPY, F.array_min("truncated.from_offset").alias("cut_offset"))
    noted = (
        checkpoints.where(F.col("name") == "high_watermark")
        .select(*COPY, "value", broker().alias("noted_by"))
        .join(cuts, on=list(COPY), how="left")
        .join(broadcast(own), on="noted_by", how="left")
        .join(broadcast(default), how="left")
        .select(
            *TOPIC_PARTITION,
            F.least("value", "cut_offset").alias("noted_offset"),
            F.coalesce("checkpoint_ms", "checkpoints_ms").alias("noted_ms"),
        )
    )
    is_earlier = F.coalesce(F.col("noted_ms") <= F.col("captured_at_ms"), F.lit(True))
    highest = (
        copies.select(*COPY, "captured_at_ms")
        .join(noted, on=list(TOPIC_PARTITION), how="inner")
        .groupBy(*COPY)
        .agg(F.max(F.when(is_earlier, F.col("noted_offset"))).alias("noted_high_watermark"))
    )
    return copies.join(highest, on=list(COPY), how="left")


def _with_known_until(copies: DataFrame) -> DataFrame:
    """Each copy with the instant up to which it is complete: `core.verdicts.copies.known_until_ms` over columns."""
    is_current = known_by("role", "ends") == KnownBy.CAPTURE.value
    by_records = F.when(F.col("newest_broker_ms").isNotNull(), F.least("captured_at_ms", "newest_broker_ms"))
    known_until = F.when(is_current & F.col("captured_at_ms").isNotNull(), F.col("captured_at_ms")).otherwise(by_records)
    return copies.withColumns(
        {
            "is_current": is_current,
            "captured_at": instant("captured_at_ms"),
            "newest_stamp": instant("newest_broker_ms"),
            # Checkpoints are next to the partitions' folders, so the default instant applies to them, unless they have their own.
            "checkpointed_at": instant(F.when(F.col("high_watermark").isNotNull(), F.coalesce("own_checkpoint_ms", "default_ms"))),
            "known_until": instant(known_until),
            "is_instant_assumed": F.col("captured_at_ms").isNull() | ~is_current,
        }
    )


def _with_status(copies: DataFrame) -> DataFrame:
    is_coordinator = F.col("topic") == TRANSACTION_STATE_TOPIC
    # Compaction leaves holes everywhere below its progress; a hole only between segments is a missing segment.
    lacks_segment = F.col("boundary_gap").isNotNull() & F.col("last_gap_offset").isNull() & ~is_coordinator
    problems = {
        "damaged stretches": F.col("harm") > 0,
        "unbelievable end": F.col("tail") == "CORRUPT",
        "ends inside a batch": F.col("tail") == "TORN",
        "empty, or cut after the first lines of its text": F.col("tail") == "EMPTY_OR_CUT",
        "ends below the high watermark": F.col("noted_high_watermark") > F.col("survives_until"),
        "ends below what its own checkpoints note": F.greatest("reached_offset", "recovery_point") > F.col("survives_until"),
        "a newer leader truncated some of its batches": F.col("truncated").isNotNull(),
        "offsets missing between segments": lacks_segment,
        "its first segments are missing": is_coordinator & (F.greatest("log_start_offset", "read_from_offset") > 0),
        "markers or coordinator records not printed": ~F.col("is_decoded"),
        "a console consumer's text, which does not tell where it began": F.col("is_printed"),
    }
    is_damaged = F.coalesce((F.col("harm") > 0) | (F.col("tail") == "CORRUPT"), F.lit(False))
    problem = F.concat_ws("; ", *[F.when(applies, F.lit(text)) for text, applies in problems.items()])
    since = F.concat(F.col("read_from_offset"), F.lit(" on"))
    by_scope = F.concat(F.lit("fetched from offset "), since, F.lit(", by scope; the log begins at "), F.col("log_start_offset"))
    short = F.when(F.col("is_scoped"), by_scope).when(begins_at_snapshot(), F.concat(F.lit("read from the snapshot at "), since))
    detail = F.concat_ws("; ", short, F.nullif(problem, F.lit("")))
    status = F.when(is_damaged, "DAMAGED").when(problem != "", "PARTIAL").otherwise("COMPLETE")
    return copies.withColumns({"is_damaged": is_damaged, "detail": F.nullif(detail, F.lit("")), "status": status})


def _with_judged(copies: DataFrame) -> DataFrame:
    is_led = (F.col("role") == Role.LEADER.value) & (F.col("ends") != End.SHORT.value)
    keys = {
        "lacks_records": ~F.col("is_decoded") | F.col("is_printed"),
        "is_no_leader": ~is_led,
        "is_text": ~F.col("source").startswith("raw:"),
    }
    return copies.withColumns(keys).withColumn("is_judged", F.row_number().over(windows.copies_of_partition()) == 1)
