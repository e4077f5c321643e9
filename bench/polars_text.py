"""Polars on the text of a dump. A program of its own, since its threads and forks do not mix.

Of the ways tried it is the fastest: lines split at single spaces, values taken by their place. It knows the shape of
one version of the tool, where our reader goes by labels.
"""

from __future__ import annotations

import sys

from machine import CORES
from processes import output_of, timed

RUNS = 8
NUMBERS = {
    "base_offset": 1,
    "last_offset": 3,
    "records_count": 5,
    "base_sequence": 7,
    "last_sequence": 9,
    "producer_id": 11,
    "producer_epoch": 13,
    "partition_leader_epoch": 15,
    "position": 23,
    "max_timestamp_ms": 25,
    "size": 27,
    "magic": 29,
    "crc": 33,
}
WORDS = {
    "is_transactional": 17,
    "is_control": 19,
    "delete_horizon_ms": 21,
    "timestamp_type": 24,
    "compression_type": 31,
    "is_valid": 35,
}


def read_in_its_own_process(paths: list[str], is_deep: bool) -> tuple[int, float]:
    """Batches, and the shortest of some runs."""
    rows, seconds = output_of([sys.executable, __file__, "deep" if is_deep else "shallow", *paths]).split()
    return int(rows), float(seconds)


def main(shape: str, paths: list[str]) -> None:
    import polars as pl

    assert pl.thread_pool_size() == CORES
    lines = pl.scan_lines(paths, name="line", include_file_paths="path")
    if shape == "deep":
        lines = lines.with_columns(after=pl.col("line").shift(-1))
    batches = lines.filter(pl.col("line").str.starts_with("baseOffset: "))
    fields = batches.with_columns(pl.col("line").str.split_exact(" ", 35).alias("fields")).drop("line").unnest("fields")
    columns = [pl.col("path")]
    columns += [pl.col(f"field_{place}").cast(pl.Int64).alias(name) for name, place in NUMBERS.items()]
    columns += [pl.col(f"field_{place}").alias(name) for name, place in WORDS.items()]
    if shape == "deep":
        columns += [
            pl.col("after").str.extract(r"endTxnMarker: (\w+) coordinatorEpoch: \d+$").alias("control_type"),
            pl.col("after")
            .str.extract(r"endTxnMarker: \w+ coordinatorEpoch: (\d+)$")
            .cast(pl.Int32)
            .alias("coordinator_epoch"),
        ]
    wanted = fields.select(columns)
    rows = wanted.collect().height
    engines = ("in-memory", "streaming")
    print(rows, min(timed(lambda: wanted.collect(engine=engine)) for engine in engines for _ in range(RUNS)))  # noqa: B023


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
