"""Writes captures of any size: seeded, with right CRCs and records, so that Kafka's own tools read them too.

    python bench/generate.py FOLDER --mix [--batches 5000000] [--batch-bytes 500] [--partitions 20]
    python bench/generate.py FOLDER --open-producers 1000000
    python bench/generate.py FOLDER --ids 1000000
    python bench/generate.py FOLDER --multiply CAPTURE TIMES

`--mix` makes a third of the partitions without producer ids, a third idempotent, and a third transactional, where a
transaction is 2 to 20 batches; in each, a few producers take turns, batch by batch. A small `__transaction_state` knows
the producers of even number.

`--open-producers` makes logs in which every producer began a transaction and no marker is left, as after the end of a
log was lost.

`--ids` makes a healthy cluster of so many transactional ids, each with one transaction, which was committed.

`--multiply` makes one large cluster of a small real one: see multiply.py.
"""

from __future__ import annotations

import argparse
import json
import random
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import BinaryIO

from encode import batch, encode_record, transaction_log_key, transaction_log_value
from multiply import multiply

from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

SEGMENT_BYTES = 1 << 30
START_MS = 1_790_000_000_000
PARTITIONS, COORDINATORS, SEED = 20, 50, 7
#: After the newest record of `--open-producers`, in ms: none of the transactions is young.
LATER_MS = 3_600_000
TRANSACTIONAL, CONTROL = 0x10, 0x20
#: Of a batch, and of the smallest record: length, attributes, two deltas, key, value, headers.
HEADER_BYTES, RECORD_BYTES = 61, 7
#: COMMIT of coordinator epoch 0: length 16, no attributes, key (0, 1), value (0, 0), no headers.
MARKER_RECORD = bytes.fromhex("20000000080000000" + "10c000000000000" + "00")

#: The records of an id that commits once.
TRANSACTION = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_COMMIT,
)


@cache
def records_of(count: int, size: int) -> bytes:
    """Records without keys, of about the same length, that take so many bytes together, or one or two less."""
    out = b""
    for number in range(count):
        share = (size - len(out)) // (count - number)
        value = share - RECORD_BYTES
        while len(record := encode_record(number, 0, None, bytes(value))) > share:
            value -= 1
        out += record
    return out


