"""4. Whole audits, from start to end: next to Kafka's own tool, and their memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

from dump_tool import print_segments, segments_of
from machine import CORES
from processes import ROOT, Watched, timed, watched
from ratio_table import Ratio, Table

#: Bytes of a batch -> most seconds, next to those of the tool.
MOST = {500: 1.2, 16_384: 3.0}
MEMORY, MOST_EACH_MILLION = 1.1, 1.0
#: How many times the small input is the large one.
TIMES = 4
ABOUT = f"""Seconds from start to end, JVM included, on {CORES} cores, against `kafka-dump-log.sh`, which has one
thread, on the same data segments (`bench/generate.py --mix`). Page cache warm. Each ran once."""
ABOUT_MEMORY = f"""Highest memory (MiB) of the driver, its JVM and all Python workers of an audit with {TIMES} times the
batches, and its seconds."""


@dataclass(frozen=True)
class Generated:
    """A generated capture."""

    capture: Path
    batches: int
    batch_bytes: int

    @property
    def name(self) -> str:
        return f"{self.batches:,} batches of {self.batch_bytes} bytes"


def audit(capture: Path, output: str, log: Path, *options: str, submit: Sequence[str] = ()) -> Watched:
    """`submit`: more options of spark-submit."""
    arguments = ["--input", str(capture), "--output", output, *options]
    submitted = [*arguments, "--master", f"local[{CORES}]", "--", *submit]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return watched([str(ROOT / "spark-submit.sh"), "audit", *submitted], environment, log)


def measure(small: Generated, large: list[Generated]) -> list[Table]:
    """`small`: a capture with batches of the size of the first of `large`."""
    taken: list[tuple[Generated, Watched, float]] = []
    for generated in large:
        _warm(generated)
        tool = timed(lambda given=generated: print_segments(segments_of(given.capture), DEVNULL))
        taken.append((generated, _audit(generated), tool))
    few = _audit(small)
    first, many, _ = taken[0]
    each = (many.seconds - few.seconds) / (first.batches - small.batches) * 1e6
    cpu = (many.cpu_seconds - few.cpu_seconds) / (first.batches - small.batches) * 1e6
    printed = taken[0][2] / first.batches * 1e6
    remark = (
        f" Each further million batches adds {each:.1f} s and {cpu:.1f} CPU seconds; the tool prints them in"
        f" {printed:.1f} s."
    )
    name = f"{first.batches:,} batches over {small.batches:,}"
    return [
        Table(
            "Whole audits",
            ABOUT,
            "audit",
            "kafka-dump-log.sh",
            [
                *(
                    Ratio(given.name, took.seconds, tool, at_most=MOST.get(given.batch_bytes))
                    for given, took, tool in taken
                ),
                Ratio(f"each further million of {first.batch_bytes} bytes", each, printed, at_most=MOST_EACH_MILLION),
            ],
        ),
        Table(
            "Growing input",
            ABOUT_MEMORY + remark,
            "large",
            "small",
            [
                Ratio(f"memory: {name}", many.mib, few.mib, at_most=MEMORY),
                Ratio(f"seconds: {name}", many.seconds, few.seconds),
            ],
        ),
    ]


def output_of(generated: Generated) -> Path:
    """The tables of an audit of a generated capture, which is done unless they are there."""
    output = generated.capture.parent / "out"
    if not output.exists():
        audit(generated.capture, str(output), output.with_suffix(".stderr"))
    return output


def _audit(generated: Generated) -> Watched:
    output = generated.capture.parent / "out"
    shutil.rmtree(output, ignore_errors=True)
    return audit(generated.capture, str(output), output.with_suffix(".stderr"))


def audit_of(folder: Path, make: Callable[[Path], object]) -> Watched:
    """An audit of the capture in a folder, which is made unless it is there."""
    if not (folder / "capture").exists():
        make(folder / "capture")
    shutil.rmtree(folder / "out", ignore_errors=True)
    return audit(folder / "capture", str(folder / "out"), folder / "out.stderr")


def _warm(generated: Generated) -> None:
    """Reads all segments once, so that neither side waits for the disk."""
    for segment in segments_of(generated.capture):
        with segment.open("rb", buffering=0) as stream:
            while stream.read(1 << 24):
                pass
