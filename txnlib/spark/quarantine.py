"""Which stretches of the capture could not be read, and why?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.coverage import PRINTED
from txnlib.spark.schemas import COPY, QUARANTINE, conform


def quarantine(segments: DataFrame) -> DataFrame:
    """One row per unreadable stretch of bytes or text. Columns: QUARANTINE."""
    once = segments.where(F.col("kind") != PRINTED)
    return conform(once.select(*COPY, "path", F.inline("unreadable")), QUARANTINE)
