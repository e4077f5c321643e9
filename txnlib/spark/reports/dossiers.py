"""The dossiers of all producer ids with an open transaction: one row each, with the fields of `core.verdicts.dossier.Dossier`.

Here is only what selects rows and sums them up, because logs are large. What follows from the facts is decided in the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.cluster_facts import ALARMING, ALARMING_FINDING
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    CapturedCopy,
    CheckedBatch,
    Claim,
    ClockDifference,
    CoordinatorDecision,
    Dossier,
    EarlierAudit,
    EpochStamps,
    OpenSpan,
    SiblingMarkers,
    TruncatedMarker,
    WrittenMarker,
)
from txnlib.readers.header_columns import PAGE
from txnlib.spark import windows
from txnlib.spark.batch_runs import batches_count, first_timestamp_ms, is_divided_at, packed, single_batches
from txnlib.spark.coordinators.clock_differences import SAMPLES
from txnlib.spark.coordinators.transactional_ids import last_records
from txnlib.spark.coverage.coverage import survives
from txnlib.spark.instants import clock_ms, latest_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import local_rows, settled
from txnlib.spark.offset_buckets import bucket_of
from txnlib.spark.producers.producer_spans import open_spans
from txnlib.spark.schemas import COPY, OPEN_TRANSACTION, PRODUCER, TOPIC_PARTITION, TRUNCATED
from txnlib.spark.typed_rows import plain, struct, struct_of

_SPAN: Final = list(OPEN_TRANSACTION)
_COPY: Final = "topic string, partition int, source string"


def dossiers(
    producer_spans: DataFrame,
    record_batches: DataFrame,
    coordinator_states: DataFrame,
    transactions: DataFrame,
    producer_id_owners: DataFrame,
    checked_batches: DataFrame,
    findings: DataFrame,
    copies: Sequence[CapturedCopy],
    earlier: DataFrame | None = None,
) -> DataFrame:
    """One row per producer id with an open transaction. Columns: those of Dossier, except what tables of the cluster show.

    `earlier`: the stored `open_transactions` of other runs of the cluster.
    """
    opened = settled(_opened(producer_spans))
    places = settled(opened.groupBy("producer_id").agg(F.collect_set(F.struct(*TOPIC_PARTITION)).alias("places")))
    here = settled(opened.select(*TOPIC_PARTITION).distinct())
    spark = producer_spans.sparkSession
    judged = local_rows(spark, [(each.topic, each.partition, each.source) for each in copies if each.is_judged], _COPY)
    located = opened.join(broadcast(judged), on=list(TOPIC_PARTITION), how="left")
    of_spans = (
        _checks(located, checked_batches),
        stamps_around(located, record_batches),
        _truncated_markers(opened, record_batches, copies),
        _siblings(opened, producer_spans, transactions),
        _earlier(opened, earlier),
    )
    of_partitions = (_clocks(here, transactions), _clock_lags(here, transactions, producer_spans))
    spans = opened.join(broadcast(_markers(opened, producer_spans)), on=list(PRODUCER), how="left")
    for part in of_spans:
        spans = spans.join(broadcast(part), on=_SPAN, how="left")
    for part in of_partitions:
        spans = spans.join(broadcast(part), on=list(TOPIC_PARTITION), how="left")
    # A marker of the part of a log that earlier runs read, or that text does not show as a span of its own.
    before = F.col("marker_before")
    lone = F.array(struct(WrittenMarker, {name: before[name] for name in _MARKER_BEFORE} | {"first_offset": F.lit(None)}))
    markers = F.coalesce("markers", F.when(before.isNotNull(), lone))
    gathered = spans.groupBy("producer_id").agg(F.collect_list(struct(OpenSpan, {"markers": markers})).alias("open"))
    claims = settled(_claims(places, producer_id_owners, coordinator_states))
    ids = claims.select("producer_id", F.explode("claims.transactional_id").alias("transactional_id"))
    for part in (claims, _decisions(places, transactions), _named_in_findings(places, ids, findings)):
        gathered = gathered.join(broadcast(part), on="producer_id", how="left")
    return gathered.select(struct(Dossier).alias("dossier")).select("dossier.*")


_MARKER_BEFORE: Final = ("offset", "type", "epoch", "coordinator_epoch", "ms")


def _opened(producer_spans: DataFrame) -> DataFrame:
    return open_spans(producer_spans).select(
        *PRODUCER,
        F.col("first_offset").alias("start_offset"),
        "last_offset",
        F.col("producer_epoch").alias("first_epoch"),
        "state.producer_epoch",
        "state.coordinator_epoch",
        "first_timestamp_ms",
        F.col("state.last_timestamp").alias("last_timestamp_ms"),
        "is_broker_clock",
        "is_start_exact",
        "records",
        "marker_before",
    )


# ---- On the partition


def _markers(opened: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """The newest markers of each producer on the partitions where it has something open. Columns: PRODUCER, markers."""
    own = opened.select(*PRODUCER).distinct()
    written = producer_spans.where(F.col("marker_offset").isNotNull()).join(broadcast(own), on=list(PRODUCER), how="left_semi")
    newest = written.withColumn("rank", F.row_number().over(windows.markers_of_producer_downwards()))
    fields = {name: F.col(f"marker_{name}") for name in _MARKER_BEFORE}
    marker = struct(WrittenMarker, fields)
    kept = newest.where(F.col("rank") <= MOST_MARKERS).groupBy(*PRODUCER)
    return kept.agg(F.sort_array(F.collect_list(marker)).alias("markers"))


def _checks(located: DataFrame, checked_batches: DataFrame) -> DataFrame:
    key = [*_SPAN, "source"]
    own = checked_batches.join(broadcast(located.select(*key)), on=key, how="left_semi")
    return own.groupBy(*_SPAN).agg(F.collect_list(struct(CheckedBatch)).alias("checks"))


def stamps_around(located: DataFrame, record_batches: DataFrame) -> DataFrame:
    """Broker-stamped times around the first and the last batch of each span, and the bytes from the first one on.

    One pass over the batches sums up ranges of offsets (`offset_buckets`), each split at these batches; then only few rows are
    sorted. Sorting all batches of a partition would take one task, and most of the time of a report.
    """
    ends = F.array("start_offset", F.coalesce("last_offset", "start_offset") + 1)
    points = located.select(*COPY, F.explode(ends).alias("at")).distinct().select("*", bucket_of("at"))
    around = _around_points(points, record_batches)
    stamps = ("leader_epoch", "before_ms", "behind_ms")
    first = around.select(*TOPIC_PARTITION, F.col("at").alias("start_offset"), *stamps, "bytes")
    last = around.select(
        *TOPIC_PARTITION,
        F.col("at").alias("behind_last"),
        "leader_epoch",
        F.col("before_ms").alias("before_last_ms"),
        F.col("behind_ms").alias("behind_last_ms"),
    )
    spans = located.select(*_SPAN, (F.coalesce("last_offset", "start_offset") + 1).alias("behind_last"))
    joined = spans.join(broadcast(first), on=[*TOPIC_PARTITION, "start_offset"]).join(
        broadcast(last), on=[*TOPIC_PARTITION, "behind_last", "leader_epoch"]
    )
    fields = {"leader_epoch": F.nullif("leader_epoch", F.lit(-1))}
    return joined.groupBy(*_SPAN).agg(
        F.collect_list(struct(EpochStamps, fields)).alias("stamps"), F.sum("bytes").alias("bytes_from_here")
    )


def _around_points(points: DataFrame, record_batches: DataFrame) -> DataFrame:
    """For each point of a log and each leader epoch: the newest stamp before, the oldest behind, and the bytes from there."""
    copies = points.select(*COPY).distinct()
    cuts = points.groupBy(*TOPIC_PARTITION, "bucket").agg(F.sort_array(F.collect_set("at")).alias("cuts"))
    is_marker = F.col("is_control") & F.col("producer_id").isNotNull()
    # The CRC of larger data batches was not checked, so their times prove nothing. Those of a run are all larger, or none is.
    size_of_batch = F.when(batches_count() > 1, packed("size", 0)).otherwise(F.col("size"))
    is_stamped = is_marker | ((F.col("timestamp_type") == "LOG_APPEND_TIME") & (size_of_batch <= PAGE))
    rows = (
        record_batches.join(broadcast(copies), on=list(COPY), how="left_semi")
        .withColumn("bucket", bucket_of("base_offset"))
        .join(broadcast(cuts), on=[*TOPIC_PARTITION, "bucket"], how="left")
    )
    # A run is in one bucket, so no other point can divide it.
    pieces = single_batches(rows, F.exists("cuts", lambda cut: is_divided_at(cut))).select(
        *TOPIC_PARTITION,
        F.coalesce("partition_leader_epoch", F.lit(-1)).alias("leader_epoch"),
        "bucket",
        F.coalesce(F.size(F.filter("cuts", lambda cut: cut <= F.col("base_offset"))), F.lit(0)).alias("cut"),
        # The times of a run do not fall.
        F.when(is_stamped, clock_ms("max_timestamp_ms")).alias("latest_ms"),
        F.when(is_stamped, clock_ms(first_timestamp_ms())).alias("earliest_ms"),
        F.col("size").cast("long").alias("size"),
    )
    key = [*TOPIC_PARTITION, "leader_epoch"]
    sums = settled(
        pieces.groupBy(*key, "bucket", "cut").agg(
            F.max("latest_ms").alias("latest_ms"), F.min("earliest_ms").alias("earliest_ms"), F.sum("size").alias("size")
        )
    )
    # The piece that begins at each point. Its batches may be missing.
    begun = cuts.select(*TOPIC_PARTITION, "bucket", F.posexplode("cuts").alias("place", "at")).select(
        *TOPIC_PARTITION, "bucket", (F.col("place") + 1).alias("cut"), "at"
    )
    epochs = sums.select(*key).distinct()
    empty = begun.join(broadcast(epochs), on=list(TOPIC_PARTITION)).withColumn("size", F.lit(0).cast("long"))
    summed = (
        sums.unionByName(empty, allowMissingColumns=True)
        .groupBy(*key, "bucket", "cut")
        .agg(
            F.max("at").alias("at"),
            F.max("latest_ms").alias("latest_ms"),
            F.min("earliest_ms").alias("earliest_ms"),
            F.sum("size").alias("size"),
        )
    )
    before, from_here = windows.before_now(windows.pieces()), windows.until_now(windows.pieces_downwards())
    return summed.select(
        *key,
        "at",
        F.max("latest_ms").over(before).alias("before_ms"),
        F.min("earliest_ms").over(from_here).alias("behind_ms"),
        F.sum("size").over(from_here).alias("bytes"),
    ).where(F.col("at").isNotNull())


def _truncated_markers(opened: DataFrame, record_batches: DataFrame, copies: Sequence[CapturedCopy]) -> DataFrame:
    """The markers of the producers in what a newer leader truncated, above each start, in any copy. Columns: _SPAN, ..."""
    rows = [
        (copy.topic, copy.partition, copy.source, copy.broker, [plain(each) for each in copy.truncated])
        for copy in copies
        if copy.truncated is not None and not copy.is_deleted
    ]
    cut = local_rows(opened.sparkSession, rows, f"{_COPY}, broker string, truncated {TRUNCATED.simpleString()}")
    markers = record_batches.where(F.col("is_control") & F.col("control_type").isNotNull())
    lost = (
        markers.join(broadcast(cut), on=list(COPY))
        .withColumns({"leader_epoch": F.col("partition_leader_epoch"), "at_offset": F.col("base_offset")})
        .where(~survives())
        .join(broadcast(opened.select(*_SPAN)), on=list(PRODUCER))
        .where(F.col("base_offset") > F.col("start_offset"))
    )
    fields = {"offset": "base_offset", "type": "control_type", "epoch": "producer_epoch", "ms": "max_timestamp_ms"}
    return lost.groupBy(*_SPAN).agg(F.sort_array(F.collect_set(struct(TruncatedMarker, fields))).alias("truncated_markers"))


def _siblings(opened: DataFrame, producer_spans: DataFrame, transactions: DataFrame) -> DataFrame:
    """Per open transaction, what the markers of its producer on each other partition show. Columns: _SPAN, siblings."""
    of_sibling = {"topic": "of_topic", "partition": "of_partition"}
    names = ("marker_offset", "marker_type", "marker_epoch", "marker_coordinator_epoch", "marker_ms")
    place = [F.col(name).alias(alias) for name, alias in of_sibling.items()]
    written = producer_spans.where(F.col("marker_offset").isNotNull()).select("producer_id", *place, *names)
    explained = (
        transactions.join(broadcast(opened.select("producer_id").distinct()), on="producer_id", how="left_semi")
        .where(F.col("partitions").isNotNull())
        .select("producer_id", F.inline("markers"))
        .where(F.col("marker_offset").isNotNull())
        .select("producer_id", *place, "marker_offset", F.lit(True).alias("is_explained"))
        .distinct()
    )
    keys = broadcast(opened.select(*_SPAN, F.col("producer_epoch").alias("epoch")))
    joined = written.join(keys, on="producer_id").join(
        broadcast(explained), on=["producer_id", *of_sibling.values(), "marker_offset"], how="left"
    )
    is_elsewhere = (F.col("of_topic") != F.col("topic")) | (F.col("of_partition") != F.col("partition"))
    is_commit = is_elsewhere & (F.col("marker_type") == "COMMIT") & (F.col("marker_epoch") >= F.col("epoch"))
    is_unexplained, ms = F.col("is_explained").isNull(), latest_ms("marker_ms")
    commit = F.struct(ms.alias("ms"), F.col("marker_coordinator_epoch").alias("coordinator_epoch"))
    summed = joined.groupBy(*_SPAN, *of_sibling.values()).agg(
        F.max(F.when(is_unexplained, ms)).alias("newest_unexplained_ms"),
        F.max(F.when(is_unexplained & (F.col("marker_type") == "COMMIT"), commit)).alias("commit"),
        F.bool_or(is_commit).alias("is_committed"),
        F.max(F.when(is_commit, F.coalesce(clock_ms("marker_ms"), F.lit(NO_INSTANT_MS)))).alias("committed_ms"),
        F.max(F.when(is_commit & is_unexplained, ms)).alias("unexplained_commit_ms"),
    )
    fields = {
        **of_sibling,
        "newest_unexplained_commit_ms": "commit.ms",
        "newest_unexplained_commit_coordinator_epoch": "commit.coordinator_epoch",
    }
    return summed.groupBy(*_SPAN).agg(F.collect_list(struct(SiblingMarkers, fields)).alias("siblings"))


def _clocks(here: DataFrame, transactions: DataFrame) -> DataFrame:
    """How the clock of each partition's leader compares with those of coordinators. Columns: TOPIC_PARTITION, clocks."""
    pairs = transactions.select("coordinator_partition", F.inline("markers")).join(
        broadcast(here), on=list(TOPIC_PARTITION), how="left_semi"
    )
    each = pairs.groupBy(*TOPIC_PARTITION, "coordinator_partition").agg(
        F.max("clock_offset_ms").alias("offset_ms"), F.max("clocks_differ_ms").alias("differ_ms")
    )
    known = each.where(F.col("differ_ms").isNotNull())
    fields = {"offset_ms": F.coalesce("offset_ms", F.lit(0))}
    return known.groupBy(*TOPIC_PARTITION).agg(F.collect_list(struct(ClockDifference, fields)).alias("clocks"))


