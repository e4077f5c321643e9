"""Frames of rows in the driver, and the rows of frames as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from tempfile import mkstemp
from typing import Any, cast
from weakref import finalize

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote


def is_embedded(spark: SparkSession) -> bool:
    """Whether the session is one of the embedded engine."""
    return getattr(spark, "is_embedded", False)


def local_rows(spark: SparkSession, rows: Iterable[Sequence[object]], schema: StructType | str) -> DataFrame:
    """A frame of a few rows. `schema`: also as text (`topic string, partition int`)."""
    columns = schema if isinstance(schema, StructType) else cast(StructType, StructType.fromDDL(schema))
    named = [dict(zip(columns.names, row, strict=True)) for row in rows]
    return frame_of(spark, pa.Table.from_pylist(named, schema=arrow_schema(columns)), columns)


def frame_of(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Rows as a frame with the columns of a schema. Its types come from Arrow.

    The embedded engine gives columns of a Spark schema metadata, and does not compare them with columns without.
    """
    return _frame(spark, rows.select(schema.names).cast(arrow_schema(schema)))


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    if table.num_rows:
        return _local(spark, table)
    return _local(spark, _one(table.schema)).where("FALSE")  # without a row, types cannot come from Arrow


def _one(schema: pa.Schema) -> pa.Table:
    """A row of NULL."""
    columns = pa.schema([pa.field(each.name, each.type) for each in schema])
    return pa.table([pa.nulls(1, each.type) for each in columns], schema=columns)


def _local(spark: SparkSession, table: pa.Table, schema: str | None = None) -> DataFrame:
    if not is_embedded(spark):
        # After an empty chunk, Spark would lose the rows of all others, without a word (seen with Spark 4.2).
        return spark.createDataFrame(table.combine_chunks())
    from pyspark.sql.connect.dataframe import DataFrame as Rows
    from pyspark.sql.connect.plan import LocalRelation

    # `createDataFrame` asks for five settings first.
    return cast(DataFrame, Rows(LocalRelation(table, schema), cast(Any, spark)))


def no_rows(spark: SparkSession, schema: StructType | str) -> DataFrame:
    """A frame without rows, in place of a stored table: to the embedded engine, its columns are like stored ones, which
    have metadata."""
    columns = schema if isinstance(schema, StructType) else cast(StructType, StructType.fromDDL(schema))
    return _local(spark, _one(arrow_schema(columns)), columns.json()).where("FALSE")


def arrow_of(frame: DataFrame) -> pa.Table:
    """The rows of a frame, in the driver.

    `toArrow` of Spark Connect asks for the schema first: then the query is analysed twice.
    """
    return nullable(frame).toArrow() if not is_remote() else cast(Any, frame)._to_table()[0]


def batches_of(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of a frame of Spark Connect, batch by batch, as the server sends them."""
    remote = cast(Any, frame)
    client = remote.sparkSession.client
    for sent in client.to_table_as_iterator(remote._plan.to_proto(client), remote._plan.observations):
        if isinstance(sent, pa.Table):
            yield from sent.to_batches()


def nullable(frame: DataFrame) -> DataFrame:
    """The frame, with types in which every part of a value may be NULL.

    Arrow, as Spark fills it, refuses a struct that is NULL if one of its fields must not be, as those of an outer join
    may be. The embedded engine does not mind.
    """
    if is_embedded(frame.sparkSession):
        return frame
    before = frame.schema
    after = before.toNullable()
    changed = [(old.name, new.dataType) for old, new in zip(before, after, strict=True) if old.dataType != new.dataType]
    if not changed:
        return frame
    return frame.withColumns({name: F.col(f"`{name}`").cast(data_type) for name, data_type in changed})


def knowing(frame: DataFrame, columns: StructType) -> DataFrame:
    """The frame, which is told its columns.

    A client of Spark Connect that does not know them asks for them, and its server plans the query once more.
    """
    if is_embedded(frame.sparkSession):
        cast(Any, frame)._cached_schema = columns
    return frame


def gathered(frame: DataFrame) -> DataFrame:
    """The rows of a frame that grows with the cluster, computed here and now, so that no plan computes them again.

    A plan contains a frame as often as it is used. What is broadcast is in the driver in any case.
    """
    return gathered_if_any(frame) or frame.where("FALSE")


def gathered_if_any(frame: DataFrame) -> DataFrame | None:
    """As `gathered`; None if there are no rows."""
    if is_embedded(frame.sparkSession):
        return kept_if_any(frame)
    rows = arrow_of(frame)
    return _frame(frame.sparkSession, rows) if rows.num_rows else None


def kept(frame: DataFrame) -> DataFrame:
    """A frame that a plan names often, computed here and now.

    The embedded engine plans and computes a frame as often as it is named. So its rows go into a file of the engine,
    which is removed once no plan reads it. Spark itself recognises equal parts of a plan.
    """
    return kept_if_any(frame) or frame.where("FALSE")


def kept_if_any(frame: DataFrame) -> DataFrame | None:
    """As `kept`; None if it is known that there are no rows."""
    spark = frame.sparkSession
    return _kept(spark, batches_of(frame)) if is_embedded(spark) else frame


def by_parts(rows: DataFrame, transform: Callable[[DataFrame], DataFrame], key: str, most: int) -> DataFrame:
    """What `transform` makes of a frame. It needs the rows of one key together.

    The embedded engine keeps in memory what it joins and sums up. So if there are more than `most` rows, it transforms
    them in parts, one after the other.
    """
    spark = rows.sparkSession
    if not is_embedded(spark) or (count := _count_of(rows)) <= most:
        return transform(rows)
    parts = -(-count // most)
    chosen = (kept(rows.where(f"pmod(hash({key}), {parts}) = {part}")) for part in range(parts))
    found = _kept(spark, chain.from_iterable(batches_of(transform(part)) for part in chosen))
    return transform(rows.where("FALSE")) if found is None else found


def _kept(spark: Any, batches: Iterator[pa.RecordBatch]) -> DataFrame | None:
    """Rows in a file of the embedded engine; None if there are none."""
    some = (each for each in batches if each.num_rows)
    first = next(some, None)
    if first is None:
        return None
    file, path = mkstemp(".parquet", "kept-", spark.private_folder)
    count = 0
    with open(file, "wb") as stream, closing(pq.ParquetWriter(stream, first.schema, compression="lz4")) as writer:
        for batch in chain([first], some):
            writer.write_batch(batch)
            count += batch.num_rows
    rows = spark.read.parquet(path)
    finalize(rows._plan, Path(path).unlink, missing_ok=True)
    return counted(rows, count)


def counted(frame: DataFrame, rows: int) -> DataFrame:
    """The frame, which is told its number of rows, so that nobody counts them."""
    cast(Any, frame)._row_count = rows
    return frame


def _count_of(frame: DataFrame) -> int:
    known = vars(frame).get("_row_count")  # as an attribute, it could be a column
    return frame.count() if known is None else cast(int, known)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema."""
    return to_arrow_schema(schema, timezone="UTC")
