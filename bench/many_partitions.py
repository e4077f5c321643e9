"""5. Audits of many small partitions: seconds and memory, next to an audit of a tenth of them.

    python bench/many_partitions.py FOLDER --partitions 50000 [--copies 3] [--left-open 1000]

only writes the capture. Every partition has a log of two transactions (a few hundred bytes), two indexes, and
`partition.metadata` or a producer snapshot. In one of `--left-open` partitions, the second is not ended. Copies are
spread over three brokers, of which each has its checkpoints; 50 coordinators know every second producer.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import struct
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import google_crc32c
from encode import batch
from generate import CONTROL, MARKER_RECORD, START_MS, TRANSACTIONAL, empty_record, records_of, transactional_id
from ratio_table import Ratio, Table
from whole_audits import audit_of

from txnlib.core.kafka import broker_files
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for

BROKERS, COPIES, COORDINATORS, OF_TOPIC = 3, 3, 50, 100
#: Partitions that one producer writes to.
OF_PRODUCER = 10
CAPTURED_MS = START_MS + 3_600_000
FIRST_SEGMENT = f"{0:020d}"
#: Partitions to audit, and of how many one is left with an open transaction: in a healthy cluster, and in the worst.
FEW, MANY = 5_000, 50_000
LEFT_OPEN = (1_000, 1)
MOST_MEMORY, MOST_SECONDS = 2.0, 10.0
ABOUT = f"""Seconds from start to end of an audit by `./spark-submit.sh` with its default heap, and the highest memory
(MiB) of the driver, its JVM and all Python workers, of a capture of {MANY:,} partitions with {COPIES} copies each, of a
few hundred bytes, against those for {FEW:,}. Each ran once, in its own processes."""


def measure(folder: Path) -> Table:
    """The audits of generated captures, which are made unless they are there."""
    lines = []
    for left_open in LEFT_OPEN:
        few, many = (
            audit_of(
                folder / f"{count}-partitions-{left_open}", partial(generate, partitions=count, left_open=left_open)
            )
            for count in (FEW, MANY)
        )
        name = f"one of {left_open:,} left open" if left_open > 1 else "all left open"
        lines += [
            Ratio(f"seconds: {name}", many.seconds, few.seconds, at_most=MOST_SECONDS),
            Ratio(f"memory: {name}", many.mib, few.mib, at_most=MOST_MEMORY),
        ]
    return Table("Many partitions", ABOUT, f"{MANY:,}", f"{FEW:,}", lines)


def partition_log(producer: int, *, is_left_open: bool) -> tuple[bytes, int]:
    """Two transactions of two batches; with the end offset of the log."""
    out, offset, sequence, time = bytearray(), 0, 0, START_MS
    for is_ended in (True, not is_left_open):
        for _ in range(2):
            out += batch(offset, 1, TRANSACTIONAL, time, producer, sequence, 2, records_of(2, 60))
            offset, sequence, time = offset + 2, sequence + 2, time + 5
        if is_ended:
            out += batch(offset, 0, TRANSACTIONAL | CONTROL, time, producer, -1, 1, MARKER_RECORD)
            offset += 1
    return bytes(out), offset


def snapshot_at_start() -> bytes:
    """A snapshot without producers, as a broker writes it for an empty log."""
    covered = struct.pack(">i", 0)
    return struct.pack(">hI", broker_files.SNAPSHOT_VERSION, google_crc32c.value(covered)) + covered


def generate(root: Path, partitions: int, copies: int = COPIES, left_open: int = LEFT_OPEN[0]) -> int:
    """Writes a capture, and returns the number of files."""
    files = 0
    ends: dict[int, dict[tuple[str, int], int]] = defaultdict(dict)
    notes = {}
    for number in range(partitions):
        topic, partition = f"topic-of-some-length-{number // OF_TOPIC}", number % OF_TOPIC
        log, end = partition_log(number // OF_PRODUCER, is_left_open=number % left_open == 0)
        replicas = [(number + copy) % BROKERS + 1 for copy in range(copies)]
        for broker in replicas:
            folder = root / str(broker) / f"{topic}-{partition}"
            folder.mkdir(parents=True)
            (folder / f"{FIRST_SEGMENT}.log").write_bytes(log)
            (folder / f"{FIRST_SEGMENT}.index").touch()
            (folder / f"{FIRST_SEGMENT}.timeindex").touch()
            if number % 2:
                (folder / f"{FIRST_SEGMENT}.snapshot").write_bytes(snapshot_at_start())
            else:
                identity = base64.urlsafe_b64encode(struct.pack(">QQ", 1, number // OF_TOPIC + 1)).decode().rstrip("=")
                (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {identity}\n")
            ends[broker][topic, partition] = end
            files += 4
        notes[f"{topic}-{partition}"] = {"leader": replicas[0], "replicas": replicas}
    for partition, log, end in coordinator_logs(-(-partitions // OF_PRODUCER)):
        broker = partition % BROKERS + 1
        folder = root / str(broker) / f"{TRANSACTION_STATE_TOPIC}-{partition}"
        folder.mkdir(parents=True)
        (folder / f"{FIRST_SEGMENT}.log").write_bytes(log)
        ends[broker][TRANSACTION_STATE_TOPIC, partition] = end
        notes[f"{TRANSACTION_STATE_TOPIC}-{partition}"] = {"leader": broker, "replicas": [broker]}
        files += 1
    for broker, of_broker in ends.items():
        lines = "".join(f"{topic} {partition} {end}\n" for (topic, partition), end in of_broker.items())
        for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
            (root / str(broker) / name).write_text(f"0\n{len(of_broker)}\n{lines}")
            files += 1
    (root / "capture.json").write_text(
        json.dumps(
            {"captured_at_ms": {"default": CAPTURED_MS}, "coordinator_partitions": COORDINATORS, "partitions": notes}
        )
    )
    return files + 1


def coordinator_logs(producers: int) -> Iterator[tuple[int, bytes, int]]:
    """Of each coordinator partition, its log and end offset: an Empty record for each producer of even number."""
    logs = [bytearray() for _ in range(COORDINATORS)]
    ends = [0] * COORDINATORS
    for producer in range(0, producers, 2):
        partition = partition_for(transactional_id(producer), COORDINATORS)
        logs[partition] += empty_record(ends[partition], producer)
        ends[partition] += 1
    for partition in range(COORDINATORS):
        yield partition, bytes(logs[partition]), ends[partition]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partitions", type=int, default=50_000)
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--left-open", type=int, default=LEFT_OPEN[0])
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    print(f"{generate(given.folder, given.partitions, given.copies, given.left_open):,} files")
