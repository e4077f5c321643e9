"""Copies that show what is not in a log."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def ends_whole() -> Column:
    """Whether a copy was read to its end. Columns: tail."""
    return F.col("tail").isin("CLEAN", "ZEROS")


def sound_copies(coverage: DataFrame) -> DataFrame:
    """The rows of `coverage` of judged copies without damage."""
    return coverage.where(F.col("is_judged") & F.col("damaged_offset").isNull() & ends_whole())
