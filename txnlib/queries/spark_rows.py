"""Queries by Spark: for tables that only Spark can open, or that are not written."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.queries.rows import Filter, Row

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
