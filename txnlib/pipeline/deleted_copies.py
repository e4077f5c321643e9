"""The copies of deleted topics in a capture."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.pipeline.run import Run
from txnlib.readers.capture import topic_partition_of
from txnlib.spark.coverage.answers import ANSWERS, PARTITION_NOTES
from txnlib.spark.coverage.leaders import deleted_copies
from txnlib.spark.local_rows import local_rows


def partition_notes(run: Run) -> DataFrame:
    """What capture.json notes of partitions."""
    assert run.capture is not None
    rows = [
        (*topic_partition_of(name), noted.leader, noted.replicas, *(getattr(noted, answer) for answer in ANSWERS))
        for name, noted in run.capture.notes.partitions.items()
    ]
    return local_rows(run.spark, rows, PARTITION_NOTES)


def find_deleted_copies(run: Run) -> DataFrame | None:
    """The copies of deleted topics (COPY); None if there are none. Without a metadata log, only topic ids can tell."""
    settings, read = run.settings, run.tables.read
    if settings.metadata_basis is None and not _has_several_ids(read("checkpoints")):
        return None
    found = deleted_copies(
        read("segments"),
        read("checkpoints"),
        read("metadata_log"),
        read("partition_assignments"),
        partition_notes(run),
        is_metadata_whole=settings.names_every_topic,
        is_metadata_confirmed=settings.is_metadata_confirmed,
    ).collect()
    return local_rows(run.spark, found, "topic string, partition int, source string") if found else None


def _has_several_ids(checkpoints: DataFrame) -> bool:
    """Whether a topic has copies with different topic ids."""
    ids = checkpoints.where(F.col("topic_id").isNotNull()).groupBy("topic").agg(F.count_distinct("topic_id").alias("count"))
    return not ids.where("count > 1").isEmpty()
