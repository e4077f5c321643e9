"""Rows of tables as dataclasses of the core, and back, without Spark.

A table that grows with the cluster is made by a function of the core from such rows. A dataclass lists the columns that
its function reads or writes. In the core, time is in epoch ms: the field of a TIMESTAMP `known_until` is
`known_until_ms`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import pyarrow as pa

from txnlib.core.instants import clock_ms
from txnlib.core.schema import TABLES, Array, Scalar, Struct, Type
from txnlib.readers.arrow_schemas import commented_schema

Typed = TypeVar("Typed")

MS: Final = "_ms"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US_PER_MS: Final = 1_000


@lru_cache
def hints_of(of: Any) -> dict[str, Any]:
    """The types of the fields of a dataclass."""
    hints = get_type_hints(of)
    return {field.name: hints[field.name] for field in fields(of)}


def of_optional(hint: Any) -> Any:
    """The type without `| None`; another type as it is."""
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
    """The rows of a table as dataclasses, each field from the column of its name. NULL is the field's default, or else
    None."""
    each, columns = fields(cast(Any, of)), []
    for field in each:
        column, read = rows[_column_of(field.name, rows.column_names)], _reader_of(of, field.name)
        default = None if field.default is MISSING else field.default
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
        values = column.to_pylist()
        if read is not None:
            values = [default if value is None else read(value) for value in values]
        elif default is not None:
            values = [default if value is None else value for value in values]
        columns.append(values)
    names = [field.name for field in each]
    return [of(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _reader_of(of: Any, name: str) -> Callable[[Any], Any] | None:
    """The function that makes the value of a field from a stored value; None if the stored value is used as it is."""
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
    values = {}
    for name, read in _readers(kind).items():
        value = row.get(name)
        if name not in row and name.endswith(MS) and (at := row.get(name.removesuffix(MS))) is not None:
            value = (at - _EPOCH) // timedelta(milliseconds=1)
        if value is not None:
            values[name] = read(value)
        elif of_optional(hints_of(kind)[name]) is not hints_of(kind)[name]:
            values[name] = None
    return of(**values)


def arrow_rows(name: str, rows: Iterable[object]) -> pa.Table:
    """Rows of the core as rows of a table of the catalogue. A column without a field is NULL.

    A field `last_timestamp_ms` makes the columns of both names, if there are both. Raises ValueError for a field
    without a column.
    """
    columns, made = TABLES[name].columns, list(rows)
    of = {field.name for field in fields(cast(Any, made[0]))} if made else set()
    sources = {
        column.name: next((each for each in (column.name, f"{column.name}{MS}") if each in of), None)
        for column in columns
    }
    if unknown := of - set(sources.values()):
        raise ValueError(f"no column for the field {', '.join(sorted(unknown))}")
    getters = {column: attrgetter(field) for column, field in sources.items() if field}
    schema = commented_schema(columns)
    arrays = []
    for column in columns:
        get, store, of_arrow = getters.get(column.name), _storing(column.type), schema.field(column.name).type
        if get is None:
            arrays.append(pa.nulls(len(made), of_arrow))
            continue
        values = map(get, made)
        arrays.append(pa.array(values if store is None else map(store, values), of_arrow, size=len(made)))
    return pa.Table.from_arrays(arrays, schema=schema)


@lru_cache
def _storing(kind: Type) -> Callable[[Any], Any] | None:
    """The function that makes a value for Arrow from a value of the core; None if Arrow takes the value as it is. A
    time that no clock shows becomes NULL."""
    match kind:
        case Scalar.TIMESTAMP:
            return lambda value: None if (ms := clock_ms(value)) is None else ms * _US_PER_MS
        case Scalar.STRING:
            return lambda value: value if value is None or type(value) is str else str(getattr(value, "value", value))
        case Scalar():
            return None
        case Array(element):
            each = _storing(element)
            return lambda values: None if values is None else [*values] if each is None else [*map(each, values)]
        case Struct(members):
            stored = [(member.name, _storing(member.type)) for member in members]

            @lru_cache
            def reads(of: Any) -> list[tuple[str, str, Callable[[Any], Any] | None]]:
                has = {*dir(of), *(each.name for each in fields(of))} if is_dataclass(of) else {*dir(of)}
                return [(name, name if name in has else f"{name}{MS}", store) for name, store in stored]

            def as_struct(value: Any) -> dict[str, Any] | None:
                if value is None:
                    return None
                given = [
                    (name, getattr(value, field), store) for name, field, store in reads(cast(Hashable, type(value)))
                ]
                return {name: each if store is None else store(each) for name, each, store in given}

            return as_struct


def plain(value: Any) -> Any:
    """A value of the core as Arrow takes it: dataclasses as dictionaries, tuples as lists, enums by value."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in hints_of(type(value))}
    return value
