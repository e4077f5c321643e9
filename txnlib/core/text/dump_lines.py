"""Single lines of `kafka-dump-log.sh`: a file, a batch or a producer. Fields are found by their labels.

A line alone does not show whether it is genuine, because payloads can imitate all of them: `batch_chain` decides.
Kafka: `DumpLogSegments`; docs/rules/formats.md#lines-of-the-dump-tool.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.core.kafka.record_batch import CompressionType, TimestampType

#: The value of a field that a version of the tool does not print. For all of these numbers, this is also Kafka's "none".
NOT_PRINTED: Final = -1
#: Far above the size of a line without free text. Longer lines are not split into words, which would take much memory.
LONGEST_METADATA: Final = 1 << 14


#: Kinds of files that consist of batches.
LOG_KINDS: Final = frozenset({"log", "checkpoint"})


class DumpedFile(NamedTuple):
    """A line `Dumping <path>` and the fields in its path. None: not in the path, or there is no such line."""

    path: str | None = None
    kind: str = "log"
    base_offset: int | None = None
    topic: str | None = None
    partition: int | None = None
    log_directory: str = ""
    is_deleted: bool = False
    #: For a snapshot of `__cluster_metadata`, the offset before which it shows the state.
    snapshot_offset: int | None = None

    @property
    def folder(self) -> str:
        """The path of its folder; empty if there is none."""
        return (self.path or "").replace("\\", "/").rpartition("/")[0]

    @property
    def has_batches(self) -> bool:
        """Whether the file consists of batches: a log, or a snapshot of `__cluster_metadata`."""
        return self.kind in LOG_KINDS


class DumpedBatch(NamedTuple):
    """The fields of a batch line, and the marker fields of its control record's line; -1: none, or not printed.

    All fields are integers, enums too, because these make the fastest columns.
    In message formats 0 and 1 a line shows one offset: the only one, or the last one of a compressed set.
    """

    base_offset: int
    last_offset: int
    records_count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    partition_leader_epoch: int
    position: int
    max_timestamp: int
    size: int
    magic: int
    crc: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int
    compression_type: int
    timestamp_type: int
    is_valid: bool
    control_type: int = NOT_PRINTED
    coordinator_epoch: int = NOT_PRINTED

    @property
    def has_known_start(self) -> bool:
        """Whether `base_offset` is the first offset: for a compressed set of formats 0 and 1 only the last one is printed."""
        return self.magic >= 2 or self.compression_type == CompressionType.NONE


class DumpedSnapshotEntry(NamedTuple):
    """A producer in a snapshot file; -1: none, or not printed."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


#: Label of a timestamp -> its type. All labels in this module are in lower case.
TIMESTAMP_TYPES: Final[Mapping[bytes, int]] = {
    b"createtime:": int(TimestampType.CREATE_TIME),
    b"logappendtime:": int(TimestampType.LOG_APPEND_TIME),
    b"notimestamptype:": NOT_PRINTED,
}
#: Upper case up to 2.8, lower case from 3.0.
CODECS: Final = {name: int(codec) for codec in CompressionType for name in (codec.name.encode(), codec.name.lower().encode())}
BOOLEANS: Final = {b"true": True, b"false": False}

NUMBERS: Final = (
    b"baseoffset:",
    b"lastoffset:",
    b"count:",
    b"basesequence:",
    b"lastsequence:",
    b"producerid:",
    b"producerepoch:",
    b"partitionleaderepoch:",
    b"position:",
    b"timestamp",
    b"size:",
    b"magic:",
    b"crc:",
)
WORDS: Final = (b"istransactional:", b"iscontrol:", b"deletehorizonms:", b"compresscodec:", b"isvalid:")
#: Printed only by later versions (since 2.0.0, 2.0.1, 3.2), or not for message formats 0 and 1.
_OPTIONAL: Final = frozenset({b"count:", b"iscontrol:", b"deletehorizonms:"})
_LATER_THAN_FORMAT_1: Final = frozenset({*NUMBERS[3:8], b"istransactional:"}) | _OPTIONAL
_KNOWN: Final = (*NUMBERS[:9], *WORDS, *TIMESTAMP_TYPES)
#: Tokens to append to those of a line as values of missing labels; and the index of a label's token, if not the first.
_DEFAULTS: Final = [b"-1", b"false", b"OptionalLong.empty"]
_DEFAULT_PLACES: Final[Mapping[bytes, int]] = {b"istransactional:": 1, b"iscontrol:": 1, b"deletehorizonms:": 2}
#: The types of the numbers on disk. Packing them is the fastest check of thirteen ranges at once.
_RANGES: Final = struct.Struct(">qqiiiqhiqqibI")
#: Above any real offset or position, and small enough to add a batch to it.
_FAR: Final = 1 << 62
#: Size in bytes of the smallest message or batch of formats 0, 1 and 2.
_SMALLEST_SIZES: Final = (26, 34, 61)


