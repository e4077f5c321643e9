"""Forecasts: collects the facts of each, few rows, for the rules of `core.findings.forecasts`.

Native predicates clear what a rule says nothing about. What is left is collected and judged by the core in the driver, because a
Python task would cost more than these rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.ended_by import EndedBy
from txnlib.core.findings.forecasts import (
    CALLED,
    FEW_PRODUCERS,
    FORECAST_FROM_EPOCH,
    FORECASTS,
    STILL_RUNS,
    UNENDED,
    ForecastSettings,
)
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import EXPIRATION_ALLOWED_STATES
from txnlib.spark.instants import clock_ms
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import TOPIC_PARTITION

#: Most forecasts of one name, the most urgent ones. More are one problem, and these rows are in the driver.
MOST: Final = 1_000
#: Names of the findings that are forecasts.
NAMES: Final = tuple(finding.name for finding in FORECASTS)
#: Where a finding is shown.
PLACE: Final = (*TOPIC_PARTITION, "offset", "producer_id", "transactional_id")
_ID: Final = ("transactional_id", "coordinator_partition")


@dataclass(frozen=True, slots=True)
class PlacedFacts:
    """What a rule of the core reads, and where its finding is shown."""

    finding: Finding
    #: Topic, partition, offset, producer id, transactional id.
    place: tuple[object, ...]
    facts: dict[str, Any]

    @property
    def producer_id(self) -> int:
        """The producer id that they are about."""
        return self.place[3]  # type: ignore[return-value]


def collect_facts(frames: Sequence[DataFrame]) -> list[PlacedFacts]:
    """The rows of frames of facts, in one job."""
    if not frames:
        return []
    rows = reduce(DataFrame.unionByName, frames).collect()
    return [PlacedFacts(Finding[row["name"]], tuple(row[name] for name in PLACE), json.loads(row["facts"])) for row in rows]


def forecast_rows(found: Sequence[PlacedFacts], settings: ForecastSettings) -> list[tuple[object, ...]]:
    """The findings that follow from facts. Columns: FINDINGS."""
    rows: list[tuple[object, ...]] = []
    for each in found:
        kind, rule = FORECASTS[each.finding]
        forecast = rule(kind(**each.facts), settings)
        if forecast is not None:
            expected = None if forecast.expected_ms is None else datetime.fromtimestamp(forecast.expected_ms / 1000, UTC)
            meaning = each.finding.value.meaning
            rows.append((each.finding.name, forecast.severity.name, *each.place, meaning, forecast.arithmetic, expected))
    return rows


def _facts(finding: Finding, facts: dict[str, Column], **place: Column) -> list[Column]:
    """A row of facts. A fact that is NULL is left out, so that the rule has its default."""
    types = {"topic": "string", "partition": "int", "offset": "long", "producer_id": "long", "transactional_id": "string"}
    columns = [place.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in types.items()]
    struct = F.struct(*[fact.alias(name) for name, fact in facts.items()])
    return [F.lit(finding.name).alias("name"), *columns, F.to_json(struct).alias("facts")]


def _of_id(**place: Column) -> dict[str, Column]:
    return {"topic": F.lit(TRANSACTION_STATE_TOPIC), "partition": F.col("coordinator_partition"), **place}


def used_epochs(transactional_ids: DataFrame) -> DataFrame:
    """The ids that have used many epochs; `epoch_histories` has how fast they did."""
    is_many = F.col("producer_epoch") >= FORECAST_FROM_EPOCH
    facts = {"epoch": F.col("producer_epoch"), "is_two_phase_commit": F.col("is_two_phase_commit")}
    place = {name: F.col(name) for name in ("producer_id", "transactional_id")}
    return (
        transactional_ids.where(F.col("state").isNotNull() & is_many)
        .orderBy(F.desc("producer_epoch"), "transactional_id")
        .limit(MOST)
        .select(*_facts(Finding.PRODUCER_EPOCHS_RUN_OUT, facts, **_of_id(offset=F.col("record_offset"), **place)))
    )


def epoch_histories(
    producer_ids: Sequence[int], coordinator_states: DataFrame, producer_spans: DataFrame, earlier_ids: DataFrame | None
) -> DataFrame:
    """The oldest known epoch of each producer id, and when it had it. Columns: producer_id, earlier_epoch, earlier_ms.

    A compacted log has only the newest record of an id, so markers and `transactional_ids` of earlier runs count, too.
    """
    sources = [
        coordinator_states.select("producer_id", clock_ms("timestamp_ms").alias("ms"), F.col("producer_epoch").alias("epoch")),
        producer_spans.select("producer_id", clock_ms("marker_ms").alias("ms"), F.col("marker_epoch").alias("epoch")),
    ]
    if earlier_ids is not None:
        updated_ms = F.unix_millis("last_update")
        sources.append(earlier_ids.select("producer_id", updated_ms.alias("ms"), F.col("producer_epoch").alias("epoch")))
    is_known = F.col("producer_id").isin(*producer_ids) & F.col("ms").isNotNull() & F.col("epoch").isNotNull()
    known = reduce(DataFrame.unionByName, [source.where(is_known) for source in sources])
    oldest = known.groupBy("producer_id").agg(F.min(F.struct("ms", "epoch")).alias("oldest"))
    return oldest.select("producer_id", F.col("oldest.epoch").alias("earlier_epoch"), F.col("oldest.ms").alias("earlier_ms"))


def held_ids(transactional_ids: DataFrame, open_transactions: DataFrame) -> DataFrame:
    """The ids that may expire and whose producer id has open transactions that no coordinator will end."""
    expirable = [state.kafka_name for state in EXPIRATION_ALLOWED_STATES]
    held = (
        open_transactions.where(F.col("verdict").isin(*UNENDED) & F.col("coordinator_state").isin(*expirable))
        .groupBy(*_ID, "producer_id")
        .agg(F.count("*").alias("partitions"), F.min(F.struct(*TOPIC_PARTITION)).alias("first"))
    )
    ids = transactional_ids.where(F.col("state").isin(*expirable) & F.col("last_update").isNotNull())
    facts = {
        "last_update_ms": F.unix_millis("last_update"),
        "producer_id": F.col("producer_id"),
        "partitions": F.col("partitions"),
        "first": F.concat_ws("-", "first.topic", "first.partition"),
    }
    place = {name: F.col(name) for name in ("producer_id", "transactional_id")}
    return (
        ids.drop("partitions")
        .join(broadcast(held), on=[*_ID, "producer_id"])
        .orderBy("last_update", "transactional_id")
        .limit(MOST)
        .select(*_facts(Finding.TRANSACTIONAL_ID_EXPIRES, facts, **_of_id(offset=F.col("record_offset"), **place)))
    )


def old_clients(transactions: DataFrame, transactional_ids: DataFrame) -> DataFrame:
    """The applications with ids whose newest transaction is of version 0 or 1 after version 2 applied.

    A record of version 2 proves that the feature was raised: a client's, or that of a coordinator's own abort, which has the
    version of the cluster. So only what a client ended shows the version of the client. Each id counts, because clients are
    upgraded one by one.
    """
    ended_ms = F.unix_millis(F.coalesce("prepared", "completed"))
    ended = transactions.where(F.col("outcome") != "OPEN").withColumn("ended_ms", ended_ms).where("ended_ms IS NOT NULL")
    is_raised = (F.col("transaction_version") >= 2) | (F.col("cluster_transaction_version") >= 2)
    raised = ended.where(is_raised).agg(F.min("ended_ms").alias("raised_ms"))
    is_by_client = (F.col("outcome") == "COMMIT") | (F.col("ended_by") == EndedBy.CLIENT.value)
    is_since = (F.col("ended_ms") >= F.col("raised_ms")) & (F.coalesce("cluster_transaction_version", F.lit(2)) >= 2)
    is_old = F.col("transaction_version") < 2
    newest = ("transaction_version", "ended_ms", "last_record_offset", "producer_id")
    of_ids = (
        ended.where(is_by_client & F.col("transaction_version").isNotNull())
        .join(broadcast(raised), how="cross")
        .where(is_since)
        .groupBy(*_ID)
        .agg(
            F.max_by(F.struct(*newest), "last_record_offset").alias("newest"),
            F.count_if(is_old).alias("transactions"),
            F.first("raised_ms").alias("raised_ms"),
        )
        .join(transactional_ids.select(*_ID, "application"), on=list(_ID), how="left")
    )
    is_behind = F.col("newest.transaction_version") < 2
    applications = (
        of_ids.groupBy(F.coalesce("application", "transactional_id").alias("application"))
        .agg(
            F.count("*").alias("ids"),
            F.count_if(is_behind).alias("ids_behind"),
            F.sum(F.when(is_behind, F.col("transactions"))).alias("transactions"),
            F.max_by(F.struct(*_ID, "newest"), F.when(is_behind, F.col("newest.ended_ms"))).alias("last"),
            F.min("raised_ms").alias("raised_ms"),
        )
        .where("ids_behind > 0")
        .orderBy(F.desc("transactions"), "application")
        .limit(MOST)
    )
    names = ("application", "ids", "ids_behind", "transactions", "raised_ms")
    facts = {**{name: F.col(name) for name in names}, "newest_ms": F.col("last.newest.ended_ms")}
    place = {
        "topic": F.lit(TRANSACTION_STATE_TOPIC),
        "partition": F.col("last.coordinator_partition"),
        "offset": F.col("last.newest.last_record_offset"),
        "producer_id": F.col("last.newest.producer_id"),
        "transactional_id": F.col("last.transactional_id"),
    }
    return applications.select(*_facts(Finding.CLIENT_BEHIND_TRANSACTION_VERSION, facts, **place))


def still_partitions(partitions: DataFrame, open_transactions: DataFrame, earlier_partitions: DataFrame) -> DataFrame:
    """The blocked partitions whose last stable offset was the same in earlier runs. `earlier_partitions`: of finished runs.

    A last stable offset only moves forward, so it was the same in all runs between two that have it.
    """
    place = [*TOPIC_PARTITION, "last_stable_offset"]
    is_blocked = F.col("last_stable_offset") < F.col("high_watermark")
    blocked = partitions.where(is_blocked & ~F.coalesce(F.col("blocking_verdict").isin(*CALLED), F.lit(False)))
    still = (
        earlier_partitions.where(is_blocked)
        .select(*place, "as_of")
        .join(broadcast(blocked.select(*place)), on=place, how="left_semi")
        .groupBy(*place)
        .agg((F.count_distinct("as_of") + 1).alias("runs"), F.unix_millis(F.min("as_of")).alias("since_ms"))
        .where(F.col("runs") >= STILL_RUNS)
    )
    blocking = open_transactions.select(
        *TOPIC_PARTITION,
        F.col("producer_id").alias("blocking_producer_id"),
        "is_two_phase_commit",
        F.unix_millis("transaction_start").alias("start_ms"),
        F.col("transaction_timeout_ms").alias("timeout_ms"),
        F.unix_millis("last_timestamp").alias("last_timestamp_ms"),
    )
    names = ("last_stable_offset", "lag_offsets", "runs", "since_ms", "is_two_phase_commit", "start_ms", "timeout_ms")
    facts = {
        **{name: F.col(name) for name in (*names, "last_timestamp_ms")},
        "verdict": F.col("blocking_verdict"),
        "transactional_id": F.col("blocking_transactional_id"),
        "producer_id": F.col("blocking_producer_id"),
    }
    where = {
        **{name: F.col(name) for name in TOPIC_PARTITION},
        "offset": F.col("last_stable_offset"),
        "producer_id": F.col("blocking_producer_id"),
        "transactional_id": F.col("blocking_transactional_id"),
    }
    return (
        blocked.join(broadcast(still), on=place)
        .join(blocking, on=[*TOPIC_PARTITION, "blocking_producer_id"], how="left")
        .orderBy("since_ms", *TOPIC_PARTITION)
        .limit(MOST)
        .select(*_facts(Finding.LAST_STABLE_OFFSET_STANDS_STILL, facts, **where))
    )


def kept_producers(
    producer_states: DataFrame, coverage: DataFrame, producer_id_blocks: DataFrame, earlier: tuple[DataFrame, DataFrame, int] | None
) -> DataFrame:
    """The brokers that keep many producers. `earlier`: `producer_states` and `coverage` of an earlier run, and its instant in ms.

    Every replica keeps the producers of its partition. Growth counts only on partitions that both runs captured.
    """
    place = list(TOPIC_PARTITION)
    is_there = (F.col("status") != "MISSING") & F.col("broker").isNotNull() & ~F.coalesce("is_deleted", F.lit(False))
    copies = coverage.where(is_there).select(*place, "broker").distinct()
    kept = producer_states.groupBy(*place).agg(F.count("*").alias("kept"))
    if earlier is None:
        grown, earlier_ms = kept.withColumn("grown", F.lit(None).cast("long")), F.lit(None).cast("long")
    else:
        states_then, coverage_then, then_ms = earlier
        both = coverage_then.where(is_there).select(*place).distinct().withColumn("is_in_both", F.lit(True))
        then = states_then.groupBy(*place).agg(F.count("*").alias("then"))
        earlier_ms = F.lit(then_ms)
        grown = (
            kept.join(then, on=place, how="full")
            .join(both, on=place, how="left")
            .select(
                *place,
                F.coalesce("kept", F.lit(0)).alias("kept"),
                F.when(F.col("is_in_both"), F.coalesce("kept", F.lit(0)) - F.coalesce("then", F.lit(0))).alias("grown"),
            )
        )
    of_brokers = (
        copies.join(grown, on=place)
        .groupBy("broker")
        .agg(F.sum("kept").alias("kept"), F.sum("grown").alias("grown"))
        .where(F.col("kept") >= FEW_PRODUCERS)
    )
    distinct = producer_states.agg(F.count_distinct("producer_id").alias("producer_ids"))
    # What was handed out before the first known block is not known, and neither is when that one began to be used.
    size = F.col("last_producer_id") - F.col("first_producer_id") + 1
    blocks = producer_id_blocks.where(F.col("allocated_at").isNotNull()).agg(
        (F.sum(size) - F.min_by(size, "allocated_at")).alias("allocated"),
        F.unix_millis(F.min("allocated_at")).alias("allocated_ms"),
    )
    names = ("broker", "kept", "grown", "producer_ids", "allocated", "allocated_ms")
    facts: dict[str, Any] = {**{name: F.col(name) for name in names}, "earlier_ms": earlier_ms}
    return (
        of_brokers.join(broadcast(distinct), how="cross")
        .join(broadcast(blocks), how="cross")
        .orderBy(F.desc("kept"), "broker")
        .limit(MOST)
        .select(*_facts(Finding.PRODUCER_IDS_FILL_MEMORY, facts))
    )
