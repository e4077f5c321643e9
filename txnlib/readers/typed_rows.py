"""Rows of tables as dataclasses of the core, and back, without Spark.

A table that grows with the cluster is made by a function of the core from such rows. A dataclass lists the columns that its
function reads or writes. In the core, time is in epoch ms: the field of a TIMESTAMP `known_until` is `known_until_ms`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import pyarrow as pa

from txnlib.core.instants import clock_ms
from txnlib.core.schema import TABLES, Array, Column, Scalar, Struct, Type
from txnlib.core.verdicts.dossier import OF_CLUSTER
from txnlib.readers.arrow_schemas import commented_schema

Typed = TypeVar("Typed")

MS: Final = "_ms"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache
def hints_of(of: Any) -> dict[str, Any]:
    """The types of the fields of a dataclass, but for those that tables of the cluster show (`dossier.OF_CLUSTER`)."""
    hints = get_type_hints(of)
    return {field.name: hints[field.name] for field in fields(of) if field.metadata != OF_CLUSTER}


def of_optional(hint: Any) -> Any:
    """The type itself, of one that may be None."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not types.NoneType)
    return hint


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


def reader_of(of: Any, name: str) -> Callable[[Any], Any] | None:
    """What makes a value of a field of a dataclass; None if it is stored as it is."""
    hint = of_optional(hints_of(of)[name])
    return _readers(of)[name] if get_origin(hint) is tuple or is_dataclass(hint) or issubclass(hint, Enum) else None


@lru_cache
def _readers(of: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _reader(of_optional(hint)) for name, hint in hints_of(of).items()}


def _reader(hint: Any) -> Callable[[Any], Any]:
    if get_origin(hint) is tuple:
        read = _reader(of_optional(get_args(hint)[0]))
        return lambda values: tuple(read(value) for value in values if value is not None)
    if is_dataclass(hint):
        return lambda row: typed(hint, row)  # type: ignore[arg-type]
    return hint if issubclass(hint, Enum) else lambda value: value


def typed(of: type[Typed], row: Mapping[str, Any]) -> Typed:
    """A row, as a dictionary, as a dataclass. NULL is None where a field may be None, and else its default."""
    kind: Any = of
    readers = _readers(kind)
    values = {name: read(value) for name, read in readers.items() if (value := _value(row, name)) is not None}
    absent = {name for name, hint in hints_of(kind).items() if name not in values and _is_optional(hint)}
    return of(**values | dict.fromkeys(absent))


def _value(row: Mapping[str, Any], name: str) -> Any:
    """The value of a field: that of its name, or, of `…_ms`, the milliseconds of a timestamp."""
    if name in row or not name.endswith("_ms"):
        return row.get(name)
    at = row.get(name.removesuffix("_ms"))
    return None if at is None else (at - _EPOCH) // timedelta(milliseconds=1)


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def arrow_rows(name: str, rows: Iterable[object]) -> pa.Table:
    """Rows of the core as rows of a table of the catalogue. A column without a field is NULL.

    Raises ValueError for a field without a column.
    """
    columns, made = TABLES[name].columns, list(rows)
    getters = _getters(columns, type(made[0])) if made else {}
    schema = commented_schema(columns)
    arrays = [
        pa.array([_stored(column.type, get(row)) for row in made], schema.field(column.name).type)
        if (get := getters.get(column.name))
        else pa.nulls(len(made), schema.field(column.name).type)
        for column in columns
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


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


def plain(value: Any) -> Any:
    """A value of the core as Arrow takes it: dataclasses as dictionaries, tuples as lists, enums by value."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in hints_of(type(value))}
    return value
