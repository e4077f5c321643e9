"""Reads the copies of the logs into tables: batches, coordinator records, and what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs import options
from jobs.run import Run, main, open_run, plan_text, say
from txnlib.core.partitioner import count_partitions
from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC
from txnlib.readers.capture import topic_partition_of
from txnlib.readers.capture_notes import DEFAULT_INSTANT, CaptureNotes
from txnlib.spark.capture_source import read_capture
from txnlib.spark.coverage import coverage
from txnlib.spark.quarantine import quarantine

#: Transactional ids looked at to learn the number of coordinator partitions; each one more rules out most wrong numbers.
IDS_TO_LEARN_FROM = 200


def ingest(run: Run) -> Run:
    """Writes the run's row, segments, record_batches, transaction_log, producer_snapshots, coverage and quarantine."""
    assert run.capture is not None
    spark, capture = run.spark, run.capture
    say(f"reading {len(capture.files)} files")
    tables = ("segments", "record_batches", "transaction_log", "producer_snapshots")
    run.write_all({"audit_runs": run.noted("RUNNING"), **{name: read_capture(spark, capture, name) for name in tables}})
    run = _with_coordinator_partitions(run)
    segments = run.tables.read("segments")
    frames = {
        "coverage": coverage(
            segments,
            read_capture(spark, capture, "checkpoints"),
            _partition_notes(run, capture.notes),
            _instants(run, capture.notes),
            _expected(run, capture.notes),
        ),
        "quarantine": quarantine(segments),
    }
    run.write_all(frames)
    return run


def _with_coordinator_partitions(run: Run) -> Run:
    """The run with the number of coordinator partitions: as given, else as the ids in the records prove it."""
    if run.settings.coordinator_partitions_basis == "given":
        return run
    log = run.tables.read("transaction_log")
    pairs = [(row[0], row[1]) for row in log.select("transactional_id", "partition").distinct().limit(IDS_TO_LEARN_FROM).collect()]
    highest = run.tables.read("segments").where(F.col("topic") == TRANSACTION_STATE_TOPIC).agg(F.max("partition")).first()
    at_least = 0 if highest is None or highest[0] is None else highest[0] + 1
    count = count_partitions(pairs, at_least=at_least, default=50)
    return run.with_settings(coordinator_partitions=count, coordinator_partitions_basis="learned from the captured ids")


def _partition_notes(run: Run, notes: CaptureNotes) -> DataFrame:
    rows = [(*topic_partition_of(name), noted.leader) for name, noted in notes.partitions.items()]
    return run.spark.createDataFrame(rows, "topic string, partition int, leader int")


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


def job(argv: Sequence[str]) -> int:
    given = options.parse(options.INGEST, __doc__ or "", argv)
    run = open_run(given)
    if given.dry_run:
        assert run.capture is not None
        print(plan_text(run.inputs, run.capture, run.settings))
        return 0
    run = ingest(run)
    run.note("INGESTED")
    return 0


if __name__ == "__main__":
    sys.exit(main(job, sys.argv[1:]))
