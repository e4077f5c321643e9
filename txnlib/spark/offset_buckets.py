"""Ranges of offsets that are aggregated before single batches are compared."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

#: Number of offsets per range: large enough that there are few ranges, small enough that a range has few batches.
STRETCH_OFFSETS: Final = 8192


def stretch_of(offset: str) -> Column:
    """The number of the range that contains an offset, as column `stretch`."""
    return F.floor(F.col(offset) / STRETCH_OFFSETS).alias("stretch")
