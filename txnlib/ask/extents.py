"""How far the open transactions of each verdict reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.rows import Filter, Row, StoredRun, among, ms
from txnlib.core.rows import grouped
from txnlib.core.verdicts.reason import Reason

#: Counted apart from LATE: transactions that only old timestamps of their client make late. Their coordinator still
#: waits.
LOOKS_LATE: Final = "LOOKS_LATE"
_OLD_TIMESTAMPS: Final = Reason.TIMEOUT_NOT_PASSED.value
#: `name_of` in SQL.
_NAME: Final = (
    f"CASE WHEN \"verdict\" = 'LATE' AND \"reason\" = '{_OLD_TIMESTAMPS}' THEN '{LOOKS_LATE}' ELSE \"verdict\" END"
)
#: Most reasons, and most applications, of a verdict. Those with the fewest transactions are left out.
MOST_GROUPS: Final = 1_000
#: Most held partitions, those with most offsets first, whose holder is looked up: since when, and whether it only looks
#: late.
MOST_HELD: Final = 10_000
#: Most of these to name.
NAMED_PLACES: Final = 2
#: A producer has one transaction at a time, however many partitions it has.
_TRANSACTION: Final = "concat(\"producer_id\", ':', coalesce(\"transactional_id\", ''))"
_IS_SAFE_LATER: Final = 'NOT coalesce("safe_to_abort", FALSE) AND "safe_from" IS NOT NULL'
#: One transaction per producer, one place per partition.
_EXTENT: Final[Mapping[str, str]] = {
    "transactions": f"count(DISTINCT {_TRANSACTION})",
    "new": f'count(DISTINCT CASE WHEN "runs_seen" = 1 THEN {_TRANSACTION} END)',
    "partitions": 'count(DISTINCT concat("topic", \'-\', "partition"))',
    "safe": f'count(DISTINCT CASE WHEN "safe_to_abort" THEN {_TRANSACTION} END)',
    "safe_rows": 'count(CASE WHEN "safe_to_abort" THEN 1 END)',
    "safe_later": f"count(DISTINCT CASE WHEN {_IS_SAFE_LATER} THEN {_TRANSACTION} END)",
    "safe_from_ms": f'max(CASE WHEN {_IS_SAFE_LATER} THEN "safe_from" END)',
}


@dataclass(frozen=True, slots=True)
class VerdictExtent:
    """The open transactions of one verdict, in numbers. A row is a transaction on one partition. Times are epoch ms."""

    rows: int
    transactions: int
    partitions: int
    #: Transactions that no earlier audit saw.
    new: int = 0
    #: Partitions whose last stable offset they hold, and how many transactions hold one. All others only wait behind
    #: these.
    held: int = 0
    holding: int = 0
    #: Offsets that consumers do not get there; and the first of these partitions, those with most of them.
    held_offsets: int = 0
    places: tuple[Row, ...] = ()
    #: Since when one of these partitions has been held longest, and whether brokers' clocks prove it.
    since_ms: int | None = None
    is_since_proven: bool = False
    #: Transactions that may be aborted now on some partition, and their rows; transactions that become safe if they
    #: stay open; and when the last of these does.
    safe: int = 0
    safe_rows: int = 0
    safe_later: int = 0
    safe_from_ms: int | None = None
    #: Transactions by reason, and by application (None: not known); most first. One may have a reason for each
    #: partition.
    reasons: tuple[tuple[str | None, int], ...] = ()
    applications: tuple[tuple[str | None, int], ...] = ()


def name_of(verdict: str, reason: str | None) -> str:
    """What a transaction counts as: its verdict, or LOOKS_LATE."""
    return LOOKS_LATE if verdict == "LATE" and reason == _OLD_TIMESTAMPS else verdict


def verdict_of(name: str) -> str:
    """The verdict of what counts as this: the inverse of `name_of`."""
    return "LATE" if name == LOOKS_LATE else name


def names_of(verdict: str) -> tuple[str, ...]:
    """What the transactions of a verdict count as."""
    return (verdict, LOOKS_LATE) if verdict == "LATE" else (verdict,)


def counted_as(name: str | None) -> list[Filter]:
    """Filters for the transactions that count as this; None: all. LATE has those that only look late, too."""
    wanted = {
        "verdict": None if name is None else verdict_of(name),
        "reason": _OLD_TIMESTAMPS if name == LOOKS_LATE else None,
    }
    return [(column, "=", value) for column, value in wanted.items() if value is not None]


def extents(run: StoredRun, numbers: Mapping[str, int]) -> dict[str, VerdictExtent]:
    """The extent of each verdict, and of what only looks late. `numbers`: of the rows of each (`name_of`)."""
    if not numbers:
        return {}
    holds = _holds(run)
    found: dict[str, Row] = {name: {"reasons": (), "applications": ()} for name in numbers}
    for row in _groups(run, len(numbers)):
        extent = found[row["name"]]
        if row["is_of_all"]:
            extent |= {name: row[name] for name in _EXTENT} | {"safe_from_ms": ms(row["safe_from_ms"])}
        elif row["place"] <= MOST_GROUPS:
            several = "reasons" if row["is_of_reason"] else "applications"
            extent[several] += ((row["reason"] if row["is_of_reason"] else row["application"], row["transactions"]),)
    return {name: VerdictExtent(rows, **found[name], **holds.get(name, {})) for name, rows in numbers.items()}


def _groups(run: StoredRun, names: int) -> list[Row]:
    """What each verdict reaches: in all, by reason and by application, those with most transactions first. One query
    for all."""
    most_first = (
        f"ORDER BY {_EXTENT['transactions']} DESC, coalesce(\"reason\", 'None'), coalesce(\"application\", 'None')"
    )
    chosen = {
        "name": _NAME,
        "reason": '"reason"',
        "application": '"application"',
        "is_of_reason": 'grouping("reason") = 0',
        "is_of_all": 'grouping("reason") + grouping("application") = 2',
        **_EXTENT,
        "place": f'row_number() OVER (PARTITION BY {_NAME}, grouping("reason"), grouping("application") {most_first})',
    }
    sets = f'GROUPING SETS (({_NAME}), ({_NAME}, "reason"), ({_NAME}, "application"))'
    columns = ", ".join(f'{expression} AS "{column}"' for column, expression in chosen.items())
    after = f' GROUP BY {sets} ORDER BY "place" LIMIT {3 * names * MOST_GROUPS}'
    return run.ask("open_transactions", columns, (), after)


def _holds(run: StoredRun) -> dict[str, Row]:
    """Verdict, or LOOKS_LATE -> what its transactions hold.

    `partitions` has the verdict of each holder, and not its reason or its start. So holders are looked up, at most
    MOST_HELD.
    """
    sums = ", ".join(f'{expression} AS "{name}"' for name, expression in _SUMS.items())
    rows = run.ask("partitions", f'"blocking_verdict", {sums}', _IS_HELD, ' GROUP BY "blocking_verdict"')
    found: dict[str, Row] = {row.pop("blocking_verdict"): row for row in rows}
    places = grouped(_held_places(run), lambda row: row["name"])
    if old := places.get(LOOKS_LATE):
        found[LOOKS_LATE] = _summed(old)
        found["LATE"] = {name: number - found[LOOKS_LATE][name] for name, number in found["LATE"].items()}
        found["LATE"]["holding"] = _summed(places.get("LATE", []))["holding"]
    for name, held in places.items():
        timed = [row for row in held if row["since_ms"] is not None]
        oldest = min(timed, key=lambda row: row["since_ms"], default={"since_ms": None, "broker_clock_age_ms": None})
        proven = oldest["broker_clock_age_ms"] is not None
        found.setdefault(name, _summed(held)).update(
            {"places": tuple(held[:NAMED_PLACES]), "since_ms": oldest["since_ms"], "is_since_proven": proven}
        )
    return found


def _held_places(run: StoredRun) -> list[Row]:
    """Partitions that are held by a transaction that is not in time, those with most offsets first."""
    is_wrong: list[Filter] = [*_IS_HELD, ("blocking_verdict", "<>", "OPEN")]
    order = '"lag_offsets" DESC, "topic", "partition"'
    held = run.rows("partitions", (*_HOLDER, "lag_offsets"), is_wrong, order=order, limit=MOST_HELD)
    if not held:
        return []
    columns = (*_PLACE, "start_offset", "verdict", "reason", "blocks_since", "broker_clock_age_ms")
    by_them: Filter = ("producer_id", "IN", {row["blocking_producer_id"] for row in held})
    near = run.rows("open_transactions", columns, [*among(held, "topic", "partition"), by_them])
    holders = {tuple(row[name] for name in _PLACE): row for row in near}
    found = [(row, holders.get(tuple(row[name] for name in _HOLDER))) for row in held]
    return [
        {**row, **holder, "name": name_of(holder["verdict"], holder["reason"]), "since_ms": ms(holder["blocks_since"])}
        for row, holder in found
        if holder is not None
    ]


def _summed(rows: Sequence[Row]) -> Row:
    holding = len({row["producer_id"] for row in rows})
    return {"held": len(rows), "holding": holding, "held_offsets": sum(row["lag_offsets"] or 0 for row in rows)}


_PLACE: Final = ("topic", "partition", "producer_id")
_HOLDER: Final = ("topic", "partition", "blocking_producer_id")
_IS_HELD: Final[Sequence[Filter]] = [("blocking_producer_id", "IS NOT", None), ("lag_offsets", ">", 0)]
_SUMS: Final = {
    "held": "count(*)",
    "holding": 'count(DISTINCT "blocking_producer_id")',
    "held_offsets": 'coalesce(sum("lag_offsets"), 0)',
}
