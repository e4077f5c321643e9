"""6. A night that adds one per cent. An incremental audit next to a full one, without start-up."""

from __future__ import annotations

from pathlib import Path

from generate import generate
from ratio_table import Ratio, Table
from scaling import audit

ADDED, MOST = 0.01, 0.08
#: Too few batches to take any time.
NOTHING = 1_000
LATER = "2099-01-01T00:00:00Z"
ABOUT = f"""Seconds of `audit --mode incremental` of a capture that has grown by {ADDED:.0%}, against those of a full audit of
the same capture. From each is subtracted what an audit of its kind takes for {NOTHING:,} batches (of which the incremental one
finds nothing new). Each ran once, in its own processes. Its tables equal those of the full audit, row for row. The second line
is the total of both, start included: the time a user waits."""


def measure(folder: Path, known: Path, batches: int, batch_bytes: int, partitions: int) -> list[Ratio]:
    """`known`: the tables of an audit of the capture, whose cluster has the same name as the grown one, before it grew."""
    grown, little = folder / "night" / "capture", folder / "little" / "capture"
    generate(grown, int(batches * (1 + ADDED)), batch_bytes, partitions)  # the same seeds: the same logs, and what follows
    generate(little, NOTHING, batch_bytes, 1)
    start = audit(little, folder / "out-little").seconds
    night_start = audit(little, folder / "out-little", "--mode", "incremental", "--as-of", LATER).seconds
    full = audit(grown, folder / "out-grown").seconds
    night = audit(grown, known, "--mode", "incremental").seconds
    name = f"{batches:,} batches and {ADDED:.0%} more"
    return [
        Ratio(f"{name}: incremental", night - night_start, full - start, at_most=MOST),
        Ratio(f"{name}: with the start of each", night, full),
    ]


def table(ratios: list[Ratio]) -> Table:
    return Table("Nights", ABOUT, "seconds", "full audit", ratios)
