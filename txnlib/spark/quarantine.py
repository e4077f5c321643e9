"""Which stretches of the capture could not be read, and why?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.schemas import COPY, QUARANTINE, conform


def quarantine(segments: DataFrame) -> DataFrame:
    """One row per unreadable stretch of bytes or text. Columns: QUARANTINE."""
    return conform(segments.select(*COPY, "path", F.inline("unreadable")), QUARANTINE)
