"""Rows of tables as dataclasses of the core, and back.

A table that grows with the cluster is made by a function of the core from such rows. A dataclass lists the columns that its
function reads or writes. In the core, time is in epoch ms: the field of a TIMESTAMP `known_until` is `known_until_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from txnlib.core.instants import clock_ms
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema import Array, Column, Scalar, Struct, Type
from txnlib.readers.arrow_schemas import commented_schema
from txnlib.spark.local_rows import arrow_schema, local_relation, relaxed
from txnlib.spark.python_tasks import begin_task
from txnlib.spark.schemas import TABLES
from txnlib.spark.typed_rows import plain, reader_of, struct_of

Typed = TypeVar("Typed")

MS: Final = "_ms"
#: Most rows of a log table's selection that the driver hands to the core, at some 20 µs each.
MOST_ON_DRIVER: Final = 20_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def columns_read(of: Any, known: Sequence[str]) -> list[str]:
    """The columns that a dataclass reads, among those of a table. Raises ValueError for a field without a column."""
    return [_column_of(field.name, known) for field in fields(of)]


def _column_of(field: str, known: Sequence[str]) -> str:
    if field in known:
        return field
    if field.endswith(MS) and field.removesuffix(MS) in known:
        return field.removesuffix(MS)
    raise ValueError(f"no column for the field {field}")


def typed_rows(rows: pa.Table, of: Callable[..., Typed]) -> list[Typed]:
    """The rows of a table as dataclasses, each field from the column of its name. NULL is the field's default, or else None."""
    each = fields(cast(Any, of))
    columns = [rows[_column_of(field.name, rows.column_names)] for field in each]
    values = [_values(column, reader_of(of, field.name), _default(field)) for column, field in zip(columns, each, strict=True)]
    names = [field.name for field in each]
    return [of(**dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]


def _default(field: Field[Any]) -> Any:
    return None if field.default is MISSING else field.default


def _values(column: pa.ChunkedArray, read: Callable[[Any], Any] | None, default: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    values = column.to_pylist()
    if read is not None:
        return [default if value is None else read(value) for value in values]
    return values if default is None else [default if value is None else value for value in values]


def rows_of(given: DataFrame | pa.Table, of: Callable[..., Typed]) -> list[Typed]:
    """The rows of a frame or of an Arrow table as dataclasses, of which only the columns that they need are read."""
    return typed_rows(_read_by(of, given).toArrow() if isinstance(given, DataFrame) else given, of)


def answers(
    spark: SparkSession, transform: Callable[[DataFrame], DataFrame | None], hint: Any
) -> Callable[[Sequence[object]], list[Any]]:
    """How a function of the core asks about few places in a log: rows of questions in, rows of answers out, in one query.

    `transform`: from the questions, whose columns are the fields of their dataclass; None if no row can answer. `hint`: the type
    of the parameter, `Callable[[Sequence[Question]], Sequence[Answer]]`. Without a question, nothing is read.
    """
    (asked,), (of,) = get_args(get_args(hint)[0][0]), get_args(get_args(hint)[1])
    schema = struct_of(asked)

    def answer(questions: Sequence[object]) -> list[Any]:
        if not questions:
            return []
        rows = pa.Table.from_pylist([plain(each) for each in questions], schema=arrow_schema(schema))
        answered = transform(local_relation(spark, rows, schema))
        return [] if answered is None else rows_of(answered, of)

    return answer


def arrow_rows(name: str, rows: Iterable[object]) -> pa.Table:
    """Rows of the core as rows of a table of the catalogue. A column without a field is NULL.

    Raises ValueError for a field without a column.
    """
    columns, made = CATALOGUE[name].columns, list(rows)
    getters = _getters(columns, type(made[0])) if made else {}
    schema = commented_schema(columns)
    arrays = [
        pa.array([_stored(column.type, get(row)) for row in made], schema.field(column.name).type)
        if (get := getters.get(column.name))
        else pa.nulls(len(made), schema.field(column.name).type)
        for column in columns
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows_by_core(
    name: str,
    selected: DataFrame,
    of: Callable[..., Typed],
    make: Callable[[Iterable[Typed]], Iterable[object]],
    *,
    most_on_driver: int = MOST_ON_DRIVER,
) -> pa.Table | DataFrame:
    """Rows of a table that a function of the core makes from what Spark selected: on the driver, or in tasks if that is much.

    So `make` may not compare rows with each other. `most_on_driver`: above it, tasks do it.
    """
    selected = _read_by(of, selected)
    rows = selected.limit(most_on_driver + 1).toArrow()
    if rows.num_rows <= most_on_driver:
        return arrow_rows(name, make(typed_rows(rows, of)))

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            yield from arrow_rows(name, make(typed_rows(pa.Table.from_batches([batch]), of))).to_batches()

    return selected.mapInArrow(made, TABLES[name])


def _read_by(of: Any, selected: DataFrame) -> DataFrame:
    """The columns of a frame that a dataclass reads."""
    return relaxed(selected.select(*columns_read(of, selected.columns)))


def _getters(columns: Sequence[Column], of: Any) -> Mapping[str, Callable[[Any], Any]]:
    known = [column.name for column in columns]
    return {_column_of(field.name, known): _getter(field.name) for field in fields(of)}


def _getter(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def _stored(kind: Type, value: Any) -> Any:
    """A value of the core as Arrow takes it. A time that no clock shows is NULL."""
    if value is None:
        return None
    match kind:
        case Scalar.TIMESTAMP:
            ms = clock_ms(value)
            return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
        case Scalar.STRING:
            return str(getattr(value, "value", value))
        case Scalar():
            return value
        case Array(element):
            return [_stored(element, each) for each in value]
        case Struct(members):
            return {member.name: _stored(member.type, _member(value, member.name)) for member in members}


def _member(value: Any, name: str) -> Any:
    return getattr(value, name) if hasattr(value, name) else getattr(value, f"{name}{MS}")
