"""Both engines read the SQL of the package alike: nothing in it is unknown to one.

Seen with Sail 0.7.2. Without this, somebody finds it by an exception, or by other rows.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from txnlib.core.schema import Scalar

PACKAGE = Path(__file__).resolve().parent.parent.parent / "txnlib"
#: Where queries of both engines are.
FOLDERS = ("spark", "pipeline", "engine", "core/schema", "core/findings", "core/coverage", "core/tables")
MODULES = sorted(
    path
    for path in (
        *(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py")),
        *(PACKAGE / "core" / name for name in ("sql_text.py", "copies.py", "batch_runs.py")),
    )
    if path.name not in ("spark.py", "spark_tables.py")
)
#: The rest of a SELECT.
REST = r"(?:(?!\bSELECT\b).)*"


class Forbidden(NamedTuple):
    """What a pattern finds is not read alike, for a reason; with an example, and what is written in its place."""

    pattern: str
    reason: str
    example: str
    instead: str


FORBIDDEN = (
    Forbidden(
        r"\* EXCEPT\b",
        "the embedded engine has no such syntax",
        "SELECT * EXCEPT (a)",
        "SELECT b, c",
    ),
    Forbidden(
        rf"\b\w+\.\*{REST}\bUSING\b",
        "the embedded engine leaves out the columns of USING",
        "SELECT t.* FROM t JOIN q USING (k)",
        "SELECT k, t.a FROM t JOIN q USING (k)",
    ),
    Forbidden(
        r"[\w)]\[(?!\d+\])[^\]]*\]",
        "the embedded engine takes only literals as the index of an array",
        "SELECT batches[i], array(a, b)[min(x)]",
        "SELECT get(batches, i), batches[0]",
    ),
    Forbidden(
        r"\bCAST\((?:named_)?struct\(",
        "the embedded engine does not change types inside of a struct",
        "CAST(struct(a) AS STRUCT<x: INT>)",
        "named_struct('x', CAST(a AS INT))",
    ),
    Forbidden(
        rf"(?<!IS )(?<!NOT )(?<!CAST\()\bNULL AS \w+{REST}\bUNION\b",
        "in the embedded engine, the first branch gives the type, and a struct loses its fields",
        "SELECT a, NULL AS marker FROM t UNION ALL SELECT b, marker FROM q",
        "SELECT a, CAST(NULL AS STRUCT<x: INT>) AS marker FROM t UNION ALL SELECT b, marker FROM q",
    ),
    Forbidden(
        r"\bexplode(?:_outer)?\(map\(",
        "the embedded engine makes one column of it",
        "explode(map('a', 1)) AS (k, v)",
        "inline(array(struct('a' AS k, 1 AS v)))",
    ),
    Forbidden(
        r"\b(?:inline|explode|posexplode)\((?:sort_array\()?(?:collect_|max|min)",
        "the embedded engine takes no aggregate there",
        "SELECT explode(collect_set(a)) FROM t",
        "SELECT explode(every) FROM (SELECT collect_set(a) AS every FROM t)",
    ),
    Forbidden(
        rf"\b(\w+)\.\*{REST}\bGROUP BY (?:\w+, )*\1\b",
        "the embedded engine does not find the fields of what is grouped by",
        "SELECT of.*, count(*) FROM t GROUP BY of",
        "SELECT of.a, n FROM (SELECT of, count(*) AS n FROM t GROUP BY of)",
    ),
    Forbidden(
        rf"\b(?:max|min|sum|max_by|min_by)\((\w+)\b[^()]*\) AS \1\b{REST}\bHAVING\b[^)]*\(\1\b",
        "the embedded engine takes the alias",
        "SELECT max(x) AS x FROM t GROUP BY a HAVING min(x) > 1",
        "SELECT max(x) AS newest FROM t GROUP BY a HAVING min(x) > 1",
    ),
    Forbidden(
        r"\b(?:max|min)\((?:array|collect_\w+|transform|filter)\(",
        "in the embedded engine, arrays of structs have no order",
        "max(array(struct(a)))",
        "max(to_json(array(struct(a))))",
    ),
    Forbidden(
        r"\blast\(.+, TRUE\)",
        "the embedded engine looks for it among all rows before each row (`sql_text.last_of`)",
        "last(a, TRUE) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING)",
        "max_by(a, if(a IS NOT NULL, b, NULL)) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING)",
    ),
)


def queries(path: Path) -> Iterator[str]:
    """The texts of a module, with `x` for what is put into them. Docstrings are not."""
    tree = ast.parse(path.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | prose:
            yield node.value


@pytest.mark.parametrize("rule", FORBIDDEN, ids=lambda rule: rule.example)
def test_no_query_has_what_one_engine_does_not_read(rule):
    pattern = re.compile(rule.pattern, re.DOTALL)
    assert pattern.search(rule.example)
    assert not pattern.search(rule.instead)
    found = [
        f"{path.relative_to(PACKAGE)}: {text}" for path in MODULES for text in queries(path) if pattern.search(text)
    ]
    assert found == [], rule.reason


def test_no_column_is_binary():
    """There, `substring` is for text only."""
    assert "BINARY" not in Scalar.__members__


def test_queries_are_found():
    assert sum("SELECT" in text for path in MODULES for text in queries(path)) > 50
