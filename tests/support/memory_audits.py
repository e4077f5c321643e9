"""Whole audits in memory, without Delta tables.

The stages are what is tested; that tables survive being written is another test's business, and costs seconds a table.
Only those are made that a test looks at, and those they are made from: that all can be made is
`tests/jobs/test_audit.py`'s.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from txnlib.core.batch_runs import single_batches
from txnlib.engine.commits import Commit
from txnlib.errors import MissingTableError
from txnlib.jobs.options import AUDIT, parse, request_of
from txnlib.pipeline.run import Run, open_run
from txnlib.pipeline.scheduler import TableStep, carry_out
from txnlib.pipeline.tables import AUDIT as AUDIT_STEPS
from txnlib.settings import Settings
from txnlib.spark.frames import frame_of
from txnlib.spark.schemas import TABLES, conform


@dataclass
class MemoryTables:
    """Stands in for `RunStore`: one run, whose tables are Arrow tables, each made when it is asked for."""

    spark: SparkSession
    tables: dict[str, pa.Table] = field(default_factory=dict)
    run: Run | None = None
    #: Names of the steps that were taken.
    taken: set[str] = field(default_factory=set)

    @property
    def store(self) -> "MemoryTables":
        return self

    def exists(self, name: str) -> bool:
        return False

    def read_all(self, name: str) -> DataFrame:
        raise MissingTableError(name, "audit")

    run_id: str = "kept"

    def write(self, name: str, made: DataFrame | pa.Table) -> None:
        self.tables[name] = conform(made, TABLES[name]).toArrow() if isinstance(made, DataFrame) else made

    def held_rows(self, name: str) -> pa.Table | None:
        return self.tables.get(name)

    def commit(self, name: str) -> Commit:
        return Commit(self.tables[name].num_rows)

    def is_empty(self, name: str) -> bool:
        return self.read(name).isEmpty()

    def read(self, name: str) -> DataFrame:
        if name not in self.tables:
            raise MissingTableError(name, "audit")
        return frame_of(self.spark, self.tables[name], TABLES[name])

    def made(self, name: str) -> pa.Table:
        """The table, made now if it was not yet."""
        steps = [step for step in AUDIT_STEPS if step.name in needed_for(name) - self.taken]
        if steps and self.run is not None:
            carry_out(self.run, steps)
            self.taken |= {step.name for step in steps}
        return self.tables[name]

    def before(self, name: str) -> "MemoryTables":
        """The same audit as if this table had not been made yet."""
        others = {each: rows for each, rows in self.tables.items() if each != name}
        tables = replace(self, tables=others, taken=self.taken - {name})
        tables.run = replace(self.run, tables=tables)  # type: ignore[type-var]
        return tables

    def frame(self, name: str) -> DataFrame:
        self.made(name)
        return self.read(name)

    def rows(self, name: str, columns: Sequence[str] | None = None) -> Any:
        """The rows as dictionaries for a test; with columns, as Arrow for a step, as `RunStore` has them."""
        return self.made(name).to_pylist() if columns is None else self.tables[name].select(columns)


def printed(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The rows in order. Of `record_batches`, the single batches: a run ends where the reader resumed."""
    return sorted(repr(batch) for row in rows for batch in single_batches(row))


def needed_for(name: str) -> set[str]:
    """The step of a table, and all that it is made from."""
    reads = {step.name: set(step.reads) for step in AUDIT_STEPS}
    found, last = {name}, set[str]()
    while found != last:
        last, found = found, found.union(*(reads[step] for step in found if step in reads))
    return found


def made_of(spark: SparkSession, name: str, settings: Settings, **frames: DataFrame) -> list[dict[str, Any]]:
    """The rows of a table that its step makes of these tables."""
    tables = MemoryTables(spark)
    for each, rows in frames.items():
        tables.write(each, rows)
    step = next(step for step in AUDIT_STEPS if step.name == name)
    assert isinstance(step, TableStep)
    made = step.transform(Run(spark, tables, settings, started_at=None))  # type: ignore[arg-type]
    found: list[dict[str, Any]] = (made.toArrow() if isinstance(made, DataFrame) else made).to_pylist()
    return found


#: What was audited in this session: several tests look at the same audit, and none changes its tables.
_AUDITED: dict[tuple[str, ...], MemoryTables] = {}


def audited(spark: SparkSession, capture: Path | list[Path], *options: str) -> MemoryTables:
    """The tables of an audit of a capture, with the given options; of one that was audited so before, those tables."""
    inputs = capture if isinstance(capture, list) else [capture]
    key = (*map(str, inputs), *options)
    if key not in _AUDITED:
        _AUDITED[key] = audited_anew(spark, inputs, *options)
    return _AUDITED[key]


def audited_anew(spark: SparkSession, inputs: list[Path], *options: str) -> MemoryTables:
    argv = [word for path in inputs for word in ("--input", str(path))]
    given = parse(AUDIT, "", [*argv, "--output", "unused", *options])
    opened = open_run(request_of(given))
    tables = MemoryTables(spark)
    run = Run(spark, tables, opened.settings, opened.started_at, opened.inputs, opened.source)  # type: ignore[arg-type]
    tables.run = run
    return tables
