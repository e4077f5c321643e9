"""The finished runs of a cluster, and which one to continue."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.core.chains import Chain, FinishedRun, RunHistory
from txnlib.delta.store import RunStore, Store
from txnlib.errors import MissingTableError
from txnlib.incremental.resumed_segments import resume_segments, resumed_frame, resumed_parts
from txnlib.readers.capture import Capture, FileKind
from txnlib.readers.snapshot_start import BEGINNING
from txnlib.spark.capture_source import CaptureSource
from txnlib.version import __version__


class EarlierTables(Protocol):
    """The tables of one run."""

    def read(self, name: str) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A finished run that another one can continue, and its tables."""

    run: FinishedRun
    tables: EarlierTables


def history_of(store: Store, cluster: str) -> RunHistory:
    """The finished runs of a cluster."""
    try:
        runs = store.read_all("audit_runs")
    except MissingTableError:
        return RunHistory()
    finished = runs.where((F.col("cluster") == cluster) & (F.col("status") == "DONE"))
    instants = [F.unix_millis("as_of"), F.unix_millis("finished_at")]
    rows = finished.select("run_id", *instants, "chain", "night", "version", "settings").collect()
    return RunHistory(frozenset(_finished_run(*row) for row in rows))


def _finished_run(
    run_id: str, as_of_ms: int, finished_ms: int, chain: str | None, night: int | None, version: str, settings: str
) -> FinishedRun:
    known = json.loads(settings)
    return FinishedRun(run_id, as_of_ms, finished_ms, chain, night or 0, (version, known.get("start"), known.get("detail")))


def runs_to_continue(store: Store, cluster: str, history: RunHistory, before_ms: int | None, detail: str) -> list[EarlierRun]:
    """The audits of a cluster that another one can continue, newest first.

    They have read logs from the beginning, with the same `detail`, and were made by this version: another version may read the same
    bytes differently.
    """
    found = history.to_continue((__version__, BEGINNING, detail), before_ms)
    return [EarlierRun(run, RunStore(store, cluster, run.run_id, Chain(run.chain or "", run.night))) for run in found]


def resume_from(spark: SparkSession, capture: Capture, earlier: EarlierTables, *, in_driver: bool) -> Capture | None:
    """The capture, with the segments that an earlier run has already read; None if its tables cannot be used.

    `in_driver`: whether the driver looks at the files, which are few; else tasks do.
    """
    try:
        segments = earlier.read("segments")
    except MissingTableError:
        return None
    checkpoints = CaptureSource(spark, replace(capture, files=capture.of_kind(FileKind.CHECKPOINT)), in_driver)
    return resume_segments(spark, capture, segments, checkpoints.frame("checkpoints"), in_driver=in_driver)


def resumed_source(spark: SparkSession, capture: Capture, earlier: EarlierTables, *, is_small: bool) -> CaptureSource:
    """The rows of a capture, with what an earlier run has already read of its segments."""
    if not capture.resumed:
        return CaptureSource(spark, capture, is_small)
    parts = resumed_parts(earlier.read("segments"), resumed_frame(spark, capture), in_driver=is_small)
    return CaptureSource(spark, capture, is_small, parts)
