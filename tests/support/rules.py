"""What a rule of findings selects of some tables, and what it finds."""

from __future__ import annotations

from inspect import signature
from typing import Any

from pyspark.sql import DataFrame

from tests.support.frames import empty
from txnlib.core.findings.rule import FindingRow, Rule
from txnlib.core.sql_text import tables_of
from txnlib.spark.core_rows import odd_rows, rows_of
from txnlib.spark.schemas import TABLES


def selected(rule: Rule, values: dict[str, Any] | None = None, /, **tables: DataFrame) -> list[Any]:
    """The rows that it judges. Tables that are not given are empty."""
    spark = next(iter(tables.values())).sparkSession
    named = {name for text in rule.texts for name in tables_of(text)} - {step.name for step in rule.steps}
    assert tables.keys() <= named
    given = {name: tables[name] if name in tables else empty(spark, TABLES[name]) for name in named}
    rows = odd_rows(rule, given, values or {})
    return [] if rows is None else rows_of(rows, rule.row)


def judged(rule: Rule, rows: list[Any], values: dict[str, Any] | None = None) -> list[FindingRow]:
    """The findings about these rows."""
    names = [*signature(rule.judge).parameters][1:]
    return [*rule.judge(rows, **{name: (values or {})[name] for name in names})]


def found_by(rule: Rule, values: dict[str, Any] | None = None, /, **tables: DataFrame) -> list[FindingRow]:
    return judged(rule, selected(rule, values, **tables), values)
