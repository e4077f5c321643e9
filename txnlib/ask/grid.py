"""Rows as a grid for people, as JSON, or as CSV. No cell can forge a line."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, zip_longest
from textwrap import wrap
from typing import Any, Final

from txnlib.ask.queries import Row
from txnlib.core.display import BOOTSTRAP, printable, told

#: Largest width, and that of text in a pipe or a file.
WIDTH: Final = 132
#: Columns of a label, and before the text behind it: the indentation of lines that continue it.
LABEL: Final = 9
INDENT: Final = 2 + LABEL
#: Smallest width. A narrower terminal wraps lines itself.
NARROWEST: Final = 60


def text_width(terminal: int | None) -> int:
    """The width of text for a terminal of a width, within limits. Without a terminal, it is fixed."""
    return WIDTH if terminal is None else max(NARROWEST, min(WIDTH, terminal))


# ---- Tables, JSON and CSV


TABLE: Final = "table"
JSON: Final = "json"
CSV: Final = "csv"

#: Columns of sentences, which stand below their row where there is no room beside it.
SENTENCES: Final = frozenset({"detail", "evidence", "message", "explanation", "record", "says", "why"})
#: Columns of stored text whose instants are rewritten, so that they look like all others on the screen.
_TOLD: Final = frozenset({"detail", "evidence", "explanation", "do_not_abort_because", "says", "why"})
#: Columns that are wrapped between words. All other cells stay whole, because ids and times are copied.
WRAPPED: Final = SENTENCES | {"reason", "verdicts", "partitions", "input", "where", "what", "written by", "state after"}
#: Least width of a wrapped column, if no word is longer. Evidence needs more: its sentences contain dates and JSON.
LEAST_WRAPPED: Final = 24
_LEAST: Final = {"evidence": 48, "written by": 12, "state after": 10}
#: Names, without which no number of a row means anything: the last columns that a narrow terminal leaves out, in order.
_NAMES: Final = ("topic", "partition", "group_id", "transactional_id", "start_offset", "verdict")
#: Instants that name the end of a wait: rounded up, as in all sentences about them.
_ENDS: Final = ("ends_by", "safe_from", "not_before")
#: A date and a time, which stay on one line. They are joined by a character that no printable text has.
_INSTANT: Final = re.compile(r"\b(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)")
_NO_BREAK: Final = "\u00a0"
#: Spaces between two columns.
GAP: Final = 2

#: Characters that begin a formula in a spreadsheet, in addition to those that are escaped anyway. A leading apostrophe
#: makes the cell text (OWASP: CSV injection).
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
    "NOT_READ": "yellow",
    "FAILED": "red",
}


def grid(
    columns: Sequence[str], rows: Sequence[Row], form: str, *, width: int | None = None, kept: Sequence[str] = ()
) -> str:
    """The columns of the rows in one of the three forms.

    `width`: of the terminal; None for text that is piped, which has no styles and lines of any length. `kept`: the
    columns that a terminal has at any width, the most important first: those that do not fit stand below their row.
    Others, the last ones first, are left out if they do not fit, and a single row that does not fit is shown as a list.
    """
    if form == JSON:
        return json_text([{name: plain(row[name]) for name in columns} for row in rows])
    if form == CSV:
        return _csv(columns, rows)
    cells = [
        [
            told(row[name]) if name in _TOLD and row[name] is not None else cell(row[name], is_end=name in _ENDS)
            for name in columns
        ]
        for row in rows
    ]
    if width is None:
        return _padded([heading(name) for name in columns], cells)
    least = {name: least_width(name, [row[at] for row in cells]) for at, name in enumerate(columns)}
    foremost = [*kept, *(name for name in _NAMES if name not in kept)]
    by_importance = [*(name for name in foremost if name in least), *(name for name in columns if name not in foremost)]
    beside = _fitting(by_importance, least, width)
    below: list[str] = []
    if not {*kept} & least.keys() <= {*beside}:
        beside = _fitting([name for name in by_importance if name not in SENTENCES], least, width)
        below = [name for name in kept if name in least and name not in beside]
    missing = len(columns) - len(beside) - len(below)
    if len(rows) == 1 and missing:
        return _listed(columns, cells[0], width)
    table = [dict(zip(columns, row, strict=True)) for row in cells]
    return _styled({name: least[name] for name in columns if name in beside}, below, table, width) + left_out(missing)


def heading(column: str) -> str:
    """The name of a column in words."""
    return column.replace("_", " ")


def left_out(number: int) -> str:
    """A line about the columns that a grid leaves out."""
    columns = "1 more column" if number == 1 else f"{number} more columns"
    return f"({columns}: --wide, or --format json)\n" if number else ""


def _fitting(columns: Sequence[str], least: Mapping[str, int], width: int) -> list[str]:
    """The first columns that fit into a width. At least one."""
    ends = accumulate(least[name] + GAP for name in columns)
    return [name for at, (name, end) in enumerate(zip(columns, ends, strict=True)) if at == 0 or end - GAP <= width]


def least_width(column: str, cells: Sequence[str]) -> int:
    """The least width of a column: of its longest cell, or of its longest word if it is wrapped, or in its heading."""
    longest, least = max(map(len, cells), default=0), _LEAST.get(column, LEAST_WRAPPED)
    if column in WRAPPED and longest > least:
        longest = max(least, *(len(word) for text in cells for _, word in _words(text)))
    return max([longest, *map(len, heading(column).split())])  # headings are wrapped, too


def _words(text: str) -> Iterator[tuple[str, str]]:
    """The words of a text, each with what separates it from the word before. A long word, such as a list or JSON, is
    divided after each comma."""
    for word in text.split(" "):
        before = " "
        for part in re.findall("[^,]*,|[^,]+", word) if len(word) > LEAST_WRAPPED else [word]:
            yield before, part
            before = ""


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, wrapped between words. A word that is longer than a line stays whole."""
    lines: list[str] = []
    for before, word in _words(text):
        if lines and len(lines[-1]) + len(before) + len(word) <= width:
            lines[-1] += before + word
        else:
            lines.append(word)
    return lines


