"""Rows of tables that are made of other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

Made = TypeVar("Made")


def row_of(of: Callable[..., Made], *given: object, **values: Any) -> Made:
    """A row of a dataclass. What is not among the values is the field of the same name of the first given row that has it."""
    for field in fields(cast(Any, of)):
        if field.name not in values:
            having = next((row for row in given if hasattr(row, field.name)), None)
            if having is not None:
                values[field.name] = getattr(having, field.name)
    return of(**values)
