"""The text checkpoints of a broker: `…-offset-checkpoint`, `leader-epoch-checkpoint` and `partition.metadata`, version 0.

Brokers replace the file atomically, so an incomplete or malformed one is a bad copy.
Source: docs/rules/formats.md#checkpoint-files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from txnlib.core.kafka.constants import MAX_INT32, MAX_INT64

VERSION: Final = b"0"
#: Number of words in a line of `leader-epoch-checkpoint`, and of the other files.
EPOCH_FIELDS: Final = 2
OFFSET_FIELDS: Final = 3
_TOPIC: Final = re.compile(rb"[a-zA-Z0-9._-]{1,249}")
_DIGITS: Final = len(str(MAX_INT64))
_SHOWN: Final = 20


Entry = tuple[str | None, int, int]


class Checkpoint(NamedTuple):
    """The complete entries, the reason why there are not more (None if there are none missing), and the byte where that shows."""

    entries: list[Entry]
    problem: str | None
    position: int = 0


class CheckpointEntries:
    """The entries of a checkpoint file, one after the other: (topic, partition, offset), or (None, leader epoch, first offset).

    `fields`: EPOCH_FIELDS or OFFSET_FIELDS. `problem`, after the last entry: why there are not more; None if none are missing.
    `position`: the byte where that shows.

    A line without a line end may have lost digits, so it is not an entry; nor is a line with numbers outside of Kafka's types
    (int32 for partitions and epochs, int64 for offsets). An empty file has no entries and no problem.
    """

    def __init__(self, content: bytes, *, fields: int) -> None:
        self._content, self._fields = content, fields
        self.problem: str | None = None
        self.position = 0

    def __iter__(self) -> Iterator[Entry]:
        # Line by line, because a file may have millions.
        lines = _lines(self._content)
        version = next(lines, b"")
        if version and (version.strip() != VERSION or not version.endswith(b"\n")):
            self.problem = f"version {_line(version)!r} of a checkpoint is not known"
        if not version or self.problem is not None:
            return
        count = next(lines, b"")
        position, entries = len(version) + len(count), 0
        odd: tuple[bytes, int] | None = None
        for line in lines:
            # After the last line end is a truncated line, or nothing.
            entry = _entry(line, self._fields) if line.endswith(b"\n") else None
            if entry is not None:
                entries += 1
                yield entry
            elif odd is None and (line.endswith(b"\n") or line.strip()):
                odd = line, position
            position += len(line)
        if odd is None and number(count, MAX_INT32) == entries:
            return
        self.problem = f"{entries} whole entries, and {_line(count)!r} are expected"
        self.position = len(version)
        if odd is not None:
            self.problem += f"; {_line(odd[0])!r} at byte {odd[1]} is none"
            self.position = odd[1]


def _lines(content: bytes) -> Iterator[bytes]:
    """The lines with their ends."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start) + 1 or len(content)
        yield content[start:end]
        start = end


def _line(line: bytes) -> bytes:
    """The beginning of a line, without its end."""
    return line.removesuffix(b"\n")[:_SHOWN]


def read_checkpoint(content: bytes, *, fields: int) -> Checkpoint:
    """All entries of a checkpoint file, and what is wrong with it: see `CheckpointEntries`."""
    lines = CheckpointEntries(content, fields=fields)
    entries = list(lines)
    return Checkpoint(entries, lines.problem, lines.position)


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


def _entry(line: bytes, fields: int) -> Entry | None:
    words = line.split()
    if len(words) != fields:
        return None
    first, second = number(words[-2], MAX_INT32), number(words[-1], MAX_INT64)
    if first is None or second is None:
        return None
    if fields == EPOCH_FIELDS:
        return None, first, second
    return (words[0].decode("ascii"), first, second) if _TOPIC.fullmatch(words[0]) else None
