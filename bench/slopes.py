"""The cost of each added batch: three sizes, each four times the last, and a night that adds 1%.

Prints what docs/performance.md calculates with: seconds of wall and of all cores, memory, shuffled bytes, bytes of each
table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from generate import generate
from machine import CORES, describe
from processes import ROOT, Watched, spark_python, watched

BATCHES, BATCH_BYTES = (200_000, 800_000, 3_200_000), 500
#: Added in the night after the largest.
NIGHT = 0.01
COLUMNS = ("batches", "wall s", "CPU s", "MiB", "shuffled MiB", "spilled MiB", "tables MiB", "load")
_ROWS = re.compile(r"^(\w+): ([\d,]+) rows?, ([\d.]+) s$", re.MULTILINE)


@dataclass(frozen=True)
class Audit:
    """One audit: what it took, what its tasks shuffled and spilled, and what it left."""

    name: str
    batches: int
    took: Watched
    shuffled: int
    spilled: int
    #: Table -> bytes, rows and seconds, of this run.
    tables: dict[str, tuple[int, int, float]]
    load: float

    def cells(self) -> list[str]:
        size = sum(each for each, _, _ in self.tables.values())
        numbers = (self.shuffled / 2**20, self.spilled / 2**20, size / 2**20)
        took = f"{self.took.seconds:.0f}", f"{self.took.cpu_seconds:.0f}", f"{self.took.mib:,}"
        return [self.name, f"{self.batches:,}", *took, *(f"{number:,.1f}" for number in numbers), f"{self.load:.1f}"]


def measure(folder: Path, partitions: int) -> None:
    """Prints a line for each audit as soon as it is done, then the slopes, then the tables of the largest."""
    print(describe(), flush=True)
    print("  ".join(["", *COLUMNS]), flush=True)
    audits = []
    for wanted in BATCHES:
        capture = folder / f"slope-{wanted}" / "capture"
        batches = generate(capture, wanted, BATCH_BYTES, partitions)
        audits.append(_audit("full", capture, folder / f"out-{wanted}", batches))
    later = folder / "slope-night" / "capture"  # the same seeds: the largest, and what follows it
    batches = generate(later, int(BATCHES[-1] * (1 + NIGHT)), BATCH_BYTES, partitions)
    _audit("night", later, folder / f"out-{BATCHES[-1]}", batches, "--mode", "incremental")
    for few, many in pairwise(audits):
        print(_slope(few, many))
    print(_tables(audits[-1]))


def _audit(name: str, capture: Path, output: Path, batches: int, *options: str) -> Audit:
    events = output.with_name(f"{output.name}-events")
    shutil.rmtree(events, ignore_errors=True)
    events.mkdir(parents=True)
    said = output.with_suffix(f".{name}")
    load = os.getloadavg()[0]
    arguments = ["--input", str(capture), "--output", str(output), *options]
    command, environment = spark_python(CORES, str(ROOT / "jobs" / "audit.py"), *arguments)
    logged = (
        "--conf spark.eventLog.enabled=true --conf spark.eventLog.compress=false --conf"
        f" spark.eventLog.dir=file://{events} "
    )
    environment["PYSPARK_SUBMIT_ARGS"] = logged + environment["PYSPARK_SUBMIT_ARGS"]
    took = watched(command, environment, said)
    written = {
        table: (int(rows.replace(",", "")), float(seconds)) for table, rows, seconds in _ROWS.findall(said.read_text())
    }
    tables = {table: (_newest_bytes(output / table), *each) for table, each in written.items()}
    tasks = list(_tasks(events))
    shuffled = sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in tasks)
    audit = Audit(name, batches, took, shuffled, sum(task["Disk Bytes Spilled"] for task in tasks), tables, load)
    print("  ".join(audit.cells()), flush=True)
    return audit


def _newest_bytes(table: Path) -> int:
    """Bytes that the newest commit of a table added."""
    newest = max((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    return sum(action["add"]["size"] for action in actions if "add" in action)


def _tasks(events: Path) -> Iterator[dict]:
    for log in events.rglob("events_*"):
        with log.open() as lines:
            for line in lines:
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    metrics = json.loads(line).get("Task Metrics")
                    if metrics:
                        yield metrics


def _slope(few: Audit, many: Audit) -> str:
    added = (many.batches - few.batches) / 1e6
    each = {
        "wall s": many.took.seconds - few.took.seconds,
        "CPU s": many.took.cpu_seconds - few.took.cpu_seconds,
        "MiB": many.took.mib - few.took.mib,
        "shuffled MiB": (many.shuffled - few.shuffled) / 2**20,
        "tables MiB": sum(many.tables[name][0] - few.tables[name][0] for name in few.tables) / 2**20,
    }
    said = ", ".join(f"{difference / added:.1f} {unit}" for unit, difference in each.items())
    return f"from {few.batches:,} to {many.batches:,}, each million batches adds {said}"


def _tables(audit: Audit) -> str:
    lines = [f"\n{audit.batches:,} batches  rows  bytes a row  bytes a batch  seconds"]
    for name, (size, rows, seconds) in sorted(audit.tables.items(), key=lambda each: -each[1][0]):
        if rows:
            lines.append(f"{name}  {rows:,}  {size / rows:.1f}  {size / audit.batches:.2f}  {seconds:.1f}")
    return "\n".join(lines)