class _LineLayout(NamedTuple):
    labels: list[bytes]
    numbers: itemgetter[Any]
    words: itemgetter[Any]
    timestamp_type: int
    magics: range
    has_defaults: bool
    has_is_control: bool
    ends_with_crc: bool


@lru_cache(maxsize=64)
def _layout(labels: tuple[bytes, ...]) -> _LineLayout | None:
    """The indexes of the fields among the tokens of a line with these labels; None if it is not a batch line."""
    places = {label.lower(): 2 * index + 1 for index, label in enumerate(labels)}
    timestamp_labels = places.keys() & TIMESTAMP_TYPES.keys()
    if len(places) < len(labels) or len(timestamp_labels) != 1 or any(not label.endswith(b":") for label in labels):
        return None
    (timestamp_label,) = timestamp_labels
    places[b"timestamp"] = places[timestamp_label]
    is_old = b"offset:" in places
    if is_old:
        if b"keysize:" in places or b"baseoffset:" in places:
            return None
        places[b"baseoffset:"] = places[b"lastoffset:"] = places[b"offset:"]
    # Another build may print further labels. But a label that ends like a known one comes from two pieces of lines without a gap.
    if any(label.endswith(_KNOWN) and label not in _KNOWN for label in places):
        return None
    missing = {*NUMBERS, *WORDS} - places.keys()
    if not missing <= (_LATER_THAN_FORMAT_1 if is_old else _OPTIONAL):
        return None
    for label in missing:
        places[label] = 2 * len(labels) + _DEFAULT_PLACES.get(label, 0)
    return _LineLayout(
        labels=list(labels),
        numbers=itemgetter(*(places[label] for label in NUMBERS)),
        words=itemgetter(*(places[label] for label in WORDS)),
        timestamp_type=TIMESTAMP_TYPES[timestamp_label],
        magics=range(2) if is_old else range(2, 3),
        has_defaults=bool(missing),
        has_is_control=b"iscontrol:" not in missing,
        ends_with_crc=labels[-1] == b"crc:",
    )


_KINDS: Final = frozenset({"log", "snapshot", "txnindex", "index", "timeindex", "checkpoint", "deleted", "swap", "cleaned"})
_METADATA_SNAPSHOT: Final = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")
_DIRECTORY: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(?P<state>future|delete|stray))?")


def read_file_line(line: bytes) -> DumpedFile | None:
    """The file in a line `Dumping <path>`, and the fields in its path; None for any other line."""
    if not line.startswith(b"Dumping ") or len(line) > LONGEST_METADATA:
        return None
    path = line[len(b"Dumping ") :].decode(errors="replace").rstrip("\r\n")
    parent, _, name = path.replace("\\", "/").rpartition("/")
    log_directory, _, directory = parent.rpartition("/")
    number, _, kind = name.partition(".")
    if kind.rpartition(".")[2] not in _KINDS:
        return None
    is_named_by_offset = len(number) == 20 and number.isascii() and number.isdecimal() and int(number) < _FAR
    base_offset = int(number) if is_named_by_offset else None
    match = _DIRECTORY.fullmatch(directory)
    if match is None:
        return DumpedFile(path, kind, base_offset)
    is_deleted = match["state"] in ("delete", "stray")
    snapshot = _METADATA_SNAPSHOT.fullmatch(name)
    snapshot_offset = None if snapshot is None or int(snapshot[1]) >= _FAR else int(snapshot[1])
    place = match["topic"], int(match["partition"])
    return DumpedFile(path, kind, base_offset, *place, log_directory, is_deleted, snapshot_offset)


