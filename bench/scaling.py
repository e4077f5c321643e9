"""3. Two tasks against one."""

from __future__ import annotations

from pathlib import Path

from ratio_table import Ratio, Table
from spark_read import SECONDS, read_seconds

SPEED_UP = 1.7
READING = f"""Batches/s of the read into a DataFrame, by two tasks and by one, warm, best of {SECONDS} seconds. One task
uses both cores, for Spark and for Python, so the second line gives it one core."""


def measure_reading(capture: Path, batches: int) -> list[Ratio]:
    two, one, one_core = (batches / read_seconds(capture, *of) for of in ((2, 2), (1, 2), (1, 1)))
    return [
        Ratio(f"{batches:,} batches: 2 tasks over 1, on 2 cores", two, one, SPEED_UP),
        Ratio(f"{batches:,} batches: 2 tasks on 2 cores over 1 on 1", two, one_core, SPEED_UP),
    ]


def table(ratios: list[Ratio]) -> Table:
    return Table("Two cores", READING, "2 tasks", "1 task", ratios)
