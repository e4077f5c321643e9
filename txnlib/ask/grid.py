"""Rows as a grid for people, as JSON, or as CSV. No cell can forge a line."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from textwrap import wrap
from typing import Any, Final

from txnlib.ask.rows import Row
from txnlib.core.display import printable

#: Largest width, and that of text in a pipe or a file.
WIDTH: Final = 132
#: Smallest width. A narrower terminal wraps lines itself.
NARROWEST: Final = 60


def columns(*, is_terminal: bool) -> int:
    """The width of text: that of the terminal, within limits; fixed if piped."""
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 40)).columns)) if is_terminal else WIDTH


# ---- Tables, JSON and CSV


TABLE: Final = "table"
JSON: Final = "json"
CSV: Final = "csv"

#: Columns of sentences and lists. They may be wrapped between words; all other cells stay whole, because ids and times are copied.
WRAPPED: Final = frozenset({"detail", "reason", "evidence", "message", "explanation", "verdicts", "partitions", "input"})
#: Least width of a wrapped column.
LEAST_WRAPPED: Final = 24
#: Spaces between two columns.
GAP: Final = 2

#: Characters that begin a formula in a spreadsheet, in addition to those that are escaped anyway. A leading apostrophe makes the
#: cell text (OWASP: CSV injection).
FORMULAS: Final = ("=", "+", "-", "@")

#: Cell to highlight -> its style on a terminal.
STYLES: Final[Mapping[str, str]] = {
    "HANGING": "bold red",
    "STUCK": "red",
    "LATE": "yellow",
    "SUSPECT": "yellow",
    "UNKNOWN": "magenta",
    "DAMAGED": "red",
    "PARTIAL": "yellow",
    "MISSING": "magenta",
    "FAILED": "red",
}


def grid(columns: Sequence[str], rows: Sequence[Row], form: str, *, width: int | None = None) -> str:
    """The columns of the rows in one of the three forms.

    `width`: of the terminal; None for text that is piped, which has no styles and lines of any length. On a terminal, the last
    columns are left out if they do not fit, and a single row that does not fit is shown as a list.
    """
    if form == JSON:
        return json_text([{name: plain(row[name]) for name in columns} for row in rows])
    if form == CSV:
        return _csv(columns, rows)
    cells = [[cell(row[name]) for name in columns] for row in rows]
    if width is None:
        return _padded([heading(name) for name in columns], cells)
    fitting = fitting_columns(columns, cells, width)
    if len(rows) == 1 and fitting < len(columns):
        return _listed(columns, cells[0], width)
    return _styled(columns[:fitting], [row[:fitting] for row in cells], width) + left_out(len(columns) - fitting)


def heading(column: str) -> str:
    """The name of a column in words."""
    return column.replace("_", " ")


def left_out(number: int) -> str:
    """A line about the columns that a grid leaves out."""
    columns = "1 more column" if number == 1 else f"{number} more columns"
    return f"({columns}: --wide, or --format json)\n" if number else ""


def fitting_columns(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> int:
    """How many of the first columns fit into a width. At least one."""
    used, number = -GAP, 0
    for position, name in enumerate(columns):
        used += GAP + least_width(name, [row[position] for row in cells])
        if used > width:
            break
        number += 1
    return max(number, 1)


def least_width(column: str, cells: Sequence[str]) -> int:
    """The least width of a column: of its longest cell, unless it is wrapped, and of the longest word in its heading."""
    longest = max(map(len, cells), default=0)
    return max(min(longest, LEAST_WRAPPED) if column in WRAPPED else longest, longest_word(heading(column)))


def longest_word(text: str) -> int:
    """The length of the longest word: headings are wrapped, too."""
    return max(map(len, text.split()), default=0)


def json_text(value: object) -> str:
    """JSON in which all unprintable characters are escaped, not only those that the standard requires."""
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def escaped_json(text: str) -> str:
    """The same JSON, with unprintable characters escaped."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def plain(value: Any) -> Any:
    """A value in JSON types; instants as ISO-8601 in UTC, with milliseconds; what JSON has no type for as text.

    An answer to a query in SQL has values of any type of DuckDB.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case datetime():
            return _in_utc(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case list() | tuple():
            return [plain(each) for each in value]
        case Mapping():
            return {str(plain(name)): plain(each) for name, each in value.items()}
        case _:
            return _text(value)


def _in_utc(instant: datetime) -> datetime:
    """An instant in UTC. One without a zone is in UTC, as in Delta tables."""
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _text(value: Any) -> str:
    if isinstance(value, timedelta):  # str() of an hour ago is "-1 day, 23:00:00"
        return f"-{-value}" if value < timedelta() else str(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def instant_json(ms: int) -> str:
    """An instant as in `plain`. A time from a log that is outside of the calendar is printed as a number."""
    try:
        return str(plain(datetime.fromtimestamp(ms / 1000, UTC)))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def cell(value: Any) -> str:
    """A value in a grid: a dash for None, partitions as Kafka's tools write them."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return _in_utc(value).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, list):
        return ", ".join(printable(_place(each)) for each in value)
    return printable(_text(value))


def _place(value: Any) -> str:
    is_place = isinstance(value, Mapping) and {"topic", "partition"} <= value.keys()
    return f"{value['topic']}-{value['partition']}" if is_place else str(plain(value))


def _csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [plain(row[name]) for name in columns]
        writer.writerow(["" if v is None else _csv_cell(v) for v in values])
    return out.getvalue()


def _csv_cell(value: Any) -> str:
    """A cell that no spreadsheet reads as a formula. Numbers keep their sign."""
    if isinstance(value, bool | int | float):
        return str(value)
    text = ",".join(printable(_place(each)) for each in value) if isinstance(value, list) else printable(value)
    return f"'{text}" if text.startswith(FORMULAS) else text


def _padded(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(column), *(len(row[i]) for row in cells)) if cells else len(column) for i, column in enumerate(columns)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in [columns, *cells]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _listed(columns: Sequence[str], row: Sequence[str], width: int) -> str:
    """One row as a list: a line for each column."""
    names = [heading(name) for name in columns]
    indent = max(map(len, names)) + GAP
    lines = []
    for name, column, text in zip(names, columns, row, strict=True):
        parts = wrap(text, max(width - indent, LEAST_WRAPPED), break_long_words=False) if column in WRAPPED else [text]
        lines += [f"{label:<{indent}}{part}" for label, part in zip_longest([name], parts or [""], fillvalue="")]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _styled(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    # Imported here, because piped output and scripts do not need it.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=width)  # knows NO_COLOR and TERM
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for position, name in enumerate(columns):
        least = least_width(name, [row[position] for row in cells])
        is_whole = name not in WRAPPED
        title = Text("\n".join(wrap(heading(name), max(least, 1))))
        table.add_column(title, overflow="fold", no_wrap=is_whole, min_width=least, width=least if is_whole else None)
    for row in cells:
        table.add_row(*[Text(text, style=STYLES.get(text.removeprefix("<-- "), "")) for text in row])
    with console.capture() as captured:
        console.print(table)
    return captured.get()
