"""How far the open transactions of each verdict reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.ask.rows import Filter, Row, StoredRun, among, ms
from txnlib.core.verdicts.reason import Reason

#: Counted apart from LATE: transactions that only old timestamps of their client make late. Their coordinator still waits.
LOOKS_LATE: Final = "LOOKS_LATE"
_OLD_TIMESTAMPS: Final = Reason.TIMEOUT_NOT_PASSED.value
#: Most reasons, and most applications, of all verdicts together. Those with the fewest transactions are left out.
MOST_GROUPS: Final = 1_000
#: Most transactions of a verdict among which the first is searched that holds a partition, the oldest ones.
MOST_SEARCHED: Final = 1_000
#: Most partitions held by LATE transactions of which is looked up whether their holders only look late.
MOST_HELD: Final = 10_000
#: A producer has one transaction at a time, however many partitions it has.
_TRANSACTION: Final = "concat(\"producer_id\", ':', coalesce(\"transactional_id\", ''))"
_TRANSACTIONS: Final = f"count(DISTINCT {_TRANSACTION})"
_IS_SAFE_LATER: Final = 'NOT coalesce("safe_to_abort", FALSE) AND "safe_from" IS NOT NULL'
#: One transaction per producer, one place per partition.
_EXTENT: Final[Mapping[str, str]] = {
    "transactions": _TRANSACTIONS,
    "new": f'count(DISTINCT CASE WHEN "runs_seen" = 1 THEN {_TRANSACTION} END)',
    "partitions": 'count(DISTINCT concat("topic", \'-\', "partition"))',
    "safe": f'count(DISTINCT CASE WHEN "safe_to_abort" THEN {_TRANSACTION} END)',
    "safe_rows": 'count(CASE WHEN "safe_to_abort" THEN 1 END)',
    "safe_later": f"count(DISTINCT CASE WHEN {_IS_SAFE_LATER} THEN {_TRANSACTION} END)",
    "safe_from": f'max(CASE WHEN {_IS_SAFE_LATER} THEN "safe_from" END)',
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
    #: Transactions that may be aborted now on some partition, and on how many; transactions that become safe if they stay open; and
    #: when the last of these does.
    safe: int = 0
    safe_rows: int = 0
    safe_later: int = 0
    safe_from_ms: int | None = None
    #: Transactions by reason, and by application (None: not known); most first. One may have a reason for each partition.
    reasons: tuple[tuple[str | None, int], ...] = ()
    applications: tuple[tuple[str | None, int], ...] = ()


def name_of(verdict: str, reason: str | None) -> str:
    """What a transaction counts as: its verdict, or LOOKS_LATE."""
    return LOOKS_LATE if verdict == "LATE" and reason == _OLD_TIMESTAMPS else verdict


def verdict_of(name: str) -> str:
    """The verdict of what counts as this: the inverse of `name_of`."""
    return "LATE" if name == LOOKS_LATE else name


def extents(run: StoredRun, numbers: Mapping[str, int]) -> dict[str, VerdictExtent]:
    """The extent of each verdict, and of what only looks late. `numbers`: of the rows of each (`name_of`)."""
    reasons, applications = _groups(run, "reason", numbers), _groups(run, "application", numbers)
    holds = _holds(run, numbers)
    found = {}
    for name, rows in numbers.items():
        where = _rows_of(name)
        extent = run.one("open_transactions", _EXTENT, where)
        found[name] = VerdictExtent(
            rows,
            safe_from_ms=ms(extent.pop("safe_from")),
            **extent,
            **holds.get(name, {}),
            **_first_hold(run, where),
            reasons=reasons.get(name, ()),
            applications=applications.get(name, ()),
        )
    return found


def _rows_of(name: str) -> list[Filter]:
    if name == LOOKS_LATE:
        return [("verdict", "=", "LATE"), ("reason", "=", _OLD_TIMESTAMPS)]
    return [("verdict", "=", name), *([("reason", "<>", _OLD_TIMESTAMPS)] if name == "LATE" else [])]


def _holds(run: StoredRun, numbers: Mapping[str, int]) -> dict[str, Row]:
    """How many partitions the transactions of each name hold, and how many of them hold any.

    `partitions` has the verdict of each holder, not its reason. So holders that only look late are looked up, at most MOST_HELD.
    """
    held = run.grouped("partitions", ("blocking_verdict",), "count(*)", _IS_HELD)
    holding = run.grouped("partitions", ("blocking_verdict",), 'count(DISTINCT "blocking_producer_id")', _IS_HELD)
    found = {verdict: {"held": number, "holding": holding[verdict,]} for (verdict,), number in held.items()}
    if LOOKS_LATE in numbers and "LATE" in found:
        late = run.rows("partitions", _HOLDER, [*_IS_HELD, ("blocking_verdict", "=", "LATE")], limit=MOST_HELD)
        near = run.rows("open_transactions", _PLACE, [*_rows_of(LOOKS_LATE), *among(late, *_HOLDER[:2])])
        old = {tuple(row.values()) for row in near} & {tuple(row.values()) for row in late}
        producers = {producer for *_, producer in old}
        others = {row["blocking_producer_id"] for row in late} - producers
        found[LOOKS_LATE] = {"held": len(old), "holding": len(producers)}
        found["LATE"] = {"held": found["LATE"]["held"] - len(old), "holding": len(others)}
    return found


_PLACE: Final = ("topic", "partition", "producer_id")
_HOLDER: Final = ("topic", "partition", "blocking_producer_id")
_IS_HELD: Final[Sequence[Filter]] = [("blocking_producer_id", "IS NOT", None)]


def _first_hold(run: StoredRun, where: Sequence[Filter]) -> Row:
    """Since when the first partition is held by one of these transactions, and whether brokers' clocks prove it."""
    opened = run.rows(
        "open_transactions",
        (*_PLACE, "blocks_since", "broker_clock_age_ms"),
        [*where, ("blocks_since", "IS NOT", None)],
        order='"blocks_since"',
        limit=MOST_SEARCHED,
    )
    if not opened:
        return {}
    holders = {tuple(row.values()) for row in run.rows("partitions", _HOLDER, [*_IS_HELD, *among(opened, *_HOLDER[:2])])}
    first = next((row for row in opened if tuple(row[name] for name in _PLACE) in holders), None)
    if first is None:
        return {}
    return {"since_ms": ms(first["blocks_since"]), "is_since_proven": first["broker_clock_age_ms"] is not None}


def _groups(run: StoredRun, column: str, names: Iterable[str]) -> dict[str, tuple[tuple[Any, int], ...]]:
    """Verdict, or LOOKS_LATE -> the values of a column with the number of their transactions, most first."""
    counted = run.grouped("open_transactions", ("verdict", column), _TRANSACTIONS, [("verdict", "<>", "LATE")], most=MOST_GROUPS)
    found = {(verdict, value): number for (verdict, value), number in counted.items()}
    # LATE is two names, by reason. Grouping by it would count a transaction once for each of its reasons.
    for name in {"LATE", LOOKS_LATE}.intersection(names):
        late = run.grouped("open_transactions", (column,), _TRANSACTIONS, _rows_of(name), most=MOST_GROUPS)
        found |= {(name, value): number for (value,), number in late.items()}
    groups: dict[str, list[tuple[Any, int]]] = {}
    for (name, value), number in found.items():
        groups.setdefault(name, []).append((value, number))
    return {name: tuple(sorted(of, key=lambda each: (-each[1], str(each[0])))) for name, of in groups.items()}
