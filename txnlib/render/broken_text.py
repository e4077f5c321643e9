"""Transactions that are split or half-marked, as lines of the report."""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.core.display import printable
from txnlib.queries.broken_transactions import BrokenTransaction
from txnlib.queries.rows import Row
from txnlib.render.report_entries import INDENT, Line, where

#: Most transactions, and most partitions of each.
SHOWN, PLACES = 5, 6


def broken_lines(broken: Sequence[BrokenTransaction]) -> list[Line]:
    """A line for each transaction, with its partitions."""
    if not broken:
        return []
    lines: list[Line] = ["", "SPLIT OR HALF-MARKED"]
    for each in broken[:SHOWN]:
        decided = "not decided" if each.decided_outcome == "OPEN" else f"decided {each.decided_outcome}"
        head = f"  {printable(each.transactional_id)}   transaction {each.number}   producer {each.producer_id}   {decided}: "
        more = f" and {len(each.partitions) - PLACES} more" if len(each.partitions) > PLACES else ""
        lines.append((f"{head}{', '.join(map(_place, each.partitions[:PLACES]))}{more}", INDENT))
    hidden = len(broken) - SHOWN
    return [*lines, f"  and {hidden} more: the view latest_whole_transactions"] if hidden > 0 else lines


def _place(row: Row) -> str:
    marked = f"{row['outcome']} at offset {row['marker_offset']}" if row["marker_offset"] is not None else "no marker"
    return f"{where(row)} {marked} ({row['marker']})"
