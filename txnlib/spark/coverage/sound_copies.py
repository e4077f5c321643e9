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


def shows_absence() -> Column:
    """Whether a copy of a coordinator partition also proves which ids have no record in it."""
    is_console = F.col("source").startswith("console:")
    # A compacted log keeps the name of its first segment.
    begins = F.coalesce(F.greatest("log_start_offset", "read_from_offset"), F.lit(0)) == 0
    is_sound = (
        F.col("is_decoded") & F.col("damaged_offset").isNull() & ~F.coalesce("tail", F.lit("")).isin("CORRUPT", "EMPTY_OR_CUT")
    )
    return F.coalesce((F.col("status") != "MISSING") & is_sound & begins & ~is_console, F.lit(False))


def with_empty_logs(copies: DataFrame) -> DataFrame:
    """Each copy; a text of nothing but first lines is whole where a high watermark confirms that the log is empty."""
    is_confirmed = (F.col("tail") == "EMPTY_OR_CUT") & (F.col("noted_high_watermark") == F.col("survives_until"))
    return copies.withColumn("tail", F.when(is_confirmed, "CLEAN").otherwise(F.col("tail")))
