"""A record of `__cluster_metadata`, from bytes or from printed JSON.

`RECORD_TYPES` lists the types with their fields, by Kafka's names. Types whose content an audit does not need have no
fields here: their records keep their name only, so that no credential is stored. Kafka: the schemas in
`metadata/src/main/resources/common/metadata`, 3.3 to 4.3; `AbstractApiMessageSerde`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.kafka.constants import MAX_INT16, MetadataType
from txnlib.core.kafka.wire import (
    CorruptRecordError,
    Field,
    Message,
    is_text,
    optional,
    read_int16,
    read_unsigned_varint,
)

#: The first number of every record value. Kafka: `DEFAULT_FRAME_VERSION`.
FRAME_VERSION: Final = 1
#: The value of the leader in a change that leaves the leader as it is. Kafka: `LeaderConstants.NO_LEADER_CHANGE`.
NO_LEADER_CHANGE: Final = -2
#: The content of a NoOpRecord, which an idle controller writes twice a second.
NO_OP_VALUE: Final = bytes([FRAME_VERSION, 20, 0, 0])


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record: its type, its version, and its columns by their names in `metadata_log`. Absent columns do not
    change."""

    type: str
    version: int | None
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordType:
    """A type of record: its name, and its fields. None: the content is not read."""

    name: str
    message: Message | None = None


def _type(name: str, versions: str, *fields: Field) -> RecordType:
    return RecordType(name, Message(versions, "0+", *fields, end="the record"))


def _list(name: str, kind: str, versions: str = "0+", tag: int | None = None) -> Field:
    """A list that may be null: many of Kafka's may be, and brokers do not write null in the others."""
    return Field(name, f"[]{kind}", versions, nullable="0+", tag=tag)


_ENDPOINT: Final = (
    Field("name", "string"),
    Field("host", "string"),
    Field("port", "uint16"),
    Field("securityProtocol", "int16"),
)
_FEATURE: Final = (
    Field("name", "string"),
    Field("minSupportedVersion", "int16"),
    Field("maxSupportedVersion", "int16"),
)
_BROKER: Final = (Field("brokerId", "int32"), Field("brokerEpoch", "int64"))
_ID_AND_EPOCH: Final = (Field("id", "int32"), Field("epoch", "int64"))
_PARTITION: Final = (Field("partitionId", "int32"), Field("topicId", "uuid"))

