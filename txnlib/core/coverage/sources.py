"""The names in the source of a copy.

`raw:1/first` was read from segments in the folder `1/first` of the input, `text:…` from dumps of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final


def lowest(values: Iterable[int | None]) -> int | None:
    """The lowest value that is not None; None if there is none."""
    return min((value for value in values if value is not None), default=None)


def highest(values: Iterable[int | None]) -> int | None:
    """The highest value that is not None; None if there is none."""
    return max((value for value in values if value is not None), default=None)


def is_above(value: int | None, other: int | None) -> bool:
    """Whether both are known, and the first is above the other."""
    return value is not None and other is not None and value > other


# ---- Brokers of sources


Place = tuple[str, int]
CopyKey = tuple[str, int, str]

#: The leader of a partition without one.
NO_LEADER: Final = "-1"
_NUMBER: Final = re.compile("[0-9]+")
_NO_NAMES: Final = (".", "..", "")


def names_of(source: str) -> list[str]:
    """The names of folders in a source."""
    return [name for name in source.partition(":")[2].replace(":", "/").split("/") if name not in _NO_NAMES]


def broker_of(source: str) -> str | None:
    """The broker that a source was copied from; None if its folder has no name.

    The first number in the folder's path, because `1/2` is the second log directory of broker 1; else the last name in it.
    """
    names = names_of(source)
    return next(filter(is_broker_id, names), names[-1] if names else None)


def is_broker_id(name: str | None) -> bool:
    """Whether a name is the id of a broker, and not a name that somebody gave to a folder."""
    return name is not None and _NUMBER.fullmatch(name) is not None


def place_in(source: str) -> str:
    """The last two names in a source: `1/first` for the coordinators that were copied from broker 1 before the partitions."""
    return "/".join(source.replace(":", "/").split("/")[-2:])
