"""Writes raw segments of any size: seeded, with realistic producers, transactions, sequences and markers.

    python bench/generate.py FOLDER --batches 5000000 --batch-bytes 500 --partitions 20

Each partition has its own producers; a transaction is one to seven data batches and a marker. One in a thousand
transactions is left open. A small `__transaction_state` knows the producers of even number, so that the audit has
something to join. CRCs are right.
"""

from __future__ import annotations

import argparse
import random
import struct
from pathlib import Path

import google_crc32c

SEGMENT_BYTES = 1 << 30
START_MS = 1_790_000_000_000
TRANSACTIONAL, CONTROL = 0x10, 0x20


def batch(offset: int, delta: int, attributes: int, time: int, producer: int, sequence: int, count: int, body: bytes) -> bytes:
    """One v2 batch with a right CRC."""
    covered = struct.pack(">hiqqqhii", attributes, delta, time, time, producer, 0, sequence, count) + body
    return struct.pack(">qiibI", offset, 9 + len(covered), 0, 2, google_crc32c.value(covered)) + covered


#: COMMIT of coordinator epoch 0: length 16, no attributes, key (0, 1), value (0, 0), no headers.
MARKER_RECORD = bytes.fromhex("20000000080000000" + "10c000000000000" + "00")


def partition_log(folder: Path, batches: int, batch_bytes: int, producers: range, seed: int) -> int:
    """Writes one partition's segments; returns how many batches."""
    rng = random.Random(seed)
    body = b"\x00" * max(batch_bytes - 61, 1)
    sequences = dict.fromkeys(producers, 0)
    offset, written, size, time = 0, 0, 0, START_MS
    stream = (folder / f"{0:020d}.log").open("wb", buffering=1 << 20)
    pending: list[bytes] = []
    while written < batches:
        producer = rng.choice(producers)
        for _ in range(rng.randint(1, 7)):
            count = rng.randint(1, 9)
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
        if size + len(block) > SEGMENT_BYTES:
            stream.close()
            # The block's first batch opens the next segment.
            stream = (folder / f"{int.from_bytes(block[:8], 'big'):020d}.log").open("wb", buffering=1 << 20)
            size = 0
        stream.write(block)
        size += len(block)
    stream.close()
    return written


def coordinator_log(folder: Path, producers: range) -> None:
    """One Empty record for each producer of even number."""
    folder.mkdir(parents=True)
    out = bytearray()
    for offset, producer in enumerate(p for p in producers if p % 2 == 0):
        name = f"app-{producer}".encode()
        key = struct.pack(">hh", 0, len(name)) + name
        value = struct.pack(">hqhibiqq", 0, producer, 0, 60_000, 0, -1, START_MS, -1)
        record = b"\x00\x00\x00" + _varint(len(key)) + key + _varint(len(value)) + value + b"\x00"
        body = _varint(len(record)) + record
        out += batch(offset, 0, 0, START_MS, -1, -1, 1, body)
    (folder / f"{0:020d}.log").write_bytes(bytes(out))


def _varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def generate(root: Path, batches: int, batch_bytes: int, partitions: int, seed: int = 7) -> int:
    """Writes a capture of one broker; returns how many data and marker batches it holds."""
    per_partition, total = -(-batches // partitions), 0
    for number in range(partitions):
        folder = root / "1" / f"events-{number}"
        folder.mkdir(parents=True)
        producers = range(number * 100, number * 100 + 100)
        total += partition_log(folder, per_partition, batch_bytes, producers, seed + number)
    coordinator_log(root / "1" / "__transaction_state-0", range(partitions * 100))
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--batch-bytes", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    print(generate(given.folder, given.batches, given.batch_bytes, given.partitions, given.seed), "batches")
