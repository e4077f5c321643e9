"""The data of a report: a few rows and counts, read from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Row = Mapping[str, Any]

#: Section of two-phase commits that have been open for longer than transaction.max.timeout.ms.
PREPARED: Final = "PREPARED"

#: Sections of a report, in their order.
SECTIONS: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", PREPARED, "UNKNOWN")
#: Number of transactions in each section of a report. The tables have all.
SHOWN: Final = 20
SHOWN_COPIES: Final = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in report form: counts of everything, and the rows that need action. Times are UTC datetimes."""

    cluster: str
    as_of_ms: int
    as_of_basis: str
    output: str
    kafka_version: str | None = None
    #: Counts: verdicts, reasons, findings by severity, coverage by status, rows.
    counts: Mapping[str, Any] = field(default_factory=dict)
    #: Verdict or PREPARED -> rows of open_transactions with their plan, those that block most first, at most `SHOWN`.
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
    #: When the oldest open transaction began, according to its coordinator, else by the best available clock.
    oldest_open_ms: int | None = None
    #: Names of findings above INFO with their counts and meaning.
    findings: tuple[Row, ...] = ()
    #: Transactions that the previous run warned of and that are no longer open.
    ended: tuple[Row, ...] = ()
    #: Copies that are not COMPLETE.
    incomplete: tuple[Row, ...] = ()
