"""The result of a run, in numbers for programs. A run that failed has one, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from txnlib.ask.rows import Row, StoredRun, ms
from txnlib.ask.summary import LONGEST_LAG, MOST_BLOCKING, STATUSES, Summary
from txnlib.core.schema import shown

#: Most rows to list; counts include all. The limit matters because each partition is a time series.
SHOWN_LAGS: Final = 50
SHOWN_TRANSACTIONS: Final = 100
SHOWN_BROKERS: Final = 1_000

#: Verdicts in the order in which transactions are shown, most urgent first.
URGENCY: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN", "OPEN")
SEVERITIES: Final = ("INFO", "WARNING", "ERROR", "CRITICAL")

_HIGHEST: Final = {"partitions": "count(*)", "offsets": 'max("lag_offsets")', "ms": 'max("lag_ms")'}


@dataclass(frozen=True, slots=True)
class Written:
    """The rows that a step wrote, if known, and its duration. Steps overlap, so seconds do not add up."""

    rows: int | None
    seconds: float

    def __str__(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} row{'' if self.rows == 1 else 's'}, "
        return f"{rows}{self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run: its summary and further rows of tables. Instants in epoch ms."""

    summary: Summary
    #: Rows of `brokers`.
    brokers: Sequence[Row] = ()
    #: Rows of `partitions` whose last stable offset is below the high watermark, longest lag first.
    lags: Sequence[Row] = ()
    #: Number of lagging partitions and their largest lags: partitions, offsets, ms.
    lag: Mapping[str, int | None] = field(default_factory=dict)
    #: Status of the judged copy (MISSING if there is none) -> number of partitions.
    partitions: Mapping[str, int] = field(default_factory=dict)
    #: Rows of `open_transactions`, by `URGENCY`, then those that block most first.
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
    #: Error message of a failed run, else None.
    error: str | None = None
    written: Mapping[str, Written] = field(default_factory=dict)
    #: None if the run failed.
    results: Results | None = None


def results_of(run: StoredRun, summary: Summary) -> Results:
    """The results of a run whose tables are complete."""
    statuses = run.grouped("coverage", ("status",), "count(*)", [("is_judged", "=", True)])
    judged = {status: statuses.get((status,), 0) for status in STATUSES}
    is_behind = [("lag_offsets", ">", 0)]
    return Results(
        summary=summary,
        brokers=run.rows("brokers", shown("summary: brokers"), order='"broker"', limit=SHOWN_BROKERS),
        lags=run.rows("partitions", shown("summary: lag"), is_behind, order=LONGEST_LAG, limit=SHOWN_LAGS),
        lag=run.one("partitions", _HIGHEST, is_behind),
        partitions={**judged, "MISSING": summary.partitions_known - summary.partitions_read},
        transactions=_transactions(run, summary),
    )


def _transactions(run: StoredRun, summary: Summary) -> list[Row]:
    rows: list[Row] = []
    for verdict in URGENCY:
        left = SHOWN_TRANSACTIONS - len(rows)
        if left and summary.counts["verdicts"].get(verdict):
            rows += run.rows(
                "open_transactions", shown("summary"), [("verdict", "=", verdict)], order=MOST_BLOCKING, limit=left
            )
    return [{**row, **{name: ms(row[name]) for name in ("blocks_since", "safe_from")}} for row in rows]
