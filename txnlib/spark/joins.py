"""Queries over frames, and how small frames are joined with others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.core.batch_runs import RUN_OFFSETS
from txnlib.spark.local_rows import setting

#: The setting that stops broadcasts, and its value. `delta.tuning` sets it for a small audit.
BROADCAST_LIMIT: Final = "spark.sql.autoBroadcastJoinThreshold"
NEVER: Final = "-1"


def broadcast(frame: DataFrame, *, is_small: bool = True) -> DataFrame:
    """The frame, marked to be sent whole to every task of a join.

    In a session without broadcasts, it is not marked. All rows of a small audit are in one partition, so a join needs
    neither a broadcast, which is a job of its own, nor a shuffle. `is_small`: whether it is, if that was found out.
    """
    return F.broadcast(frame) if is_small and not _is_stopped(frame.sparkSession) else frame


def select(text: str, *, is_small: bool = True, **relations: DataFrame) -> DataFrame:
    """The rows of a query over frames, which it names in braces.

    In a session without broadcasts, and if the frames are not small, its BROADCAST hints are left out.
    """
    spark, named = next(iter(relations.values())).sparkSession, dict[str, Any](relations)
    return spark.sql(text if is_small and not _is_stopped(spark) else _HINT.sub("", text), **named)


def with_columns(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The frame, with columns as SQL."""
    return frame.withColumns({name: F.expr(value) for name, value in columns.items()})


#: The hint of a SELECT that sends relations whole to every task of a join.
_HINT: Final = re.compile(r"/\*\+ BROADCAST\([^)]*\) \*/")


def _is_stopped(spark: SparkSession) -> bool:
    return setting(spark, BROADCAST_LIMIT) == NEVER


#: Offsets per bucket: enough that there are few buckets, and few enough that a bucket has few batches. A run of batches
#: is in one.
BUCKET_OFFSETS: Final = RUN_OFFSETS
#: Offsets per block of a bucket: so few that looking through all points of a block takes no time.
BLOCK_OFFSETS: Final = 64


def bucket_of(offset: str) -> str:
    """The number of the bucket that contains an offset, as SQL. As a fraction, it would round into the next one beyond
    2^53."""
    return f"{offset} div {BUCKET_OFFSETS}"


def block_of(offset: str) -> str:
    """The number of the block that contains an offset, as SQL."""
    return f"{offset} div {BLOCK_OFFSETS}"


def first_block() -> str:
    """The number of the first block of column `bucket`, as SQL."""
    return f"bucket * {BUCKET_OFFSETS // BLOCK_OFFSETS}"
