"""A record of `__transaction_state`. Kafka: `TransactionLogKey.json`, `TransactionLogValue.json`.

The log contains the coordinator's decisions, not what happened on partitions: a Prepare record is the decision, and a Complete
record means that every partition acknowledged its marker. The coordinator epoch is not in the value: it is the leader epoch in the
header of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.kafka.wire import (
    CorruptRecordError,
    optional,
    read_compact_string,
    read_int8,
    read_int16,
    read_int32,
    read_int64,
    read_string,
    read_tagged_fields,
    read_unsigned_varint,
)

KEY_VERSION: Final = 0
#: The fields of a value that contain a producer id of the transactional id (the last two since 4.3, KIP-939).
PRODUCER_ID_FIELDS: Final = ("producer_id", "previous_producer_id", "next_producer_id")


class UnknownVersionError(Exception):
    """An unknown key or value version. Kafka skips such keys and stops at such values."""

    def __init__(self, field_name: str, version: int) -> None:
        super().__init__(field_name, version)
        self.field_name, self.version = field_name, version

    def __str__(self) -> str:
        return f"{self.field_name} version {self.version} of a transaction log record is not known"


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogEntry:
    """The value of one record. None: the record has no such value, or a text dump does not show it.

    `transaction_partitions` is None for Empty (null on disk), and the empty tuple for Complete. `version` is None for a text dump.
    """

    transactional_id: str
    producer_id: int | None
    producer_epoch: int | None
    #: In ms. -1 is a timeout that never passes (KIP-939).
    transaction_timeout_ms: int | None
    transaction_state: TransactionState
    transaction_partitions: tuple[TopicPartition, ...] | None
    last_update_timestamp_ms: int | None
    start_timestamp_ms: int | None
    version: int | None = None
    previous_producer_id: int | None = None
    next_producer_id: int | None = None
    client_transaction_version: int | None = 0
    next_producer_epoch: int | None = None
    last_producer_epoch: int | None = None
    unknown_tags: tuple[int, ...] = field(default=())

    @property
    def is_two_phase_commit(self) -> bool:
        return self.transaction_timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS

    @property
    def producer_ids(self) -> frozenset[int]:
        """All producer ids of the transactional id in the record."""
        named = (getattr(self, name) for name in PRODUCER_ID_FIELDS)
        return frozenset(producer_id for producer_id in named if producer_id is not None)


def read_transaction_log_key(key: bytes) -> str:
    """The transactional id. Raises UnknownVersionError for other record types, CorruptRecordError for bad bytes."""
    version, position = read_int16(key, 0)
    if version != KEY_VERSION:
        raise UnknownVersionError("key", version)
    transactional_id, end = read_string(key, position)
    if end != len(key):
        raise CorruptRecordError(end, "bytes are left after the transactional id")
    return transactional_id


def read_transaction_log_value(transactional_id: str, value: bytes) -> TransactionLogEntry:
    """The entry in a value of version 0 or 1. Unknown tags are skipped by their size, and their numbers are kept.

    Raises UnknownVersionError, or CorruptRecordError (also for unknown state codes).
    """
    version, position = read_int16(value, 0)
    if version not in _PARTITION_READERS:
        raise UnknownVersionError("value", version)
    producer_id, position = read_int64(value, position)
    producer_epoch, position = read_int16(value, position)
    timeout_ms, position = read_int32(value, position)
    code, position = read_int8(value, position)
    if code not in TransactionState.__members__.values():
        raise CorruptRecordError(position - 1, f"transaction status {code} is not known")
    partitions, position = _PARTITION_READERS[version](value, position)
    last_update_ms, position = read_int64(value, position)
    start_ms, position = read_int64(value, position)
    tags: dict[str, int | None] = {}
    unknown: tuple[int, ...] = ()
    if version >= 1:
        tags, unknown, position = _read_tags(value, position)
    if position != len(value):
        raise CorruptRecordError(position, "bytes are left after the value")
    return TransactionLogEntry(
        transactional_id=transactional_id,
        producer_id=optional(producer_id),
        producer_epoch=optional(producer_epoch),
        transaction_timeout_ms=timeout_ms,
        transaction_state=TransactionState(code),
        transaction_partitions=partitions,
        last_update_timestamp_ms=optional(last_update_ms),
        start_timestamp_ms=optional(start_ms),
        version=version,
        unknown_tags=unknown,
        **tags,
    )


Partitions = tuple[TopicPartition, ...] | None


def _read_partitions_v0(value: bytes, position: int) -> tuple[Partitions, int]:
    topics, position = read_int32(value, position)
    if topics < 0:
        return None, position
    partitions: list[TopicPartition] = []
    for _ in range(topics):
        topic, position = read_string(value, position)
        count, position = read_int32(value, position)
        for _ in range(_not_null(count, position)):
            partition, position = read_int32(value, position)
            partitions.append(TopicPartition(topic, partition))
    return tuple(partitions), position


def _read_partitions_v1(value: bytes, position: int) -> tuple[Partitions, int]:
    topics_plus_one, position = read_unsigned_varint(value, position)
    if topics_plus_one == 0:
        return None, position
    partitions: list[TopicPartition] = []
    for _ in range(topics_plus_one - 1):
        topic, position = read_compact_string(value, position)
        count_plus_one, position = read_unsigned_varint(value, position)
        for _ in range(_not_null(count_plus_one - 1, position)):
            partition, position = read_int32(value, position)
            partitions.append(TopicPartition(topic, partition))
        _tags, _unknown, position = _read_tags(value, position, known=False)
    return tuple(partitions), position


def _not_null(count: int, position: int) -> int:
    """Checks that a list of partitions is not null. Only the list of topics may be null."""
    if count < 0:
        raise CorruptRecordError(position, "a topic without a list of partitions")
    return count


#: Value version -> reader of the partition list.
_PARTITION_READERS: Final[Mapping[int, Callable[[bytes, int], tuple[Partitions, int]]]] = {
    0: _read_partitions_v0,
    1: _read_partitions_v1,
}

#: Tag -> (field, reader, size in bytes). The numbers are those in Kafka's code; the text of KIP-939 has others.
TAGGED_FIELDS: Final[Mapping[int, tuple[str, Callable[[bytes, int], tuple[int, int]], int]]] = {
    0: ("previous_producer_id", read_int64, 8),
    1: ("next_producer_id", read_int64, 8),
    2: ("client_transaction_version", read_int16, 2),
    3: ("next_producer_epoch", read_int16, 2),
    4: ("last_producer_epoch", read_int16, 2),
}


def _read_tags(value: bytes, position: int, *, known: bool = True) -> tuple[dict[str, int | None], tuple[int, ...], int]:
    tagged, position = read_tagged_fields(value, position)
    fields: dict[str, int | None] = {}
    unknown: list[int] = []
    for tag, content in tagged:
        if known and tag in TAGGED_FIELDS and TAGGED_FIELDS[tag][2] == len(content):
            name, read, _size = TAGGED_FIELDS[tag]
            fields[name] = optional(read(content, 0)[0])
        else:
            unknown.append(tag)
    return fields, tuple(unknown), position
