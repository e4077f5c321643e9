"""What the cluster's metadata log proves, as few facts for the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.coverage.segments import CUT_REASONS
from txnlib.core.coverage.sources import broker_of
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.verdicts.copies import CONFIRMED_WITHIN_MS, LeaderBasis, leader_basis
from txnlib.core.verdicts.metadata_proof import Conclusion, MetadataExtent, holds
from txnlib.pipeline.run import Run
from txnlib.readers.capture_notes import DEFAULT_INSTANT, CaptureNotes
from txnlib.spark.instants import clock_ms

_FOLDER: Final = f"{CLUSTER_METADATA_TOPIC}-0"


def know_metadata(run: Run) -> None:
    """Finds out how far the captured metadata log reaches, and whether it was still growing when it was copied."""
    assert run.capture is not None
    is_captured = any(file.topic == CLUSTER_METADATA_TOPIC for file in run.capture.files)
    if not is_captured and run.tables.is_empty("metadata_log"):
        return
    metadata_log, segments = run.tables.read("metadata_log"), run.tables.read("segments")
    found = _extent(metadata_log)
    last_offset = -1 if found is None else found[1]
    has_end = _has_end(metadata_log, segments, last_offset)
    if found is None:
        if not has_end:
            facts = {"metadata_basis": LeaderBasis.METADATA_LOG_DAMAGED, "has_metadata_end": False}
            run.settings = run.settings.model_copy(update=facts)
        return
    known_ms, _, has_no_ops, is_complete = found
    copied_ms, stamped_ms = _copied_ms(segments, last_offset, run.capture.notes), _newest_stamp_ms(segments)
    basis = leader_basis(
        None if copied_ms is None else copied_ms - known_ms,
        has_no_ops=has_no_ops,
        newer_ms=None if stamped_ms is None else stamped_ms - known_ms,
    )
    if not holds(Conclusion.LEADER, MetadataExtent(has_begin=is_complete, has_end=has_end)):
        basis = LeaderBasis.METADATA_LOG_DAMAGED
    reach_ms = known_ms + CONFIRMED_WITHIN_MS[has_no_ops]
    is_last = all(instant <= reach_ms for name, instant in run.capture.notes.captured_at_ms.items() if name != DEFAULT_INSTANT)
    facts = {
        "metadata_known_ms": known_ms,
        "metadata_basis": basis,
        "metadata_reach_ms": reach_ms,
        "is_metadata_complete": is_complete,
        "has_metadata_end": has_end,
        "is_metadata_whole": is_last and has_end and not _is_torn(segments, last_offset),
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


def _has_end(metadata_log: DataFrame, segments: DataFrame, last_offset: int) -> bool:
    """Whether no copy has records beyond the end of the log that counts, nor lost any there.

    A dead broker's copy may end in damage below that. A log that was being written when it was copied may end inside a batch.
    """
    is_beyond = F.col("snapshot_offset").isNull() & (F.col("last_offset") > last_offset)
    is_undecoded = F.col("end_offset") > last_offset + 1
    is_lost = _ends_in(F.col("unreadable"), last_offset, lambda reason: ~reason.isin(*CUT_REASONS)) | is_undecoded
    return metadata_log.where(is_beyond).isEmpty() and _of_log(segments).where(is_lost).isEmpty()


def _is_torn(segments: DataFrame, last_offset: int) -> bool:
    """Whether a copy ends inside a batch at the end of the log that counts."""
    is_torn = _ends_in(F.col("unreadable"), last_offset, lambda reason: reason.isin(*CUT_REASONS))
    return not _of_log(segments).where(is_torn).isEmpty()


def _of_log(segments: DataFrame) -> DataFrame:
    return segments.where(F.col("topic") == CLUSTER_METADATA_TOPIC)


def _ends_in(unreadable: Column, last_offset: int, is_of: Callable[[Column], Column]) -> Column:
    """Whether a copy that reaches the end of the log that counts has nothing readable behind such a range."""
    is_end = F.exists(unreadable, lambda each: each["next_offset"].isNull() & is_of(each["reason"]))
    return F.coalesce((F.coalesce("end_offset", F.lit(0)) > last_offset) & is_end, F.lit(False))


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
