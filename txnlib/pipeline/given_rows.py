"""The rows of tables that functions of the core get.

These are all rows that can matter, or answers to questions about few places in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial, reduce
from inspect import signature
from operator import and_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.sql_text import tables_of
from txnlib.pipeline.run import Run
from txnlib.readers.typed_rows import Typed, columns_read, typed_rows
from txnlib.spark.joins import broadcast, select
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.open_transactions import MOST_IN_PLAN, foremost


def rows_of_table(run: Run, name: str, of: Callable[..., Typed]) -> list[Typed]:
    """The rows of this run in a table that grows with the cluster, as dataclasses. Callers share the list, so nobody
    may change it."""
    typed = run.tables.typed
    if (name, of) not in typed:
        typed[name, of] = typed_rows(run.tables.rows(name, columns_read(of, TABLES[name].names)), of)
    return typed[name, of]


@dataclass(frozen=True, slots=True)
class Given:
    """What a parameter of a transform gets, and the tables of the run from which it is made."""

    reads: tuple[str, ...]
    of_run: Callable[[Run], Any]
    #: The table whose columns its rows have.
    rows_of: str | None = None

    def __call__(self, run: Run) -> Any:
        return self.of_run(run)


def having(name: str, /, **values: Collection[object]) -> Given:
    """The rows of a table that have one of the values in each of these columns."""

    def found(run: Run) -> DataFrame:
        conditions = [F.col(column).isin(*each) for column, each in values.items()]
        return run.tables.read(name).where(reduce(and_, conditions))

    return Given((name,), found, name)


def foremost_open(*, most: int = MOST_IN_PLAN) -> Given:
    """The most important open transactions, at most `most` besides the first ones of partitions (`foremost`)."""
    name = "open_transactions"
    return Given((name,), lambda run: foremost(run.tables.read(name), most=most), name)


def queried(text: str) -> Given:
    """The rows of a query over tables, which it names in braces."""
    names = tables_of(text)
    return Given(names, lambda run: select(text, **{name: run.tables.read(name) for name in names}))


def selected(transform: Callable[..., DataFrame]) -> Given:
    """What a transform selects from the tables that its parameters name."""
    names = tuple(signature(transform).parameters)
    return Given(names, lambda run: transform(*map(run.tables.read, names)))


def answered(text: str) -> Given:
    """A function from questions to answers: a query over the tables that it names in braces, and over the questions as
    `{asked}`."""
    names = tuple(name for name in tables_of(text) if name != "asked")

    def answer(run: Run, questions: DataFrame) -> DataFrame:
        return select(text, asked=questions, **{name: run.tables.read(name) for name in names})

    return Given(names, lambda run: partial(answer, run))


def looked_up(name: str) -> Given:
    """A function from keys to the rows of a table that have one of these keys."""
    return Given(
        (name,),
        lambda run: lambda keys: run.tables.read(name).join(broadcast(keys), on=keys.columns, how="left_semi"),
    )


def earlier_rows_of(name: str) -> Callable[[Run], DataFrame | None]:
    """The rows of a table in earlier finished runs of the cluster; None if there is no such run."""

    def found(run: Run) -> DataFrame | None:
        store, earlier = run.tables.store, run.earlier
        return store.read_all(name).where(F.col("run_id").isin(*earlier)) if earlier and store.exists(name) else None

    return found


def newest_rows_of(name: str, clear: Callable[[DataFrame], DataFrame]) -> Given:
    """The rows of a table in the newest earlier finished run, also if that run has none. `clear`: drops rows that
    cannot matter."""

    def found(run: Run) -> DataFrame | tuple[()]:
        store, earlier = run.tables.store, run.earlier
        if not earlier or not store.exists(name):
            return ()
        return clear(store.read_all(name).where(F.col("run_id") == earlier[0]))

    return Given((), found, name)
