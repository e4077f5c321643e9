"""The earlier audit from which an incremental one resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.delta.store import RunStore, Store
from txnlib.errors import MissingTableError
from txnlib.incremental.resumed_segments import CONTINUED, continue_segments, continued_parts
from txnlib.readers.capture import Capture
from txnlib.readers.snapshot_start import BEGINNING
from txnlib.spark.capture_source import read_capture
from txnlib.version import __version__

#: Finished audits to consider, newest first. More than one, because the newest may be of this very capture.
_CANDIDATES: Final = 2


def finished_runs(store: Store, cluster: str, before_ms: int | None) -> Iterator[tuple[RunStore, int]]:
    """Yields the audits of a cluster from which another can resume, newest first, each with its instant in epoch ms.

    They are finished, have read logs from the beginning, and were made by this version: another version may read the same bytes
    differently.
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
        if json.loads(row["settings"]).get("start") == BEGINNING:
            yield RunStore(store, cluster, row["run_id"]), row["as_of_ms"]


def go_on_from(spark: SparkSession, capture: Capture, earlier: RunStore) -> Capture | None:
    """The capture, with the segments that an earlier run has already read; None if its tables cannot be used."""
    try:
        segments = earlier.read("segments")
    except MissingTableError:
        return None
    return continue_segments(spark, capture, segments, read_capture(spark, capture, "checkpoints"))


def read_new(spark: SparkSession, capture: Capture, table: str, earlier: RunStore | None) -> DataFrame:
    """`read_capture`; for `segments`, including what an earlier run has already read."""
    is_partly_read = table == "segments" and earlier is not None and capture.resumed
    held = continued_parts(earlier.read(table), frame_of(spark, capture)) if earlier is not None and is_partly_read else None
    return read_capture(spark, capture, table, held)


def frame_of(spark: SparkSession, capture: Capture) -> DataFrame:
    """The segments that an earlier run has read in part. Columns: CONTINUED."""
    return spark.createDataFrame([astuple(segment) for segment in capture.resumed], CONTINUED)
