"""The output of a command in each of its forms: columns and rows, text for people, and Kafka's own table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from txnlib.ask.grid import CSV, JSON, TABLE, fold, grid, json_text, text_width
from txnlib.ask.rows import Row

KAFKA: Final = "kafka"
SCRIPT: Final = "sh"
#: What every command can print.
FORMS: Final = (TABLE, JSON, CSV)
#: For all columns: wider than any row.
WIDEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """One table, with additional text for people. Renderers make it."""

    columns: Sequence[str]
    rows: Sequence[Row]
    #: KAFKA or SCRIPT -> the output in this form; only for commands that offer it.
    others: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    #: For people: text before and after the table; a function gets the width to wrap to.
    head: str | Callable[[int], str] = ""
    tail: str | Callable[[int], str] = ""
    #: For people: the output if it is not a table. The argument is whether stdout is a terminal.
    page: Callable[[bool], str] | None = None
    #: For people: fewer columns than programs get.
    shown: Sequence[str] | None = None
    #: For people: the columns that a terminal has at any width, the most important first.
    kept: Sequence[str] = ()
    #: For people: fewer rows than programs get.
    people: Sequence[Row] | None = None
    #: For programs: the whole output, if it is more than the rows.
    whole: Callable[[], object] | None = None
    #: For people: what stands for no rows.
    empty: str = "none"
    #: For stderr: what the output lacks.
    notes: Sequence[str] = field(default_factory=tuple)
    #: 1 if the command did only a part of what it was asked for.
    exit_code: int = 0

    def text(self, form: str = TABLE, *, width: int | None = None, is_wide: bool = False) -> str:
        """The output in one of the forms that the command offers.

        `width`: of the terminal; None if there is none. `is_wide`: all columns, of any width.
        """
        if form in (KAFKA, SCRIPT):
            return self.others[form]()
        if form == JSON and self.whole is not None:
            return json_text(self.whole())
        if form != TABLE:
            return grid(self.columns, self.rows, form)
        if self.page is not None:
            return self.page(width is not None)
        rows = self.rows if self.people is None else self.people
        chosen = self.columns if is_wide or self.shown is None else self.shown
        body = grid(chosen, rows, form, width=WIDEST if is_wide and width is not None else width, kept=self.kept)
        room = text_width(width)
        none = f"{self.empty}\n"
        body += "" if rows else none if width is None else fold(none, room)
        if isinstance(self.head, str):
            head = self.head if width is None else fold(self.head, room)
        else:
            head = self.head(room)
        return f"{head}{body}{self.tail if isinstance(self.tail, str) else self.tail(room)}"