def _clock_lags(here: DataFrame, transactions: DataFrame, producer_spans: DataFrame) -> DataFrame:
    """How far the newest marker of each producer is behind its newest decision: one number per partition.

    With few samples, or if they do not agree, the worst of them. A lost marker makes a clock look further behind than it is.
    Columns: TOPIC_PARTITION, clock_lag_ms.
    """
    decided = (
        transactions.where(F.col("completed").isNotNull())
        .select("producer_id", "last_record_offset", "decided", "outcome", "decided_epoch", F.inline("partitions"))
        .join(broadcast(here), on=list(TOPIC_PARTITION), how="left_semi")
        .groupBy(*PRODUCER)
        .agg(F.max_by(F.struct("decided", "outcome", "decided_epoch"), "last_record_offset").alias("decision"))
    )
    written = (
        producer_spans.where(F.col("marker_offset").isNotNull())
        .join(broadcast(here), on=list(TOPIC_PARTITION), how="left_semi")
        .groupBy(*PRODUCER)
        .agg(F.max_by(F.struct("marker_ms", "marker_type", "marker_epoch"), "marker_offset").alias("marker"))
    )
    agrees = (F.col("marker.marker_epoch") == F.col("decision.decided_epoch")) & F.coalesce(
        F.col("marker.marker_type") == F.col("decision.outcome"), F.lit(True)
    )
    lag = clock_ms("marker.marker_ms") - F.unix_millis("decision.decided")
    lags = decided.join(written, on=list(PRODUCER)).where(agrees).withColumn("lag", lag)
    quartiles = [F.percentile_approx("lag", F.lit(part)) for part in (0.25, 0.75)]
    is_agreed = (F.count("lag") >= SAMPLES) & (quartiles[1] - quartiles[0] <= CLOCKS_DIFFER_MS)
    return lags.groupBy(*TOPIC_PARTITION).agg(F.when(is_agreed, quartiles[0]).otherwise(F.min("lag")).alias("clock_lag_ms"))


