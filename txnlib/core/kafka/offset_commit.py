"""A record of `__consumer_offsets`. Kafka: `OffsetCommitKey.json`, `OffsetCommitValue.json`.

Only offset commits are read. The topic also contains records with higher key versions (2: the members of a group; 3 and above:
records of newer kinds of groups).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.wire import CorruptRecordError, Field, Message, optional, read_int16

#: Both versions have the same fields; brokers write 1.
KEY: Final = Message(
    "0-1", "none", Field("group", "string"), Field("topic", "string"), Field("partition", "int32"), end="the partition"
)
#: Tagged fields (a topic id, or later ones) are skipped by their size.
VALUE: Final = Message(
    "0-4",
    "4+",
    Field("offset", "int64"),
    Field("leaderEpoch", "int32", "3+"),
    Field("metadata", "raw string"),
    Field("commitTimestamp", "int64"),
    Field("expireTimestamp", "int64", "1"),
)


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
    return OffsetCommitKey(*KEY.read(version, key, position).values()) if version in KEY.versions else None


def read_offset_commit_value(value: bytes) -> OffsetCommit:
    """The commit in a value of version 0 to 4. Raises CorruptRecordError, also for unknown versions."""
    version, position = read_int16(value, 0)
    if version not in VALUE.versions:
        raise CorruptRecordError(0, f"offset commit value of version {version} is not known")
    fields = VALUE.read(version, value, position)
    return OffsetCommit(
        version=version,
        offset=optional(fields["offset"]),
        metadata=fields["metadata"],
        commit_timestamp_ms=optional(fields["commitTimestamp"]),
        leader_epoch=optional(fields.get("leaderEpoch", -1)),
        expire_timestamp_ms=optional(fields.get("expireTimestamp", -1)),
    )
