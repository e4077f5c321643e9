"""Columns and tables as plain data, and what several tables share.

A type is a scalar, a struct or an array. Constraints are SQL conditions, which a row meets if they are true or NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints


class Scalar(Enum):
    STRING = "string"
    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"


STRING, INT, LONG, BOOLEAN, TIMESTAMP = Scalar


@dataclass(frozen=True, slots=True)
class Array:
    element: Type


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Column, ...]


Type = Scalar | Array | Struct


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a field of a struct. Only columns of tables have a comment."""

    name: str
    type: Type
    comment: str = ""
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table, as a run makes it; `engine.store` adds the columns that name the run."""

    comment: str
    columns: tuple[Column, ...]
    #: Name of a CHECK constraint -> condition on every row.
    checks: Mapping[str, str] = field(default_factory=dict)
    #: View -> the columns that it shows, the most important first. Those behind a bar are for programs and `--wide`.
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def struct(**fields: Type) -> Struct:
    return Struct(tuple(Column(name, kind) for name, kind in fields.items()))


def type_of(hint: Any) -> Type:
    """The type of a field of the core: an int is LONG, a tuple is an array, a dataclass is a struct of its fields."""
    if isinstance(hint, UnionType):
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is tuple:
        return Array(type_of(get_args(hint)[0]))
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return struct(**{each.name: type_of(hints[each.name]) for each in fields(hint)})
    return BOOLEAN if issubclass(hint, bool) else LONG if issubclass(hint, int) else STRING


#: What identifies a partition, a copy of it, a producer on it, and an open transaction of that producer.
TOPIC_PARTITION: Final = ("topic", "partition")
COPY: Final = (*TOPIC_PARTITION, "source")
PRODUCER: Final = (*TOPIC_PARTITION, "producer_id")
OPEN_TRANSACTION: Final = (*PRODUCER, "start_offset")

PARTITION_COLUMNS: Final = (
    Column("topic", STRING, "Topic of the partition."),
    Column("partition", INT, "Number of the partition."),
)
COPY_COLUMNS: Final = (
    *PARTITION_COLUMNS,
    Column("source", STRING, "Copy: raw or text, and the log directory in the capture."),
)
AS_OF: Final = Column("as_of", TIMESTAMP, "Instant of the audit: ages and verdicts are as of then.")
#: Partitions of a transaction.
PARTITION_LIST: Final = Array(struct(topic=STRING, partition=INT))


def is_one_of(column: str, *values: str) -> str:
    """The condition that a column has one of these values."""
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


def are_present(*columns: str) -> str:
    """The condition that no column is NULL."""
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)