def read_batch_line(line: bytes) -> DumpedBatch | None:
    """The batch in a line `baseOffset: …`, or `offset: … size: …` of formats 0 and 1; None for any other line."""
    if len(line) > LONGEST_METADATA:
        return None
    tokens = line.split()
    layout = _layout(tuple(tokens[0::2]))
    if layout is None or len(tokens) % 2:
        return None
    if layout.has_defaults:
        tokens += _DEFAULTS
    is_transactional, is_control, delete_horizon, codec, is_valid = layout.words(tokens)
    try:
        numbers = tuple(map(int, layout.numbers(tokens)))
        _RANGES.pack(*numbers)
        batch = DumpedBatch._make(
            (
                *numbers,
                BOOLEANS[is_transactional],
                BOOLEANS[is_control],
                NOT_PRINTED if delete_horizon == b"OptionalLong.empty" else _optional_long(delete_horizon),
                CODECS[codec],
                layout.timestamp_type,
                BOOLEANS[is_valid],
                NOT_PRINTED,
                NOT_PRINTED,
            )
        )
    except (ValueError, KeyError, struct.error):
        return None
    if not is_believable(batch) or batch.magic not in layout.magics or batch.size < _SMALLEST_SIZES[batch.magic]:
        return None
    if not layout.has_is_control and is_transactional == b"true" and batch.base_sequence < 0:
        # Before 2.0.1 this identifies a marker (docs/rules/formats.md#markers-before-201).
        batch = batch._replace(is_control=True)
    if layout.ends_with_crc and not line.endswith(b"\n"):
        # The text may be truncated inside the last number.
        batch = batch._replace(crc=NOT_PRINTED)
    return batch


def is_believable(batch: DumpedBatch) -> bool:
    """Whether offsets, sequences, count and position can belong to one batch."""
    base_offset, last_offset, count, base_sequence, last_sequence = batch[:5]
    delta = last_offset - base_offset
    if base_sequence >= 0 and (batch.is_control or last_sequence != (base_sequence + delta) & MAX_SEQUENCE):
        return False
    return base_offset >= 0 <= delta and last_offset < _FAR and count <= delta + 1 and 0 <= batch.position < _FAR


def read_snapshot_line(line: bytes) -> DumpedSnapshotEntry | None:
    """The producer in a line of a `.snapshot` dump; None for any other line."""
    if len(line) > LONGEST_METADATA:
        return None
    head, _label, queue = line.partition(b" cachedMetadata: ")
    tokens = head.split()
    fields = dict(zip(tokens[0::2], tokens[1::2], strict=False))
    if queue:
        fields |= _last_cached_batch(queue)
    try:
        entry = DumpedSnapshotEntry(
            producer_id=int(fields[b"producerId:"]),
            producer_epoch=int(fields[b"producerEpoch:"]),
            last_sequence=int(fields.get(b"lastSequence:", -1)),
            last_offset=int(fields.get(b"lastOffset:", -1)),
            offset_delta=int(fields.get(b"offsetDelta:", -1)),
            last_timestamp=int(fields.get(b"lastTimestamp:", fields.get(b"timestamp:", -1))),
            coordinator_epoch=int(fields[b"coordinatorEpoch:"]),
            current_txn_first_offset=_optional_long(fields[b"currentTxnFirstOffset:"]),
        )
        _SNAPSHOT_RANGES.pack(*entry)
    except (ValueError, KeyError, struct.error):
        return None
    return entry if len(tokens) % 2 == 0 else None


_SNAPSHOT_RANGES: Final = struct.Struct(">qhiqiqiq")
_CACHED_BATCH: Final = re.compile(
    rb"BatchMetadata\(firstSeq=-?\d+, lastSeq=(-?\d+), firstOffset=(\d{1,19}), lastOffset=(\d{1,19}), "
    rb"timestamp=(-?\d+)\)"
)


def _last_cached_batch(queue: bytes) -> dict[bytes, bytes]:
    """The fields of a producer's newest batch. Kafka 1.0.0 and 1.0.1 print up to five batches per producer, the newest last."""
    batches = _CACHED_BATCH.findall(queue)
    if not batches:
        return {}
    last_sequence, first_offset, last_offset, timestamp = batches[-1]
    return {
        b"lastSequence:": last_sequence,
        b"lastOffset:": last_offset,
        b"offsetDelta:": b"%d" % (int(last_offset) - int(first_offset)),
        b"timestamp:": timestamp,
    }


def _optional_long(text: bytes) -> int:
    """`OptionalLong[6]` and, up to 3.4, `Some(6)`; -1 for `OptionalLong.empty` and `None`. Raises ValueError for any other text."""
    if text in (b"OptionalLong.empty", b"None"):
        return -1
    for start, end in ((b"OptionalLong[", b"]"), (b"Some(", b")")):
        if text.startswith(start) and text.endswith(end):
            number = int(text[len(start) : -len(end)])
            if 0 <= number < _FAR:
                return number
    raise ValueError(text)
