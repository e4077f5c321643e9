"""The tables of a run, each with what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC
from txnlib.core.reports.brokers import brokers
from txnlib.errors import MissingTableError
from txnlib.pipeline.coverage import COVERAGE, LOWER_COVERAGE, QUARANTINE, current_coordinator_copies
from txnlib.pipeline.forecasts import FORECAST
from txnlib.pipeline.inferred_settings import count_coordinator_partitions, infer_settings
from txnlib.pipeline.known_metadata import know_metadata
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import Decision, Step, Table, table_of
from txnlib.readers.capture import Capture, FileKind
from txnlib.readers.table_readers import may_hold
from txnlib.spark.capture_source import read_capture
from txnlib.spark.coordinators import coordinator_states, producer_id_owners, transactional_ids, transactions
from txnlib.spark.coordinators.console_copies import console_records, console_segments
from txnlib.spark.findings import findings
from txnlib.spark.local_rows import no_rows
from txnlib.spark.metadata import broker_sessions, cluster_settings, metadata_log, partition_assignments, producer_id_blocks
from txnlib.spark.producers import checked_batches, partition_transactions, producer_spans, producer_states
from txnlib.spark.reports import (
    abort_plan,
    blocked_groups,
    broker_clocks,
    ended_transactions,
    hanging_transactions,
    in_doubt_transactions,
    late_transactions,
    marker_repairs,
    open_transactions,
    partitions,
    transaction_outcomes,
)
from txnlib.spark.reports.ended_transactions import warned_of
from txnlib.spark.reports.in_doubt_transactions import undecided
from txnlib.spark.reports.marker_repairs import lacking
from txnlib.spark.schemas import TABLES

# Ingest


def _capture(run: Run) -> Capture:
    assert run.capture is not None
    return run.capture


def _read(table: str) -> Table:
    def transform(run: Run) -> DataFrame:
        return read_capture(run.spark, _capture(run), table)

    return Table(table, (), transform)


def _metadata_log(run: Run) -> DataFrame:
    """The records of the metadata log; empty, without its windows, if no file may contain any."""
    if not any(may_hold("metadata_log", file) for file in _capture(run).files):
        return no_rows(run.spark, TABLES["metadata_log"])
    return metadata_log(read_capture(run.spark, _capture(run), "metadata_log"))


def _of_metadata(transform: Callable[[DataFrame], DataFrame]) -> Table:
    """A table of the cluster's metadata log; empty, without its windows, if no metadata log was captured."""

    def made(run: Run) -> DataFrame:
        if run.tables.is_empty("metadata_log"):
            return no_rows(run.spark, TABLES[transform.__name__])
        return transform(run.tables.read("metadata_log"))

    return Table(transform.__name__, ("metadata_log",), made)


def _transaction_log(run: Run) -> DataFrame:
    """The coordinators' records: of segments, of their dumps, and of console text, which prints no partition."""
    records = read_capture(run.spark, _capture(run), "transaction_log")
    if not _capture(run).of_kind(FileKind.CONSOLE):
        return records
    printed = read_capture(run.spark, _capture(run), "console_log")
    return records.unionByName(console_records(printed, records, count_coordinator_partitions(run, records)))


def _segments(run: Run) -> DataFrame:
    """What was read of each file, and, of console text, of each coordinator partition."""
    segments = read_capture(run.spark, _capture(run), "segments") if run.resumption is None else run.resumption.read_segments()
    texts = _capture(run).of_kind(FileKind.CONSOLE)
    if not texts:
        return segments
    of_texts = read_capture(run.spark, replace(_capture(run), files=texts, parts={}), "segments")
    records = run.tables.read("transaction_log").where(F.col("source").startswith("console:"))
    return segments.unionByName(console_segments(of_texts, records))


def _committed_offsets(run: Run) -> DataFrame:
    """Reads only `__consumer_offsets`, so it costs nothing if that was not captured."""
    files = tuple(file for file in _capture(run).files if file.topic == GROUP_METADATA_TOPIC)
    return read_capture(run.spark, replace(_capture(run), files=files), "committed_offsets")


def _find_appended_partitions(run: Run) -> None:
    """Finds the partitions whose windows resume from the earlier run.

    A run that was opened again has no such partitions: it makes all spans, so none of an earlier run may count.
    """
    if run.resumption is not None:
        run.resumption.find_appended_partitions()
    elif run.began_at is not None:
        coverage = run.tables.read("coverage")
        if not coverage.where(F.col("spans_since").isNotNull()).isEmpty():
            run.tables.write("coverage", coverage.withColumn("spans_since", F.lit(None).cast("int")))


def _new_rows(table: Table) -> Table:
    """A table with rows of the log: of a run that continues another one, only what is new."""

    def made(run: Run) -> DataFrame:
        new = None if run.resumption is None else run.resumption.new_rows(table.name)
        return table.transform(run) if new is None else new

    return replace(table, transform=made)


FIND_APPENDED_PARTITIONS: Final = Decision(
    "find_appended_partitions", ("segments", "coverage", "producer_snapshots"), _find_appended_partitions
)

