"""The text checkpoints of a broker: `…-offset-checkpoint`, `leader-epoch-checkpoint` and `partition.metadata`, version 0.

Kafka: `CheckpointFile`; formats.md 3.12. Brokers replace the file atomically, so an incomplete or malformed one is a bad copy.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from txnlib.core.kafka.constants import MAX_INT32, MAX_INT64

VERSION: Final = b"0"
#: Number of words in a line of `leader-epoch-checkpoint`, and of the other files.
EPOCH_FIELDS: Final = 2
OFFSET_FIELDS: Final = 3
_TOPIC: Final = re.compile(rb"[a-zA-Z0-9._-]{1,249}")
_DIGITS: Final = len(str(MAX_INT64))
_SHOWN: Final = 20


class Checkpoint(NamedTuple):
    """The complete entries, the reason why there are not more (None if there are none missing), and the byte where that shows."""

    entries: list[tuple[str | None, int, int]]
    problem: str | None
    position: int = 0


def read_checkpoint(content: bytes, *, fields: int) -> Checkpoint:
    """The entries of a checkpoint file: (topic, partition, offset), or, with two fields, (None, leader epoch, first offset).

    A line without a line end may have lost digits, so it is not an entry; nor is a line with numbers outside of Kafka's types
    (int32 for partitions and epochs, int64 for offsets). An empty file has no entries and no problem.
    """
    if not content:
        return Checkpoint([], None)
    version, *lines = content.split(b"\n")
    if version.strip() != VERSION or not lines:
        return Checkpoint([], f"version {version[:_SHOWN]!r} of a checkpoint is not known")
    count, *lines = lines
    # After the last line end is a truncated line, or nothing.
    cut = lines.pop() if lines else b""
    counted_at = len(version) + 1
    position = counted_at + len(count) + 1
    entries: list[tuple[str | None, int, int]] = []
    odd: tuple[bytes, int] | None = None
    for line in lines:
        entry = _entry(line, fields)
        if entry is not None:
            entries.append(entry)
        elif odd is None:
            odd = line, position
        position += len(line) + 1
    if odd is None and cut.strip():
        odd = cut, position
    if odd is None and number(count, MAX_INT32) == len(entries):
        return Checkpoint(entries, None)
    expected = f"{len(entries)} whole entries, and {count[:_SHOWN]!r} are expected"
    if odd is None:
        return Checkpoint(entries, expected, counted_at)
    return Checkpoint(entries, f"{expected}; {odd[0][:_SHOWN]!r} at byte {odd[1]} is none", odd[1])


_PARTITION_METADATA: Final = re.compile(rb"version: ?0\r?\ntopic_id: ?([A-Za-z0-9_-]{22})\s*")


def read_topic_id(content: bytes) -> str | None:
    """The topic id in a `partition.metadata`; None if the file is not complete. Kafka: `PartitionMetadataFile`."""
    match = _PARTITION_METADATA.fullmatch(content)
    return None if match is None else match[1].decode("ascii")


def number(word: bytes, most: int) -> int | None:
    """The number that is written in digits; None for anything else, or if it is above `most`."""
    digits = word.strip()
    if not digits.isdigit():
        return None
    digits = digits.lstrip(b"0") or b"0"
    value = int(digits) if len(digits) <= _DIGITS else most + 1
    return value if value <= most else None


def _entry(line: bytes, fields: int) -> tuple[str | None, int, int] | None:
    words = line.split()
    if len(words) != fields:
        return None
    first, second = number(words[-2], MAX_INT32), number(words[-1], MAX_INT64)
    if first is None or second is None:
        return None
    if fields == EPOCH_FIELDS:
        return None, first, second
    return (words[0].decode("ascii"), first, second) if _TOPIC.fullmatch(words[0]) else None
