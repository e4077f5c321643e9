"""What does a command hand back to be printed? Columns and rows, and how Kafka's tool would print them if it has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from txnlib.errors import UsageError
from txnlib.report.grid import TABLE, grid, json_text
from txnlib.report.summary import Row

KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Answer:
    """One table, with what stands around it when people read it."""

    columns: Sequence[str]
    rows: Sequence[Row]
    kafka: Callable[[], str] | None = None
    #: For people: what stands before and behind the table.
    head: str = ""
    tail: str = ""
    #: For programs: the whole answer, where the rows alone are not.
    whole: object = None
    #: To stderr: what the answer lacks.
    notes: Sequence[str] = field(default_factory=tuple)

    def text(self, form: str, *, is_terminal: bool) -> str:
        """The answer in one of the forms. Raises UsageError where Kafka has no such output."""
        if form == KAFKA:
            if self.kafka is None:
                raise UsageError("--format kafka: Kafka's tool has no such command")
            return self.kafka()
        if form == "json" and self.whole is not None:
            return json_text(self.whole)
        body = grid(self.columns, self.rows, form, is_terminal=is_terminal)
        return f"{self.head}{body}{self.tail}" if form == TABLE else body
