"""A record of `__cluster_metadata`, from bytes or from printed JSON.

`RECORD_TYPES` lists the types with their fields, by Kafka's names. Types whose content an audit does not need have no fields here:
their records keep their name only, so that no credential is stored. Kafka: the schemas in
`metadata/src/main/resources/common/metadata`, 3.3 to 4.3; `AbstractApiMessageSerde`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from txnlib.core.kafka.wire import (
    BOOL,
    BROKER_IDS,
    ENDPOINTS,
    FEATURES,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_INT16,
    NULLABLE_TEXT,
    TEXT,
    UUID,
    UUIDS,
    CorruptRecordError,
    FieldType,
    is_int,
    is_text,
    optional,
    read_int16,
    read_tagged_fields,
    read_unsigned_varint,
)

#: The first number of every record value. Kafka: `DEFAULT_FRAME_VERSION`.
FRAME_VERSION: Final = 1
#: The leader in a change that does not change it. Kafka: `LeaderConstants.NO_LEADER_CHANGE`.
NO_LEADER_CHANGE: Final = -2
#: The content of a NoOpRecord, which an idle controller writes twice a second.
NO_OP_VALUE: Final = bytes([FRAME_VERSION, 20, 0, 0])


class MetadataType(StrEnum):
    """The records that an audit uses, by the names that Kafka's tools print."""

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


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record: its type, its version, and its columns by their names in `metadata_log`. Absent columns do not change."""

    type: str
    version: int | None
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field: in versions from `since` on, as a tagged field if it has a tag."""

    name: str
    kind: FieldType
    since: int = 0
    tag: int | None = None


@dataclass(frozen=True, slots=True)
class RecordType:
    """A type of record: its name, its newest version known here, and its fields. None: the content is not read."""

    name: str
    newest_version: int = 0
    fields: tuple[_Field, ...] | None = None


_PARTITION: Final = (_Field("partitionId", INT32), _Field("topicId", UUID))

