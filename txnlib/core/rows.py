"""Rows of tables: how one is made of others, and the keys that several tables share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

Made = TypeVar("Made")
Row = TypeVar("Row")
_LACKS: Final = object()


def row_of(of: Callable[..., Made], *given: object, **values: Any) -> Made:
    """An instance of the dataclass `of`. Each field comes from `values`, else from the first row in `given` that has a
    field of that name."""
    for name in cast(Any, of).__dataclass_fields__:
        if name not in values:
            for row in given:
                if (value := getattr(row, name, _LACKS)) is not _LACKS:
                    values[name] = value
                    break
    return of(**values)


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Key -> its rows, in the order in which they came. A key without rows gives an empty list."""
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
    """A producer id, as the key of a question about rows."""

    producer_id: int


@dataclass(frozen=True, slots=True)
class IdKey:
    """A transactional id, as the key of a question about rows."""

    transactional_id: str
