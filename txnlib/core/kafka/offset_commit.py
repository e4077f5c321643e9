"""A record of `__consumer_offsets`. Kafka: `OffsetCommitKey.json`, `OffsetCommitValue.json`.

Only offset commits are read. The topic also contains records with higher key versions (2: the members of a group; 3 and above:
records of newer kinds of groups).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.wire import (
    CorruptRecordError,
    optional,
    read_bytes,
    read_int16,
    read_int32,
    read_int64,
    read_string,
    read_tagged_fields,
    read_unsigned_varint,
)

#: Both versions have the same fields; brokers write 1.
KEY_VERSIONS: Final = frozenset({0, 1})


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """The key of a commit: a group and a partition."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """The value of one commit. `metadata` belongs to the client and is bytes, because it need not be text."""

    version: int
    offset: int | None
    metadata: bytes
    commit_timestamp_ms: int | None
    leader_epoch: int | None = None
    expire_timestamp_ms: int | None = None


def read_offset_commit_key(key: bytes) -> OffsetCommitKey | None:
    """The key of a commit; None for records of another kind. Raises CorruptRecordError for bad bytes."""
    version, position = read_int16(key, 0)
    if version not in KEY_VERSIONS:
        return None
    group_id, position = read_string(key, position)
    topic, position = read_string(key, position)
    partition, end = read_int32(key, position)
    if end != len(key):
        raise CorruptRecordError(end, "bytes are left after the partition")
    return OffsetCommitKey(group_id, topic, partition)


def read_offset_commit_value(value: bytes) -> OffsetCommit:
    """The commit in a value of version 0 to 4. Tagged fields (a topic id, or later ones) are skipped by their size.

    Raises CorruptRecordError, also for unknown versions.
    """
    version, position = read_int16(value, 0)
    if version not in _LAYOUTS:
        raise CorruptRecordError(0, f"offset commit value of version {version} is not known")
    layout = _LAYOUTS[version]
    offset, position = read_int64(value, position)
    leader_epoch, expire_ms = -1, -1
    if layout.has_leader_epoch:
        leader_epoch, position = read_int32(value, position)
    metadata, position = layout.read_metadata(value, position)
    commit_ms, position = read_int64(value, position)
    if layout.has_expire_timestamp:
        expire_ms, position = read_int64(value, position)
    if layout.has_tags:
        _tagged, position = read_tagged_fields(value, position)
    if position != len(value):
        raise CorruptRecordError(position, "bytes are left after the value")
    return OffsetCommit(
        version=version,
        offset=optional(offset),
        metadata=metadata,
        commit_timestamp_ms=optional(commit_ms),
        leader_epoch=optional(leader_epoch),
        expire_timestamp_ms=optional(expire_ms),
    )


def _read_metadata(value: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_int16(value, position)
    return read_bytes(value, position, length)


def _read_compact_metadata(value: bytes, position: int) -> tuple[bytes, int]:
    length_plus_one, position = read_unsigned_varint(value, position)
    return read_bytes(value, position, length_plus_one - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ValueLayout:
    """The layout of a version."""

    has_leader_epoch: bool = False
    has_expire_timestamp: bool = False
    has_tags: bool = False
    read_metadata: Callable[[bytes, int], tuple[bytes, int]] = _read_metadata


_LAYOUTS: Final[Mapping[int, _ValueLayout]] = {
    0: _ValueLayout(),
    1: _ValueLayout(has_expire_timestamp=True),
    2: _ValueLayout(),
    3: _ValueLayout(has_leader_epoch=True),
    4: _ValueLayout(has_leader_epoch=True, has_tags=True, read_metadata=_read_compact_metadata),
}
