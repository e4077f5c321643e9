"""A run of the pipeline as a run of `txnlib.ask`.

Tables in a local folder are read without a JVM.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.ask import delta_rows, rows
from txnlib.ask.rows import Filter, Row
from txnlib.delta.store import RunStore
from txnlib.pipeline.run import Run

_COMPARISONS: Final[Mapping[str, Callable[[Column, Any], Column]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "IN": lambda column, values: column.isin(*values),
    "IS": lambda column, _: column.isNull(),
    "IS NOT": lambda column, _: column.isNotNull(),
}


@dataclass(frozen=True, slots=True)
class SparkRows:
    """Tables, by what opens one, as `rows.Rows`: only what is limited, filtered to few, or counted is collected."""

    root: str
    read: Callable[[str], DataFrame]
    _opened: dict[str, DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def rows(
        self, name: str, columns: Sequence[str], where: Sequence[Filter] = (), *, order: str = "", limit: int | None = None
    ) -> list[Row]:
        frame = self._where(name, where)
        if order:
            frame = frame.sparkSession.sql(f"SELECT * FROM {{frame}} ORDER BY {_quoted(order)}", frame=frame)
        if limit is not None:
            frame = frame.limit(limit)
        return _collected(frame.select(*columns))

    def one(self, name: str, expressions: Mapping[str, str], where: Sequence[Filter] = ()) -> Row:
        aggregates = [F.expr(_quoted(expression)).alias(alias) for alias, expression in expressions.items()]
        (row,) = _collected(self._where(name, where).agg(*aggregates))
        return row

    def number(self, name: str, expression: str, where: Sequence[Filter] = ()) -> int | None:
        number = self.one(name, {"number": expression}, where)["number"]
        return None if number is None else int(number)

    def grouped(
        self, name: str, keys: Sequence[str], expression: str, where: Sequence[Filter] = (), *, most: int | None = None
    ) -> dict[tuple[Any, ...], int]:
        counted = self._where(name, where).groupBy(*keys).agg(F.expr(_quoted(expression)).alias("number"))
        if most is not None:
            counted = counted.orderBy(F.desc("number"), *keys).limit(most)
        return {tuple(row[key] for key in keys): row["number"] for row in _collected(counted)}

    def _where(self, name: str, where: Sequence[Filter]) -> DataFrame:
        if name not in self._opened:
            self._opened[name] = self.read(name)
        frame = self._opened[name]
        for column, comparison, value in where:
            frame = frame.where(_COMPARISONS[comparison](F.col(column), value))
        return frame


def _quoted(text: str) -> str:
    """Names as Spark quotes them: in double quotes they would be literals."""
    return text.replace('"', "`")


def _collected(frame: DataFrame) -> list[Row]:
    """The rows; through Arrow, which keeps the zone of instants."""
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


# ---- A run, as questions read it


def query_run(run: Run) -> rows.StoredRun:
    """A complete run, as `txnlib.ask` reads it."""
    settings = run.settings
    return rows.StoredRun(_rows(run), settings.run_id, settings.cluster, settings.as_of_ms, settings.model_dump(mode="json"))


def is_read_by_spark(asked: rows.StoredRun) -> bool:
    """Whether each query takes jobs of Spark, not milliseconds."""
    return isinstance(asked.tables, SparkRows)


def _rows(run: Run) -> rows.Rows:
    store = run.tables.store
    # A path may exist only on the cluster's machines or in its default file system, and not on this machine.
    if isinstance(run.tables, RunStore) and store.folder is not None and Path(store.folder, rows.RUNS, "_delta_log").is_dir():
        return delta_rows.open_tables(store.folder)
    return SparkRows(store.output or str(store.schema), run.tables.read_stamped)
