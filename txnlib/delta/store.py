"""The Delta tables of a run. The only writer; a repeated run replaces its rows.

Every table is partitioned by `run_id`, and a write replaces the rows of its run in one commit. So repeating a run
repairs it if it was interrupted, and never duplicates rows.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import pyarrow as pa
from deltalake.exceptions import CommitFailedError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from txnlib.core.chains import Chain
from txnlib.core.schema import ALWAYS_THERE
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema.rows_of_runs import OF_LOG, WITH_CHAIN, earlier_rows, quoted, replaced_rows
from txnlib.delta import local_tables
from txnlib.delta.commits import Commit, commit_notes, newest_commit
from txnlib.delta.local_tables import options_of
from txnlib.delta.session import is_driver_local
from txnlib.errors import MissingTableError, UsageError
from txnlib.spark.joins import broadcast
from txnlib.spark.local_rows import KEPT_ROWS, MAX_BYTES, arrow_table, collect, local_relation, no_rows
from txnlib.spark.schemas import CHAIN_COLUMNS, RUN_COLUMNS, TABLES, conform

#: Error conditions of Delta if another writer changed or created the table since a write began.
CONFLICTS: Final = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)


def is_conflict(error: BaseException) -> bool:
    """Whether a write failed only because of a concurrent writer."""
    return isinstance(error, CommitFailedError) or any(conflict in str(error) for conflict in CONFLICTS)


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


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


#: Columns with minimum and maximum per file, so that queries skip files. For all columns, as is Delta's default, these
#: would take a third of a large write.
NOTED = ("chain", "night", "topic", "partition", "base_offset", "producer_id", "transactional_id", "marker_offset")

#: Tables whose transforms return a frame only if the rows are too many to collect: to try it would make them twice.
FRAMES_IF_MANY: Final = frozenset({"open_transactions"})

#: Tables made by windows and joins: to find out whether a large one has rows takes as long as to write it, so it is
#: written.
COSTLY: Final = frozenset({"producer_spans", "checked_batches", "transaction_outcomes"})

STATISTICS: Final = "delta.dataSkippingStatsColumns"

#: Error message of Delta if a table has other partition columns.
OTHER_PARTITIONS: Final = "Partition columns do not match"


def stored_schema(name: str) -> StructType:
    """The columns of a table as stored: first the columns of the run and its chain, then those of the table."""
    chain = CHAIN_COLUMNS.fields if name in WITH_CHAIN else ()
    return StructType([*RUN_COLUMNS.fields, *chain, *TABLES[name].fields])


def _as_stored(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame, conformed to the schema, with plain string types.

    Spark Connect adds the collation to each string type that a client passes, and Delta stores it: `string collate
    UTF8_BINARY`, which other readers refuse (seen with Spark 4.2 and Delta 4.4). Types that are passed as text are not
    changed.
    """
    if not is_remote():
        return conform(frame, schema)
    return frame.select(
        *[
            F.col(field.name).cast(field.dataType.simpleString()).alias(field.name, metadata=field.metadata)
            for field in schema
        ]
    )


def _statistics_of(name: str) -> list[str]:
    """The columns of a table with minimum and maximum per file."""
    return [column for column in NOTED if column in stored_schema(name).names] or ["cluster"]


def _commit_options(commit_note: str) -> dict[str, str]:
    return {"userMetadata": commit_note} if commit_note else {}


