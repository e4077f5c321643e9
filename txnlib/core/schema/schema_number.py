"""The number of the schema: what each number added, and which stored tables are read.

A folder or a catalog schema has the number of its tables as a property of `audit_runs`. Tables of an older number are
read as if they had the columns that were added since, with NULL in them; an audit adds these columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from txnlib.core.schema import ALWAYS_THERE, TABLES
from txnlib.core.schema.columns import Array, Column, Scalar, Struct, Type
from txnlib.core.schema.rows_of_runs import RUN_COLUMNS
from txnlib.errors import OtherSchemaError
from txnlib.version import SCHEMA_NUMBER

#: The oldest number whose tables are read. It rises with every change other than an added column or field that may be
#: NULL: another type, another meaning, a removed column.
OLDEST: Final = 1
#: Number -> what it added: `table`, `table.column` or `table.column.field`.
ADDED: Final[Mapping[int, tuple[str, ...]]] = {
    1: (),
    2: ("producer_spans.newest_epoch",),
    3: ("coverage.copies_beside",),
    4: ("coverage.leader_epochs", *(f"{verdict}_transactions.carried" for verdict in ("open", "hanging", "late"))),
    5: ("transactions.markers.possible_offsets",),
}
#: Number -> the tables whose constraints it changed.
CONSTRAINED: Final[Mapping[int, tuple[str, ...]]] = {1: (), 2: (), 3: (), 4: (), 5: ()}
#: Schema number -> the SHA-256 of its columns; and the SHA-256 of today's constraints. A test compares them.
DIGESTS: Final[Mapping[int, str]] = {
    1: "3f42e66d56acbf886e54223496748766355fabbd570a7060a91d18e4544b74e5",
    2: "ecf0fbec7d33f8d7c85393ad225f97103dcc2425c1bc104a356a0aa07c238663",
    3: "b1c0f7af91cb0b2dc23e05fd4e4c90c59c8cbbac884a5bec5834a27be3d79354",
    4: "e084e1d71d8e27f9d143cdd9091a1be06412e5ffba46e857c58b45b93f15e948",
    5: "d2ba0bf947bf62b52f4a14e082baed32973a97f734d3d8d18f3198247c371d50",
}
CONSTRAINTS: Final = "fb8684ed9032ac76006f5818ad8066c3a4f63031b98b4cca822c72a858d425e3"

#: A type by its name in Delta's log; of a struct, name -> type of each field; of an array, a list with the type of its
#: elements.
Shape: TypeAlias = str | list[Any] | dict[str, Any]
_NAMES: Final = {Scalar.INT: "integer"}


def shape_of(kind: Type | Iterable[Column]) -> Shape:
    """The shape of a type, or of columns."""
    match kind:
        case Scalar():
            return _NAMES.get(kind, kind.value)
        case Array(element):
            return [shape_of(element)]
        case Struct(fields):
            return shape_of(fields)
    return {each.name: shape_of(each.type) for each in kind}


def stored_shape(stored: Any) -> Shape:
    """The shape of a type in a Delta log, read as JSON."""
    if isinstance(stored, str):
        return stored
    if stored["type"] == "array":
        return [stored_shape(stored["elementType"])]
    if stored["type"] == "struct":
        return {field["name"]: stored_shape(field["type"]) for field in stored["fields"]}
    return json.dumps(stored, sort_keys=True)


def shape_of_table(name: str, number: int = SCHEMA_NUMBER) -> dict[str, Any]:
    """The columns of a table as stored with that number, in any order."""
    shape = shape_of((*RUN_COLUMNS, *TABLES[name].columns))
    assert isinstance(shape, dict)
    for path in _added_since(number):
        table, *names = path.split(".")
        if table == name and names:
            _remove(shape, names)
    return shape


def is_there(name: str, number: int = SCHEMA_NUMBER) -> bool:
    """Whether an audit of that number always makes this table."""
    return name in ALWAYS_THERE and name not in _added_since(number)


def completed(name: str, shape: Shape, stored: str) -> str:
    """A query of DataFusion for the rows of a table with that shape, with NULL in the columns that it lacks.

    `stored`: the name of the table in the query.
    """
    assert isinstance(shape, dict)
    columns = []
    for each in (*RUN_COLUMNS, *TABLES[name].columns):
        is_whole = each.name in shape and contains(shape[each.name], shape_of(each.type))
        value = f'"{each.name}"' if each.name in shape else "NULL"
        columns.append(value if is_whole else f"arrow_cast({value}, '{_arrow(each.type)}') AS \"{each.name}\"")
    return f"SELECT {', '.join(columns)} FROM {stored}"


_ARROW: Final = {
    Scalar.STRING: "Utf8",
    Scalar.INT: "Int32",
    Scalar.LONG: "Int64",
    Scalar.BOOLEAN: "Boolean",
    Scalar.TIMESTAMP: 'Timestamp(Microsecond, Some("UTC"))',
}


def _arrow(kind: Type) -> str:
    """A type in the words of Arrow."""
    match kind:
        case Array(element):
            return f"List({_arrow(element)})"
        case Struct(fields):
            return "Struct(" + ", ".join(f'"{each.name}": {_arrow(each.type)}' for each in fields) + ")"
        case Scalar():
            return _ARROW[kind]


def is_constrained_anew(name: str, number: int) -> bool:
    """Whether a table of that number has other constraints than today."""
    return any(name in tables for later, tables in CONSTRAINED.items() if later > number)


def shapes(number: int) -> dict[str, dict[str, Any]]:
    """The columns of all tables of a number."""
    return {name: shape_of_table(name, number) for name in TABLES if name not in _added_since(number)}


def contains(shape: Shape, part: Shape) -> bool:
    """Whether a shape has all that another has, with the same types."""
    if isinstance(shape, dict) and isinstance(part, dict):
        return all(name in shape and contains(shape[name], kind) for name, kind in part.items())
    if isinstance(shape, list) and isinstance(part, list):
        return contains(shape[0], part[0])
    return shape == part


def number_of(where: str, noted: str | None, stored: Callable[[], Mapping[str, Shape]]) -> int:
    """The number of the tables in a place. Raises OtherSchemaError if it is older than OLDEST, or newer than this one.

    `noted`: the property; None if there is none. Then the number is 1 if the tables have the columns of that number,
    else the error is raised. `stored`: the columns of all stored tables.
    """
    number = int(noted) if noted is not None and noted.isdecimal() else 0
    if noted is None and all(contains(shape, shape_of_table(name, 1)) for name, shape in stored().items()):
        number = 1
    if not OLDEST <= number <= SCHEMA_NUMBER:
        raise OtherSchemaError(where, number, OLDEST, SCHEMA_NUMBER)
    return number


def _added_since(number: int) -> frozenset[str]:
    return frozenset(path for later, paths in ADDED.items() if later > number for path in paths)


def _remove(shape: Any, names: list[str]) -> None:
    while isinstance(shape, list):
        (shape,) = shape
    name, *fields = names
    if fields:
        _remove(shape[name], fields)
    else:
        del shape[name]
