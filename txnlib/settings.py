"""The settings of an audit: options over the settings file over `capture.json` over Kafka's defaults.

A field of `Settings` with a `Setting` is the one declaration of a setting: its default, its limits, its sentences, and
where it can be given. Derived from it: the settings file and conf/audit.toml, the options of the jobs, the fields of
`capture.json`. `GivenNumbers` types the numbers that the library takes.
An unknown key of a settings file, a wrong type or a value out of range is a ConfigError naming file and key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from txnlib.core.application import compiled
from txnlib.core.copies import LeaderBasis
from txnlib.core.coverage.known_metadata import Conclusion, MetadataExtent, holds
from txnlib.core.kafka.constants import MAX_COORDINATOR_PARTITIONS, MAX_INT32, is_from
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.errors import ConfigError, refuse_fifo


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


#: What an audit does without a field of capture.json.
_DYNAMIC: Final = "The dynamic setting in the metadata log, else Kafka's default."


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where a setting can be given, and what is said of it there."""

    #: Key of the settings file, as `section.key`.
    key: str
    #: What the setting decides.
    decides: str
    #: Limits of a number.
    least: int = 0
    most: int = MAX_INT32
    #: Number of characters that a text has at least in a settings file.
    shortest: int | None = None
    #: Option of the jobs, and the sentence about it in `--help`. `{default}` stands for the default.
    option: str | None = None
    metavar: str = "N"
    about: str = ""
    #: The brokers' name of the setting. It is the name in the metadata log, and in `broker_settings` of capture.json.
    broker: str | None = None
    #: What the field of capture.json with the name of the setting is; None if there is no such field.
    noted: str | None = None
    #: What an audit does without that field.
    without: str = _DYNAMIC
    #: A value in TOML, where there is no default to show.
    example: str = ""
    #: As the field of Settings has them.
    default: Any = None
    kind: Any = None

    @property
    def section(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name in the section of the settings file."""
        return self.key.partition(".")[2]

    @property
    def argument(self) -> str:
        """Its name in a request for an audit and among the arguments of the library: the name of its option."""
        return (self.option or "").removeprefix("--").replace("-", "_")

    @property
    def unit(self) -> int:
        """Milliseconds in the unit of the key and of the option; 1 for anything that is no time in minutes."""
        return 60_000 if self.key.endswith("_minutes") else 1

    @property
    def help(self) -> str:
        """The sentence about the option."""
        return self.about.format(default=self.default // self.unit)

    def field(self, **more: Any) -> Any:
        """The field of a model that holds what is given, as pydantic's `create_model` takes it."""
        is_number = isinstance(self.default, int)
        limits: dict[str, Any] = {"strict": True, "ge": self.least, "le": self.most} if is_number else {}
        return self.kind | None, Field(default=None, **limits, **more)


class GivenNumbers(TypedDict, total=False):
    """All settings that are numbers and have an option, in the units of their options. None: not given."""

    max_transaction_timeout: int | None
    transaction_max_timeout_ms: int | None
    stuck_after: int | None
    in_doubt_after: int | None
    coordinator_partitions: int | None


def _matching(patterns: tuple[str, ...]) -> tuple[str, ...]:
    compiled(patterns)
    return patterns


class Settings(_Section):
    """The effective settings of one audit, stored as JSON in `audit_runs.settings`."""

    cluster: Annotated[
        str,
        Setting(
            key="cluster.name",
            decides=(
                "Name of the cluster in every table and in `run_id`. An audit uses what audits of the same name have"
                " read, and `--keep-days` deletes them."
            ),
            shortest=1,
            option="--cluster",
            noted="Name of the cluster. Inputs with different names are refused.",
            without="The name of the first input's folder.",
            example='"payments-eu"',
        ),
    ]
    as_of_ms: int = Field(description="Instant of the audit: ages and verdicts are as of then.")
    as_of_basis: str = Field(description="Source of that instant, in words.")
    max_transaction_timeout_ms: Annotated[
        int,
        Setting(
            key="thresholds.max_transaction_timeout_minutes",
            decides=(
                "An orphaned transaction is `HANGING` if its last write is older than this, else `SUSPECT`. For"
                " `safe_to_abort`, brokers' clocks must prove that age. As `kafka-transactions.sh find-hanging"
                " --max-transaction-timeout`."
            ),
            option="--max-transaction-timeout",
            metavar="MINUTES",
            about=(
                "Report an orphaned transaction as hanging once its last write is older than this many minutes, as"
                " find-hanging of kafka-transactions.sh does (default: {default})"
            ),
        ),
    ] = 900_000
    transaction_max_timeout_ms: Annotated[
        int,
        Setting(
            key="thresholds.transaction_max_timeout_ms",
            decides=(
                "The brokers' `transaction.max.timeout.ms`. An expected transaction is `LATE`, and in"
                " PartitionsWithLateTransactionsCount, if its last write is older than this plus five minutes. A"
                " two-phase commit that is open for longer is in `abort_plan`."
            ),
            option="--transaction-max-timeout-ms",
            metavar="MS",
            about="The brokers' transaction.max.timeout.ms (default: {default})",
            broker="transaction.max.timeout.ms",
            noted="The brokers' `transaction.max.timeout.ms`.",
        ),
    ] = 900_000
    stuck_after_ms: Annotated[
        int,
        Setting(
            key="thresholds.stuck_after_minutes",
            decides=(
                "A decided transaction without its marker is `STUCK` (`MARKER_OVERDUE`) if the decision is older than"
                " this, else `OPEN` (`MARKER_PENDING`)."
            ),
            option="--stuck-after",
            metavar="MINUTES",
            about=(
                "Report a decided transaction as stuck if its marker is still missing after this many minutes "
                "(default: {default})"
            ),
        ),
    ] = 300_000
    in_doubt_after_ms: Annotated[
        int,
        Setting(
            key="thresholds.in_doubt_after_minutes",
            decides=(
                "An undecided two-phase commit that is open for longer than this counts for `--fail-on in-doubt`, and"
                " is OVERDUE in the gauge."
            ),
            option="--in-doubt-after",
            metavar="MINUTES",
            about=(
                "Report a two-phase commit as in doubt for too long once it has been open for more than this many"
                " minutes (default: {default})"
            ),
        ),
    ] = 900_000
    clock_tolerance_ms: Annotated[
        int,
        Setting(
            key="thresholds.clock_tolerance_ms",
            decides=(
                "A client's timestamp proves that a transaction began before its coordinator was copied only if it is"
                " this close to a broker's at a lower offset; else it is `UNKNOWN` (`CAPTURE_SKEW`). A timestamp"
                " further than this after the audit gives no age."
            ),
        ),
    ] = 300_000
    coordinator_partitions: Annotated[
        int,
        Setting(
            key="cluster.coordinator_partitions",
            decides=(
                "`transaction.state.log.num.partitions`. While one of them is missing or incomplete, a transaction"
                " whose producer id no coordinator knows is `UNKNOWN` (`COORDINATOR_PARTITION_NOT_CAPTURED`), not"
                " `HANGING`."
            ),
            least=1,
            most=MAX_COORDINATOR_PARTITIONS,
            option="--coordinator-partitions",
            about=(
                "Number of partitions of __transaction_state (default: from capture.json, else inferred from the"
                " captured ids)"
            ),
            noted="Number of partitions of `__transaction_state`.",
            without=(
                "The number in the metadata log. Else 50, unless the captured ids refute it; then the number that they"
                " allow, and no abort that depends on it is safe."
            ),
        ),
    ] = 50
    producer_id_expiration_ms: Annotated[
        int,
        Setting(
            key="cluster.producer_id_expiration_ms",
            decides=(
                "The brokers' `producer.id.expiration.ms`; up to 3.3, their `transactional.id.expiration.ms`. An idle"
                " producer leaves `producer_states` after this time, and its later batches are not checked against the"
                " old sequence and epoch. No verdict depends on it."
            ),
            least=1,
            broker="producer.id.expiration.ms",
            noted="The brokers' `producer.id.expiration.ms`.",
        ),
    ] = 86_400_000
    transactional_id_expiration_ms: Annotated[
        int,
        Setting(
            key="cluster.transactional_id_expiration_ms",
            decides=(
                "The brokers' `transactional.id.expiration.ms`; up to 3.3, their producers expire by it, too."
                " No verdict depends on it."
            ),
            least=1,
            broker="transactional.id.expiration.ms",
            noted="The brokers' `transactional.id.expiration.ms`.",
        ),
    ] = 604_800_000
    timeout_scan_interval_ms: Annotated[
        int,
        Setting(
            key="thresholds.timeout_scan_interval_ms",
            decides=(
                "The brokers' `transaction.abort.timed.out.transaction.cleanup.interval.ms`. An Ongoing transaction is"
                " `LATE` once it has exceeded its own timeout by more than this."
            ),
            broker="transaction.abort.timed.out.transaction.cleanup.interval.ms",
        ),
    ] = 10_000
    application_patterns: Annotated[
        tuple[str, ...],
        AfterValidator(_matching),
        Setting(
            key="applications.patterns",
            decides=(
                "Regular expressions with a group `application` that match a whole transactional id. They are tried in"
                " order, before those for Kafka Streams, Connect, Flink and numbered instances. No verdict depends"
                " on it."
            ),
            example=r"""['\w+\.(?P<application>\w+)\..*']""",
        ),
    ] = ()
    coordinator_partitions_basis: str = Field(
        default=CountBasis.DEFAULT.value,
        description=(
            "Source of `coordinator_partitions`: GIVEN (also by the cluster's metadata log), DEFAULT, ASSUMED (the only"
            " number that the captured ids allow) or AMBIGUOUS."
        ),
    )
    metadata_known_ms: int | None = Field(
        default=None, description="Newest time in the metadata log, in epoch ms; null if none was captured."
    )
    metadata_basis: LeaderBasis | None = Field(
        default=None,
        description=(
            "What leaders in that log are worth: `METADATA_LOG`, `METADATA_LOG_UNCONFIRMED`, `METADATA_LOG_STALE` or "
            "`METADATA_LOG_DAMAGED`."
        ),
    )
    is_metadata_complete: bool = Field(
        default=False, description="Whether that log has a beginning, so that it names every topic."
    )
    metadata_reach_ms: int | None = Field(
        default=None, description="Instant, in epoch ms, up to which that log shows the leaders of copies for certain."
    )
    has_metadata_end: bool = Field(
        default=True, description="Whether no copy of that log shows that newer records are lost."
    )
    is_metadata_whole: bool = Field(
        default=False, description="Whether nothing is missing at the end of that log, and no folder was copied later."
    )
    cluster_id: str | None = Field(default=None, description="Id of the cluster, by its files; null if none says it.")
    misnamed: tuple[str, ...] = Field(
        default=(), description="Folders with the number of another broker than their `meta.properties`, in words."
    )
    contradictions: tuple[str, ...] = Field(
        default=(), description="Fields of capture.json that the metadata log contradicts, in words."
    )
    transaction_version: int | None = Field(
        default=None, description="Level of the feature `transaction.version`; null if unknown."
    )
    assumed: tuple[str, ...] = Field(
        default=(),
        description=(
            "Broker settings of which Kafka's defaults are assumed. A larger timeout in the coordinators' records"
            " replaces that of `transaction.max.timeout.ms`."
        ),
    )
    kafka_version: str | None = Field(default=None, description="Version of the brokers, from capture.json.")

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
        # Engines write other characters into paths in different ways: then none finds the files of another.
        name = self.cluster.encode("ascii", "backslashreplace").decode()
        return f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}-{self.as_of_ms}"


