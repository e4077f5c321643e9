"""The earlier audit that an incremental one continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.delta.chain import Chain
from txnlib.delta.store import RunStore, Store
from txnlib.errors import MissingTableError
from txnlib.incremental.resumed_segments import resume_segments, resumed_frame, resumed_parts
from txnlib.readers.capture import Capture
from txnlib.readers.snapshot_start import BEGINNING
from txnlib.spark.capture_source import read_capture
from txnlib.version import __version__

#: Finished audits to consider, newest first. More than one, because the newest may be of this very capture.
_CANDIDATES: Final = 2


class RunTables(Protocol):
    """The tables of one run."""

    def read(self, name: str) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A finished run that another one can continue."""

    tables: RunTables
    run_id: str
    as_of_ms: int
    #: Its place in its chain.
    chain: str
    night: int
    #: Instants of the finished runs that come after it in the chain.
    continued_at_ms: frozenset[int] = frozenset()


def finished_runs(store: Store, cluster: str, before_ms: int | None, detail: str) -> Iterator[EarlierRun]:
    """Yields the audits of a cluster that another one can continue, newest first.

    They are finished, have read logs from the beginning, with the same `detail`, and were made by this version: another version may
    read the same bytes differently.
    """
    try:
        runs = store.read_all("audit_runs")
    except MissingTableError:
        return
    usable = runs.where(
        (F.col("cluster") == cluster) & (F.col("status") == "DONE") & (F.col("version") == __version__) & F.col("chain").isNotNull()
    )
    is_before = F.lit(True) if before_ms is None else F.unix_millis("as_of") < before_ms
    columns = ("run_id", "settings", "chain", "night", F.unix_millis("as_of").alias("as_of_ms"))
    newest = usable.where(is_before).orderBy(F.desc("as_of")).select(*columns).limit(_CANDIDATES).collect()
    for row in newest:
        settings = json.loads(row["settings"])
        if settings.get("start") != BEGINNING or settings.get("detail") != detail:
            continue
        is_later = (F.col("chain") == row["chain"]) & (F.col("night") > row["night"])
        later = usable.where(is_later).select(F.unix_millis("as_of").alias("as_of_ms")).collect()
        place = Chain(row["chain"], row["night"])
        tables = RunStore(store, cluster, row["run_id"], place)
        continued = frozenset(each["as_of_ms"] for each in later)
        yield EarlierRun(tables, row["run_id"], row["as_of_ms"], place.name, place.night, continued)


def chains_of_others(store: Store, cluster: str, run_id: str) -> dict[str, int]:
    """The chains of all other finished runs of a cluster, each with the instant of its newest run, in epoch ms."""
    if not store.exists("audit_runs"):
        return {}
    is_other = (F.col("cluster") == cluster) & (F.col("run_id") != run_id) & (F.col("status") == "DONE")
    runs = store.read_all("audit_runs").where(is_other & F.col("chain").isNotNull())
    newest = runs.groupBy("chain").agg(F.max(F.unix_millis("as_of")).alias("newest_ms")).collect()
    return {row["chain"]: row["newest_ms"] for row in newest}


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
