"""The fields of a run's JSON, by section of `report_sections`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.queries import Filter, Row, StoredRun, transactions_of
from txnlib.ask.report import Report
from txnlib.ask.report_rows import LONGEST_LAG, MOST_BLOCKING, SHOWN, STATUSES, broker_rows, put_ends
from txnlib.ask.stuck_ids import StuckId
from txnlib.ask.words import URGENCY, counted_as, named
from txnlib.core.schema import shown

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged

#: Field -> value, for `grid.plain`.
Fields = Mapping[str, Any]

#: Most rows to list; counts include all. The limit matters because each partition is a time series.
SHOWN_LAGS: Final = 50
SHOWN_TRANSACTIONS: Final = 100
SHOWN_BROKERS: Final = 1_000
#: What is listed of files that were given and not read.
NOT_READ: Final = ("path", "topic", "partition", "bytes", "reason")
SEVERITIES: Final = ("INFO", "WARNING", "ERROR", "CRITICAL")


def of_answer(run: StoredRun, report: Report) -> Fields:
    return {
        "answer": report.answer,
        "verdicts": all_of(URGENCY, report.counts["verdicts"]),
        "transactions_by_verdict": all_of(URGENCY, transactions_of(report.counts)),
        "held_partitions_by_verdict": all_of(URGENCY, report.counts["holding"]),
    }


def of_stuck_ids(run: StoredRun, report: Report) -> Fields:
    return {"stuck_ids": list(map(_stuck_id, report.stuck_ids))}


def _stuck_id(each: StuckId) -> Row:
    names = ("transactional_id", "application", "producer_id", "producer_epoch", "coordinator_partition", "state")
    since = None if each.since_ms is None else instant_of(each.since_ms)
    return {name: getattr(each, name) for name in names} | {"since": since}


def of_open(run: StoredRun, report: Report) -> Fields:
    """The first open transactions, the most urgent first, and who acknowledged them."""
    rows: list[Row] = []
    for verdict in URGENCY:
        left = SHOWN_TRANSACTIONS - len(rows)
        if left and report.counts["verdicts"].get(verdict):
            found = run.rows(
                "open_transactions", shown("summary"), counted_as(verdict), order=MOST_BLOCKING, limit=left
            )
            rows += map(named, found)
    entries = [None if report.known is None else report.known.entry_of(row) for row in rows]
    listed = [
        {**row, "acknowledged_by": None if entry is None else entry.by}
        for row, entry in zip(rows, entries, strict=True)
    ]
    known = all_of(URGENCY, report.counts["verdicts"])
    return {"transactions": listed, "transactions_left_out": sum(known.values()) - len(listed)}


def of_acknowledged(run: StoredRun, report: Report) -> Fields:
    left = report.counts if report.known is None else report.known.remaining(report.counts)
    until_ms = None if report.known is None else report.known.until_ms
    return {
        "unacknowledged": {
            "rows": all_of(URGENCY, left["verdicts"]),
            "transactions": all_of(URGENCY, transactions_of(left)),
            "held_partitions": all_of(URGENCY, left["holding"]),
            "findings": all_of(SEVERITIES, left["findings"]),
        },
        "acknowledged_until": None if until_ms is None else instant_of(until_ms),
        "acknowledged": [] if report.known is None else _known(report.known),
    }


def _known(known: Acknowledged) -> list[Row]:
    """All entries, each with the number of rows that it matches, and whether it is over."""
    active = Counter(id(entry) for _, entry in known.transactions.values())
    entries = {id(entry): entry for _, entry in known.transactions.values()}
    counted = [
        *((entry, active[key], False) for key, entry in entries.items()),
        *((entry, number, False) for entry, number in known.findings),
        *((entry, 0, True) for entry in known.ended),
        *((entry, 0, False) for entry in known.idle),
    ]
    return [{**entry.model_dump(), "matches": number, "is_over": is_over} for entry, number, is_over in counted]


def of_lag(run: StoredRun, report: Report) -> Fields:
    is_behind: list[Filter] = [("lag_offsets", ">", 0)]
    highest = run.one(
        "partitions", {"partitions": "count(*)", "offsets": 'max("lag_offsets")', "ms": 'max("lag_ms")'}, is_behind
    )
    lags = run.rows("partitions", shown("summary: lag"), is_behind, order=LONGEST_LAG, limit=SHOWN_LAGS)
    put_ends(run, lags)
    return {
        "lag": {
            "partitions": highest["partitions"] or 0,
            "max_offsets": highest["offsets"] or 0,
            "max_seconds": None if highest["ms"] is None else highest["ms"] / 1000,
            "longest": [_in_seconds(row) for row in lags],
        },
        "brokers": [
            _in_seconds(row) for row in broker_rows(run, ("partitions_with_late_transactions",), SHOWN_BROKERS)
        ],
    }


def _in_seconds(row: Row) -> Row:
    """The row with seconds in place of milliseconds."""
    return {
        name.replace("_ms", "_seconds"): value / 1000 if name.endswith("_ms") and value is not None else value
        for name, value in row.items()
    }


def of_findings(run: StoredRun, report: Report) -> Fields:
    named_ones = (each for each in report.findings if each.severity != "INFO")
    return {
        "findings": all_of(SEVERITIES, report.counts["findings"]),
        "named_findings": [{"name": each.name, "severity": each.severity, "count": each.count} for each in named_ones],
    }


def of_coverage(run: StoredRun, report: Report) -> Fields:
    judged = run.grouped("coverage", ("status",), "count(*)", [("is_judged", "=", True)])
    statuses = {status: judged.get((status,), 0) for status in STATUSES}
    missing = report.partitions_known - report.partitions_read - report.partitions_unopened
    return {
        "coverage": {
            "partitions_known": report.partitions_known,
            "partitions_quiet": report.partitions_quiet,
            "partitions_read": report.partitions_read,
            "coordinators_known": report.coordinators_known,
            "coordinators_read": report.coordinators_read,
            "partitions": statuses | {"MISSING": missing},
            "unreadable_files": report.unreadable_files,
            "unreadable_bytes": report.unreadable_bytes,
            "not_read": [{name: row[name] for name in NOT_READ} for row in report.unread],
        }
    }


def of_ended(run: StoredRun, report: Report) -> Fields:
    return {"ended": report.ended[:SHOWN]}


def instant_of(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def all_of(names: Iterable[str], counts: Mapping[str, int]) -> dict[str, int]:
    """A count for each name, 0 if there is none."""
    return {name: counts.get(name, 0) for name in names}
