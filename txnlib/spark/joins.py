"""Queries over frames, and how small frames are joined with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.batch_runs import RUN_OFFSETS
from txnlib.spark.frames import is_embedded


def broadcast(frame: DataFrame) -> DataFrame:
    """The frame, marked to be sent whole to every task of a join: only what grows with the cluster."""
    return F.broadcast(frame)


def select(text: str, **relations: DataFrame) -> DataFrame:
    """The rows of a query over frames, which it names in braces.

    `sql` of Spark Connect lets the server plan the query at once, with all that it reads, and so each frame as often as
    frames are made of it.
    """
    spark: Any = next(iter(relations.values())).sparkSession
    if not is_embedded(spark):
        return cast(DataFrame, spark.sql(text, **relations))
    from pyspark.sql.connect.dataframe import DataFrame as Rows
    from pyspark.sql.connect.plan import SQL, SubqueryAlias
    from pyspark.sql.connect.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    named = formatter.format(text, **relations)
    plan = SQL(named, views=[SubqueryAlias(frame._plan, name) for frame, name in formatter._temp_views])
    return cast(DataFrame, Rows(plan, spark))


def with_columns(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The frame, with columns as SQL."""
    return frame.withColumns({name: F.expr(value) for name, value in columns.items()})


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


def quantile(value: str, share: float) -> str:
    """The lowest value with at least this share of all values at or below it, as SQL of an aggregate; NULL without any.

    `percentile_approx` is that on Spark; the embedded engine interpolates. One value for each of few groups is kept.
    """
    return f"get(sort_array(collect_list({value})), CAST(ceil({share} * count({value})) AS INT) - 1)"
