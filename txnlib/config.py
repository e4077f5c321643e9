"""The settings of an audit: options over the settings file over `capture.json` over Kafka's defaults.

A settings file is TOML; an unknown key, a wrong type or a value out of range is a ConfigError naming file and key.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator
from pydantic.fields import FieldInfo

from txnlib.core.application import compiled
from txnlib.core.copies import CountBasis
from txnlib.core.sentinels import MAX_COORDINATOR_PARTITIONS, MAX_INT32
from txnlib.errors import ConfigError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _said(setting: str, *, option: str | None = None, capture_json: str | None = None) -> dict[str, JsonValue]:
    """The name in Settings of what a key decides, and who else says it: docs/configuration.md is rendered from it."""
    return {"setting": setting, "option": option, "capture_json": capture_json}


class ThresholdSettings(_Section):
    """Limits to judge by; None: not set here."""

    max_transaction_timeout_minutes: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="Age by its last write above which an open transaction that nobody will end is `HANGING`, and up to which it "
        "is `SUSPECT`; the age that brokers' clocks have to prove for `safe_to_abort`. As for `kafka-transactions.sh "
        "find-hanging`.",
        json_schema_extra=_said("max_transaction_timeout_ms", option="--max-transaction-timeout"),
    )
    transaction_max_timeout_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="The brokers' `transaction.max.timeout.ms`. Five minutes more, since the last write, make an expected "
        "transaction `LATE` and count in PartitionsWithLateTransactionsCount; a two-phase commit open for longer gets "
        "a place in `abort_plan`.",
        json_schema_extra=_said(
            "transaction_max_timeout_ms", option="--transaction-max-timeout-ms", capture_json="transaction_max_timeout_ms"
        ),
    )
    stuck_after_minutes: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="Age of a decision (PrepareCommit, PrepareAbort) above which a marker that has not come makes a transaction "
        "`STUCK` (`MARKER_OVERDUE`); until then it is `OPEN` (`MARKER_PENDING`).",
        json_schema_extra=_said("stuck_after_ms", option="--stuck-after"),
    )
    timeout_scan_interval_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="The brokers' `transaction.abort.timed.out.transaction.cleanup.interval.ms`: for how long after its own "
        "timeout an Ongoing transaction may go on before it is `LATE`.",
        json_schema_extra=_said("timeout_scan_interval_ms", capture_json="broker_settings"),
    )
    clock_tolerance_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="How far a client's timestamp may lie from what a broker stamped at lower offsets, and still prove that a "
        "transaction began before its coordinator was copied: else it is `UNKNOWN` (`CAPTURE_SKEW`). A write stamped that far "
        "after the audit's instant has no age of its own.",
        json_schema_extra=_said("clock_tolerance_ms"),
    )


class ClusterSettings(_Section):
    """What the brokers are set to, where capture.json does not say it."""

    name: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the cluster in every table and in `run_id`. Audits of one name keep out of each other's way; an "
        "incremental one goes on from the last, and `--keep-days` removes those of this name.",
        json_schema_extra=_said("cluster", option="--cluster", capture_json="cluster"),
    )
    coordinator_partitions: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_COORDINATOR_PARTITIONS,
        description="Partitions of `__transaction_state` (`transaction.state.log.num.partitions`). While one of them is missing, "
        "or not whole, a producer id that no coordinator knows is `UNKNOWN` (`COORDINATOR_PARTITION_NOT_CAPTURED`), "
        "not `HANGING`.",
        json_schema_extra=_said("coordinator_partitions", option="--coordinator-partitions", capture_json="coordinator_partitions"),
    )
    producer_id_expiration_ms: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_INT32,
        description="The brokers' `producer.id.expiration.ms`: how long after its last write a producer without an open "
        "transaction is in `producer_states`, and judged by it: findings about sequences and epochs end there. No "
        "verdict needs it.",
        json_schema_extra=_said("producer_id_expiration_ms", capture_json="producer_id_expiration_ms"),
    )


class ApplicationSettings(_Section):
    """How transactional ids tell their applications; see `core.application`."""

    patterns: tuple[str, ...] = Field(
        default=(),
        description="Regular expressions with a group `application`, each fitting a whole transactional id, tried in order before "
        "those for Kafka Streams, Connect, Flink and numbered instances: whose id it is, in every table and report, "
        "and whose new ids a finding counts together. No verdict needs it.",
        json_schema_extra=_said("application_patterns"),
    )

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

    cluster: str = Field(description="Name of the cluster.")
    as_of_ms: int = Field(description="The instant judged at.")
    as_of_basis: str = Field(description="Where that instant comes from, in words.")
    max_transaction_timeout_ms: int = Field(default=900_000, description="Age from which nobody's transaction is `HANGING`.")
    transaction_max_timeout_ms: int = Field(default=900_000, description="The brokers' limit, by which an expected one is `LATE`.")
    stuck_after_ms: int = Field(default=300_000, description="Age of a decision from which a missing marker is `STUCK`.")
    timeout_scan_interval_ms: int = Field(default=10_000, description="How long a timeout may go unnoticed.")
    clock_tolerance_ms: int = Field(default=300_000, description="How far clocks may differ.")
    producer_id_expiration_ms: int = Field(default=86_400_000, description="How long a producer is remembered.")
    coordinator_partitions: int = Field(default=50, description="Partitions of `__transaction_state`.")
    coordinator_partitions_basis: str = Field(
        default=CountBasis.DEFAULT.value,
        description="How that number is known: GIVEN, DEFAULT, ASSUMED (the one number that the ids allow), or AMBIGUOUS.",
    )
    transaction_version: int | None = Field(
        default=None, description="Level of the feature `transaction.version`, by capture.json; null: not known."
    )
    is_transaction_max_timeout_assumed: bool = Field(
        default=False, description="Whether nobody said `transaction.max.timeout.ms`: a larger stored timeout refutes the default."
    )
    kafka_version: str | None = Field(default=None, description="Version of the brokers, by capture.json.")
    application_patterns: tuple[str, ...] = Field(default=(), description="Own patterns of transactional ids.")
    start: str = Field(default="beginning", description="Where reading began: `--start`.")
    continues: str | None = Field(
        default=None, description="The run whose rows an incremental one took over; null: everything was read."
    )

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
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, no UTF-8, a number of 5,000 digits, 1,000 brackets
        raise ConfigError(str(path), "", f"is not TOML: {error}") from error
    try:
        return SettingsFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(str(path), key, f"unknown key; known are {', '.join(known_keys())}") from error
        raise ConfigError(str(path), key, first["msg"]) from error


def default_of(setting: str) -> int:
    """What a number among Settings is where nobody says it."""
    return int(Settings.model_fields[setting].default)


def known_keys() -> dict[str, FieldInfo]:
    """Every key a settings file may hold, `section.key`, with what is said of it."""
    sections: dict[str, type[_Section]] = {
        "thresholds": ThresholdSettings,
        "cluster": ClusterSettings,
        "applications": ApplicationSettings,
    }
    return {f"{name}.{key}": field for name, section in sections.items() for key, field in section.model_fields.items()}
