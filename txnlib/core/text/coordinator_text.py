"""Decoded text of coordinator and metadata records, as Kafka's tools print it.

Up to 4.0 the transactional id is printed unescaped between a label and a payload, so it may contain anything, including
line feeds and imitated payloads. The printed key size determines where it ends. From 4.1 key and payload are JSON
(docs/rules/formats.md#transactional-ids-in-dumps).
Kafka: `TransactionLog.TransactionLogMessageFormatter`, `TransactionLogMessageParser`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from txnlib.core.kafka.constants import MetadataType
from txnlib.core.kafka.metadata_records import (
    CONTROL_RECORD_TYPES,
    MetadataRecord,
    read_metadata_json,
    record_without_columns,
)
from txnlib.core.kafka.transaction_log import VALUE, TransactionLogEntry, entry_of
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, TransactionState
from txnlib.core.kafka.wire import optional
from txnlib.core.rows import TopicPartition
from txnlib.core.text.dump_lines import PAYLOAD
from txnlib.core.text.lines import UnreadableReason
from txnlib.core.text.printed import TransactionLogText

ID_LABEL: Final = b"transaction_metadata::transactionalId="
_JSON_KEY: Final = b'{"type":'
#: Beginnings of what decoders print for a key or value that they cannot decode, or whose version they do not know.
UNDECODED: Final = (b"unknown::version=", b"Unknown record type ", b"Error at offset ")
DECODED: Final = (ID_LABEL, _JSON_KEY, *UNDECODED)

_DELETE: Final = b"<DELETE>"
#: On disk, a version and the id's length, two bytes each, precede the id in the key.
KEY_OVERHEAD: Final = 4
_VALUE: Final = re.compile(
    rb"producerId:(?P<producer_id>-?\d{1,19}),producerEpoch:(?P<producer_epoch>-?\d{1,19}),state=(?P<state>[A-Za-z]+),"
    rb"partitions=\[(?P<partitions>[A-Za-z0-9._,-]*)\],txnLastUpdateTimestamp=(?P<last_update_timestamp_ms>-?\d{1,19}),"
    rb"txnTimeoutMs=(?P<transaction_timeout_ms>-?\d{1,19})"
)
_JSON: Final = JSONDecoder()


#: Number in a printed value -> its range on disk.
_RANGES: Final = {
    "producer_id": range(-(2**63), 2**63),
    "producer_epoch": range(-(2**15), 2**15),
    "transaction_timeout_ms": range(-(2**31), 2**31),
    "last_update_timestamp_ms": range(-(2**63), 2**63),
    "start_timestamp_ms": range(-(2**63), 2**63),
}
#: Maximum number of digits of a partition.
_MOST_DIGITS: Final = 10


def reason_of_undecoded(text: bytes) -> UnreadableReason:
    """Why a tool could not decode a coordinator record, according to its text in place of the key.

    Source: docs/rules/formats.md#coordinator-records-in-dumps.
    """
    if text.startswith(UNDECODED[:2]):
        return UnreadableReason.UNKNOWN_KEY_VERSION
    if b"Found an unknown record version " in text:
        return UnreadableReason.UNKNOWN_VALUE_VERSION
    return UnreadableReason.UNDECODABLE_RECORD


def read_transaction_log_text(text: bytes, key_size: int | None) -> TransactionLogText | None:
    """The record in a text from after `key: ` to before the line end; None if the text is not (yet) a complete record.

    `key_size` None: the text shows no sizes, or they do not match; then the last payload in the text counts.
    """
    if text.startswith(_JSON_KEY):
        return _read_json(text)
    rest = text.removeprefix(ID_LABEL)
    end = rest.rfind(PAYLOAD) if key_size is None else key_size - KEY_OVERHEAD
    if len(rest) == len(text) or end <= 0 or not rest.startswith(PAYLOAD, end):
        return None
    transactional_id = rest[:end].decode(errors="replace")
    value = rest[end + len(PAYLOAD) :]
    if value == _DELETE:
        return TransactionLogText(transactional_id, None)
    match = _VALUE.fullmatch(value)
    entry = None if match is None else read_printed_value(transactional_id, match.groupdict())
    return None if entry is None else TransactionLogText(transactional_id, entry)


def shortest_text(key_size: int) -> int:
    """The minimum length of a text, from after `key: `, with a complete payload."""
    return len(ID_LABEL) + key_size - KEY_OVERHEAD + len(PAYLOAD + _DELETE)


def read_printed_value(transactional_id: str, printed: Mapping[str, bytes]) -> TransactionLogEntry | None:
    """The entry with these printed fields; None if a field on disk cannot have one of the values.

    `printed`: numbers by their fields in `TransactionLogEntry`; the name `state`; `partitions` without the brackets of
    the set. Kafka: `TransactionMetadata.toString`, `TransactionLog`.
    """
    numbers = {name: int(text) for name, text in printed.items() if name not in ("state", "partitions")}
    state = BY_KAFKA_NAME.get(printed["state"].decode())
    partitions = []
    for name in printed["partitions"].decode().split(",") if printed["partitions"] else ():
        topic, _, partition = name.strip().rpartition("-")
        # Python may refuse to convert longer ones.
        if not topic or not partition.isdecimal() or len(partition) > _MOST_DIGITS or int(partition) >= 2**31:
            return None
        partitions.append(TopicPartition(topic, int(partition)))
    # The text prints null as an empty list; on disk the list is null exactly for Empty.
    listed = tuple(partitions) if partitions or state is not TransactionState.EMPTY else None
    if state is None or any(number not in _RANGES[name] for name, number in numbers.items()):
        return None
    columns: dict[str, Any] = {"start_timestamp_ms": None}
    columns |= {
        name: number if name == "transaction_timeout_ms" else optional(number) for name, number in numbers.items()
    }
    return TransactionLogEntry(
        transactional_id=transactional_id,
        transaction_state=state,
        transaction_partitions=listed,
        client_transaction_version=None,
        **columns,
    )


def _read_json(text: bytes) -> TransactionLogText | None:
    line = text.decode(errors="replace")
    try:
        key, end = _JSON.raw_decode(line)
        payload = line[end:]
        # JSON can contain an escaped unpaired surrogate, but UTF-8 cannot.
        transactional_id = key["data"]["transactionalId"].encode(errors="replace").decode()
        if payload == (PAYLOAD + _DELETE).decode():
            return TransactionLogText(transactional_id, None)
        if not payload.startswith(PAYLOAD.decode()):
            return None
        value, end = _JSON.raw_decode(payload, len(PAYLOAD))
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
    state = (
        BY_KAFKA_NAME.get(status)
        if isinstance(status, str) and not status.isdecimal()
        else TransactionState(int(status))
    )
    if state is None or type(version) is not int:
        return None
    fields = VALUE.read_json(version, {**data, "transactionStatus": int(state)})
    return entry_of(transactional_id, version, fields) if fields else None


# ---- Records of `__cluster_metadata`, as Kafka's dump tool prints them


#: Beginnings of the contents of a record that the tool decoded, or tried to decode.
METADATA_PAYLOADS: Final = (PAYLOAD + b'{"type":', PAYLOAD + b"Error at ")
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
_CONTROL_NUMBER: Final = re.compile(rb"^ controlType: \w+\((\d{1,5})\)\s")


def read_metadata_text(contents: bytes, *, is_control: bool) -> MetadataRecord | None:
    """The record in the contents of a record line; None if the tool could not decode it, or if the line is broken or
    cut.

    A tool that is older than the brokers names the number of a type that it does not know. That suffices for a type
    without columns.
    """
    number = (_CONTROL_NUMBER if is_control else _UNKNOWN_TYPE).search(contents)
    if is_control:
        if number is not None:
            return MetadataRecord(
                CONTROL_RECORD_TYPES.get(int(number[1]), f"CONTROL_RECORD_TYPE_{int(number[1])}"), None, {}
            )
        name = next((name for label, name in CONTROL_LABELS.items() if contents.startswith(label)), None)
        return None if name is None else MetadataRecord(name, None, {})
    if number is not None and contents.endswith(b"\n"):
        return record_without_columns(int(number[1]))
    return read_metadata_json(contents.removeprefix(PAYLOAD))
