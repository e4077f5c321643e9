"""`cluster_settings`: dynamic settings and feature levels, from when to when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.metadata.changes import MetadataChange, ValidState, in_order, with_validity

TYPES: Final = (MetadataType.FEATURE_LEVEL, MetadataType.CONFIG, MetadataType.TOPIC, MetadataType.REMOVE_TOPIC)


@dataclass(frozen=True, slots=True)
class SettingRecord(MetadataChange):
    """A row of `metadata_log`."""

    name: str | None = None
    topic_id: str | None = None
    feature_level: int | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class SettingRow(ValidState):
    """A row of `cluster_settings`."""

    scope: str | None
    scope_name: str | None
    name: str | None
    value: str


#: Scope, name of the topic, broker or group, and name of the setting.
_Key = tuple[str | None, str | None, str | None]


def cluster_settings(metadata_log: Sequence[SettingRecord]) -> Iterator[SettingRow]:
    """A row for each setting and value of it.

    Removing a topic removes its settings. Kafka: `ConfigurationControlManager.replay`, `FeatureControlManager.replay`.
    """
    topics = {each.topic_id: each.name for each in metadata_log if each.type == MetadataType.TOPIC}
    values: dict[_Key, list[tuple[SettingRecord, str | None]]] = {}
    of_topic: dict[str | None, list[_Key]] = {}
    for record in in_order(metadata_log):
        if record.type == MetadataType.REMOVE_TOPIC:
            for key in of_topic.get(topics.get(record.topic_id), ()):
                _set(values[key], record, None)
        elif record.type != MetadataType.TOPIC:
            key, value = _key_and_value(record)
            if key not in values:
                values[key] = []
                if key[0] == "TOPIC" and key[1] is not None:
                    of_topic.setdefault(key[1], []).append(key)
            _set(values[key], record, value)
    for (scope, scope_name, name), changes in values.items():
        for _, value, validity in with_validity(changes):
            if value is not None:
                yield SettingRow(*validity, scope, scope_name, name, value)


def _key_and_value(record: SettingRecord) -> tuple[_Key, str | None]:
    if record.type == MetadataType.FEATURE_LEVEL:
        return ("FEATURE", None, record.name), None if record.feature_level is None else str(record.feature_level)
    return (record.resource_type, record.resource_name or None, record.name), record.value


def _set(changes: list[tuple[SettingRecord, str | None]], record: SettingRecord, value: str | None) -> None:
    """Adds a value, unless it is that of before."""
    if value != (changes[-1][1] if changes else None):
        changes.append((record, value))
