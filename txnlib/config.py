"""With which settings does an audit run? Options over settings file over capture.json over Kafka's defaults.

A settings file is TOML; an unknown key, a wrong type or a value out of range is a ConfigError naming file and key.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from txnlib.core.application import compiled
from txnlib.errors import ConfigError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ThresholdSettings(_Section):
    """Limits to judge by; None: not set here."""

    max_transaction_timeout_minutes: int | None = Field(default=None, ge=0)
    transaction_max_timeout_ms: int | None = Field(default=None, ge=0)
    stuck_after_minutes: int | None = Field(default=None, ge=0)
    timeout_scan_interval_ms: int | None = Field(default=None, ge=0)
    clock_tolerance_ms: int | None = Field(default=None, ge=0)


class ClusterSettings(_Section):
    """What the brokers are set to, where capture.json does not say it."""

    name: str | None = Field(default=None, min_length=1)
    coordinator_partitions: int | None = Field(default=None, ge=1, le=100_000)
    producer_id_expiration_ms: int | None = Field(default=None, ge=1)


class ApplicationSettings(_Section):
    """How transactional ids tell their applications; see `core.application`."""

    patterns: tuple[str, ...] = ()

    @field_validator("patterns")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        compiled(patterns)
        return patterns


class SettingsFile(_Section):
    thresholds: ThresholdSettings = Field(default_factory=ThresholdSettings)
    cluster: ClusterSettings = Field(default_factory=ClusterSettings)
    applications: ApplicationSettings = Field(default_factory=ApplicationSettings)


class Settings(_Section):
    """The settings of one audit, all decided; `audit_runs.settings` keeps them as JSON."""

    cluster: str
    as_of_ms: int
    as_of_basis: str
    max_transaction_timeout_ms: int = 900_000
    transaction_max_timeout_ms: int = 900_000
    stuck_after_ms: int = 300_000
    timeout_scan_interval_ms: int = 10_000
    clock_tolerance_ms: int = 300_000
    producer_id_expiration_ms: int = 86_400_000
    coordinator_partitions: int = 50
    coordinator_partitions_basis: str = "Kafka's default"
    kafka_version: str | None = None
    application_patterns: tuple[str, ...] = ()
    #: Where reading began (`readers.start`), and the run whose rows were taken over; None: everything was read.
    start: str = "beginning"
    continues: str | None = None

    @property
    def run_id(self) -> str:
        """Names the run: auditing the same cluster as of the same instant again replaces it."""
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in self.cluster)
        return f"{name}-{self.as_of_ms}"


def read_settings_file(path: Path) -> SettingsFile:
    """The settings in a TOML file. Raises ConfigError naming the file, the key and what to do."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read ({error.strerror}); check --conf") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"is not TOML: {error}") from error
    try:
        return SettingsFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(str(path), key, f"unknown key; known are {', '.join(known_keys())}") from error
        raise ConfigError(str(path), key, first["msg"]) from error


def known_keys() -> list[str]:
    """Every key a settings file may hold."""
    sections: dict[str, Any] = {"thresholds": ThresholdSettings, "cluster": ClusterSettings, "applications": ApplicationSettings}
    return [f"{name}.{key}" for name, section in sections.items() for key in section.model_fields]
