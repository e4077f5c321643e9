"""The tables of a run, each with what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.cluster_metadata import (
    ASSIGNMENT_TYPES,
    BLOCK_TYPES,
    SESSION_TYPES,
    SETTING_TYPES,
    broker_sessions,
    cluster_settings,
    partition_assignments,
    producer_id_blocks,
)
from txnlib.core.findings.catalogue import RULES
from txnlib.core.findings.live_answer_findings import LIVE_STABLE_OFFSET_DISAGREES
from txnlib.core.findings.metadata_findings import metadata_findings
from txnlib.core.kafka.constants import MetadataType
from txnlib.core.tables.abort_plan import WHOLE_TRANSACTIONS, abort_plan
from txnlib.core.tables.blocked_groups import GROUP_POSITIONS, READ_ENDS, blocked_groups
from txnlib.core.tables.ended_transactions import (
    BY_HAND,
    DECIDED_MARKERS,
    FIRST_MARKERS,
    NOT_CAPTURED,
    ended_transactions,
)
from txnlib.core.tables.partitions import UNSTABLE_BATCHES, UNSTABLE_OFFSETS, partitions
from txnlib.core.verdicts.reason import Verdict
from txnlib.pipeline.coverage import COVERAGE, LOWER_COVERAGE, QUARANTINE, current_coordinator_copies
from txnlib.pipeline.given_rows import (
    Given,
    answered,
    earlier_rows_of,
    foremost_open,
    having,
    looked_up,
    newest_rows_of,
    queried,
    selected,
)
from txnlib.pipeline.inferred_settings import count_coordinator_partitions, infer_settings
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import RunChange, Step, TableStep, table_of, table_of_rules
from txnlib.spark.capture_source import CaptureSource
from txnlib.spark.coordinators.console_copies import console_records, console_segments
from txnlib.spark.coordinators.coordinator_states import coordinator_states
from txnlib.spark.coordinators.measured_clocks import measured_clocks
from txnlib.spark.coordinators.transactional_ids import producer_id_owners, transactional_ids
from txnlib.spark.coordinators.transactions import transactions
from txnlib.spark.frames import no_rows
from txnlib.spark.metadata_log import effective, metadata_log
from txnlib.spark.producers.checked_batches import checked_batches
from txnlib.spark.producers.producer_spans import partition_transactions, producer_spans, producer_states
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.dossiers import judged_copies
from txnlib.spark.tables.open_transactions import foremost, open_transactions
from txnlib.spark.tables.transaction_outcomes import transaction_outcomes

# Ingest


def _source(run: Run) -> CaptureSource:
    assert run.source is not None
    return run.source


def _read(table: str, *after: str) -> TableStep:
    return TableStep(table, after, lambda run: _source(run).read(table))


#: The table whose writing reads the files. Spark then keeps the rows of all other tables, so their steps wait for it.
_FIRST: Final = "record_batches"
#: The tables whose rows are written as they were read.
_READ: Final = (
    "committed_offsets",
    "checkpoints",
    "producer_snapshots",
    "aborted_transactions",
    "live_producers",
    "live_transactions",
)


def _metadata_log(run: Run) -> DataFrame:
    """The records of the metadata log; empty, without its windows, if no file may contain any."""
    if not _source(run).may_have("metadata_log"):
        return no_rows(run.spark, TABLES["metadata_log"])
    return metadata_log(_source(run).read("metadata_log"))


def _of_metadata(make: Callable[..., Iterable[object]], types: Collection[MetadataType]) -> TableStep:
    """A table made of the records of some types in the metadata log; empty, without a query, if none was captured."""

    def records(run: Run) -> DataFrame | Sequence[object]:
        return () if run.tables.is_empty("metadata_log") else effective(run.tables.read("metadata_log"), types)

    return table_of(make, metadata_log=records, after=("metadata_log",))


def _transaction_log(run: Run) -> DataFrame:
    """The coordinators' records: of segments, of their dumps, and of console text, which prints no partition."""
    source = _source(run)
    if not source.may_have("console_log"):
        return source.read("transaction_log")
    return source.read("transaction_log").unionByName(_console_records(run))


def _console_records(run: Run) -> DataFrame:
    records, printed = _source(run).read("transaction_log"), _source(run).read("console_log")
    return console_records(printed, records, count_coordinator_partitions(run, records))


def _segments(run: Run) -> DataFrame:
    """What was read of each file, and, of console text, of each coordinator partition."""
    source = _source(run)
    if not source.may_have("console_log"):
        return source.read("segments")
    segments = source.read("segments")
    return segments.unionByName(console_segments(segments, _console_records(run)))


