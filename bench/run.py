"""Benchmarks next to other tools, on the same files and cores. One command, tables of ratios.

    bench/run.sh [--batch-bytes 16384 --batch-bytes 500] [--batches N] [--judged-batches N] [--partitions N] [--keep FOLDER]
                 [--write]
    bench/run.sh --slopes [--partitions N] [--keep FOLDER]

Makes seeded captures (generate.py), then measures reading them against numpy's floor (raw_segments.py) and Kafka's own dump tool
(dump_tool.py), reading text against Polars (dump_text.py), two cores against one, the memory of whole audits (scaling.py),
judging against the windows alone (judging.py), and an incremental run against a full audit (incremental_run.py).
`--slopes` measures what docs/scale.md calculates with instead (slopes.py).
Ratios of one run, not seconds, are what to compare between machines and days.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill

import dump_text
import dump_tool
import incremental_run
import judging
import raw_segments
import scaling
import slopes
from generate import generate
from machine import describe
from processes import ROOT, timed
from ratio_table import Table

#: Bytes of a batch -> batches, so that the whole takes some minutes.
BATCHES = {16_384: 500_000, 500: 4_000_000}
FACTS = (
    "on {machine}; generated captures of {partitions} partitions. The load average was {before:.1f} at the start "
    "and {after:.1f} at the end: the load at the start came from other work, and distorts ratios too."
)
PAGE = ROOT / "docs" / "performance.md"
HEAD = """# Performance

Ratios of measurements taken in one run, on one machine, one after the other. Written on {day} by

```
{command}
```

{facts}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, help=f"of each size (default: {BATCHES})")
    parser.add_argument("--batch-bytes", type=int, action="append", help="repeatable; text, cores and audits take the smallest")
    parser.add_argument("--judged-batches", type=int, help="of the smallest size (default: as read); the target is for 10000000")
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="use, or make and keep, the captures in this folder")
    parser.add_argument("--slopes", action="store_true", help="only audits of three sizes, and a night after the last: slopes.py")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    sizes = {size: given.batches or BATCHES.get(size, 1_000_000) for size in given.batch_bytes or BATCHES}
    folder = given.keep or Path(tempfile.mkdtemp(prefix="txnlib-bench-"))
    if given.slopes:
        slopes.measure(folder, given.partitions)
        return
    tables: list[Table] = []
    before = os.getloadavg()[0]
    try:
        seconds = timed(lambda: measure(folder, sizes, given.partitions, given.judged_batches, tables))
    finally:
        if given.keep is None:
            shutil.rmtree(folder)
    after = os.getloadavg()[0]
    print(f"\n{describe()}\n{seconds / 60:.1f} minutes, load average {before:.1f} before and {after:.1f} after")
    if given.write:
        # Where captures were kept is of no use to others.
        given_words = [word for word in sys.argv[1:] if word not in ("--keep", str(given.keep))]
        command = shlex.join(["bench/run.sh", *given_words])
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        facts = FACTS.format(machine=describe(), partitions=given.partitions, before=before, after=after)
        head = HEAD.format(day=day, command=command, facts=fill(facts, 120))
        PAGE.write_text("\n".join([head, *(table.markdown() for table in tables)]))


def measure(folder: Path, sizes: dict[int, int], partitions: int, judged: int | None, tables: list[Table]) -> None:
    """Prints each table as soon as it is there, and adds it to the list."""

    def show(table: Table) -> None:
        print(f"\n{table.title}\n\n{table.text()}", flush=True)
        tables.append(table)

    captures = {size: capture_of(folder, size, batches, partitions) for size, batches in sizes.items()}
    read = {size: raw_segments.measure(capture, size) for size, capture in captures.items()}
    show(raw_segments.table(list(read.values())))
    show(dump_tool.table([(read[size], dump_tool.tool_seconds(capture)) for size, capture in captures.items()]))

    size = min(sizes)
    batches = read[size].batches
    few = capture_of(folder, size, sizes[size] // scaling.TIMES, partitions)
    show(dump_text.table(dump_text.measure(few, few.parent / "text")))
    reading = scaling.measure_reading(captures[size], batches)
    audits, remark = scaling.measure_audits(few, captures[size], (batches // scaling.TIMES, batches), few.parent)
    for table in scaling.tables(reading, audits, remark):
        show(table)
    capture, output, judged = captures[size], few.parent / scaling.LARGE, judged or sizes[size]
    if judged != sizes[size]:
        capture = capture_of(folder, size, judged, partitions)
        output = capture.parent / "out"
        scaling.audit(capture, output)
    show(judging.table(judging.measure(output, judged)))
    show(incremental_run.table(incremental_run.measure(capture.parent, output, judged, size, partitions)))


def capture_of(folder: Path, size: int, batches: int, partitions: int) -> Path:
    """The generated capture, made unless it is there."""
    capture = folder / f"{batches}-batches-of-{size}-bytes" / "capture"
    if not capture.exists():
        generate(capture, batches, size, partitions)
    return capture


if __name__ == "__main__":
    main()
