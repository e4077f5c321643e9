"""The output of a command in each of its forms: columns and rows, text for people, and Kafka's own table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from txnlib.errors import UsageError
from txnlib.queries.rows import Row
from txnlib.render.grid import CSV, JSON, TABLE, grid, json_text

KAFKA: Final = "kafka"
FORMS: Final = (TABLE, JSON, CSV, KAFKA)


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """One table, with additional text for people. Renderers make it."""

    columns: Sequence[str]
    rows: Sequence[Row]
    kafka: Callable[[], str] | None = None
    #: For people: text before and after the table; a function gets the width to wrap to.
    head: str = ""
    tail: str | Callable[[int], str] = ""
    #: For people: the output if it is not a table. The argument is whether stdout is a terminal.
    page: Callable[[bool], str] | None = None
    #: For people: fewer columns than programs get.
    shown: Sequence[str] | None = None
    #: For people: fewer rows than programs get.
    people: Sequence[Row] | None = None
    #: For programs: the whole output, if it is more than the rows.
    whole: object = None
    #: For stderr: what the output lacks.
    notes: Sequence[str] = field(default_factory=tuple)

    def text(self, form: str, *, is_terminal: bool) -> str:
        """The output in one of the forms. Raises UsageError if Kafka has no such output."""
        if form == KAFKA:
            if self.kafka is None:
                raise UsageError("--format kafka: Kafka's tool has no such command")
            return self.kafka()
        if form == JSON and self.whole is not None:
            return json_text(self.whole)
        if form != TABLE:
            return grid(self.columns, self.rows, form)
        if self.page is not None:
            return self.page(is_terminal)
        rows = self.rows if self.people is None else self.people
        body = grid(self.shown or self.columns, rows, form, is_terminal=is_terminal)
        return f"{self.head}{body}{self._tail(is_terminal=is_terminal)}"

    def _tail(self, *, is_terminal: bool) -> str:
        if isinstance(self.tail, str):
            return self.tail
        from txnlib.render.terminal_text import columns  # imported here, because it loads the whole report

        return self.tail(columns(is_terminal=is_terminal))
