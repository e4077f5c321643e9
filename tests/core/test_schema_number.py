"""The number of the schema, and the tables that it stands for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from txnlib.core.schema import TABLES, schema_number
from txnlib.core.schema.rows_of_runs import RUN_CHECKS
from txnlib.core.schema.schema_number import (
    ADDED,
    CONSTRAINED,
    CONSTRAINTS,
    DIGESTS,
    OLDEST,
    contains,
    number_of,
    shape_of_table,
    shapes,
    stored_shape,
)
from txnlib.errors import OtherSchemaError
from txnlib.version import SCHEMA_NUMBER

RAISE = "raise SCHEMA_NUMBER, and add what changed to ADDED or CONSTRAINED; if it is no addition, raise OLDEST"


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("number", range(OLDEST, SCHEMA_NUMBER + 1))
def test_a_change_of_columns_has_a_number_of_its_own(number: int) -> None:
    assert digest(shapes(number)) == DIGESTS.get(number), RAISE


def test_a_change_of_constraints_has_a_number_of_its_own() -> None:
    today = [RUN_CHECKS, *({name: dict(table.checks)} for name, table in TABLES.items())]
    assert digest(today) == CONSTRAINTS, RAISE


def test_every_number_says_what_it_changed(repository: Path) -> None:
    assert set(ADDED) == set(CONSTRAINED) == set(DIGESTS) == set(range(1, SCHEMA_NUMBER + 1))
    changes = (repository / "CHANGELOG.md").read_text()
    assert [number for number in ADDED if f"schema {number}" not in changes] == []


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the second number had added a column, a field and a table, and nobody could read the first."""
    monkeypatch.setattr(
        schema_number, "ADDED", {1: ("findings.evidence", "segments.unreadable.reason", "late_transactions")}
    )
    monkeypatch.setattr(schema_number, "OLDEST", 0)


@pytest.mark.usefixtures("later")
def test_an_older_shape_lacks_what_was_added() -> None:
    now, then = (shapes(number) for number in (1, 0))
    assert {**then["findings"], "evidence": "string"} == now["findings"]
    ((fields,), (fewer,)) = (shape["segments"]["unreadable"] for shape in (now, then))
    assert {**fewer, "reason": "string"} == fields
    assert now.keys() - then.keys() == {"late_transactions"}
    assert all(contains(now[name], then[name]) for name in then)
    assert not contains(then["segments"], now["segments"])


def without(name: str, column: str) -> dict[str, Any]:
    return {key: kind for key, kind in shape_of_table(name).items() if key != column}


@pytest.mark.parametrize(
    ("stored", "number"),
    [
        ({}, 1),
        (shapes(1), 1),
        ({"findings": shape_of_table("findings")}, 1),
        ({"findings": dict(reversed(shape_of_table("findings").items()))}, 1),
        ({"findings": without("findings", "severity")}, 0),
        ({"findings": shape_of_table("findings") | {"added_later": "string"}}, 1),
        ({"findings": shape_of_table("findings") | {"partition": "long"}}, 0),
    ],
    ids=["no tables", "whole", "one table", "another order", "a column less", "a column more", "another type"],
)
def test_tables_without_a_number_are_known_by_their_columns(stored: dict[str, Any], number: int) -> None:
    if number:
        assert number_of("out", None, lambda: stored) == number
    else:
        with pytest.raises(OtherSchemaError, match="out: its tables are of an older txnlib"):
            number_of("out", None, lambda: stored)


@pytest.mark.parametrize("noted", [str(SCHEMA_NUMBER + 1), "999", "0", "one", ""])
def test_another_number_is_refused_and_no_column_looked_at(noted: str) -> None:
    is_newer = noted.isdecimal() and int(noted) > SCHEMA_NUMBER
    with pytest.raises(OtherSchemaError, match="newer txnlib" if is_newer else "older txnlib") as refused:
        number_of("out", noted, lambda: pytest.fail("the tables were read"))
    assert refused.value.exit_code == 2
    assert refused.value.says().count(". ") == 0


def test_a_shape_is_read_from_the_log_of_a_table() -> None:
    stored = json.loads(
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"comment":"x"}},{"name":"l",'
        '"type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"x","type":"string"}]}}}]}'
    )
    assert stored_shape(stored) == {"a": "long", "l": [{"x": "string"}]}
