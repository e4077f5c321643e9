"""What did the operator note at capture time? `capture.json`: every field is optional.

Fields: cluster, kafka_version, captured_at_ms, coordinator_partitions, broker settings, leaders and replicas.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from txnlib.errors import ConfigError, UnreadableInputError
from txnlib.readers import files

CAPTURE_JSON: Final = "capture.json"
DEFAULT_INSTANT: Final = "default"


class PartitionNotes(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    leader: int | None = None
    replicas: list[int] = Field(default_factory=list)


class CaptureNotes(BaseModel):
    """The content of `capture.json`; fields this version does not know are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cluster: str | None = None
    kafka_version: str | None = None
    captured_at_ms: dict[str, int] = Field(default_factory=dict)
    coordinator_partitions: int | None = Field(default=None, ge=1)
    transaction_max_timeout_ms: int | None = Field(default=None, ge=0)
    transactional_id_expiration_ms: int | None = Field(default=None, ge=0)
    producer_id_expiration_ms: int | None = Field(default=None, ge=0)
    transaction_version: int | None = None
    dump_tool_version: str | None = None
    broker_settings: dict[str, str] = Field(default_factory=dict)
    partitions: dict[str, PartitionNotes] = Field(default_factory=dict)

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
        noted = self.broker_settings.get("transaction.abort.timed.out.transaction.cleanup.interval.ms", "")
        return int(noted) if noted.isdigit() else None


def read_capture_notes(path: str) -> CaptureNotes:
    """The notes in one `capture.json`. Raises ConfigError naming file and field, UnreadableInputError if it cannot be opened."""
    try:
        return CaptureNotes.model_validate_json(files.read_all(path))
    except OSError as error:
        raise UnreadableInputError(path, f"cannot be opened: {error.strerror or error}", "Make it readable or remove it") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(path, key, f"{first['msg']}; correct it or remove the file") from error
