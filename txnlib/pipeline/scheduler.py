"""The scheduler of a run: tables and decisions, each once what it reads is there.

A job is a list of steps; an audit is the lists of all three jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from graphlib import CycleError, TopologicalSorter
from inspect import signature
from itertools import chain
from typing import Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa
from pyspark.sql import DataFrame

from txnlib.core.display import Written
from txnlib.core.findings.rule import Rule
from txnlib.core.schema.rows_of_runs import RUN_COLUMNS
from txnlib.core.sql_text import tables_of, values_of
from txnlib.engine.tables import Commit
from txnlib.errors import StepError, TxnlibError
from txnlib.pipeline.clock import now
from txnlib.pipeline.failure import failure_of, texts_of
from txnlib.pipeline.given_rows import Given, rows_of_table
from txnlib.pipeline.run import Run
from txnlib.readers.typed_rows import arrow_rows, columns_read
from txnlib.spark.core_rows import answers, odd_rows, rows_by_core, rows_of
from txnlib.spark.frames import frame_of, kept_if_any
from txnlib.spark.schemas import TABLES


@dataclass(frozen=True, slots=True)
class TableStep:
    """A table of a run, what it waits for, and the transform that makes it."""

    name: str
    reads: tuple[str, ...]
    transform: Callable[[Run], DataFrame | pa.Table]


@dataclass(frozen=True, slots=True)
class RunChange:
    """A change of the run itself, derived from the tables that it reads. It writes no table of its own."""

    name: str
    reads: tuple[str, ...]
    decide: Callable[[Run], None]


Step = TableStep | RunChange


def called(transform: Callable[..., Any], **arguments: Callable[[Run], object]) -> Given:
    """What a transform returns. Each parameter gets the table of its name, or else the setting of its name.

    The type of the parameter says how it gets a table: as DataFrame; or as rows in the driver (`Sequence[Copy]`), if
    the table grows with the cluster. `Copy` is a dataclass of the needed columns. `arguments`: what parameters get
    instead. For a sequence, this is the rows of a frame; for a function, the answers of a transform to rows of
    questions (`core_rows.answers`).
    """
    hints, names = get_type_hints(transform), signature(transform).parameters.keys()
    kinds = {name: get_args(hints[name])[0] for name in names if get_origin(hints[name]) is Sequence}
    reads = tuple(name for name in names if name in TABLES and name not in arguments)
    also = (name for given in arguments.values() if isinstance(given, Given) for name in given.reads)

    def argument(run: Run, name: str) -> object:
        if name in reads and name not in kinds:
            return run.tables.read(name)
        if name in reads:
            return rows_of_table(run, name, kinds[name])
        given = arguments[name](run) if name in arguments else getattr(run.settings, name)
        table = getattr(arguments.get(name), "rows_of", None)
        if name in kinds and table is not None and isinstance(given, DataFrame):
            known = [*TABLES[table].names, *(column.name for column in RUN_COLUMNS)]
            given = given.select(*columns_read(kinds[name], known))
        if name in kinds and isinstance(given, DataFrame | pa.Table):
            return rows_of(given, kinds[name])
        return answers(run.spark, given, hints[name]) if callable(given) else given

    return Given((*reads, *also), lambda run: transform(**{name: argument(run, name) for name in names}))


def table_of(
    transform: Callable[..., Any],
    *,
    name: str | None = None,
    after: tuple[str, ...] = (),
    **arguments: Callable[[Run], object],
) -> TableStep:
    """The step that makes the table of the transform's name. The transform returns a frame, or rows as dataclasses.
    `arguments`: as for `called`.

    `name`: the table's name, if it is another one. `after`: other steps to wait for.
    """
    call, table = called(transform, **arguments), name or transform.__name__

    def made(run: Run) -> DataFrame | pa.Table:
        rows = call(run)
        return rows if isinstance(rows, DataFrame | pa.Table) else arrow_rows(table, rows)

    return TableStep(table, tuple(dict.fromkeys((*call.reads, *after))), made)


#: Most rows of a rule's table for which the embedded engine judges the rule in one query with other rules, side by
#: side.
JUDGED_TOGETHER: Final = 500_000


def table_of_rules(
    name: str, rules: Iterable[Rule], others: Iterable[Callable[..., Iterable[object]]], *, after: tuple[str, ...] = ()
) -> TableStep:
    """The step that makes a table of the rows that rules of the core find. `others`: functions that return further rows
    of the table, as dataclasses."""
    asked = [_AskedRule.of(rule) for rule in rules]
    calls = [called(other) for other in others]

    def made(run: Run) -> DataFrame | pa.Table:
        few = pa.concat_tables([arrow_rows(name, ()), *(arrow_rows(name, call(run)) for call in calls)])
        parts = [frame_of(run.spark, few, TABLES[name])] if few.num_rows else []
        for each in asked:
            rows = each.rows(run, name)
            if rows is not None and run.tables.is_larger(each.rule.of, JUDGED_TOGETHER):
                rows = kept_if_any(rows)
            if rows is not None:
                parts.append(rows)
        return reduce(DataFrame.union, parts) if parts else few

    reads = (*(call.reads for call in calls), *(each.reads for each in asked), after)
    return TableStep(name, tuple(dict.fromkeys(chain.from_iterable(reads))), made)


@dataclass(frozen=True, slots=True)
class _AskedRule:
    """A rule, the tables that it reads, and what makes its values."""

    rule: Rule
    tables: tuple[str, ...]
    given: Mapping[str, Given]

    @staticmethod
    def of(rule: Rule) -> _AskedRule:
        named = dict.fromkeys(name for text in rule.texts for name in tables_of(text))
        tables = tuple(name for name in named if name not in {step.name for step in rule.steps})
        return _AskedRule(rule, tables, {name: called(make) for name, make in rule.given.items()})

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.tables, *(read for each in self.given.values() for read in each.reads))

    def rows(self, run: Run, name: str) -> DataFrame | None:
        """The rows of table `name` that the rule makes; None if nothing is odd."""
        rule = self.rule
        if run.tables.is_empty(rule.of):
            return None
        of_judge = [*signature(rule.judge).parameters][1:]
        of_queries = (value for text in rule.texts for value in values_of(text))
        values = {
            value: self.given[value](run) if value in self.given else getattr(run.settings, value)
            for value in dict.fromkeys((*of_judge, *of_queries))
        }
        odd = odd_rows(rule, {table: run.tables.read(table) for table in self.tables}, values)
        judge = partial(rule.judge, **{value: values[value] for value in of_judge})
        return None if odd is None else rows_by_core(name, odd, rule.row, judge)


def carry_out(run: Run, steps: Sequence[Step]) -> None:
    """Carries out every step after the steps that it reads. A table that no step makes exists already.

    Of the steps that are ready, the first in the list is next. If the engine carries out several at a time, another one
    may be next, but changes of the run always happen after the same steps. If steps fail, the first one in the list
    raises its error, once those beside it have ended: as StepError, or unchanged if it is a TxnlibError, which already
    says what to do. Raises ValueError for steps in a cycle.
    """
    tables: list[TableStep] = []
    for step in _in_order(steps):
        if isinstance(step, TableStep):
            tables.append(step)
            continue
        _write(run, tables)
        tables.clear()
        run.begin(step.name)
        with _told(run, step):
            step.decide(run)
    _write(run, tables)


def _in_order(steps: Sequence[Step]) -> Iterator[Step]:
    by_name = {step.name: step for step in steps}
    order = TopologicalSorter({step.name: [name for name in step.reads if name in by_name] for step in steps})
    try:
        order.prepare()
    except CycleError as cycle:
        raise ValueError(f"steps wait for each other: {', '.join(sorted(set(cycle.args[1])))}") from None
    ready: set[str] = set()
    while order.is_active():
        ready |= set(order.get_ready())
        name = next(name for name in by_name if name in ready)
        ready.remove(name)
        yield by_name[name]
        order.done(name)


def _write(run: Run, steps: Sequence[TableStep]) -> None:
    """Writes tables, as many at a time as the engine can. Only this thread reports which step begins or ends."""
    if run.engine.steps_at_once == 1:
        for step in steps:
            run.begin(step.name)
            begun = now()
            with _told(run, step):
                _note(run, step, _made(run, step), begun)
        return
    waiting = list(steps)
    running: dict[Future[Commit], tuple[TableStep, datetime]] = {}
    failed: dict[int, Future[Commit]] = {}
    with ThreadPoolExecutor(run.engine.steps_at_once) as threads:
        while running or (waiting and not failed):
            missing = {step.name for step in (*waiting, *(step for step, _ in running.values()))}
            ready = [step for step in waiting if missing.isdisjoint(step.reads) and not failed]
            for step in ready[: run.engine.steps_at_once - len(running)]:
                waiting.remove(step)
                run.begin(step.name)
                running[threads.submit(_made, run, step)] = step, now()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step, begun = running.pop(future)
                if future.exception() is None:
                    _note(run, step, future.result(), begun)
                else:
                    failed[steps.index(step)] = future
    if failed:
        first = min(failed)
        with _told(run, steps[first]):
            failed[first].result()


def _made(run: Run, step: TableStep) -> Commit:
    return run.tables.write(step.name, step.transform(run))


def _note(run: Run, step: TableStep, commit: Commit, begun: datetime) -> None:
    run.written[step.name] = Written(commit.rows, (now() - begun).total_seconds())
    if commit.is_scattered:
        run.scattered.append(step.name)
    run.ended(step.name, run.written[step.name])


@contextmanager
def _told(run: Run, step: Step) -> Iterator[None]:
    """Raises the failure of a step as StepError. A TxnlibError stays as it is, because it says what to do."""
    try:
        yield
    except TxnlibError:
        raise
    except Exception as error:
        failure = failure_of(texts_of(error))
        raise StepError(step.name, failure.says, sorted(run.written), failure.cause.remedy) from error
