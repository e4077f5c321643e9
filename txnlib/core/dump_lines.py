"""What does one line of `kafka-dump-log.sh` say? Every generation, 0.11 to 4.4, by labels and never by place.

A line says nothing about whether it is genuine: payloads can imitate every one of them. That is decided by `dump_text`.
Kafka: `DumpLogSegments`; formats.md 1 and 5.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from txnlib.core.record_batch import CompressionType, ControlType, TimestampType

#: What stands for a field that a generation of the tool does not print; Kafka's own "none" for all of these numbers.
NOT_PRINTED: Final = -1


class DumpedFile(NamedTuple):
    """A line `Dumping <path>`, and what the path tells; None where it tells nothing, or there was no such line."""

    path: str | None = None
    kind: str = "log"
    base_offset: int | None = None
    topic: str | None = None
    partition: int | None = None
    log_directory: str = ""
    is_deleted: bool = False


class DumpedBatch(NamedTuple):
    """A batch as its line tells it, with what only its control record's line tells; -1: none, or not printed.

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
    compression_type: CompressionType
    timestamp_type: TimestampType | None
    is_valid: bool
    control_type: ControlType | None = None
    coordinator_epoch: int = NOT_PRINTED


class RecordLine(NamedTuple):
    """The metadata of a record line, and its free text with the line end: header keys, then contents.

    `fields` holds everything by lower-case label: generations before 2.2 have no batch lines in a deep dump.
    """

    offset: int
    timestamp: int
    timestamp_type: TimestampType | None
    key_size: int
    value_size: int
    has_header_keys: bool
    text: bytes
    fields: Mapping[bytes, bytes]


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


TIMESTAMP_TYPES: Final[Mapping[bytes, TimestampType | None]] = {
    b"createtime:": TimestampType.CREATE_TIME,
    b"logappendtime:": TimestampType.LOG_APPEND_TIME,
    b"notimestamptype:": None,
}
#: Upper case up to 2.8, lower case from 3.0.
_CODECS: Final = {
    name: codec for codec in CompressionType for name in (codec.name.encode(), codec.name.lower().encode())
}
_BOOLEANS: Final = {b"true": True, b"false": False}
CONTROL_TYPES: Final = {control_type.name.encode(): control_type for control_type in ControlType}

_NUMBERS: Final = (
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
_WORDS: Final = (b"istransactional:", b"iscontrol:", b"deletehorizonms:", b"compresscodec:", b"isvalid:")
#: Printed by later generations only (2.0.0, 2.0.1, 3.2), or not for message formats 0 and 1.
_OPTIONAL: Final = frozenset({b"count:", b"iscontrol:", b"deletehorizonms:"})
_LATER_THAN_FORMAT_1: Final = frozenset({*_NUMBERS[3:8], b"istransactional:"}) | _OPTIONAL
#: Tokens put behind those of a line, for labels that are not there.
_DEFAULTS: Final[list[bytes]] = [b"-1", b"false", b"OptionalLong.empty"]
_DEFAULT_PLACES: Final[Mapping[bytes, int]] = {b"istransactional:": 1, b"iscontrol:": 1, b"deletehorizonms:": 2}
#: The sizes of the numbers on disk. Packing is the quickest test of thirteen ranges at once.
_RANGES: Final = struct.Struct(">qqiiiqhiqqibI")
_SMALLEST_SIZES: Final = (26, 34, 61)


class _Layout(NamedTuple):
    numbers: itemgetter[Any]
    words: itemgetter[Any]
    timestamp_type: TimestampType | None
    magics: range
    has_is_control: bool
    ends_with_crc: bool


@lru_cache(maxsize=64)
def _layout(labels: tuple[bytes, ...]) -> _Layout | None:
    """Where the fields stand among the tokens of a line with these labels; None if it is no batch line."""
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
    missing = {*_NUMBERS, *_WORDS} - places.keys()
    if not missing <= (_LATER_THAN_FORMAT_1 if is_old else _OPTIONAL):
        return None
    for label in missing:
        places[label] = 2 * len(labels) + _DEFAULT_PLACES.get(label, 0)
    return _Layout(
        itemgetter(*(places[label] for label in _NUMBERS)),
        itemgetter(*(places[label] for label in _WORDS)),
        TIMESTAMP_TYPES[timestamp_label],
        range(2) if is_old else range(2, 3),
        b"iscontrol:" not in missing,
        labels[-1] == b"crc:",
    )


_KINDS: Final = frozenset(
    {"log", "snapshot", "txnindex", "index", "timeindex", "checkpoint", "deleted", "swap", "cleaned"}
)
_DIRECTORY: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(?P<state>future|delete|stray))?"
)


