"""4. Scaling: two tasks against one, and the memory of whole audits."""

from __future__ import annotations

from pathlib import Path

from machine import CORES
from processes import ROOT, Watched, spark_python, watched
from ratio_table import Ratio, Table
from spark_read import SECONDS, read_seconds

SPEED_UP, MEMORY = 1.7, 1.2
#: How many times the small input is the large one.
TIMES = 4
#: Folder of the large audit's tables.
LARGE = "out-large"
READING = f"""Batches/s of the read into a DataFrame, 500-byte batches, by a session with two tasks and by one with one task;
each in its own process, warm, best of {SECONDS} seconds. If one task has both cores, Spark works on one core while Python works
on the other, so the task uses more than one core's time. The second line therefore gives it one core, which is what it gets on
a machine where all cores are busy."""
AUDITS = f"""Whole audits, each in its own processes, of one input and of one {TIMES} times as large: the highest memory (MiB)
of the driver, its JVM and all Python workers (proportional set size, sampled four times a second), and the seconds from start
to end. The times are of one run each, cold as for a user. Most of a small audit is Spark's start, so what counts is the cost of
the added batches."""


def measure_reading(capture: Path, batches: int) -> list[Ratio]:
    two, one, one_core = (batches / read_seconds(capture, *of) for of in ((2, 2), (1, 2), (1, 1)))
    return [
        Ratio(f"{batches:,} batches: 2 tasks over 1, on 2 cores", two, one, SPEED_UP),
        Ratio(f"{batches:,} batches: 2 tasks on 2 cores over 1 on 1", two, one_core, SPEED_UP),
    ]


def audit(capture: Path, output: Path, *options: str) -> Watched:
    arguments = ["--input", str(capture), "--output", str(output), *options]
    command, environment = spark_python(CORES, str(ROOT / "jobs" / "audit.py"), *arguments)
    return watched(command, environment, output.with_suffix(".stderr"))


def measure_audits(small: Path, large: Path, batches: tuple[int, int], folder: Path) -> tuple[list[Ratio], str]:
    few, many = audit(small, folder / "out-small"), audit(large, folder / LARGE)
    each = (many.seconds - few.seconds) / (batches[1] - batches[0]) * 1e6
    name = f"{batches[1]:,} batches over {batches[0]:,}"
    ratios = [
        Ratio(f"memory: {name}", many.mib, few.mib, at_most=MEMORY),
        Ratio(f"seconds: {name}", many.seconds, few.seconds),
    ]
    return ratios, f"Each million batches adds {each:.1f} s."


def tables(reading: list[Ratio], audits: list[Ratio], remark: str) -> list[Table]:
    return [
        Table("Two cores", READING, "2 tasks", "1 task", reading),
        Table("Whole audits", f"{AUDITS} {remark}", "large", "small", audits),
    ]