#: Every setting by its field of Settings, in the order of the fields.
SETTINGS: Final[Mapping[str, Setting]] = {
    name: replace(each, default=field.default, kind=Annotated[field.annotation, *field.metadata])
    for name, field in Settings.model_fields.items()
    for each in field.metadata
    if isinstance(each, Setting)
}
#: Setting -> the broker's name of it. Static ones are in `server.properties`, which no log contains.
BROKER_SETTINGS: Final = {name: each.broker for name, each in SETTINGS.items() if each.broker}
#: The broker's name of a setting -> its field of capture.json.
NOTED: Final = {each.broker: name for name, each in SETTINGS.items() if each.broker and each.noted}
#: The settings that are numbers and have an option, by `Setting.argument`.
NUMBERS: Final = {each.argument: each for each in SETTINGS.values() if each.option and isinstance(each.default, int)}
#: Sections of a settings file, and what they contain.
SECTIONS: Final = {
    "thresholds": "Limits for the verdicts.",
    "cluster": "Broker settings that capture.json does not contain.",
    "applications": "How applications are recognised by their transactional ids.",
}
#: Every key of a settings file, section by section -> the setting that it sets.
KEYS: Final = {each.key: name for section in SECTIONS for name, each in SETTINGS.items() if each.section == section}


def _section(section: str) -> Any:
    own = [each for each in SETTINGS.values() if each.section == section]
    kind = create_model(section, __base__=_Section, **{each.name: each.field(min_length=each.shortest) for each in own})
    return kind, Field(default_factory=kind)


