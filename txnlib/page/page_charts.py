"""Charts of the report page: partitions by status as squares, verdicts of runs as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from txnlib.ask.rows import Row
from txnlib.core.display import utc_time
from txnlib.core.rows import grouped

#: Squares per line of the coverage map, and the size of one.
IN_A_LINE: Final = 25
CELL: Final = 12
#: The bars of the history: their ground, their left edge, and their room.
HEIGHT: Final = 110
LEFT: Final = 34
WIDTH: Final = 420
#: Verdicts in the history, from bottom to top.
STACKED: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN")
_GAP: Final = 4
#: Room of a date below the history, and most lines above its ground.
_DATE: Final = 74
_LINES: Final = 4


@dataclass(frozen=True, slots=True)
class Squares:
    """The partitions of a topic as squares: for each status, a path whose dashes are the squares."""

    width: int
    height: int
    paths: Sequence[tuple[str, str]]
    #: Status that is not COMPLETE -> its partitions in words, such as `partitions 0 to 3, 7`.
    harmed: Mapping[str, str]


def squares(rows: Sequence[Row]) -> Squares:
    """The coverage map of one topic: rows with partition and status, in order."""
    places: dict[str, list[str]] = {}
    statuses = [row["status"] for row in rows]
    for number, first in enumerate(range(0, len(rows), IN_A_LINE)):
        at = 0
        for status, run in groupby(statuses[first : first + IN_A_LINE]):
            length = len(list(run))
            places.setdefault(status, []).append(f"M{at * CELL} {number * CELL + CELL // 2}h{length * CELL}")
            at += length
    harmed = grouped((row for row in rows if row["status"] != "COMPLETE"), lambda row: row["status"])
    lines = -(-len(rows) // IN_A_LINE)
    return Squares(
        width=min(len(rows), IN_A_LINE) * CELL,
        height=max(1, lines) * CELL,
        paths=[(status.lower(), "".join(lines)) for status, lines in sorted(places.items())],
        harmed={status: _named([row["partition"] for row in some]) for status, some in harmed.items()},
    )


def _named(numbers: Sequence[int]) -> str:
    """Numbers of partitions in words. Neighbours are a range."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    said = ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in ranges)
    return f"partition{'' if len(numbers) == 1 else 's'} {said}"


@dataclass(frozen=True, slots=True)
class CoveredTopic:
    """One topic: its partitions, how many of them are COMPLETE, and its rows of the coverage map."""

    topic: str
    partitions: int
    complete: int
    rows: Sequence[Row]

    @property
    def is_whole(self) -> bool:
        return self.complete == self.partitions


def covered_topics(topics: Mapping[str, Mapping[str, int]], covered: Sequence[Row]) -> list[CoveredTopic]:
    """The topics in their order."""
    rows = grouped(covered, lambda row: row["topic"])
    return [
        CoveredTopic(topic, sum(counts.values()), counts.get("COMPLETE", 0), rows[topic])
        for topic, counts in topics.items()
    ]


@dataclass(frozen=True, slots=True)
class StackedBar:
    """One run: its bars, from bottom to top."""

    x: float
    width: float
    says: str
    bars: Sequence[tuple[str, float, float]]


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """Runs as stacked bars, the oldest on the left, with axes."""

    columns: Sequence[StackedBar]
    #: Height and number of each line of the vertical axis.
    counts: Sequence[tuple[float, int]]
    #: Middle and day of the runs that are named below.
    dates: Sequence[tuple[float, str]]


def history(runs: Sequence[Row]) -> HistoryChart:
    """The chart of `runs`, which are newest first."""
    totals = [sum(run["verdicts"].get(name, 0) for name in STACKED) for run in runs]
    most = max([1, *totals])
    unit = (HEIGHT - 12) / most
    each = min(80.0, (WIDTH - LEFT - 1) / max(1, len(runs)))
    columns = []
    for i, run in enumerate(reversed(runs)):
        counted = [f"{run['verdicts'][name]} {name}" for name in STACKED if run["verdicts"].get(name)]
        says = f"{utc_time(run['as_of_ms'])}: {', '.join(counted) or 'nothing to do'}"
        columns.append(StackedBar(LEFT + _GAP + i * each, max(1.0, each - _GAP), says, list(_bars(run, unit))))
    step = max(1, -(-most // _LINES))
    dates: list[tuple[float, str]] = []
    for column, run in reversed(list(zip(columns, reversed(runs), strict=True))):
        middle = max(column.x + column.width / 2, LEFT + _DATE / 2)
        if not dates or dates[-1][0] - middle >= _DATE:
            dates.append((min(middle, WIDTH - _DATE / 2), utc_time(run["as_of_ms"])[:10]))
    return HistoryChart(columns, [(HEIGHT - count * unit, count) for count in range(0, most + 1, step)], dates[::-1])


def _bars(run: Row, unit: float) -> Iterator[tuple[str, float, float]]:
    ground = float(HEIGHT)
    for name in STACKED:
        height = run["verdicts"].get(name, 0) * unit
        if height:
            ground -= height
            yield name.lower(), round(ground, 1), round(height, 1)
