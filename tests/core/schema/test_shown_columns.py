"""The columns that people see: each view is declared once, beside its columns."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from txnlib.core.schema import TABLES, shown
from txnlib.core.schema.rows_of_runs import RUN_COLUMNS

VIEWS = {view: name for name, table in TABLES.items() for view in table.shown}
#: What a command computes for its answer, and no table has.
COMPUTED = {"open": {"holds"}, "list": {"coordinator"}, "describe": {"coordinator", "duration_ms"}}


def test_a_view_belongs_to_one_table():
    assert sum(len(table.shown) for table in TABLES.values()) == len(VIEWS)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_columns_of_its_table_each_once(view):
    has = {*TABLES[VIEWS[view]].names, *(column.name for column in RUN_COLUMNS), *COMPUTED.get(view, set())}
    names = shown(view)
    assert {*names} <= has
    assert len({*names}) == len(names)
    assert shown(view, is_wide=False) == names[: len(shown(view, is_wide=False))] != ()


def test_a_visible_column_touches_the_schema_the_function_that_computes_it_and_its_test(repository):
    """No other module has a list of the columns of a view, so one more column of a view is one more word in the
    schema."""
    lists = {frozenset(shown(view)): view for view in VIEWS if len(shown(view)) > 3}
    lists |= {frozenset(shown(view, is_wide=False)): view for view in VIEWS if len(shown(view, is_wide=False)) > 3}
    again = [
        (str(file.relative_to(repository)), node.lineno, lists[words])
        for folder in ("ask", "page")
        for file in sorted(Path(repository, "txnlib", folder).glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if (words := _words(node)) in lists
    ]
    assert again == []


def _words(node: ast.AST) -> frozenset[str]:
    """The texts of a tuple or list, or the words of a text."""
    if isinstance(node, ast.Tuple | ast.List):
        return frozenset(
            each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )
    return (
        frozenset(node.value.split()) if isinstance(node, ast.Constant) and isinstance(node.value, str) else frozenset()
    )
