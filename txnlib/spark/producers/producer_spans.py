"""`producer_spans`: each producer's batches on a partition between two of its markers.

One pass of windows over all batches. Several tables read the result, so it is stored. A span ends with a marker, or is the newest
one. The windows at its last batch cover the whole span, so no grouping is needed.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from txnlib.core.findings.producer_batches import SUSPECTS_KEPT
from txnlib.core.kafka.constants import MAX_INT64, MAX_SEQUENCE, PRODUCER_ID_EXPIRATION_MS
from txnlib.spark import windows
from txnlib.spark.batch_runs import batches_count, first_timestamp_ms, is_divided_at, last_batch_offset, packed, single_batches
from txnlib.spark.coverage import BEGINS_AT_SNAPSHOT, survives
from txnlib.spark.joins import broadcast
from txnlib.spark.producers.producer_steps import earlier_of, now, sum_until_now, with_states
from txnlib.spark.schemas import (
    BATCH_FIELDS,
    COPY,
    PRODUCER,
    PRODUCER_SPANS,
    RECORD_BATCHES,
    STATE_FIELDS,
    TOPIC_PARTITION,
    TRUNCATED,
    conform,
)


def producer_spans(
    record_batches: DataFrame,
    producer_snapshots: DataFrame,
    coverage: DataFrame,
    *,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
) -> DataFrame:
    """One row per producer and span of the judged copies, and one per suspect batch. Columns: PRODUCER_SPANS."""
    judged = with_snapshot(coverage.where("is_judged"), producer_snapshots)
    batches = batches_of(record_batches, producer_snapshots, judged)
    spans = spans_of(with_states(batches, producer_id_expiration_ms=producer_id_expiration_ms))
    return located_spans(spans, judged, producer_snapshots)


def located_spans(spans: DataFrame, judged: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """The spans, each with whether its start offset is exact. Columns: PRODUCER_SPANS.

    What began below the log start is not open if the next snapshot does not have it: the broker has started since, and read
    nothing below the log start. Kafka: `UnifiedLog.rebuildProducerState`.
    """
    # A log that was captured from its middle may hide where a transaction began.
    hides_starts = (F.col("begins_at") > 0) & F.col("snapshot_offset").isNull()
    known = ("begins_at", "answered_stable_offset", "deleted_until", "checked_offset")
    hides = judged.select(*TOPIC_PARTITION, hides_starts.alias("hides_starts"), *known)
    checked = judged.select(*COPY, F.col("checked_offset").alias("snapshot_offset"))
    remembered = producer_snapshots.where(F.col("is_answer").isNull() & F.col("current_txn_first_offset").isNotNull())
    shown = remembered.join(broadcast(checked), on=[*COPY, "snapshot_offset"], how="inner").select(
        *PRODUCER, F.col("current_txn_first_offset").alias("shown_open")
    )
    joined = spans.join(broadcast(hides), on=list(TOPIC_PARTITION), how="left").join(
        broadcast(shown), on=list(PRODUCER), how="left"
    )
    is_forgotten = (
        F.col("marker_offset").isNull()
        & (F.col("last_offset") < F.col("deleted_until"))
        & (F.col("first_offset") < F.col("checked_offset"))
        & ~F.col("shown_open").eqNullSafe(F.col("first_offset"))
    )
    kept = ~F.coalesce(is_forgotten, F.lit(False))
    state = F.col("state").withField("current_txn_first_offset", F.when(kept, F.col("state.current_txn_first_offset")))
    joined = joined.withColumns({**{name: F.when(kept, F.col(name)) for name in _OF_DATA}, "state": state})
    # What began before the copy and is still open was open when the leader said that nothing below its last stable offset was.
    is_told = F.col("marker_offset").isNull() & (F.col("begins_at") <= F.col("answered_stable_offset"))
    is_hidden = F.coalesce("hides_starts", F.lit(False)) & ~F.coalesce(is_told, F.lit(False))
    return conform(joined.withColumn("is_start_exact", (F.col("span") > 0) | ~is_hidden), PRODUCER_SPANS)


def producer_batches(record_batches: DataFrame, producer_snapshots: DataFrame, coverage: DataFrame) -> DataFrame:
    """One row per batch of a producer in the judged copies, and per producer of a snapshot: the input of the windows."""
    return batches_of(record_batches, producer_snapshots, with_snapshot(coverage.where("is_judged"), producer_snapshots))


def batches_of(record_batches: DataFrame, producer_snapshots: DataFrame, judged: DataFrame) -> DataFrame:
    """The same for the given judged copies with their snapshots (`with_snapshot`)."""
    return _seeds(producer_snapshots, judged).unionByName(read_batches_of(record_batches, judged))


def begins_at() -> Column:
    """The offset below which nothing of a copy was read."""
    return F.when(F.expr(BEGINS_AT_SNAPSHOT), F.col("read_from_offset")).otherwise(F.least("log_start_offset", "first_offset"))


def with_snapshot(judged: DataFrame, producer_snapshots: DataFrame) -> DataFrame:
    """The judged copies, each with the snapshot for the part of the log before its first captured offset.

    This is the oldest snapshot at or above the first offset: it contains the transactions that were open before and still are. A
    snapshot below the first offset is followed by a hole, in which these transactions may have ended. The answer of a
    leader is such a snapshot, too, if it shows a transaction that began before. Source: docs/rules/copies.md#snapshots-and-holes.

    deleted_until: the log start, if batches below it are left. checked_offset: the first snapshot from there on.
    """
    deleted_until = F.when(F.col("log_start_offset") > F.col("first_offset"), F.col("log_start_offset"))
    begins = judged.select(*COPY, begins_at().alias("begins_at"), deleted_until.alias("deleted_until"), *_divisions(judged))
    offset, beginning = F.col("snapshot_offset"), F.col("begins_at")
    is_before = (beginning > 0) & (offset >= beginning) & _may_seed()
    chosen = (
        producer_snapshots.join(broadcast(begins), on=list(COPY), how="inner")
        .groupBy(*COPY)
        .agg(
            F.min(F.when(is_before, F.struct("snapshot_offset", "is_answer"))).alias("chosen"),
            F.min(F.when(F.col("is_answer").isNull() & (offset >= F.col("deleted_until")), offset)).alias("checked_offset"),
        )
    )
    named = chosen.select(*COPY, "chosen.snapshot_offset", F.col("chosen.is_answer").alias("is_answered"), "checked_offset")
    return begins.join(named, on=list(COPY), how="left")


def _may_seed() -> Column:
    """Whether a row of a snapshot may begin a log: of an answer, which is of a later state, only what began before the log."""
    return F.col("is_answer").isNull() | (F.col("current_txn_first_offset") < F.col("begins_at"))


def _divisions(coverage: DataFrame) -> list[Column]:
    """What a newer leader truncated, where segments overlap, and what the leader answered; NULL in tables of older versions."""
    types = {"truncated": TRUNCATED, "overlap_offset": LongType(), "answered_stable_offset": LongType()}
    known = {name: F.col(name) if name in coverage.columns else F.lit(None).cast(kind) for name, kind in types.items()}
    # At the log start it says nothing: a leader raises it to there.
    stable = known["answered_stable_offset"]
    known["answered_stable_offset"] = F.when(stable > F.coalesce("log_start_offset", F.lit(0)), stable)
    return [value.alias(name) for name, value in known.items()]


def read_batches_of(record_batches: DataFrame, judged: DataFrame) -> DataFrame:
    """The batches of producers: not those without a producer id, and not control batches without a marker.

    A row is a run of batches, if `record_batches` has runs. Runs are divided where a newer leader truncated a part of them, and
    where segments overlap: there, the same batch may be in two runs, and only single batches show that.
    """
    is_text = ~F.col("source").startswith("raw:")
    has_marker = F.col("control_type").isNotNull() | (is_text & (F.coalesce("records_count", F.lit(1)) > 0))
    is_truncated_within = F.exists("truncated", lambda cut: is_divided_at(cut["from_offset"]))
    is_divided = F.coalesce(F.col("last_offset") >= F.col("overlap_offset"), F.lit(False)) | F.coalesce(
        is_truncated_within, F.lit(False)
    )
    own = record_batches.where(F.col("producer_id").isNotNull() & (~F.col("is_control") | has_marker))
    # A caller may have joined columns of `judged` before.
    joined = own.select(*RECORD_BATCHES.names).join(broadcast(judged), on=[*TOPIC_PARTITION, "source"], how="inner")
    return (
        single_batches(joined, is_divided)
        .withColumns({"leader_epoch": F.col("partition_leader_epoch"), "at_offset": F.col("base_offset")})
        .where(survives())
        .select(
            *PRODUCER,
            "base_offset",
            "last_offset",
            F.col("producer_epoch"),
            "base_sequence",
            "last_sequence",
            "max_timestamp_ms",
            "is_transactional",
            F.col("is_control").alias("is_marker"),
            "control_type",
            "coordinator_epoch",
            F.col("records_count").cast("long").alias("records"),
            F.col("size").cast("long").alias("bytes"),
            (F.col("timestamp_type") == "LOG_APPEND_TIME").alias("is_broker_clock"),
            F.when(F.col("is_transactional") & ~F.col("is_control"), F.col("base_offset")).alias("opens_at"),
            F.lit(False).alias("is_seed"),
            F.lit(None).cast("long").alias("snapshot_offset"),
            batches_count().alias("batches"),
            last_batch_offset().alias("last_batch_offset"),
            first_timestamp_ms().alias("first_timestamp_ms"),
            F.when(batches_count() > 1, F.col("base_offset") + packed("offset_delta", 0))
            .otherwise(F.col("last_offset"))
            .alias("first_batch_end"),
            # Only batches outside of a transaction can all be suspect (`producer_steps`).
            F.when(~F.col("is_transactional"), F.col("packed_batches")).alias("packed_batches"),
        )
    )


def _seeds(producer_snapshots: DataFrame, judged: DataFrame) -> DataFrame:
    """One synthetic batch per producer of the snapshot before the log. Appending it results in the snapshot's state."""
    is_chosen = F.col("producer_id").isNotNull() & F.col("is_answer").eqNullSafe(F.col("is_answered")) & _may_seed()
    on = [*TOPIC_PARTITION, "source", "snapshot_offset"]
    chosen = producer_snapshots.join(broadcast(judged), on=on, how="inner").where(is_chosen)
    has_data = F.col("last_sequence").isNotNull()
    return chosen.select(
        *PRODUCER,
        (F.col("begins_at") - 1).alias("base_offset"),
        F.col("last_offset"),
        F.col("producer_epoch"),
        F.when(has_data, F.col("last_sequence")).alias("base_sequence"),
        "last_sequence",
        F.col("last_timestamp_ms").alias("max_timestamp_ms"),
        F.col("current_txn_first_offset").isNotNull().alias("is_transactional"),
        F.lit(False).alias("is_marker"),
        F.lit(None).cast("string").alias("control_type"),
        "coordinator_epoch",
        F.lit(None).cast("long").alias("records"),
        F.lit(None).cast("long").alias("bytes"),
        F.lit(False).alias("is_broker_clock"),
        F.col("current_txn_first_offset").alias("opens_at"),
        F.lit(True).alias("is_seed"),
        # An answer is of a state behind any batch.
        F.when(F.col("is_answer"), F.lit(MAX_INT64)).otherwise(F.col("snapshot_offset")).alias("snapshot_offset"),
        F.lit(1).alias("batches"),
        (F.col("begins_at") - 1).alias("last_batch_offset"),
        F.col("last_timestamp_ms").alias("first_timestamp_ms"),
        F.col("last_offset").alias("first_batch_end"),
        F.lit(None).cast("binary").alias("packed_batches"),
    )


