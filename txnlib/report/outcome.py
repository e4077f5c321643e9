"""The result of a run, in numbers for programs. A run that failed has one, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from txnlib.report.summary import Row, Summary

#: Rows that are told one by one; how many there are is told of all. Each partition is a time series of its own.
SHOWN_LAGS: Final = 50
SHOWN_TRANSACTIONS: Final = 100
SHOWN_BROKERS: Final = 1_000

#: Verdicts in the order in which transactions are shown: what somebody has to act on first.
URGENCY: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN", "OPEN")
STATUSES: Final = ("COMPLETE", "PARTIAL", "DAMAGED", "MISSING")
SEVERITIES: Final = ("INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, slots=True)
class Written:
    """What a step wrote: rows, as far as they are known, in how many seconds. Steps overlap, so seconds do not add up."""

    rows: int | None
    seconds: float

    def __str__(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} row{'' if self.rows == 1 else 's'}, "
        return f"{rows}{self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Found:
    """What a run found, beyond its summary. Rows as in the tables; instants in epoch ms."""

    summary: Summary
    #: Of `brokers`.
    brokers: Sequence[Row] = ()
    #: Of `partitions`, those whose last stable offset lies below the high watermark, the longest lag first.
    lags: Sequence[Row] = ()
    #: lagging partitions, and their highest lags: partitions, offsets, ms.
    lag: Mapping[str, int | None] = field(default_factory=dict)
    #: Status of the judged copy (MISSING: there is none) -> partitions.
    partitions: Mapping[str, int] = field(default_factory=dict)
    #: Of `open_transactions`, by `URGENCY`, those that block most first.
    transactions: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. Times are epoch ms of the machine that ran it."""

    cluster: str
    version: str
    exit_code: int
    started_ms: int
    finished_ms: int
    run_id: str | None = None
    #: What is said about a run that failed; None: it did not.
    error: str | None = None
    written: Mapping[str, Written] = field(default_factory=dict)
    #: None where it failed.
    found: Found | None = None
