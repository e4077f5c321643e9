"""The library for notebooks: open an audit, and ask it. Only DataFrames need an engine, which starts for the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import txnlib.ask.story_text
import txnlib.ask.transaction_text  # noqa: F401  these two write the stories that an audit returns
from txnlib.ask import delta_rows
from txnlib.ask.abort_plan_text import abort_plan, abort_plan_output
from txnlib.ask.arrow_tables import RunTables, known_table
from txnlib.ask.diff import differences_of_runs
from txnlib.ask.explain import Explained
from txnlib.ask.explain import explain as story_of
from txnlib.ask.grid import TABLE
from txnlib.ask.nights import Nights, nights
from txnlib.ask.page_rows import page_rows_of
from txnlib.ask.queries import AUDIT_RUNS, StoredRun
from txnlib.ask.report import Report
from txnlib.ask.report_rows import report_of
from txnlib.ask.story import SHOWN_WIDTH, Timeline, timeline_of
from txnlib.ask.terminal_report import render
from txnlib.ask.transaction import TransactionStory, whole_transaction
from txnlib.core.display import instant
from txnlib.core.instants import parse_instant
from txnlib.core.schema import shown
from txnlib.engine.choice import EMBEDDED, choose, missing_extra
from txnlib.errors import UsageError
from txnlib.page.report_page import render_page
from txnlib.pipeline.audit_request import AuditRequest
from txnlib.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from txnlib.pipeline.run import Run


@dataclass(frozen=True, slots=True)
class Audit:
    """One run of an audit: its answers, its tables as DataFrames, and its settings.

    `audit` and `open_audit` return one. Tables and columns: docs/tables.md. Of an audit that was opened, only
    DataFrames need PySpark.
    """

    _rows: StoredRun = field(repr=False)
    #: Where the tables lie: a folder, a URI, or a catalog schema.
    location: str
    #: The run on an engine, opened when it is first asked for.
    _run: Callable[[], Run] = field(repr=False, compare=False)
    #: The report of an audit that was just made.
    _report: Report | None = field(default=None, repr=False, compare=False)
    #: Kept as long as the audit is: a temporary folder is removed with it.
    _folder: TemporaryDirectory[str] | None = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """The run's id in every table: its cluster and its instant."""
        return self._rows.run_id

    @property
    def cluster(self) -> str:
        """The name of the cluster."""
        return self._rows.cluster

    @property
    def as_of(self) -> datetime:
        """The instant of the audit, in UTC."""
        return datetime.fromtimestamp(self._rows.as_of_ms / 1000, UTC)

    @property
    def settings(self) -> Settings:
        """The effective settings; thresholds are in milliseconds."""
        return Settings.model_validate(self._rows.settings)

    def table(self, name: str) -> DataFrame:
        """The rows of this run in one table or view, such as `hanging_transactions`. Columns: docs/tables.md.

        Raises UsageError if there is no table of that name, and MissingTableError if the table was never written.
        """
        return self._run().tables.read(known_table(name))

    @property
    def tables(self) -> RunTables[DataFrame]:
        """The tables and views of this run as attributes, as `table` returns them. Notebooks complete their names."""
        return RunTables(self.run_id, self.table)

    @property
    def hanging(self) -> DataFrame:
        """The open transactions that no coordinator will end, with the columns by which people decide.

        `table("hanging_transactions")` has all columns.
        """
        return self.table("hanging_transactions").select(*shown("hanging"))

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of open transactions on partitions with each verdict, or only looking late (LOOKS_LATE)."""
        return dict(self._reported().counts["verdicts"])

    def all_runs(self, name: str) -> DataFrame:
        """The rows of all runs in one table or view; the columns `cluster` and `run_id` identify the run.

        Raises UsageError if there is no table of that name, and MissingTableError if the table was never written.
        """
        return self._run().tables.store.read_all(known_table(name))

    def sql(self, query: str) -> DataFrame:
        """The result of a query over the tables, with the rows of all runs, and the views. Examples: docs/sql.md.

        Each table and view that the query names becomes a temporary view of the session, and hides a table of the same
        name. Raises MissingTableError if a table was never written, and Spark's own errors for an invalid query.
        """
        store = self._run().tables.store
        from txnlib.engine.store import create_temporary_views  # needs PySpark

        create_temporary_views(store, query)
        return store.spark.sql(query)

    def report(self) -> str:
        """The report of the run as text, as a job writes it to a file."""
        return f"{render(self._reported())}\n"

    def plan(self) -> str:
        """What to do about each open transaction, as `txn-audit abort-plan` prints it."""
        return abort_plan_output(abort_plan(self._rows), self.run_id, instant(self._rows.as_of_ms)).text(TABLE)

    def explain(self, topic: str, partition: int, start_offset: int) -> Explained:
        """The story of one open transaction: `txnlib.explain`. Raises UsageError if none begins at that offset."""
        return story_of(self._rows, topic, _whole("partition", partition), _whole("start_offset", start_offset))

    def timeline(self, *where: object, last: int = 10) -> Timeline:
        """The history of a topic and partition, or of a transactional id. `print` prints it as `txn-audit timeline`
        does.

        `last`: the number of ended transactions to show. Raises UsageError if the run has no such partition or id.
        """
        return timeline_of(self._rows, list(map(str, where)), last)

    def history(self) -> Nights:
        """The audits of the cluster up to this one, the oldest first. Each says how many partitions were held by
        something that needs somebody, how many offsets waited there, and for how long. A notebook shows a chart;
        iterating gives one row for each."""
        return nights(self._rows)

    def transaction(self, name: str | int, number: int | None = None) -> TransactionStory:
        """One transaction on all of its partitions: the newest, or the one with a number. `print` prints it as the
        command does.

        `name`: a transactional id or a producer id. Raises UsageError if no captured log has it.
        """
        return whole_transaction(self._rows, str(name), number)

    def html(self) -> str:
        """The report as an HTML page, complete in itself."""
        is_folder = isinstance(self._rows.tables, delta_rows.Tables)
        tables = self.location if is_folder else self._run().tables.store.output
        return render_page(page_rows_of(self._rows, tables=tables))

    def _repr_html_(self) -> str:
        """What a notebook shows: the report, as wide as JupyterLab shows text without breaking its lines."""
        return f"<pre>{escape(render(self._reported(), SHOWN_WIDTH))}\n</pre>"

    def _reported(self) -> Report:
        return self._report or report_of(self._rows)


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
    `run_id`, it may be one that never finished. A folder is read without PySpark, whichever engine wrote it.

    Raises UsageError if there is no such run, and UnreadableInputError or MissingTableError if no audit was ever
    written. Tables: docs/tables.md.
    """
    as_of_ms = None if as_of is None else parse_instant(as_of)
    request = AuditRequest(output=place(output, schema), schema=schema, cluster=cluster, as_of_ms=as_of_ms)
    if request.output is None or not _is_read_here(request.output):
        return _on_engine(request, run_id)
    rows = delta_rows.finished_run(
        delta_rows.open_tables(request.output), cluster=cluster, as_of_ms=as_of_ms, run_id=run_id
    )
    return Audit(rows, rows.tables.root, lru_cache(lambda: reopened(request, rows.run_id)))


