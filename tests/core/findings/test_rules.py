"""Every rule: its queries, what they name, and what judges their rows."""

from __future__ import annotations

from inspect import signature

import pytest
from pyspark.sql import SparkSession

from tests.support.frames import empty, values
from txnlib.core.findings.catalogue import RULES
from txnlib.core.findings.rule import Rule
from txnlib.core.sql_text import tables_of, values_of, with_values
from txnlib.settings import Settings
from txnlib.spark.core_rows import struct_of
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES


def name_of(rule: Rule) -> str:
    return rule.row.__name__


@pytest.mark.both
@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_a_query_has_the_columns_of_the_rows_that_are_judged(spark: SparkSession, rule: Rule) -> None:
    relations = {name: empty(spark, schema) for name, schema in TABLES.items()}
    named = {**dict.fromkeys(rule.given), **dict.fromkeys(Settings.model_fields, 1)}
    for name, query in (*((step.name, step.query) for step in rule.steps), ("rows", rule.query)):
        given = with_values(query, named)
        relations[name] = select(given, **{table: relations[table] for table in tables_of(given)})
    assert values(relations["rows"].select(*struct_of(rule.row).names)) == []


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_what_a_rule_needs_is_a_setting_or_given(rule: Rule) -> None:
    needed = {*[*signature(rule.judge).parameters][1:], *(value for text in rule.texts for value in values_of(text))}
    assert needed - rule.given.keys() <= {*Settings.model_fields, *dir(Settings)}
    assert rule.given.keys() <= needed
