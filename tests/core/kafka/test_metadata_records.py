"""Records of `__cluster_metadata`, from bytes and from printed JSON."""

import json

import pytest

from tests.support.log_bytes import uvarint
from txnlib.core.kafka.metadata_records import (
    CONTROL_RECORD_TYPES,
    HIDDEN,
    NO_OP_VALUE,
    RECORD_TYPES,
    MetadataRecord,
    read_control_record_type,
    read_metadata_json,
    read_metadata_record,
    record_without_columns,
)
from txnlib.core.kafka.wire import CorruptRecordError

ID = bytes(range(16))
ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def int32(*numbers):
    return b"".join(number.to_bytes(4, "big", signed=True) for number in numbers)


def int64(number):
    return number.to_bytes(8, "big", signed=True)


def ids(*numbers):
    """A compact list of int32."""
    return bytes([len(numbers) + 1]) + int32(*numbers)


def text(value):
    return bytes([len(value) + 1]) + value.encode()


def tags(*fields):
    return bytes([len(fields)]) + b"".join(bytes([tag, len(content)]) + content for tag, content in fields)


def partition(**changed):
    """The columns of a partition record without anything in it."""
    names = ("replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_epoch", "partition_epoch")
    names = (*names, "leader_recovery_state", "eligible_leader_replicas", "last_known_elr")
    return dict.fromkeys(names) | {"topic_id": ID_TEXT, "partition_id": 7, "sets_leader": False} | changed


def broker(**changed):
    names = ("incarnation_id", "is_fenced", "is_in_controlled_shutdown")
    return dict.fromkeys(names) | {"broker_id": 3, "broker_epoch": 11} | changed


