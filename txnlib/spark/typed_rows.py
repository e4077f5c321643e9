"""Dataclasses of the core as Spark structs, and back.

The fields of a class are listed once, in the class.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, LongType, StringType, StructField, StructType

from txnlib.core.verdicts.dossier import OF_CLUSTER

Typed = TypeVar("Typed")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache
def struct_of(of: Any) -> StructType:
    """The Spark type of a dataclass: int is LONG, an enum is its value, a tuple is an array. Everything may be NULL.

    Fields that tables of the cluster show (`dossier.OF_CLUSTER`) are no part of it.
    """
    return StructType([StructField(name, _data_type(hint)) for name, hint in _hints(of).items()])


def _data_type(hint: Any) -> DataType:
    hint = _of_optional(hint)
    if get_origin(hint) is tuple:
        return ArrayType(_data_type(get_args(hint)[0]))
    if is_dataclass(hint):
        return struct_of(hint)  # type: ignore[arg-type]
    if issubclass(hint, bool):
        return BooleanType()
    return StringType() if issubclass(hint, str | Enum) else LongType()


@lru_cache
def _hints(of: Any) -> dict[str, Any]:
    hints = get_type_hints(of)
    return {field.name: hints[field.name] for field in fields(of) if field.metadata != OF_CLUSTER}


def _of_optional(hint: Any) -> Any:
    """The type itself, of one that may be None."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not types.NoneType)
    return hint


def struct(of: Any, given: Mapping[str, str] | None = None) -> Column:
    """`struct_sql` as a column."""
    return F.expr(struct_sql(of, given))


def struct_sql(of: Any, given: Mapping[str, str] | None = None) -> str:
    """The fields of a dataclass as one struct, as SQL. A field that is not given is the column of its name."""
    columns = {name: name for name in _hints(of)} | dict(given or {})
    unknown = columns.keys() - _hints(of).keys()
    if unknown:
        raise ValueError(f"{of.__name__} has no field {', '.join(sorted(unknown))}")
    values = [f"'{field.name}', CAST({columns[field.name]} AS {field.dataType.simpleString()})" for field in struct_of(of)]
    return f"named_struct({', '.join(values)})"


def typed(of: type[Typed], row: Mapping[str, Any]) -> Typed:
    """A row, as a dictionary, as a dataclass. NULL is None where a field may be None, and else its default."""
    kind: Any = of
    readers = _readers(kind)
    values = {name: read(value) for name, read in readers.items() if (value := _value(row, name)) is not None}
    absent = {name for name, hint in _hints(kind).items() if name not in values and _is_optional(hint)}
    return of(**values | dict.fromkeys(absent))


def _value(row: Mapping[str, Any], name: str) -> Any:
    """The value of a field: that of its name, or, of `…_ms`, the milliseconds of a timestamp."""
    if name in row or not name.endswith("_ms"):
        return row.get(name)
    at = row.get(name.removesuffix("_ms"))
    return None if at is None else (at - _EPOCH) // timedelta(milliseconds=1)


def reader_of(of: Any, name: str) -> Callable[[Any], Any] | None:
    """What makes a value of a field of a dataclass; None if it is stored as it is."""
    hint = _of_optional(_hints(of)[name])
    return _readers(of)[name] if get_origin(hint) is tuple or is_dataclass(hint) or issubclass(hint, Enum) else None


@lru_cache
def _readers(of: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _reader(_of_optional(hint)) for name, hint in _hints(of).items()}


def _reader(hint: Any) -> Callable[[Any], Any]:
    if get_origin(hint) is tuple:
        read = _reader(_of_optional(get_args(hint)[0]))
        return lambda values: tuple(read(value) for value in values if value is not None)
    if is_dataclass(hint):
        return lambda row: typed(hint, row)  # type: ignore[arg-type]
    return hint if issubclass(hint, Enum) else lambda value: value


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def plain(value: Any) -> Any:
    """A value of the core as Arrow takes it: dataclasses as dictionaries, tuples as lists, enums by value."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _hints(type(value))}
    return value
