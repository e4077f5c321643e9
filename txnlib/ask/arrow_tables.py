"""The tables and views of a run for programs: as Arrow, without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from txnlib.ask.delta_rows import finished_run, open_tables
from txnlib.core.instants import parse_instant
from txnlib.core.schema import TABLES
from txnlib.core.schema.rows_of_runs import RUN_COLUMNS
from txnlib.core.schema.views import VIEWS
from txnlib.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_Table = TypeVar("_Table")
_NAMES: Final = (*TABLES, *VIEWS)


class RunTables(Generic[_Table]):
    """The tables and views of a run, by their names or as attributes, which notebooks complete.

    Each is read when it is asked for. Iterating gives their names.
    """

    def __init__(self, run_id: str, read: Callable[[str], _Table]) -> None:
        #: The run's id: its cluster and its instant.
        self.run_id = run_id
        self._read = read

    def __getitem__(self, name: str) -> _Table:
        return self._read(known_table(name))

    def __getattr__(self, name: str) -> _Table:
        if name not in _NAMES:
            raise AttributeError(f"there is no table {name}")
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __dir__(self) -> list[str]:
        return sorted(["run_id", *_NAMES])

    def __repr__(self) -> str:
        return f"<tables of run {self.run_id}>"


def known_table(name: str) -> str:
    """The name. Raises UsageError if no table or view has it."""
    if name not in _NAMES:
        raise UsageError(f"there is no table {name}; expected one of {', '.join(TABLES)}")
    return name


def read(
    output: str | Path,
    *,
    cluster: str | None = None,
    as_of: str | int | datetime | None = None,
    run_id: str | None = None,
) -> RunTables[pa.Table]:
    """The tables and views of an audit as Arrow, without PySpark.

    For example: `txnlib.read("out").hanging_transactions.to_pandas()`.

    `output`: the folder or URI that an audit wrote to, on either engine. The rows are those of its newest finished run;
    `cluster`, `as_of` and `run_id` choose another one, as `open_audit` does. Columns: docs/tables.md.

    Raises UsageError if there is no such run or table, UnreadableInputError if no tables can be read there, and
    MissingTableError if a table was never written.
    """
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("txnlib.read", "pyarrow", "local") from error
    tables = open_tables(str(output))
    as_of_ms = None if as_of is None else parse_instant(as_of)
    found = finished_run(tables, cluster=cluster, as_of_ms=as_of_ms, run_id=run_id).run_id
    return RunTables(found, lambda name: _own_columns(name, tables.arrow(name, found)))


def _own_columns(name: str, rows: pa.Table) -> pa.Table:
    """The rows without the columns that name the run."""
    if name in TABLES:
        return rows.select(TABLES[name].names)
    return rows.drop_columns([each.name for each in RUN_COLUMNS])
