"""How fast is the audit, and each of its stages, next to what numpy can do at best on the same file? One command.

    bench/run.sh --batches 5000000 --batch-bytes 500

Generates a seeded capture (bench/generate.py), then prints batches/s: of the floor (mmap, one loop over the length fields, one
numpy gather of the headers, on as many processes as there are cores), of the reader alone, and of the jobs' stages in Spark, with
the peak memory of driver and workers. Ratios, not absolute times, are what to compare between machines.
"""

from __future__ import annotations

import argparse
import mmap
import os
import shutil
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from generate import generate  # noqa: E402

from txnlib.readers.capture import list_capture  # noqa: E402
from txnlib.readers.tables import read_table  # noqa: E402

LENGTH, LOG_OVERHEAD, HEADER_BYTES, BLOCK = struct.Struct(">i"), 12, 61, 65_536


def floor_of(path: str) -> int:
    """Batches of one segment, walked and gathered and nothing else."""
    count = position = 0
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        size, unpack = len(mapped), LENGTH.unpack_from
        while position < size:
            positions = []
            while position < size and len(positions) < BLOCK:
                positions.append(position)
                position += unpack(mapped, position + 8)[0] + LOG_OVERHEAD
            places = np.array(positions)
            window = np.frombuffer(mapped, dtype=np.uint8, count=positions[-1] + HEADER_BYTES - positions[0], offset=positions[0])
            count += len(window[(places - positions[0])[:, None] + np.arange(HEADER_BYTES)])
            del window
    return count


def rows_of(file) -> int:
    """Rows of `record_batches` that the reader makes of one file."""
    return sum(batch.num_rows for batch in read_table("record_batches", file))


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def resident_mib() -> int:
    """Memory of this process and all below it, shared pages counted once per process that maps them privately."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/smaps_rollup"):
        try:
            lines = dict(line.split(":") for line in status.read_text().splitlines()[1:])
        except (OSError, ValueError):
            continue
        total += int(lines["Pss"].split()[0])
    return total // 1024


class Memory(threading.Thread):
    """The highest memory seen, looked at twice a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = resident_mib()
        self.peak = 0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, resident_mib() - self.before)
            time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--batch-bytes", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="use, or make and keep, the capture in this folder")
    given = parser.parse_args()
    root = given.keep or Path(tempfile.mkdtemp(prefix="txnlib-bench-"))
    try:
        if not (root / "capture").exists():
            generate(root / "capture", given.batches, given.batch_bytes, given.partitions)
        measure(root, given.batch_bytes)
    finally:
        if given.keep is None:
            shutil.rmtree(root)


def measure(root: Path, batch_bytes: int) -> None:
    capture = list_capture([str(root / "capture")])
    files = list(capture.files)
    paths = [file.path for file in files]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        total = sum(pool.map(floor_of, paths))
        floor = min(timed(lambda: list(pool.map(floor_of, paths))) for _ in range(3))
        reader = min(timed(lambda: list(pool.map(rows_of, files))) for _ in range(2))
    seconds = {"floor: mmap, walk, gather": floor, "reader: record_batches to Arrow": reader}

    from jobs import audit, ingest_dumps, reconstruct_state, report_transactions
    from jobs.options import AUDIT, parse
    from jobs.run import open_run
    from jobs.steps import carry_out
    from txnlib.spark.capture_source import read_capture

    memory = Memory()
    memory.start()
    given = parse(AUDIT, "", ["--input", str(root / "capture"), "--output", str(root / "out")])
    run = open_run(given)
    sink = read_capture(run.spark, capture, "record_batches").write.format("noop").mode("overwrite")
    # The audit first, while the JVM is as cold as it is for a user; then its jobs one by one.
    seconds["audit: all three jobs as one"] = timed(lambda: carry_out(run, audit.STEPS))
    peak = memory.peak
    for name, stage in {
        "ingest_dumps": ingest_dumps.ingest,
        "reconstruct_state": reconstruct_state.reconstruct,
        "report_transactions": report_transactions.report,
    }.items():
        seconds[name] = timed(lambda stage=stage: stage(run))
    seconds["read into a DataFrame (noop sink)"] = min(timed(sink.save) for _ in range(2))

    size = sum(file.size for file in files)
    print(f"{total:,} batches of {batch_bytes} bytes, {size / 2**30:.2f} GiB, {os.cpu_count()} cores")
    print(f"{'stage':<36}{'s':>8}{'batches/s':>14}{'of the floor':>14}")
    for name, took in seconds.items():
        print(f"{name:<36}{took:>8.1f}{total / took:>14,.0f}{floor / took:>14.2f}")
    print(f"peak memory of driver and workers during the audit: {peak} MiB")


if __name__ == "__main__":
    main()
