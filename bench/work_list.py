"""The cost of listing many files and of the tasks' work list.

    python bench/work_list.py FOLDER [--files 20000]

Makes empty segments of the names of a large cluster, 20 a partition, in a folder that it removes again.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark import cloudpickle

from txnlib.readers.capture import list_capture
from txnlib.spark.capture_source import bundle
from txnlib.spark.python_tasks import LISTED

SEGMENTS = 20


def measured(work: Callable[[], object]) -> tuple[float, object]:
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=20_000)
    given = parser.parse_args()
    root = given.folder / "many-files"
    for partition in range(given.files // SEGMENTS):
        folder = root / "1" / f"topic-of-some-length-{partition % 100}-{partition}"
        folder.mkdir(parents=True)
        for segment in range(SEGMENTS):
            (folder / f"{segment * 1_000_000:020d}.log").touch()
    try:
        listing, capture = measured(lambda: list_capture([str(root)]))
        tracemalloc.start()
        held = list_capture([str(root)])
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    finally:
        shutil.rmtree(root)
    count = len(held.files)
    sized = [replace(file, size=1 << 30) for file in capture.files]
    pickling, sent = measured(lambda: [pickle.dumps(piece) for piece in bundle(sized, 200)])
    listed = cloudpickle.dumps([[file] for file in sized[:LISTED]])
    loading, _ = measured(lambda: pickle.loads(listed))
    million = 1e6 / count
    held_mib, sent_mib = size * million / 2**20, sum(map(len, sent)) * million / 2**20
    print(
        f"{count:,} files; for a million: listing {listing * million:.0f} CPU s, held {held_mib:,.0f} MiB on the"
        " driver,"
    )
    print(
        f"work of one table {sent_mib:,.0f} MiB in pieces for a task each, {pickling * million:.0f} CPU s to write once"
    )
    print(f"(up to {LISTED:,} files are a list that each task loads, in {loading * 1e3:.0f} CPU ms)")


if __name__ == "__main__":
    main()
