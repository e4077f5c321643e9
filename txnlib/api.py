"""The library for notebooks: audit a capture, open an audit, explain a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Unpack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.ask.abort_plan import abort_plan, abort_plan_output
from txnlib.ask.diff import differences_of_runs
from txnlib.ask.episode import Episode
from txnlib.ask.explain import explain as story_of
from txnlib.ask.explain_text import Explained
from txnlib.ask.grid import TABLE
from txnlib.ask.report_text import render
from txnlib.ask.summary import Summary, summarise
from txnlib.ask.timeline import Timeline, timeline_of
from txnlib.ask.transaction import ExplainedTransaction, whole_transaction
from txnlib.core.display import instant
from txnlib.core.instants import parse_instant
from txnlib.core.schema.views import VIEWS
from txnlib.engine.choice import EMBEDDED, choose
from txnlib.engine.engine import open_engine
from txnlib.engine.views import create_temporary_views
from txnlib.errors import UsageError
from txnlib.page.page_rows import page_rows_of
from txnlib.page.report_page import render_page
from txnlib.pipeline.audit import carry_out_steps, close, summary_of
from txnlib.pipeline.audit_request import FULL, AuditRequest
from txnlib.pipeline.query_run import query_run
from txnlib.pipeline.run import Run, open_run, reopen_run, silent
from txnlib.pipeline.tables import AUDIT
from txnlib.settings import GivenNumbers, Settings
from txnlib.spark.schemas import TABLES


class RunTables:
    """The tables and views of a run, as attributes that notebooks complete: `found.tables.hanging_transactions`."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def __getattr__(self, name: str) -> DataFrame:
        if name not in (*TABLES, *VIEWS):
            raise AttributeError(f"there is no table {name}")
        return self._audit.table(name)

    def __dir__(self) -> list[str]:
        return sorted([*TABLES, *VIEWS])