def fold(text: str, width: int) -> str:
    """The text with its long lines wrapped."""
    return "".join(f"{part}\n" for line in text.splitlines() for part in folded(line, width))


def folded(line: str, width: int, indent: int | None = None) -> list[str]:
    """The lines of a line, wrapped between words, but never inside an instant. All lines after the first are indented
    by `indent`, or else by two spaces more than the first."""
    spaces = len(line) - len(line.lstrip()) + 2 if indent is None else indent
    joined = _INSTANT.sub(rf"\1{_NO_BREAK}\2", line)
    lines = wrap(joined, width, subsequent_indent=" " * spaces, break_on_hyphens=False, break_long_words=False)
    return [each.replace(_NO_BREAK, " ") for each in lines] or [""]


def beside(label: str, text: object, width: int, room: int) -> list[str]:
    """A sentence behind its label, in lines of a width. `room`: of the label."""
    return folded(f"  {printable(label):<{room}}{told(text)}", width, 2 + room)


def command_lines(line: str, width: int, indent: int) -> list[str]:
    """A line with a command of Kafka's tools, whole; on a terminal too narrow for it, broken where a shell goes on.

    The command must be printable, and nothing else of it is changed.
    """
    begun, sign, rest = line.partition(f"{BOOTSTRAP} ")
    is_broken = sign and len(line) > width < WIDTH
    return [f"{begun}{sign}\\", f"{'':{indent}}{rest}"] if is_broken else [line]


def json_text(value: object) -> str:
    """JSON in which all unprintable characters are escaped, not only those that the standard requires."""
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def escaped_json(text: str) -> str:
    """The JSON text, with unprintable characters escaped."""
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