INGEST: Final[tuple[Step, ...]] = (
    _read("record_batches"),  # first, because it takes longest
    Table("transaction_log", (), _transaction_log),
    Table("committed_offsets", (), _committed_offsets),
    _read("checkpoints"),
    # After the tables of the same files, so that it shows those that shrank meanwhile.
    Table("segments", ("record_batches", "transaction_log", "committed_offsets"), _segments),
    _read("producer_snapshots"),
    _read("aborted_transactions"),
    _read("live_producers"),
    _read("live_transactions"),
    Table("metadata_log", (), _metadata_log),
    _of_metadata(partition_assignments),
    _of_metadata(cluster_settings),
    _of_metadata(broker_sessions),
    _of_metadata(producer_id_blocks),
    Decision("know_metadata", ("segments", "metadata_log", "partition_assignments", "cluster_settings"), know_metadata),
    Decision("infer_settings", ("transaction_log", "segments", "checkpoints", "know_metadata"), infer_settings),
    COVERAGE,
    FIND_APPENDED_PARTITIONS,
)

# Reconstruct


RECONSTRUCT: Final[tuple[Step, ...]] = (
    FIND_APPENDED_PARTITIONS,
    _new_rows(table_of(producer_spans, after=("find_appended_partitions",))),  # first, because it takes longest
    table_of(coordinator_states, current_copies=current_coordinator_copies),
    table_of(checked_batches),
    LOWER_COVERAGE,
    QUARANTINE,
    table_of(producer_id_owners),
    table_of(transactions),
    table_of(findings, after=("infer_settings", "lower_coverage")),
    _new_rows(table_of(partition_transactions, after=("find_appended_partitions",))),
    table_of(producer_states),
    table_of(transactional_ids),
)

# Report


def earlier_rows_of(name: str) -> Callable[[Run], DataFrame | None]:
    """The rows of a table that earlier finished runs of the cluster have; None if there is no such run."""

    def found(run: Run) -> DataFrame | None:
        store, earlier = run.tables.store, [each.run_id for each in run.history.before(run.settings.as_of_ms)]
        return store.read_all(name).where(F.col("run_id").isin(earlier)) if earlier and store.exists(name) else None

    return found


ENDED_BY: Final = ("open_transactions", "producer_spans", "transactions", "producer_id_owners", "findings", "coverage")


def _ended_transactions(run: Run) -> DataFrame:
    store, earlier = run.tables.store, run.history.before(run.settings.as_of_ms)
    if not earlier or not all(map(store.exists, ENDED_OF)):
        return no_rows(run.spark, TABLES["ended_transactions"])
    # The newest one counts, even if it found no open transaction.
    newest = F.col("run_id") == earlier[0].run_id
    opened, ended = (store.read_all(name).where(newest) for name in ENDED_OF)
    warned = warned_of(opened, ended, transaction_max_timeout_ms=run.settings.transaction_max_timeout_ms)
    return ended_transactions(warned, *map(run.tables.read, ENDED_BY), as_of_ms=run.settings.as_of_ms)


#: The tables that show what a run warned of.
ENDED_OF: Final = ("open_transactions", "ended_transactions")


BLOCKED_GROUPS: Final = table_of(blocked_groups)


def _blocked_groups(run: Run) -> DataFrame:
    """The blocked groups; empty, without a scan, if `__consumer_offsets` was not captured.

    An older `ingest_dumps` did not write `committed_offsets`.
    """
    try:
        is_captured = not run.tables.is_empty("committed_offsets")
    except MissingTableError:
        is_captured = False
    if not is_captured:
        return no_rows(run.spark, TABLES["blocked_groups"])
    return BLOCKED_GROUPS.transform(run)


def _unless_none(table: Table, read: str, wanted: Callable[[DataFrame], DataFrame]) -> Table:
    """A table about some rows of another one: empty, without its joins, if there are none."""

    def made(run: Run) -> DataFrame:
        if wanted(run.tables.read(read)).isEmpty():
            return no_rows(run.spark, TABLES[table.name])
        return table.transform(run)

    return replace(table, transform=made)


REPORT: Final[tuple[Step, ...]] = (
    table_of(open_transactions, thresholds=lambda run: run.thresholds, earlier=earlier_rows_of("open_transactions")),
    table_of(partitions),
    table_of(brokers),
    table_of(broker_clocks),
    table_of(transaction_outcomes),
    _unless_none(table_of(marker_repairs), "transaction_outcomes", lacking),
    _unless_none(
        table_of(in_doubt_transactions, earlier_in_doubt=earlier_rows_of("in_doubt_transactions")), "transactions", undecided
    ),
    table_of(abort_plan),
    replace(BLOCKED_GROUPS, transform=_blocked_groups),
    Table("ended_transactions", ENDED_BY, _ended_transactions),
    table_of(hanging_transactions),
    table_of(late_transactions),
    FORECAST,
)

_LATER: Final = {step.name for step in RECONSTRUCT}
#: All steps of an audit. Tables on which most others depend come first.
AUDIT: Final[tuple[Step, ...]] = (*REPORT, *RECONSTRUCT, *(step for step in INGEST if step.name not in _LATER))