def read_file_line(line: bytes) -> DumpedFile | None:
    """The file in a line `Dumping <path>`, and what its path tells (formats.md 3.11); None for anything else."""
    if not line.startswith(b"Dumping "):
        return None
    path = line[len(b"Dumping ") :].decode(errors="replace").rstrip("\r\n")
    parent, _, name = path.replace("\\", "/").rpartition("/")
    log_directory, _, directory = parent.rpartition("/")
    number, _, kind = name.partition(".")
    if kind.rpartition(".")[2] not in _KINDS:
        return None
    base_offset = int(number) if number.isascii() and number.isdecimal() and len(number) == 20 else None
    found = _DIRECTORY.fullmatch(directory)
    if found is None:
        return DumpedFile(path, kind, base_offset)
    is_deleted = found["state"] in ("delete", "stray")
    return DumpedFile(path, kind, base_offset, found["topic"], int(found["partition"]), log_directory, is_deleted)


def read_batch_line(line: bytes) -> DumpedBatch | None:
    """The batch in a line `baseOffset: …`, or `offset: … size: …` of formats 0 and 1; None for anything else."""
    tokens = line.split()
    layout = _layout(tuple(tokens[0::2]))
    if layout is None or len(tokens) % 2:
        return None
    tokens += _DEFAULTS
    try:
        numbers = tuple(map(int, layout.numbers(tokens)))
        _RANGES.pack(*numbers)
        is_transactional, is_control, delete_horizon, codec, is_valid = layout.words(tokens)
        words = (
            _BOOLEANS[is_transactional],
            _BOOLEANS[is_control],
            -1 if delete_horizon == b"OptionalLong.empty" else _optional_long(delete_horizon),
            _CODECS[codec],
            layout.timestamp_type,
            _BOOLEANS[is_valid],
        )
    except (ValueError, KeyError, struct.error):
        return None
    base_offset, last_offset, count = numbers[:3]
    position, size, magic = numbers[8], numbers[10], numbers[11]
    if not 0 <= base_offset <= last_offset or count > last_offset - base_offset + 1 or position < 0:
        return None
    if magic not in layout.magics or size < _SMALLEST_SIZES[magic]:
        return None
    batch = DumpedBatch._make((*numbers, *words, None, NOT_PRINTED))
    if not layout.has_is_control and batch.is_transactional and batch.base_sequence < 0:
        # Before 2.0.1 a marker is known by this: transactional data always has a sequence (formats.md 1.7).
        batch = batch._replace(is_control=True)
    if layout.ends_with_crc and not line.endswith(b"\n"):
        # The text may have been cut inside the last number.
        batch = batch._replace(crc=NOT_PRINTED)
    return batch


_FIRST_CONTENTS: Final = (b" key: ", b" payload: ")


