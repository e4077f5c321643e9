"""Records of `__cluster_metadata`, as Kafka's dump tool prints them.

Kafka: `kafka-dump-log.sh --cluster-metadata-decoder`, `DumpLogSegments.ClusterMetadataLogMessageParser`. The tool prints a record
that it cannot decode as an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from txnlib.core.kafka.metadata_records import (
    CONTROL_RECORD_TYPES,
    MetadataRecord,
    MetadataType,
    read_metadata_json,
    record_without_columns,
)

_PAYLOAD: Final = b" payload: "
#: Beginnings of the contents of a record that the tool decoded, or tried to decode.
METADATA_PAYLOADS: Final = (_PAYLOAD + b'{"type":', _PAYLOAD + b"Error at ")
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
    return read_metadata_json(contents.removeprefix(_PAYLOAD))


def read_metadata_control(contents: bytes) -> MetadataRecord | None:
    """The control record in the contents of a record line; None if the tool does not print its type."""
    number = _CONTROL_NUMBER.match(contents)
    if number is not None:
        return MetadataRecord(CONTROL_RECORD_TYPES.get(int(number[1]), f"CONTROL_RECORD_TYPE_{int(number[1])}"), None, {})
    name = next((name for label, name in CONTROL_LABELS.items() if contents.startswith(label)), None)
    return None if name is None else MetadataRecord(name, None, {})
