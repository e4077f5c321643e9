"""7. Audits of a damaged log that left many producers open: seconds and memory, next to an audit of a tenth of them.

    python bench/open_producers.py FOLDER --producers 1000000

only writes the capture: logs in which every producer began a transaction and no marker is left, as after a lost end of
a log.
"""

from __future__ import annotations

import argparse
import json
import shutil
from functools import partial
from pathlib import Path

from encode import batch
from generate import START_MS, TRANSACTIONAL, records_of
from ratio_table import Ratio, Table
from whole_audits import audit_of

PARTITIONS = 20
FEW, MANY = 10_000, 100_000
MOST_MEMORY, MOST_SECONDS = 2.0, 10.0
#: After the newest record, in ms: none of the transactions is young.
LATER_MS = 3_600_000
ABOUT = f"""Seconds from start to end of an audit by `./spark-submit.sh` with its default heap, and the highest memory
(MiB) of the driver, its JVM and all Python workers, of a capture with {MANY:,} open transactions on {PARTITIONS}
partitions, against those for {FEW:,}. Each ran once, in its own processes."""


def measure(folder: Path) -> Table:
    """The audits of generated captures, which are made unless they are there."""
    few, many = (
        audit_of(folder / f"{producers}-producers", partial(generate, producers=producers)) for producers in (FEW, MANY)
    )
    lines = [
        Ratio("seconds", many.seconds, few.seconds, at_most=MOST_SECONDS),
        Ratio("memory", many.mib, few.mib, at_most=MOST_MEMORY),
    ]
    return Table("Open producers", ABOUT, f"{MANY:,}", f"{FEW:,}", lines)


def generate(root: Path, producers: int) -> None:
    """Writes a capture."""
    notes = {}
    for partition in range(PARTITIONS):
        folder = root / "1" / f"damaged-{partition}"
        folder.mkdir(parents=True)
        own = range(partition, producers, PARTITIONS)
        with (folder / f"{0:020d}.log").open("wb") as log:
            for offset, producer in enumerate(own):
                log.write(batch(offset, 0, TRANSACTIONAL, START_MS + offset, producer, 0, 1, records_of(1, 60)))
        notes[f"damaged-{partition}"] = {"leader": 1, "replicas": [1]}
    captured = {"default": START_MS + producers // PARTITIONS + LATER_MS}
    (root / "capture.json").write_text(
        json.dumps({"captured_at_ms": captured, "coordinator_partitions": 50, "partitions": notes})
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--producers", type=int, default=1_000_000)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    generate(given.folder, given.producers)