#: Number of a type in a record's value -> the type.
RECORD_TYPES: Final[Mapping[int, RecordType]] = {
    0: RecordType(
        MetadataType.REGISTER_BROKER,
        4,
        (
            _Field("brokerId", INT32),
            _Field("isMigratingZkBroker", BOOL, since=2),
            _Field("incarnationId", UUID),
            _Field("brokerEpoch", INT64),
            _Field("endPoints", ENDPOINTS),
            _Field("features", FEATURES),
            _Field("rack", NULLABLE_TEXT),
            _Field("fenced", BOOL),
            _Field("inControlledShutdown", BOOL, since=1),
            _Field("logDirs", UUIDS, since=3, tag=0),
            _Field("cordonedLogDirs", UUIDS, since=4, tag=1),
        ),
    ),
    1: RecordType(MetadataType.UNREGISTER_BROKER, 0, (_Field("brokerId", INT32), _Field("brokerEpoch", INT64))),
    2: RecordType(MetadataType.TOPIC, 0, (_Field("name", TEXT), _Field("topicId", UUID))),
    3: RecordType(
        MetadataType.PARTITION,
        2,
        (
            *_PARTITION,
            _Field("replicas", BROKER_IDS),
            _Field("isr", BROKER_IDS),
            _Field("removingReplicas", BROKER_IDS),
            _Field("addingReplicas", BROKER_IDS),
            _Field("leader", INT32),
            _Field("leaderEpoch", INT32),
            _Field("partitionEpoch", INT32),
            _Field("directories", UUIDS, since=1),
            _Field("leaderRecoveryState", INT8, tag=0),
            _Field("eligibleLeaderReplicas", BROKER_IDS, since=2, tag=1),
            _Field("lastKnownElr", BROKER_IDS, since=2, tag=2),
        ),
    ),
    4: RecordType(
        MetadataType.CONFIG,
        0,
        (
            _Field("resourceType", INT8),
            _Field("resourceName", TEXT),
            _Field("name", TEXT),
            _Field("value", NULLABLE_TEXT),
        ),
    ),
    5: RecordType(
        MetadataType.PARTITION_CHANGE,
        2,
        (
            *_PARTITION,
            _Field("isr", BROKER_IDS, tag=0),
            _Field("leader", INT32, tag=1),
            _Field("replicas", BROKER_IDS, tag=2),
            _Field("removingReplicas", BROKER_IDS, tag=3),
            _Field("addingReplicas", BROKER_IDS, tag=4),
            _Field("leaderRecoveryState", INT8, tag=5),
            _Field("directories", UUIDS, since=1, tag=8),
            _Field("eligibleLeaderReplicas", BROKER_IDS, since=2, tag=6),
            _Field("lastKnownElr", BROKER_IDS, since=2, tag=7),
        ),
    ),
    7: RecordType(MetadataType.FENCE_BROKER, 0, (_Field("id", INT32), _Field("epoch", INT64))),
    8: RecordType(MetadataType.UNFENCE_BROKER, 0, (_Field("id", INT32), _Field("epoch", INT64))),
    9: RecordType(MetadataType.REMOVE_TOPIC, 0, (_Field("topicId", UUID),)),
    10: RecordType("DELEGATION_TOKEN_RECORD"),
    11: RecordType("USER_SCRAM_CREDENTIAL_RECORD"),
    12: RecordType(MetadataType.FEATURE_LEVEL, 0, (_Field("name", TEXT), _Field("featureLevel", INT16))),
    14: RecordType("CLIENT_QUOTA_RECORD"),
    15: RecordType(
        MetadataType.PRODUCER_IDS,
        0,
        (_Field("brokerId", INT32), _Field("brokerEpoch", INT64), _Field("nextProducerId", INT64)),
    ),
    17: RecordType(
        MetadataType.BROKER_REGISTRATION_CHANGE,
        3,
        (
            _Field("brokerId", INT32),
            _Field("brokerEpoch", INT64),
            _Field("fenced", INT8, tag=0),
            _Field("inControlledShutdown", INT8, since=1, tag=1),
            _Field("logDirs", UUIDS, since=2, tag=2),
            _Field("cordonedLogDirs", UUIDS, since=3, tag=3),
        ),
    ),
    18: RecordType("ACCESS_CONTROL_ENTRY_RECORD"),
    19: RecordType("REMOVE_ACCESS_CONTROL_ENTRY_RECORD"),
    20: RecordType(MetadataType.NO_OP, 0, ()),
    21: RecordType("ZK_MIGRATION_STATE_RECORD"),
    22: RecordType("REMOVE_USER_SCRAM_CREDENTIAL_RECORD"),
    23: RecordType(MetadataType.BEGIN_TRANSACTION, 0, (_Field("name", NULLABLE_TEXT, tag=0),)),
    24: RecordType(MetadataType.END_TRANSACTION, 0, ()),
    25: RecordType(MetadataType.ABORT_TRANSACTION, 0, (_Field("reason", NULLABLE_TEXT, tag=0),)),
    26: RecordType("REMOVE_DELEGATION_TOKEN_RECORD"),
    27: RecordType("REGISTER_CONTROLLER_RECORD"),
    28: RecordType(MetadataType.CLEAR_ELR, 0, (_Field("topicName", TEXT),)),
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
    if kind is None or kind.fields is None:
        return MetadataRecord(f"RECORD_TYPE_{number}" if kind is None else kind.name, version, {})
    if version > kind.newest_version:
        raise CorruptRecordError(position, f"version {version} of {kind.name} is not known")
    data: dict[str, Any] = {}
    for field in kind.fields:
        if field.tag is None and version >= field.since:
            data[field.name], position = field.kind.read(value, position)
    tagged, position = read_tagged_fields(value, position)
    if position != len(value):
        raise CorruptRecordError(position, "bytes are left after the record")
    by_tag = {field.tag: field for field in kind.fields if field.tag is not None and version >= field.since}
    for tag, content in tagged:
        if tag in by_tag:
            read, end = by_tag[tag].kind.read(content, 0)
            if end != len(content):
                raise CorruptRecordError(position, f"bytes are left in tagged field {tag}")
            data[by_tag[tag].name] = read
    return _record(kind, version, data)


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
    if not is_text(name) or not is_int(16)(version) or version < 0 or type(data) is not dict or len(printed) != 3:
        return None
    kind = _BY_NAME.get(name)
    if kind is None or kind.fields is None or version > kind.newest_version:
        return MetadataRecord(name, version, {}) if kind is None or kind.fields is None else None
    fields = {field.name: field for field in kind.fields if version >= field.since}
    if any(field.tag is None and name not in data for name, field in fields.items()):
        return None
    known = {name: value for name, value in data.items() if name in fields}
    return _record(kind, version, known) if all(fields[name].kind.is_json(value) for name, value in known.items()) else None


def _read_short(value: bytes, offset: int, name: str) -> tuple[int, int]:
    number, end = read_unsigned_varint(value, offset)
    if number > MAX_INT16:
        raise CorruptRecordError(offset, f"{name} {number} is no int16")
    return number, end


def _record(kind: RecordType, version: int, data: Mapping[str, Any]) -> MetadataRecord:
    columns = _COLUMNS.get(kind.name)
    return MetadataRecord(kind.name, version, {} if columns is None else columns(data))


def _partition_columns(data: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a partition. A leader of -1 is none; no leader in a change: the leader stays, as does its epoch."""
    leader = data.get("leader", NO_LEADER_CHANGE)
    return {
        "topic_id": data["topicId"],
        "partition_id": data["partitionId"],
        "replicas": data.get("replicas"),
        "isr": data.get("isr"),
        "removing_replicas": data.get("removingReplicas"),
        "adding_replicas": data.get("addingReplicas"),
        "sets_leader": leader != NO_LEADER_CHANGE,
        "leader": optional(leader),
        "leader_epoch": data.get("leaderEpoch"),
        "partition_epoch": data.get("partitionEpoch"),
        "leader_recovery_state": data.get("leaderRecoveryState"),
        "eligible_leader_replicas": data.get("eligibleLeaderReplicas"),
        "last_known_elr": data.get("lastKnownElr"),
    }


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


def _fence_columns(is_fenced: bool) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
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
_COLUMNS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    MetadataType.REGISTER_BROKER: _broker_columns,
    MetadataType.UNREGISTER_BROKER: _broker_columns,
    MetadataType.BROKER_REGISTRATION_CHANGE: _broker_columns,
    MetadataType.FENCE_BROKER: _fence_columns(True),
    MetadataType.UNFENCE_BROKER: _fence_columns(False),
    MetadataType.TOPIC: lambda data: {"topic_id": data["topicId"], "name": data["name"]},
    MetadataType.REMOVE_TOPIC: lambda data: {"topic_id": data["topicId"]},
    MetadataType.PARTITION: _partition_columns,
    MetadataType.PARTITION_CHANGE: _partition_columns,
    MetadataType.CONFIG: _config_columns,
    MetadataType.FEATURE_LEVEL: lambda data: {"name": data["name"], "feature_level": data["featureLevel"]},
    MetadataType.PRODUCER_IDS: lambda data: {
        "broker_id": data["brokerId"],
        "broker_epoch": data["brokerEpoch"],
        "next_producer_id": data["nextProducerId"],
    },
    MetadataType.CLEAR_ELR: lambda data: {"name": data["topicName"]},
    MetadataType.BEGIN_TRANSACTION: lambda data: {"name": data.get("name")},
    MetadataType.ABORT_TRANSACTION: lambda data: {"name": data.get("reason")},
}


#: Types of which the name of the type is enough: without a topic, all eligible leader replicas count as cleared.
_NAMED_ONLY: Final = (MetadataType.BEGIN_TRANSACTION, MetadataType.ABORT_TRANSACTION, MetadataType.CLEAR_ELR)


def read_control_record_type(key: bytes) -> str:
    """The name of a control record, from its key: a version and a type. Raises CorruptRecordError."""
    _version, position = read_int16(key, 0)
    number, _end = read_int16(key, position)
    return CONTROL_RECORD_TYPES.get(number, f"CONTROL_RECORD_TYPE_{number}")
