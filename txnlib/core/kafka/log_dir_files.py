"""Files in a log directory next to the logs: producer snapshots, transaction indexes, text checkpoints, its identity.

Kafka: `ProducerStateManager.writeSnapshot`, `readSnapshot`; `TransactionIndex`, `AbortedTxn`. Source of the
checkpoints: docs/rules/formats.md#checkpoint-files.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from txnlib.core.kafka.constants import MAX_INT32, MAX_INT64
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.wire import CorruptRecordError, optional

# ---- `.snapshot`: the state of every producer of a partition before an offset


SNAPSHOT_VERSION: Final = 1
SNAPSHOT_HEADER: Final = struct.Struct(">hIi")  # version, CRC-32C of everything from the count on, count
SNAPSHOT_ENTRY: Final = struct.Struct(
    ">q"  # producerId
    "h"  # producerEpoch
    "i"  # lastSequence
    "q"  # lastOffset
    "i"  # offsetDelta
    "q"  # timestamp
    "i"  # coordinatorEpoch
    "q"  # currentTxnFirstOffset
)
CRC_STARTS_AT: Final = 6


def stored_crc(content: bytes) -> int:
    """The stored CRC-32C of everything from byte 6 on. The caller checks it."""
    if len(content) < SNAPSHOT_HEADER.size:
        raise CorruptRecordError(0, f"a snapshot has at least {SNAPSHOT_HEADER.size} bytes, this one {len(content)}")
    return int(SNAPSHOT_HEADER.unpack_from(content)[1])


def read_producer_snapshot(content: bytes) -> dict[int, ProducerState]:
    """State by producer id. Raises CorruptRecordError for an unknown version or a size that does not match the
    count."""
    stored_crc(content)
    version, _crc, count = SNAPSHOT_HEADER.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        raise CorruptRecordError(0, f"snapshot version {version} is not known")
    if count < 0 or len(content) != SNAPSHOT_HEADER.size + count * SNAPSHOT_ENTRY.size:
        raise CorruptRecordError(CRC_STARTS_AT, f"{count} entries are promised in {len(content)} bytes")
    producers = {}
    for fields in SNAPSHOT_ENTRY.iter_unpack(content[SNAPSHOT_HEADER.size :]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = (
            fields
        )
        producers[producer_id] = ProducerState(
            producer_epoch=optional(epoch),
            last_sequence=optional(last_sequence),
            last_offset=optional(last_offset),
            offset_delta=offset_delta,
            coordinator_epoch=optional(coordinator_epoch),
            current_txn_first_offset=optional(first_offset),
            last_timestamp=optional(timestamp),
        )
    return producers


# ---- `.txnindex`: the aborted transactions whose marker is in a segment


INDEX_ENTRY: Final = struct.Struct(">hqqqq")  # version, producerId, firstOffset, lastOffset, lastStableOffset


class AbortedTxn(NamedTuple):
    """One aborted transaction; `last_offset` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_transaction_index(content: bytes) -> list[AbortedTxn]:
    """The entries in the order of their markers. A fragment at the end is ignored, as in Kafka.

    Raises CorruptRecordError for an unknown version, or if the markers are not in ascending order.
    """
    entries: list[AbortedTxn] = []
    whole = len(content) - len(content) % INDEX_ENTRY.size
    for position in range(0, whole, INDEX_ENTRY.size):
        version, *fields = INDEX_ENTRY.unpack_from(content, position)
        if version != 0:
            raise CorruptRecordError(position, f"version {version} of an aborted transaction is not known")
        entry = AbortedTxn(*fields)
        if not 0 <= entry.first_offset <= entry.last_offset or (
            entries and entries[-1].last_offset >= entry.last_offset
        ):
            raise CorruptRecordError(position, "aborted transactions are not in the order of their markers")
        entries.append(entry)
    return entries


# ---- `…-offset-checkpoint`, `leader-epoch-checkpoint` and `partition.metadata`, which brokers replace atomically


#: Number of words in a line of `leader-epoch-checkpoint`, and of the other files.
EPOCH_FIELDS: Final = 2
OFFSET_FIELDS: Final = 3
_TOPIC: Final = re.compile(rb"[a-zA-Z0-9._-]{1,249}")
_DIGITS: Final = len(str(MAX_INT64))
_SHOWN: Final = 20


Entry = tuple[str | None, int, int]


class CheckpointEntries:
    """The entries of a checkpoint file, one after the other: (topic, partition, offset), or (None, leader epoch, first
    offset).

    `lines`: with their ends. `fields`: EPOCH_FIELDS or OFFSET_FIELDS. `problem`, after the last entry: why there are
    not more; None if none are missing. `position`: the byte where that shows.

    A line without a line end may have lost digits, so it is not an entry; nor is a line with numbers outside of Kafka's
    types (int32 for partitions and epochs, int64 for offsets). An empty file has no entries and no problem.
    """

    def __init__(self, lines: Iterable[bytes], *, fields: int) -> None:
        self._lines, self._fields = iter(lines), fields
        self.problem: str | None = None
        self.position = 0

    def __iter__(self) -> Iterator[Entry]:
        lines = self._lines
        version = next(lines, b"")
        if version and (version.strip() != b"0" or not version.endswith(b"\n")):
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


def _line(line: bytes) -> bytes:
    """The beginning of a line, without its end."""
    return line.removesuffix(b"\n")[:_SHOWN]


_PARTITION_METADATA: Final = re.compile(rb"version: ?0\r?\ntopic_id: ?([A-Za-z0-9_-]{22})\s*")


def read_topic_id(content: bytes) -> str | None:
    """The topic id in a `partition.metadata`; None if the file is not complete. Kafka: `PartitionMetadataFile`."""
    match = _PARTITION_METADATA.fullmatch(content)
    return None if match is None else match[1].decode("ascii")


class MetaProperties(NamedTuple):
    """What `meta.properties` says of its log directory. None: it does not say that."""

    cluster_id: str | None
    broker_id: str | None


def read_meta_properties(content: bytes) -> MetaProperties:
    """The identity in a `meta.properties` of version 0 (`broker.id`) or 1 (`node.id`). Kafka: `MetaProperties`."""
    found = properties_in(content.decode(errors="replace"))
    broker_id = number((found.get("node.id") or found.get("broker.id") or "").encode(), MAX_INT32)
    return MetaProperties(found.get("cluster.id", "").strip() or None, None if broker_id is None else str(broker_id))


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


# ---- Properties in Java's format. Kafka: `Utils.loadProps`, `PropertiesUtils.readPropertiesFile`.

_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties_in(text: str) -> dict[str, str]:
    """The properties in a text, as `java.util.Properties.load` reads them. Of a key that stands twice, the last one."""
    found: dict[str, str] = {}
    whole = ""
    for line in (*text.splitlines(), ""):
        stripped = line.lstrip(" \t\f")
        if not whole and stripped[:1] in ("", "#", "!"):
            continue
        whole += stripped
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        parts = re.fullmatch(r"((?:[^=:\s\\]|\\.)*)[ \t\f]*[=: \t\f]?[ \t\f]*(.*)", whole, re.DOTALL)
        assert parts is not None, "every part may be empty"
        found[_unescaped(parts[1])] = _unescaped(parts[2])
        whole = ""
    return found


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        return chr(int(match[2], 16)) if match[2] else _ESCAPED.get(match[1], match[1])

    return re.sub(r"\\(u([0-9a-fA-F]{4})|.)", plain, text, flags=re.DOTALL)
