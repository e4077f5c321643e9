"""The settings of an audit: options over the settings file over `capture.json` over Kafka's defaults.

Each setting is one field of a section below, with its type, limits and meaning, and the other places where it can be given. The
options of the jobs, `decide` and docs/configuration.md are derived from these fields. A settings file is TOML; an unknown key, a
wrong type or a value out of range is a ConfigError naming file and key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator
from pydantic.fields import FieldInfo

from txnlib.core.batch_runs import BATCHES
from txnlib.core.findings.application import compiled
from txnlib.core.kafka.constants import MAX_COORDINATOR_PARTITIONS, MAX_INT32
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.verdicts.copies import LeaderBasis
from txnlib.core.verdicts.known_metadata import Conclusion, MetadataExtent, holds
from txnlib.errors import ConfigError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class SettingOption:
    """The option of the jobs that sets a number, and its limits."""

    name: str
    metavar: str
    #: The sentence in `--help`.
    about: str
    least: int
    most: int

    @property
    def key(self) -> str:
        """Its name in a request for an audit, and among the arguments of the library."""
        return _key_of(self.name)


def _key_of(option: str) -> str:
    """The name of an option in a request, as argparse makes it."""
    return option.removeprefix("--").replace("-", "_")


def _sets(
    setting: str, *, option: str | None = None, metavar: str = "N", about: str = "", capture_json: str | None = None
) -> dict[str, JsonValue]:
    """The field of Settings that a key sets, and where else it can be given: an option with its help, a field of capture.json."""
    return {"setting": setting, "option": option, "metavar": metavar, "about": about, "capture_json": capture_json}


class ThresholdSettings(_Section):
    """Limits for the verdicts; None means not set here."""

    max_transaction_timeout_minutes: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description=(
            "An orphaned transaction is `HANGING` if its last write is older than this, else `SUSPECT`. For `safe_to_abort`, "
            "brokers' clocks must prove that age. As `kafka-transactions.sh find-hanging --max-transaction-timeout`."
        ),
        json_schema_extra=_sets(
            "max_transaction_timeout_ms",
            option="--max-transaction-timeout",
            metavar="MINUTES",
            about=(
                "Report an orphaned transaction as hanging once its last write is older than this many minutes, as find-hanging "
                "of kafka-transactions.sh does (default: {default})"
            ),
        ),
    )
    transaction_max_timeout_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description=(
            "The brokers' `transaction.max.timeout.ms`. An expected transaction is `LATE`, and in "
            "PartitionsWithLateTransactionsCount, if its last write is older than this plus five minutes. A two-phase commit that "
            "is open for longer is in `abort_plan`."
        ),
        json_schema_extra=_sets(
            "transaction_max_timeout_ms",
            option="--transaction-max-timeout-ms",
            metavar="MS",
            about="The brokers' transaction.max.timeout.ms (default: {default})",
            capture_json="transaction_max_timeout_ms",
        ),
    )
    stuck_after_minutes: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description=(
            "A decided transaction without its marker is `STUCK` (`MARKER_OVERDUE`) if the decision is older than this, else "
            "`OPEN` (`MARKER_PENDING`)."
        ),
        json_schema_extra=_sets(
            "stuck_after_ms",
            option="--stuck-after",
            metavar="MINUTES",
            about="Report a decided transaction as stuck if its marker is still missing after this many minutes "
            "(default: {default})",
        ),
    )
    in_doubt_after_minutes: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description=(
            "An undecided two-phase commit that is open for longer counts for `--fail-on in-doubt`, and is overdue in "
            "`in_doubt_transactions`."
        ),
        json_schema_extra=_sets(
            "in_doubt_after_ms",
            option="--in-doubt-after",
            metavar="MINUTES",
            about="Report a two-phase commit as in doubt for too long once it has been open for more than this many minutes "
            "(default: {default})",
        ),
    )
    timeout_scan_interval_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description="The brokers' `transaction.abort.timed.out.transaction.cleanup.interval.ms`. An Ongoing transaction is `LATE` "
        "once it has exceeded its own timeout by more than this.",
        json_schema_extra=_sets("timeout_scan_interval_ms", capture_json="broker_settings"),
    )
    clock_tolerance_ms: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_INT32,
        description=(
            "A client's timestamp proves that a transaction began before its coordinator was copied only if it is this close to a "
            "broker's at a lower offset; else it is `UNKNOWN` (`CAPTURE_SKEW`). A timestamp further than this after the audit "
            "gives no age."
        ),
        json_schema_extra=_sets("clock_tolerance_ms"),
    )


class ClusterSettings(_Section):
    """Broker settings that capture.json does not contain."""

    name: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "Name of the cluster in every table and in `run_id`. One audit per name runs at a time; an incremental audit resumes, "
            "and `--keep-days` deletes, audits of the same name."
        ),
        json_schema_extra=_sets("cluster", option="--cluster", capture_json="cluster"),
    )
    coordinator_partitions: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_COORDINATOR_PARTITIONS,
        description=(
            "`transaction.state.log.num.partitions`. While one of them is missing or incomplete, a transaction whose producer id "
            "no coordinator knows is `UNKNOWN` (`COORDINATOR_PARTITION_NOT_CAPTURED`), not `HANGING`."
        ),
        json_schema_extra=_sets(
            "coordinator_partitions",
            option="--coordinator-partitions",
            about="Number of partitions of __transaction_state (default: from capture.json, else inferred from the captured ids)",
            capture_json="coordinator_partitions",
        ),
    )
    producer_id_expiration_ms: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_INT32,
        description=(
            "The brokers' `producer.id.expiration.ms`. An idle producer leaves `producer_states` after this time, and its later "
            "batches are not checked against the old sequence and epoch. No verdict depends on it."
        ),
        json_schema_extra=_sets("producer_id_expiration_ms", capture_json="producer_id_expiration_ms"),
    )
    transactional_id_expiration_ms: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_INT32,
        description="The brokers' `transactional.id.expiration.ms`, for forecasts. No verdict depends on it.",
        json_schema_extra=_sets("transactional_id_expiration_ms", capture_json="transactional_id_expiration_ms"),
    )


class ApplicationSettings(_Section):
    """How applications are recognised by their transactional ids; see `core.findings.application`."""

    patterns: tuple[str, ...] = Field(
        default=(),
        description=(
            "Regular expressions with a group `application` that match a whole transactional id. They are tried in order, before "
            "those for Kafka Streams, Connect, Flink and numbered instances. No verdict depends on it."
        ),
        json_schema_extra=_sets("application_patterns"),
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
    """The effective settings of one audit, stored as JSON in `audit_runs.settings`."""

    cluster: str = Field(description="Name of the cluster.")
    as_of_ms: int = Field(description="Instant of the audit: ages and verdicts are as of then.")
    as_of_basis: str = Field(description="Source of that instant, in words.")
    max_transaction_timeout_ms: int = Field(default=900_000, description="Age above which an orphaned transaction is `HANGING`.")
    transaction_max_timeout_ms: int = Field(
        default=900_000, description="The brokers' limit, above which an expected transaction is `LATE`."
    )
    stuck_after_ms: int = Field(
        default=300_000, description="Age of a decision above which a transaction without its marker is `STUCK`."
    )
    in_doubt_after_ms: int = Field(default=900_000, description="Age above which an undecided two-phase commit is overdue.")
    timeout_scan_interval_ms: int = Field(
        default=10_000, description="How long the coordinator may take to act on a timeout after it has passed."
    )
    clock_tolerance_ms: int = Field(default=300_000, description="Tolerated difference between clocks.")
    producer_id_expiration_ms: int = Field(default=86_400_000, description="How long brokers remember an idle producer.")
    transactional_id_expiration_ms: int = Field(
        default=604_800_000, description="How long coordinators remember an idle transactional id."
    )
    coordinator_partitions: int = Field(default=50, description="Number of partitions of `__transaction_state`.")
    coordinator_partitions_basis: str = Field(
        default=CountBasis.DEFAULT.value,
        description="How the number is known: GIVEN, DEFAULT, ASSUMED or AMBIGUOUS.",
    )
    metadata_known_ms: int | None = Field(
        default=None, description="Newest time in the metadata log, in epoch ms; null if none was captured."
    )
    metadata_basis: LeaderBasis | None = Field(
        default=None,
        description="What leaders in that log are worth: `METADATA_LOG`, `METADATA_LOG_UNCONFIRMED`, `METADATA_LOG_STALE` or "
        "`METADATA_LOG_DAMAGED`.",
    )
    is_metadata_complete: bool = Field(default=False, description="Whether that log has a beginning, so that it names every topic.")
    metadata_reach_ms: int | None = Field(
        default=None,
        description="Instant, in epoch ms, up to which that log shows the leaders of copies for certain.",
    )
    has_metadata_end: bool = Field(default=True, description="Whether no copy of that log shows that newer records are lost.")
    is_metadata_whole: bool = Field(
        default=False,
        description="Whether nothing is missing at the end of that log, and no folder was copied later.",
    )
    contradictions: tuple[str, ...] = Field(
        default=(), description="Fields of capture.json that the metadata log contradicts, in words."
    )
    transaction_version: int | None = Field(
        default=None,
        description="Level of the feature `transaction.version`; null if unknown.",
    )
    assumed: tuple[str, ...] = Field(
        default=(),
        description=(
            "Broker settings of which Kafka's defaults are assumed. A larger timeout in the coordinators' records replaces that "
            "of `transaction.max.timeout.ms`."
        ),
    )
    kafka_version: str | None = Field(default=None, description="Version of the brokers, from capture.json.")
    application_patterns: tuple[str, ...] = Field(default=(), description="The `patterns` of the settings file.")
    start: str = Field(default="beginning", description="Where reading started: `--start`.")
    detail: str = Field(default=BATCHES, description="What a row of `record_batches` is: `--detail`.")
    continues: str | None = Field(default=None, description="The run from which it resumed; null if everything was read.")
    chain: str | None = Field(default=None, description="The chain of runs to which the audit belongs.")
    night: int = Field(default=0, description="Its number in the chain; 0 if everything was read.")

    @property
    def is_metadata_confirmed(self) -> bool:
        """Whether the metadata log was still growing when it was copied."""
        return self.metadata_basis is LeaderBasis.METADATA_LOG

    @property
    def metadata_extent(self) -> MetadataExtent | None:
        """What is there of the metadata log; None if none was captured."""
        if self.metadata_basis is None:
            return None
        return MetadataExtent(has_begin=self.is_metadata_complete, has_end=self.has_metadata_end)

    @property
    def names_every_topic(self) -> bool:
        """Whether a topic that the metadata log does not name did not exist up to the last copy."""
        is_captured = self.metadata_basis is not None
        return is_captured and self.is_metadata_whole and holds(Conclusion.TOPIC_UNKNOWN, self.metadata_extent)

    @property
    def whole_metadata_ms(self) -> int | None:
        """The instant up to which the metadata log names every partition, in epoch ms; None if it does not."""
        return self.metadata_known_ms if self.names_every_topic and self.is_metadata_confirmed else None

    @property
    def hides_leaders(self) -> bool:
        """Whether the leader of a partition that the metadata log does not name may be lost in it."""
        return not holds(Conclusion.LEADER_NOT_NAMED, self.metadata_extent)

    @property
    def hides_elections(self) -> bool:
        """Whether elections may be lost in the metadata log."""
        return not holds(Conclusion.CLEAN_ELECTIONS, self.metadata_extent)

    @property
    def is_limit_hidden(self) -> bool:
        """Whether `transaction.max.timeout.ms` is assumed, although its value may be lost in the metadata log."""
        is_assumed = BROKER_SETTINGS["transaction_max_timeout_ms"] in self.assumed
        return is_assumed and not holds(Conclusion.SETTING_NEVER_SET, self.metadata_extent)

    @property
    def run_id(self) -> str:
        """The name of the run. A second audit of the same cluster as of the same instant replaces the first."""
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in self.cluster)
        return f"{name}-{self.as_of_ms}"


#: Setting -> the broker's name of it. Static ones are in `server.properties`, which no log contains.
BROKER_SETTINGS: Final[Mapping[str, str]] = {
    "transaction_max_timeout_ms": "transaction.max.timeout.ms",
    "producer_id_expiration_ms": "producer.id.expiration.ms",
    "transactional_id_expiration_ms": "transactional.id.expiration.ms",
    "timeout_scan_interval_ms": "transaction.abort.timed.out.transaction.cleanup.interval.ms",
}


def read_settings_file(path: Path) -> SettingsFile:
    """The settings in a TOML file. Raises ConfigError, which names the file, the key and the remedy."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read ({error.strerror}); check --conf") from error
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, a number of 5,000 digits, 1,000 brackets
        raise ConfigError(str(path), "", f"is not TOML: {error}") from error
    try:
        return SettingsFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(str(path), key, f"unknown key; expected one of {', '.join(known_keys())}") from error
        raise ConfigError(str(path), key, first["msg"]) from error


