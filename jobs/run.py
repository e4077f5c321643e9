"""What is one audit run? Settings decided, tables located; opened from inputs, or again from `audit_runs`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.continuing import finished_runs, go_on_from, read_new
from jobs.options import INCREMENTAL
from jobs.owner import this_process
from txnlib import __version__
from txnlib.config import Settings, SettingsFile, read_settings_file
from txnlib.core.evidence import Thresholds
from txnlib.delta.session import delta_session, tune_for
from txnlib.delta.store import RunStore, Store
from txnlib.errors import BusyError, TxnlibError, UnreadableInputError, UsageError
from txnlib.readers.capture import Capture, FileKind, list_capture
from txnlib.readers.start import SNAPSHOT, start_at_snapshots
from txnlib.spark.capture_splits import split_large_files
from txnlib.spark.schemas import AUDIT_RUNS


@dataclass(slots=True)
class Run:
    """One audit: its session, its tables, its settings (of which one may be learned), and, while ingesting, its capture."""

    spark: SparkSession
    tables: RunStore
    settings: Settings
    started_at: datetime
    inputs: tuple[str, ...] = ()
    capture: Capture | None = None
    #: The run that an incremental one takes rows over from.
    earlier: RunStore | None = None
    #: The process that carries it out: host, process id, its start.
    owner: str = field(default_factory=this_process)

    @property
    def thresholds(self) -> Thresholds:
        known = self.settings.model_dump(include=set(Thresholds.__dataclass_fields__))
        return Thresholds(**known)

    def note(self, status: str, counts: Mapping[str, object] | None = None) -> None:
        """Writes the run's row of `audit_runs`."""
        self.tables.write("audit_runs", self.noted(status, counts))

    def noted(self, status: str, counts: Mapping[str, object] | None = None) -> DataFrame:
        """The run's row of `audit_runs`."""
        finished = None if status == "RUNNING" else datetime.now(UTC)
        row = (
            datetime.fromtimestamp(self.settings.as_of_ms / 1000, UTC),
            self.started_at,
            finished,
            status,
            ", ".join(self.inputs),
            self.settings.model_dump_json(),
            __version__,
            None if counts is None else json.dumps(counts),
            self.owner,
        )
        return self.spark.createDataFrame([row], AUDIT_RUNS)


def say(text: str) -> None:
    """A line of progress, to stderr: stdout is the report's. In one write, because several steps speak at a time."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(job: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Runs a job's main and turns what it raises into an exit code: 2 for what the caller can mend, 1 for failure."""
    try:
        return job(argv)
    except SystemExit as asked:  # argparse after --help
        return int(asked.code or 0)
    except BusyError as error:
        say(f"txnlib: {error}")
        return 1
    except TxnlibError as error:
        say(f"txnlib: {error}")
        return 2
    except Exception as error:  # the last line of defence: a failed audit must say so and exit with 1
        say(f"txnlib: the audit failed: {type(error).__name__}: {error}")
        return 1


def open_run(options: Namespace) -> Run:
    """A run over `--input`. Raises UsageError, ConfigError or UnreadableInputError before anything is written."""
    started_at = datetime.now(UTC)
    given = SettingsFile() if options.conf is None else read_settings_file(Path(options.conf))
    capture = list_capture(options.input)
    if options.start == SNAPSHOT:
        capture = start_at_snapshots(capture)
    spark = delta_session("txnlib")
    tune_for(spark, sum(file.size for file in capture.files))
    store = Store(spark, "nowhere") if options.dry_run and not (options.output or options.schema) else _store(options, spark)
    capture, earlier = _continued(options, given, capture, store)
    capture = split_large_files(spark, capture)
    settings = _decide(options, given, capture, spark, earlier)
    tables = RunStore(store, settings.cluster, settings.run_id)
    return Run(spark, tables, settings, started_at, capture.inputs, capture, earlier)


def _continued(options: Namespace, given: SettingsFile, capture: Capture, store: Store) -> tuple[Capture, RunStore | None]:
    """The capture as it is to be read, and the run that it goes on from, if it is to and there is one."""
    if options.mode != INCREMENTAL:
        return capture, None
    known_ms = capture.notes.newest_instant_ms if options.as_of_ms is None else options.as_of_ms
    for earlier, as_of_ms in finished_runs(store, _cluster(options, given, capture), known_ms):
        found = go_on_from(store.spark, capture, earlier)
        if found is None:
            continue
        if known_ms is None and _newest_stamp(found, store.spark, earlier) <= as_of_ms:
            continue  # the same capture again
        say(f"going on from {earlier.run_id}: {len(found.continued)} segments are read on")
        return found, earlier
    say("no earlier audit to go on from: reading everything")
    return capture, None


def _store(options: Namespace, spark: SparkSession) -> Store:
    output = None if options.output is None else _absolute(options.output)
    return Store(spark, output, options.schema)


def _absolute(output: str) -> str:
    return output if "://" in output else str(Path(output.removeprefix("file:")).absolute())


