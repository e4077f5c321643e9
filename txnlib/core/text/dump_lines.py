"""Single lines of `kafka-dump-log.sh`, from 2.8 on: a file, a batch, a record or a producer. Fields are found by their
labels.

A line alone does not show whether it is genuine, because payloads can imitate all of them: `dump_reader` decides.
White space around a line is of no tool, and is taken off before.
Kafka: `DumpLogSegments`; docs/rules/formats.md#lines-of-the-dump-tool.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.core.kafka.record_batch import CompressionType, ControlType, TimestampType

#: The value of a field that a version of the tool does not print. For all of these numbers, this is also Kafka's
#: "none".
NOT_PRINTED: Final = -1
#: Far above the size of a line without free text. Longer lines are not split into words, which would take much memory.
LONGEST_METADATA: Final = 1 << 14
#: Above any real offset or position, and small enough to add a batch to it.
FAR: Final = 1 << 62
#: Lines of tools before 2.8, which are not read. 2.8 changed these lines, 2.2 those of batches, and 1.0.2 those of
#: producers.
_OLD: Final = re.compile(
    rb"(baseO|o)ffset: .* isvalid: (true|false) (key)?size: |\| offset: \S+ \S+ \S+ keysize: "
    rb"|producerId: (\S+ producerEpoch: \S+ lastSequence: |.* cachedMetadata: )"
)


def is_of_old_tool(line: bytes) -> bool:
    """Whether a tool before 2.8 printed a line in a form that later tools do not print."""
    return _OLD.match(line[:LONGEST_METADATA]) is not None


# ---- Files


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
    def folder(self) -> tuple[str, str | None, int | None]:
        """The log directory, topic and partition."""
        return self.log_directory, self.topic, self.partition

    @property
    def is_index(self) -> bool:
        """Whether the file is an index of a segment."""
        return not self.has_batches and self.kind != "snapshot"

    @property
    def has_batches(self) -> bool:
        """Whether the file consists of batches: a log, or a snapshot of `__cluster_metadata`."""
        return self.kind in ("log", "checkpoint")


_KINDS: Final = frozenset(
    {"log", "snapshot", "txnindex", "index", "timeindex", "checkpoint", "deleted", "swap", "cleaned"}
)
_METADATA_SNAPSHOT: Final = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")
_DIRECTORY: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(?P<state>future|delete|stray))?"
)


#: The key of a ticket, which a folder of pasted text may be named after.
_TICKET: Final = re.compile(r"[A-Z][A-Z0-9]+-[0-9]+")


def is_ticket(folder: str) -> bool:
    """Whether a folder may be named after a ticket instead of a partition."""
    return _TICKET.fullmatch(folder) is not None


def read_file_line(line: bytes) -> DumpedFile | None:
    """The file in a line `Dumping <path>`, and the fields in its path; None for any other line."""
    if not line.startswith(b"Dumping ") or len(line) > LONGEST_METADATA:
        return None
    path = line[len(b"Dumping ") :].decode(errors="replace").strip()
    parent, _, name = path.replace("\\", "/").rpartition("/")
    log_directory, _, directory = parent.rpartition("/")
    number, _, kind = name.partition(".")
    if kind.rpartition(".")[2] not in _KINDS:
        return None
    is_named_by_offset = len(number) == 20 and number.isascii() and number.isdecimal() and int(number) < FAR
    base_offset = int(number) if is_named_by_offset else None
    match = _DIRECTORY.fullmatch(directory)
    if match is None:
        return DumpedFile(path, kind, base_offset)
    is_deleted = match["state"] in ("delete", "stray")
    snapshot = _METADATA_SNAPSHOT.fullmatch(name)
    snapshot_offset = None if snapshot is None or int(snapshot[1]) >= FAR else int(snapshot[1])
    place = match["topic"], int(match["partition"])
    return DumpedFile(path, kind, base_offset, *place, log_directory, is_deleted, snapshot_offset)


# ---- Batches


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
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size

    @property
    def has_known_start(self) -> bool:
        """Whether `base_offset` is the first offset: for a compressed set of formats 0 and 1 only the last one is
        printed."""
        return self.magic >= 2 or self.compression_type == CompressionType.NONE

    @property
    def is_marker(self) -> bool:
        """Whether it is a control batch of a producer."""
        return self.is_control and self.producer_id >= 0 and self.records_count != 0

    @property
    def is_believable(self) -> bool:
        """Whether offsets, sequences, count and position can belong to one batch."""
        delta = self.last_offset - self.base_offset
        last_sequence = (self.base_sequence + delta) & MAX_SEQUENCE
        has_right_sequence = self.base_sequence < 0 or (not self.is_control and self.last_sequence == last_sequence)
        is_in_place = self.base_offset >= 0 and self.last_offset < FAR and 0 <= self.position < FAR
        return has_right_sequence and is_in_place and delta >= 0 and self.records_count <= delta + 1


#: Label of a timestamp -> its type.
TIMESTAMP_TYPES: Final[Mapping[bytes, int]] = {
    b"CreateTime:": int(TimestampType.CREATE_TIME),
    b"LogAppendTime:": int(TimestampType.LOG_APPEND_TIME),
    b"NoTimestampType:": NOT_PRINTED,
}
#: Upper case in 2.8, lower case from 3.0 on.
CODECS: Final = {
    name: int(codec) for codec in CompressionType for name in (codec.name.encode(), codec.name.lower().encode())
}
BOOLEANS: Final = {b"true": True, b"false": False}

NUMBERS: Final = (
    b"baseOffset:",
    b"lastOffset:",
    b"count:",
    b"baseSequence:",
    b"lastSequence:",
    b"producerId:",
    b"producerEpoch:",
    b"partitionLeaderEpoch:",
    b"position:",
    b"timestamp",
    b"size:",
    b"magic:",
    b"crc:",
)
WORDS: Final = (b"isTransactional:", b"isControl:", b"deleteHorizonMs:", b"compresscodec:", b"isvalid:")
#: Printed from 3.2 on, and never for message formats 0 and 1.
_OPTIONAL: Final = frozenset({b"deleteHorizonMs:"})
_LATER_THAN_FORMAT_1: Final = frozenset({*NUMBERS[2:8], *WORDS[:3]})
_KNOWN: Final = (*NUMBERS[:9], *WORDS, *TIMESTAMP_TYPES)
#: Tokens to append to those of a line as values of missing labels; and the index of a label's token, if not the first.
_DEFAULTS: Final = [b"-1", b"false", b"OptionalLong.empty"]
_DEFAULT_PLACES: Final[Mapping[bytes, int]] = {b"isTransactional:": 1, b"isControl:": 1, b"deleteHorizonMs:": 2}
#: The types of the numbers on disk. Packing them is the fastest check of thirteen ranges at once.
_RANGES: Final = struct.Struct(">qqiiiqhiqqibI")
#: Size in bytes of the smallest message or batch of formats 0, 1 and 2.
SMALLEST_SIZES: Final = (26, 34, 61)


class _LineLayout(NamedTuple):
    numbers: itemgetter[Any]
    words: itemgetter[Any]
    timestamp_type: int
    magics: range
    defaults: list[bytes]


@lru_cache(maxsize=64)
def _layout(labels: tuple[bytes, ...]) -> _LineLayout | None:
    """The indexes of the fields among the tokens of a line with these labels; None if it is not a batch line."""
    places = {label: 2 * index + 1 for index, label in enumerate(labels)}
    timestamp_labels = places.keys() & TIMESTAMP_TYPES.keys()
    if len(places) < len(labels) or len(timestamp_labels) != 1 or any(not label.endswith(b":") for label in labels):
        return None
    # Another build may print further labels. But a label that ends like a known one comes from two pieces of lines
    # without a gap.
    if any(label.endswith(_KNOWN) and label not in _KNOWN for label in places):
        return None
    (timestamp_label,) = timestamp_labels
    places[b"timestamp"] = places[timestamp_label]
    is_old = b"offset:" in places and b"baseOffset:" not in places
    if is_old:
        places[b"baseOffset:"] = places[b"lastOffset:"] = places[b"offset:"]
    missing = {*NUMBERS, *WORDS} - places.keys()
    # Before 2.2, `isvalid` is before the size.
    if not missing <= (_LATER_THAN_FORMAT_1 if is_old else _OPTIONAL) or places[b"isvalid:"] < places[b"size:"]:
        return None
    places |= {label: 2 * len(labels) + _DEFAULT_PLACES.get(label, 0) for label in missing}
    return _LineLayout(
        numbers=itemgetter(*(places[label] for label in NUMBERS)),
        words=itemgetter(*(places[label] for label in WORDS)),
        timestamp_type=TIMESTAMP_TYPES[timestamp_label],
        magics=range(2) if is_old else range(2, 3),
        defaults=_DEFAULTS if missing else [],
    )


def read_batch_line(line: bytes) -> DumpedBatch | None:
    """The batch in a line `baseOffset: …`, or `offset: … size: …` of formats 0 and 1; None for any other line."""
    if len(line) > LONGEST_METADATA:
        return None
    tokens = line.split()
    layout = _layout(tuple(tokens[0::2]))
    if layout is None or len(tokens) % 2:
        return None
    tokens += layout.defaults
    is_transactional, is_control, delete_horizon, codec, is_valid = layout.words(tokens)
    try:
        numbers = tuple(map(int, layout.numbers(tokens)))
        _RANGES.pack(*numbers)
        horizon = NOT_PRINTED if delete_horizon == b"OptionalLong.empty" else _optional_long(delete_horizon)
        words = (
            BOOLEANS[is_transactional],
            BOOLEANS[is_control],
            horizon,
            CODECS[codec],
            layout.timestamp_type,
            BOOLEANS[is_valid],
        )
        batch = DumpedBatch._make((*numbers, *words, NOT_PRINTED, NOT_PRINTED))
    except (ValueError, KeyError, struct.error):
        return None
    is_sound = batch.is_believable and batch.magic in layout.magics and batch.size >= SMALLEST_SIZES[batch.magic]
    return batch if is_sound else None


# ---- Records


class RecordLine(NamedTuple):
    """The metadata of a record line, and its free text with the line end: header keys, then contents."""

    offset: int
    timestamp: int
    timestamp_type: int
    key_size: int
    value_size: int
    has_header_keys: bool
    text: bytes

    @property
    def is_alone(self) -> bool:
        """Whether its text has no header keys, so that it is nothing but contents."""
        return not self.has_header_keys or self.text.startswith(b"]")


KEY: Final = b" key: "
PAYLOAD: Final = b" payload: "
#: A header key may contain brackets: the maximum number to try as the end of the keys.
_BRACKETS: Final = 16
_TIMESTAMPS: Final = range(-(1 << 63), 1 << 63)
_END_TXN_MARKER: Final = b" endTxnMarker: "
#: KRaft's control records, which do not concern producers.
_OTHER_CONTROL: Final = (b" controlType: ", b" LeaderChange", b" SnapshotHeader", b" SnapshotFooter", b" KRaftV")
_CONTROL_TYPES: Final = {control_type.name.encode(): int(control_type) for control_type in ControlType}


def offset_of(line: bytes) -> int:
    """The offset in a line `| offset: …`; NOT_PRINTED if there is none."""
    try:
        return int(line[len(b"| offset: ") : line.find(b" ", len(b"| offset: "))])
    except ValueError:
        return NOT_PRINTED


def read_record_line(line: bytes) -> RecordLine | None:
    """The record in a line `| offset: …`; None for any other line."""
    head, header_keys, text = line.partition(b" headerKeys: [")
    if not header_keys:
        # Formats 0 and 1 have no headers.
        ends = [end for end in (line.find(KEY), line.find(PAYLOAD)) if end >= 0]
        end = min(ends, default=len(line.rstrip(b"\r\n")))
        head, text = line[:end], line[end:]
    if len(head) > LONGEST_METADATA or not head.startswith(b"| offset: "):
        return None
    tokens = head.split()
    labels = tokens[1::2]
    fields = dict(zip(labels, tokens[2::2], strict=False))
    timestamp_label = next((label for label in TIMESTAMP_TYPES if label in fields), b"")
    if not len(tokens) % 2 or any(not label.endswith(b":") for label in fields):
        return None
    # For formats 0 and 1, 2.8 prints it twice.
    if len(fields) < len(labels) and any(labels.count(label) > 1 for label in fields if label != b"crc:"):
        return None
    try:
        timestamp = int(fields[timestamp_label])
        if timestamp not in _TIMESTAMPS:
            return None
        sizes = int(fields[b"keySize:"]), int(fields[b"valueSize:"])
        return RecordLine(
            int(fields[b"offset:"]), timestamp, TIMESTAMP_TYPES[timestamp_label], *sizes, bool(header_keys), text
        )
    except (ValueError, KeyError):
        return None


def contents_of(record: RecordLine) -> Iterator[bytes]:
    """The possible contents of a record after its header keys, with the line end. The keys may contain brackets,
    too."""
    if not record.has_header_keys:
        yield record.text
        return
    end, tries = record.text.find(b"]"), 1 if record.is_alone else _BRACKETS
    while end >= 0 and tries:
        yield record.text[end + 1 :]
        end, tries = record.text.find(b"]", end + 1), tries - 1


def contents_size(record: RecordLine, contents: bytes) -> int:
    """The size of key and payload with their labels, in bytes, from the printed sizes; -1 if no contents are
    printed."""
    key = len(KEY) + record.key_size if contents.startswith(KEY) and record.key_size >= 0 else 0
    if not key and not contents.startswith(PAYLOAD):
        return NOT_PRINTED
    return key + (len(PAYLOAD) + record.value_size if record.value_size >= 0 else 0)


def read_marker(contents: bytes) -> tuple[int, int] | None:
    """Control type and coordinator epoch, -1 if they are not printed; None for a broken line."""
    if not contents.strip() or contents.startswith(_OTHER_CONTROL):
        return NOT_PRINTED, NOT_PRINTED
    if not contents.startswith(_END_TXN_MARKER):
        return None
    _label, *values = contents.split()
    control_type = _CONTROL_TYPES.get(values[0]) if values else None
    if control_type is None or len(values) > 3:
        return None
    # At the end of the text, the last number may be truncated.
    is_whole = len(values) == 3 and contents.endswith(b"\n") and values[2].isdigit() and len(values[2]) < 10
    return control_type, int(values[2]) if is_whole else NOT_PRINTED


# ---- Producers


class DumpedSnapshotEntry(NamedTuple):
    """A producer in a snapshot file; -1: none, or not printed."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


