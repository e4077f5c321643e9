"""The Delta tables of a run. The only writer; a repeated run replaces its rows.

Every table is partitioned by `run_id`, and a write replaces the rows of its run in one commit. So repeating a run
repairs it if it was interrupted, and never duplicates rows. What was read of files is only added: other runs may use
the same rows, and each says in `segments` which ones it uses. So audits at the same time cannot harm each other.

What the core made in the driver, of the cluster, is also kept there for the next steps; everything else is read from
its table.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from txnlib.core.schema import ALWAYS_THERE
from txnlib.core.schema.rows_of_runs import OF_PARTS
from txnlib.core.schema.schema_number import is_constrained_anew, number_of
from txnlib.core.schema.views import VIEWS, named_by, without_rows
from txnlib.core.sql_text import quoted
from txnlib.engine.tables import AUDIT_RUNS, Commit, Rows, TableKeeper, stored_columns
from txnlib.errors import MissingTableError, UsageError
from txnlib.spark.frames import arrow_of, counted, frame_of, no_rows
from txnlib.spark.joins import broadcast, select
from txnlib.spark.schemas import TABLES, spark_schema
from txnlib.version import SCHEMA_NUMBER

#: Error conditions of Delta if another writer changed or created the table since a write began.
CONFLICTS: Final = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)

_PARTS: Final = StructType([StructField("part", LongType())])

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def is_conflict(error: BaseException) -> bool:
    """Whether a write failed only because of a concurrent writer."""
    return isinstance(error, CommitFailedError) or any(conflict in str(error) for conflict in CONFLICTS)


def again_after_conflicts(write: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Decorator for a function that writes one commit: tries again after conflicts, for up to a minute."""

    @wraps(write)
    def written(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        for longest_s in (0.5, 1, 2, 4, 8, 16, 20):
            try:
                return write(*args, **kwargs)
            except Exception as error:
                if not is_conflict(error):
                    raise
            time.sleep(random.uniform(0, longest_s))
        return write(*args, **kwargs)

    return written


@dataclass(frozen=True, slots=True)
class Store:
    """The tables under a folder or URI, or in a catalog schema; never both."""

    spark: SparkSession
    tables: TableKeeper
    output: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        if (self.output is None) == (self.schema is None):
            raise UsageError("give either --output or --schema")
        if self.schema is not None and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", self.schema):
            raise UsageError(f"--schema {self.schema}: expected SCHEMA or CATALOG.SCHEMA")

    @property
    def folder(self) -> str | None:
        """The local folder of the tables, which can be read without an engine; None for a store or a catalog."""
        return None if self.output is None or "://" in self.output else self.output

    def exists(self, name: str) -> bool:
        """Whether a table exists."""
        return self.tables.exists(name)

    def read_all(self, name: str) -> DataFrame:
        """A table or view with the rows of all runs. A table that is not there has none.

        Raises MissingTableError for one that always is.
        """
        if name in VIEWS:
            return select(VIEWS[name].query, **{each: self.read_all(each) for each in VIEWS[name].reads})
        columns = [each.name for each in stored_columns(name)]
        if self.exists(name):
            return self.tables.read(name).select(*columns)
        if name in ALWAYS_THERE:
            raise MissingTableError(name, "audit", str(self.output or self.schema))
        return no_rows(self.spark, spark_schema(stored_columns(name)))


@dataclass(frozen=True, slots=True)
class RunStore:
    """The rows of one run in every table."""

    store: Store
    cluster: str
    run_id: str
    #: Tables that the core made in the driver, by name.
    _made: dict[str, pa.Table] = field(default_factory=dict, repr=False, compare=False)
    #: Rows of tables as dataclasses, for each that was asked for, until the table is written again.
    typed: dict[tuple[str, Any], list[Any]] = field(default_factory=dict, repr=False, compare=False)
    #: The number of rows that this run wrote, where it is known.
    _counts: dict[str, int | None] = field(default_factory=dict, repr=False, compare=False)
    #: The parts that the run uses, once somebody asked. Another audit of the same run may replace what `segments`
    #: lists, but these parts stay.
    _parts: list[pa.Table] = field(default_factory=list, repr=False, compare=False)

    def read(self, name: str) -> DataFrame:
        """The rows of this run in a table or view, without the columns that name the run."""
        if name in VIEWS:
            return self.read_stamped(name).drop("cluster", "run_id")
        if name in self._made:
            return frame_of(self.store.spark, self._made[name], TABLES[name])
        if name not in OF_PARTS and self._counts.get(name) == 0:
            return no_rows(self.store.spark, TABLES[name])
        stored = self.store.read_all(name)
        rows = self._of_parts(stored) if name in OF_PARTS else stored.where(F.col("run_id") == self.run_id)
        found = rows.select(*TABLES[name].names)
        count = None if name in OF_PARTS else self._counts.get(name)
        return found if count is None else counted(found, count)

    def parts(self) -> pa.Table:
        """The parts that the run lists in `segments`, in the driver. `segments` must be written before. Columns:
        part."""
        if not self._parts:
            listed = self.read("segments").select(F.explode("parts").alias("part")).distinct()
            self._parts.append(arrow_of(listed))
        return self._parts[0]

    def _of_parts(self, stored: DataFrame) -> DataFrame:
        """The rows of the parts that the run uses. Reads no older files."""
        parts = self.parts()
        if not parts.num_rows:
            return stored.where("FALSE")
        used = broadcast(frame_of(self.store.spark, parts, _PARTS))
        oldest = F.lit(pc.min(parts["part"]).as_py())
        return stored.where(F.col("part") >= oldest).join(used, on="part", how="left_semi")

    def rows(self, name: str, columns: Sequence[str]) -> pa.Table:
        """The rows of this run in a table, in the driver. Only for tables that grow with the cluster."""
        return self._made[name].select(columns) if name in self._made else arrow_of(self.read(name).select(*columns))

    def is_empty(self, name: str) -> bool:
        """Whether this run has no rows in a table."""
        count = self._counts.get(name)
        if count is None or (count == 0 and name in OF_PARTS):  # earlier audits have read its rows
            return self.read(name).isEmpty()
        return count == 0

    def is_larger(self, name: str, rows: int) -> bool:
        """Whether this run is known to have written more than `rows` rows of a table."""
        return (self._counts.get(name) or 0) > rows

    def read_stamped(self, name: str) -> DataFrame:
        """The rows of this run in a table or view, with the columns that name the run."""
        if name in VIEWS:
            return self.store.read_all(name).where(F.col("run_id") == self.run_id)
        stamps = {key: F.lit(value) for key, value in self._stamps.items()}
        return self.read(name).withColumns(stamps).select(*[each.name for each in stored_columns(name)])

    @again_after_conflicts
    def write(self, name: str, made: DataFrame | pa.Table) -> Commit:
        """Replaces the rows of this run in a table, or adds to those of parts, in one commit.

        A table that would have no rows is not created, unless it is always there.
        """
        self._forget(name)
        is_there = name in ALWAYS_THERE or self.store.exists(name)
        rows = made if is_there else self._if_any(made)
        commit, replaced = Commit(0), None if name in OF_PARTS else f"run_id = {quoted(self.run_id)}"
        if rows is not None:
            commit = self.store.tables.write(name, rows, self._stamps, replaced=replaced)
        if isinstance(made, pa.Table):
            self._made[name] = made
        self._counts[name] = commit.rows
        return commit

    @again_after_conflicts
    def compact(self, name: str) -> None:
        """Compacts the files of this run in a table."""
        self.store.tables.compact(name, self.run_id)

    def _if_any(self, made: DataFrame | pa.Table) -> Rows | None:
        if isinstance(made, pa.Table):
            return made if made.num_rows else None
        return self.store.tables.if_any(made)

    @property
    def _stamps(self) -> dict[str, Any]:
        """The values of the columns that name the run."""
        return {"cluster": self.cluster, "run_id": self.run_id}

    def _forget(self, name: str) -> None:
        """Clears what is known of a table that is written."""
        self._made.pop(name, None)
        self._counts.pop(name, None)
        for key in [key for key in self.typed if key[0] == name]:
            del self.typed[key]
        if name == "segments":
            self._parts.clear()


def opened(store: Store) -> Store:
    """The store, once its tables have all columns of this version. Rows of older versions have NULL in the added
    columns.

    Raises OtherSchemaError for tables that this version cannot read.
    """
    tables = store.tables
    if not store.exists(AUDIT_RUNS):
        return store
    number = number_of(
        str(store.output or store.schema),
        tables.noted_number(),
        lambda: {name: tables.shape(name) for name in TABLES if store.exists(name)},
    )
    if number < SCHEMA_NUMBER:
        for name in TABLES:
            if store.exists(name):
                again_after_conflicts(tables.extend)(name, is_constrained_anew=is_constrained_anew(name, number))
        # Last, so that the next audit repeats an upgrade that was killed.
        again_after_conflicts(tables.note_number)()
    return store


def create_views(store: Store) -> None:
    """Creates the views in the catalog schema of the tables. A folder cannot contain views.

    A later run creates them again, once tables that are not there now have rows.
    """
    if store.schema is None:
        return
    names = {name: f"{store.schema}.{name}" for name in (*TABLES, *VIEWS)}
    names |= {name: f"({without_rows(name)})" for name in TABLES if not store.exists(name)}
    for name, view in VIEWS.items():
        about = view.about.replace("'", "''")
        query = view.named(names.__getitem__)
        store.spark.sql(f"CREATE OR REPLACE VIEW {store.schema}.{name} COMMENT '{about}' AS {query}")


def create_temporary_views(store: Store, query: str) -> None:
    """Registers the tables and views that a query names in this session, with the rows of all runs."""
    words, views = named_by(query)
    for name in TABLES.keys() & set(words):
        store.read_all(name).createOrReplaceTempView(name)
    for name in views:
        store.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {VIEWS[name].named(str)}")
