"""3. Two tasks against one."""

from __future__ import annotations

from pathlib import Path

from ratio_table import Ratio, Table
from spark_read import SECONDS, read_seconds

SPEED_UP = 1.7
READING = f"""Batches/s of the read into a DataFrame, 500-byte batches, by a session with two tasks and by one with one task;
each in its own process, warm, best of {SECONDS} seconds. If one task has both cores, Spark works on one core while Python works
on the other, so the task uses more than one core's time. The second line therefore gives it one core, which is what it gets on
a machine where all cores are busy."""


def measure_reading(capture: Path, batches: int) -> list[Ratio]:
    two, one, one_core = (batches / read_seconds(capture, *of) for of in ((2, 2), (1, 2), (1, 1)))
    return [
        Ratio(f"{batches:,} batches: 2 tasks over 1, on 2 cores", two, one, SPEED_UP),
        Ratio(f"{batches:,} batches: 2 tasks on 2 cores over 1 on 1", two, one_core, SPEED_UP),
    ]


def table(ratios: list[Ratio]) -> Table:
    return Table("Two cores", READING, "2 tasks", "1 task", ratios)
