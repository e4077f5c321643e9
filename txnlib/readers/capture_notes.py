"""`capture.json`: the operator's notes of the capture. Every field is optional.

Fields: cluster, kafka_version, captured_at_ms, coordinator_partitions, broker settings, leaders and replicas.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator

from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.instants import LAST_INSTANT_MS
from txnlib.core.kafka.constants import MAX_INT16, MAX_INT32, MAX_INT64
from txnlib.core.kafka.log_dir_files import number
from txnlib.errors import ConfigError, UnreadableInputError, UsageError
from txnlib.readers.storage import files
from txnlib.settings import BROKER_SETTINGS, SETTINGS

CAPTURE_JSON: Final = "capture.json"
#: Largest capture.json that is read, in bytes: 100 000 partitions take 25 MB.
MOST_BYTES: Final = 64 << 20
DEFAULT_INSTANT: Final = "default"
#: Maximum number of characters of a value in an error message.
_SHOWN: Final = 40
_PARTITION: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}-([0-9]{1,10})")

#: Numbers are JSON integers in Kafka's ranges: no text, no fraction, no `true`.
Instant = Annotated[int, Field(strict=True, ge=0, le=LAST_INSTANT_MS)]
Offset = Annotated[int, Field(strict=True, ge=0, le=MAX_INT64)]
BrokerId = Annotated[int, Field(strict=True, ge=0, le=MAX_INT32)]
_SCAN_INTERVAL: Final = BROKER_SETTINGS["timeout_scan_interval_ms"]


def _field(default: Any, description: str, without: str, **limits: Any) -> Any:
    """A field, with its default or what makes it. `without`: what an audit does without it (docs/configuration.md)."""
    made = {"default_factory" if callable(default) else "default": default}
    return Field(**made, description=description, json_schema_extra={"without": without}, **limits)


class PartitionNotes(BaseModel):
    """The notes on one partition."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    leader: int | None = _field(
        None,
        "Broker that leads the partition; -1 if none does.",
        "The leader in the metadata log. Else the undamaged copy with the newest leader epoch, then the longest, is"
        " judged, and no abort is safe.",
        strict=True,
        ge=-1,
        le=MAX_INT32,
    )
    replicas: list[BrokerId] = _field(
        list,
        "Brokers that have a replica.",
        "The replicas in the metadata log. Else a partition that was not captured cannot be proven deleted.",
    )
    leader_epoch: int | None = _field(
        None,
        "Leader epoch of the partition, as its brokers know it.",
        "Only the leader-epoch-checkpoint, or the metadata log, shows that no leader followed that could have lost a"
        " marker.",
        strict=True,
        ge=0,
        le=MAX_INT32,
    )
    log_start_offset: Offset | None = _field(
        None,
        "Log start offset, as the leader answered it.",
        "The checkpoint of log start offsets, else the base offset of the first segment.",
    )
    high_watermark: Offset | None = _field(
        None, "High watermark, as the leader answered it.", "The checkpoint of high watermarks."
    )
    last_stable_offset: Offset | None = _field(
        None,
        "Last stable offset that the leader answered: nothing below it was open.",
        "What is open is known from the log alone.",
    )
    high_watermark_before: Offset | None = _field(
        None,
        "High watermark that it answered just before: if the last stable offset is lower, something was open.",
        "`high_watermark` is compared.",
    )
    answered_at_ms: Instant | None = _field(
        None,
        "When the leader was asked for the last stable offset, in epoch ms.",
        "The answers of the leader are not used.",
    )
    fetched_from: Offset | None = _field(
        None,
        "First offset, if the copy was fetched from there on by choice (`txn-audit capture --scope open`).",
        "A copy begins where its log began.",
    )


_Settings = create_model(
    "_Settings",
    **{
        name: each.field(description=each.noted, json_schema_extra={"without": each.without})
        for name, each in SETTINGS.items()
        if each.noted
    },
)


