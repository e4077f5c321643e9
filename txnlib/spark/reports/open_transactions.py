"""`open_transactions`: the open transactions, who would end each, and the verdict.

Follows the steps of the live tool: candidates, their owners, what the owner expects, the verdict. Spark collects the evidence of
both sides in two structs with the field names of `core.verdicts.evidence`; the core judges.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.copies import PROVES_LEADER, End, Role
from txnlib.core.verdicts.evidence import Owner, Thresholds
from txnlib.core.verdicts.find_hanging import MS_PER_MINUTE
from txnlib.core.verdicts.reason import Verdict
from txnlib.spark import windows
from txnlib.spark.coordinators.transactional_ids import is_two_phase_commit, last_records
from txnlib.spark.core_udfs import application_of, judgement
from txnlib.spark.coverage.coverage import begins_at_snapshot, shows_absence
from txnlib.spark.coverage.leaders import NO_LEADER
from txnlib.spark.instants import clock_ms, instant
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import settled
from txnlib.spark.producers.producer_spans import open_spans
from txnlib.spark.reports.check_evidence import alarms, start_checks
from txnlib.spark.reports.decision_evidence import committed_siblings, decisions, sibling_commit_ms, siblings
from txnlib.spark.reports.metadata_evidence import blocks, coordinator_elections, elections, fenced_brokers, lowered_features
from txnlib.spark.reports.surroundings import surroundings
from txnlib.spark.schemas import (
    HANGING_TRANSACTIONS,
    LATE_TRANSACTIONS,
    OPEN_TRANSACTION,
    OPEN_TRANSACTIONS,
    PRODUCER,
    TOPIC_PARTITION,
    conform,
)


def open_transactions(
    producer_spans: DataFrame,
    record_batches: DataFrame,
    coordinator_states: DataFrame,
    transactions: DataFrame,
    producer_id_owners: DataFrame,
    coverage: DataFrame,
    checked_batches: DataFrame,
    findings: DataFrame,
    partition_assignments: DataFrame,
    broker_sessions: DataFrame,
    cluster_settings: DataFrame,
    producer_id_blocks: DataFrame,
    *,
    thresholds: Thresholds,
    kafka_version: str | None,
    transaction_version: int | None = None,
    coordinator_partitions_basis: str = "GIVEN",
    application_patterns: tuple[str, ...] = (),
    earlier: DataFrame | None = None,
) -> DataFrame:
    """One row per open transaction on a partition, judged. Columns: OPEN_TRANSACTIONS.

    `earlier`: the stored table of other runs of the cluster. A transaction in it was open at that run's instant.
    Kafka: `TransactionsCommand.FindHangingTransactionsCommand`, KIP-664.
    """
    spans = settled(open_spans(producer_spans).withColumn("start_offset", F.col("first_offset")))
    opened = settled(_with_history(_with_copies(spans, coverage), earlier))
    # Open transactions are few, and so is the evidence on each.
    owned = settled(_owned(spans, producer_id_owners, coordinator_states))
    about = (
        owned,
        decisions(spans, transactions),
        siblings(spans, producer_spans, transactions),
        start_checks(opened, checked_batches),
        alarms(spans, owned, findings),
    )
    evidence = opened
    for part in about:
        evidence = evidence.join(broadcast(part), on=list(OPEN_TRANSACTION), how="left")
    evidence = (
        evidence.join(broadcast(_coordinators(coverage, coordinator_states)), on="coordinator_partition", how="left")
        .join(broadcast(_all_coordinators(coverage)), how="left")
        .join(broadcast(coordinator_states.agg(F.max("hole_ms").alias("newest_hole_ms"))), how="left")
    )
    evidence = _with_metadata(evidence, opened, partition_assignments, broker_sessions, cluster_settings, producer_id_blocks)
    around = surroundings(opened, record_batches)
    evidence = evidence.join(broadcast(around), on=[*TOPIC_PARTITION, "start_offset"], how="left")
    limits = F.struct(*[F.lit(value).cast("long").alias(name) for name, value in vars_of(thresholds).items()])
    coordinator_side = _coordinator_side(coordinator_partitions_basis, transaction_version)
    judged = evidence.withColumn(
        "judgement",
        judgement()(_partition_side(), coordinator_side, _cluster_side(), limits, F.lit(kafka_version).cast("string")),
    )
    reported = _reported(judged, thresholds).withColumn("application", application_of(application_patterns)("transactional_id"))
    return conform(reported, OPEN_TRANSACTIONS)


def _with_metadata(
    evidence: DataFrame,
    opened: DataFrame,
    partition_assignments: DataFrame,
    broker_sessions: DataFrame,
    cluster_settings: DataFrame,
    producer_id_blocks: DataFrame,
) -> DataFrame:
    """The evidence with what the cluster's metadata log shows about it."""
    return (
        evidence.join(broadcast(elections(opened, partition_assignments)), on=list(TOPIC_PARTITION), how="left")
        .join(broadcast(coordinator_elections(partition_assignments)), on="coordinator_partition", how="left")
        .join(broadcast(blocks(opened, producer_id_blocks)), on=list(OPEN_TRANSACTION), how="left")
        .join(broadcast(fenced_brokers(broker_sessions)), how="left")
        .join(broadcast(lowered_features(cluster_settings)), how="left")
    )