BARE = ids(3, 1) + ids(3) + ids() + ids() + int32(3, 5, 9)
#: Bytes after the frame version, the JSON `data` -> type, version, columns. Written by hand from Kafka's schemas.
VECTORS = {
    "a topic": (
        b"\x02\x00" + text("orders") + ID + tags(),
        {"name": "orders", "topicId": ID_TEXT},
        ("TOPIC_RECORD", 0, {"topic_id": ID_TEXT, "name": "orders"}),
    ),
    "a removed topic": (
        b"\x09\x00" + ID + tags(),
        {"topicId": ID_TEXT},
        ("REMOVE_TOPIC_RECORD", 0, {"topic_id": ID_TEXT}),
    ),
    "a partition of 3.3": (
        b"\x03\x00" + int32(7) + ID + BARE + tags(),
        {
            "partitionId": 7,
            "topicId": ID_TEXT,
            "replicas": [3, 1],
            "isr": [3],
            "removingReplicas": [],
            "addingReplicas": [],
        }
        | {"leader": 3, "leaderEpoch": 5, "partitionEpoch": 9},
        (
            "PARTITION_RECORD",
            0,
            partition(replicas=[3, 1], isr=[3], removing_replicas=[], adding_replicas=[], sets_leader=True, leader=3)
            | {"leader_epoch": 5, "partition_epoch": 9},
        ),
    ),
    "a partition of 4.0 that is recovering": (
        b"\x03\x02"
        + int32(7)
        + ID
        + BARE
        + b"\x03"
        + ID
        + ID
        + tags((0, b"\x01"), (1, ids(1)), (2, ids(2)), (99, b"new")),
        {
            "partitionId": 7,
            "topicId": ID_TEXT,
            "replicas": [3, 1],
            "isr": [3],
            "removingReplicas": [],
            "addingReplicas": [],
        }
        | {
            "leader": 3,
            "leaderRecoveryState": 1,
            "leaderEpoch": 5,
            "partitionEpoch": 9,
            "directories": [ID_TEXT, ID_TEXT],
        }
        | {"eligibleLeaderReplicas": [1], "lastKnownElr": [2]},
        (
            "PARTITION_RECORD",
            2,
            partition(replicas=[3, 1], isr=[3], removing_replicas=[], adding_replicas=[], sets_leader=True, leader=3)
            | {"leader_epoch": 5, "partition_epoch": 9, "leader_recovery_state": 1}
            | {"eligible_leader_replicas": [1], "last_known_elr": [2]},
        ),
    ),
    "a change of the in-sync set only": (
        b"\x05\x00" + int32(7) + ID + tags((0, ids(1, 2))),
        {"partitionId": 7, "topicId": ID_TEXT, "isr": [1, 2]},
        ("PARTITION_CHANGE_RECORD", 0, partition(isr=[1, 2])),
    ),
    "a change to no leader": (
        b"\x05\x02" + int32(7) + ID + tags((0, ids()), (1, int32(-1)), (6, ids(3))),
        {"partitionId": 7, "topicId": ID_TEXT, "isr": [], "leader": -1, "eligibleLeaderReplicas": [3]},
        ("PARTITION_CHANGE_RECORD", 2, partition(isr=[], sets_leader=True, eligible_leader_replicas=[3])),
    ),
    "an unclean election": (
        b"\x05\x01" + int32(7) + ID + tags((0, ids(3)), (1, int32(3)), (5, b"\x01"), (8, b"\x02" + ID)),
        {
            "partitionId": 7,
            "topicId": ID_TEXT,
            "isr": [3],
            "leader": 3,
            "leaderRecoveryState": 1,
            "directories": [ID_TEXT],
        },
        ("PARTITION_CHANGE_RECORD", 1, partition(isr=[3], sets_leader=True, leader=3, leader_recovery_state=1)),
    ),
    "a setting of a topic": (
        b"\x04\x00\x02" + text("orders") + text("retention.ms") + text("5") + tags(),
        {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "5"},
        (
            "CONFIG_RECORD",
            0,
            {"resource_type": "TOPIC", "resource_name": "orders", "name": "retention.ms", "value": "5"},
        ),
    ),
    "a setting of all brokers that is removed": (
        b"\x04\x00\x04" + text("") + text("log.cleaner.threads") + b"\x00" + tags(),
        {"resourceType": 4, "resourceName": "", "name": "log.cleaner.threads", "value": None},
        (
            "CONFIG_RECORD",
            0,
            {"resource_type": "BROKER", "resource_name": "", "name": "log.cleaner.threads", "value": None},
        ),
    ),
    "a setting that is a secret": (
        b"\x04\x00\x04" + text("1") + text("ssl.key.password") + text("hunter2") + tags(),
        {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "hunter2"},
        (
            "CONFIG_RECORD",
            0,
            {"resource_type": "BROKER", "resource_name": "1", "name": "ssl.key.password", "value": HIDDEN},
        ),
    ),
    "a feature": (
        b"\x0c\x00" + text("transaction.version") + b"\x00\x02" + tags(),
        {"name": "transaction.version", "featureLevel": 2},
        ("FEATURE_LEVEL_RECORD", 0, {"name": "transaction.version", "feature_level": 2}),
    ),
    "a block of producer ids": (
        b"\x0f\x00" + int32(3) + int64(11) + int64(2000) + tags(),
        {"brokerId": 3, "brokerEpoch": 11, "nextProducerId": 2000},
        ("PRODUCER_IDS_RECORD", 0, {"broker_id": 3, "broker_epoch": 11, "next_producer_id": 2000}),
    ),
    "a broker of 4.3": (
        b"\x00\x04"
        + int32(3)
        + b"\x00"
        + ID
        + int64(11)
        + b"\x02"
        + text("PLAIN")
        + text("host")
        + b"\xd4\x31\x00\x00"
        + tags()
        + b"\x02"
        + text("group.version")
        + b"\x00\x00\x00\x01"
        + tags()
        + b"\x00\x01\x00"
        + tags((0, b"\x02" + ID), (1, b"\x01")),
        {"brokerId": 3, "isMigratingZkBroker": False, "incarnationId": ID_TEXT, "brokerEpoch": 11}
        | {"endPoints": [{"name": "PLAIN", "host": "host", "port": 54321, "securityProtocol": 0}], "features": []}
        | {"rack": None, "fenced": True, "inControlledShutdown": False, "logDirs": [ID_TEXT], "cordonedLogDirs": []},
        ("REGISTER_BROKER_RECORD", 4, broker(incarnation_id=ID_TEXT, is_fenced=True, is_in_controlled_shutdown=False)),
    ),
    "a broker of 3.3, which has no controlled shutdown": (
        b"\x00\x00" + int32(3) + ID + int64(11) + b"\x01\x01" + text("rack") + b"\x00" + tags(),
        {
            "brokerId": 3,
            "incarnationId": ID_TEXT,
            "brokerEpoch": 11,
            "endPoints": [],
            "features": [],
            "rack": "rack",
            "fenced": False,
        },
        ("REGISTER_BROKER_RECORD", 0, broker(incarnation_id=ID_TEXT, is_fenced=False)),
    ),
    "a broker that is fenced": (
        b"\x11\x01" + int32(3) + int64(11) + tags((0, b"\x01")),
        {"brokerId": 3, "brokerEpoch": 11, "fenced": 1},
        ("BROKER_REGISTRATION_CHANGE_RECORD", 1, broker(is_fenced=True)),
    ),
    "a broker that is no longer fenced": (
        b"\x11\x00" + int32(3) + int64(11) + tags((0, b"\xff")),
        {"brokerId": 3, "brokerEpoch": 11, "fenced": -1},
        ("BROKER_REGISTRATION_CHANGE_RECORD", 0, broker(is_fenced=False)),
    ),
    "a broker that shuts down": (
        b"\x11\x01" + int32(3) + int64(11) + tags((1, b"\x01")),
        {"brokerId": 3, "brokerEpoch": 11, "inControlledShutdown": 1},
        ("BROKER_REGISTRATION_CHANGE_RECORD", 1, broker(is_in_controlled_shutdown=True)),
    ),
    "a broker that is fenced, before 3.3": (
        b"\x07\x00" + int32(3) + int64(11) + tags(),
        {"id": 3, "epoch": 11},
        ("FENCE_BROKER_RECORD", 0, {"broker_id": 3, "broker_epoch": 11, "is_fenced": True}),
    ),
    "the begin of a controller transaction": (
        b"\x17\x00" + tags((0, text("Bootstrap"))),
        {"name": "Bootstrap"},
        ("BEGIN_TRANSACTION_RECORD", 0, {"name": "Bootstrap"}),
    ),
    "its abort": (b"\x19\x00" + tags(), {}, ("ABORT_TRANSACTION_RECORD", 0, {"name": None})),
    "nothing": (NO_OP_VALUE[1:], {}, ("NO_OP_RECORD", 0, {})),
    "a credential, of which only the type is kept": (
        b"\x0b\x00secret",
        {"salt": "c2VjcmV0"},
        ("USER_SCRAM_CREDENTIAL_RECORD", 0, {}),
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_bytes_and_the_tools_json_are_the_same_record(name):
    content, data, (kind, version, columns) = VECTORS[name]
    expected = MetadataRecord(kind, version, columns)
    assert read_metadata_record(b"\x01" + content) == expected
    printed = json.dumps({"type": kind, "version": version, "data": data}, separators=(",", ":")).encode()
    assert read_metadata_json(printed + b"\n") == expected


def test_every_cut_of_the_json_is_no_record():
    printed = b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"AAECAwQFBgcICQoLDA0ODw"}}'
    assert read_metadata_json(printed) is not None
    assert [end for end in range(len(printed)) if read_metadata_json(printed[:end]) is not None] == []