INGEST: Final[tuple[Step, ...]] = (
    _read(_FIRST),
    *[_read(table, _FIRST) for table in _READ],
    TableStep("transaction_log", (_FIRST,), _transaction_log),
    # After the tables of the same files, so that it shows those that shrank meanwhile, if each table reads them.
    TableStep("segments", (_FIRST, "transaction_log", "committed_offsets"), _segments),
    TableStep("metadata_log", (_FIRST,), _metadata_log),
    # Before the large plans: Spark looks through each of them for what it keeps.
    RunChange(
        "forget_capture", (*_READ, "transaction_log", "segments", "metadata_log"), lambda run: _source(run).forget()
    ),
    _of_metadata(partition_assignments, ASSIGNMENT_TYPES),
    _of_metadata(cluster_settings, SETTING_TYPES),
    _of_metadata(broker_sessions, SESSION_TYPES),
    _of_metadata(producer_id_blocks, BLOCK_TYPES),
    RunChange(
        "infer_settings",
        ("segments", "metadata_log", "transaction_log", "checkpoints", "partition_assignments", "cluster_settings"),
        infer_settings,
    ),
    COVERAGE,
)

# Reconstruct


FINDINGS: Final = table_of_rules("findings", RULES, (metadata_findings,), after=("infer_settings", "lower_coverage"))

RECONSTRUCT: Final[tuple[Step, ...]] = (
    table_of(producer_spans, after=("infer_settings",)),  # first, because it takes longest
    table_of(coordinator_states, current_copies=current_coordinator_copies),
    table_of(checked_batches),
    LOWER_COVERAGE,
    QUARANTINE,
    table_of(producer_id_owners),
    table_of(measured_clocks, judged_copies=selected(judged_copies)),
    table_of(transactions),
    FINDINGS,
    table_of(partition_transactions),
    table_of(producer_states),
    table_of(transactional_ids),
)

# Report


def _group_positions(run: Run) -> Callable[[DataFrame], DataFrame | None]:
    """Where groups stand; nowhere if `__consumer_offsets` was not captured."""

    def found(places: DataFrame) -> DataFrame | None:
        is_empty = run.tables.is_empty("committed_offsets")
        answer: DataFrame | None = None if is_empty else answered(GROUP_POSITIONS)(run)(places)
        return answer

    return found


def _version_or_oldest(run: Run) -> str | None:
    """The version of the brokers, else the oldest that they can have: only Kafka 3.0 and newer has a metadata log."""
    known = run.settings.kafka_version
    return "3.0+" if known is None and run.settings.metadata_known_ms is not None else known


REPORT: Final[tuple[Step, ...]] = (
    table_of(
        open_transactions,
        judged_copies=selected(judged_copies),
        thresholds=lambda run: run.thresholds,
        earlier=earlier_rows_of("open_transactions"),
        earlier_coverage=earlier_rows_of("coverage"),
    ),
    table_of(
        partitions,
        unstable_offsets=queried(UNSTABLE_OFFSETS),
        open_transactions=foremost_open(most=0),
        answered_offsets=having("findings", name=[LIVE_STABLE_OFFSET_DISAGREES.name]),
        unstable_batches=answered(UNSTABLE_BATCHES),
    ),
    table_of(transaction_outcomes),
    table_of(
        abort_plan,
        open_transactions=foremost_open(),
        whole_transactions=answered(WHOLE_TRANSACTIONS),
        kafka_version=_version_or_oldest,
    ),
    table_of(
        blocked_groups,
        group_positions=Given(("committed_offsets", "producer_spans", "coverage"), _group_positions),
        read_ends=answered(READ_ENDS),
    ),
    table_of(
        ended_transactions,
        open_then=newest_rows_of("open_transactions", foremost),
        ended_then=newest_rows_of("ended_transactions", lambda rows: rows.where(F.col("how") == NOT_CAPTURED)),
        odd_markers=having("findings", name=BY_HAND),
        open_transactions=looked_up("open_transactions"),
        first_markers=answered(FIRST_MARKERS),
        decided_markers=answered(DECIDED_MARKERS),
        producer_id_owners=looked_up("producer_id_owners"),
    ),
    TableStep(
        "hanging_transactions", ("open_transactions",), having("open_transactions", verdict=[Verdict.HANGING.value])
    ),
    TableStep("late_transactions", ("open_transactions",), having("open_transactions", verdict=[Verdict.LATE.value])),
)

_LATER: Final = {step.name for step in RECONSTRUCT}
#: All steps of an audit. Tables on which most others depend come first.
AUDIT: Final[tuple[Step, ...]] = (*REPORT, *RECONSTRUCT, *(step for step in INGEST if step.name not in _LATER))
