"""The tables read from a capture: batches, coordinator records, and what could not be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.coordinator_partition import CountBasis, count_partitions
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import Decision, Step, Table, table_of
from txnlib.readers.capture import FileKind, topic_partition_of
from txnlib.readers.capture_notes import DEFAULT_INSTANT, CaptureNotes
from txnlib.settings import default_of
from txnlib.spark.capture_source import read_capture
from txnlib.spark.coordinators.console_copies import console_records, console_segments
from txnlib.spark.coverage.coverage import coverage
from txnlib.spark.coverage.quarantine import quarantine

#: Transactional ids used to infer the number of coordinator partitions. Each further id rules out most wrong numbers.
IDS_TO_LEARN_FROM = 200


def _read(table: str) -> Table:
    def transform(run: Run) -> DataFrame:
        assert run.capture is not None
        return read_capture(run.spark, run.capture, table)

    return Table(table, (), transform)


def _transaction_log(run: Run) -> DataFrame:
    """The coordinators' records: of segments, of their dumps, and of console text, which prints no partition."""
    assert run.capture is not None
    records = read_capture(run.spark, run.capture, "transaction_log")
    if not run.capture.of_kind(FileKind.CONSOLE):
        return records
    printed = read_capture(run.spark, run.capture, "console_log")
    return records.unionByName(console_records(printed, records, _count_coordinator_partitions(run, records)))


def _count_coordinator_partitions(run: Run, records: DataFrame) -> int:
    """The number of coordinator partitions, before `segments` can tell the highest one: by ids, and by names of files."""
    assert run.capture is not None
    if run.settings.coordinator_partitions_basis == CountBasis.GIVEN:
        return run.settings.coordinator_partitions
    numbers = [file.partition for file in run.capture.files if file.topic == TRANSACTION_STATE_TOPIC]
    count, _ = _count_partitions(records, max((number for number in numbers if number is not None), default=None))
    return count


def _segments(run: Run) -> DataFrame:
    """What was read of each file, and, of console text, of each coordinator partition."""
    assert run.capture is not None
    segments = read_capture(run.spark, run.capture, "segments") if run.resumption is None else run.resumption.read_segments()
    texts = run.capture.of_kind(FileKind.CONSOLE)
    if not texts:
        return segments
    of_texts = read_capture(run.spark, replace(run.capture, files=texts, parts={}), "segments")
    records = run.tables.read("transaction_log").where(F.col("source").startswith("console:"))
    return segments.unionByName(console_segments(of_texts, records))


def _committed_offsets(run: Run) -> DataFrame:
    """Reads only `__consumer_offsets`, so it costs nothing if that was not captured."""
    assert run.capture is not None
    files = tuple(file for file in run.capture.files if file.topic == GROUP_METADATA_TOPIC)
    return read_capture(run.spark, replace(run.capture, files=files), "committed_offsets")


def _learn_settings(run: Run) -> None:
    """Infers settings that were not given from the records."""
    _learn_transaction_max_timeout(run)
    _learn_coordinator_partitions(run)


def _learn_transaction_max_timeout(run: Run) -> None:
    """Raises the assumed `transaction.max.timeout.ms` to the largest stored timeout: brokers refuse larger ones."""
    if not run.settings.is_transaction_max_timeout_assumed:
        return
    timeout = F.col("transaction_timeout_ms")
    stored = run.tables.read("transaction_log").where(~timeout.isin(*TWO_PHASE_COMMIT_TIMEOUTS))
    largest = stored.agg(F.max(timeout)).first()
    if largest is not None and largest[0] is not None and largest[0] > run.settings.transaction_max_timeout_ms:
        run.settings = run.settings.model_copy(update={"transaction_max_timeout_ms": largest[0]})


