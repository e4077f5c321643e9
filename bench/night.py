"""6. What does a night cost that adds 1% to what is known? An incremental audit next to a full one, both beyond their start.

As a program of its own it prints how long it takes to write the rows of `record_batches` of a run once more, and nothing else: each
run has rows of its own in every table, so a night writes them too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from generate import generate
from machine import CORES
from processes import output_of, spark_python, timed
from scaling import audit
from stored import reopened, store_again
from table import Ratio, Table

ADDED, MOST = 0.01, 0.08
#: Too few batches to take any time.
NOTHING = 1_000
ABOUT = f"""Seconds of `audit --mode incremental` of a capture that has grown by {ADDED:.0%}, against those of a full audit of the
same capture, both without what an audit of {NOTHING:,} batches takes; each in processes of its own, once. Its tables equal those
of the full audit, row for row, and every row has its run: so all rows of `record_batches` are written again, which alone, out of
the same Delta table, in a warm session, takes the time of the second line."""


def measure(folder: Path, known: Path, batches: int, batch_bytes: int, partitions: int) -> list[Ratio]:
    """`known`: the tables of an audit of the capture, whose cluster has the same name as the grown one, before it grew."""
    grown, little = folder / "night" / "capture", folder / "little" / "capture"
    generate(grown, int(batches * (1 + ADDED)), batch_bytes, partitions)  # the same seeds: the same logs, and what follows
    generate(little, NOTHING, batch_bytes, 1)
    start = audit(little, folder / "out-little").seconds
    full = audit(grown, folder / "out-grown").seconds - start
    night = audit(grown, known, "--mode", "incremental").seconds - start
    command, environment = spark_python(CORES, __file__, str(known))
    copied = float(output_of(command, environment))
    name = f"{batches:,} batches and {ADDED:.0%} more"
    return [
        Ratio(f"{name}: incremental", night, full, at_most=MOST),
        Ratio(f"{name}: record_batches written again, alone", copied, full),
    ]


def table(ratios: list[Ratio]) -> Table:
    return Table("Nights", ABOUT, "seconds", "full audit", ratios)


def main() -> None:
    _, run = reopened(sys.argv[1])
    with TemporaryDirectory() as folder:
        print(min(timed(lambda: store_again(run, "record_batches", folder)) for _ in range(3)))


if __name__ == "__main__":
    main()
