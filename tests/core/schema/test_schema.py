"""The consistency of the catalogue of columns."""

import re

import pytest

from txnlib.core.schema import TABLES, Array, Struct
from txnlib.core.schema.columns import are_present, is_one_of
from txnlib.core.schema.rows_of_runs import RUN_CHECKS

#: What conditions use besides columns.
SQL = {"coalesce", "false", "length"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_and_its_columns_have_comments_that_are_sentences(name):
    for comment in (TABLES[name].comment, *(column.comment for column in TABLES[name].columns)):
        assert len(comment) > 10, comment
        assert comment.endswith("."), comment


@pytest.mark.parametrize("name", TABLES)
def test_a_column_is_there_once_and_names_no_column_of_the_run(name):
    names = [*TABLES[name].names, "cluster", "run_id"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", TABLES)
def test_constraints_are_of_columns_of_their_table(name):
    for condition in TABLES[name].checks.values():
        assert set(re.findall(r"\b[a-z_]+\b", re.sub(r"'[^']*'", "", condition))) - SQL <= set(TABLES[name].names), (
            condition
        )
    assert not TABLES[name].checks.keys() & RUN_CHECKS.keys()


def fields(kind):
    if isinstance(kind, Array):
        return fields(kind.element)
    return [each for field in kind.fields for each in (field, *fields(field.type))] if isinstance(kind, Struct) else []


@pytest.mark.parametrize("name", TABLES)
def test_only_columns_have_comments_and_all_may_be_null(name):
    """A comment of a field would become part of its type, and a column that a row lacks is NULL."""
    nested = [field for column in TABLES[name].columns for field in fields(column.type)]
    assert {field.comment for field in nested} <= {""}
    assert all(column.nullable for column in (*TABLES[name].columns, *nested))


def test_conditions_are_sql():
    assert is_one_of("tail", "TORN", "CLEAN") == "tail IN ('TORN', 'CLEAN')"
    assert are_present("topic", "partition") == "topic IS NOT NULL AND partition IS NOT NULL"
