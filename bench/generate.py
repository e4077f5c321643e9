"""Writes raw segments of any size: seeded, with realistic producers, transactions, sequences and markers.

    python bench/generate.py FOLDER --batches 5000000 --batch-bytes 500 --partitions 20
    python bench/generate.py FOLDER --batches 2000000 --mix
    python bench/generate.py FOLDER --multiply CAPTURE TIMES

Each partition has its own producers; a transaction is one to seven data batches and a marker. One in a thousand
transactions is left open, and one data batch in a thousand skips a sequence number, so that the core judges it. A
small `__transaction_state` knows the producers of even number, so that the audit has something to join. CRCs are
right, and so are the records, so that Kafka's own tools read them too.

`--mix` makes a third of the partitions without producer ids, a third idempotent, and a third transactional, where a
transaction is 2 to 20 batches; in each, a few producers take turns, batch by batch.

`--multiply` makes one large cluster of a small real one instead: see multiply.py.
"""

from __future__ import annotations

import argparse
import random
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import BinaryIO

from encode import batch, encode_record, transaction_log_key, transaction_log_value
from multiply import multiply

from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState

SEGMENT_BYTES = 1 << 30
START_MS = 1_790_000_000_000
TRANSACTIONAL, CONTROL = 0x10, 0x20
SUSPICIOUS = 0.001
#: Of a batch, and of the smallest record: length, attributes, two deltas, key, value, headers.
HEADER_BYTES, RECORD_BYTES = 61, 7
#: COMMIT of coordinator epoch 0: length 16, no attributes, key (0, 1), value (0, 0), no headers.
MARKER_RECORD = bytes.fromhex("20000000080000000" + "10c000000000000" + "00")


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


def partition_log(folder: Path, batches: int, batch_bytes: int, producers: range, seed: int) -> int:
    """Writes one partition's segments; returns how many batches."""
    rng = random.Random(seed)
    body_bytes = max(batch_bytes - HEADER_BYTES, RECORD_BYTES)
    sequences = dict.fromkeys(producers, 0)
    offset, written, time = 0, 0, START_MS
    segments = SegmentFiles(folder)
    pending: list[bytes] = []
    while written < batches:
        producer = rng.choice(producers)
        for _ in range(rng.randint(1, 7)):
            count = min(rng.randint(1, 9), body_bytes // RECORD_BYTES)
            if rng.random() < SUSPICIOUS:
                sequences[producer] += 1
            body = records_of(count, body_bytes)
            pending.append(batch(offset, count - 1, TRANSACTIONAL, time, producer, sequences[producer], count, body))
            sequences[producer] = (sequences[producer] + count) % 2**31
            offset += count
            time += rng.randint(0, 3)
        if rng.random() >= 0.001:
            pending.append(batch(offset, 0, TRANSACTIONAL | CONTROL, time, producer, -1, 1, MARKER_RECORD))
            offset += 1
        written += len(pending)
        block = b"".join(pending)
        pending.clear()
        segments.write(block)
    segments.close()
    return written


#: With `--mix`, the number of producers that write to a partition at the same time.
INTERLEAVED = 5


def mixed_log(folder: Path, batches: int, batch_bytes: int, producers: range, seed: int) -> int:
    """Writes one partition's segments with `--mix`; returns how many batches. Partitions are of each kind in turn."""
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
    return written


def transactional_id(producer: int) -> str:
    return f"app-{producer}"


def empty_record(offset: int, producer: int) -> bytes:
    """The batch with the Empty record of a producer."""
    entry = TransactionLogEntry(
        transactional_id=transactional_id(producer),
        producer_id=producer,
        producer_epoch=0,
        transaction_timeout_ms=60_000,
        transaction_state=TransactionState.EMPTY,
        transaction_partitions=None,
        last_update_timestamp_ms=START_MS,
        start_timestamp_ms=None,
        version=0,
    )
    body = encode_record(0, 0, transaction_log_key(entry.transactional_id), transaction_log_value(entry))
    return batch(offset, 0, 0, START_MS, -1, -1, 1, body, epoch=-1)


def coordinator_log(folder: Path, producers: range) -> None:
    """One Empty record for each producer of even number."""
    folder.mkdir(parents=True)
    out = bytearray()
    for offset, producer in enumerate(p for p in producers if p % 2 == 0):
        out += empty_record(offset, producer)
    (folder / f"{0:020d}.log").write_bytes(bytes(out))


def generate(
    root: Path, batches: int, batch_bytes: int, partitions: int, seed: int = 7, *, is_mixed: bool = False
) -> int:
    """Writes a capture of one broker, its partitions side by side; returns how many data and marker batches it
    holds."""
    per_partition = -(-batches // partitions)
    with ProcessPoolExecutor() as pool:
        written = [
            pool.submit(
                mixed_log if is_mixed else partition_log,
                root / "1" / f"events-{number}",
                per_partition,
                batch_bytes,
                range(number * 100, number * 100 + 100),
                seed + number,
            )
            for number in range(partitions)
        ]
        total = sum(future.result() for future in written)
    coordinator_log(root / "1" / "__transaction_state-0", range(partitions * 100))
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--batch-bytes", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--mix", action="store_true", help="a third without producer ids, a third idempotent, a third transactional"
    )
    parser.add_argument(
        "--multiply", nargs=2, metavar=("CAPTURE", "TIMES"), help="raw copies of a real cluster, and how often"
    )
    given = parser.parse_args()
    if given.multiply:
        multiply(Path(given.multiply[0]), given.folder, int(given.multiply[1]))
        raise SystemExit
    print(
        generate(given.folder, given.batches, given.batch_bytes, given.partitions, given.seed, is_mixed=given.mix),
        "batches",
    )