def read_record_line(line: bytes) -> RecordLine | None:
    """The record in a line `| offset: …`, or `offset: … keysize: …` before 2.2; None for anything else."""
    head, header_keys, text = line.partition(b" headerKeys: [")
    if not header_keys:
        ends = [end for end in (line.find(contents) for contents in _FIRST_CONTENTS) if end >= 0]
        end = min(ends, default=len(line))
        head, text = line[:end], line[end:]
        if not ends:
            text = b"\n" if line.endswith(b"\n") else b""
    tokens = head.removeprefix(b"| ").split()
    fields = dict(zip((label.lower() for label in tokens[0::2]), tokens[1::2], strict=False))
    timestamp_label = next((label for label in TIMESTAMP_TYPES if label in fields), None)
    if len(tokens) % 2 or timestamp_label is None or any(not label.endswith(b":") for label in fields):
        return None
    try:
        return RecordLine(
            offset=int(fields[b"offset:"]),
            timestamp=int(fields[timestamp_label]),
            timestamp_type=TIMESTAMP_TYPES[timestamp_label],
            key_size=int(fields[b"keysize:"]),
            value_size=int(fields[b"valuesize:"]),
            has_header_keys=bool(header_keys),
            text=text,
            fields=fields,
        )
    except (ValueError, KeyError):
        return None


def batch_of(record: RecordLine) -> DumpedBatch | None:
    """What a record line before 2.2 tells of its batch: there, a deep dump shows no batch lines."""
    fields, is_control = record.fields, record.text.startswith((b"] endTxnMarker: ", b"] controlType: "))
    try:
        magic, codec = int(fields[b"magic:"]), _CODECS[fields[b"compresscodec:"]]
        # The CRC of a record is that of its batch if the batch is the record.
        crc = int(fields[b"crc:"]) if magic < 2 and codec is CompressionType.NONE else NOT_PRINTED
        numbers = (
            *(record.offset, record.offset, 1, *[int(fields.get(b"sequence:", -1))] * 2),
            *(int(fields.get(b"producerid:", -1)), int(fields.get(b"producerepoch:", -1)), NOT_PRINTED),
            *(int(fields[b"position:"]), record.timestamp, NOT_PRINTED, magic),
        )
        _RANGES.pack(*numbers, max(crc, 0))
        is_transactional = _BOOLEANS[fields.get(b"istransactional:", b"false")]
        is_valid = _BOOLEANS[fields[b"isvalid:"]]
    except (KeyError, ValueError, struct.error):
        return None
    words = (is_transactional, is_control, NOT_PRINTED, codec, record.timestamp_type, is_valid)
    return DumpedBatch._make((*numbers, crc, *words, None, NOT_PRINTED))


def contents_of(record: RecordLine) -> Iterator[bytes]:
    """What may follow the header keys of a record, with the line end: the keys themselves may hold brackets, too."""
    if not record.has_header_keys:
        yield record.text
        return
    end = record.text.find(b"]")
    while end >= 0:
        yield record.text[end + 1 :]
        end = record.text.find(b"]", end + 1)


def contents_size(record: RecordLine, contents: bytes) -> int:
    """How many bytes key and payload take with their labels, as the sizes tell; -1 where no contents are printed."""
    key = len(b" key: ") + record.key_size if contents.startswith(b" key: ") and record.key_size >= 0 else 0
    if not key and not contents.startswith(b" payload: "):
        return -1
    return key + (len(b" payload: ") + record.value_size if record.value_size >= 0 else 0)


def read_snapshot_line(line: bytes) -> DumpedSnapshotEntry | None:
    """The producer in a line of a `.snapshot` dump; None for anything else."""
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
    """Kafka 1.0.0 and 1.0.1 print up to five batches of a producer; the last one is the newest."""
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
    """`OptionalLong[6]` and, up to 3.4, `Some(6)`; -1 for `OptionalLong.empty` and `None`. Raises ValueError."""
    if text in (b"OptionalLong.empty", b"None"):
        return -1
    for start, end in ((b"OptionalLong[", b"]"), (b"Some(", b")")):
        if text.startswith(start) and text.endswith(end):
            return int(text[len(start) : -len(end)])
    raise ValueError(text)