@dataclass(frozen=True, slots=True)
class Store:
    """The tables under a folder (or any Hadoop URI), or in a catalog schema; never both."""

    spark: SparkSession
    output: str | None = None
    schema: str | None = None
    #: Whether tables are expected to fit in the driver (`local_tables`).
    is_small: bool = False
    #: The tables that are not expected to, all the same.
    large: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if (self.output is None) == (self.schema is None):
            raise UsageError("give either --output or --schema")
        if self.schema is not None and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", self.schema):
            raise UsageError(f"--schema {self.schema}: expected SCHEMA or CATALOG.SCHEMA")

    @property
    def folder(self) -> str | None:
        """The local folder of the tables, which can be read without Spark; None for an object store or a catalog."""
        return None if self.output is None or "://" in self.output else self.output

    def exists(self, name: str) -> bool:
        """Whether a table exists."""
        if (folder := self.driver_folder_of(name)) is not None:
            return local_tables.exists(folder)
        try:
            _ = self._load(name).schema
        except AnalysisException:
            return False
        return True

    def read_all(self, name: str) -> DataFrame:
        """A table with the rows of all runs. A column that the stored table lacks is NULL.

        A table that is not there has no rows. Raises MissingTableError for one that always is.
        """
        if (folder := self.driver_folder_of(name)) is not None:
            if not local_tables.exists(folder):
                return self._absent(name)
            if (rows := local_tables.read(folder, name)) is not None:
                return local_relation(self.spark, rows, stored_schema(name))
        try:
            table = self._load(name)
            known = table.columns  # Spark Connect looks up the table only here
        except AnalysisException as error:
            if not str(error.getCondition()).endswith("NOT_FOUND"):
                raise MissingTableError(name, "audit", str(self.output or self.schema)) from error
            return self._absent(name)
        return table.select(
            *[
                field.name if field.name in known else F.lit(None).cast(field.dataType).alias(field.name)
                for field in stored_schema(name)
            ]
        )

    def _absent(self, name: str) -> DataFrame:
        """No rows, for a table that is not there. Raises MissingTableError if it always is."""
        if name in ALWAYS_THERE:
            raise MissingTableError(name, "audit", str(self.output or self.schema))
        return no_rows(self.spark, stored_schema(name))

    def is_older(self, name: str) -> bool:
        """Whether the table exists and lacks columns."""
        if (folder := self.driver_folder_of(name)) is not None and (
            columns := local_tables.columns(folder)
        ) is not None:
            return not set(stored_schema(name).names) <= columns
        try:
            return not set(stored_schema(name).names) <= set(self._load(name).columns)
        except AnalysisException:
            return False

    def driver_folder_of(self, name: str) -> str | None:
        """The folder of a table that is read and committed without Spark; None if Spark must do it."""
        return (
            f"{self.folder}/{name}"
            if self.is_small and self.folder is not None and is_driver_local(self.spark)
            else None
        )

    def sql_name(self, name: str) -> str:
        """The name of a table in a SQL statement."""
        if self.output is None:
            return f"{self.schema}.{name}"
        folder = self.output.replace("`", "``")
        return f"delta.`{folder}/{name}`"

    def _load(self, name: str) -> DataFrame:
        if self.output is None:
            return self.spark.read.table(f"{self.schema}.{name}")
        return self.spark.read.format("delta").load(f"{self.output}/{name}")


