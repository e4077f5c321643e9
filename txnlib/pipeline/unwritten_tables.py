"""Tables that are computed on each read and never written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.delta.commits import Commit
from txnlib.delta.store import RunStore, Store
from txnlib.spark.local_rows import local_relation
from txnlib.spark.schemas import RUN_COLUMNS, TABLES, conform


@dataclass(frozen=True, slots=True)
class UnwrittenTables:
    """The tables of a written run, some of them replaced by frames that are not written."""

    written: RunStore
    frames: dict[str, DataFrame] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        return self.written.store

    @property
    def run_id(self) -> str:
        return self.written.run_id

    def read(self, name: str) -> DataFrame:
        """The rows of this run in a table, without the columns that name the run."""
        return self.frames[name] if name in self.frames else self.written.read(name)

    def rows(self, name: str, columns: Sequence[str]) -> pa.Table:
        """The same rows, in the driver."""
        return self.frames[name].select(*columns).toArrow() if name in self.frames else self.written.rows(name, columns)

    def held_rows(self, name: str) -> pa.Table | None:
        """The same rows, if the driver holds all of them."""
        return None if name in self.frames else self.written.held_rows(name)

    def is_empty(self, name: str) -> bool:
        """Whether the table has no rows."""
        return self.frames[name].isEmpty() if name in self.frames else self.written.is_empty(name)

    def read_stamped(self, name: str) -> DataFrame:
        """The same rows with those columns."""
        if name not in self.frames:
            return self.written.read_stamped(name)
        stamps = {"cluster": F.lit(self.written.cluster), "run_id": F.lit(self.run_id)}
        return self.frames[name].withColumns(stamps).select(*RUN_COLUMNS.names, *TABLES[name].names)

    def write(self, name: str, made: DataFrame | pa.Table) -> None:
        """Replaces a table."""
        is_frame = isinstance(made, DataFrame)
        self.frames[name] = (
            conform(made, TABLES[name]) if is_frame else local_relation(self.store.spark, made, TABLES[name])
        )

    def commit(self, name: str) -> Commit:
        """An unknown number of rows, and no files."""
        return Commit(None)

    def compact(self, name: str) -> None:
        """Does nothing: there are no files to compact."""