_SOME_LONG: Final = re.compile(rb"(OptionalLong\[|Some\()(?P<number>\d{1,19})[\])]")
_SNAPSHOT_RANGES: Final = struct.Struct(">qhiqiqiq")


def read_snapshot_line(line: bytes) -> DumpedSnapshotEntry | None:
    """The producer in a line of a `.snapshot` dump; None for any other line."""
    tokens = line.split() if len(line) <= LONGEST_METADATA else []
    fields = dict(zip(tokens[0::2], tokens[1::2], strict=False))
    if len(tokens) % 2 or is_of_old_tool(line):
        return None
    try:
        entry = DumpedSnapshotEntry(
            producer_id=int(fields[b"producerId:"]),
            producer_epoch=int(fields[b"producerEpoch:"]),
            last_sequence=int(fields.get(b"lastSequence:", -1)),
            last_offset=int(fields.get(b"lastOffset:", -1)),
            offset_delta=int(fields.get(b"offsetDelta:", -1)),
            last_timestamp_ms=int(fields.get(b"lastTimestamp:", fields.get(b"timestamp:", -1))),
            coordinator_epoch=int(fields[b"coordinatorEpoch:"]),
            current_txn_first_offset=_optional_long(fields[b"currentTxnFirstOffset:"]),
        )
        _SNAPSHOT_RANGES.pack(*entry)
    except (ValueError, KeyError, struct.error):
        return None
    return entry


def _optional_long(text: bytes) -> int:
    """`OptionalLong[6]` and, up to 3.4, `Some(6)`; -1 for `OptionalLong.empty` and `None`. Raises ValueError for any
    other text."""
    if text in (b"OptionalLong.empty", b"None"):
        return NOT_PRINTED
    match = _SOME_LONG.fullmatch(text)
    if match is None or int(match["number"]) >= FAR:
        raise ValueError(text)
    return int(match["number"])
