"""The tables of an audit without Spark, and the runs in them. Filters are pushed down to the files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from txnlib.ask.own_command import own_command
from txnlib.ask.queries import AUDIT_RUNS, Filter, Row, Rows, StoredRun, column_names, ms, select
from txnlib.core.instants import parse_instant
from txnlib.errors import (
    HAS_NOT_ENDED,
    UNFINISHED,
    DamagedTableError,
    MissingTableError,
    TxnlibError,
    UnfinishedError,
    UnreadableInputError,
    UsageError,
    meant,
)
from txnlib.store_options import store_options
from txnlib.version import SCHEMA_NUMBER, SCHEMA_PROPERTY

DONE: Final = "DONE"
_RUN_COLUMNS: Final = column_names("run_id cluster as_of status started_at finished_at input settings version counts")


#: Most characters of an engine's own words in a message.
_SHOWN: Final = 200
#: The name, in a query, of the rows that are asked for.
_ROWS: Final = "rows"


@dataclass(frozen=True, slots=True)
class Tables(Rows):
    """The Delta tables under a folder, or under the URI of one in an object store."""

    root: str
    #: Number of the schema that they have.
    schema_number: int = SCHEMA_NUMBER
    _opened: dict[str, DeltaTable] = field(default_factory=dict, repr=False, compare=False)

    @property
    def opened(self) -> Sequence[str]:
        """The tables that were read."""
        return tuple(self._opened)

    def dataset(self, name: str) -> Any:
        """A table as a dataset of pyarrow, for other engines, or without rows if it is not there. Raises
        MissingTableError."""
        table = self._found(name)
        if table is not None and self.schema_number == SCHEMA_NUMBER:
            return table.to_pyarrow_dataset()
        import pyarrow as pa

        if table is not None:
            return _common(pa.table(self._answer_of(self._completed(name, _ROWS, table), "*", (), "")))
        return _common(pa.table(QueryBuilder().execute(_no_rows(name)).read_all()))

    def arrow(self, name: str, run_id: str) -> Any:
        """The rows of a run in a table, as a table of pyarrow. Raises MissingTableError."""
        import pyarrow as pa

        return _common(pa.table(self._answer(name, "*", [("run_id", "=", run_id)], "")))

    def ask(self, name: str, chosen: str, where: Sequence[Filter], after: str = "") -> list[Row]:
        answer = self._answer(name, chosen, where, after)
        # Not through pyarrow: it loads numpy, and pandas for the first timestamp, which takes longer than most answers.
        columns = [column.to_pylist() for column in answer.columns]
        return [dict(zip(answer.column_names, values, strict=True)) for values in zip(*columns, strict=True)]

    def _answer(self, name: str, chosen: str, where: Sequence[Filter], after: str) -> Any:
        try:
            return self._answer_of(self._parts(name), chosen, where, after)
        except Exception as error:  # the engine has no class of its own for what it cannot read
            if type(error) is not Exception or "://" in self.root:
                raise
            raise self._damaged(name, error) from error

    def _answer_of(
        self, parts: Mapping[str, DeltaTable | str], chosen: str, where: Sequence[Filter], after: str
    ) -> Any:
        builder, queries = QueryBuilder(), []
        for part, rows in parts.items():
            if isinstance(rows, str):
                queries.append(f"{part} AS ({rows})")
            else:
                builder = builder.register(part, rows)
        # The engine pushes filters on the run into these queries.
        query = f"{'WITH ' if queries else ''}{', '.join(queries)} {select(_ROWS, chosen, where, after)}"
        return builder.execute(query).read_all()

    def _parts(self, name: str, part: str = _ROWS) -> dict[str, DeltaTable | str]:
        """What a query needs to read a table or view as `part`: name -> a Delta table, or a query over names before it.

        If `part` is `_ROWS`, a table has only the rows that each run has; under another name, it has all that are
        stored.
        """
        if name == AUDIT_RUNS:
            return self._completed(name, part, self._open(name))
        # `txn-audit runs` has no use for the catalogue of columns, which takes as long to load as all else.
        from txnlib.core.schema.rows_of_runs import OF_PARTS
        from txnlib.core.schema.views import VIEWS

        if name in OF_PARTS and part == _ROWS:
            name = f"{name}_of_runs"
        if name in VIEWS:
            view = VIEWS[name]
            read = {key: rows for each in view.reads for key, rows in self._parts(each, each).items()}
            return read | {part: view.named(str)}
        found = self._found(name)
        return {part: _no_rows(name)} if found is None else self._completed(name, part, found)

    def _completed(self, name: str, part: str, table: DeltaTable) -> dict[str, DeltaTable | str]:
        """A table under the name `part`, with all columns of today."""
        if self.schema_number == SCHEMA_NUMBER:
            return {part: table}
        from txnlib.core.schema.schema_number import completed  # as above

        stored = f"stored_{part}"
        return {stored: table, part: completed(name, _shape(table), stored)}

    def _found(self, name: str) -> DeltaTable | None:
        """A table; None if there is none, because it has had no rows.

        Raises MissingTableError if it is always there.
        """
        try:
            return self._open(name)
        except MissingTableError:
            from txnlib.core.schema.schema_number import is_there  # as above

            if is_there(name, self.schema_number):
                raise
            return None

    def _open(self, name: str) -> DeltaTable:
        if name not in self._opened:
            _check_regular(f"{self.root}/{name}")
            try:
                self._opened[name] = DeltaTable(f"{self.root}/{name}", storage_options=store_options(self.root))
            except TableNotFoundError as error:
                raise self._not_there(name) from error
            except DeltaError as error:
                if "://" in self.root or name == AUDIT_RUNS:
                    raise
                raise self._damaged(name, error) from error
        return self._opened[name]

    def _damaged(self, name: str, error: Exception) -> DamagedTableError:
        return DamagedTableError(f"{self.root}/{name}", str(error).partition("\n")[0][:_SHOWN])

    def _not_there(self, name: str) -> MissingTableError | DamagedTableError:
        """The error for a table without a log. An audit makes its tables one by one, so a killed audit leaves folders
        without a log."""
        noted = [] if name == AUDIT_RUNS else runs(self)
        # No audit can write the rows of an earlier run again.
        newest_done = next((row for row in noted if row["status"] == DONE), {"counts": None})
        if name in json.loads(newest_done["counts"] or "{}").get("tables", ()):
            return DamagedTableError(f"{self.root}/{name}", "a run wrote rows, and the table's log is lost")
        if not noted or any(row["status"] == DONE for row in noted):
            return MissingTableError(name, "audit")
        newest = max(noted, key=lambda row: row["started_at"])
        began_ms = ms(newest["started_at"])
        assert began_ms is not None
        return UnfinishedError(name, newest["cluster"], began_ms, newest["status"])


def _shape(table: DeltaTable) -> Any:
    """The columns of a table as it is stored."""
    from txnlib.core.schema.schema_number import stored_shape  # as above

    return stored_shape(json.loads(table.schema().to_json()))


def _number_of(tables: Tables) -> int:
    """The number of the schema of tables. Raises OtherSchemaError."""
    noted = tables._open(AUDIT_RUNS).metadata().configuration.get(SCHEMA_PROPERTY)
    if noted == str(SCHEMA_NUMBER):
        return SCHEMA_NUMBER
    from txnlib.core.schema import TABLES  # as above
    from txnlib.core.schema.schema_number import number_of

    def stored() -> dict[str, Any]:
        shapes = {}
        for name in TABLES:
            with suppress(TxnlibError):  # what is not there, or damaged, says nothing
                shapes[name] = _shape(tables._open(name))
        return shapes

    return number_of(tables.root, noted, stored)


def _common(table: Any) -> Any:
    """The table with types that every library knows: DataFusion has its own texts, and instants without a zone."""
    import pyarrow as pa

    def common(kind: Any) -> Any:
        if pa.types.is_string_view(kind):
            return pa.string()
        if pa.types.is_binary_view(kind):
            return pa.binary()
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us", "UTC")
        if pa.types.is_list(kind):
            return pa.list_(common(kind.value_type))
        return pa.struct([(each.name, common(each.type)) for each in kind]) if pa.types.is_struct(kind) else kind

    return table.cast(pa.schema([(each.name, common(each.type)) for each in table.schema]))


def _no_rows(name: str) -> str:
    from txnlib.core.schema.views import without_rows  # as above

    return without_rows(name)


def _check_regular(folder: str) -> None:
    """Raises UnreadableInputError for a named pipe, a device or a socket in the folder of a table: reading it would
    never end."""
    waiting = [folder] if os.path.isdir(folder) else []
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.is_dir():
                waiting.append(entry.path)
            elif not entry.is_file():
                raise UnreadableInputError(
                    entry.path, "it is no regular file", "Remove it, and audit the same capture again"
                )


#: The environment variable that names the tables.
TABLES_VARIABLE: Final = "TXN_AUDIT_TABLES"
#: Where audits of this project write unless they are told otherwise.
DEFAULT_ROOT: Final = "out"


def default_root() -> str:
    """The tables if none are named: those of TXN_AUDIT_TABLES, else in `out`, or in the only folder in it that has
    tables.

    Raises UsageError if several have.
    """
    if named := os.environ.get(TABLES_VARIABLE):
        return named
    root = Path(DEFAULT_ROOT)
    if (root / AUDIT_RUNS).is_dir() or not root.is_dir():
        return DEFAULT_ROOT
    below = sorted(str(each.parent) for each in root.glob(f"*/{AUDIT_RUNS}"))
    if len(below) > 1:
        raise UsageError(f"tables are in {', '.join(below)}: name one with --tables")
    return below[0] if below else DEFAULT_ROOT


def open_tables(root: str) -> Tables:
    """The tables an audit wrote with `--output ROOT`. Raises UnreadableInputError where there are none."""
    tables = Tables(root if "://" in root else str(Path(root.removeprefix("file:")).absolute()))
    try:
        tables._open(AUDIT_RUNS)
    except (MissingTableError, DeltaError, OSError) as error:
        folder = Path(tables.root)
        is_missing = isinstance(error, MissingTableError) and "://" not in tables.root
        if is_missing and ((folder / AUDIT_RUNS).is_dir() or any(folder.glob("*/_delta_log"))):
            problem = (
                "no audit has ended there: the first one is at work, or was killed before it could note that it began"
            )
            raise UnreadableInputError(root, problem, "Wait for it; if it was killed, run it again") from error
        said = (error.says() if isinstance(error, TxnlibError) else str(error)).strip()
        first_line = said.splitlines()[0][:200] if said else type(error).__name__
        problem = f"no tables of an audit can be read there ({first_line})"
        raise UnreadableInputError(root, problem, "Give --tables the --output of an audit") from error
    return replace(tables, schema_number=_number_of(tables))


def runs(tables: Tables) -> list[Row]:
    """All runs, newest first."""
    return tables.rows(AUDIT_RUNS, _RUN_COLUMNS, order="as_of DESC, started_at DESC")


def chosen_runs(tables: Tables, *, run_id: str | None = None, as_of: str | None = None) -> list[Row]:
    """The runs with that id or instant, newest first. Raises UsageError if there is none."""
    chosen = runs(tables)
    if run_id is not None:
        chosen = [row for row in chosen if row["run_id"] == run_id]
    if as_of is not None:
        chosen = _at(chosen, parse_instant(as_of))
    if not chosen:
        raise _no_run(tables, str(run_id or as_of))
    return chosen


def _no_run(tables: Tables, named: str) -> UsageError:
    return UsageError(
        f"no such run: {named}{meant(named, (row['run_id'] for row in runs(tables)))}", hint=_lists_runs(tables)
    )


def _lists_runs(tables: Tables) -> str:
    return f"{own_command(tables.root, 'runs')} lists all runs"


def _at(rows: Sequence[Row], as_of_ms: int) -> list[Row]:
    """The runs of an instant, which may be given as it is displayed: in whole seconds."""
    exact = [row for row in rows if ms(row["as_of"]) == as_of_ms]
    return exact or [row for row in rows if (ms(row["as_of"]) or 0) // 1000 * 1000 == as_of_ms]


def open_run(tables: Tables, *, run_id: str | None = None, as_of: str | None = None) -> StoredRun:
    """The run with that id or instant; else the newest that was finished. Raises UsageError if there is none."""
    chosen = chosen_runs(tables, run_id=run_id, as_of=as_of)
    if as_of is not None and len(chosen) > 1:
        raise UsageError(
            f"--as-of {as_of} names several runs, give --run: {', '.join(row['run_id'] for row in chosen)}"
        )
    shown = next((row for row in chosen if row["status"] == DONE), chosen[0])
    return replace(run_of(tables, shown), note=_note(shown, () if run_id or as_of else chosen))


def finished_run(
    tables: Tables, *, cluster: str | None = None, as_of_ms: int | None = None, run_id: str | None = None
) -> StoredRun:
    """The newest finished run; with an instant or an id, that one, which may never have finished.

    Raises UsageError if there is none.
    """
    is_named = as_of_ms is not None or run_id is not None
    for row in chosen_runs(tables, run_id=run_id):
        is_wanted = cluster in (None, row["cluster"]) and as_of_ms in (None, ms(row["as_of"]))
        if is_wanted and (is_named or row["status"] == DONE):
            return run_of(tables, row)
    raise UsageError("no such run in audit_runs: check --cluster and --as-of")


def _note(shown: Row, rows: Sequence[Row]) -> str:
    """What has not ended: the run that is shown, or a newer one of its cluster among these rows."""
    newer = [row for row in rows if row["cluster"] == shown["cluster"] and row["as_of"] > shown["as_of"]]
    unfinished = shown if shown["status"] != DONE else next(iter(newer), None)
    if unfinished is None:
        return ""
    says = f"run {unfinished['run_id']} {UNFINISHED.get(unfinished['status'], HAS_NOT_ENDED)}"
    if unfinished is shown:
        return f"{says}. Its tables may lack rows, or have those of an earlier attempt"
    return f"this is run {shown['run_id']}, the newest that has ended: {says}"


def two_runs(
    tables: Tables, names: Sequence[str], *, run_id: str | None = None, as_of: str | None = None
) -> tuple[StoredRun, StoredRun]:
    """The two named runs; one named run and the newest; or the newest finished run and the one before it.

    `names`: at most two ids or instants. `run_id`, `as_of`: the run that counts as the newest.
    Raises UsageError unless there are two runs of one cluster.
    """
    if len(names) > 2:
        raise UsageError("diff takes at most two runs")
    done = [row for row in runs(tables) if row["status"] == DONE]
    chosen = [_named_run(tables, name) for name in names]
    if len(chosen) < 2:
        last = chosen_runs(tables, run_id=run_id, as_of=as_of) if run_id or as_of else done
        if not last:
            raise UsageError("no run has finished", hint=_lists_runs(tables))
        chosen.append(last[0])
    if len(chosen) < 2:
        (now,) = chosen
        earlier = [row for row in done if row["cluster"] == now["cluster"] and row["as_of"] < now["as_of"]]
        if not earlier:
            raise UsageError(f"there is no run of {now['cluster']} before {now['run_id']}", hint=_lists_runs(tables))
        chosen.insert(0, earlier[0])
    then, now = chosen
    if then["cluster"] != now["cluster"]:
        raise UsageError(f"{then['run_id']} and {now['run_id']} are runs of different clusters")
    return run_of(tables, then), run_of(tables, now)


def _named_run(tables: Tables, name: str) -> Row:
    """The run with this id, else the run as of this instant."""
    rows = runs(tables)
    found = [row for row in rows if row["run_id"] == name]
    if not found:
        try:
            found = _at(rows, parse_instant(name))
        except UsageError as error:
            raise _no_run(tables, name) from error
    if len(found) != 1:
        raise UsageError(f"{len(found)} runs are as of {name}", hint=_lists_runs(tables))
    return found[0]


def run_of(tables: Tables, row: Row) -> StoredRun:
    """The run of a row of audit_runs."""
    as_of_ms = ms(row["as_of"])
    assert as_of_ms is not None
    return StoredRun(tables, row["run_id"], row["cluster"], as_of_ms, json.loads(row["settings"]))
