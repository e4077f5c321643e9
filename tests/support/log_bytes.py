"""Batches, coordinator records and snapshots as bytes, with every field.

Shares no code with the readers, and reproduces bit for bit what real brokers wrote (test_golden_vectors.py).
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tests.support.crc32c import crc32c
from tests.support.log_notation import TS
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.record_batch import Record, RecordBatch, TimestampType, iter_records
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey, TransactionLogEntry

#: offset -> (key, value) of the record's headers.
Headers = Mapping[int, Sequence[tuple[str, bytes | None]]]
NO_HEADERS: Headers = {}


def on_disk(value: int | None) -> int:
    """Kafka writes -1 for a value that is missing."""
    return -1 if value is None else value


def to_bytes(batch: RecordBatch) -> bytes:
    """A batch of the notation as a broker stores it; keys and values do not matter."""
    envelope: dict[str, Any] = {
        "leader_epoch": on_disk(batch.partition_leader_epoch),
        "timestamp_type": batch.timestamp_type,
    }
    if batch.marker is not None:
        assert batch.marker.control_type is not None
        return encode_marker(
            on_disk(batch.producer_id), on_disk(batch.producer_epoch), batch.marker.control_type,
            on_disk(batch.marker.coordinator_epoch), at=batch.base_offset, ts=on_disk(batch.max_timestamp), **envelope,
        )  # fmt: skip
    offsets = range(batch.base_offset, batch.base_offset + batch.records_count)
    return encode_batch(
        [Record(offset, on_disk(batch.max_timestamp), b"key", b"value") for offset in offsets],
        base_offset=batch.base_offset, last_offset=batch.last_offset, max_timestamp=on_disk(batch.max_timestamp),
        producer_id=on_disk(batch.producer_id),
        producer_epoch=on_disk(batch.producer_epoch), base_sequence=on_disk(batch.base_sequence),
        is_transactional=batch.is_transactional, is_control=batch.is_control, **envelope,
    )  # fmt: skip


def segment(batches: Iterable[RecordBatch]) -> bytes:
    return b"".join(map(to_bytes, batches))


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    timestamp_type: int = TimestampType.CREATE_TIME,
    leader_epoch: int = 0,
    delete_horizon: int | None = None,
    codec: int = 0,
    body: bytes | None = None,
    headers: Headers = NO_HEADERS,
    attributes: int | None = None,
) -> bytes:
    """A batch of magic 2; without records the bare header that compaction leaves (give both offsets and the timestamp).

    `codec` only sets the attribute: pass the compressed records as `body`. `attributes` overrules all flags.
    `headers` go by offset.
    """
    first = records[0] if records else Record(0, -1, None, None)
    base = first.offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    since = first.timestamp if base_timestamp is None else base_timestamp
    if delete_horizon is not None:
        since = delete_horizon
    newest = max(r.timestamp for r in records) if max_timestamp is None else max_timestamp
    flags = codec | timestamp_type << 3 | is_transactional << 4 | is_control << 5 | (delete_horizon is not None) << 6
    if body is None:
        body = encode_records(records, base, since, headers)
    covered = struct.pack(
        ">hiqqqhii", flags if attributes is None else attributes, last - base, since, newest, producer_id,
        producer_epoch, base_sequence, len(records),
    )  # fmt: skip
    covered += body
    return struct.pack(">qiibI", base, 9 + len(covered), leader_epoch, 2, crc32c(covered)) + covered


def encode_marker(
    pid: int,
    epoch: int,
    control_type: int,
    coordinator_epoch: int,
    *,
    at: int = 0,
    ts: int = TS,
    key_version: int = 0,
    value_version: int = 0,
    more_key: bytes = b"",
    more_value: bytes = b"",
    **envelope: Any,
) -> bytes:
    """A control batch with one record; `more_...` is what a later version may append."""
    key = struct.pack(">hh", key_version, control_type) + more_key
    value = struct.pack(">hi", value_version, coordinator_epoch) + more_value
    return encode_batch(
        [Record(at, ts, key, value)],
        producer_id=pid,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
        **envelope,
    )


def encode_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int, headers: Headers = NO_HEADERS
) -> bytes:
    encoded = b""
    for record in records:
        content = b"\0" + varint(record.timestamp - base_timestamp) + varint(record.offset - base_offset)
        content += _sized(record.key) + _sized(record.value) + _headers(headers.get(record.offset, ()))
        encoded += varint(len(content)) + content
    return encoded


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    return varint(len(headers)) + b"".join(_sized(key.encode()) + _sized(value) for key, value in headers)


def _sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def varint(value: int) -> bytes:
    """Zig-zag, for int32 and int64 alike."""
    return uvarint(value << 1 if value >= 0 else -2 * value - 1)


def uvarint(value: int) -> bytes:
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def encode_legacy(
    offset: int, key: bytes | None, value: bytes | None, *, magic: int = 0, ts: int = TS, attributes: int = 0
) -> bytes:
    """An entry of magic 0 or 1; a compressed wrapper has the codec in `attributes` and the inner entries as `value`."""
    covered = struct.pack(">bb", magic, attributes) + (struct.pack(">q", ts) if magic else b"")
    for content in (key, value):
        covered += struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content
    return struct.pack(">qiI", offset, 4 + len(covered), zlib.crc32(covered)) + covered


def encode_transaction_log_batch(
    written: Iterable[TransactionLogEntry | str], *, at: int = 0, ts: int = TS, **envelope: Any
) -> bytes:
    """Records of `__transaction_state` in one batch; a bare id stands for its tombstone."""
    records = [Record(at + index, ts, *_key_and_value(entry)) for index, entry in enumerate(written)]
    return encode_batch(records, **envelope)


def _key_and_value(entry: TransactionLogEntry | str) -> tuple[bytes, bytes | None]:
    if isinstance(entry, str):
        return encode_transaction_log_key(entry), None
    return encode_transaction_log_key(entry.transactional_id), encode_transaction_log_value(entry)


def encode_transaction_log_key(transactional_id: str, version: int = 0) -> bytes:
    return struct.pack(">h", version) + _string(transactional_id)


NO_TAGS: Mapping[int, bytes] = {}

#: tag -> (field, layout, default, which is not written).
TAGS = {
    0: ("previous_producer_id", ">q", None),
    1: ("next_producer_id", ">q", None),
    2: ("client_transaction_version", ">h", 0),
    3: ("next_producer_epoch", ">h", None),
    4: ("last_producer_epoch", ">h", None),
}


def encode_transaction_log_value(
    entry: TransactionLogEntry, more_tags: Mapping[int, bytes] = NO_TAGS, topic_tags: Mapping[int, bytes] = NO_TAGS
) -> bytes:
    """A value of the entry's version (None: 0); `more_tags` win over its own, every topic gets `topic_tags`."""
    version = entry.version or 0
    encoded = struct.pack(
        ">hqhib", version, on_disk(entry.producer_id), on_disk(entry.producer_epoch),
        on_disk(entry.transaction_timeout_ms), entry.transaction_state,
    )  # fmt: skip
    encoded += _partitions_v1(entry, topic_tags) if version else _partitions_v0(entry)
    encoded += struct.pack(">qq", on_disk(entry.last_update_timestamp_ms), on_disk(entry.start_timestamp_ms))
    if not version:
        return encoded
    given = {tag: (getattr(entry, name), layout, default) for tag, (name, layout, default) in TAGS.items()}
    own = {
        tag: struct.pack(layout, value)
        for tag, (value, layout, default) in given.items()
        if value not in (None, default)
    }
    return encoded + tag_section(own | dict(more_tags))


