"""How the core meets Spark: dataclasses as structs, frames as dataclasses, and functions of the core over rows of a
frame.

The fields of a class are listed once, in the class (`readers.typed_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from txnlib.core.schema.columns import type_of
from txnlib.readers.typed_rows import Typed, arrow_rows, hints_of, plain, typed_rows
from txnlib.spark.frames import arrow_of, arrow_schema, frame_of, knowing, nullable
from txnlib.spark.python_tasks import begin_task
from txnlib.spark.schemas import TABLES, spark_type


@lru_cache
def struct_of(of: Any) -> StructType:
    """The Spark type of a dataclass: int is LONG, an enum is its value, a tuple is an array. Everything may be NULL."""
    return cast(StructType, spark_type(type_of(of)))


def struct(of: Any, given: Mapping[str, str] | None = None) -> str:
    """The fields of a dataclass as one struct, as SQL. A field that is not given is the column of its name."""
    columns = {name: name for name in hints_of(of)} | dict(given or {})
    unknown = columns.keys() - hints_of(of).keys()
    if unknown:
        raise ValueError(f"{of.__name__} has no field {', '.join(sorted(unknown))}")
    values = [
        f"'{field.name}', CAST({columns[field.name]} AS {field.dataType.simpleString()})" for field in struct_of(of)
    ]
    return f"named_struct({', '.join(values)})"


def rows_of(given: DataFrame | pa.Table, of: Callable[..., Typed]) -> list[Typed]:
    """The rows of a frame or of an Arrow table as dataclasses, each field from the column of its name."""
    return typed_rows(given if isinstance(given, pa.Table) else arrow_of(given), of)


def answers(
    spark: SparkSession, transform: Callable[[DataFrame], DataFrame | None], hint: Any
) -> Callable[[Sequence[object]], list[Any]]:
    """How a function of the core asks about few places in a log: rows of questions in, rows of answers out, in one
    query.

    `transform`: from the questions, whose columns are the fields of their dataclass; None if no row can answer. `hint`:
    the type of the parameter, `Callable[[Sequence[Question]], Sequence[Answer]]`. Without a question, nothing is read.
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


@dataclass(frozen=True, slots=True)
class Suspects:
    """Rows of a frame that may be odd, the dataclass that each is, and the function of the core that judges each by
    itself."""

    rows: DataFrame
    of: Callable[..., Any]
    judge: Callable[[Iterable[Any]], Iterable[object]]


def rows_by_core(name: str, selected: Suspects) -> DataFrame:
    """The rows of a table that the core makes of a selection, in tasks."""
    of, judge = selected.of, selected.judge

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            yield from arrow_rows(name, judge(typed_rows(pa.Table.from_batches([batch]), of))).to_batches()

    rows = nullable(selected.rows.select(*struct_of(of).names))
    return knowing(rows, struct_of(of)).mapInArrow(made, TABLES[name])
