"""Queries over frames, and how small frames are joined with others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, Final, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.batch_runs import BATCHES, OF_BATCH, RUN_OFFSETS
from txnlib.spark.frames import is_embedded
from txnlib.spark.schemas import TABLES


def broadcast(frame: DataFrame) -> DataFrame:
    """The frame, marked to be sent whole to every task of a join: only what grows with the cluster."""
    return F.broadcast(frame)


#: Numbers that make the names of frames in queries unique.
_NUMBERS: Final = count()


def select(text: str, **relations: DataFrame) -> DataFrame:
    """The rows of a query over frames, which it names in braces.

    On the embedded engine, not by `sql` of Spark Connect: its server plans each query at once, together with all
    queries that it reads, so it would plan a frame again for every frame that is made of it.
    """
    spark: Any = next(iter(relations.values())).sparkSession
    if not is_embedded(spark):
        return cast(DataFrame, spark.sql(text, **relations))
    from pyspark.sql.connect.dataframe import DataFrame as Rows
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    # `sql` would send a frame as often as the query names it.
    aliases = {name: f"{name}_{next(_NUMBERS)}" for name in relations}
    views = [SubqueryAlias(cast(Any, frame)._plan, aliases[name]) for name, frame in relations.items()]
    plan = SQL(text.format(**aliases), views=views)
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
    """The number of the bucket that contains an offset, as SQL. A division with a fraction would round up beyond
    2^53."""
    return f"{offset} div {BUCKET_OFFSETS}"


def block_of(offset: str) -> str:
    """The number of the block that contains an offset, as SQL."""
    return f"{offset} div {BLOCK_OFFSETS}"


def first_block() -> str:
    """The number of the first block of column `bucket`, as SQL."""
    return f"bucket * {BUCKET_OFFSETS // BLOCK_OFFSETS}"


def quantile(value: str, share: float) -> str:
    """The lowest value that at least this share of all values do not exceed, as SQL of an aggregate; NULL without any
    value.

    Spark's `percentile_approx` returns this value, but the embedded engine's interpolates. Collects all values of a
    group.
    """
    return f"get(sort_array(collect_list({value})), CAST(ceil({share} * count({value})) AS INT) - 1)"


# ---- Runs of batches

#: The type of the batches of a run, as SQL.
RUN_BATCHES: Final = TABLES["record_batches"]["run_batches"].dataType.simpleString()


def single_batches(rows: DataFrame, where: str, *, has: Collection[str] = TABLES["record_batches"].names) -> DataFrame:
    """The rows. Each run for which `where` is true is replaced by its single batches. Columns: those of `rows`.

    `rows` are rows of `record_batches`, with other columns at will. `has`: the columns of that table that they have.
    """
    return _divided(rows, f"if(coalesce({where}, FALSE), run_batches, NULL)", has)


def end_batches(rows: DataFrame) -> DataFrame:
    """The rows. Each run is replaced by its first and its last batch. Columns: those of `rows`, which has all of
    `record_batches`."""
    return _divided(
        rows, f"array(get(run_batches, 0), get(run_batches, {BATCHES} - 1))", TABLES["record_batches"].names
    )


def _divided(rows: DataFrame, batches: str, has: Collection[str]) -> DataFrame:
    """The rows, with some batches in place of their runs. `batches`: SQL for the batches of a run to keep; NULL leaves
    the run as it is.

    A row is repeated for each batch, so it must no longer have all of them.
    """
    own = rows.withColumn("_batches", F.expr(f"if({BATCHES} > 1, {batches}, NULL)"))
    rest = own.withColumn("run_batches", F.expr("if(_batches IS NULL, run_batches, NULL)"))
    each = rest.withColumn("_batch", F.expr("explode_outer(_batches)"))
    values = {name: f"if(_batch IS NULL, {name}, {value})" for name, value in OF_BATCH.items() if name in has}
    return with_columns(each, values).drop("_batches", "_batch")
