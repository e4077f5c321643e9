"""How is a capture audited without writing Delta tables? The jobs' own stages over tables kept in memory.

The stages are what is tested; that tables survive being written is another test's business, and costs seconds a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.audit import STEPS
from jobs.options import AUDIT, parse
from jobs.run import Run, open_run
from jobs.steps import carry_out
from txnlib.errors import MissingTableError
from txnlib.spark.schemas import TABLES, conform


@dataclass
class MemoryTables:
    """Stands in for `RunStore`: one run, whose tables are Arrow tables."""

    spark: SparkSession
    tables: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def store(self) -> MemoryTables:
        return self

    def exists(self, name: str) -> bool:
        return False

    def write(self, name: str, frame: DataFrame) -> None:
        self.tables[name] = conform(frame, TABLES[name]).toArrow()

    def append(self, name: str, frame: DataFrame) -> None:
        known = self.tables[name]
        self.tables[name] = pa.concat_tables([known, conform(frame, TABLES[name]).toArrow().cast(known.schema)])

    def read(self, name: str) -> DataFrame:
        if name not in self.tables:
            raise MissingTableError(name, "audit")
        table = self.tables[name]
        if table.num_rows == 0:
            return self.spark.createDataFrame([], TABLES[name])
        return self.spark.createDataFrame(table).to(TABLES[name])

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.tables[name].to_pylist()


#: What was audited in this session: several tests look at the same audit, and none changes its tables.
_AUDITED: dict[tuple[str, ...], MemoryTables] = {}


def audited(spark: SparkSession, capture: Path | list[Path], *options: str) -> MemoryTables:
    """The tables of an audit of a capture, with the given options; of one that was audited so before, those tables."""
    inputs = capture if isinstance(capture, list) else [capture]
    key = (*map(str, inputs), *options)
    if key not in _AUDITED:
        _AUDITED[key] = _audit(spark, inputs, *options)
    return _AUDITED[key]


def _audit(spark: SparkSession, inputs: list[Path], *options: str) -> MemoryTables:
    argv = [word for path in inputs for word in ("--input", str(path))]
    given = parse(AUDIT, "", [*argv, "--output", "unused", *options])
    opened = open_run(given)
    tables = MemoryTables(spark)
    run = Run(spark, tables, opened.settings, opened.started_at, opened.inputs, opened.capture)  # type: ignore[arg-type]
    carry_out(run, STEPS)
    return tables