def decide(given: Mapping[str, int | None], file: SettingsFile, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are given anywhere, by their name in Settings: options over the settings file over capture.json.

    `given`: the numbers of options by `SettingOption.key`. `notes`: the fields of capture.json.
    """
    decided: dict[str, Any] = {}
    for key, field in known_keys().items():
        section, _, name = key.partition(".")
        sources = _sources_of(field)
        option = given.get(_key_of(sources["option"])) if sources["option"] else None
        values = (option, getattr(getattr(file, section), name), notes.get(sources["capture_json"]))
        value = next((value for value in values if value is not None and value != ()), None)
        if value is not None:
            decided[sources["setting"]] = value * unit_of(key) if isinstance(value, int) else value
    return decided


def options_of_settings() -> dict[str, SettingOption]:
    """The options that set numbers, by `SettingOption.key`."""
    found = [
        _option_of(key, field)
        for key, field in known_keys().items()
        if _sources_of(field)["option"] and field.annotation != str | None
    ]
    return {option.key: option for option in found}


def _option_of(key: str, field: FieldInfo) -> SettingOption:
    sources = _sources_of(field)
    limits = {name: value for each in field.metadata for name in ("ge", "le") if (value := getattr(each, name, None)) is not None}
    about = sources["about"].format(default=default_of(sources["setting"]) // unit_of(key))
    return SettingOption(sources["option"], sources["metavar"], about, limits["ge"], limits["le"])


def _sources_of(field: FieldInfo) -> dict[str, Any]:
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


def unit_of(key: str) -> int:
    """Milliseconds in the unit of a key and of its option; 1 for anything that is no time in minutes."""
    return 60_000 if key.endswith("_minutes") else 1


def default_of(setting: str) -> int:
    """The default of a number among Settings."""
    return int(Settings.model_fields[setting].default)


def known_keys() -> dict[str, FieldInfo]:
    """Every key of a settings file, as `section.key`, with its description."""
    sections: dict[str, type[_Section]] = {
        "thresholds": ThresholdSettings,
        "cluster": ClusterSettings,
        "applications": ApplicationSettings,
    }
    return {f"{name}.{key}": field for name, section in sections.items() for key, field in section.model_fields.items()}