class SegmentFiles:
    """The segments of a partition: a new file, named by the offset with which it begins, when one is full."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._stream = self._open(0)
        self._size = 0

    def _open(self, offset: int) -> BinaryIO:
        return (self._folder / f"{offset:020d}.log").open("wb", buffering=1 << 20)

    def write(self, batches: bytes) -> None:
        if self._size + len(batches) > SEGMENT_BYTES:
            self.close()
            self._stream, self._size = self._open(int.from_bytes(batches[:8], "big")), 0
        self._stream.write(batches)
        self._size += len(batches)

    def close(self) -> None:
        self._stream.close()


#: The number of producers that write to a partition at the same time.
INTERLEAVED = 5


def mixed_log(folder: Path, batches: int, batch_bytes: int, producers: range, seed: int) -> None:
    """Writes one partition's segments with `--mix`. Partitions are of each kind in turn."""
    rng = random.Random(seed)
    kind = seed % 3
    body_bytes = max(batch_bytes - HEADER_BYTES, RECORD_BYTES)
    writers = list(producers)[:INTERLEAVED]
    sequences, left = dict.fromkeys(writers, 0), dict.fromkeys(writers, 0)
    offset, written, time = 0, 0, START_MS
    segments = SegmentFiles(folder)
    while written < batches:
        writer = rng.choice(writers)
        time += rng.randint(0, 3)
        is_open = left[writer] > 0
        if kind == 2 and not is_open:
            left[writer] = rng.randint(3, 21)  # batches, and the marker
        left[writer] -= 1
        if kind == 2 and left[writer] == 0:
            count = 1
            log = batch(offset, 0, TRANSACTIONAL | CONTROL, time, writer, -1, 1, MARKER_RECORD)
        else:
            count = rng.randint(1, min(16, body_bytes // RECORD_BYTES))
            body = records_of(count, body_bytes)
            if kind == 0:
                log = batch(offset, count - 1, 0, time, -1, -1, count, body, epoch=-1)
            else:
                flags = TRANSACTIONAL if kind == 2 else 0
                log = batch(offset, count - 1, flags, time, writer, sequences[writer], count, body)
                sequences[writer] = (sequences[writer] + count) % 2**31
        segments.write(log)
        offset += count
        written += 1
    segments.close()


def transactional_id(producer: int) -> str:
    return f"app-{producer}"


def coordinator_record(offset: int, producer: int, state: TransactionState, at: int, *places: TopicPartition) -> bytes:
    """The batch with a record of a producer's transactional id."""
    is_empty, is_complete = state is TransactionState.EMPTY, state is TransactionState.COMPLETE_COMMIT
    entry = TransactionLogEntry(
        transactional_id=transactional_id(producer),
        producer_id=producer,
        producer_epoch=0,
        transaction_timeout_ms=60_000,
        transaction_state=state,
        transaction_partitions=None if is_empty else () if is_complete else places,
        last_update_timestamp_ms=at,
        start_timestamp_ms=None if is_empty else START_MS,
        version=0,
    )
    body = encode_record(0, 0, transaction_log_key(entry.transactional_id), transaction_log_value(entry))
    return batch(offset, 0, 0, at, -1, -1, 1, body, epoch=-1)


def coordinator_log(folder: Path, producers: range) -> None:
    """One Empty record for each producer of even number."""
    folder.mkdir(parents=True)
    out = bytearray()
    for offset, producer in enumerate(p for p in producers if p % 2 == 0):
        out += coordinator_record(offset, producer, TransactionState.EMPTY, START_MS)
    (folder / f"{0:020d}.log").write_bytes(bytes(out))


def generate(root: Path, batches: int, batch_bytes: int, partitions: int = PARTITIONS) -> None:
    """Writes a capture of one broker with `--mix`. With more batches, the same logs go on."""
    with ProcessPoolExecutor() as pool:
        logs = [
            pool.submit(
                mixed_log,
                root / "1" / f"events-{number}",
                -(-batches // partitions),
                batch_bytes,
                range(number * 100, number * 100 + 100),
                SEED + number,
            )
            for number in range(partitions)
        ]
        for log in logs:
            log.result()
    coordinator_log(root / "1" / "__transaction_state-0", range(partitions * 100))


def generate_open(root: Path, producers: int, partitions: int = PARTITIONS) -> None:
    """Writes a capture with `--open-producers`."""
    for partition in range(partitions):
        segments = SegmentFiles(root / "1" / f"damaged-{partition}")
        for offset, producer in enumerate(range(partition, producers, partitions)):
            segments.write(batch(offset, 0, TRANSACTIONAL, START_MS + offset, producer, 0, 1, records_of(1, 60)))
        segments.close()
    notes = {
        "captured_at_ms": {"default": START_MS + producers // partitions + LATER_MS},
        "coordinator_partitions": 50,
        "partitions": {f"damaged-{number}": {"leader": 1, "replicas": [1]} for number in range(partitions)},
    }
    (root / "capture.json").write_text(json.dumps(notes))


def generate_ids(root: Path, ids: int, partitions: int = PARTITIONS) -> None:
    """Writes a capture with `--ids`."""
    logs = [SegmentFiles(root / "1" / f"orders-{number}") for number in range(partitions)]
    coordinators = [SegmentFiles(root / "1" / f"__transaction_state-{number}") for number in range(COORDINATORS)]
    offsets = dict.fromkeys(coordinators, 0)
    for producer in range(ids):
        number, began = producer % partitions, START_MS + producer
        place, offset = TopicPartition("orders", number), producer // partitions * 2
        log, coordinator = logs[number], coordinators[partition_for(transactional_id(producer), COORDINATORS)]
        log.write(batch(offset, 0, TRANSACTIONAL, began, producer, 0, 1, records_of(1, 60)))
        log.write(batch(offset + 1, 0, TRANSACTIONAL | CONTROL, began + 2, producer, -1, 1, MARKER_RECORD))
        for step, state in enumerate(TRANSACTION):
            coordinator.write(coordinator_record(offsets[coordinator], producer, state, began + step, place))
            offsets[coordinator] += 1
    for log in (*logs, *coordinators):
        log.close()
    notes = {"captured_at_ms": {"default": START_MS + ids + LATER_MS}, "coordinator_partitions": COORDINATORS}
    (root / "capture.json").write_text(json.dumps(notes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--mix", action="store_true")
    kind.add_argument("--open-producers", type=int, metavar="PRODUCERS")
    kind.add_argument("--ids", type=int)
    kind.add_argument("--multiply", nargs=2, metavar=("CAPTURE", "TIMES"))
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--batch-bytes", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    given = parser.parse_args()
    if given.multiply:
        multiply(Path(given.multiply[0]), given.folder, int(given.multiply[1]))
    elif given.mix:
        generate(given.folder, given.batches, given.batch_bytes, given.partitions)
    elif given.ids:
        generate_ids(given.folder, given.ids, given.partitions)
    else:
        generate_open(given.folder, given.open_producers, given.partitions)


if __name__ == "__main__":
    main()