#: The content of a settings file, with a field for each section.
SettingsFile: Final = create_model("SettingsFile", __base__=_Section, **{name: _section(name) for name in SECTIONS})


def read_settings_file(path: Path) -> BaseModel:
    """The settings in a TOML file. Raises ConfigError, which names the file, the key and the remedy."""
    refuse_fifo(str(path), "--conf")
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
            raise ConfigError(str(path), key, f"unknown key; expected one of {', '.join(KEYS)}") from error
        raise ConfigError(str(path), key, first["msg"]) from error


#: First version with `producer.id.expiration.ms`. Before, producers expired after `transactional.id.expiration.ms`.
#: Kafka: KIP-854.
PRODUCERS_EXPIRE_BY_THEMSELVES_FROM: Final = (3, 4)


def decide(given: Mapping[str, object], file: BaseModel, notes: object) -> dict[str, Any]:
    """The settings that are given, by their name in Settings: options over the settings file over capture.json.

    `given`: by `Setting.argument`, in the units of the options. `file`: a SettingsFile. `notes`: those of capture.json,
    attributes with the names and the units of the settings.
    """
    decided: dict[str, Any] = {}
    for name, each in SETTINGS.items():
        in_units = (given.get(each.argument), getattr(getattr(file, each.section), each.name))
        scaled = [value * each.unit if isinstance(value, int) else value for value in in_units]
        value = next((value for value in (*scaled, getattr(notes, name, None)) if value not in (None, "")), None)
        if value is not None:
            decided[name] = value
    if is_from(PRODUCERS_EXPIRE_BY_THEMSELVES_FROM, getattr(notes, "kafka_version", None)) is False:
        of_ids = decided.get("transactional_id_expiration_ms", SETTINGS["transactional_id_expiration_ms"].default)
        decided.setdefault("producer_id_expiration_ms", of_ids)
    return decided