class CaptureNotes(_Settings):  # type: ignore[misc, valid-type]
    """The content of `capture.json`: the settings that it can give, and these fields. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cluster_id: str | None = _field(
        None,
        "Id of the cluster. Inputs with different ids are refused.",
        "The ids in `meta.properties` alone show that inputs are of different clusters.",
    )
    kafka_version: str | None = _field(
        None,
        "Version of the brokers. It rules out causes that it fixed, and decides the form of commands.",
        "No cause is ruled out, both forms of a command are printed, and an epoch one ahead of its coordinator is"
        " `UNKNOWN`.",
    )
    captured_at_ms: dict[str, Instant] = _field(
        dict,
        "When folders were copied, in epoch ms: `default` for all, `<broker>/<folder>` for one,"
        " `<broker>/first/<folder>` for a first copy. The newest is `as_of`, unless `--as-of` is given.",
        "The instant of `--captured-at`. Else each copy counts as taken at its newest broker-stamped record, and the"
        " newest of these is `as_of`. More transactions are `UNKNOWN` (`CAPTURE_SKEW`).",
    )
    transaction_version: int | None = _field(
        None,
        "Finalized level of the feature `transaction.version`, which decides how coordinators abort.",
        "The level in the metadata log. Else that of clients' records, and from Kafka 4.2 on, an epoch that is one"
        " ahead may be `UNKNOWN`.",
        strict=True,
        ge=0,
        le=MAX_INT16,
    )
    dump_tool_version: str | None = _field(
        None, "Version of the tool that printed the text. Not used.", "Nothing changes."
    )
    broker_settings: dict[str, str] = _field(
        dict,
        f"Settings of a broker, by Kafka's names. Only `{_SCAN_INTERVAL}` is used.",
        f"Kafka's default, `{SETTINGS['timeout_scan_interval_ms'].default:_}`.",
    )
    partitions: dict[str, PartitionNotes] = _field(
        dict,
        "Notes by `<topic>-<partition>`. A partition without a copy is `MISSING` in `coverage`.",
        "The partitions in the metadata log. Else leaders are unknown, and only partitions of `__transaction_state`,"
        " and those that its records list, can be `MISSING`.",
    )

    @field_validator("broker_settings")
    @classmethod
    def _check_interval(cls, noted: dict[str, str]) -> dict[str, str]:
        if _SCAN_INTERVAL in noted and _milliseconds(noted[_SCAN_INTERVAL]) is None:
            raise ValueError(f"{_SCAN_INTERVAL} is not a number of milliseconds from 0 to {MAX_INT32}")
        return noted

    @field_validator("partitions")
    @classmethod
    def _check_names(cls, noted: dict[str, PartitionNotes]) -> dict[str, PartitionNotes]:
        for name in noted:
            match = _PARTITION.fullmatch(name)
            if match is None or int(match[1]) > MAX_INT32:
                raise ValueError(f"{name[:_SHOWN]!r} is not a <topic>-<partition>")
        return noted

    @property
    def instants(self) -> CaptureInstants:
        """When each folder was copied."""
        named = {name: ms for name, ms in self.captured_at_ms.items() if name != DEFAULT_INSTANT}
        return CaptureInstants(self.captured_at_ms.get(DEFAULT_INSTANT), named)

    def for_others(self, captured_at_ms: int | None) -> CaptureNotes:
        """The notes with this instant for the copies that have none."""
        if captured_at_ms is None:
            return self
        instants = {DEFAULT_INSTANT: captured_at_ms, **self.captured_at_ms}
        notes: CaptureNotes = self.model_copy(update={"captured_at_ms": instants})
        return notes

    @property
    def timeout_scan_interval_ms(self) -> int | None:
        """The broker's `transaction.abort.timed.out.transaction.cleanup.interval.ms`, in ms; None if not noted."""
        return _milliseconds(self.broker_settings.get(_SCAN_INTERVAL, ""))


def _milliseconds(noted: str) -> int | None:
    return number(noted.encode(errors="replace"), MAX_INT32)


def read_capture_notes(path: str) -> CaptureNotes:
    """The notes in one `capture.json`. Raises ConfigError, which names file and field, or UnreadableInputError."""
    try:
        notes: CaptureNotes = CaptureNotes.model_validate_json(files.read_all(path, MOST_BYTES))
    except OSError as error:
        raise UnreadableInputError(
            path, f"cannot be opened: {error.strerror or error}", "Make it readable or remove it"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(path, key, f"{first['msg']}; correct it or remove the file") from error
    return notes


def merge_notes(notes: list[CaptureNotes]) -> CaptureNotes:
    """One set of notes; several inputs of one cluster may each have their own."""
    clusters = {note.cluster for note in notes if note.cluster is not None}
    if len(clusters) > 1:
        raise UsageError(
            f"the inputs belong to different clusters ({', '.join(sorted(clusters))}): audit one at a time"
        )
    merged: dict[str, object] = {}
    for note in notes:
        for name, value in note.model_dump(exclude_unset=True).items():
            earlier = merged.get(name)
            merged[name] = {**earlier, **value} if isinstance(earlier, dict) and isinstance(value, dict) else value
    together: CaptureNotes = CaptureNotes.model_validate(merged)
    return together
