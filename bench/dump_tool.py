"""2. Kafka's own tool on the same segments: `kafka-dump-log.sh`, as its script would start it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from floor import LENGTH, LOG_OVERHEAD
from machine import CORES, java_command
from processes import timed
from ratio_table import Ratio, Table
from raw_segments import Raw

#: Bytes of a batch -> how many times as fast to be.
TARGETS = {16_384: 20.0, 500: 6.0}
#: What kafka-run-class.sh and kafka-dump-log.sh pass.
JVM = [
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]
ABOUT = f"""Batches/s of the read into a DataFrame, on {CORES} cores, against `kafka-dump-log.sh`, which has one thread;
its start is not counted. The tool checks every CRC, txnlib those of batches of at most 4 KiB. Best of 3."""


def segments_of(capture: Path) -> list[Path]:
    """The data of a generated capture."""
    return sorted(capture.glob("*/events-*/*.log"))


def print_segments(segments: Sequence[Path], out: IO[bytes] | int, *options: str) -> None:
    """Runs the tool. It takes no path with a comma."""
    jars = os.environ["KAFKA_CLASS_PATH"]
    command = [
        java_command(),
        *JVM,
        "-cp",
        jars,
        "kafka.tools.DumpLogSegments",
        *options,
        "--files",
        ",".join(map(str, segments)),
    ]
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"Kafka's tool failed:\n{done.stderr.decode(errors='replace')[-4000:]}")


def tool_seconds(capture: Path) -> float:
    """Seconds for all segments, without the start."""
    segments = segments_of(capture)
    small = _one_batch_of(segments[0], capture.parent / "one-batch")
    start = min(timed(lambda: print_segments([small], subprocess.DEVNULL)) for _ in range(3))
    return min(timed(lambda: print_segments(segments, subprocess.DEVNULL)) for _ in range(3)) - start


def _one_batch_of(segment: Path, folder: Path) -> Path:
    copy = folder / "events-0" / segment.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    with segment.open("rb") as stream:
        head = stream.read(LOG_OVERHEAD)
        (length,) = LENGTH.unpack_from(head, 8)
        copy.write_bytes(head + stream.read(length))
    return copy


def table(measured: Sequence[tuple[Raw, float]]) -> Table:
    ratios = [
        Ratio(
            f"{raw.batches:,} batches of {raw.batch_bytes} bytes",
            raw.batches / raw.frame,
            raw.batches / seconds,
            TARGETS.get(raw.batch_bytes),
        )
        for raw, seconds in measured
    ]
    return Table("Kafka's own tool", ABOUT, "ours", "kafka-dump-log.sh", ratios)
