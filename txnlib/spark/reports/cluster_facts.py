"""What the dossiers of an audit share: the coordinators' copies, and what the cluster's metadata log shows. One query."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, TRANSACTION_VERSION
from txnlib.core.verdicts.dossier import CapturedCopy, ClusterFacts, CoordinatorPartition
from txnlib.core.verdicts.evidence import Election, FencedBroker, LoweredFeature, Thresholds
from txnlib.spark import windows
from txnlib.spark.instants import latest_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.typed_rows import struct, typed

#: Newest elections of a partition, and newest records that fenced a broker or lowered a feature, to look at.
MOST_EVENTS: Final = 100


def cluster_facts(
    coverage: DataFrame,
    coordinator_states: DataFrame,
    findings: DataFrame,
    partition_assignments: DataFrame,
    broker_sessions: DataFrame,
    cluster_settings: DataFrame,
    *,
    thresholds: Thresholds,
    kafka_version: str | None,
    transaction_version: int | None,
    count_basis: str,
    is_metadata_confirmed: bool,
    hides_elections: bool = False,
) -> ClusterFacts:
    """The facts about the cluster, collected."""
    coordinators = _coordinators(coverage, coordinator_states, findings, partition_assignments)
    parts = (
        coordinators.agg(F.collect_list("coordinator").alias("coordinators")),
        coverage.where(F.col("source").startswith("raw:")).agg(
            # Brokers keep one in each partition's folder: where most copies have theirs, the others were lost.
            (2 * F.count("checkpoint_leader_epoch") > F.count("*")).alias("has_epoch_checkpoints")
        ),
        _fenced_brokers(broker_sessions),
        _lowered_features(cluster_settings),
    )
    (row,) = reduce(lambda left, right: left.crossJoin(right), parts).toArrow().to_pylist()
    return ClusterFacts(
        thresholds=thresholds,
        kafka_version=kafka_version,
        transaction_version=transaction_version,
        count_basis=count_basis,
        is_metadata_confirmed=is_metadata_confirmed,
        hides_elections=hides_elections,
        coordinators=tuple(typed(CoordinatorPartition, each) for each in row["coordinators"] or ()),
        has_epoch_checkpoints=bool(row["has_epoch_checkpoints"]),
        fenced=tuple(typed(FencedBroker, each) for each in row["fenced"] or ()),
        lowered=tuple(typed(LoweredFeature, each) for each in row["lowered"] or ()),
    )


def copies_of_partitions(coverage: DataFrame) -> DataFrame:
    """One row per partition with `copies`, those of living topics, as CapturedCopy. Columns: TOPIC_PARTITION, copies."""
    fields = {
        "truncated_from": F.array_min("truncated.from_offset"),
        "checkpointed_ms": F.unix_millis("checkpointed_at"),
        "captured_ms": F.unix_millis("captured_at"),
        "newest_stamp_ms": F.unix_millis("newest_stamp"),
        "known_until_ms": F.unix_millis("known_until"),
        "answered_ms": F.unix_millis("answered_at"),
    }
    living = coverage.where(~F.coalesce("is_deleted", F.lit(False)))
    return living.groupBy("topic", "partition").agg(F.collect_list(struct(CapturedCopy, fields)).alias("copies"))


def _coordinators(
    coverage: DataFrame, coordinator_states: DataFrame, findings: DataFrame, partition_assignments: DataFrame
) -> DataFrame:
    """One row per coordinator partition that is known: `coordinator`, as CoordinatorPartition."""
    is_coordinator = F.col("topic") == TRANSACTION_STATE_TOPIC
    copies = copies_of_partitions(coverage.where(is_coordinator)).drop("topic")
    logs = coordinator_states.groupBy(F.col("coordinator_partition").alias("partition")).agg(
        F.max("coordinator_epoch").alias("newest_coordinator_epoch"),
        F.max("offset").alias("last_offset"),
        F.max("hole_offset").alias("hole_offset"),
        F.max(latest_ms("hole_ms")).alias("hole_ms"),
    )
    elections = elections_of(partition_assignments.where(is_coordinator)).drop("topic")
    alarms = alarms_of(findings.where(is_coordinator), "partition")
    joined = copies
    for part in (logs, elections, alarms):
        joined = joined.join(broadcast(part), on="partition", how="left")
    return joined.select(struct(CoordinatorPartition).alias("coordinator"))


def is_alarming() -> Column:
    """Whether a finding forbids an abort of what it names."""
    alarming = [Severity.ERROR.name, Severity.CRITICAL.name]
    return F.col("severity").isin(alarming) | (F.col("name") == Finding.WRONG_COORDINATOR_PARTITION.name)


def alarms_of(findings: DataFrame, *key: str) -> DataFrame:
    """The names of findings that forbid an abort of what has the key. Columns: key, alarms."""
    return findings.where(is_alarming()).groupBy(*key).agg(F.sort_array(F.collect_set("name")).alias("alarms"))


def elections_of(partition_assignments: DataFrame) -> DataFrame:
    """One row per partition with its newest elections, in order: the states with another leader or leader epoch than before.

    All times are the controller's. Columns: topic, partition, elections.
    """
    state = F.struct("leader", "leader_epoch")
    dated = partition_assignments.withColumn("before", F.lag(state).over(windows.assignments_of_partition()))
    changed = dated.where(F.col("before").isNull() | ~state.eqNullSafe(F.col("before")))
    until = F.coalesce(F.lead(F.unix_millis("since")).over(windows.assignments_of_partition()), F.unix_millis("until"))
    fields = {
        "offset": F.col("since_offset"),
        "at_ms": F.unix_millis("since"),
        "until_ms": F.col("until_ms"),
        "is_first": F.col("before").isNull(),
    }
    election = struct(Election, fields)
    return changed.withColumn("until_ms", until).groupBy("topic", "partition").agg(_newest(election).alias("elections"))


def _newest(event: Column) -> Column:
    """The newest events, in order. They begin with their offset."""
    return F.reverse(F.slice(F.sort_array(F.collect_list(event), asc=False), 1, MOST_EVENTS))


def _fenced_brokers(broker_sessions: DataFrame) -> DataFrame:
    """One row: `fenced`, the records that fenced a broker."""
    before = F.lag("is_fenced").over(windows.sessions_of_broker())
    fenced = broker_sessions.withColumn("was_fenced", before).where(F.col("is_fenced") & ~F.col("was_fenced"))
    fields = {"offset": F.col("since_offset"), "at_ms": F.unix_millis("since"), "broker": F.col("broker_id")}
    return fenced.agg(_newest(struct(FencedBroker, fields)).alias("fenced"))


def _lowered_features(cluster_settings: DataFrame) -> DataFrame:
    """One row: `lowered`, the records that lowered `transaction.version`."""
    levels = cluster_settings.where((F.col("scope") == "FEATURE") & (F.col("name") == TRANSACTION_VERSION)).select(
        F.col("since_offset").alias("offset"),
        F.unix_millis("since").alias("at_ms"),
        F.lag(F.col("value").cast("int")).over(windows.values_of_setting()).alias("level_before"),
        F.col("value").cast("int").alias("level"),
    )
    return levels.where("level < level_before").agg(_newest(struct(LoweredFeature)).alias("lowered"))
