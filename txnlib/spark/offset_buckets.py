"""Ranges of offsets that are summed before single batches are looked at."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

#: Offsets of a stretch: many enough that stretches are few, few enough that the batches of one are.
STRETCH_OFFSETS: Final = 8192


def stretch_of(offset: str) -> Column:
    """The number of the stretch that an offset lies in, as column `stretch`."""
    return F.floor(F.col(offset) / STRETCH_OFFSETS).alias("stretch")