#: Number of a type in a record's value -> the type.
RECORD_TYPES: Final[Mapping[int, RecordType]] = {
    0: _type(
        MetadataType.REGISTER_BROKER,
        "0-4",
        Field("brokerId", "int32"),
        Field("isMigratingZkBroker", "bool", "2+"),
        Field("incarnationId", "uuid"),
        Field("brokerEpoch", "int64"),
        Field("endPoints", "[]BrokerEndpoint", fields=_ENDPOINT),
        Field("features", "[]BrokerFeature", fields=_FEATURE),
        Field("rack", "string", nullable="0+"),
        Field("fenced", "bool"),
        Field("inControlledShutdown", "bool", "1+"),
        _list("logDirs", "uuid", "3+", tag=0),
        _list("cordonedLogDirs", "uuid", "4+", tag=1),
    ),
    1: _type(MetadataType.UNREGISTER_BROKER, "0", *_BROKER),
    2: _type(MetadataType.TOPIC, "0", Field("name", "string"), Field("topicId", "uuid")),
    3: _type(
        MetadataType.PARTITION,
        "0-2",
        *_PARTITION,
        _list("replicas", "int32"),
        _list("isr", "int32"),
        _list("removingReplicas", "int32"),
        _list("addingReplicas", "int32"),
        Field("leader", "int32"),
        Field("leaderEpoch", "int32"),
        Field("partitionEpoch", "int32"),
        _list("directories", "uuid", "1+"),
        Field("leaderRecoveryState", "int8", tag=0),
        _list("eligibleLeaderReplicas", "int32", "2+", tag=1),
        _list("lastKnownElr", "int32", "2+", tag=2),
    ),
    4: _type(
        MetadataType.CONFIG,
        "0",
        Field("resourceType", "int8"),
        Field("resourceName", "string"),
        Field("name", "string"),
        Field("value", "string", nullable="0+"),
    ),
    5: _type(
        MetadataType.PARTITION_CHANGE,
        "0-2",
        *_PARTITION,
        _list("isr", "int32", tag=0),
        Field("leader", "int32", tag=1),
        _list("replicas", "int32", tag=2),
        _list("removingReplicas", "int32", tag=3),
        _list("addingReplicas", "int32", tag=4),
        Field("leaderRecoveryState", "int8", tag=5),
        _list("directories", "uuid", "1+", tag=8),
        _list("eligibleLeaderReplicas", "int32", "2+", tag=6),
        _list("lastKnownElr", "int32", "2+", tag=7),
    ),
    7: _type(MetadataType.FENCE_BROKER, "0", *_ID_AND_EPOCH),
    8: _type(MetadataType.UNFENCE_BROKER, "0", *_ID_AND_EPOCH),
    9: _type(MetadataType.REMOVE_TOPIC, "0", Field("topicId", "uuid")),
    10: RecordType("DELEGATION_TOKEN_RECORD"),
    11: RecordType("USER_SCRAM_CREDENTIAL_RECORD"),
    12: _type(MetadataType.FEATURE_LEVEL, "0", Field("name", "string"), Field("featureLevel", "int16")),
    14: RecordType("CLIENT_QUOTA_RECORD"),
    15: _type(MetadataType.PRODUCER_IDS, "0", *_BROKER, Field("nextProducerId", "int64")),
    17: _type(
        MetadataType.BROKER_REGISTRATION_CHANGE,
        "0-3",
        *_BROKER,
        Field("fenced", "int8", tag=0),
        Field("inControlledShutdown", "int8", "1+", tag=1),
        _list("logDirs", "uuid", "2+", tag=2),
        _list("cordonedLogDirs", "uuid", "3+", tag=3),
    ),
    18: RecordType("ACCESS_CONTROL_ENTRY_RECORD"),
    19: RecordType("REMOVE_ACCESS_CONTROL_ENTRY_RECORD"),
    20: _type(MetadataType.NO_OP, "0"),
    21: RecordType("ZK_MIGRATION_STATE_RECORD"),
    22: RecordType("REMOVE_USER_SCRAM_CREDENTIAL_RECORD"),
    23: _type(MetadataType.BEGIN_TRANSACTION, "0", Field("name", "string", nullable="0+", tag=0)),
    24: _type(MetadataType.END_TRANSACTION, "0"),
    25: _type(MetadataType.ABORT_TRANSACTION, "0", Field("reason", "string", nullable="0+", tag=0)),
    26: RecordType("REMOVE_DELEGATION_TOKEN_RECORD"),
    27: RecordType("REGISTER_CONTROLLER_RECORD"),
    28: _type(MetadataType.CLEAR_ELR, "0", Field("topicName", "string")),
}
_BY_NAME: Final = {kind.name: kind for kind in RECORD_TYPES.values()}
#: Type in the key of a control record -> name. Kafka: `ControlRecordType`.
CONTROL_RECORD_TYPES: Final[Mapping[int, str]] = {
    2: MetadataType.LEADER_CHANGE,
    3: MetadataType.SNAPSHOT_HEADER,
    4: MetadataType.SNAPSHOT_FOOTER,
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
#: Number of a resource type -> name. Kafka: `ConfigResource.Type`.
RESOURCE_TYPES: Final[Mapping[int, str]] = {
    2: "TOPIC",
    4: "BROKER",
    8: "BROKER_LOGGER",
    16: "CLIENT_METRICS",
    32: "GROUP",
}
#: Settings whose values are secrets. Kafka prints them in the same way (`Password.HIDDEN`).
_SECRET: Final = re.compile(r"password|secret|jaas|credential|keystore\.(key|certificate)|token", re.IGNORECASE)
HIDDEN: Final = "[hidden]"


def read_metadata_record(value: bytes) -> MetadataRecord:
    """The record in a value. A type that is not known here keeps its number as its name.

    Raises CorruptRecordError, also for a version of a type that is newer than `RECORD_TYPES` knows.
    Kafka: `AbstractApiMessageSerde.read`.
    """
    frame_version, position = read_unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise CorruptRecordError(0, f"frame version {frame_version} is not known")
    number, position = _read_short(value, position, "record type")
    version, position = _read_short(value, position, "record version")
    kind = RECORD_TYPES.get(number)
    if kind is None or kind.message is None:
        return MetadataRecord(f"RECORD_TYPE_{number}" if kind is None else kind.name, version, {})
    if version not in kind.message.versions:
        raise CorruptRecordError(position, f"version {version} of {kind.name} is not known")
    return _record(kind, version, kind.message.read(version, value, position))


def record_without_columns(number: int) -> MetadataRecord | None:
    """A record of which only the number of its type is known; None if an audit needs its columns."""
    kind = RECORD_TYPES.get(number)
    if kind is not None and kind.name in _COLUMNS and kind.name not in _NAMED_ONLY:
        return None
    return MetadataRecord(f"RECORD_TYPE_{number}" if kind is None else kind.name, None, {})


def read_metadata_json(text: bytes) -> MetadataRecord | None:
    """The record in a payload that `--cluster-metadata-decoder` printed; None for any other text."""
    try:
        printed = json.loads(text)
        name, version, data = printed["type"], printed["version"], printed["data"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    if (
        not is_text(name)
        or type(version) is not int
        or not 0 <= version <= MAX_INT16
        or type(data) is not dict
        or len(printed) != 3
    ):
        return None
    kind = _BY_NAME.get(name)
    if kind is None or kind.message is None:
        return MetadataRecord(name, version, {})
    fields = kind.message.read_json(version, data) if version in kind.message.versions else None
    return None if fields is None else _record(kind, version, fields)


def _read_short(value: bytes, offset: int, name: str) -> tuple[int, int]:
    number, end = read_unsigned_varint(value, offset)
    if number > MAX_INT16:
        raise CorruptRecordError(offset, f"{name} {number} is no int16")
    return number, end


def _record(kind: RecordType, version: int, data: Mapping[str, Any]) -> MetadataRecord:
    columns = _COLUMNS.get(kind.name)
    return MetadataRecord(kind.name, version, {} if columns is None else columns(data))


_Columns = Callable[[Mapping[str, Any]], dict[str, Any]]


def _named(*names: str) -> _Columns:
    """The fields as columns, their names in snake case; None for a field that is not written."""
    columns = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): name for name in names}
    return lambda data: {column: data.get(name) for column, name in columns.items()}