def _learn_coordinator_partitions(run: Run) -> None:
    """Infers the number of coordinator partitions from the ids in the records, unless it was given."""
    if run.settings.coordinator_partitions_basis == CountBasis.GIVEN:
        return
    highest = run.tables.read("segments").where(F.col("topic") == TRANSACTION_STATE_TOPIC).agg(F.max("partition")).first()
    # Console records were placed by this number, so they cannot prove it.
    records = run.tables.read("transaction_log").where(~F.col("source").startswith("console:"))
    count, basis = _count_partitions(records, None if highest is None else highest[0])
    learned = {"coordinator_partitions": count, "coordinator_partitions_basis": basis.value}
    run.settings = run.settings.model_copy(update=learned)


def _count_partitions(records: DataFrame, highest: int | None) -> tuple[int, CountBasis]:
    """The number of coordinator partitions by the ids in some records, at least up to the highest one captured, and its basis."""
    known = records.where(F.col("partition").isNotNull())
    rows = known.select("transactional_id", "partition").distinct().limit(IDS_TO_LEARN_FROM).collect()
    owners = [(row[0], row[1]) for row in rows]
    at_least = 0 if highest is None else highest + 1
    return count_partitions(owners, at_least=at_least, default=default_of("coordinator_partitions"))


def _coverage(run: Run) -> DataFrame:
    assert run.capture is not None
    notes = run.capture.notes
    return coverage(
        run.tables.read("segments"),
        run.tables.read("record_batches"),
        run.tables.read("checkpoints"),
        _partition_notes(run, notes),
        _instants(run, notes),
        _expected(run, notes),
    )


def _partition_notes(run: Run, notes: CaptureNotes) -> DataFrame:
    rows = [(*topic_partition_of(name), noted.leader, noted.replicas) for name, noted in notes.partitions.items()]
    return run.spark.createDataFrame(rows, "topic string, partition int, leader int, replicas array<int>")


def _instants(run: Run, notes: CaptureNotes) -> DataFrame:
    rows: list[tuple[str | None, str | None, int]] = []
    for name, instant in notes.captured_at_ms.items():
        broker, _, folder = name.rpartition("/")
        rows.append((None, None, instant) if name == DEFAULT_INSTANT else (broker, folder, instant))
    return run.spark.createDataFrame(rows, "broker string, folder string, captured_at_ms long")


def _expected(run: Run, notes: CaptureNotes) -> DataFrame:
    """Partitions that capture.json, the number of coordinators, or the coordinators' records name."""
    schema = "topic string, partition int"
    noted = run.spark.createDataFrame([topic_partition_of(name) for name in notes.partitions], schema)
    coordinators = run.spark.range(run.settings.coordinator_partitions).select(
        F.lit(TRANSACTION_STATE_TOPIC).alias("topic"), F.col("id").cast("int").alias("partition")
    )
    named = run.tables.read("transaction_log").select(F.inline("partitions"))
    return noted.union(coordinators).union(named).distinct()


def _find_appended_partitions(run: Run) -> None:
    """Finds the partitions whose windows resume from the earlier run."""
    if run.resumption is not None:
        run.resumption.find_appended_partitions()


def damage(run: Run) -> dict[str, bool]:
    """Whether any copy is damaged: where none is, `quarantine` need not look for contradicted batches."""
    return {"is_any_damaged": not run.tables.read("coverage").where(F.col("status") == "DAMAGED").isEmpty()}


STEPS: Final[tuple[Step, ...]] = (
    _read("record_batches"),  # first, because it takes longest
    Table("transaction_log", (), _transaction_log),
    Table("committed_offsets", (), _committed_offsets),
    _read("checkpoints"),
    # After the tables of the same files, so that it shows those that shrank meanwhile.
    Table("segments", ("record_batches", "transaction_log", "committed_offsets"), _segments),
    _read("producer_snapshots"),
    _read("aborted_transactions"),
    Decision("coordinator_partitions", ("transaction_log", "segments"), _learn_settings),
    Table("coverage", ("transaction_log", "segments", "record_batches", "checkpoints", "coordinator_partitions"), _coverage),
    Decision("appended_partitions", ("segments", "coverage", "producer_snapshots"), _find_appended_partitions),
    table_of(quarantine, "segments", "record_batches", "checkpoints", settings=damage, after=("coverage",)),
)
