"""The steps for `coverage` and `quarantine`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow, LeaderBasis
from txnlib.core.coverage.captured_files import CapturedFile, CheckpointEntry, CopyKey, Place, broker_of, of_copies
from txnlib.core.coverage.coverage import NEWEST_SNAPSHOTS, coverage
from txnlib.core.coverage.judged_copy import LeaderProof
from txnlib.core.coverage.leaders import NotedPartition, PartitionLeader, deleted_copies, leaders
from txnlib.core.coverage.quarantine import RefutedBatch, lowered, quarantine
from txnlib.core.coverage.truncated_tails import EPOCHS_OF_SEGMENTS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.pipeline.given_rows import Given, having, queried, rows_of_table
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import RunChange, TableStep, table_of
from txnlib.readers.capture_notes import CaptureNotes
from txnlib.readers.log_directories import topic_partition_of
from txnlib.readers.typed_rows import arrow_rows
from txnlib.settings import Settings
from txnlib.spark.coordinators.coordinator_states import CURRENT_COPIES
from txnlib.spark.core_rows import rows_of
from txnlib.spark.frames import local_rows


def _notes(run: Run) -> CaptureNotes:
    assert run.capture is not None
    return run.capture.notes


def _partition_notes(run: Run) -> list[NotedPartition]:
    """What capture.json notes of partitions."""
    found = []
    for name, noted in _notes(run).partitions.items():
        topic, partition = topic_partition_of(name)
        if topic is not None and partition is not None:
            leader = None if noted.leader is None else str(noted.leader)
            answers = noted.model_dump(exclude={"leader", "leader_epoch", "replicas"})
            replicas, epoch = tuple(map(str, noted.replicas)), noted.leader_epoch
            named = NotedPartition(
                topic=topic, partition=partition, leader=leader, noted_leader_epoch=epoch, replicas=replicas, **answers
            )
            found.append(named)
    return found


def _leaders(run: Run) -> dict[Place, PartitionLeader]:
    instants, basis = _notes(run).instants, run.settings.metadata_basis
    noted_ms = instants.earliest_ms
    # With a damaged metadata log, a leader may have changed after notes that are older than its copies, in a record
    # that is lost.
    copied = [ms for name, ms in instants.of_folders.items() if name.endswith(f"/{CLUSTER_METADATA_TOPIC}-0")]
    are_notes_newer = noted_ms is None or all(ms <= noted_ms for ms in copied)
    is_in_force = basis is not LeaderBasis.METADATA_LOG_DAMAGED or are_notes_newer
    noted = _partition_notes(run) if is_in_force else []
    return leaders(noted, rows_of_table(run, "partition_assignments", PartitionAssignment), basis, noted_ms)


def _expected(run: Run) -> set[Place]:
    """Partitions that capture.json, the metadata log, the number of coordinators, or the coordinators' records name."""
    noted = {each.place for each in _partition_notes(run)}
    named = run.tables.read("transaction_log").select(F.inline("partitions")).distinct().collect()
    assigned = rows_of_table(run, "partition_assignments", PartitionAssignment)
    current = {(each.topic, each.partition) for each in assigned if each.is_current and each.topic is not None}
    count = 0 if never_had_coordinators(run.settings, assigned) else run.settings.coordinator_partitions
    coordinators = {(TRANSACTION_STATE_TOPIC, number) for number in range(count)}
    return noted | coordinators | current | {(row["topic"], row["partition"]) for row in named}


def never_had_coordinators(settings: Settings, assigned: Iterable[PartitionAssignment]) -> bool:
    """Whether the metadata log shows that `__transaction_state` never existed, so that none of it is missing.

    What is open without it stays UNKNOWN: where no coordinator is in `coverage`, none is known.
    """
    is_whole = settings.names_every_topic and settings.metadata_basis is not LeaderBasis.METADATA_LOG_STALE
    return is_whole and all(each.topic != TRANSACTION_STATE_TOPIC for each in assigned)


def find_deleted_copies(run: Run) -> set[CopyKey]:
    """The copies of deleted topics."""
    names_every_topic = run.settings.names_every_topic
    with_metadata = run.tables.read("metadata_log").select("source").distinct().collect() if names_every_topic else []
    return deleted_copies(
        rows_of_table(run, "segments", CapturedFile),
        of_copies(rows_of_table(run, "checkpoints", CheckpointEntry)),
        rows_of_table(run, "partition_assignments", PartitionAssignment),
        _partition_notes(run),
        {broker_of(row["source"]) for row in with_metadata},
        is_metadata_whole=names_every_topic,
        is_metadata_confirmed=run.settings.is_metadata_confirmed,
        metadata_known_ms=run.settings.metadata_known_ms,
    )


def _epochs_if_damaged(run: Run) -> DataFrame | tuple[()]:
    """The leader epochs of segments; none if no copy is damaged, because then no batch is contradicted."""
    statuses = run.tables.rows("coverage", ["status"])["status"].to_pylist()
    return EPOCHS(run) if "DAMAGED" in statuses else ()


def _newest_snapshots(run: Run) -> DataFrame | tuple[()]:
    """The newest snapshot of each copy, without a query if there is none."""
    is_empty = run.tables.is_empty("producer_snapshots")
    return () if is_empty else SNAPSHOTS(run)


SNAPSHOTS: Final = queried(NEWEST_SNAPSHOTS)
EPOCHS: Final = queried(EPOCHS_OF_SEGMENTS)
REFUTED: Final = having("checked_batches", is_crc_valid=[False])
COVERAGE: Final = table_of(
    coverage,
    epochs=EPOCHS,
    newest_snapshots=Given(SNAPSHOTS.reads, _newest_snapshots),
    partition_notes=_partition_notes,
    leaders=_leaders,
    instants=lambda run: _notes(run).instants,
    expected=_expected,
    deleted_copies=find_deleted_copies,
    leader_proof=lambda run: LeaderProof(
        run.settings.metadata_basis, run.settings.metadata_reach_ms, run.settings.hides_leaders
    ),
    after=("transaction_log", "infer_settings"),
)


def current_coordinator_copies(run: Run) -> DataFrame:
    """The current copies of coordinator partitions that show all records. Columns: CURRENT_COPIES."""
    copies = rows_of_table(run, "coverage", CoverageRow)
    found = [
        (each.partition, each.source, each.survives_until)
        for each in copies
        if each.topic == TRANSACTION_STATE_TOPIC and each.is_judged and each.is_current and each.shows_absence
    ]
    return local_rows(run.spark, found, CURRENT_COPIES)


def _lower_coverage(run: Run) -> None:
    """Lowers `coverage` of copies with batches that turned out to be corrupt. Usually there are none."""
    if refuted := rows_of(REFUTED(run), RefutedBatch):
        run.tables.write(
            "coverage", arrow_rows("coverage", lowered(rows_of_table(run, "coverage", CoverageRow), refuted))
        )


LOWER_COVERAGE: Final = RunChange("lower_coverage", ("coverage", "checked_batches"), _lower_coverage)
QUARANTINE: Final[TableStep] = table_of(
    quarantine,
    epochs=Given((*EPOCHS.reads, "coverage"), _epochs_if_damaged),
    refuted=REFUTED,
    after=("lower_coverage",),
)