_OF_PARTITION: Final = _named(
    *(
        "topicId",
        "partitionId",
        "replicas",
        "isr",
        "removingReplicas",
        "addingReplicas",
        "leaderEpoch",
        "partitionEpoch",
    ),
    *("leaderRecoveryState", "eligibleLeaderReplicas", "lastKnownElr"),
)


def _partition_columns(data: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a partition. A leader of -1 is none; no leader in a change: the leader stays, as does its
    epoch."""
    leader = data.get("leader", NO_LEADER_CHANGE)
    return {**_OF_PARTITION(data), "sets_leader": leader != NO_LEADER_CHANGE, "leader": optional(leader)}


def _broker_columns(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "broker_id": data["brokerId"],
        "broker_epoch": data["brokerEpoch"],
        "incarnation_id": data.get("incarnationId"),
        "is_fenced": _changed(data.get("fenced")),
        "is_in_controlled_shutdown": _changed(data.get("inControlledShutdown")),
    }


def _changed(flag: bool | int | None) -> bool | None:
    """A flag as a boolean. A change is -1 for false, 1 for true, and 0 or absent for none."""
    if flag is None or type(flag) is bool:
        return flag
    return None if flag == 0 else flag > 0


def _fence_columns(is_fenced: bool) -> _Columns:
    return lambda data: {"broker_id": data["id"], "broker_epoch": data["epoch"], "is_fenced": is_fenced}


def _config_columns(data: Mapping[str, Any]) -> dict[str, Any]:
    number, name, value = data["resourceType"], data["name"], data["value"]
    return {
        "resource_type": RESOURCE_TYPES.get(number, str(number)),
        "resource_name": data["resourceName"],
        "name": name,
        "value": HIDDEN if value is not None and _SECRET.search(name) else value,
    }


#: Type -> its columns in `metadata_log`, from its fields by Kafka's names.
_COLUMNS: Final[Mapping[str, _Columns]] = {
    MetadataType.REGISTER_BROKER: _broker_columns,
    MetadataType.UNREGISTER_BROKER: _broker_columns,
    MetadataType.BROKER_REGISTRATION_CHANGE: _broker_columns,
    MetadataType.FENCE_BROKER: _fence_columns(True),
    MetadataType.UNFENCE_BROKER: _fence_columns(False),
    MetadataType.TOPIC: _named("topicId", "name"),
    MetadataType.REMOVE_TOPIC: _named("topicId"),
    MetadataType.PARTITION: _partition_columns,
    MetadataType.PARTITION_CHANGE: _partition_columns,
    MetadataType.CONFIG: _config_columns,
    MetadataType.FEATURE_LEVEL: _named("name", "featureLevel"),
    MetadataType.PRODUCER_IDS: _named("brokerId", "brokerEpoch", "nextProducerId"),
    MetadataType.CLEAR_ELR: lambda data: {"name": data["topicName"]},
    MetadataType.BEGIN_TRANSACTION: _named("name"),
    MetadataType.ABORT_TRANSACTION: lambda data: {"name": data.get("reason")},
}


#: Types of which the name of the type is enough: without a topic, all eligible leader replicas count as cleared.
_NAMED_ONLY: Final = (MetadataType.BEGIN_TRANSACTION, MetadataType.ABORT_TRANSACTION, MetadataType.CLEAR_ELR)


def read_control_record_type(key: bytes) -> str:
    """The name of a control record, from its key: a version and a type. Raises CorruptRecordError."""
    _version, position = read_int16(key, 0)
    number, _end = read_int16(key, position)
    return CONTROL_RECORD_TYPES.get(number, f"CONTROL_RECORD_TYPE_{number}")
