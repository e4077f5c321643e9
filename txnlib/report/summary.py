"""The data of a report: a few rows and counts, read from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Row = Mapping[str, Any]

#: Section of two-phase commits that have been open for longer than other transactions may be.
PREPARED: Final = "PREPARED"

#: Sections of a report, in their order.
SECTIONS: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", PREPARED, "UNKNOWN")
#: Transactions of each section that a report shows; the tables hold all.
SHOWN: Final = 20
SHOWN_COPIES: Final = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in report form: counts of everything, rows of what needs somebody. Times are UTC datetimes."""

    cluster: str
    as_of_ms: int
    as_of_basis: str
    output: str
    kafka_version: str | None = None
    #: verdicts, reasons, findings by severity, coverage by status, rows.
    counts: Mapping[str, Any] = field(default_factory=dict)
    #: Verdict, or PREPARED -> rows of open_transactions with their plan, the ones that block most first, at most `SHOWN`.
    transactions: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    captured_from_ms: int | None = None
    captured_to_ms: int | None = None
    is_instant_assumed: bool = False
    brokers: int = 0
    partitions_read: int = 0
    partitions_known: int = 0
    coordinators_read: int = 0
    coordinators_known: int = 0
    missing_coordinators: tuple[int, ...] = ()
    unreadable_bytes: int = 0
    worst_lag: Row | None = None
    #: When the oldest of those that are open began, by its coordinator, else by the best clock there is.
    oldest_open_ms: int | None = None
    #: Names of findings above INFO with their counts and meaning.
    findings: tuple[Row, ...] = ()
    #: What the run before warned of and is open no longer.
    ended: tuple[Row, ...] = ()
    #: Copies that are not COMPLETE.
    incomplete: tuple[Row, ...] = ()
