"""Kafka's special values, the order of epochs, versions, and names of records.

Kafka: `RecordBatch`, `TransactionLogValue.json`, `ReplicaManager`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

NO_TIMESTAMP: Final = -1
NO_OFFSET: Final = -1

MAX_INT16: Final = 2**15 - 1
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
MAX_SEQUENCE: Final = MAX_INT32
#: Kafka: `TransactionMetadata.isEpochExhausted`: an epoch from here on is never given to a client.
EXHAUSTED_EPOCH: Final = 2**15 - 2
#: Timeouts that never pass: two-phase commit as written by brokers, and as written in the text of KIP-939.
TWO_PHASE_COMMIT_TIMEOUTS: Final = frozenset({2**31 - 1, -1})

#: Kafka: `ProducerStateManager.LATE_TRANSACTION_BUFFER_MS`; a constant in the broker, not a setting.
LATE_TRANSACTION_BUFFER_MS: Final = 300_000
#: Default of the broker's `producer.id.expiration.ms`.
PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000

#: Upper limit for partitions of `__transaction_state`, above that of any cluster.
MAX_COORDINATOR_PARTITIONS: Final = 100_000

TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"

#: The feature whose level decides how coordinators end transactions.
TRANSACTION_VERSION: Final = "transaction.version"

#: How far two clocks may still differ, in ms, after their offset was estimated, or if both stamps are of one broker.
CLOCKS_DIFFER_MS: Final = 1_000
#: How far two clocks may differ, in ms, if their offset is unknown.
UNKNOWN_CLOCKS_DIFFER_MS: Final = 300_000
#: How often a broker notes high watermarks. Kafka: `replica.high.watermark.checkpoint.interval.ms`.
HIGH_WATERMARKS_NOTED_EVERY_MS: Final = 5_000


# ---- The order of two epochs, either of which may be unknown


def is_ahead(epoch: int | None, of: int | None) -> bool:
    """Whether the first epoch is known to be the higher one."""
    return epoch is not None and of is not None and epoch > of


# ---- Versions of Kafka, as operators write them


_NUMBER: Final = re.compile("[0-9]{1,9}")


#: Major version of Confluent Platform -> the version of Kafka in its first release. Each minor one has the next.
_KAFKA_OF_CONFLUENT: Final = {5: (2, 0), 6: (2, 6), 7: (3, 0), 8: (4, 0)}


def is_confluent(kafka_version: str | None) -> bool:
    """Whether a version is one of Confluent Platform, as its tools print it: `7.5.0-ccs`, or `-ce` of its server."""
    return re.search(r"-(ccs|ce)\b", kafka_version or "") is not None


def is_from(first: tuple[int, int], kafka_version: str | None) -> bool | None:
    """Whether a version is at least `first`, (major, minor); None if unknown.

    A version that ends with `+` is the oldest that it can be: `3.0+`.
    """
    version = kafka_version or ""
    if version.endswith("+"):
        return True if is_from(first, version.removesuffix("+")) else None
    numbers = [int(part) for part in version.split(".")[:2] if _NUMBER.fullmatch(part)]
    if len(numbers) < 2:
        return None
    major, minor = numbers
    if is_confluent(kafka_version):
        if major not in _KAFKA_OF_CONFLUENT:
            return None
        major, earlier = _KAFKA_OF_CONFLUENT[major]
        minor += earlier
    return (major, minor) >= first


_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: object) -> bool:
    """Whether Kafka allows a topic of this name. Such a name, with a partition behind it, is one part of a path.

    Kafka: `Topic.validate`.
    """
    return isinstance(name, str) and _LEGAL.fullmatch(name) is not None and name not in (".", "..")


class MetadataType(StrEnum):
    """The records of `__cluster_metadata` that an audit uses, by the names that Kafka's tools print."""

    REGISTER_BROKER = "REGISTER_BROKER_RECORD"
    UNREGISTER_BROKER = "UNREGISTER_BROKER_RECORD"
    TOPIC = "TOPIC_RECORD"
    PARTITION = "PARTITION_RECORD"
    CONFIG = "CONFIG_RECORD"
    PARTITION_CHANGE = "PARTITION_CHANGE_RECORD"
    FENCE_BROKER = "FENCE_BROKER_RECORD"
    UNFENCE_BROKER = "UNFENCE_BROKER_RECORD"
    REMOVE_TOPIC = "REMOVE_TOPIC_RECORD"
    FEATURE_LEVEL = "FEATURE_LEVEL_RECORD"
    PRODUCER_IDS = "PRODUCER_IDS_RECORD"
    BROKER_REGISTRATION_CHANGE = "BROKER_REGISTRATION_CHANGE_RECORD"
    NO_OP = "NO_OP_RECORD"
    BEGIN_TRANSACTION = "BEGIN_TRANSACTION_RECORD"
    END_TRANSACTION = "END_TRANSACTION_RECORD"
    ABORT_TRANSACTION = "ABORT_TRANSACTION_RECORD"
    CLEAR_ELR = "CLEAR_ELR_RECORD"
    # Control records
    LEADER_CHANGE = "LEADER_CHANGE"
    SNAPSHOT_HEADER = "SNAPSHOT_HEADER"
    SNAPSHOT_FOOTER = "SNAPSHOT_FOOTER"
