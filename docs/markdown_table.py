"""Tables of the rendered pages."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a Markdown table, and an empty one. Cells are Markdown; a `|` in a cell is escaped."""
    head = [*head]
    return [_line(head), "|".join(["---"] * len(head)), *map(_line, rows), ""]


def _line(row: Iterable[str]) -> str:
    cells = [cell.replace("|", "\\|") for cell in row]
    while not cells[-1]:
        cells.pop()
    line = " | ".join(cells)
    return line if cells[0] and len(cells) > 1 else f"| {line.lstrip()}"