@dataclass(frozen=True, slots=True)
class RunStore:
    """The rows of one run in every table."""

    store: Store
    cluster: str
    run_id: str
    #: None for runs of versions without chains.
    chain: Chain | None = None
    #: Tables read since they were last changed. Opening a table again would read its log.
    _opened: dict[tuple[str, int], DataFrame] = field(default_factory=dict, repr=False, compare=False)
    #: How often this run has changed each table. A step that reads a table while another one changes it may see the old
    #: rows; they are kept for that state only.
    _changes: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    #: The newest commits of this run to small tables.
    _commits: dict[str, Commit] = field(default_factory=dict, repr=False, compare=False)
    #: The rows that this run wrote, of small tables.
    _held: dict[str, DataFrame] = field(default_factory=dict, repr=False, compare=False)
    #: The same, as Arrow.
    _rows: dict[str, pa.Table] = field(default_factory=dict, repr=False, compare=False)
    #: Copies of which earlier rows count, of tables with rows of the log, before `coverage` says it.
    _copies: dict[str, DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def read(self, name: str) -> DataFrame:
        """The rows of this run in a table, without the columns that name the run."""
        state = (name, self._changes[name])
        if state not in self._opened:
            self._opened[state] = self._read(name)
        return self._opened[state]

    def rows(self, name: str, columns: Sequence[str]) -> pa.Table:
        """The rows of this run in a table, in the driver. Only for tables that grow with the cluster."""
        held = self.held_rows(name)
        return self.read(name).select(*columns).toArrow() if held is None else held.select(columns)

    def held_rows(self, name: str) -> pa.Table | None:
        """The rows of this run in a table, if the driver holds all of them."""
        return None if name in OF_LOG else self._rows.get(name)

    def _read(self, name: str) -> DataFrame:
        written = self.read_written(name)
        if name not in OF_LOG or self.chain is None or self.chain.night == 0:
            return written
        copies = self._copies[name] if name in self._copies else self.read("coverage")
        stored = self._read_all(name).where((F.col("chain") == self.chain.name) & (F.col("night") < self.chain.night))
        counted = self.store.spark.sql(earlier_rows(name), stored=stored, copies=broadcast(copies))
        return written.unionByName(counted.select(*TABLES[name].names))

    def read_written(self, name: str) -> DataFrame:
        """The rows that this run wrote: of a table with rows of the log, only what was new."""
        if name in self._held:
            return self._held[name]
        own = self._read_all(name).where(F.col("run_id") == self.run_id)
        if name in OF_LOG and self.chain is not None:
            own = own.where(F.col("chain") == self.chain.name)
        return own.select(*TABLES[name].names)

    def _read_all(self, name: str) -> DataFrame:
        """The rows of all runs, read by Spark if this run wrote too many to keep."""
        rows = self._commits[name].rows if name in self._commits else None
        return (replace(self.store, is_small=False) if (rows or 0) > KEPT_ROWS else self.store).read_all(name)

    def is_empty(self, name: str) -> bool:
        """Whether this run has no rows in a table. Known without a look at the rows if the driver holds them."""
        rows = self._commits[name].rows if name in self._commits and name not in OF_LOG else None
        return self.read(name).isEmpty() if rows is None else rows == 0

    def read_stamped(self, name: str) -> DataFrame:
        """The rows of this run in a table, with the columns that name the run."""
        return self._stamped(self.read(name), name)

    def count_earlier_rows(self, name: str, copies: DataFrame) -> None:
        """From now on, rows of earlier runs count in a table, as `coverage` will say once it is written.

        `copies`: its columns that say which rows count.
        """
        self._copies[name] = copies
        self._changes[name] += 1

    def append(self, name: str, frame: DataFrame, *, commit_note: str = "") -> None:
        """Adds rows of this run to a table. `commit_note`: a note on the commit, for `commit_notes`."""
        self._forget(name)
        rows = self._collected(name, frame)
        if rows is None or not self._commit_rows(name, rows, None, commit_note):
            self._save(name, frame, "append", commit_note=commit_note)
        self._changes[name] += 1

    @again_after_conflicts
    def remove(self, name: str, values: Mapping[str, str]) -> None:
        """Deletes the rows of this run that have these values."""
        self._forget(name)
        condition = " AND ".join(
            f"{column} = {quoted(value)}" for column, value in {"run_id": self.run_id, **values}.items()
        )
        self.store.spark.sql(f"DELETE FROM {self.store.sql_name(name)} WHERE {condition}")
        self._changes[name] += 1

    def commit_notes(self, name: str) -> list[str]:
        """The notes on the newest commits to a table, of all runs, newest first."""
        return commit_notes(self.store.spark, self.store.sql_name(name), folder=self._folder_of(name))

    def write(self, name: str, made: DataFrame | pa.Table) -> None:
        """Replaces the rows of this run in a table in one commit. Creates the table, with comments, if necessary.

        A table that would have no rows of any run is not created, unless it is always there.
        """
        self._forget(name)
        rows = self._collected(name, made) if isinstance(made, DataFrame) else made
        if rows is None and name not in COSTLY and self._may_be_absent(name) and made.isEmpty():
            rows = arrow_table((), TABLES[name])
        if rows is None:
            self._save(name, made, "overwrite")
        else:
            is_committed = (rows.num_rows == 0 and self._may_be_absent(name)) or self._commit_rows(
                name, rows, self._replaced(name)
            )
            if rows.num_rows <= KEPT_ROWS or not is_committed:
                self._held[name] = local_relation(self.store.spark, rows, TABLES[name])
            if not is_committed:
                self._save(name, self._held[name], "overwrite")
            self._commits[name] = Commit(rows.num_rows, 1, rows.nbytes)
            if rows.nbytes <= MAX_BYTES:
                self._rows[name] = rows
        self._changes[name] += 1

    def _may_be_absent(self, name: str) -> bool:
        """Whether a table is not there, and need not be if it has no rows."""
        return name not in ALWAYS_THERE and not self.store.exists(name)

    def _replaced(self, name: str) -> str:
        """The condition on rows that a write of this run replaces."""
        if name in OF_LOG and self.chain is not None and not self.store.is_older(name):
            return replaced_rows(self.chain, self.run_id)
        return f"run_id = {quoted(self.run_id)}"

    def _collected(self, name: str, frame: DataFrame) -> pa.Table | None:
        """The rows of a frame, in the driver; None if they are too many."""
        is_small = self.store.is_small and name not in self.store.large | FRAMES_IF_MANY
        return collect(conform(frame, TABLES[name])) if is_small else None

    def _commit_rows(self, name: str, rows: pa.Table, replaced: str | None, note: str = "") -> bool:
        """Commits rows without Spark. Returns False, without writing, if that is impossible."""
        folder = self.store.driver_folder_of(name)
        # Earlier runs may have written more than delta-rs should look through for the rows that these replace.
        if folder is None or name in self.store.large or not local_tables.is_plain(self.run_id):
            return False
        stamped = local_tables.stamped(rows, name, self._stamps(name))
        return local_tables.commit(folder, name, stamped, replaced=replaced, statistics=_statistics_of(name), note=note)

    def commit(self, name: str) -> Commit:
        """The last commit of this run to a table, from its log."""
        if name in self._commits:
            return self._commits[name]
        return newest_commit(self.store.spark, self.store.sql_name(name), self.run_id, folder=self._folder_of(name))

    @again_after_conflicts
    def compact(self, name: str) -> None:
        """Compacts the files of this run in a table."""
        self._forget(name)
        self.store.spark.sql(f"OPTIMIZE {self.store.sql_name(name)} WHERE run_id = {quoted(self.run_id)}")
        self._changes[name] += 1

    def _stamped(self, rows: DataFrame, name: str) -> DataFrame:
        """Rows of a table with the columns that name the run."""
        stamps = {key: F.lit(value) for key, value in self._stamps(name).items()}
        return rows.withColumns(stamps).select(*stored_schema(name).names)

    def _stamps(self, name: str) -> dict[str, str | int | None]:
        """The values of the columns that name the run and its chain."""
        run: dict[str, str | int | None] = {"cluster": self.cluster, "run_id": self.run_id}
        if name not in WITH_CHAIN:
            return run
        return {
            **run,
            "chain": self.chain.name if self.chain else None,
            "night": self.chain.night if self.chain else None,
        }

    def _folder_of(self, name: str) -> str | None:
        return None if self.store.folder is None else f"{self.store.folder}/{name}"

    def _forget(self, name: str) -> None:
        """Clears what is known of a table that is written."""
        self._opened.pop((name, self._changes[name]), None)
        for known in (self._commits, self._held, self._rows):
            known.pop(name, None)

    def _save(self, name: str, frame: DataFrame, mode: str, *, commit_note: str = "") -> None:
        stored = _as_stored(self._stamped(conform(frame, TABLES[name]), name), stored_schema(name))
        if self.store.output is None and self.store.exists(name):
            self._write_to(stored, name, mode, commit_note)
            return
        writer = (
            stored.write.format("delta")
            .mode(mode)
            .option("mergeSchema", "true")
            .options(**{STATISTICS: ",".join(_statistics_of(name)), **options_of(name)}, **_commit_options(commit_note))
        )
        if mode == "overwrite":
            writer = writer.option("replaceWhere", self._replaced(name))
        try:
            self._commit(writer.partitionBy("run_id", *CATALOGUE[name].partitioned_by), name)
        except AnalysisException as error:
            if OTHER_PARTITIONS not in str(error):
                raise
            self._commit(writer.partitionBy("run_id"), name)  # the table was created by an older version
        if self.store.output is None:
            self._comment(name)

    @again_after_conflicts
    def _comment(self, name: str) -> None:
        """Describes a table of a catalog, which was just created. No option of a writer does this (Spark 4.2)."""
        self.store.spark.sql(f"COMMENT ON TABLE {self.store.sql_name(name)} IS {quoted(CATALOGUE[name].comment)}")

    @again_after_conflicts
    def _write_to(self, rows: DataFrame, name: str, mode: str, commit_note: str) -> None:
        """Writes to a table of a catalog. `saveAsTable` fails to add columns, and to write a third time (Spark 4.2,
        Delta 4.4)."""
        writer = rows.writeTo(f"{self.store.schema}.{name}").options(mergeSchema="true", **_commit_options(commit_note))
        if mode == "overwrite":
            writer.overwrite(F.expr(self._replaced(name)))
        else:
            writer.append()

    @again_after_conflicts
    def _commit(self, writer: DataFrameWriter, name: str) -> None:
        """Writes, and retries after a conflict with another audit. A failed commit leaves nothing in the table."""
        if self.store.output is None:
            writer.saveAsTable(f"{self.store.schema}.{name}")
        else:
            writer.save(f"{self.store.output}/{name}")
