"""Records of `__transaction_state`, and offset commits. Kafka: `TransactionLogKey.json`, `TransactionLogValue.json`.

The log contains the coordinator's decisions, not what happened on partitions: a Prepare record is the decision, and a
Complete record means that every partition acknowledged its marker. The coordinator epoch is not in the value: it is the
leader epoch in the header of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.kafka.wire import UNKNOWN_TAGS, CorruptRecordError, Field, Message, optional, read_int16
from txnlib.core.rows import TopicPartition

KEY: Final = Message("0", "none", Field("transactionalId", "string"), end="the transactional id")
_PARTITIONS: Final = (Field("topic", "string"), Field("partitionIds", "[]int32"))
VALUE: Final = Message(
    "0-1",
    "1+",
    Field("producerId", "int64"),
    # The numbers of tags are those in Kafka's code; the text of KIP-939 has others.
    Field("previousProducerId", "int64", "1+", tag=0),
    Field("nextProducerId", "int64", "1+", tag=1),
    Field("producerEpoch", "int16"),
    Field("nextProducerEpoch", "int16", "1+", tag=3),
    Field("lastProducerEpoch", "int16", "1+", tag=4),
    Field("transactionTimeoutMs", "int32"),
    Field("transactionStatus", "int8"),
    Field("transactionPartitions", "[]PartitionsSchema", nullable="0+", fields=_PARTITIONS),
    Field("transactionLastUpdateTimestampMs", "int64"),
    Field("transactionStartTimestampMs", "int64"),
    Field("clientTransactionVersion", "int16", "1+", tag=2),
    is_lenient=True,
)
_STATES: Final = {state.value: state for state in TransactionState}
#: Position of the status in a value of any version.
_STATUS_AT: Final = 16
#: The fields of a value that contain a producer id of the transactional id (the last two since 4.3, KIP-939).
PRODUCER_ID_FIELDS: Final = ("producer_id", "previous_producer_id", "next_producer_id")


class UnknownVersionError(Exception):
    """An unknown key or value version. Kafka skips such keys and stops at such values."""

    def __init__(self, field_name: str, version: int) -> None:
        super().__init__(field_name, version)
        self.field_name, self.version = field_name, version

    def __str__(self) -> str:
        return f"{self.field_name} version {self.version} of a transaction log record is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogEntry:
    """The value of one record. None: the record has no such value, or a text dump does not show it.

    `transaction_partitions` is None for Empty (null on disk), and the empty tuple for Complete. `version` is None for a
    text dump.
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
    if version not in KEY.versions:
        raise UnknownVersionError("key", version)
    transactional_id: str = KEY.read(version, key, position)["transactionalId"]
    return transactional_id


def read_transaction_log_value(transactional_id: str, value: bytes) -> TransactionLogEntry:
    """The entry in a value of version 0 or 1. Unknown tags are skipped by their size, and their numbers are kept.

    Raises UnknownVersionError, or CorruptRecordError (also for unknown state codes).
    """
    version, position = read_int16(value, 0)
    if version not in VALUE.versions:
        raise UnknownVersionError("value", version)
    fields = VALUE.read(version, value, position)
    if fields["transactionStatus"] not in _STATES:
        raise CorruptRecordError(_STATUS_AT, f"transaction status {fields['transactionStatus']} is not known")
    return entry_of(transactional_id, version, fields)


def entry_of(transactional_id: str, version: int, fields: Mapping[str, Any]) -> TransactionLogEntry:
    """The entry with the fields of a value, from bytes or JSON."""
    listed = fields["transactionPartitions"]
    return TransactionLogEntry(
        transactional_id=transactional_id,
        producer_id=optional(fields["producerId"]),
        producer_epoch=optional(fields["producerEpoch"]),
        transaction_timeout_ms=fields["transactionTimeoutMs"],
        transaction_state=_STATES[fields["transactionStatus"]],
        transaction_partitions=None
        if listed is None
        else tuple(
            TopicPartition(topic["topic"], partition) for topic in listed for partition in topic["partitionIds"]
        ),
        last_update_timestamp_ms=optional(fields["transactionLastUpdateTimestampMs"]),
        start_timestamp_ms=optional(fields["transactionStartTimestampMs"]),
        version=version,
        previous_producer_id=optional(fields.get("previousProducerId", -1)),
        next_producer_id=optional(fields.get("nextProducerId", -1)),
        client_transaction_version=optional(fields.get("clientTransactionVersion", 0)),
        next_producer_epoch=optional(fields.get("nextProducerEpoch", -1)),
        last_producer_epoch=optional(fields.get("lastProducerEpoch", -1)),
        unknown_tags=tuple(fields.get(UNKNOWN_TAGS, ())),
    )


# ---- A record of `__consumer_offsets`. Kafka: `OffsetCommitKey.json`, `OffsetCommitValue.json`

# Only offset commits are read. The topic also contains records with higher key versions (2: the members of a group; 3
# and above: records of newer kinds of groups).


#: Both versions have the same fields; brokers write 1.
COMMIT_KEY: Final = Message(
    "0-1", "none", Field("group", "string"), Field("topic", "string"), Field("partition", "int32"), end="the partition"
)
#: Tagged fields (a topic id, or later ones) are skipped by their size.
COMMIT_VALUE: Final = Message(
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
    return (
        OffsetCommitKey(*COMMIT_KEY.read(version, key, position).values()) if version in COMMIT_KEY.versions else None
    )


def read_offset_commit_value(value: bytes) -> OffsetCommit:
    """The commit in a value of version 0 to 4. Raises CorruptRecordError, also for unknown versions."""
    version, position = read_int16(value, 0)
    if version not in COMMIT_VALUE.versions:
        raise CorruptRecordError(0, f"offset commit value of version {version} is not known")
    fields = COMMIT_VALUE.read(version, value, position)
    return OffsetCommit(
        version=version,
        offset=optional(fields["offset"]),
        metadata=fields["metadata"],
        commit_timestamp_ms=optional(fields["commitTimestamp"]),
        leader_epoch=optional(fields.get("leaderEpoch", -1)),
        expire_timestamp_ms=optional(fields.get("expireTimestamp", -1)),
    )
