"""The output of a command in each of its forms, and output files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from txnlib.ask.grid import CSV, JSON, TABLE, fold, grid, json_text, text_width
from txnlib.ask.queries import Row
from txnlib.errors import UsageError

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
    #: For people: the text that is printed if there are no rows.
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


# ---- Output files that are either complete or absent. Their folder is checked before any work begins


def check_whole_file(path: str) -> None:
    """Raises UsageError unless a file can be written at this path. Leaves nothing behind."""
    if "://" in path:
        raise UsageError(f"{path}: a report is written to a local file, not to a store")
    file = Path(path).resolve()
    if file.is_dir():
        raise UsageError(f"{path}: is a folder; name a file")
    if file.exists() and not file.is_file():
        raise UsageError(f"{path}: is not a regular file")
    folder = next(parent for parent in file.parents if parent.exists())
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def write_whole_file(path: str, text: str) -> None:
    """Writes the file atomically: a reader sees either the old content or the new, never a part."""
    file = Path(path).resolve()  # writes to the target of a link
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
