"""Buckets of offsets, which are aggregated before single batches are compared."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from txnlib.core.batch_runs import RUN_OFFSETS

#: Offsets per bucket: enough that there are few buckets, and few enough that a bucket has few batches. A run of batches is in one.
BUCKET_OFFSETS: Final = RUN_OFFSETS


def bucket_of(offset: str) -> Column:
    """The number of the bucket that contains an offset, as column `bucket`."""
    # Not as a fraction: beyond 2^53, that would round into the next bucket.
    return F.expr(f"{offset} div {BUCKET_OFFSETS}").alias("bucket")
