"""The library for notebooks: audit a capture, and list runs, on an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Unpack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.api import Audit, place, reopened
from txnlib.core.instants import parse_instant
from txnlib.engine.choice import EMBEDDED, choose
from txnlib.engine.engine import open_engine
from txnlib.engine.spark_session import active_session_kept
from txnlib.engine.store import opened
from txnlib.errors import UsageError
from txnlib.pipeline.audit import carry_out_steps, close, query_run, report_made
from txnlib.pipeline.audit_request import INCREMENTAL, AuditRequest
from txnlib.pipeline.run import open_run, silent
from txnlib.pipeline.tables import AUDIT
from txnlib.settings import GivenNumbers


def audit(
    capture: str | Path | Sequence[str | Path],
    *,
    output: str | Path | None = None,
    schema: str | None = None,
    cluster: str | None = None,
    as_of: str | int | datetime | None = None,
    captured_at: str | int | datetime | None = None,
    conf: str | Path | None = None,
    mode: Literal["full", "incremental"] = INCREMENTAL,
    follow_links: bool = False,
    progress: Callable[[str], object] | None = None,
    **numbers: Unpack[GivenNumbers],
) -> Audit:
    """Audits copies of Kafka's logs, and returns the run with its tables.

    * `capture`: a folder or file, or several, local or in a store (docs/operations.md).
    * `output`: folder or URI of the Delta tables; `schema`: a catalog schema instead. With neither, the tables are in a
      temporary folder, which is deleted with the Audit.
    * `as_of`: the instant of the audit, as ISO-8601, epoch milliseconds or a datetime. Default: the newest capture
      instant.
    * `captured_at`: when copying began, of copies whose instant no capture.json notes.
    * `cluster`, `conf`, `mode`, `follow_links`, and each of `numbers`: as the options of the job `audit`
      (`./spark-submit.sh audit --help`). `max_transaction_timeout`, `stuck_after` and `in_doubt_after` are in minutes.
    * `progress`: called with a line per table, for instance `print`.

    A setting that is None is decided elsewhere. A second audit of a cluster as of the same instant replaces the rows of
    the first.

    Raises UsageError for invalid arguments, ConfigError for an invalid settings file or capture.json,
    UnreadableInputError if there is no Kafka log, and StepError if a table could not be made.
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
        as_of_ms=None if as_of is None else parse_instant(as_of),
        captured_at_ms=None if captured_at is None else parse_instant(captured_at, "--captured-at"),
        settings=_known_numbers(numbers, GivenNumbers.__optional_keys__),
        mode=mode,
        follow_links=follow_links,
    )
    say = silent if progress is None else progress
    with active_session_kept():
        run = open_run(request, say)
        run.ended = lambda name, written: say(f"{name}: {written}")
        carry_out_steps(run, AUDIT)
        report = report_made(run)
        close(run, report)
        rows = query_run(run)
    return Audit(rows, rows.tables.root, lru_cache(lambda: reopened(request, rows.run_id)), report, folder)


def runs(output: str | Path | None = None, *, schema: str | None = None) -> DataFrame:
    """The runs in the tables under a folder or in a catalog schema, newest first. Columns: AUDIT_RUNS, cluster, run_id.

    Raises UsageError unless exactly one of the two is given, and MissingTableError if no audit was ever written.
    """
    store = opened(open_engine(schema=schema, is_shared=True).store(place(output, schema), schema))
    return store.read_all("audit_runs").orderBy(F.desc("as_of"), F.desc("started_at"))


def _temporary_folder() -> TemporaryDirectory[str]:
    if choose(None, None) != EMBEDDED:
        master = open_engine(is_shared=True).spark.conf.get("spark.master", None)
        if not str(master).startswith("local"):
            raise UsageError(
                "this session's tasks may run on other machines, which share no temporary folder: give output= or"
                " schema="
            )
    return TemporaryDirectory(prefix="txnlib-", ignore_cleanup_errors=True)


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def _known_numbers(given: Mapping[str, Any], known: frozenset[str]) -> Mapping[str, int | None]:
    """Keyword arguments, as Python checks those that a signature names."""
    for name in given.keys() - known:
        raise TypeError(f"unexpected keyword argument '{name}'")
    return given
