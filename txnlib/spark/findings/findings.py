"""`findings`: oddities in the logs. Rules for partitions, for coordinators, and between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from inspect import signature
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import FINDINGS as CATALOGUE
from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.spark.coordinators.transactional_ids import last_records
from txnlib.spark.core_udfs import batch_findings, coordinator_partition_of
from txnlib.spark.findings.abandoned_id_findings import abandoned_id_findings
from txnlib.spark.findings.copy_findings import copy_findings
from txnlib.spark.findings.deleted_topic_findings import deleted_topic_findings
from txnlib.spark.findings.live_answer_findings import live_answer_findings
from txnlib.spark.findings.marker_findings import marker_findings
from txnlib.spark.findings.metadata_findings import metadata_findings
from txnlib.spark.findings.transaction_index_findings import transaction_index_findings
from txnlib.spark.instants import clock_ms, is_shown
from txnlib.spark.producers.producer_spans import SUSPECTS_KEPT, newest_spans, open_spans
from txnlib.spark.schemas import FINDINGS, PRODUCER, conform


def findings(
    record_batches: DataFrame,
    transaction_log: DataFrame,
    producer_spans: DataFrame,
    coordinator_states: DataFrame,
    transactions: DataFrame,
    producer_id_owners: DataFrame,
    aborted_transactions: DataFrame,
    coverage: DataFrame,
    checked_batches: DataFrame,
    partition_assignments: DataFrame,
    producer_id_blocks: DataFrame,
    live_producers: DataFrame,
    live_transactions: DataFrame,
    *,
    producer_id_expiration_ms: int,
    coordinator_partitions: int,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
    clock_tolerance_ms: int,
    application_patterns: tuple[str, ...] = (),
    whole_metadata_ms: int | None = None,
    contradictions: tuple[str, ...] = (),
) -> DataFrame:
    """One row per finding. Columns: FINDINGS. `core.finding_catalogue.FINDINGS` has the names, severities and meanings.

    The parameters are what rules may read: each rule gets those that it names.
    """
    inputs = locals()
    found = [rule(**{name: inputs[name] for name in signature(rule).parameters}) for rule in RULES]
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), found)
    severities = F.create_map(*[F.lit(x) for f, rule in CATALOGUE.items() for x in (f.name, rule.severity.name)])
    meanings = F.create_map(*[F.lit(x) for f, rule in CATALOGUE.items() for x in (f.name, rule.meaning)])
    severity = F.coalesce("severity", severities[F.col("name")])
    is_now = F.lit(None).cast("timestamp")  # forecasts are made at the end of a run
    return conform(rows.withColumns({"severity": severity, "message": meanings[F.col("name")], "expected": is_now}), FINDINGS)


def _row(name: Column, **columns: Column) -> list[Column]:
    return [name.alias("name"), *[value.alias(column) for column, value in columns.items()]]


def _of_partitions(producer_spans: DataFrame, producer_id_expiration_ms: int) -> DataFrame:
    many = newest_spans(producer_spans).where(F.col("suspects_count") > SUSPECTS_KEPT).select(*PRODUCER, "suspects_count")
    suspects = producer_spans.where(F.col("suspect").isNotNull()).drop("suspects_count").join(many, on=list(PRODUCER), how="left")
    named = suspects.withColumn(
        "names",
        batch_findings()("topic", "suspect.before", "suspect.batch", "producer_id", F.lit(producer_id_expiration_ms).cast("long")),
    )
    more = F.when(
        F.col("suspects_count") > SUSPECTS_KEPT,
        F.concat(F.lit("; and "), F.col("suspects_count") - SUSPECTS_KEPT, F.lit(" more batches of the same producer")),
    )
    shown = F.concat(
        F.lit("batch "),
        F.to_json("suspect.batch"),
        F.lit(" after "),
        F.to_json("suspect.before"),
        F.coalesce(more, F.lit("")),
    )
    return named.withColumn("name", F.explode("names")).select(
        *_row(
            F.col("name"),
            evidence=shown,
            topic=F.col("topic"),
            partition=F.col("partition"),
            offset=F.col("suspect.batch.base_offset"),
            producer_id=F.col("producer_id"),
        )
    )


def _of_coordinators(coordinator_states: DataFrame) -> DataFrame:
    odd = coordinator_states.where(F.size("findings") > 0)
    shown = F.concat_ws(" ", F.col("transition"), F.concat(F.lit("producer epoch "), F.col("producer_epoch")))
    return odd.withColumn("name", F.explode("findings")).select(
        *_row(
            F.col("name"),
            evidence=shown,
            topic=F.lit(TRANSACTION_STATE_TOPIC),
            partition=F.col("coordinator_partition"),
            offset=F.col("offset"),
            producer_id=F.col("producer_id"),
            transactional_id=F.col("transactional_id"),
        )
    )


def _of_timeouts(coordinator_states: DataFrame, transaction_max_timeout_ms: int) -> DataFrame:
    """Timeouts that no broker accepts. Kafka: `TransactionManager.validateTransactionTimeoutMs`."""
    timeout = F.col("transaction_timeout_ms")
    is_refused = ~timeout.isin(*TWO_PHASE_COMMIT_TIMEOUTS) & ((timeout <= 0) | (timeout > transaction_max_timeout_ms))
    ids = (
        coordinator_states.where(is_refused)
        .groupBy("transactional_id", "coordinator_partition")
        .agg(F.max(F.struct("offset", "producer_id", "transaction_timeout_ms")).alias("last"))
    )
    return ids.select(
        *_row(
            F.lit(Finding.INVALID_TRANSACTION_TIMEOUT.name),
            evidence=F.concat(F.lit("timeout of "), F.col("last.transaction_timeout_ms"), F.lit(" ms")),
            topic=F.lit(TRANSACTION_STATE_TOPIC),
            partition=F.col("coordinator_partition"),
            offset=F.col("last.offset"),
            producer_id=F.col("last.producer_id"),
            transactional_id=F.col("transactional_id"),
        )
    )


def _of_corrupt_batches(checked_batches: DataFrame) -> DataFrame:
    return (
        checked_batches.where(~F.col("is_crc_valid"))
        .select(
            *_row(
                F.lit(Finding.CORRUPT_MESSAGE.name),
                evidence=F.concat("path", F.lit(" at byte "), "position", F.lit(": "), "size", F.lit(" bytes")),
                topic=F.col("topic"),
                partition=F.col("partition"),
                offset=F.col("base_offset"),
                producer_id=F.col("producer_id"),
            )
        )
        .distinct()
    )


def _of_timestamps(producer_spans: DataFrame, as_of_ms: int, clock_tolerance_ms: int) -> DataFrame:
    """Producers with an open transaction whose last write is stamped later than the audit."""
    return (
        open_spans(producer_spans)
        .where(clock_ms("state.last_timestamp") > as_of_ms + clock_tolerance_ms)
        .select(
            *_row(
                F.lit(Finding.TIMESTAMP_IN_FUTURE.name),
                evidence=F.concat(F.lit("last write stamped "), F.col("state.last_timestamp"), F.lit(" ms")),
                topic=F.col("topic"),
                partition=F.col("partition"),
                offset=F.col("last_offset"),
                producer_id=F.col("producer_id"),
            )
        )
    )


def _of_unshown_timestamps(producer_spans: DataFrame) -> DataFrame:
    """Producers with a time that no clock shows: in the newest batch or marker, or in the first batch of the open transaction."""
    times = {"last write": "state.last_timestamp", "first write": "first_timestamp_ms"}
    newest = newest_spans(producer_spans)
    is_open = F.col("state.current_txn_first_offset").isNotNull()
    is_odd = ~is_shown("state.last_timestamp") | (is_open & ~is_shown("first_timestamp_ms"))
    return newest.where(is_odd).select(
        *_row(
            F.lit(Finding.INVALID_TIMESTAMP.name),
            evidence=_unshown(times),
            topic=F.col("topic"),
            partition=F.col("partition"),
            offset=F.coalesce("last_offset", "state.last_offset", "marker_offset"),
            producer_id=F.col("producer_id"),
        )
    )


def _of_unshown_records(coordinator_states: DataFrame) -> DataFrame:
    """Transactional ids whose last record contains a time that no clock shows."""
    times = {"appended": "record_ms", "last update": "last_update_ms", "transaction start": "begun_ms"}
    is_odd = reduce(Column.__or__, [F.coalesce(~is_shown(name), F.lit(False)) for name in times.values()])
    # The start of an id without a transaction is any number below 0.
    begun_ms = F.when((F.col("start_ms") >= 0) | (F.col("state") != TransactionState.EMPTY.kafka_name), F.col("start_ms"))
    last = last_records(coordinator_states).withColumn("begun_ms", begun_ms)
    return last.where(is_odd).select(
        *_row(
            F.lit(Finding.INVALID_TIMESTAMP.name),
            evidence=_unshown(times),
            topic=F.lit(TRANSACTION_STATE_TOPIC),
            partition=F.col("coordinator_partition"),
            offset=F.col("record_offset"),
            producer_id=F.col("producer_id"),
            transactional_id=F.col("transactional_id"),
        )
    )


def _unshown(times: Mapping[str, str]) -> Column:
    """The times among these that no clock shows, each with its number, as text."""
    return F.concat_ws(
        "; ", *[F.when(~is_shown(name), F.concat(F.lit(f"{what} stamped "), name, F.lit(" ms"))) for what, name in times.items()]
    )


def of_owners(producer_id_owners: DataFrame) -> DataFrame:
    """Producer ids that more than one transactional id claims. Columns: FINDINGS without severity and message."""
    claims = producer_id_owners.groupBy("producer_id").agg(
        F.sort_array(F.collect_set("transactional_id")).alias("claimed_by"),
        F.max_by("coordinator_partition", "last_record_offset").alias("coordinator_partition"),
        F.max("last_record_offset").alias("last_record_offset"),
    )
    return claims.where(F.size("claimed_by") > 1).select(
        *_row(
            F.lit(Finding.PRODUCER_ID_OWNED_TWICE.name),
            evidence=F.concat(F.lit("claimed by "), F.concat_ws(", ", F.slice("claimed_by", 1, 10))),
            topic=F.lit(TRANSACTION_STATE_TOPIC),
            partition=F.col("coordinator_partition"),
            offset=F.col("last_record_offset"),
            producer_id=F.col("producer_id"),
        )
    )


def _of_hashes(coordinator_states: DataFrame, coordinator_partitions: int) -> DataFrame:
    ids = coordinator_states.groupBy("transactional_id", "coordinator_partition").agg(F.max("offset").alias("offset"))
    hashed = ids.withColumn("hashes_to", coordinator_partition_of()("transactional_id", F.lit(coordinator_partitions)))
    return hashed.where(F.col("hashes_to") != F.col("coordinator_partition")).select(
        *_row(
            F.lit(Finding.WRONG_COORDINATOR_PARTITION.name),
            evidence=F.concat(F.lit(f"of {coordinator_partitions} partitions its hash leads to "), F.col("hashes_to")),
            topic=F.lit(TRANSACTION_STATE_TOPIC),
            partition=F.col("coordinator_partition"),
            offset=F.col("offset"),
            transactional_id=F.col("transactional_id"),
        )
    )


#: Every rule: tables and settings, by their names -> one row per finding, with name, topic, partition and evidence, and where known
#: offset, producer_id and transactional_id. `severity` is only set by a rule whose findings differ in it.
RULES: Final[tuple[Callable[..., DataFrame], ...]] = (
    _of_partitions,
    _of_coordinators,
    of_owners,
    _of_hashes,
    _of_timeouts,
    _of_corrupt_batches,
    _of_timestamps,
    _of_unshown_timestamps,
    _of_unshown_records,
    marker_findings,
    deleted_topic_findings,
    abandoned_id_findings,
    copy_findings,
    transaction_index_findings,
    live_answer_findings,
    metadata_findings,
)
