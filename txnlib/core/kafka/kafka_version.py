"""Versions of Kafka, as operators write them."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile("[0-9]{1,9}")


def is_from(first: tuple[int, int], kafka_version: str | None) -> bool | None:
    """Whether a version is at least `first`, (major, minor); None if unknown."""
    numbers = [int(part) for part in (kafka_version or "").split(".")[:2] if _NUMBER.fullmatch(part)]
    return None if len(numbers) < 2 else tuple(numbers) >= first
