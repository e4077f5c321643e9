"""`CHECK` constraints, added to each table when it is created.

Delta refuses a write that violates one, so other readers of a table (SQL, dashboards, abort scripts) can rely on it. A table that
an older version created has none, and can be read without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.schema import TABLES
from txnlib.core.schema.runs import RUN_CHECKS

#: Table -> name of a constraint -> condition on every row. `*` applies to all tables.
CONSTRAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "*": RUN_CHECKS,
    **{name: table.checks for name, table in TABLES.items() if table.checks},
}


def constraints_of(table: str) -> dict[str, str]:
    """The constraints of a table: name -> condition."""
    return {**CONSTRAINTS["*"], **CONSTRAINTS.get(table, {})}


def options_of(table: str) -> dict[str, str]:
    """The writer options that create a table with its constraints."""
    return {f"delta.constraints.{name}": condition for name, condition in constraints_of(table).items()}
