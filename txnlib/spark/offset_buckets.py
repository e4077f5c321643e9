"""Buckets of offsets, which are aggregated before single batches are compared."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

#: Offsets per bucket: enough that there are few buckets, and few enough that a bucket has few batches.
BUCKET_OFFSETS: Final = 8192


def bucket_of(offset: str) -> Column:
    """The number of the bucket that contains an offset, as column `bucket`."""
    return F.floor(F.col(offset) / BUCKET_OFFSETS).alias("bucket")
