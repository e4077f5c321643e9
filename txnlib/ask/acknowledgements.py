"""Acknowledgements: what is known, until when, by whom and why.

They are entries of a TOML file. What an entry matches, an open transaction or a finding, no longer makes an audit fail,
and moves down in its report, never out of it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    model_validator,
)

from txnlib.ask.queries import KEY, Filter, Key, Row, StoredRun, key_of
from txnlib.ask.words import PREPARED, name_of, named
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.rows import grouped
from txnlib.core.schema import shown
from txnlib.errors import ConfigError, meant, refuse_fifo

#: Most rows that one entry can match. Others are treated as not acknowledged.
MOST_MATCHED: Final = 10_000
#: Keys of an entry that rows must match, if given.
_MATCHED: Final = (*KEY, "transactional_id")
_TRANSACTION: Final = (*KEY, "transactional_id", "verdict", "reason", "runs_seen", "holds", "blocked_offsets")
_FINDING: Final = shown("report: findings")


def _instant(value: datetime | date) -> datetime:
    """A date is its first instant in UTC."""
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)


def _known_name(name: str) -> str:
    if name not in FINDINGS:
        raise ValueError("no finding has this name (docs/rules/reference.md lists them)")
    return name


class Acknowledgement(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str | None = Field(default=None, description="Topic of what is known.")
    partition: StrictInt | None = Field(default=None, description="Number of its partition.")
    producer_id: StrictInt | None = Field(default=None, description="Producer id.")
    start_offset: StrictInt | None = Field(
        default=None, description="First offset of the transaction on the partition."
    )
    transactional_id: str | None = Field(default=None, description="Transactional id.")
    finding: Annotated[str, AfterValidator(_known_name)] | None = Field(
        default=None, description="Name of a finding. Without it, the entry is about open transactions."
    )
    until: Annotated[AwareDatetime | date, AfterValidator(_instant)] = Field(
        description="Instant from which on it counts again; a date is its first instant in UTC."
    )
    by: str = Field(min_length=1, description="Who acknowledges it.")
    why: str = Field(min_length=1, description="Why nothing has to be done until then.")

    @model_validator(mode="after")
    def _names_something(self) -> Acknowledgement:
        if self.finding is None and all(getattr(self, name) is None for name in _MATCHED if name != "partition"):
            raise ValueError("name what is acknowledged: topic, transactional_id, producer_id, start_offset or finding")
        if self.partition is not None and self.topic is None:
            raise ValueError("partition needs its topic")
        if self.finding is not None and self.start_offset is not None:
            raise ValueError("findings have no start_offset")
        return self

    @property
    def until_ms(self) -> int:
        """The end of the acknowledgement, in epoch ms."""
        return int(_instant(self.until).timestamp() * 1000)

    @property
    def filters(self) -> list[Filter]:
        """What rows must meet to be matched."""
        named = [("name", "=", self.finding)] if self.finding is not None else []
        return [*named, *((name, "=", value) for name in _MATCHED if (value := getattr(self, name)) is not None)]

    def __str__(self) -> str:
        given = {"finding": self.finding, **{name: getattr(self, name) for name in _MATCHED}}
        return ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    acknowledged: tuple[Acknowledgement, ...] = ()


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What the entries of a file match in one run."""

    #: Open transactions, each with the entry that matches it.
    transactions: Mapping[Key, tuple[Row, Acknowledgement]] = field(default_factory=dict)
    #: Number of findings by severity.
    severities: Mapping[str, int] = field(default_factory=dict)
    #: Entries about findings, each with the number of findings that it matches.
    findings: Sequence[tuple[Acknowledgement, int]] = ()
    #: Entries that are over but still match something; and entries that match nothing.
    ended: Sequence[Acknowledgement] = ()
    idle: Sequence[Acknowledgement] = ()
    #: Verdict (or LOOKS_LATE) -> number of transactions of which every row is acknowledged.
    whole: Mapping[str, int] = field(default_factory=dict)

    def of_name(self, name: str) -> set[Key]:
        """The keys of the acknowledged transactions that count as a verdict, or as LOOKS_LATE or PREPARED."""
        name = "OPEN" if name == PREPARED else name
        return {key for key, (row, _) in self.transactions.items() if name_of(row) == name}

    @property
    def until_ms(self) -> int | None:
        """When the first entry that matches something ends, in epoch ms; None if no entry matches anything."""
        entries = [*(entry for _, entry in self.transactions.values()), *(entry for entry, _ in self.findings)]
        return min((entry.until_ms for entry in entries), default=None)

    def entry_of(self, row: Row) -> Acknowledgement | None:
        """The entry that matches an open transaction."""
        return self.transactions.get(key_of(row), (row, None))[1]

    def remaining(self, counts: Mapping[str, Any]) -> dict[str, Any]:
        """The counts of a report (`Report.counts`) without what is acknowledged."""
        rows = [row for row, _ in self.transactions.values()]
        known = {
            "verdicts": Counter(map(name_of, rows)),
            "new": Counter(name_of(row) for row in rows if row["runs_seen"] == 1),
            "holding": Counter(name_of(row) for row in rows if row["holds"] and row["blocked_offsets"]),
            "transactions": self.whole,
            "findings": self.severities,
        }
        return {
            kind: {name: number - known.get(kind, {}).get(name, 0) for name, number in numbers.items()}
            for kind, numbers in counts.items()
        }


