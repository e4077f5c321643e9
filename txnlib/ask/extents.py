"""How far the open transactions of each verdict reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.ask.rows import Row, StoredRun, ms

#: Most reasons, and most applications, of all verdicts together. Those with the fewest rows are left out.
MOST_GROUPS: Final = 1_000
#: A producer has one transaction at a time, however many partitions it has.
_TRANSACTION: Final = "concat(\"producer_id\", ':', coalesce(\"transactional_id\", ''))"
#: One transaction per producer, one place per partition.
_EXTENT: Final[Mapping[str, str]] = {
    "transactions": f"count(DISTINCT {_TRANSACTION})",
    "new": f'count(DISTINCT CASE WHEN "runs_seen" = 1 THEN {_TRANSACTION} END)',
    "partitions": 'count(DISTINCT concat("topic", \'-\', "partition"))',
    "since": 'min("blocks_since")',
    "proven_since": 'min(CASE WHEN "broker_clock_age_ms" IS NOT NULL THEN "blocks_since" END)',
    "safe": 'count(CASE WHEN "safe_to_abort" THEN 1 END)',
    "safe_later": 'count(CASE WHEN NOT coalesce("safe_to_abort", FALSE) THEN "safe_from" END)',
    "safe_from": 'max(CASE WHEN NOT coalesce("safe_to_abort", FALSE) THEN "safe_from" END)',
}


@dataclass(frozen=True, slots=True)
class VerdictExtent:
    """The open transactions of one verdict, in numbers. A row is a transaction on one partition. Times are epoch ms."""

    rows: int
    transactions: int
    partitions: int
    #: Transactions that no earlier audit saw.
    new: int = 0
    #: Since when the first of them blocks consumers, and whether brokers' clocks prove it.
    since_ms: int | None = None
    is_since_proven: bool = False
    #: Rows that may be aborted now; rows that become safe if they stay open; and when the last of these does.
    safe: int = 0
    safe_later: int = 0
    safe_from_ms: int | None = None
    #: Rows by reason, and by application; most first. Rows without an application are not counted.
    reasons: tuple[tuple[str, int], ...] = ()
    applications: tuple[tuple[str, int], ...] = ()


def extents(run: StoredRun, verdicts: Mapping[str, int]) -> dict[str, VerdictExtent]:
    """The extent of each verdict. `verdicts`: the number of rows of each."""
    reasons = _by_verdict(run, "reason")
    applications = _by_verdict(run, "application")
    return {
        verdict: _extent(
            rows,
            run.one("open_transactions", _EXTENT, [("verdict", "=", verdict)]),
            reasons.get(verdict, ()),
            applications.get(verdict, ()),
        )
        for verdict, rows in verdicts.items()
    }


def _extent(
    rows: int, found: Row, reasons: tuple[tuple[str, int], ...], applications: tuple[tuple[str, int], ...]
) -> VerdictExtent:
    since = ms(found["since"])
    return VerdictExtent(
        rows=rows,
        transactions=found["transactions"],
        partitions=found["partitions"],
        new=found["new"],
        since_ms=since,
        is_since_proven=since is not None and since == ms(found["proven_since"]),
        safe=found["safe"],
        safe_later=found["safe_later"],
        safe_from_ms=ms(found["safe_from"]),
        reasons=reasons,
        applications=applications,
    )


def _by_verdict(run: StoredRun, column: str) -> dict[str, tuple[tuple[str, int], ...]]:
    """Verdict -> the values of a column with the number of their rows, most first."""
    found: dict[str, list[tuple[str, int]]] = {}
    counted = run.grouped("open_transactions", ("verdict", column), "count(*)", [(column, "IS NOT", None)], most=MOST_GROUPS)
    for (verdict, value), number in counted.items():
        found.setdefault(verdict, []).append((value, number))
    return {verdict: tuple(each) for verdict, each in found.items()}
