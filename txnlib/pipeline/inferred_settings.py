"""Settings that were not given: set dynamically, according to the cluster's metadata log, or inferred from the
records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.coverage.captured_files import CapturedFile, CopyKey
from txnlib.core.coverage.known_metadata import Conclusion, MetadataReach, holds, known_metadata
from txnlib.core.kafka.constants import (
    CLUSTER_METADATA_TOPIC,
    MAX_INT32,
    TRANSACTION_STATE_TOPIC,
    TRANSACTION_VERSION,
    TWO_PHASE_COMMIT_TIMEOUTS,
)
from txnlib.core.kafka.coordinator_partition import CountBasis, count_partitions, partition_for
from txnlib.core.kafka.log_dir_files import number
from txnlib.pipeline.coverage import find_deleted_copies
from txnlib.pipeline.given_rows import rows_of_table
from txnlib.pipeline.run import Run
from txnlib.settings import BROKER_SETTINGS, NOTED, SETTINGS
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import broadcast
from txnlib.spark.metadata_log import reach
from txnlib.spark.schemas import COPY

#: Transactional ids used to infer the number of coordinator partitions. Each further id rules out most wrong numbers.
INFERRED_FROM_IDS: Final = 200
#: Transactional ids by which a given number may be refuted.
CHECKED_IDS: Final = 20_000


def infer_settings(run: Run) -> None:
    """Finds out how far the metadata log reaches, takes dynamic settings from it, then infers what is still missing. A
    setting that was given stays."""
    _know_metadata(run)
    _take_dynamic_settings(run)
    note_contradictions(run)
    _infer_transaction_max_timeout(run)
    _infer_coordinator_partitions(run)


_FOLDER: Final = f"{CLUSTER_METADATA_TOPIC}-0"


def _know_metadata(run: Run) -> None:
    """Finds out how far the captured metadata log reaches, and whether it was still growing when it was copied."""
    assert run.capture is not None
    notes, is_empty = run.capture.notes, run.tables.is_empty("metadata_log")
    if is_empty and not any(file.topic == CLUSTER_METADATA_TOPIC for file in run.capture.files):
        return
    known = known_metadata(
        MetadataReach() if is_empty else reach(run.tables.read("metadata_log")),
        rows_of_table(run, "segments", CapturedFile),
        notes.instants,
    )
    if known is not None:
        facts = {name: value for name, value in asdict(known).items() if value is not None}
        run.settings = run.settings.model_copy(update=facts)


def _take_dynamic_settings(run: Run) -> None:
    """Sets settings that were not given to their dynamic values. If brokers have different values, the largest
    counts."""
    named = {("BROKER", name) for name in run.settings.assumed} | {("FEATURE", TRANSACTION_VERSION)}
    rows = [
        (each.name, each.scope_name, number((each.value or "").encode(), MAX_INT32))
        for each in _dynamic_settings(run)
        if (each.scope, each.name) in named
    ]
    changes: dict[str, object] = {}
    extent = run.settings.metadata_extent
    for setting, name in BROKER_SETTINGS.items():
        values = {broker: value for each, broker, value in rows if each == name and value is not None}
        if values:
            # Brokers without a value of their own have the default of the cluster, else that of their
            # server.properties.
            changes[setting] = max({None: getattr(run.settings, setting), **values}.values())
    level = next((value for name, _, value in rows if name == TRANSACTION_VERSION), None)
    if not holds(Conclusion.FEATURE_LEVEL, extent):
        level = None
    elif level is None and run.settings.is_metadata_whole and extent and holds(Conclusion.FEATURE_NEVER_SET, extent):
        level = 0
    if run.settings.transaction_version is None and level is not None:
        changes["transaction_version"] = level
    # A broker without a dynamic value has that of its server.properties, which is unknown.
    of_all = {name for name, broker, _ in rows if broker is None and holds(Conclusion.SETTING, extent)}
    still_assumed = tuple(name for name in run.settings.assumed if name not in of_all)
    run.settings = run.settings.model_copy(update={**changes, "assumed": still_assumed})


@dataclass(frozen=True, slots=True)
class DynamicSetting:
    """A row of `cluster_settings`."""

    scope: str
    scope_name: str | None
    name: str
    value: str
    is_current: bool


def _dynamic_settings(run: Run) -> list[DynamicSetting]:
    """The settings in force at the end of the metadata log."""
    return [each for each in rows_of_table(run, "cluster_settings", DynamicSetting) if each.is_current]


def note_contradictions(run: Run) -> None:
    """Notes where capture.json contradicts the metadata log. What capture.json says stays in force."""
    extent = run.settings.metadata_extent
    if run.capture is None or extent is None or not holds(Conclusion.NOTED_SETTING_CONTRADICTED, extent):
        return
    dynamic: dict[str, set[str]] = {}
    for each in _dynamic_settings(run):
        if each.scope in ("BROKER", "FEATURE") and each.name in _NOTED:
            dynamic.setdefault(each.name, set()).add(each.value)
    if _counts_coordinators(run) and (count := _count_assigned(run)) is not None:
        dynamic[COUNT] = {str(count)}
    noted = {name: getattr(run.capture.notes, field) for name, field in _NOTED.items()}
    found = [
        f"{name} is {noted[name]} by capture.json, {', '.join(sorted(values))} by the metadata log"
        for name, values in sorted(dynamic.items())
        if noted[name] is not None and str(noted[name]) not in values
    ]
    run.settings = run.settings.model_copy(update={"contradictions": tuple(found)})


COUNT: Final = "the number of partitions of __transaction_state"
#: Name in the metadata log -> field of capture.json.
_NOTED: Final = {**NOTED, TRANSACTION_VERSION: "transaction_version", COUNT: "coordinator_partitions"}


def _infer_transaction_max_timeout(run: Run) -> None:
    """Raises the assumed `transaction.max.timeout.ms` to the largest stored timeout: brokers refuse larger ones."""
    if BROKER_SETTINGS["transaction_max_timeout_ms"] not in run.settings.assumed:
        return
    timeout = F.col("transaction_timeout_ms")
    stored = run.tables.read("transaction_log").where(~timeout.isin(*TWO_PHASE_COMMIT_TIMEOUTS))
    largest = stored.agg(F.max(timeout)).first()
    if largest is not None and largest[0] is not None and largest[0] > run.settings.transaction_max_timeout_ms:
        run.settings = run.settings.model_copy(update={"transaction_max_timeout_ms": largest[0]})


def _infer_coordinator_partitions(run: Run) -> None:
    """Counts the coordinator partitions by the metadata log, or infers their number from the ids, unless it was given.

    Copies of a deleted topic say nothing about the living one. A number that ids refute is not known, wherever it came
    from.
    """
    deleted = find_deleted_copies(run)
    # Console records were placed by this number, so they can neither prove nor refute it.
    records = _living(run.tables.read("transaction_log").where(~F.col("source").startswith("console:")), deleted)
    segments = _living(run.tables.read("segments").where(F.col("topic") == TRANSACTION_STATE_TOPIC), deleted)
    owners = _owners(records, CHECKED_IDS)
    if run.settings.coordinator_partitions_basis == CountBasis.GIVEN and _fits(
        owners, run.settings.coordinator_partitions
    ):
        return
    found = segments.agg(F.max("partition")).first()
    highest = None if found is None else found[0]
    assigned = _count_assigned(run) if _counts_coordinators(run) else None
    if assigned is not None and (highest is None or highest < assigned) and _fits(owners, assigned):
        known = {"coordinator_partitions": assigned, "coordinator_partitions_basis": CountBasis.GIVEN.value}
        run.settings = run.settings.model_copy(update=known)
        return
    count, basis = _count_partitions(owners[:INFERRED_FROM_IDS], highest)
    inferred = {"coordinator_partitions": count, "coordinator_partitions_basis": basis.value}
    run.settings = run.settings.model_copy(update=inferred)


def _living(rows: DataFrame, deleted: Collection[CopyKey]) -> DataFrame:
    if not deleted:
        return rows
    copies = local_rows(rows.sparkSession, deleted, "topic string, partition int, source string")
    return rows.join(broadcast(copies), on=list(COPY), how="left_anti")


def _fits(owners: Sequence[tuple[str, int]], count: int) -> bool:
    """Whether every id is in the partition of its hash."""
    return all(partition_for(transactional_id, count) == partition for transactional_id, partition in owners)


def _counts_coordinators(run: Run) -> bool:
    return run.settings.names_every_topic and holds(Conclusion.COORDINATOR_COUNT, run.settings.metadata_extent)


def _count_assigned(run: Run) -> int | None:
    """The number of coordinator partitions in the metadata log; None if it has none yet."""
    assigned = run.tables.rows("partition_assignments", ["topic", "is_current"]).to_pylist()
    return sum(row["is_current"] and row["topic"] == TRANSACTION_STATE_TOPIC for row in assigned) or None


def _owners(records: DataFrame, most: int) -> list[tuple[str, int]]:
    """Transactional ids in some records, each with the partition that it was found in."""
    known = records.where(F.col("partition").isNotNull())
    rows = known.select("transactional_id", "partition").distinct().limit(most).collect()
    return [(row[0], row[1]) for row in rows]


def _count_partitions(owners: Sequence[tuple[str, int]], highest: int | None) -> tuple[int, CountBasis]:
    """The number of coordinator partitions that the ids in some partitions allow, at least up to the highest captured
    partition; and its basis."""
    at_least = 0 if highest is None else highest + 1
    return count_partitions(owners, at_least=at_least, default=SETTINGS["coordinator_partitions"].default)


def count_coordinator_partitions(run: Run, records: DataFrame) -> int:
    """The number of coordinator partitions by ids and by names of files, while `segments` does not yet show the highest
    partition."""
    assert run.capture is not None
    if run.settings.coordinator_partitions_basis == CountBasis.GIVEN:
        return run.settings.coordinator_partitions
    numbers = [file.partition for file in run.capture.files if file.topic == TRANSACTION_STATE_TOPIC]
    count, _ = _count_partitions(
        _owners(records, INFERRED_FROM_IDS), max((number for number in numbers if number is not None), default=None)
    )
    return count