def cell(value: Any, *, is_end: bool = False) -> str:
    """A value in a grid: a dash for None, partitions as Kafka's tools write them. `is_end`: rounds an instant up."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        rounded = value + timedelta(microseconds=-value.microsecond % 1_000_000) if is_end else value
        return _in_utc(rounded).strftime("%Y-%m-%d %H:%M:%SZ")
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
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = ",".join(printable(_place(each)) for each in value) if isinstance(value, list) else printable(value)
    return f"'{text}" if text.startswith(FORMULAS) else text


def _padded(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    widths = [
        max(len(column), *(len(row[i]) for row in cells)) if cells else len(column) for i, column in enumerate(columns)
    ]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in [columns, *cells]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _listed(columns: Sequence[str], row: Sequence[str], width: int) -> str:
    """One row as a list: a line for each column."""
    names = [heading(name) for name in columns]
    indent = max(map(len, names)) + GAP
    lines = []
    for name, text in zip(names, row, strict=True):
        lines += [
            f"{label:<{indent}}{part}"
            for label, part in zip_longest([name], wrapped(text, max(width - indent, 1)), fillvalue="")
        ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _widths(least: Mapping[str, int], rows: Sequence[Mapping[str, str]], width: int) -> dict[str, int]:
    """The width of each column. Those that are wrapped share the room that is left, those that need least first."""
    room = width - sum(least.values()) - GAP * (len(least) - 1)
    wanted = {
        name: max(len(heading(name)), *(len(row[name]) for row in rows)) if rows else len(heading(name))
        for name in least
    }
    widths = dict(least)
    growing = sorted((wanted[name] - least[name], name) for name in least)
    for at, (more, name) in enumerate(growing):
        given = max(0, min(more, room // (len(growing) - at)))
        widths[name] += given
        room -= given
    return widths


def _below(cells: Mapping[str, str], below: Sequence[str], width: int) -> list[str]:
    """The lines below a row: values, each with the name of its column, then sentences, which need none."""
    given = [name for name in below if cells[name] != cell(None)]
    lines: list[str] = []
    for name in (each for each in given if each not in SENTENCES):
        said = f"{heading(name)} {cells[name]}"
        if lines and len(f"{lines[-1]}   {said}") <= width:
            lines[-1] += f"   {said}"
        else:
            lines.append(said)
    sentences = [cells[name] for name in given if name in SENTENCES]
    return [text for each in (*lines, *sentences) for text in wrapped(each, width) if text]


def _styled(least: Mapping[str, int], below: Sequence[str], rows: Sequence[Mapping[str, str]], width: int) -> str:
    # Imported here, because piped output and scripts do not need it.
    from rich.console import Console
    from rich.text import Text

    widths = _widths(least, rows, width)
    # It knows NO_COLOR, FORCE_COLOR and TERM. In a kernel of Jupyter, it would also display each line by itself.
    console = Console(width=width, force_jupyter=False)

    def line(cells: Mapping[str, str], style: str = "") -> Iterator[Text]:
        parts = {name: wrapped(cells[name], widths[name]) for name in widths}
        for texts in zip_longest(*parts.values(), fillvalue=""):
            made = Text(style=style)
            for name, text in zip(widths, texts, strict=True):
                made.append(" " * (GAP if name != next(iter(widths)) else 0))
                made.append(text.ljust(widths[name]), STYLES.get(cells[name].removeprefix("<-- "), ""))
            made.rstrip()
            yield made
        yield from (Text(f"    {text}") for text in _below(cells, below, width - 4))

    heads = (*widths, *(name for name in below if name in SENTENCES))
    names = {**dict.fromkeys(below, cell(None)), **{name: heading(name) for name in heads}}
    with console.capture() as captured:
        for text in (
            *line(names, "bold"),
            Text("─" * (sum(widths.values()) + GAP * (len(widths) - 1))),
            *chain.from_iterable(map(line, rows)),
        ):
            console.print(text, soft_wrap=True)
    return captured.get()
