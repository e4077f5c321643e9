"""Benchmarks next to other tools, on the same files and cores. One command, tables of ratios.

    bench/run.sh [--only PART]... [--batches N] [--audited-batches N] [--partitions N] [--keep FOLDER]
    bench/run.sh --slopes [--partitions N] [--keep FOLDER]

Measures small audits against trivial tables (small_audit.py). Makes seeded captures (generate.py), then measures
reading them against numpy's floor (raw_segments.py) and Kafka's own dump tool (dump_tool.py), reading text against
Polars (dump_text.py), two cores against one (scaling.py), whole audits against the dump tool, and their memory
(whole_audits.py), judging against the windows alone (judging.py), a night against a full audit, in a folder and in S3
(nights.py), and many partitions, and many open producers, against a tenth of them (many_partitions.py,
open_producers.py). `--slopes` measures what docs/performance.md calculates with instead (slopes.py).
Ratios of one run, not seconds, are what to compare between machines and days.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dump_text
import dump_tool
import judging
import many_partitions
import nights
import open_producers
import raw_segments
import scaling
import slopes
import small_audit
import whole_audits
from generate import generate
from machine import describe
from processes import timed
from ratio_table import Table

#: Bytes of a batch -> batches to read, so that the whole takes some minutes.
BATCHES = {16_384: 500_000, 500: 4_000_000}
#: Bytes of a batch -> batches to audit, with a realistic mix of producers.
AUDITED = {500: 10_000_000, 16_384: 500_000}
PARTS = ("small", "read", "audits", "judging", "nights", "partitions", "producers")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS, action="append", help="repeatable; default: all")
    parser.add_argument("--batches", type=int, help=f"to read, of each size (default: {BATCHES})")
    parser.add_argument(
        "--audited-batches", type=int, help=f"to audit, of each size (default, to which targets apply: {AUDITED})"
    )
    parser.add_argument("--partitions", type=int, default=21, help="a third of them of each kind (default: 21)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="use, or make and keep, the captures in this folder"
    )
    parser.add_argument(
        "--slopes", action="store_true", help="only audits of three sizes, and a night after the last: slopes.py"
    )
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="txnlib-bench-"))
    if given.slopes:
        slopes.measure(folder, given.partitions)
        return
    before = os.getloadavg()[0]
    try:
        seconds = timed(lambda: measure(folder, given))
    finally:
        if given.keep is None:
            shutil.rmtree(folder)
    after = os.getloadavg()[0]
    print(f"\n{describe()}\n{seconds / 60:.1f} minutes, load average {before:.1f} before and {after:.1f} after")


def measure(folder: Path, given: argparse.Namespace) -> None:
    """Prints each table as soon as it is there. A part that fails does not end the others."""
    parts = given.only or PARTS
    mixed_captures = (
        mixed(folder, given.audited_batches, given.partitions) if {*parts} & {"audits", "judging", "nights"} else []
    )

    def of_part(part: str) -> Iterator[Table]:
        match part:
            case "small":
                yield small_audit.measure()
            case "read":
                sizes = {size: given.batches or batches for size, batches in BATCHES.items()}
                yield from reading(folder, sizes, given.partitions)
            case "audits":
                small, *audited = mixed_captures
                yield from whole_audits.measure(small, audited)
            case "judging":
                large = mixed_captures[1]
                yield judging.table(judging.measure(whole_audits.output_of(large), large.batches))
            case "nights":
                yield nights.table(nights.measure(mixed_captures[1], folder / "nights", given.partitions))
            case "partitions":
                yield many_partitions.measure(folder)
            case "producers":
                yield open_producers.measure(folder)

    for part in PARTS:
        try:
            for table in of_part(part) if part in parts else ():
                print(f"\n{table.title}\n\n{table.about}\n\n{table.text()}", flush=True)
        except SystemExit as failed:
            print(f"\n{part}: {failed}", flush=True)


def reading(folder: Path, sizes: dict[int, int], partitions: int) -> Iterator[Table]:
    """Tables about the reader alone."""
    captures = {size: capture_of(folder, size, batches, partitions) for size, batches in sizes.items()}
    read = {size: raw_segments.measure(capture, size) for size, capture in captures.items()}
    yield raw_segments.table(list(read.values()))
    yield dump_tool.table([(read[size], dump_tool.tool_seconds(capture)) for size, capture in captures.items()])
    size = min(sizes)
    few = capture_of(folder, size, sizes[size] // whole_audits.TIMES, partitions)
    yield dump_text.table(dump_text.measure(few, few.parent / "text"))
    yield scaling.table(scaling.measure_reading(captures[size], read[size].batches))


def mixed(folder: Path, batches: int | None, partitions: int) -> list[whole_audits.Generated]:
    """Captures to audit: a fourth of the first large one, and the large ones."""
    sizes = [(size, batches or each) for size, each in AUDITED.items()]
    wanted = [(sizes[0][0], sizes[0][1] // whole_audits.TIMES), *sizes]
    captures = [capture_of(folder, size, count, partitions, is_mixed=True) for size, count in wanted]
    return [
        whole_audits.Generated(capture, -(-count // partitions) * partitions, size)
        for capture, (size, count) in zip(captures, wanted, strict=True)
    ]


def capture_of(folder: Path, size: int, batches: int, partitions: int, *, is_mixed: bool = False) -> Path:
    """The generated capture, made unless it is there."""
    capture = folder / f"{batches}-batches-of-{size}-bytes{'-mixed' if is_mixed else ''}" / "capture"
    if not capture.exists():
        generate(capture, batches, size, partitions, is_mixed=is_mixed)
    return capture


if __name__ == "__main__":
    main()
