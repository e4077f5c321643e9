"""Decoded text of a `__transaction_state` record: `--transaction-log-decoder`, of every version.

Up to 4.0 the transactional id is printed unescaped between a label and a payload, so it may contain anything, including line feeds
and imitated payloads. The printed key size determines where it ends. From 4.1 key and payload are JSON
(docs/rules/formats.md#transactional-ids-in-dumps).
Kafka: `TransactionLog.TransactionLogMessageFormatter`, `TransactionLogMessageParser`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NamedTuple

from txnlib.core.kafka.metadata_records import (
    CONTROL_RECORD_TYPES,
    MetadataRecord,
    MetadataType,
    read_metadata_json,
    record_without_columns,
)
from txnlib.core.kafka.transaction_log import VALUE, TopicPartition, TransactionLogEntry, entry_of
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, TransactionState
from txnlib.core.kafka.wire import optional


class TransactionLogText(NamedTuple):
    """A transactional id and its entry; None for a tombstone."""

    transactional_id: str
    entry: TransactionLogEntry | None


#: Labels before a transactional id: from 2.4.1, and earlier.
ID_LABELS: Final = (b"transaction_metadata::transactionalId=", b"transactionalId=")
_JSON_KEY: Final = b'{"type":'
#: Beginnings of what decoders print for a key or value that they cannot decode, or whose version they do not know.
UNDECODED: Final = (b"unknown::version=", b"Unknown record type ", b"Error at offset ")
DECODED: Final = (*ID_LABELS, _JSON_KEY, *UNDECODED)

_PAYLOAD_LABEL: Final = b" payload: "
_DELETE: Final = b"<DELETE>"
#: On disk, a version and the id's length, two bytes each, precede the id in the key.
_KEY_OVERHEAD: Final = 4

#: Scala prints a set as `Set(a, b)`, `HashSet(a, b)` or, in 2.5, where Kafka formats the set, `[a,b]`.
_PAYLOAD: Final = re.compile(
    rb"producerId:(?P<producer_id>-?\d{1,19}),producerEpoch:(?P<producer_epoch>-?\d{1,19}),state=(?P<state>[A-Za-z]+),"
    rb"partitions=(?:\[|[A-Za-z]*\()(?P<partitions>[A-Za-z0-9._, -]*)[\])],txnLastUpdateTimestamp=(?P<last_update>-?\d{1,19}),"
    rb"txnTimeoutMs=(?P<timeout>-?\d{1,19})"
)
_JSON: Final = JSONDecoder()
#: Maximum number of digits of a partition.
_MOST_DIGITS: Final = 10


def read_transaction_log_text(text: bytes, key_size: int | None) -> TransactionLogText | None:
    """The record in a text from after `key: ` to before the line end; None if the text is not (yet) a complete record.

    `key_size` None: the text shows no sizes, or they do not match; then the last payload in the text counts.
    """
    if text.startswith(_JSON_KEY):
        return _read_json(text)
    label = next((label for label in ID_LABELS if text.startswith(label)), None)
    if label is None:
        return None
    rest = text[len(label) :]
    end = rest.rfind(_PAYLOAD_LABEL) if key_size is None else key_size - _KEY_OVERHEAD
    if end <= 0 or not rest.startswith(_PAYLOAD_LABEL, end):
        return None
    transactional_id = rest[:end].decode(errors="replace")
    payload = rest[end + len(_PAYLOAD_LABEL) :]
    if payload == _DELETE:
        return TransactionLogText(transactional_id, None)
    entry = _read_payload(transactional_id, payload)
    return None if entry is None else TransactionLogText(transactional_id, entry)


def shortest_text(text: bytes, key_size: int) -> int:
    """The minimum length of a text, from after `key: `, with a complete payload."""
    label = next((label for label in ID_LABELS if text.startswith(label)), b"")
    return len(label) + key_size - _KEY_OVERHEAD + len(_PAYLOAD_LABEL + _DELETE)


def _read_payload(transactional_id: str, payload: bytes) -> TransactionLogEntry | None:
    match = _PAYLOAD.fullmatch(payload)
    return None if match is None else read_printed_value(transactional_id, match.groupdict())


def read_printed_value(transactional_id: str, printed: Mapping[str, bytes]) -> TransactionLogEntry | None:
    """The entry with these printed fields; None if a field on disk cannot have one of the values.

    `printed`: the numbers `producer_id`, `producer_epoch`, `last_update`, `timeout` and, if printed, `start`; the name `state`;
    `partitions` without the brackets of the set. Kafka: `TransactionMetadata.toString`, `TransactionLog`.
    """
    state = BY_KAFKA_NAME.get(printed["state"].decode())
    start = printed.get("start")
    numbers = _numbers(
        (int(printed["producer_id"]), 63),
        (int(printed["producer_epoch"]), 15),
        (int(printed["last_update"]), 63),
        (int(printed["timeout"]), 31),
        (int(start or 0), 63),
    )
    listed = _read_partition_names(printed["partitions"])
    if state is None or numbers is None or listed is None:
        return None
    return TransactionLogEntry(
        transactional_id=transactional_id,
        producer_id=optional(numbers[0]),
        producer_epoch=optional(numbers[1]),
        transaction_timeout_ms=numbers[3],
        transaction_state=state,
        # The text prints null as an empty list; on disk the list is null exactly for Empty.
        transaction_partitions=listed if listed or state is not TransactionState.EMPTY else None,
        last_update_timestamp_ms=optional(numbers[2]),
        start_timestamp_ms=None if start is None else optional(numbers[4]),
        client_transaction_version=None,
    )


def _read_partition_names(text: bytes) -> tuple[TopicPartition, ...] | None:
    partitions = []
    for name in text.decode().split(",") if text else ():
        topic, _, partition = name.strip().rpartition("-")
        # Python may refuse to convert longer ones.
        if not topic or not partition.isdecimal() or len(partition) > _MOST_DIGITS or int(partition) >= 2**31:
            return None
        partitions.append(TopicPartition(topic, int(partition)))
    return tuple(partitions)


def _read_json(text: bytes) -> TransactionLogText | None:
    line = text.decode(errors="replace")
    try:
        key, end = _JSON.raw_decode(line)
        payload = line[end:]
        # JSON can contain an escaped unpaired surrogate, but UTF-8 cannot.
        transactional_id = key["data"]["transactionalId"].encode(errors="replace").decode()
        if payload == (_PAYLOAD_LABEL + _DELETE).decode():
            return TransactionLogText(transactional_id, None)
        if not payload.startswith(_PAYLOAD_LABEL.decode()):
            return None
        value, end = _JSON.raw_decode(payload, len(_PAYLOAD_LABEL))
        if end != len(payload):
            return None
        entry = read_json_value(transactional_id, int(value["version"]), value["data"])
    except (JSONDecodeError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    return None if entry is None else TransactionLogText(transactional_id, entry)


def read_json_value(transactional_id: str, version: int, data: Mapping[str, Any]) -> TransactionLogEntry | None:
    """The entry with the `data` of a value; None if a field is missing or cannot be on disk.

    Raises KeyError, TypeError or ValueError if there is no status, or none that Kafka knows.
    Kafka: `TransactionLogValueJsonConverter.write`.
    """
    status = data["transactionStatus"]
    state = BY_KAFKA_NAME.get(status) if isinstance(status, str) and not status.isdecimal() else TransactionState(int(status))
    if state is None or type(version) is not int:
        return None
    fields = VALUE.read_json(version, {**data, "transactionStatus": int(state)})
    return entry_of(transactional_id, version, fields) if fields else None


def _numbers(*values_and_bits: tuple[int, int]) -> tuple[int, ...] | None:
    """The values; None if one is not an integer in the range of its field on disk."""
    for value, bits in values_and_bits:
        if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
            return None
    return tuple(value for value, _bits in values_and_bits)


# ---- Records of `__cluster_metadata`, as Kafka's dump tool prints them


_METADATA_PAYLOAD: Final = b" payload: "
#: Beginnings of the contents of a record that the tool decoded, or tried to decode.
METADATA_PAYLOADS: Final = (_METADATA_PAYLOAD + b'{"type":', _METADATA_PAYLOAD + b"Error at ")
#: Label of a control record -> its type.
CONTROL_LABELS: Final[Mapping[bytes, str]] = {
    b" LeaderChange": MetadataType.LEADER_CHANGE,
    b" SnapshotHeader": MetadataType.SNAPSHOT_HEADER,
    b" SnapshotFooter": MetadataType.SNAPSHOT_FOOTER,
    b" KRaftVersion": "KRAFT_VERSION",
    b" KRaftVoters": "KRAFT_VOTERS",
}

#: A record of a type that the tool does not know, and a control record of which it prints the number.
_UNKNOWN_TYPE: Final = re.compile(rb"^ payload: Error at \d+, skipping\..* Unknown metadata id (\d{1,5})\s*$")
_CONTROL_NUMBER: Final = re.compile(rb" controlType: \w+\((\d{1,5})\)\s")


def read_metadata_text(contents: bytes, *, is_control: bool) -> MetadataRecord | None:
    """The record in the contents of a record line; None if the line does not show it."""
    return read_metadata_control(contents) if is_control else read_metadata_payload(contents)


def read_metadata_payload(contents: bytes) -> MetadataRecord | None:
    """The record in the contents of a record line; None if the tool could not decode it, or if the line is broken or cut.

    A tool that is older than the brokers names the number of a type that it does not know. That suffices for a type without
    columns.
    """
    unknown = _UNKNOWN_TYPE.search(contents)
    if unknown is not None and contents.endswith(b"\n"):
        return record_without_columns(int(unknown[1]))
    return read_metadata_json(contents.removeprefix(_METADATA_PAYLOAD))


def read_metadata_control(contents: bytes) -> MetadataRecord | None:
    """The control record in the contents of a record line; None if the tool does not print its type."""
    number = _CONTROL_NUMBER.match(contents)
    if number is not None:
        return MetadataRecord(CONTROL_RECORD_TYPES.get(int(number[1]), f"CONTROL_RECORD_TYPE_{int(number[1])}"), None, {})
    name = next((name for label, name in CONTROL_LABELS.items() if contents.startswith(label)), None)
    return None if name is None else MetadataRecord(name, None, {})