def _earlier(opened: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """The earlier audits that saw each transaction. Columns: _SPAN, earlier."""
    if earlier is None:
        kind = struct_of(EarlierAudit).simpleString()
        return opened.select(*_SPAN, F.array().cast(f"array<{kind}>").alias("earlier"))

    def stored(name: str, kind: str) -> Column:
        """A column that tables of older versions do not have."""
        return F.col(name) if name in earlier.columns else F.lit(None).cast(kind)

    fields = {
        "as_of_ms": F.unix_millis("as_of"),
        "copied_ms": F.unix_millis(stored("copied_at", "timestamp")),
        "topic_id": stored("topic_id", "string"),
        "first_batch_crc": stored("first_batch_crc", "long"),
    }
    seen = earlier.join(broadcast(opened.select(*_SPAN)), on=_SPAN, how="left_semi")
    return seen.groupBy(*_SPAN).agg(F.collect_set(struct(EarlierAudit, fields)).alias("earlier"))


# ---- At the coordinators


def _claims(places: DataFrame, producer_id_owners: DataFrame, coordinator_states: DataFrame) -> DataFrame:
    """The transactional ids of each producer id, with their last records. Columns: producer_id, claims."""
    ids = ["transactional_id", "coordinator_partition"]
    last = last_records(coordinator_states).select(
        *ids,
        "state",
        "producer_epoch",
        "transaction_timeout_ms",
        "start_ms",
        "last_update_ms",
        "record_ms",
        F.col("coordinator_epoch").alias("record_coordinator_epoch"),
        "record_offset",
        "is_superseded",
        "hole_ms",
        "client_transaction_version",
        "partitions",
    )
    claims = producer_id_owners.select("producer_id", *ids, "owner", "first_record_offset", "last_record_offset").join(
        broadcast(places), on="producer_id"
    )
    is_assigned = (F.col("state") == TransactionState.EMPTY.kafka_name) & (F.col("producer_epoch") == 0)
    first = coordinator_states.select(
        *ids, "producer_id", F.col("offset").alias("first_record_offset"), is_assigned.alias("is_first_assigned")
    )
    joined = claims.join(first, on=[*ids, "producer_id", "first_record_offset"], how="left").join(last, on=ids, how="left")
    claim = struct(Claim, {"partitions": _among_places("partitions")})
    return joined.groupBy("producer_id").agg(F.collect_list(claim).alias("claims"))


def _among_places(partitions: str) -> Column:
    """The partitions on which the producer has something open; a transaction may have thousands of others."""
    return F.filter(partitions, lambda place: F.array_contains("places", place))


def _decisions(places: DataFrame, transactions: DataFrame) -> DataFrame:
    """The newest decisions of each producer id that list, or may list, a partition where it has something open."""
    joined = transactions.where(F.col("outcome") != "OPEN").join(broadcast(places), on="producer_id")
    about = joined.where(F.coalesce(F.arrays_overlap("partitions", "places"), F.lit(True)))
    newest = about.withColumn("rank", F.row_number().over(windows.decisions_of_producer_downwards()))
    fields: dict[str, Column | str] = {
        "first_epoch": "producer_epoch",
        "coordinator_epoch": "decided_coordinator_epoch",
        "partitions": _among_places("partitions"),
        "start_ms": F.unix_millis("start"),
        "said_ms": F.unix_millis("decided"),
        "prepared_ms": F.unix_millis("prepared"),
        "completed_ms": F.unix_millis("completed"),
    }
    kept = newest.where(F.col("rank") <= MOST_MARKERS).groupBy("producer_id")
    return kept.agg(F.collect_list(struct(CoordinatorDecision, fields)).alias("decisions"))


def is_alarming() -> Column:
    """Whether a finding forbids an abort of what it names."""
    return F.col("severity").isin(*ALARMING) | (F.col("name") == ALARMING_FINDING)


def _named_in_findings(places: DataFrame, ids: DataFrame, findings: DataFrame) -> DataFrame:
    """What findings say of each producer id, or of its ids. Columns: producer_id, alarms, is_never_allocated, answered_owners."""
    is_unallocated = F.col("name") == Finding.PRODUCER_ID_NEVER_ALLOCATED.name
    is_answered = F.col("name") == Finding.LIVE_OWNER_UNKNOWN.name
    named = findings.where(is_alarming() | is_unallocated | is_answered).select(
        "name", is_alarming().alias("is_alarming"), F.col("producer_id").alias("of_producer"), "transactional_id"
    )
    by_producer = named.join(broadcast(places.select("producer_id")), on=F.col("of_producer") == F.col("producer_id"))
    by_id = named.where(F.col("transactional_id").isNotNull()).join(broadcast(ids), on="transactional_id")
    columns = ("producer_id", "of_producer", "name", "is_alarming", "transactional_id")
    both = by_producer.select(*columns).unionByName(by_id.select(*columns))
    is_of_producer = F.coalesce(F.col("of_producer") == F.col("producer_id"), F.lit(False))
    owner = F.when(is_answered & is_of_producer, F.col("transactional_id"))
    return both.groupBy("producer_id").agg(
        F.sort_array(F.collect_set(F.when(F.col("is_alarming"), F.col("name")))).alias("alarms"),
        F.bool_or(is_unallocated & is_of_producer).alias("is_never_allocated"),
        F.sort_array(F.collect_set(owner)).alias("answered_owners"),
    )
