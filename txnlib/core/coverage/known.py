"""The lowest and the highest of those values that are known."""

from __future__ import annotations

from collections.abc import Iterable


def lowest(values: Iterable[int | None]) -> int | None:
    """The lowest value that is not None; None if there is none."""
    return min((value for value in values if value is not None), default=None)


def highest(values: Iterable[int | None]) -> int | None:
    """The highest value that is not None; None if there is none."""
    return max((value for value in values if value is not None), default=None)


def is_above(value: int | None, other: int | None) -> bool:
    """Whether both are known, and the first is above the other."""
    return value is not None and other is not None and value > other