@pytest.mark.parametrize(
    "printed",
    [
        b"[]",
        b'"TOPIC_RECORD"',
        b'{"type":"TOPIC_RECORD","version":0}',
        b'{"type":"TOPIC_RECORD","version":0,"data":[]}',
        b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders"}}',
        b'{"type":"TOPIC_RECORD","version":0,"data":{"name":5,"topicId":"AAECAwQFBgcICQoLDA0ODw"}}',
        b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"short"}}',
        b'{"type":"TOPIC_RECORD","version":true,"data":{"name":"orders","topicId":"AAECAwQFBgcICQoLDA0ODw"}}',
        b'{"type":"TOPIC_RECORD","version":-1,"data":{}}',
        b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"\\ud800","topicId":"AAECAwQFBgcICQoLDA0ODw"}}',
        b'{"type":"\\udfff","version":0,"data":{}}',
        b'{"type":"TOPIC_RECORD","version":1,"data":{"name":"orders","topicId":"AAECAwQFBgcICQoLDA0ODw"}}',
        b'{"type":"PRODUCER_IDS_RECORD","version":0,"data":{"brokerId":3,"brokerEpoch":11,"nextProducerId":9223372036854775808}}',
        b'{"type":"FENCE_BROKER_RECORD","version":0,"data":{"id":2147483648,"epoch":11}}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_other_json_is_no_record(printed):
    assert read_metadata_json(printed) is None