def _is_read_here(output: str) -> bool:
    """Whether no engine is needed to read tables. A path may exist only on the machines of Spark's cluster, and only
    its settings may open a store."""
    return choose(None, None) == EMBEDDED or Path(output.removeprefix("file:"), AUDIT_RUNS, "_delta_log").is_dir()


def _on_engine(request: AuditRequest, run_id: str | None) -> Audit:
    try:
        from txnlib.engine.spark_session import active_session_kept
        from txnlib.pipeline.audit import query_run
        from txnlib.pipeline.run import reopen_run
    except ModuleNotFoundError as error:
        raise missing_extra("a DataFrame", error, request.schema) from error
    with active_session_kept():
        rows = query_run(reopen_run(request, run_id=run_id, is_finished=run_id is None and request.as_of_ms is None))
    return Audit(rows, rows.tables.root, lru_cache(lambda: reopened(request, rows.run_id)))


def reopened(request: AuditRequest, run_id: str) -> Run:
    """The run on an engine, for DataFrames that users get. Raises MissingExtraError."""
    try:
        from txnlib.pipeline.run import reopen_run
    except ModuleNotFoundError as error:
        raise missing_extra("a DataFrame", error, request.schema) from error
    return reopen_run(request, run_id=run_id, is_shared=True)


def explain(audit: Audit, topic: str, partition: int, start_offset: int) -> Explained:
    """The story of one open transaction: what producer and coordinator wrote, in order, and the verdict on it.

    `start_offset` is the first offset of the transaction, as in `open_transactions`. `print` prints it as `txn-audit
    explain` (docs/cli.md) does; a notebook shows its picture, too. Its `rows` are the events, for instance for
    `pandas.DataFrame`, and its `outcome.verdict` is the verdict. Times are the brokers', in UTC; instants of rows are
    epoch milliseconds. Tables in a catalog work as well.

    Raises UsageError if no open transaction begins at that offset.
    """
    return audit.explain(topic, partition, start_offset)


def diff(then: Audit, now: Audit) -> str:
    """What differs between two audits of a cluster: new, ended and re-judged transactions, as `txn-audit diff` prints
    it.

    Raises UsageError for audits of two clusters.
    """
    if then.cluster != now.cluster:
        raise UsageError(f"{then.run_id} and {now.run_id} are runs of different clusters")
    return differences_of_runs(then._rows, now._rows).text(TABLE)


def place(output: str | Path | None, schema: str | None) -> str | None:
    """The output as text; None if only a schema is given. Raises UsageError if neither is given."""
    if output is None and schema is None:
        raise UsageError("give either --output or --schema")
    return None if output is None else str(output)


def _whole(name: str, given: object) -> int:
    """A number, or the digits of one."""
    if not str(given).isdecimal():
        raise UsageError(f"{name}={given}: expected a whole number")
    return int(str(given))