def newest_spans(producer_spans: DataFrame) -> DataFrame:
    """The newest span of each producer. Columns: PRODUCER_SPANS."""
    # The first condition lets Delta skip the files of all other spans; older versions wrote only the second column.
    return producer_spans.where(F.coalesce("is_newest", F.lit(True)) & F.col("state").isNotNull())


def open_spans(producer_spans: DataFrame) -> DataFrame:
    """The newest spans that no marker has ended. Columns: PRODUCER_SPANS."""
    return newest_spans(producer_spans).where(F.col("first_offset").isNotNull() & F.col("marker_offset").isNull())


def spans_of(steps: DataFrame) -> DataFrame:
    """The last batch of each span, with the sums of the span, and each suspect batch. All other batches are dropped."""
    window, earlier = windows.batches_of_producer(), earlier_of(steps)
    kept = steps.withColumn("is_end", F.col("is_marker") | F.col("is_newest")).where(F.col("is_end") | F.col("is_suspect"))
    sums = {name: F.when(F.col("is_marker"), sum_until_now(name)) for name in SUMS}
    marker = F.struct(
        F.col("base_offset").alias("offset"),
        F.col("control_type").alias("type"),
        F.col("producer_epoch").alias("epoch"),
        "coordinator_epoch",
        F.col("max_timestamp_ms").alias("ms"),
    )
    last_marker = F.last(F.when(F.col("is_marker"), marker), ignorenulls=True)
    numbered = kept.withColumns(
        {f"{name}_at_marker": F.last(value, ignorenulls=True).over(windows.before_now(window)) for name, value in sums.items()}
        | {
            "marker_before": F.coalesce(last_marker.over(windows.before_now(window)), earlier("marker")),
            "suspects_until_now": F.sum("suspects").over(windows.until_now(window)) + F.coalesce(earlier("suspects"), F.lit(0)),
        }
    )
    numbered = _with_single_suspects(numbered)
    is_shown = F.col("is_suspect") & (F.col("suspect_number") <= SUSPECTS_KEPT)
    suspect = F.struct("before", F.struct(*BATCH_FIELDS.names).alias("batch"))
    return numbered.where(F.col("is_end") | is_shown).select(
        *PRODUCER,
        "span",
        *[F.when(F.col("is_end"), value).alias(name) for name, value in _end().items()],
        F.when(is_shown, suspect).alias("suspect"),
        "is_newest",
        F.when(F.col("is_newest"), F.col("suspects_until_now")).alias("suspects_count"),
    )


