"""Rows as a grid for people, as JSON, or as CSV. No cell can forge a line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from txnlib.core.display import printable
from txnlib.queries.rows import Row

TABLE: Final = "table"
JSON: Final = "json"
CSV: Final = "csv"

#: Cells up to this length are not broken, however narrow the terminal is.
KEPT_WHOLE: Final = 15

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


def grid(columns: Sequence[str], rows: Sequence[Row], form: str, *, is_terminal: bool = False) -> str:
    """The columns of the rows in one of the three forms. A grid has styles only on a terminal."""
    if form == JSON:
        return json_text([{name: plain(row[name]) for name in columns} for row in rows])
    if form == CSV:
        return _csv(columns, rows)
    cells = [[cell(row[name]) for name in columns] for row in rows]
    return _styled(columns, cells) if is_terminal else _padded(columns, cells)


def json_text(value: object) -> str:
    """JSON in which all unprintable characters are escaped, not only those that the standard requires."""
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def escaped_json(text: str) -> str:
    """The same JSON, with unprintable characters escaped."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def plain(value: Any) -> Any:
    """A value in JSON types; instants as ISO-8601 in UTC, with milliseconds."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return value


def cell(value: Any) -> str:
    """A value in a grid: a dash for None, partitions as Kafka's tools write them."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, list):
        return ",".join(printable(_place(each)) for each in value)
    return printable(value)


def _place(value: Any) -> str:
    return f"{value['topic']}-{value['partition']}" if isinstance(value, Mapping) else str(value)


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
    text = cell(value) if isinstance(value, list) else printable(value)
    return f"'{text}" if text.startswith(FORMULAS) else text


def _padded(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(column), *(len(row[i]) for row in cells)) if cells else len(column) for i, column in enumerate(columns)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in [columns, *cells]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _styled(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    # Imported here, because piped output and scripts do not need it.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()  # knows NO_COLOR, TERM and the width
    widest = [max((len(row[i]) for row in cells), default=0) for i in range(len(columns))]
    # Do not break times and numbers: long cells give way first, if that is enough.
    least = [min(each, KEPT_WHOLE) for each in widest]
    has_room = sum(max(each, min(len(name), KEPT_WHOLE)) + 2 for each, name in zip(least, columns, strict=True)) <= console.width
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for name, width in zip(columns, least, strict=True):
        table.add_column(Text(name), overflow="fold", min_width=width if has_room else None)
    for row in cells:
        table.add_row(*[Text(text, style=STYLES.get(text.removeprefix("<-- "), "")) for text in row])
    with console.capture() as captured:
        console.print(table)
    return captured.get()
