"""Printed tables: ratios of two measurements of one run, and whether they reach their target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """One line: ours, what it is held against, and the ratio to reach, or not to exceed."""

    what: str
    ours: float
    other: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.other

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"

    @property
    def verdict(self) -> str:
        if self.at_least is None and self.at_most is None:
            return ""
        is_met = self.ratio >= (self.at_least or 0) and self.ratio <= (self.at_most or float("inf"))
        return "met" if is_met else "MISSED"


@dataclass(frozen=True)
class Table:
    """A heading, what was measured and how, the names of the two measures, and the lines."""

    title: str
    about: str
    ours: str
    other: str
    ratios: Sequence[Ratio]

    def text(self) -> str:
        cells = [("", self.ours, self.other, "ratio", "target", "")]
        for line in self.ratios:
            cells.append(
                (line.what, f"{line.ours:,.0f}", f"{line.other:,.0f}", f"{line.ratio:.2f}", line.target, line.verdict)
            )
        widths = [max(len(row[column]) for row in cells) for column in range(6)]
        return "\n".join(_row(row, widths) for row in cells)


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        text.ljust(width) if at == 0 else text.rjust(width)
        for at, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *rest]).rstrip()
