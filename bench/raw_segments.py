"""1. Raw segments against numpy's floor: the reader alone, and the read into a DataFrame."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
from floor import floor_of
from machine import CORES
from processes import timed
from ratio_table import Ratio, Table
from spark_read import SECONDS, hand_over_seconds, read_seconds

from txnlib.readers.capture import CaptureFile, list_capture
from txnlib.readers.table_readers import read_table

#: Bytes of a batch -> share of the floor to reach.
TARGETS = {16_384: 0.5, 500: 0.4}
ABOUT = f"""Batches/s, page cache warm, best of {SECONDS} seconds. The floor: numpy gathers the 61-byte headers from
mapped files, in one process per core. The reader also checks the CRC of every batch of at most 4 KiB and makes 25 Arrow
columns. "Rows that lie ready" are these columns, read in advance and handed to Spark: no reader is faster."""


@dataclass(frozen=True)
class Raw:
    """What was measured on a capture with batches of one size."""

    batch_bytes: int
    batches: int
    floor: float
    reader: float
    #: Seconds of the read into a DataFrame, on all cores.
    frame: float
    #: Seconds in which Spark takes rows that lie ready.
    hand_over: float

    @property
    def ratios(self) -> list[Ratio]:
        target, floor = TARGETS.get(self.batch_bytes), self.batches / self.floor
        name = f"{self.batches:,} batches of {self.batch_bytes} bytes"
        return [
            Ratio(f"{name}: reader to Arrow", self.batches / self.reader, floor, target),
            Ratio(f"{name}: read into a DataFrame", self.batches / self.frame, floor, target),
            Ratio(f"{name}: rows that lie ready", self.batches / self.hand_over, floor),
        ]


def rows_of(file: CaptureFile) -> int:
    """Batches in the rows of `record_batches` that the reader makes of one file."""
    return sum(pc.sum(rows["batches_count"]).as_py() for rows in read_table("record_batches", file))


def measure(capture: Path, batch_bytes: int) -> Raw:
    files = list(list_capture([str(capture)]).files)
    paths = [file.path for file in files]
    with ProcessPoolExecutor(CORES) as pool:
        total = sum(pool.map(floor_of, paths))
        read = sum(pool.map(rows_of, files))
        assert read == total, f"the reader has {read} batches of {total}"
        # One after the other, so that a busy moment of the machine meets both.
        pairs = [
            (timed(lambda: list(pool.map(floor_of, paths))), timed(lambda: list(pool.map(rows_of, files))))
            for _ in range(4)
        ]
    floors, readers = zip(*pairs, strict=True)
    return Raw(batch_bytes, total, min(floors), min(readers), read_seconds(capture), hand_over_seconds(capture))


def table(measured: list[Raw]) -> Table:
    return Table("Raw segments", ABOUT, "ours", "floor", [ratio for raw in measured for ratio in raw.ratios])