def tag_section(tags: Mapping[int, bytes]) -> bytes:
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(tags[tag])) + tags[tag] for tag in sorted(tags))


def encode_offset_commit_key(key: OffsetCommitKey, version: int = 1) -> bytes:
    return struct.pack(">h", version) + _string(key.group_id) + _string(key.topic) + struct.pack(">i", key.partition)


def encode_offset_commit_value(commit: OffsetCommit, tags: Mapping[int, bytes] = NO_TAGS) -> bytes:
    """A value of the commit's version; only version 4 has tags, and only 3 and 4 a leader epoch, only 1 an expiry."""
    version, size = commit.version, len(commit.metadata)
    encoded = struct.pack(">hq", version, on_disk(commit.offset))
    if version >= 3:
        encoded += struct.pack(">i", on_disk(commit.leader_epoch))
    encoded += (uvarint(size + 1) if version >= 4 else struct.pack(">h", size)) + commit.metadata
    encoded += struct.pack(">q", on_disk(commit.commit_timestamp_ms))
    if version == 1:
        encoded += struct.pack(">q", on_disk(commit.expire_timestamp_ms))
    return encoded + (tag_section(tags) if version >= 4 else b"")


def _topics(entry: TransactionLogEntry) -> list[tuple[str, list[int]]]:
    by_topic = groupby(entry.transaction_partitions or (), key=lambda tp: tp.topic)
    return [(topic, [tp.partition for tp in group]) for topic, group in by_topic]


def _partitions_v0(entry: TransactionLogEntry) -> bytes:
    if entry.transaction_partitions is None:
        return struct.pack(">i", -1)
    topics = [_string(name) + struct.pack(f">i{len(ids)}i", len(ids), *ids) for name, ids in _topics(entry)]
    return struct.pack(">i", len(topics)) + b"".join(topics)


def _partitions_v1(entry: TransactionLogEntry, topic_tags: Mapping[int, bytes]) -> bytes:
    if entry.transaction_partitions is None:
        return uvarint(0)
    tags = tag_section(topic_tags)
    topics = [
        uvarint(len(name.encode()) + 1)
        + name.encode()
        + uvarint(len(ids) + 1)
        + struct.pack(f">{len(ids)}i", *ids)
        + tags
        for name, ids in _topics(entry)
    ]
    return uvarint(len(topics) + 1) + b"".join(topics)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def encode_snapshot(producers: Mapping[int, ProducerState], version: int = 1) -> bytes:
    """A `.snapshot` file."""
    names = ("producer_epoch", "last_sequence", "last_offset", "offset_delta", "last_timestamp", "coordinator_epoch")
    names = (*names, "current_txn_first_offset")
    covered = struct.pack(">i", len(producers))
    for producer_id, state in producers.items():
        covered += struct.pack(">qhiqiqiq", producer_id, *[on_disk(getattr(state, name)) for name in names])
    return struct.pack(">hI", version, crc32c(covered)) + covered


def encode_transaction_index(aborted: Iterable[tuple[int, int, int, int]]) -> bytes:
    """A `.txnindex` file of (producer id, first offset, last offset, last stable offset)."""
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in aborted)


def read_records(body: bytes, *layout: int, **stamped: int) -> list[Record]:
    """The records of an uncompressed batch body. `layout`, `stamped`: as for `iter_records`."""
    return list(iter_records(body, *layout, **stamped))
