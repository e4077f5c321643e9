"""`capture.json`: what the operator noted at capture time. Every field is optional.

Fields: cluster, kafka_version, captured_at_ms, coordinator_partitions, broker settings, leaders and replicas.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from txnlib.core.checkpoint_file import number
from txnlib.core.instants import LAST_INSTANT_MS
from txnlib.core.sentinels import MAX_COORDINATOR_PARTITIONS, MAX_INT16, MAX_INT32
from txnlib.errors import ConfigError, UnreadableInputError
from txnlib.readers import files

CAPTURE_JSON: Final = "capture.json"
#: What a capture.json may have: 100 000 partitions take 6 MB.
MOST_BYTES: Final = 16 << 20
DEFAULT_INSTANT: Final = "default"
#: Of what somebody noted, so much is repeated.
_SHOWN: Final = 40
_PARTITION: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}-([0-9]{1,10})")

#: Numbers are JSON's integers, as Kafka holds them: no text, no fraction, no `true`.
Instant = Annotated[int, Field(strict=True, ge=0, le=LAST_INSTANT_MS)]
BrokerId = Annotated[int, Field(strict=True, ge=0, le=MAX_INT32)]
_SCAN_INTERVAL: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"


def _without(text: str) -> dict[str, JsonValue]:
    """What an audit does where a field is not noted: docs/configuration.md is rendered from it."""
    return {"without": text}


class PartitionNotes(BaseModel):
    """What is noted of one partition."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    leader: int | None = Field(
        default=None,
        strict=True,
        ge=-1,
        le=MAX_INT32,
        description="Id of the broker that leads it; -1: none does.",
        json_schema_extra=_without(
            "Of several undamaged copies that of the newest leader epoch, then the longest; no abort is safe."
        ),
    )
    replicas: list[BrokerId] = Field(
        default_factory=list,
        description="Ids of the brokers that have it.",
        json_schema_extra=_without("A partition that was not captured is never known to be gone."),
    )


class CaptureNotes(BaseModel):
    """The content of `capture.json`; fields this version does not know are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cluster: str | None = Field(
        default=None,
        description="Name of the cluster. Inputs that name different ones are refused.",
        json_schema_extra=_without("The name of the first input's folder."),
    )
    kafka_version: str | None = Field(
        default=None,
        description="Version of the brokers: it rules out causes that are fixed there, and decides which commands exist.",
        json_schema_extra=_without(
            "No cause is ruled out; both forms of a command are given; an epoch one ahead of its coordinator is `UNKNOWN`."
        ),
    )
    captured_at_ms: dict[str, Instant] = Field(
        default_factory=dict,
        description="When each folder was copied, epoch ms: `default` for all, `<broker>/<folder>` for one, "
        "`<broker>/first/<folder>` for a copy that lies in such a folder. The newest one is `as_of`, unless `--as-of` is given.",
        json_schema_extra=_without(
            "Each copy counts as taken at its newest broker-stamped record, the newest of which is `as_of`; the report says so, "
            "and more is `UNKNOWN` (`CAPTURE_SKEW`)."
        ),
    )
    coordinator_partitions: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_COORDINATOR_PARTITIONS,
        description="Partitions of `__transaction_state`.",
        json_schema_extra=_without(
            "50, unless the captured ids refute that; then what they allow, and nothing that leans on it is safe."
        ),
    )
    transaction_max_timeout_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="The brokers' `transaction.max.timeout.ms`.",
        json_schema_extra=_without("Kafka's default."),
    )
    transactional_id_expiration_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="The brokers' `transactional.id.expiration.ms`. Noted for the record: nothing is decided by it.",
        json_schema_extra=_without("Nothing changes."),
    )
    producer_id_expiration_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="The brokers' `producer.id.expiration.ms`.",
        json_schema_extra=_without("Kafka's default."),
    )
    transaction_version: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT16,
        description="Finalized level of the feature `transaction.version`: coordinators abort by it.",
        json_schema_extra=_without("What the clients' records show; from Kafka 4.2 on an epoch one ahead may be `UNKNOWN`."),
    )
    dump_tool_version: str | None = Field(
        default=None,
        description="Version of the tool that printed the text. Noted for the record: text tells its generation itself.",
        json_schema_extra=_without("Nothing changes."),
    )
    broker_settings: dict[str, str] = Field(
        default_factory=dict,
        description=f"Settings of a broker, by Kafka's names. Of them `{_SCAN_INTERVAL}` is used.",
        json_schema_extra=_without("Kafka's default."),
    )
    partitions: dict[str, PartitionNotes] = Field(
        default_factory=dict,
        description="`<topic>-<partition>` to what is noted of it. One of which there is no copy is `MISSING` in `coverage`.",
        json_schema_extra=_without(
            "Leaders are not known, and only `__transaction_state` and what its records list is known to be missing."
        ),
    )

    @field_validator("broker_settings")
    @classmethod
    def _check_interval(cls, noted: dict[str, str]) -> dict[str, str]:
        if _SCAN_INTERVAL in noted and _milliseconds(noted[_SCAN_INTERVAL]) is None:
            raise ValueError(f"{_SCAN_INTERVAL} is no number of milliseconds from 0 to {MAX_INT32}")
        return noted

    @field_validator("partitions")
    @classmethod
    def _check_names(cls, noted: dict[str, PartitionNotes]) -> dict[str, PartitionNotes]:
        for name in noted:
            match = _PARTITION.fullmatch(name)
            if match is None or int(match[1]) > MAX_INT32:
                raise ValueError(f"{name[:_SHOWN]!r} is no <topic>-<partition>")
        return noted

    def captured_at(self, broker: str | None, folder: str) -> int | None:
        """Instant (ms) at which a partition's folder was copied from a broker."""
        noted = None if broker is None else self.captured_at_ms.get(f"{broker}/{folder}")
        return self.captured_at_ms.get(DEFAULT_INSTANT) if noted is None else noted

    @property
    def newest_instant_ms(self) -> int | None:
        return max(self.captured_at_ms.values(), default=None)

    @property
    def timeout_scan_interval_ms(self) -> int | None:
        """The broker's `transaction.abort.timed.out.transaction.cleanup.interval.ms`, where it was noted."""
        return _milliseconds(self.broker_settings.get(_SCAN_INTERVAL, ""))


def _milliseconds(noted: str) -> int | None:
    return number(noted.encode(errors="replace"), MAX_INT32)


def read_capture_notes(path: str) -> CaptureNotes:
    """The notes in one `capture.json`. Raises ConfigError naming file and field, UnreadableInputError if it cannot be opened."""
    try:
        return CaptureNotes.model_validate_json(files.read_all(path, MOST_BYTES))
    except OSError as error:
        raise UnreadableInputError(path, f"cannot be opened: {error.strerror or error}", "Make it readable or remove it") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(path, key, f"{first['msg']}; correct it or remove the file") from error