def read_acknowledgements(path: str | None) -> tuple[Acknowledgement, ...]:
    """The entries of a file; none without a file. Raises ConfigError, which names the file, the entry and the
    remedy."""
    if path is None:
        return ()
    refuse_fifo(path, "--acknowledged")
    try:
        content = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise ConfigError(path, "", f"cannot be read ({error.strerror}); check --acknowledged") from error
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, 1,000 brackets
        raise ConfigError(path, "", f"is not TOML: {error}") from error
    try:
        return _File.model_validate(content).acknowledged
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"] if part not in _UNION)
        problem = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            known = Acknowledgement.model_fields if len(first["loc"]) > 1 else _File.model_fields
            problem = f"there is no such key{meant(str(first['loc'][-1]), known)}"
        raise ConfigError(path, key, problem) from error


#: Names that pydantic gives the alternatives of `until`.
_UNION: Final = ("datetime", "date", "function-after[_instant(), union[datetime,date]]")


def acknowledged(run: StoredRun, entries: Sequence[Acknowledgement]) -> Acknowledged:
    """What the entries match in a run. Of several entries that match the same, the first one counts."""
    transactions: dict[Key, tuple[Row, Acknowledgement]] = {}
    matched: Counter[tuple[Any, ...]] = Counter()
    findings: list[tuple[Acknowledgement, int]] = []
    ended, idle = [], []
    for entry in entries:
        name, columns = ("open_transactions", _TRANSACTION) if entry.finding is None else ("findings", _FINDING)
        rows = run.rows(name, columns, entry.filters, limit=MOST_MATCHED)
        if not rows:
            idle.append(entry)
        elif run.as_of_ms >= entry.until_ms:
            ended.append(entry)
        elif entry.finding is None:
            for row in rows:
                transactions.setdefault(key_of(row), (named(row), entry))
        else:
            matched |= Counter(tuple(row[column] for column in _FINDING) for row in rows)
            findings.append((entry, len(rows)))
    severities: Counter[str] = Counter()
    for key, number in matched.items():
        severities[key[_FINDING.index("severity")]] += number
    return Acknowledged(transactions, severities, findings, ended, idle, _wholly(run, transactions))


def _wholly(run: StoredRun, known: Mapping[Key, tuple[Row, Acknowledgement]]) -> Counter[str]:
    """Verdict (or LOOKS_LATE) -> number of transactions of which every row is acknowledged."""
    producers = {row["producer_id"] for row, _ in known.values()}
    if not producers:
        return Counter()
    columns = (*KEY, "transactional_id", "verdict", "reason")
    rows = run.rows("open_transactions", columns, [("producer_id", "IN", producers)], limit=MOST_MATCHED)
    whole: Counter[str] = Counter()
    of_transactions = grouped(rows, lambda row: (name_of(row), row["producer_id"], row["transactional_id"]))
    for (name, *_), own in of_transactions.items():
        whole[name] += all(key_of(row) in known for row in own)
    return whole
