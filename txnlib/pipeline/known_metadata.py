"""What the cluster's metadata log proves, as settings of the run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from txnlib.core.coverage.segments import CUT_REASONS
from txnlib.core.coverage.sources import broker_of
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.core.verdicts.known_metadata import MetadataReach, StampedSegment, known_metadata
from txnlib.pipeline.given_rows import rows_of_table
from txnlib.pipeline.run import Run
from txnlib.readers.capture_notes import DEFAULT_INSTANT
from txnlib.spark.metadata_log import reach

_FOLDER: Final = f"{CLUSTER_METADATA_TOPIC}-0"


def know_metadata(run: Run) -> None:
    """Finds out how far the captured metadata log reaches, and whether it was still growing when it was copied."""
    assert run.capture is not None
    notes, is_empty = run.capture.notes, run.tables.is_empty("metadata_log")
    if is_empty and not any(file.topic == CLUSTER_METADATA_TOPIC for file in run.capture.files):
        return
    known = known_metadata(
        MetadataReach() if is_empty else reach(run.tables.read("metadata_log")),
        rows_of_table(run, "segments", StampedSegment),
        copied_at=lambda source: notes.captured_at(broker_of(source), _FOLDER),
        captured_at_ms=[ms for name, ms in notes.captured_at_ms.items() if name != DEFAULT_INSTANT],
        cut_reasons=CUT_REASONS,
    )
    if known is not None:
        facts = {name: value for name, value in asdict(known).items() if value is not None}
        run.settings = run.settings.model_copy(update=facts)