def _cluster_side() -> Column:
    names = ("elections", "coordinator_elections", "fenced", "lowered", "block")
    return F.struct(*names, F.coalesce("is_never_allocated", F.lit(False)).alias("is_never_allocated"))


def hanging_transactions(open_transactions: DataFrame) -> DataFrame:
    """The open transactions that no coordinator will end. Columns: HANGING_TRANSACTIONS."""
    return conform(open_transactions.where(F.col("verdict") == Verdict.HANGING.value), HANGING_TRANSACTIONS)


def late_transactions(open_transactions: DataFrame) -> DataFrame:
    """The open transactions that their coordinator should have ended by now. Columns: LATE_TRANSACTIONS."""
    return conform(open_transactions.where(F.col("verdict") == Verdict.LATE.value), LATE_TRANSACTIONS)


def vars_of(thresholds: Thresholds) -> dict[str, int]:
    return {name: getattr(thresholds, name) for name in Thresholds.__dataclass_fields__}


def _with_copies(spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Open spans, each with the facts about its copy."""
    judged = coverage.where("is_judged").select(
        *TOPIC_PARTITION,
        "source",
        "end_offset",
        (F.coalesce("read_from_offset", "log_start_offset", F.lit(0)) > 0).alias("begins_late"),
        F.coalesce("high_watermark", "end_offset").alias("high_watermark"),
        F.col("high_watermark").alias("checkpoint_offset"),
        F.unix_millis("checkpointed_at").alias("checkpointed_ms"),
        F.col("gap_offset").alias("copy_gap_offset"),
        F.unix_millis("known_until").alias("partition_known_until_ms"),
        F.unix_millis("captured_at").alias("partition_captured_ms"),
        F.col("is_instant_assumed").alias("is_partition_assumed"),
        F.col("role").alias("partition_role"),
        F.col("ends").alias("partition_end"),
        F.when(F.col("leader_basis").isin(*PROVES_LEADER), F.col("leader") != NO_LEADER).alias("has_leader"),
        "leader",
        F.col("damaged_offset").alias("partition_damaged_offset"),
        F.when(begins_at_snapshot(), F.col("read_from_offset")).alias("snapshot_from_offset"),
    )
    cut = (
        coverage.where(F.col("truncated").isNotNull())
        .groupBy(*TOPIC_PARTITION)
        .agg(
            F.min(F.array_min("truncated.from_offset")).alias("truncated_from"),
            (F.max("end_offset") - 1).alias("truncated_until"),
        )
    )
    joined = spans.join(broadcast(judged), on=list(TOPIC_PARTITION), how="left")
    return joined.join(broadcast(cut), on=list(TOPIC_PARTITION), how="left")


def _with_history(opened: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """Open spans with the instant of the oldest earlier audit that saw each, and the number of audits that did."""
    if earlier is None:
        return opened.withColumns({"earliest": F.lit(None).cast("timestamp"), "earlier_runs": F.lit(None).cast("int")})
    seen = earlier.groupBy(*OPEN_TRANSACTION).agg(
        F.min("as_of").alias("earliest"), F.count_distinct("run_id").cast("int").alias("earlier_runs")
    )
    return opened.join(seen, on=list(OPEN_TRANSACTION), how="left")


def _owned(opened: DataFrame, producer_id_owners: DataFrame, coordinator_states: DataFrame) -> DataFrame:
    """The transactional id of each open transaction, with its last record.

    If several ids claim the producer id, one that lists the partition wins, then one whose current producer id it is. A second
    claim is a finding, not a second row (DESIGN.md 5.3, rule 9).
    """
    ranks = F.create_map(*[F.lit(x) for rank, owner in enumerate(_BY_CLAIM) for x in (owner.value, rank)])
    last = last_records(coordinator_states).select(
        "transactional_id",
        "coordinator_partition",
        F.col("state").alias("coordinator_state"),
        F.col("producer_epoch").alias("coordinator_producer_epoch"),
        "transaction_timeout_ms",
        F.col("start_ms").alias("transaction_start_ms"),
        "last_update_ms",
        "record_ms",
        F.col("coordinator_epoch").alias("record_coordinator_epoch"),
        "record_offset",
        "is_superseded",
        "hole_ms",
        "client_transaction_version",
        F.col("partitions").alias("coordinator_partitions"),
    )
    claims = producer_id_owners.select("producer_id", "transactional_id", "coordinator_partition", "owner", "last_record_offset")
    claimed = (
        claims.join(broadcast(opened.select(*OPEN_TRANSACTION)), on="producer_id", how="inner")
        .join(last, on=["transactional_id", "coordinator_partition"], how="left")
        .withColumns(
            {
                "is_listed": F.coalesce(F.array_contains("coordinator_partitions", F.struct("topic", "partition")), F.lit(False)),
                "rank": ranks[F.col("owner")],
            }
        )
        .withColumn("is_not_listed", ~F.col("is_listed"))
    )
    return claimed.withColumn("claim", F.row_number().over(windows.owners_of_open_transaction())).where("claim = 1")


#: Owners of a producer id, the best claim first.
_BY_CLAIM: Final = (Owner.CURRENT, Owner.NEXT, Owner.ROTATED, Owner.EXPIRED)


def _coordinators(coverage: DataFrame, coordinator_states: DataFrame) -> DataFrame:
    """Each captured coordinator partition: the instant up to which its copies together are complete, and what damage hides."""
    newest_epochs = coordinator_states.groupBy("coordinator_partition").agg(
        F.max("coordinator_epoch").alias("newest_coordinator_epoch")
    )
    captured = (
        coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & (F.col("status") != "MISSING") & ~_is_deleted())
        .groupBy(F.col("partition").alias("coordinator_partition"))
        .agg(
            F.max(F.when(F.col("is_decoded"), F.unix_millis("known_until"))).alias("coordinator_known_ms"),
            F.max_by(F.struct("role", "ends", "high_watermark", "leader", "leader_basis"), _standing_of_copy()).alias("best"),
            # It is not known when a console consumer ended.
            F.max(F.when(shows_absence(), F.unix_millis("captured_at"))).alias("coordinator_captured_ms"),
            F.bool_and("is_instant_assumed").alias("is_coordinator_assumed"),
            # A copy without damage at that offset makes up for the others.
            F.when(F.bool_and(F.col("damaged_offset").isNotNull()), F.min("damaged_offset")).alias("damaged_offset"),
        )
    )
    return captured.join(newest_epochs, on="coordinator_partition", how="left")


def _is_deleted() -> Column:
    return F.coalesce("is_deleted", F.lit(False))


def _standing_of_copy() -> Column:
    """Sort key of copies by trust: current ones, complete ones, the judged one."""
    is_current, is_whole = F.coalesce("is_current", F.lit(False)), F.coalesce(F.col("ends") == End.WHOLE.value, F.lit(False))
    return F.struct(is_current, is_whole, F.coalesce("is_judged", F.lit(False)), "end_offset")


def _all_coordinators(coverage: DataFrame) -> DataFrame:
    """One row: the instant up to which every coordinator is known, and the coordinator partitions without a complete copy."""
    each = (
        coverage.where((F.col("topic") == TRANSACTION_STATE_TOPIC) & ~_is_deleted())
        .groupBy("partition")
        .agg(
            F.max(F.unix_millis("known_until")).alias("known_ms"),
            F.bool_or(shows_absence()).alias("is_whole"),
            F.max_by(F.struct("role", "ends", "leader"), _standing_of_copy()).alias("best"),
            F.bool_or(F.coalesce("is_current", F.lit(False))).alias("is_current"),
            F.max("leader").alias("leader"),
        )
    )
    is_missing = ~F.coalesce("is_whole", F.lit(False))
    return each.agg(
        F.sort_array(F.collect_list(F.when(is_missing, F.col("partition")))).alias("missing_partitions"),
        F.array_join(F.sort_array(F.collect_set(F.when(is_missing, F.col("leader")))), ", ").alias("missing_leaders"),
        F.when(F.bool_and(F.col("known_ms").isNotNull()), F.min("known_ms")).alias("all_coordinators_known_ms"),
        F.count("*").alias("coordinators_count"),
        F.min_by("best", "is_current").alias("worst_coordinator"),
    )


def _partition_side() -> Column:
    gap = F.col("copy_gap_offset")
    fields = {
        "topic": F.col("topic"),
        "partition": F.col("partition"),
        "producer_id": F.col("producer_id"),
        "producer_epoch": F.col("state.producer_epoch"),
        "coordinator_epoch": F.col("state.coordinator_epoch"),
        "start_offset": F.col("start_offset"),
        "last_timestamp_ms": F.col("state.last_timestamp"),
        "is_broker_clock": F.coalesce("is_broker_clock", F.lit(False)),
        "first_timestamp_ms": F.coalesce("first_timestamp_ms", "state.last_timestamp"),
        "is_start_exact": F.col("is_start_exact") & F.coalesce("is_start_proven", F.lit(True)),
        "stamped_before_ms": F.col("stamped_before_ms"),
        "stamped_after_ms": F.col("stamped_after_ms"),
        "hides_stamps": F.col("snapshot_from_offset").isNotNull() & F.col("stamped_before_ms").isNull(),
        "checkpointed_ms": F.when(F.col("checkpoint_offset") > F.col("start_offset"), F.col("checkpointed_ms")),
        "gap_offset": F.when(gap > F.col("start_offset"), gap),
        "known_until_ms": F.col("partition_known_until_ms"),
        "captured_at_ms": F.col("partition_captured_ms"),
        "is_capture_instant_assumed": F.coalesce("is_partition_assumed", F.lit(True)),
        "role": F.coalesce("partition_role", F.lit(Role.OTHER.value)),
        "end": F.coalesce("partition_end", F.lit(End.TORN.value)),
        "has_leader": F.col("has_leader"),
        "leader": F.nullif("leader", F.lit(NO_LEADER)),
        "truncated_from": F.col("truncated_from"),
        "truncated_until": F.col("truncated_until"),
        "is_tail_lost": F.coalesce(F.col("partition_damaged_offset") > F.col("start_offset"), F.lit(False)),
        "is_disputed": F.coalesce("is_disputed", F.lit(False)) & (F.col("partition_role") != Role.LEADER.value),
        "is_start_committed": F.col("start_offset") < F.col("checkpoint_offset"),
        "crc": F.coalesce("crc", F.lit("NOT_CHECKED")),
        "first_seen_ms": F.unix_millis("earliest"),
        "sibling_commit_ms": sibling_commit_ms(),
        "newest_marker_ms": F.col("newest_marker_ms"),
        "newest_commit_ms": F.col("newest_commit.ms"),
        "newest_commit_coordinator_epoch": F.col("newest_commit.coordinator_epoch"),
        "clocks_differ_ms": F.coalesce("clocks_differ_ms", F.lit(CLOCKS_DIFFER_MS).cast("long")),
        "alarms": F.col("alarms"),
        "marker_offset": F.col("marker_before.offset"),
        "marker_type": F.col("marker_before.type"),
        "marker_epoch": F.col("marker_before.epoch"),
        "marker_coordinator_epoch": F.col("marker_before.coordinator_epoch"),
        "marker_ms": F.col("marker_before.ms"),
    }
    return F.struct(*[value.alias(name) for name, value in fields.items()])


def _coordinator_side(count_basis: str, transaction_version: int | None) -> Column:
    is_owned = F.col("transactional_id").isNotNull()
    no_coordinator = F.coalesce("coordinators_count", F.lit(0)) == 0
    high_watermark = F.col("best.high_watermark")
    of_others = F.coalesce(F.nullif("missing_leaders", F.lit("")), "worst_coordinator.leader")
    fields = {
        "owner": F.coalesce("owner", F.lit(Owner.NOBODY.value)),
        "transactional_id": F.col("transactional_id"),
        "coordinator_partition": F.col("coordinator_partition"),
        "state": F.col("coordinator_state"),
        "record_offset": F.col("record_offset"),
        "producer_epoch": F.col("coordinator_producer_epoch"),
        "transaction_timeout_ms": F.col("transaction_timeout_ms"),
        "transaction_start_ms": F.col("transaction_start_ms"),
        "last_update_ms": F.col("last_update_ms"),
        "record_ms": F.col("record_ms"),
        "record_coordinator_epoch": F.col("record_coordinator_epoch"),
        "newest_coordinator_epoch": F.col("newest_coordinator_epoch"),
        "is_listed": F.coalesce("is_listed", F.lit(False)),
        "transaction_version": F.col("client_transaction_version"),
        "known_until_ms": F.when(is_owned, F.col("coordinator_known_ms")).otherwise(F.col("all_coordinators_known_ms")),
        "is_capture_instant_assumed": F.coalesce("is_coordinator_assumed", F.lit(True)),
        "damaged_offset": F.col("damaged_offset"),
        "missing_partitions": F.when(~no_coordinator, F.col("missing_partitions")),
        "leader": F.nullif(F.when(is_owned, F.col("best.leader")).otherwise(of_others), F.lit(NO_LEADER)),
        "has_leader": F.when(is_owned & F.col("best.leader_basis").isin(*PROVES_LEADER), F.col("best.leader") != NO_LEADER),
        "ended_ms": _ended_ms(),
        "decision": F.when(F.col("decision").isNotNull(), _decided("decision")),
        "commit_due": F.when(F.col("commit_due").isNotNull(), _decided("commit_due")),
        "role": F.coalesce(
            F.when(is_owned, F.col("best.role")).otherwise(F.col("worst_coordinator.role")), F.lit(Role.OTHER.value)
        ),
        "end": F.coalesce(F.when(is_owned, F.col("best.ends")).otherwise(F.col("worst_coordinator.ends")), F.lit(End.TORN.value)),
        "is_record_committed": F.coalesce(F.col("record_offset") < high_watermark, F.lit(True)),
        "count_basis": F.lit(count_basis),
        "compacted_ms": F.when(is_owned, F.col("hole_ms")).otherwise(F.col("newest_hole_ms")),
        "is_superseded": F.coalesce("is_superseded", F.lit(False)),
        "cluster_transaction_version": F.lit(transaction_version).cast("int"),
    }
    return F.struct(*[value.alias(name) for name, value in fields.items()])


def _decided(name: str) -> Column:
    """A decision of `decision_evidence` as the core's `Decided`."""
    of = F.col(name)
    fields = {
        "type": of["type"],
        "producer_epoch": of["producer_epoch"],
        "coordinator_epoch": F.coalesce("newest_coordinator_epoch", of["coordinator_epoch"]),
        "decided_ms": of["decided_ms"],
        "completed_ms": of["completed_ms"],
        "transaction_version": of["transaction_version"],
        "is_marked": of["is_marked"],
        "lists_partition": of["lists_partition"],
    }
    return F.struct(*[value.alias(field) for field, value in fields.items()])


def _ended_ms() -> Column:
    """The latest time at which the newest decided transaction ended, in ms.

    If the time of an end is unknown, it may be as late as its copy, unless its marker is here.
    """
    has_marker = F.coalesce(clock_ms("marker_before.ms") >= F.col("last_prepared_ms"), F.lit(False))
    may_be_younger = F.coalesce(F.col("is_end_untimed"), F.lit(False)) & ~has_marker
    latest = F.coalesce("coordinator_captured_ms", F.lit(NO_INSTANT_MS))
    return F.when(may_be_younger, F.greatest("ended_at_ms", latest)).otherwise(F.col("ended_at_ms"))


def _reported(judged: DataFrame, thresholds: Thresholds) -> DataFrame:
    as_of = instant(F.lit(thresholds.as_of_ms))
    last_ms = F.col("state.last_timestamp")
    proven = F.col("judgement.proven_since_ms")
    return judged.select(
        as_of.alias("as_of"),
        *PRODUCER,
        "state.producer_epoch",
        "state.coordinator_epoch",
        "start_offset",
        instant(last_ms).alias("last_timestamp"),
        last_ms.alias("last_timestamp_ms"),
        ((F.lit(thresholds.as_of_ms) - clock_ms(last_ms)) / MS_PER_MINUTE).cast("long").alias("duration_minutes"),
        "transactional_id",
        "coordinator_partition",
        "coordinator_state",
        instant("transaction_start_ms").alias("transaction_start"),
        F.col("transaction_timeout_ms").cast("long").alias("transaction_timeout_ms"),
        F.coalesce(is_two_phase_commit(), F.lit(False)).alias("is_two_phase_commit"),
        "judgement.*",
        instant("judgement.safe_from_ms").alias("safe_from"),
        "records",
        committed_siblings().alias("committed_siblings"),
        F.greatest(F.col("high_watermark") - F.col("start_offset"), F.lit(0)).alias("blocked_offsets"),
        # Bytes before a snapshot were not counted.
        F.when(~F.coalesce(F.col("start_offset") < F.col("snapshot_from_offset"), F.lit(False)), F.col("bytes_from_here")).alias(
            "blocked_bytes"
        ),
        instant(F.coalesce(proven, clock_ms("first_timestamp_ms"), clock_ms("state.last_timestamp"))).alias("blocks_since"),
        F.coalesce("earliest", as_of).alias("first_seen"),
        (F.lit(1) + F.coalesce("earlier_runs", F.lit(0))).alias("runs_seen"),
    )
