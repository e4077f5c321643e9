"""What the cluster's metadata log proves, as few facts for the driver."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.verdicts.copies import CONFIRMED_WITHIN_MS, leader_basis
from txnlib.pipeline.run import Run
from txnlib.readers.capture import broker_of
from txnlib.readers.capture_notes import DEFAULT_INSTANT, CaptureNotes
from txnlib.spark.instants import clock_ms

_FOLDER: Final = f"{CLUSTER_METADATA_TOPIC}-0"


def know_metadata(run: Run) -> None:
    """Finds out how far the captured metadata log reaches, and whether it was still growing when it was copied."""
    assert run.capture is not None
    if run.tables.is_empty("metadata_log"):
        return
    found = _extent(run.tables.read("metadata_log"))
    if found is None:
        return
    known_ms, last_offset, has_no_ops, is_complete = found
    segments = run.tables.read("segments")
    copied_ms, stamped_ms = _copied_ms(segments, last_offset, run.capture.notes), _newest_stamp_ms(segments)
    basis = leader_basis(
        None if copied_ms is None else copied_ms - known_ms,
        has_no_ops=has_no_ops,
        newer_ms=None if stamped_ms is None else stamped_ms - known_ms,
    )
    reach_ms = known_ms + CONFIRMED_WITHIN_MS[has_no_ops]
    is_last = all(instant <= reach_ms for name, instant in run.capture.notes.captured_at_ms.items() if name != DEFAULT_INSTANT)
    is_whole = is_last and _is_whole(run.tables.read("metadata_log"), segments, last_offset)
    facts = {
        "metadata_known_ms": known_ms,
        "metadata_basis": basis,
        "metadata_reach_ms": reach_ms,
        "is_metadata_complete": is_complete,
        "is_metadata_whole": is_whole,
    }
    run.settings = run.settings.model_copy(update=facts)


def _extent(metadata_log: DataFrame) -> tuple[int, int, bool, bool] | None:
    """Newest time and last offset of the log that counts, whether it has NoOpRecords, and whether it has a beginning."""
    at_offset = F.coalesce(F.col("snapshot_offset") - 1, F.col("last_offset"))
    found = (
        metadata_log.where("is_effective")
        .agg(
            F.max(clock_ms("timestamp_ms")).alias("known_ms"),
            F.max(at_offset).alias("last_offset"),
            F.bool_or(F.col("type") == MetadataType.NO_OP.value).alias("has_no_ops"),
            F.bool_or(F.col("snapshot_offset").isNotNull() | (F.col("offset") == 0)).alias("is_complete"),
        )
        .first()
    )
    if found is None or found["known_ms"] is None:
        return None
    return found["known_ms"], found["last_offset"], found["has_no_ops"], found["is_complete"]


def _is_whole(metadata_log: DataFrame, segments: DataFrame, last_offset: int) -> bool:
    """Whether no copy has records beyond the end of the log that counts, nor lost any there.

    A dead broker's copy may end in damage below that.
    """
    is_beyond = F.col("snapshot_offset").isNull() & (F.col("last_offset") > last_offset)
    of_log, end = F.col("topic") == CLUSTER_METADATA_TOPIC, F.coalesce("end_offset", F.lit(0))
    is_cut = (end > last_offset) & F.exists("unreadable", lambda unreadable: unreadable["next_offset"].isNull())
    is_undecoded = end > last_offset + 1
    return metadata_log.where(is_beyond).isEmpty() and segments.where(of_log & (is_cut | is_undecoded)).isEmpty()


def _newest_stamp_ms(segments: DataFrame) -> int | None:
    """The newest broker-stamped time in the copies of all other partitions."""
    found = segments.where(F.col("topic") != CLUSTER_METADATA_TOPIC).agg(F.max(clock_ms("newest_broker_ms")).alias("ms")).first()
    return None if found is None else found["ms"]


def _copied_ms(segments: DataFrame, last_offset: int, notes: CaptureNotes) -> int | None:
    """When the log was copied: the earliest of the copies that contain all of it. A later one may be a dead broker's."""
    is_whole = (F.col("topic") == CLUSTER_METADATA_TOPIC) & (F.col("end_offset") > last_offset)
    sources = [row["source"] for row in segments.where(is_whole).select("source").distinct().collect()]
    instants = [notes.captured_at(broker_of(source), _FOLDER) for source in sources]
    return min((instant for instant in instants if instant is not None), default=None)
