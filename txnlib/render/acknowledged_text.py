"""The acknowledged part of a report: each entry with what it matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from txnlib.core.display import counted, printable, utc_time
from txnlib.queries.rows import Row
from txnlib.render.report_entries import INDENT, Line, where

if TYPE_CHECKING:
    from txnlib.queries.acknowledgements import Acknowledged, Acknowledgement

#: Transactions to name for one entry, and entries to show of each kind.
SHOWN_MATCHES: Final = 3
SHOWN_ENTRIES: Final = 10


def acknowledged_lines(known: Acknowledged | None) -> list[Line]:
    """A section of the report; no line if no file was given."""
    if known is None:
        return []
    of_entry: dict[int, tuple[Acknowledgement, list[Row]]] = {}
    for row, entry in known.transactions.values():
        of_entry.setdefault(id(entry), (entry, []))[1].append(row)
    lines = [
        *(f"  {_transactions(rows)}: {_says(entry)}" for entry, rows in of_entry.values()),
        *(f"  {number} {entry}: {_says(entry)}" for entry, number in known.findings),
    ]
    ended = [f"  ended on {utc_time(each.until_ms)}, so this counts again: {_entry(each)}" for each in known.ended]
    idle = [f"  matches nothing, and can be removed: {_entry(each)}" for each in known.idle]
    parts = [line for part in (lines, ended, idle) for line in _first(part)]
    return ["", "ACKNOWLEDGED", *((line, INDENT) for line in parts)] if parts else []


def _first(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - SHOWN_ENTRIES
    return [*lines[:SHOWN_ENTRIES], *([f"  and {hidden} more entries"] if hidden > 0 else [])]


def _transactions(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{row['verdict']} {where(row)} offset {row['start_offset']}" for row in rows[:SHOWN_MATCHES])
    return shown if len(rows) <= SHOWN_MATCHES else f"{shown} and {counted(len(rows) - SHOWN_MATCHES, 'other')}"


def _says(entry: Acknowledgement) -> str:
    return f"until {utc_time(entry.until_ms)} by {printable(entry.by)}: {printable(entry.why)}"


def _entry(entry: Acknowledgement) -> str:
    return f"{printable(entry)} ({_says(entry)})"
