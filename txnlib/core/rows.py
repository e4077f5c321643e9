"""Rows of tables: those that are made of other rows, and the keys that several have or are asked by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

Made = TypeVar("Made")
Row = TypeVar("Row")
_LACKS: Final = object()


def row_of(of: Callable[..., Made], *given: object, **values: Any) -> Made:
    """A row of a dataclass: each field by its name, from `values`, else from the first of the given rows that has such
    a field."""
    for name in cast(Any, of).__dataclass_fields__:
        if name not in values:
            for row in given:
                if (value := getattr(row, name, _LACKS)) is not _LACKS:
                    values[name] = value
                    break
    return of(**values)


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """The rows by their key, in the order in which they came; of a key without any, an empty list."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class OnPartition:
    """A row about a partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class OfCopy(OnPartition):
    """A row about a copy of a partition."""

    source: str

    @property
    def copy(self) -> tuple[str, int, str]:
        return self.topic, self.partition, self.source


@dataclass(frozen=True, slots=True)
class OfProducer(OnPartition):
    """A row about a producer on a partition."""

    producer_id: int


@dataclass(frozen=True, slots=True)
class ProducerId:
    """A producer id, by which rows are asked for."""

    producer_id: int


@dataclass(frozen=True, slots=True)
class IdKey:
    """A transactional id."""

    transactional_id: str
