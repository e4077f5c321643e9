"""How far the open transactions of each verdict reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.ask.rows import Row, StoredRun, among, ms

#: Most reasons, and most applications, of all verdicts together. Those with the fewest rows are left out.
MOST_GROUPS: Final = 1_000
#: Most transactions of a verdict among which the first is searched that holds a partition, the oldest ones.
MOST_SEARCHED: Final = 1_000
#: A producer has one transaction at a time, however many partitions it has.
_TRANSACTION: Final = "concat(\"producer_id\", ':', coalesce(\"transactional_id\", ''))"
#: One transaction per producer, one place per partition.
_EXTENT: Final[Mapping[str, str]] = {
    "transactions": f"count(DISTINCT {_TRANSACTION})",
    "new": f'count(DISTINCT CASE WHEN "runs_seen" = 1 THEN {_TRANSACTION} END)',
    "partitions": 'count(DISTINCT concat("topic", \'-\', "partition"))',
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
    #: Partitions whose last stable offset they hold, and how many transactions hold one. All others only wait behind these.
    held: int = 0
    holding: int = 0
    #: Since when the first of these partitions is held, and whether brokers' clocks prove it.
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
    held = run.grouped("partitions", ("blocking_verdict",), "count(*)")
    holding = run.grouped("partitions", ("blocking_verdict",), 'count(DISTINCT "blocking_producer_id")')
    return {
        verdict: _extent(
            rows,
            run.one("open_transactions", _EXTENT, [("verdict", "=", verdict)]),
            {"held": held.get((verdict,), 0), "holding": holding.get((verdict,), 0), **_first_hold(run, verdict)},
            reasons.get(verdict, ()),
            applications.get(verdict, ()),
        )
        for verdict, rows in verdicts.items()
    }


_PLACE: Final = ("topic", "partition", "producer_id")


def _first_hold(run: StoredRun, verdict: str) -> Row:
    """Since when the first partition is held by a transaction of a verdict, and whether brokers' clocks prove it."""
    opened = run.rows(
        "open_transactions",
        (*_PLACE, "blocks_since", "broker_clock_age_ms"),
        [("verdict", "=", verdict), ("blocks_since", "IS NOT", None)],
        order='"blocks_since"',
        limit=MOST_SEARCHED,
    )
    if not opened:
        return {}
    columns = ("topic", "partition", "blocking_producer_id")
    holders = {
        tuple(row.values())
        for row in run.rows("partitions", columns, [("blocking_verdict", "=", verdict), *among(opened, *columns[:2])])
    }
    first = next((row for row in opened if tuple(row[name] for name in _PLACE) in holders), None)
    if first is None:
        return {}
    return {"since_ms": ms(first["blocks_since"]), "is_since_proven": first["broker_clock_age_ms"] is not None}


def _extent(
    rows: int, found: Row, holds: Row, reasons: tuple[tuple[str, int], ...], applications: tuple[tuple[str, int], ...]
) -> VerdictExtent:
    return VerdictExtent(
        rows=rows,
        transactions=found["transactions"],
        partitions=found["partitions"],
        new=found["new"],
        **holds,
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