def _with_single_suspects(rows: DataFrame) -> DataFrame:
    """The rows, with the single batches of runs that have a suspect batch, and `suspect_number`. Only the last one can end a span.

    The state before a batch, other than the first, is that before the run, but for what the batch before it changed.
    """
    index, is_run = F.col("index"), F.col("is_suspect") & (F.col("batches") > 1)
    last_index = F.when(is_run, F.col("batches") - 1).otherwise(F.lit(0))
    is_first, is_last = index == 0, index == last_index
    begins = F.col("base_offset") + packed("offset", index)
    ends, ends_before = begins + packed("offset_delta", index), F.col("base_offset") + packed("offset", index - 1)
    sequence_before = F.col("base_sequence").cast("long") + packed("sequence", index - 1) + packed("offset_delta", index - 1)
    before = F.struct(
        F.col("producer_epoch"),
        sequence_before.bitwiseAND(MAX_SEQUENCE).alias("last_sequence"),
        (ends_before + packed("offset_delta", index - 1)).alias("last_offset"),
        packed("offset_delta", index - 1).alias("offset_delta"),
        F.col("coordinator_before").alias("coordinator_epoch"),
        F.col("start_before").alias("current_txn_first_offset"),
        (F.col("first_timestamp_ms") + packed("timestamp", index - 1)).alias("last_timestamp"),
    ).cast(STATE_FIELDS)
    sequence = F.col("base_sequence").cast("long") + packed("sequence", index)
    divided = {
        "base_offset": F.when(is_first, F.col("base_offset")).otherwise(begins),
        "last_offset": F.when(is_first, F.col("first_batch_end")).otherwise(ends),
        "base_sequence": F.when(is_first, F.col("base_sequence")).otherwise(sequence.bitwiseAND(MAX_SEQUENCE).cast("int")),
        "max_timestamp_ms": F.when(is_first, F.col("first_timestamp_ms")).otherwise(
            F.col("first_timestamp_ms") + packed("timestamp", index)
        ),
        "before": F.when(is_first, F.col("before")).otherwise(before),
    }
    return (
        rows.withColumn("index", F.explode(F.sequence(F.lit(0), last_index)))
        .withColumns(
            {name: F.when(is_run, value).otherwise(F.col(name)) for name, value in divided.items()}
            | {
                "is_end": F.col("is_end") & is_last,
                "is_newest": F.col("is_newest") & is_last,
                "is_suspect": F.col("is_suspect") & (index < F.col("suspects")),
                "suspect_number": F.col("suspects_until_now") - F.col("suspects") + index + 1,
            }
        )
        .where(F.col("is_end") | F.col("is_suspect"))
    )