def test_a_type_of_the_future_keeps_its_number_and_a_version_of_the_future_is_not_guessed():
    assert read_metadata_record(b"\x01\x1d\x00anything") == MetadataRecord("RECORD_TYPE_29", 0, {})
    assert read_metadata_json(b'{"type":"SOME_RECORD","version":3,"data":{"a":1}}') == MetadataRecord(
        "SOME_RECORD", 3, {}
    )
    with pytest.raises(CorruptRecordError, match="version 3 of PARTITION_RECORD is not known"):
        read_metadata_record(b"\x01\x03\x03" + int32(7))
    with pytest.raises(CorruptRecordError, match="frame version 0"):
        read_metadata_record(b"\x00\x02\x00")


@pytest.mark.parametrize("number", [2**15, 2**31, 2**35 - 1])
def test_a_type_and_a_version_are_numbers_of_16_bits(number):
    largest, larger = uvarint(2**15 - 1), uvarint(number)
    assert read_metadata_record(b"\x01" + largest + largest) == MetadataRecord("RECORD_TYPE_32767", 2**15 - 1, {})
    with pytest.raises(CorruptRecordError, match=f"byte 1: record type {number} is no int16"):
        read_metadata_record(b"\x01" + larger + b"\0")
    with pytest.raises(CorruptRecordError, match=f"byte 2: record version {number} is no int16"):
        read_metadata_record(b"\x01\x1d" + larger)


def test_a_list_cannot_promise_more_than_there_is():
    with pytest.raises(CorruptRecordError, match="past the end"):
        read_metadata_record(b"\x01\x03\x00" + int32(7) + ID + b"\xff\xff\xff\xff\x0f")


def test_a_tagged_field_is_exactly_as_long_as_it_says():
    with pytest.raises(CorruptRecordError, match="tagged field 1"):
        read_metadata_record(b"\x01\x05\x00" + int32(7) + ID + tags((1, int32(1) + b"\0")))


def test_a_number_alone_is_enough_for_types_without_columns():
    assert record_without_columns(28) == MetadataRecord("CLEAR_ELR_RECORD", None, {})
    assert record_without_columns(23) == MetadataRecord("BEGIN_TRANSACTION_RECORD", None, {})
    assert record_without_columns(99) == MetadataRecord("RECORD_TYPE_99", None, {})
    assert [number for number in RECORD_TYPES if record_without_columns(number) is None] == [
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        12,
        15,
        17,
    ]


def test_the_type_of_a_control_record_is_in_its_key():
    assert [read_control_record_type(b"\0\0" + n.to_bytes(2, "big")) for n in CONTROL_RECORD_TYPES] == [
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    ]
    assert read_control_record_type(b"\0\0\0\x63") == "CONTROL_RECORD_TYPE_99"
    with pytest.raises(CorruptRecordError):
        read_control_record_type(b"\0\0\0")