def _cluster(options: Namespace, given: SettingsFile, capture: Capture) -> str:
    return str(options.cluster or given.cluster.name or capture.notes.cluster or Path(capture.inputs[0]).name)


def _decide(options: Namespace, given: SettingsFile, capture: Capture, spark: SparkSession, earlier: RunStore | None) -> Settings:
    """Options over settings file over capture.json over defaults."""
    notes, limits, cluster = capture.notes, given.thresholds, given.cluster
    minutes = _first(options.max_transaction_timeout, limits.max_transaction_timeout_minutes, 15)
    stuck_minutes = _first(options.stuck_after, limits.stuck_after_minutes, 5)
    for name, value in (("--max-transaction-timeout", minutes), ("--stuck-after", stuck_minutes)):
        if value < 0:
            raise UsageError(f"{name} {value}: expected a number of minutes, 0 or more")
    noted = _first(options.coordinator_partitions, cluster.coordinator_partitions, notes.coordinator_partitions, 0)
    if noted < 0 or options.coordinator_partitions == 0:
        raise UsageError(f"--coordinator-partitions {noted}: expected 1 or more")
    as_of_ms, basis = _as_of(options, capture, spark, earlier)
    return Settings(
        cluster=_cluster(options, given, capture),
        as_of_ms=as_of_ms,
        as_of_basis=basis,
        max_transaction_timeout_ms=minutes * 60_000,
        transaction_max_timeout_ms=_first(
            options.transaction_max_timeout_ms,
            limits.transaction_max_timeout_ms,
            notes.transaction_max_timeout_ms,
            900_000,
        ),
        stuck_after_ms=stuck_minutes * 60_000,
        timeout_scan_interval_ms=_first(limits.timeout_scan_interval_ms, notes.timeout_scan_interval_ms, 10_000),
        clock_tolerance_ms=_first(limits.clock_tolerance_ms, 300_000),
        producer_id_expiration_ms=_first(cluster.producer_id_expiration_ms, notes.producer_id_expiration_ms, 86_400_000),
        coordinator_partitions=noted or 50,
        coordinator_partitions_basis="given" if noted else "unknown",
        kafka_version=notes.kafka_version,
        application_patterns=given.applications.patterns,
        start=options.start,
        continues=None if earlier is None else earlier.run_id,
    )


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _as_of(options: Namespace, capture: Capture, spark: SparkSession, earlier: RunStore | None) -> tuple[int, str]:
    """The instant to judge at and where it comes from; without any capture instant, the newest broker-stamped time."""
    if options.as_of_ms is not None:
        return options.as_of_ms, "given"
    noted = capture.notes.newest_instant_ms
    if noted is not None:
        return noted, "newest capture instant"
    return _newest_stamp(capture, spark, earlier), "newest broker-stamped time in the capture (no capture.json)"


def _newest_stamp(capture: Capture, spark: SparkSession, earlier: RunStore | None) -> int:
    """The newest time in a capture that is a broker's. Raises UnreadableInputError if there is none."""
    newest = read_new(spark, capture, "segments", earlier).agg(F.max("newest_broker_ms").alias("newest")).first()
    if newest is None or newest["newest"] is None:
        raise UnreadableInputError(
            ", ".join(capture.inputs), "nothing in it tells when it was taken", "Give --as-of, or add a capture.json"
        )
    return int(newest["newest"])


def reopen_run(options: Namespace) -> Run:
    """The run that an earlier job began: the newest in `audit_runs`, or the one of --cluster and --as-of."""
    spark = delta_session("txnlib")
    store = _store(options, spark)
    runs = store.read_all("audit_runs")
    if options.cluster is not None:
        runs = runs.where(F.col("cluster") == options.cluster)
    if options.as_of_ms is not None:
        runs = runs.where(F.unix_millis("as_of") == options.as_of_ms)
    found = runs.orderBy(F.desc("as_of"), F.desc("started_at")).first()
    if found is None:
        raise UsageError("no such run in audit_runs: check --cluster and --as-of, or run ingest_dumps first")
    settings = Settings.model_validate_json(found["settings"])
    tables = RunStore(store, settings.cluster, settings.run_id)
    size = tables.read("segments").agg(F.sum("bytes").alias("bytes")).first()
    tune_for(spark, 0 if size is None or size["bytes"] is None else size["bytes"])
    return Run(spark, tables, settings, datetime.now(UTC), (found["input"],))


def plan_text(run_inputs: Sequence[str], capture: Capture, settings: Settings) -> str:
    """What an audit would read, for --dry-run."""
    counts = {kind: len(capture.of_kind(kind)) for kind in FileKind}
    files = ", ".join(f"{count} {kind.value}" for kind, count in counts.items() if count)
    size = sum(file.size for file in capture.files)
    instant = datetime.fromtimestamp(settings.as_of_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return (
        f"cluster {settings.cluster}, as of {instant} ({settings.as_of_basis})\n"
        f"{len(capture.files)} files, {size} bytes: {files}\n"
        f"from {', '.join(run_inputs)}"
    )