@dataclass(frozen=True, slots=True)
class Audit:
    """One run of an audit: its tables as DataFrames, and its settings.

    `audit` and `open_audit` return one. Tables and columns: docs/tables.md.
    """

    _run: Run = field(repr=False)
    #: Where the tables lie: a folder, a URI, or a catalog schema.
    location: str
    #: What an audit that was just made found.
    _summary: Summary | None = field(default=None, repr=False, compare=False)
    #: Kept as long as the audit is: a temporary folder is removed with it.
    _folder: TemporaryDirectory[str] | None = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """The run's id in every table: its cluster and its instant."""
        return self._run.tables.run_id

    @property
    def cluster(self) -> str:
        """The name of the cluster."""
        return self._run.settings.cluster

    @property
    def as_of(self) -> datetime:
        """The instant of the audit, in UTC."""
        return datetime.fromtimestamp(self._run.settings.as_of_ms / 1000, UTC)

    @property
    def settings(self) -> Settings:
        """The effective settings; thresholds are in milliseconds."""
        return self._run.settings

    def table(self, name: str) -> DataFrame:
        """The rows of this run in one table or view, such as `hanging_transactions`. Columns: docs/tables.md.

        Raises UsageError if there is no table of that name, and MissingTableError if the table was never written.
        """
        return self._run.tables.read(_known(name))

    @property
    def tables(self) -> RunTables:
        """The same tables as attributes, which notebooks complete."""
        return RunTables(self)

    @property
    def hanging(self) -> DataFrame:
        """The open transactions that no coordinator will end. Columns: those of `hanging_transactions`."""
        return self.table("hanging_transactions")

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of open transactions on partitions with each verdict."""
        return dict(self._summarised().counts["verdicts"])

    def all_runs(self, name: str) -> DataFrame:
        """The rows of all runs in one table or view; the columns `cluster` and `run_id` identify the run.

        Raises UsageError if there is no table of that name, and MissingTableError if the table was never written.
        """
        return self._run.tables.store.read_all(_known(name))

    def sql(self, query: str) -> DataFrame:
        """The result of a query over the tables, with the rows of all runs, and the views. Examples: docs/sql.md.

        Each table and view that the query names becomes a temporary view of the session, and hides a table of the same
        name. Raises MissingTableError if a table was never written, and Spark's own errors for an invalid query.
        """
        store = self._run.tables.store
        create_temporary_views(store, query)
        return store.spark.sql(query)

    def report(self) -> str:
        """The report of the run as text, as a job writes it to a file."""
        return f"{render(self._summarised())}\n"

    def plan(self) -> str:
        """What to do about each open transaction, as `txn-audit abort-plan` prints it."""
        run = query_run(self._run)
        return abort_plan_output(abort_plan(run), run.run_id, instant(run.as_of_ms)).text(TABLE)

    def explain(self, topic: str, partition: int, start_offset: int) -> Episode[Explained]:
        """The story of one open transaction: `txnlib.explain`. Raises UsageError if none begins at that offset."""
        return story_of(
            query_run(self._run), topic, _whole("partition", partition), _whole("start_offset", start_offset)
        )

    def timeline(self, *where: object, last: int = 10) -> Episode[Timeline]:
        """The history of a topic and partition, or of a transactional id. `print` prints it as `txn-audit timeline`
        does.

        `last`: the number of ended transactions. Raises UsageError if the run contains nothing of the kind.
        """
        return timeline_of(query_run(self._run), list(map(str, where)), last)

    def transaction(self, name: str | int, number: int | None = None) -> Episode[ExplainedTransaction]:
        """One transaction on all of its partitions: the newest, or the one with a number. `print` prints it as the
        command does.

        `name`: a transactional id or a producer id. Raises UsageError if no captured log has it.
        """
        return whole_transaction(query_run(self._run), str(name), number)

    def html(self) -> str:
        """The report as an HTML page, complete in itself."""
        return render_page(page_rows_of(query_run(self._run), tables=self._run.tables.store.output))

    def _repr_html_(self) -> str:
        """What a notebook shows: the report."""
        return f"<pre>{escape(self.report())}</pre>"

    def _summarised(self) -> Summary:
        return self._summary or summarise(query_run(self._run))


def audit(
    capture: str | Path | Sequence[str | Path],
    *,
    output: str | Path | None = None,
    schema: str | None = None,
    cluster: str | None = None,
    as_of: str | int | datetime | None = None,
    conf: str | Path | None = None,
    mode: Literal["full", "incremental"] = FULL,
    follow_links: bool = False,
    take_over: bool = False,
    progress: Callable[[str], object] | None = None,
    **numbers: Unpack[GivenNumbers],
) -> Audit:
    """Audits copies of Kafka's logs, and returns the run with its tables.

    * `capture`: a folder or file, or several, local or in a store (docs/operations.md).
    * `output`: folder or URI of the Delta tables; `schema`: a catalog schema instead. With neither, the tables are in a
      temporary folder, which is deleted with the Audit.
    * `as_of`: the instant of the audit, as ISO-8601, epoch milliseconds or a datetime. Default: the newest capture
      instant.
    * `cluster`, `conf`, `mode`, `follow_links`, `take_over`, and each of `numbers`: as the options of the job `audit`
      (`./spark-submit.sh audit --help`). `max_transaction_timeout`, `stuck_after` and `in_doubt_after` are in minutes.
    * `progress`: called with a line per table, for instance `print`.

    A setting that is None is decided elsewhere. A second audit of a cluster as of the same instant replaces the rows of
    the first.

    Raises UsageError for invalid arguments, ConfigError for an invalid settings file or capture.json,
    UnreadableInputError if there is no Kafka log, BusyError or OvertakenError if another audit of the cluster is
    running or has just ended, and StepError if a table could not be made.
    Tables: docs/tables.md. Source of the verdicts: docs/rules/reference.md.
    """
    inputs = tuple(map(str, (capture,) if isinstance(capture, str | Path) else capture or ()))
    if not inputs or not all(inputs):
        raise UsageError("--input names nothing: give a folder or file of a capture")
    folder = _temporary_folder() if output is None and schema is None else None
    request = AuditRequest(
        input=inputs,
        output=folder.name if folder is not None else _text(output),
        schema=schema,
        conf=_text(conf),
        cluster=cluster,
        as_of_ms=_instant(as_of),
        settings=_known_numbers(numbers, GivenNumbers.__optional_keys__),
        mode=mode,
        follow_links=follow_links,
    )
    run = open_run(request, silent if progress is None else progress)
    carry_out_steps(run, AUDIT, take_over=take_over)
    summary = summary_of(run)
    close(run, summary)
    run.engine.release()
    return _audit(replace(run, source=None, resumption=None), summary, folder)


def open_audit(
    output: str | Path | None = None,
    *,
    schema: str | None = None,
    cluster: str | None = None,
    as_of: str | int | datetime | None = None,
    run_id: str | None = None,
) -> Audit:
    """Opens an existing audit: the newest finished one in the folder `output` or in the catalog schema `schema`.

    `cluster`, `as_of` (ISO-8601, epoch milliseconds or a datetime) and `run_id` select another audit. With `as_of` or
    `run_id`, it may be one that never finished. Only `audit_runs` is read.

    Raises UsageError if there is no such run, and MissingTableError if no audit was ever written. Tables:
    docs/tables.md.
    """
    request = AuditRequest(output=_text(output), schema=schema, cluster=cluster, as_of_ms=_instant(as_of))
    return _audit(reopen_run(request, run_id=run_id, is_finished=run_id is None and as_of is None))


def explain(audit: Audit, topic: str, partition: int, start_offset: int) -> Episode[Explained]:
    """The story of one open transaction: what producer and coordinator wrote, in order, and the verdict on it.

    `start_offset` is the first offset of the transaction, as in `open_transactions`. `print` prints it as `txn-audit
    explain` (docs/cli.md) does; a notebook shows its picture, too. Its `rows` are the events, for instance for
    `pandas.DataFrame`, and its `outcome.verdict` is the verdict. Times are the brokers', in UTC; instants of rows are
    epoch milliseconds. Tables in a catalog work as well.

    Raises UsageError if no open transaction begins at that offset.
    """
    return audit.explain(topic, partition, start_offset)


def runs(output: str | Path | None = None, *, schema: str | None = None) -> DataFrame:
    """The runs in the tables under a folder or in a catalog schema, newest first. Columns: AUDIT_RUNS, cluster, run_id.

    Raises UsageError unless exactly one of the two is given, and MissingTableError if no audit was ever written.
    """
    store = open_engine(schema=schema).store(_text(output), schema)
    return store.read_all("audit_runs").orderBy(F.desc("as_of"), F.desc("started_at"))


def diff(then: Audit, now: Audit) -> str:
    """What differs between two audits of a cluster: new, ended and re-judged transactions, as `txn-audit diff` prints
    it.

    Raises UsageError for audits of two clusters.
    """
    if then.cluster != now.cluster:
        raise UsageError(f"{then.run_id} and {now.run_id} are runs of different clusters")
    return differences_of_runs(query_run(then._run), query_run(now._run)).text(TABLE)


def _audit(run: Run, summary: Summary | None = None, folder: TemporaryDirectory[str] | None = None) -> Audit:
    store = run.tables.store
    return Audit(run, store.output or str(store.schema), summary, folder)


def _known(name: str) -> str:
    if name not in (*TABLES, *VIEWS):
        raise UsageError(f"there is no table {name}; expected one of {', '.join(TABLES)}")
    return name


def _temporary_folder() -> TemporaryDirectory[str]:
    if choose(None, None) != EMBEDDED and not str(open_engine().spark.conf.get("spark.master", "")).startswith("local"):
        raise UsageError(
            "this session's tasks may run on other machines, which share no temporary folder: give output= or schema="
        )
    return TemporaryDirectory(prefix="txnlib-", ignore_cleanup_errors=True)


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def _instant(given: str | int | datetime | None) -> int | None:
    """Epoch milliseconds; a datetime without a zone is UTC, as the same in ISO-8601 is."""
    if isinstance(given, datetime):
        return parse_instant(given.isoformat())
    return None if given is None else parse_instant(str(given))


def _whole(name: str, given: object) -> int:
    """A number, or the digits of one."""
    if not str(given).isdecimal():
        raise UsageError(f"{name}={given}: expected a whole number")
    return int(str(given))


def _known_numbers(given: Mapping[str, Any], known: frozenset[str]) -> Mapping[str, int | None]:
    """Keyword arguments, as Python checks those that a signature names."""
    for name in given.keys() - known:
        raise TypeError(f"unexpected keyword argument '{name}'")
    return given