#: Columns that are NULL in the row of a suspect that does not end a span.
END_OF_SPAN: Final = tuple(
    field
    for field in PRODUCER_SPANS.names
    if field not in (*PRODUCER, "span", "is_start_exact", "state", "suspect", "is_newest", "suspects_count")
)
#: Columns that describe the transaction of a span.
_OF_DATA: Final = ("first_offset", "last_offset", "records", "bytes", "first_timestamp_ms", "last_timestamp_ms", "is_broker_clock")
#: Sums over a span: the running sum at its end, less the one at the marker before.
SUMS: Final = ("batches", "records", "uncounted", "bytes", "client_clocks")


def _end() -> dict[str, Column]:
    """The columns of a span, at its last batch."""
    is_marker = F.col("is_marker")
    first_offset = F.when(is_marker, F.col("start_before")).otherwise(now("start"))
    has_transaction = first_offset.isNotNull()
    last_offset = now("newest_offset")

    def of_span(name: str) -> Column:
        return sum_until_now(name) - F.coalesce(f"{name}_at_marker", F.lit(0))

    return {
        "producer_epoch": now("first_epoch"),
        "first_offset": first_offset,
        "last_offset": F.when(last_offset >= first_offset, last_offset),
        "marker_offset": F.when(is_marker, F.col("base_offset")),
        "marker_type": F.when(is_marker, F.col("control_type")),
        "marker_epoch": F.when(is_marker, F.col("producer_epoch")),
        "marker_coordinator_epoch": F.when(is_marker, F.col("coordinator_epoch")),
        "marker_ms": F.when(is_marker, F.col("max_timestamp_ms")),
        "marker_before": F.when(~is_marker, F.col("marker_before")),
        "batches": of_span("batches"),
        "records": F.when(has_transaction & (of_span("uncounted") == 0), of_span("records")),
        "bytes": F.when(has_transaction, of_span("bytes")),
        "first_timestamp_ms": F.when(has_transaction, now("first_timestamp")),
        "last_timestamp_ms": F.when(has_transaction, now("newest_timestamp")),
        "is_broker_clock": F.when(has_transaction, of_span("client_clocks") == 0),
        "state": F.when(F.col("is_newest"), F.col("after")),
    }
