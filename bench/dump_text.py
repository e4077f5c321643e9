"""3. Text against Polars: the same files, the same columns, the same cores; shallow dumps and deep ones."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import polars_text
from dump_tool import print_segments, segments_of
from machine import CORES
from processes import timed
from ratio_table import Ratio, Table
from raw_segments import rows_of

from txnlib.readers.capture import FileKind, list_capture

RUNS = 8
#: What is printed -> the options of Kafka's tool, and the ratio to reach.
SHAPES: dict[str, tuple[tuple[str, ...], float | None]] = {"shallow": ((), 0.5), "deep": (("--deep-iteration",), None)}
ABOUT = f"""Lines/s of what the tool prints of 500-byte batches, on {CORES} cores. Polars takes the same numbers and
words from the lines, but does not check that a line continues the file. The deep text has no target
(docs/decisions/0013). Best of {RUNS}."""


def print_text(capture: Path, folder: Path, *options: str) -> None:
    """What the tool prints of a capture, one file per partition, whose `Dumping` lines name the segments."""
    folder.mkdir()
    for partition in sorted({segment.parent for segment in segments_of(capture)}):
        with (folder / f"{partition.name}.txt").open("wb") as out:
            print_segments(sorted(partition.glob("*.log")), out, *options)


def lines_of(path: str) -> int:
    with open(path, "rb") as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b""))


def measure(capture: Path, folder: Path) -> list[Ratio]:
    ratios = []
    for shape, (options, target) in SHAPES.items():
        if not (folder / shape).exists():
            folder.mkdir(exist_ok=True)
            print_text(capture, folder / shape, *options)
        files = list(list_capture([str(folder / shape)]).of_kind(FileKind.DUMP))
        with ProcessPoolExecutor(CORES) as pool:
            lines = sum(pool.map(lines_of, [file.path for file in files]))
            batches = sum(pool.map(rows_of, files))
            ours = min(timed(lambda: list(pool.map(rows_of, files))) for _ in range(RUNS))  # noqa: B023
        rows, seconds = polars_text.read_in_its_own_process([file.path for file in files], shape == "deep")
        assert rows == batches, f"Polars has {rows} batches of {batches}"
        ratios.append(Ratio(f"{shape}: {lines:,} lines, {batches:,} batches", lines / ours, lines / seconds, target))
    return ratios


def table(ratios: list[Ratio]) -> Table:
    return Table("Text", ABOUT, "ours", "Polars", ratios)
