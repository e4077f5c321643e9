"""Delta tables of a path, kept without a JVM: the embedded engine reads them, delta-rs commits to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from deltalake import ColumnProperties, DeltaTable, Schema, WriterProperties, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from txnlib.core.schema import TABLES
from txnlib.core.schema.columns import Table
from txnlib.core.schema.schema_number import Shape, contains, shape_of, stored_shape
from txnlib.engine.tables import (
    AUDIT_RUNS,
    CONSTRAINT,
    STATISTICS,
    Commit,
    Rows,
    constraints_of,
    statistics_of,
    stored_columns,
)
from txnlib.readers.arrow_schemas import arrow_schema, commented_schema
from txnlib.spark.frames import batches_of
from txnlib.spark.schemas import spark_schema
from txnlib.store_options import store_options
from txnlib.version import SCHEMA_NUMBER, SCHEMA_PROPERTY

#: Hours for which files without a row of any table stay, so that a reader that began before can end. Delta's default.
_KEPT_HOURS: Final = 7 * 24
#: Offsets and instants differ little from row to row: so they take a third of the bytes.
_DIFFERENCES: Final = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
#: The rows that are held until they are written. A row of `record_batches` may be a run of dozens of batches.
_ROWS_OF_A_GROUP: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class DeltaRsTables:
    """The tables under a folder or the URI of a store."""

    spark: SparkSession
    output: str
    #: The same folder, by a path that the engine can read.
    readable: str
    #: Tables that were seen; none of them goes away.
    _seen: set[str] = field(default_factory=set, repr=False, compare=False)

    def exists(self, name: str) -> bool:
        if name not in self._seen and DeltaTable.is_deltatable(self._path(name), self._options):
            self._seen.add(name)
        return name in self._seen

    def read(self, name: str) -> DataFrame:
        """The rows of all runs. The schema is given because the stored one has comments: the engine takes them for a
        difference between columns (Sail 0.7.2: "physical input schema should be the same")."""
        return (
            self.spark.read.schema(spark_schema(stored_columns(name))).format("delta").load(f"{self.readable}/{name}")
        )

    def if_any(self, made: DataFrame) -> Rows | None:
        batches = (each for each in batches_of(made) if each.num_rows)
        first = next(batches, None)
        return None if first is None else chain([first], batches)

    def write(self, name: str, made: Rows, stamps: Mapping[str, Any], *, replaced: str | None) -> Commit:
        # Without comments: a table may have others, of another version, and delta-rs would not merge them.
        schema = arrow_schema(stored_columns(name))
        counted = _Counted(_batches(made), stamps, schema)
        how: dict[str, Any] = {"mode": "append"} if replaced is None else {"mode": "overwrite", "predicate": replaced}
        rows = pa.RecordBatchReader.from_batches(schema, iter(counted))
        table = self._opened(name)
        if name == AUDIT_RUNS and SCHEMA_PROPERTY not in table.metadata().configuration:
            self.note_number()
            table = self._at(name)
        write_deltalake(table, rows, writer_properties=_properties(schema), **how)
        return Commit(counted.rows)

    def noted_number(self) -> str | None:
        return self._at(AUDIT_RUNS).metadata().configuration.get(SCHEMA_PROPERTY)

    def shape(self, name: str) -> Shape:
        return stored_shape(json.loads(self._at(name).schema().to_json()))

    def extend(self, name: str, *, is_constrained_anew: bool) -> None:
        table, shape = self._at(name), self.shape(name)
        lacking = [each for each in stored_columns(name) if not contains(shape, shape_of([each]))]
        if lacking:
            table.alter.add_columns(list(Schema.from_arrow(commented_schema(lacking)).fields))
        if is_constrained_anew:
            constraints = [key for key in table.metadata().configuration if key.startswith(CONSTRAINT)]
            for key in constraints:
                self._at(name).alter.drop_constraint(key.removeprefix(CONSTRAINT))
            self._at(name).alter.add_constraint(constraints_of(name))

    def note_number(self) -> None:
        noted = {SCHEMA_PROPERTY: str(SCHEMA_NUMBER)}
        self._at(AUDIT_RUNS).alter.set_table_properties(noted, raise_if_not_exists=False)

    def delete(self, name: str, condition: str) -> None:
        self._at(name).delete(condition)

    def compact(self, name: str, run_id: str) -> None:
        properties = _properties(arrow_schema(stored_columns(name)))
        table = self._at(name)
        table.optimize.compact(partition_filters=[("run_id", "=", run_id)], writer_properties=properties)

    def vacuum(self, name: str) -> None:
        self._at(name).vacuum(_KEPT_HOURS, dry_run=False)

    def _path(self, name: str) -> str:
        return f"{self.output}/{name}"

    def _at(self, name: str) -> DeltaTable:
        """The table as it is now."""
        return DeltaTable(self._path(name), storage_options=self._options)

    @property
    def _options(self) -> dict[str, str]:
        return store_options(self.output)

    def _opened(self, name: str) -> DeltaTable:
        """The table, created with its comments and constraints if it is not there."""
        if self.exists(name):
            return self._at(name)
        about: Table = TABLES[name]
        table = DeltaTable.create(
            self._path(name),
            commented_schema(stored_columns(name)),
            mode="ignore",
            description=about.comment,
            partition_by=["run_id"],
            configuration={STATISTICS: ",".join(statistics_of(name))},
            storage_options=self._options,
        )
        table.alter.add_constraint(constraints_of(name))
        self._seen.add(name)
        return table


def _properties(schema: pa.Schema) -> WriterProperties:
    """How columns are stored."""
    numbers = [each.name for each in schema if pa.types.is_integer(each.type) or pa.types.is_timestamp(each.type)]
    return WriterProperties(column_properties=dict.fromkeys(numbers, _DIFFERENCES), max_row_group_size=_ROWS_OF_A_GROUP)


def _batches(made: Rows) -> Iterator[pa.RecordBatch]:
    if isinstance(made, pa.Table):
        return iter(made.to_batches())
    return batches_of(made) if isinstance(made, DataFrame) else made


class _Counted:
    """Batches with the columns that name the run, and with the types that are stored; counts their rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch], stamps: Mapping[str, Any], schema: pa.Schema) -> None:
        self.rows = 0
        self._batches, self._stamps, self._schema = batches, stamps, schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield pa.RecordBatch.from_arrays([self._column(batch, each) for each in self._schema], schema=self._schema)

    def _column(self, batch: pa.RecordBatch, column: pa.Field) -> pa.Array:
        if column.name in self._stamps:
            return pa.repeat(pa.scalar(self._stamps[column.name], column.type), batch.num_rows)
        values = batch.column(column.name)
        return values if values.type == column.type else values.cast(column.type)
