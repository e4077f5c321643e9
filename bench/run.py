"""Measures what docs/performance.md says, each figure beside a peer of the same run.

    bench/run.sh [--only MEASURE]... [--engine embedded|spark] [--keep FOLDER]

A measure is one or two audits by `./spark-submit.sh`, from start to end. The peer is Kafka's own `kafka-dump-log.sh`,
which has one thread and prints the same segments, or another audit. Captures are made by generate.py. The page cache is
warm. Ratios of one run, not seconds, are what to compare between machines and days.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from subprocess import run

from generate import generate, generate_ids, generate_open
from kafka_tool import print_segments
from multiply import multiply
from processes import Watched, watched

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "quickstart" / "brokers"
LATER = "2099-01-01T00:00:00Z"
#: The environment of a user, without what run.sh adds.
USERS = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON")}
#: Times that a short measure is taken, in turn with its peer. A long one is taken once.
RUNS = 3


@dataclass(frozen=True)
class Row:
    """What was measured, and its peer. `at_most`: the aim for their ratio; without a peer, for the figure."""

    what: str
    ours: float
    peer: str = ""
    other: float | None = None
    at_most: float | None = None

    def text(self) -> str:
        ratio = "" if self.other is None else f"{self.ours / self.other:.2f}"
        beside = "" if self.other is None else f"{self.peer}: {self.other:,.1f}"
        aim = "" if self.at_most is None else f"<= {self.at_most:g}"
        return f"{self.what} | {self.ours:,.1f} | {beside} | {ratio} | {aim}"


@dataclass(frozen=True)
class Bench:
    """Where captures and tables are, and the engine that is measured."""

    folder: Path
    engine: str

    def capture(self, name: str, make: Callable[[Path], object]) -> Path:
        """A capture, made unless it is there, and in the page cache, so that neither side waits for the disk."""
        made = self.folder / name
        if not made.exists():
            make(made)
        for segment in made.rglob("*.log"):
            with segment.open("rb", buffering=0) as stream:
                while stream.read(1 << 24):
                    pass
        return made

    def audit(self, capture: Path, *options: str, output: str = "out") -> Watched:
        """A full audit, or one that continues what is in `output`."""
        tables = self.folder / f"{output}-{self.engine}"
        if not options:
            shutil.rmtree(tables, ignore_errors=True)
        asked = [
            "--input",
            str(capture),
            "--output",
            str(tables),
            "--cluster",
            "bench",
            "--engine",
            self.engine,
            *options,
        ]
        return watched([str(ROOT / "spark-submit.sh"), "audit", *asked], self.folder / "audit.log", USERS)

    def tool(self, capture: Path) -> float:
        return print_segments(capture, self.folder / "tool.log")


# ---- Measures


def sample(bench: Bench) -> Iterator[Row]:
    """The sample, a night after it without news, and a real cluster of 128 open transactions."""
    many = bench.capture("open-128", lambda made: multiply(SAMPLE, made, 8))
    taken = [
        (
            bench.audit(SAMPLE).seconds,
            bench.audit(SAMPLE, "--mode", "incremental", "--as-of", LATER).seconds,
            bench.audit(many, output="many").seconds,
            bench.tool(SAMPLE),
        )
        for _ in range(RUNS)
    ]
    audit, night, of_many, tool = map(median, zip(*taken, strict=True))
    yield Row("the sample, s", audit, "tool", tool, at_most=6)
    yield Row("128 open transactions, 1.7 MiB, s", of_many, "tool, on the sample", tool, at_most=10)
    yield Row("a night without news after the sample, s", night, "the sample", audit, at_most=1)


def plans(bench: Bench) -> Iterator[Row]:
    """What the embedded engine plans for the sample: to plan takes most of the time of a small audit."""
    python = str(ROOT / ".venv" / "bin" / "python")
    said = run([python, str(ROOT / "bench" / "plans.py"), str(SAMPLE)], check=True, capture_output=True, text=True)
    number, _, size, _ = said.stdout.splitlines()[-1].split()
    yield Row("plans of the sample", int(number), at_most=66)
    yield Row("their bytes, KiB", int(size.replace(",", "")) / 1024, at_most=996)


def batches(bench: Bench) -> Iterator[Row]:
    """Ten million batches of 500 bytes, and what a million costs and holds."""
    few, many = (_mixed(bench, millions, 500) for millions in (2.5, 10))
    small, tool, large = bench.audit(few), bench.tool(many), bench.audit(many)
    yield Row("10,000,000 batches of 500 bytes, s", large.seconds, "tool", tool, at_most=1.3)
    yield Row("their memory, MiB", large.mib, "2,500,000 batches", small.mib, at_most=1.2)
    yield Row("their memory, MiB", large.mib, at_most=4096)
    yield Row("each further million, s", (large.seconds - small.seconds) / 7.5, "tool", tool / 10)
    yield Row("each further million, CPU s", (large.cpu_seconds - small.cpu_seconds) / 7.5)
    yield Row("their tables, MiB", size_of(bench.folder / f"out-{bench.engine}") / 2**20)


def large_batches(bench: Bench) -> Iterator[Row]:
    """500,000 batches of 16 KiB."""
    capture = _mixed(bench, 0.5, 16_384)
    tool, audit = bench.tool(capture), bench.audit(capture)
    yield Row("500,000 batches of 16 KiB, s", audit.seconds, "tool", tool, at_most=2)


def night(bench: Bench) -> Iterator[Row]:
    """A night that appends one per cent."""
    known, grown = (_mixed(bench, millions, 500) for millions in (2.5, 2.525))  # the same logs, and what follows
    bench.audit(known, output="nights")
    news = bench.audit(grown, "--mode", "incremental", output="nights")
    yield Row(
        "a night that appends 1 % to 2,500,000 batches, s", news.seconds, "a full audit", bench.audit(grown).seconds
    )


def producers(bench: Bench) -> Iterator[Row]:
    """A million open producers, as after the end of a log was lost."""
    few, many = (
        bench.audit(bench.capture(f"producers-{count}", lambda made: generate_open(made, count)))  # noqa: B023
        for count in (100_000, 1_000_000)
    )
    yield Row("1,000,000 open producers, s", many.seconds, "100,000", few.seconds)
    yield Row("their memory, MiB", many.mib, "100,000", few.mib)


def ids(bench: Bench) -> Iterator[Row]:
    """A million healthy transactional ids."""
    few, many = (
        bench.audit(bench.capture(f"ids-{count}", lambda made: generate_ids(made, count)))  # noqa: B023
        for count in (100_000, 1_000_000)
    )
    yield Row("1,000,000 transactional ids, s", many.seconds, "100,000", few.seconds)
    yield Row("their memory, MiB", many.mib, "100,000", few.mib)


def partitions(bench: Bench) -> Iterator[Row]:
    """Fifty thousand partitions, each with a few batches."""
    few, many = (
        bench.audit(bench.capture(f"partitions-{count}", lambda made: generate(made, 10 * count, 500, count)))  # noqa: B023
        for count in (5_000, 50_000)
    )
    yield Row("50,000 partitions, s", many.seconds, "5,000", few.seconds)
    yield Row("their memory, MiB", many.mib, "5,000", few.mib)


def first_command(bench: Bench) -> Iterator[Row]:
    """The first command of README in a fresh clone, by a user whose home is empty. Needs the network."""
    clone, home = bench.folder / "clone", bench.folder / "home"
    for folder in (clone, home):
        shutil.rmtree(folder, ignore_errors=True)
    run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    home.mkdir()  # pip keeps there what it downloads
    own = {"HOME": str(home), "PIP_CACHE_DIR": str(home / "pip")}
    took = watched([str(clone / "spark-submit.sh")], bench.folder / "first.log", USERS | own)
    yield Row("first command in a fresh clone, s", took.seconds, at_most=45)
    yield Row("its downloads, MiB", size_of(home) / 2**20, at_most=250)


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _mixed(bench: Bench, millions: float, size: int) -> Path:
    return bench.capture(f"{millions:g}m-{size}", lambda made: generate(made, int(millions * 1e6), size))


MEASURES = {
    each.__name__: each
    for each in (sample, plans, batches, large_batches, night, producers, ids, partitions, first_command)
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=MEASURES, action="append", help="repeatable; default: all")
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="use, or make and keep, captures in this folder")
    given = parser.parse_args()
    folder = (given.keep or Path(tempfile.mkdtemp(prefix="txnlib-bench-"))).absolute()
    folder.mkdir(exist_ok=True)
    print(f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, engine {given.engine}")
    print("measured | txnlib | beside | ratio | aim\n---|---|---|---|---")
    try:
        for name in given.only or MEASURES:
            before = os.getloadavg()[0]
            for row in MEASURES[name](Bench(folder, given.engine)):
                print(row.text(), flush=True)
            print(f"({name}: load {before:.1f} before, {os.getloadavg()[0]:.1f} after)", flush=True)
    finally:
        if given.keep is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
