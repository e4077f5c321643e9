"""A run of an audit: settings and tables, opened from inputs, or again from `audit_runs`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.core.display import Written, duration, printable, size, utc_time
from txnlib.core.instants import BY_CLIENTS, BY_NOBODY
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.sql_text import clock_ms
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.engine.choice import choose, label
from txnlib.engine.engine import Engine, open_engine
from txnlib.engine.store import RunStore, Store, opened
from txnlib.errors import MissingTableError, UnreadableInputError, UsageError, meant
from txnlib.pipeline.audit_request import INCREMENTAL, AuditRequest
from txnlib.pipeline.clock import now
from txnlib.pipeline.parts import read_segments, with_parts
from txnlib.readers.capture import Capture, list_capture
from txnlib.settings import BROKER_SETTINGS, Settings, SettingsFile, decide, read_settings_file
from txnlib.spark.capture_source import CaptureSource
from txnlib.spark.frames import local_rows
from txnlib.spark.schemas import TABLES
from txnlib.version import __version__

#: A day, in ms.
MS_PER_DAY: Final = 86_400_000


def silent(said: object) -> None:
    """Discards what is said of progress."""


@dataclass(slots=True)
class Run:
    """One audit: its session, tables and settings, and, while ingesting, its capture."""

    engine: Engine
    tables: RunStore
    settings: Settings
    started_at: datetime
    inputs: tuple[str, ...] = ()
    #: The rows of its capture; None for a run that was opened again.
    source: CaptureSource | None = None
    #: Ids of the cluster's runs of earlier instants that had finished when this run was opened, newest first.
    earlier: tuple[str, ...] = ()
    #: Whether its capture was read before its first step, to learn its instant.
    is_read: bool = False
    #: Called with each line of progress.
    say: Callable[[str], object] = silent
    #: Called with the name of each step when it begins, and with what it wrote when it has ended.
    begin: Callable[[str], object] = silent
    ended: Callable[[str, Written], object] = lambda name, written: None
    #: Tables written so far: name -> rows and seconds.
    written: dict[str, Written] = field(default_factory=dict)
    #: The written tables that consist of many small files.
    scattered: list[str] = field(default_factory=list)

    @property
    def spark(self) -> SparkSession:
        return self.engine.spark

    @property
    def capture(self) -> Capture | None:
        """The capture that is read; None for a run that was opened again."""
        return None if self.source is None else self.source.capture

    @property
    def thresholds(self) -> Thresholds:
        known = self.settings.model_dump(include=set(Thresholds.__dataclass_fields__))
        return Thresholds(**known, is_limit_hidden=self.settings.is_limit_hidden)

    def note(self, status: str, counts: Mapping[str, object] | None = None) -> None:
        """Writes the row of the run in `audit_runs`."""
        self.tables.write("audit_runs", self.noted(status, counts))

    def noted(self, status: str, counts: Mapping[str, object] | None = None) -> DataFrame:
        """The row that `note` writes."""
        finished = None if status == "RUNNING" else now()
        row = (
            datetime.fromtimestamp(self.settings.as_of_ms / 1000, UTC),
            self.started_at,
            finished,
            status,
            ", ".join(self.inputs),
            self.settings.model_dump_json(),
            __version__,
            label(self.engine.name),
            None if counts is None else json.dumps(counts),
        )
        return local_rows(self.spark, [row], TABLES["audit_runs"])


def open_run(
    request: AuditRequest,
    say: Callable[[str], object] = silent,
    watch: Callable[[int], Callable[[int], object]] = lambda size: silent,
    show: Callable[[str], object] = silent,
) -> Run:
    """A run over a capture. `watch`: gets the bytes of all files, and returns a function that is called with the bytes
    of files that were read. `show`: is called with what is being done, which need not stay on a screen.

    Raises UsageError, ConfigError or UnreadableInputError before anything is written.
    """
    started_at = now()
    given = SettingsFile() if request.conf is None else read_settings_file(Path(request.conf))
    show(f"listing the files of {', '.join(map(printable, request.input))} …")
    capture = list_capture(request.input, follow_links=request.follow_links, say=say)
    capture = replace(capture, notes=capture.notes.for_others(request.captured_at_ms))
    say(f"engine: {label(choose(request.engine, request.schema))}")
    show("starting the engine …")
    engine = open_engine(request.engine, request.schema)
    show("looking for earlier audits …")
    store = _store(request, engine)
    cluster = str(_given(request, given, capture)["cluster"])
    _check_cluster(store, cluster, capture.cluster_id)
    as_of_ms = capture.notes.instants.latest_ms if request.as_of_ms is None else request.as_of_ms
    capture = with_parts(capture, read_segments(store, cluster, as_of_ms) if request.mode == INCREMENTAL else ())
    source = engine.source(capture)
    if as_of_ms is None:
        say(f"{reading_text(capture)}, before all else: no note says when it was taken")
        source.is_read = watch(capture.size_to_read)
        show("reading what has no note …")
    instant = (
        instant_of(source, round(started_at.timestamp() * 1000))
        if request.as_of_ms is None
        else (request.as_of_ms, "given")
    )
    settings = _decide(request, given, capture, instant)
    _compare_instants(settings.as_of_ms, capture, say)
    tables = RunStore(store, settings.cluster, settings.run_id)
    earlier = earlier_runs(store, settings)
    return Run(engine, tables, settings, started_at, capture.inputs, source, earlier, is_read=as_of_ms is None, say=say)


def _check_cluster(store: Store, cluster: str, cluster_id: str | None) -> None:
    """Raises UsageError if an audit of this name in the tables is of a cluster with another id: its history, and what
    it has read, are not of this one."""
    if cluster_id is None:
        return
    try:
        noted = store.read_all("audit_runs").where(F.col("cluster") == cluster).select("settings").distinct().collect()
    except MissingTableError:
        return
    ids = {json.loads(row["settings"]).get("cluster_id") for row in noted} - {None, cluster_id}
    if ids:
        raise UsageError(
            f"{store.output or store.schema}: its audits of {printable(cluster)} are of the cluster with the id"
            f" {printable(min(ids))}, this capture is of {printable(cluster_id)}: give this one another name with"
            " --cluster, or other tables with --output"
        )


def earlier_runs(store: Store, settings: Settings) -> tuple[str, ...]:
    """The finished runs of the cluster as of earlier, newest first."""
    try:
        runs = store.read_all("audit_runs")
    except MissingTableError:
        return ()
    is_finished = (F.col("cluster") == settings.cluster) & (F.col("status") == "DONE")
    found = runs.where(is_finished & (F.unix_millis("as_of") < settings.as_of_ms)).orderBy(F.desc("as_of"))
    return tuple(row["run_id"] for row in found.select("run_id").collect())


def _store(request: AuditRequest, engine: Engine) -> Store:
    output = request.output
    if output is not None and "://" not in output:
        output = str(Path(output.removeprefix("file:")).absolute())
    return opened(engine.store(output, request.schema))


def _given(request: AuditRequest, given: BaseModel, capture: Capture) -> dict[str, Any]:
    decided = decide({**request.settings, "cluster": request.cluster}, given, capture.notes)
    return {"cluster": Path(capture.inputs[0]).name, **decided}


def _decide(request: AuditRequest, given: BaseModel, capture: Capture, instant: tuple[int, str]) -> Settings:
    """The effective settings: options over settings file over capture.json over defaults. `instant`: the instant of the
    audit, and where it is from."""
    notes = capture.notes
    decided = _given(request, given, capture)
    as_of_ms, basis = instant
    is_counted = "coordinator_partitions" in decided
    return Settings(
        **decided
        | {
            "as_of_ms": as_of_ms,
            "as_of_basis": basis,
            "coordinator_partitions_basis": CountBasis.GIVEN if is_counted else CountBasis.DEFAULT,
            "assumed": tuple(name for setting, name in BROKER_SETTINGS.items() if setting not in decided),
            "cluster_id": capture.cluster_id,
            "misnamed": capture.misnamed,
            "kafka_version": notes.kafka_version,
            "transaction_version": notes.transaction_version,
        }
    )


def _compare_instants(as_of_ms: int, capture: Capture, say: Callable[[str], object]) -> None:
    """Warns if the instant of the audit is before the first copy was taken, or more than a day from the newest one: it
    may be a slip of the pen."""
    newest_ms, oldest_ms = capture.notes.instants.latest_ms, capture.notes.instants.earliest_ms
    if oldest_ms is not None and as_of_ms < oldest_ms:
        say(
            f"--as-of is {utc_time(as_of_ms)}, before the first copy was taken ({utc_time(oldest_ms)}): ages count up"
            " to then only. Is it meant?"
        )
        return
    if newest_ms is not None and abs(as_of_ms - newest_ms) > MS_PER_DAY:
        side = "after" if as_of_ms > newest_ms else "before"
        say(f"--as-of is {duration(abs(as_of_ms - newest_ms))} {side} the newest copy: is it meant?")


def reopen_run(
    request: AuditRequest,
    say: Callable[[str], object] = silent,
    *,
    run_id: str | None = None,
    is_finished: bool = False,
    is_shared: bool = False,
) -> Run:
    """Opens a run of `audit_runs`: the newest one that has the given cluster, instant or id. Raises UsageError if there
    is none.

    `is_shared`: its frames are for users (`open_engine`)."""
    engine = open_engine(request.engine, request.schema, is_shared=is_shared)
    store = _store(request, engine)
    runs = store.read_all("audit_runs")
    if request.cluster is not None:
        runs = runs.where(F.col("cluster") == request.cluster)
    if request.as_of_ms is not None:
        runs = runs.where(F.unix_millis("as_of") == request.as_of_ms)
    if is_finished:
        runs = runs.where(F.col("status") == "DONE")
    if run_id is not None:
        runs = runs.where(F.col("run_id") == run_id)
    found = runs.orderBy(F.desc("as_of"), F.desc("started_at")).first()
    if found is None:
        if run_id is not None:
            known = (row["run_id"] for row in store.read_all("audit_runs").select("run_id").collect())
            raise UsageError(f"no such run: {run_id}{meant(run_id, known)}")
        raise UsageError("no such run in audit_runs: check --cluster and --as-of, or run ingest_dumps first")
    settings = Settings.model_validate_json(found["settings"])
    tables = RunStore(store, settings.cluster, settings.run_id)
    earlier = earlier_runs(store, settings)
    return Run(engine, tables, settings, now(), (found["input"],), earlier=earlier, say=say)


def reading_text(capture: Capture) -> str:
    """How much an audit reads: `reading 214 files, 12.3 GiB`, and how much of that is new, if some is known."""
    new = "" if capture.size_to_read == capture.size else f", of which {size(capture.size_to_read)} are new"
    return f"reading {len(capture.files)} files, {size(capture.size)}{new}"


BY_NOTES: Final = "newest capture instant"
BY_BROKERS: Final = "newest broker-stamped time in the capture (no capture.json)"


def instant_of(source: CaptureSource, now_ms: int) -> tuple[int, str]:
    """The instant of the audit in epoch ms, and where it is from.

    A client's time after `now_ms` counts as `now_ms`, because that client's clock is wrong. Without any time, the
    instant is 0. Raises UnreadableInputError if no broker's clock gives it, and something may be open.
    """
    noted = source.capture.notes.instants.latest_ms
    if noted is not None:
        return noted, BY_NOTES
    stamped = _newest(source.read("segments"), "newest_broker_ms")
    if stamped is not None:
        return stamped, BY_BROKERS
    found = what_may_be_open(source)
    if found is not None:
        raise UnreadableInputError(
            ", ".join(source.capture.inputs),
            f"has {found}, and contains no time at which it was taken",
            "Give --captured-at, or add a capture.json",
        )
    written = _newest(source.read("record_batches"), "max_timestamp_ms")
    return (0, BY_NOBODY) if written is None else (min(written, now_ms), BY_CLIENTS)


def what_may_be_open(source: CaptureSource) -> str | None:
    """The first kind of records in a capture that may be, or belong to, an open transaction, in words; None if there
    are none."""
    for table, condition, says in (
        ("record_batches", "coalesce(is_transactional, magic IS NULL OR magic > 1)", "transactional batches"),
        ("producer_snapshots", "current_txn_first_offset IS NOT NULL", "open transactions in producer snapshots"),
        ("live_producers", "current_transaction_start_offset IS NOT NULL", "open transactions by brokers' answers"),
        ("transaction_log", "TRUE", "coordinators' records"),
        ("console_log", "TRUE", "coordinators' records"),
        ("live_transactions", "TRUE", "transactions by brokers' answers"),
    ):
        if source.may_have(table) and not source.read(table).where(condition).isEmpty():
            return says
    return None


def _newest(rows: DataFrame, column: str) -> int | None:
    """The newest instant in a column of epoch ms; None if there is none."""
    found: Any = rows.agg(F.max(F.expr(clock_ms(column))).alias("newest")).first()
    return None if found is None or found["newest"] is None else int(found["newest"])
