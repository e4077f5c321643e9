"""How much of a run fits on a page? Counts, and the rows that need somebody, read from the tables of a run."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.finding import FINDINGS, Finding
from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC
from txnlib.report.summary import PREPARED, SHOWN, SHOWN_COPIES, Row, Summary
from txnlib.spark import windows
from txnlib.spark.schemas import PRODUCER, TOPIC_PARTITION
from txnlib.stages.run import Run

#: What of `partitions` tells what blocks once the transaction that blocks now is ended.
NEXT: Final = ("next_blocking_offset", "next_blocking_producer_id", "next_blocking_transactional_id")


def summarise(run: Run) -> Summary:
    """The run as its report shows it. Nothing that grows with the logs reaches the driver."""
    read = run.tables.read
    opened = read("open_transactions")
    began = F.unix_millis(F.min(F.coalesce("transaction_start", "blocks_since")))
    by_verdict = opened.groupBy("verdict").agg(F.count("*").alias("number"), began.alias("began")).collect()
    verdicts = {row["verdict"]: row["number"] for row in by_verdict}
    covered = _coverage(read("coverage"))
    severities, findings = _findings(read("findings"))
    counts = {
        "verdicts": verdicts,
        "findings": severities,
        "coverage": covered.pop("statuses"),
        "rows": {"open_transactions": sum(verdicts.values()), "record_batches": covered.pop("batches")},
    }
    store = run.tables.store
    return Summary(
        cluster=run.settings.cluster,
        as_of_ms=run.settings.as_of_ms,
        as_of_basis=run.settings.as_of_basis,
        output=store.output or str(store.schema),
        kafka_version=run.settings.kafka_version,
        counts=counts,
        transactions=_shown(run, opened),
        worst_lag=_worst_lag(read("partitions")),
        oldest_open_ms=min((row["began"] for row in by_verdict if row["began"] is not None), default=None),
        findings=findings,
        ended=tuple(_rows(_ended(read("ended_transactions")))),
        **covered,
    )


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _with_ms(frame: DataFrame, *names: str) -> DataFrame:
    """Instants as epoch ms: a collected timestamp would be naive, in whatever zone the process runs."""
    return frame.withColumns({name: F.unix_millis(name) for name in names})


def _shown(run: Run, opened: DataFrame) -> dict[str, list[Row]]:
    """The first rows of each section, those that block most first, each with its plan, what blocks next, and who waits."""
    read = run.tables.read
    key = [*PRODUCER, "start_offset"]
    plan = read("abort_plan").select(*key, "number", "action", "before", "command", "after")
    behind = read("partitions").select(*TOPIC_PARTITION, "blocking_producer_id", *NEXT)
    groups = read("blocked_groups").groupBy(*TOPIC_PARTITION).agg(F.sort_array(F.collect_set("group_id")).alias("groups"))
    # What is open and planned for is a two-phase commit that was left alone.
    section = F.when(F.col("verdict") != "OPEN", F.col("verdict")).otherwise(PREPARED)
    needy = (
        opened.join(plan, on=key, how="inner")
        .join(behind, on=list(TOPIC_PARTITION), how="left")
        .join(groups, on=list(TOPIC_PARTITION), how="left")
        .withColumn("section", section)
        .withColumn("rank", F.row_number().over(windows.transactions_of_section()))
        .where(F.col("rank") <= SHOWN)
    )
    shown: dict[str, list[Row]] = {}
    for row in _rows(
        _with_ms(needy, "last_timestamp", "transaction_start", "blocks_since", "first_seen").orderBy("section", "rank")
    ):
        shown.setdefault(str(row["section"]), []).append(row)
    return shown


def _ended(ended_transactions: DataFrame) -> DataFrame:
    return (
        ended_transactions.select(*TOPIC_PARTITION, "start_offset", "producer_id", "verdict", "says")
        .orderBy(*TOPIC_PARTITION, "start_offset")
        .limit(SHOWN)
    )


def _coverage(coverage: DataFrame) -> dict[str, Any]:
    is_missing = F.col("status") == "MISSING"
    is_coordinator = F.col("topic") == TRANSACTION_STATE_TOPIC
    partition = F.struct("topic", "partition")
    found = coverage.agg(
        F.count_distinct(F.when(~is_missing, partition)).alias("partitions_read"),
        F.count_distinct(partition).alias("partitions_known"),
        F.count_distinct(F.when(~is_missing & is_coordinator, F.col("partition"))).alias("coordinators_read"),
        F.count_distinct(F.when(is_coordinator, F.col("partition"))).alias("coordinators_known"),
        F.sort_array(F.collect_set(F.when(is_missing & is_coordinator, F.col("partition")))).alias("missing_coordinators"),
        F.coalesce(F.sum("unreadable_bytes"), F.lit(0)).alias("unreadable_bytes"),
        F.coalesce(F.sum("batches"), F.lit(0)).alias("batches"),
        F.count_distinct("broker").alias("brokers"),
        F.unix_millis(F.min("captured_at")).alias("captured_from_ms"),
        F.unix_millis(F.max("captured_at")).alias("captured_to_ms"),
        F.coalesce(F.bool_or(~is_missing & F.col("captured_at").isNull()), F.lit(False)).alias("is_instant_assumed"),
        *[
            F.count(F.when(F.col("status") == status, True)).alias(status)
            for status in ("COMPLETE", "PARTIAL", "DAMAGED", "MISSING")
        ],
    ).collect()[0]
    fields = found.asDict()
    statuses = {status: fields.pop(status) for status in ("COMPLETE", "PARTIAL", "DAMAGED", "MISSING")}
    fields["missing_coordinators"] = tuple(fields["missing_coordinators"])
    harmed = coverage.where(F.col("status").isin("PARTIAL", "DAMAGED") & F.col("is_judged"))
    shown = harmed.orderBy("topic", "partition").select("topic", "partition", "source", "status", "detail", "unreadable_bytes")
    return {**fields, "statuses": statuses, "incomplete": tuple(_rows(shown.limit(SHOWN_COPIES)))}


def _findings(findings: DataFrame) -> tuple[dict[str, int], tuple[Row, ...]]:
    named = _rows(findings.groupBy("severity", "name").count().orderBy("name"))
    severities: dict[str, int] = {}
    for row in named:
        severities[row["severity"]] = severities.get(row["severity"], 0) + row["count"]
    shown = [row for row in named if row["severity"] != "INFO"]
    return severities, tuple({**row, "message": FINDINGS[Finding(row["name"])].meaning} for row in shown)


def _worst_lag(partitions: DataFrame) -> Row | None:
    rows = _rows(
        _with_ms(partitions.where("lag_offsets > 0"), "as_of").orderBy(F.desc_nulls_last("lag_ms"), F.desc("lag_offsets")).limit(1)
    )
    return rows[0] if rows else None
