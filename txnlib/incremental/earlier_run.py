"""The earlier audit from which an incremental one resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.delta.store import RunStore, Store
from txnlib.errors import MissingTableError
from txnlib.incremental.carried_rows import RunTables
from txnlib.incremental.resumed_segments import resume_segments, resumed_frame, resumed_parts
from txnlib.readers.capture import Capture
from txnlib.readers.snapshot_start import BEGINNING
from txnlib.spark.capture_source import read_capture
from txnlib.version import __version__

#: Finished audits to consider, newest first. More than one, because the newest may be of this very capture.
_CANDIDATES: Final = 2


def finished_runs(store: Store, cluster: str, before_ms: int | None, detail: str) -> Iterator[tuple[RunStore, int]]:
    """Yields the audits of a cluster from which another can resume, newest first, each with its instant in epoch ms.

    They are finished, have read logs from the beginning, with the same `detail`, and were made by this version: another version may
    read the same bytes differently.
    """
    try:
        runs = store.read_all("audit_runs")
    except MissingTableError:
        return
    usable = runs.where((F.col("cluster") == cluster) & (F.col("status") == "DONE") & (F.col("version") == __version__))
    if before_ms is not None:
        usable = usable.where(F.unix_millis("as_of") < before_ms)
    newest = usable.orderBy(F.desc("as_of")).select("run_id", "settings", F.unix_millis("as_of").alias("as_of_ms"))
    for row in newest.limit(_CANDIDATES).collect():
        settings = json.loads(row["settings"])
        if settings.get("start") == BEGINNING and settings.get("detail") == detail:
            yield RunStore(store, cluster, row["run_id"]), row["as_of_ms"]


def resume_from(spark: SparkSession, capture: Capture, earlier: RunTables) -> Capture | None:
    """The capture, with the segments that an earlier run has already read; None if its tables cannot be used."""
    try:
        segments = earlier.read("segments")
    except MissingTableError:
        return None
    return resume_segments(spark, capture, segments, read_capture(spark, capture, "checkpoints"))


def read_segments(spark: SparkSession, capture: Capture, earlier: RunTables) -> DataFrame:
    """`segments` of a capture, including what an earlier run has already read."""
    if not capture.resumed:
        return read_capture(spark, capture, "segments")
    return read_capture(spark, capture, "segments", resumed_parts(earlier.read("segments"), resumed_frame(spark, capture)))
