"""How the core meets Spark: dataclasses as structs, frames as dataclasses, and functions of the core over rows of a
frame.

The fields of a class are listed once, in the class (`readers.typed_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.core.findings.rule import Rule
from txnlib.core.schema.columns import type_of
from txnlib.core.sql_text import tables_of, with_values
from txnlib.readers.typed_rows import Typed, arrow_rows, plain, typed_rows
from txnlib.spark.frames import arrow_of, arrow_schema, frame_of, gathered_if_any, kept_if_any, nullable
from txnlib.spark.joins import select
from txnlib.spark.python_tasks import by_python
from txnlib.spark.schemas import TABLES, spark_type


@lru_cache
def struct_of(of: Any) -> StructType:
    """The Spark type of a dataclass: int is LONG, an enum is its value, a tuple is an array. Everything may be NULL."""
    return cast(StructType, spark_type(type_of(of)))


def rows_of(given: DataFrame | pa.Table, of: Callable[..., Typed]) -> list[Typed]:
    """The rows of a frame or of an Arrow table as dataclasses, each field from the column of its name."""
    return typed_rows(given if isinstance(given, pa.Table) else arrow_of(given), of)


def answers(
    spark: SparkSession, transform: Callable[[DataFrame], DataFrame | None], hint: Any
) -> Callable[[Sequence[object]], list[Any]]:
    """A function by which the core asks about few places in a log: it takes rows of questions, and returns rows of
    answers, by one query. Without a question, nothing is read.

    `transform`: makes a frame of answers from a frame of questions; None if no row can answer. `hint`: the type of the
    parameter, `Callable[[Sequence[Question]], Sequence[Answer]]`; both are dataclasses whose fields are columns.
    """
    (asked,), (of,) = get_args(get_args(hint)[0][0]), get_args(get_args(hint)[1])
    schema = struct_of(asked)

    def answer(questions: Sequence[object]) -> list[Any]:
        if not questions:
            return []
        rows = pa.Table.from_pylist([plain(each) for each in questions], schema=arrow_schema(schema))
        answered = transform(frame_of(spark, rows, schema))
        return [] if answered is None else rows_of(answered, of)

    return answer


def odd_rows(rule: Rule, tables: Mapping[str, DataFrame], values: Mapping[str, Any]) -> DataFrame | None:
    """The rows that a rule judges; None if it is known that there are none. `values`: the values that its queries name
    after a colon."""
    relations = dict(tables)

    def asked(query: str) -> DataFrame:
        named = {name: relations[name] for name in tables_of(query)}
        return select(with_values(query, values), **named)

    for step in rule.steps:
        rows = (gathered_if_any if step.are_few else kept_if_any)(asked(step.query))
        if rows is None:
            return None
        relations[step.name] = rows
    return asked(rule.query)


def rows_by_core(name: str, rows: DataFrame, of: Any, judge: Callable[[Iterable[Any]], Iterable[object]]) -> DataFrame:
    """The rows of a table that a function of the core makes of rows of a dataclass, in tasks."""

    def made(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        return list(arrow_rows(name, judge(typed_rows(pa.Table.from_batches([batch]), of))).to_batches())

    return by_python(nullable(rows.select(*struct_of(of).names)), struct_of(of), made, TABLES[name])
