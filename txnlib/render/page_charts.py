"""Charts of the report page: partitions by status as squares, verdicts of runs as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from txnlib.queries.rows import Row

#: Squares per line of the coverage map, and the size of one.
IN_A_LINE: Final = 50
CELL: Final = 12
HEIGHT: Final = 90
#: Verdicts in the history, from bottom to top.
STACKED: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN")
_GAP: Final = 4


@dataclass(frozen=True, slots=True)
class Squares:
    """The partitions of a topic as squares: for each status, a path whose dashes are the squares."""

    width: int
    height: int
    paths: Sequence[tuple[str, str]]
    #: Numbers of the partitions that are not COMPLETE.
    harmed: Sequence[str]


def squares(rows: Sequence[Row]) -> Squares:
    """The coverage map of one topic: rows with partition and status, in order."""
    places: dict[str, list[str]] = {}
    for number, line in enumerate(_lines([row["status"] for row in rows])):
        at = 0
        for status, run in groupby(line):
            length = len(list(run))
            places.setdefault(status, []).append(f"M{at * CELL} {number * CELL + CELL // 2}h{length * CELL}")
            at += length
    harmed = [f"{row['partition']} {row['status']}" for row in rows if row["status"] != "COMPLETE"]
    lines = -(-len(rows) // IN_A_LINE)
    return Squares(
        width=min(len(rows), IN_A_LINE) * CELL,
        height=max(1, lines) * CELL,
        paths=[(status.lower(), "".join(lines)) for status, lines in sorted(places.items())],
        harmed=harmed,
    )


def _lines(statuses: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(statuses), IN_A_LINE):
        yield statuses[first : first + IN_A_LINE]


@dataclass(frozen=True, slots=True)
class Column:
    """One run: its bars, from bottom to top."""

    x: int
    width: int
    bars: Sequence[tuple[str, float, float]]


def columns_of(runs: Sequence[Row], width: int) -> list[Column]:
    """The history as stacked bars, oldest run on the left. `runs` are newest first."""
    totals = [sum(run["verdicts"].get(name, 0) for name in STACKED) for run in runs]
    unit = (HEIGHT - 2) / max([1, *totals])
    each = min(48, width // max(1, len(runs)))
    return [Column(i * each, each - _GAP, list(_bars(run, unit))) for i, run in enumerate(reversed(runs))]


def _bars(run: Row, unit: float) -> Iterator[tuple[str, float, float]]:
    ground = float(HEIGHT)
    for name in STACKED:
        height = run["verdicts"].get(name, 0) * unit
        if height:
            ground -= height
            yield name.lower(), round(ground, 1), round(height, 1)
