"""How far the open transactions of each verdict reach: what they hold, and until when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.queries import Filter, Row, StoredRun, ms
from txnlib.ask.words import NAME, clock, name_of, where
from txnlib.core.display import counted, elapsed, not_before, printable, some_of
from txnlib.core.rows import grouped

#: Most reasons, and most applications, of a verdict. Those with the fewest transactions are left out.
MOST_GROUPS: Final = 1_000
#: Most holders of partitions to read, those with most offsets first. The oldest is sought among them.
MOST_HELD: Final = 10_000
#: Most held partitions to name.
NAMED_PLACES: Final = 2
#: SQL for the key of a transaction: a producer has only one at a time, on any number of partitions.
_TRANSACTION: Final = "concat(\"producer_id\", ':', coalesce(\"transactional_id\", ''))"
_IS_SAFE_LATER: Final = 'NOT coalesce("safe_to_abort", FALSE) AND "safe_from" IS NOT NULL'
_IS_HOLDER: Final = '"holds" AND "blocked_offsets" > 0'
_HOLDING: Final = f"count(DISTINCT CASE WHEN {_IS_HOLDER} THEN {_TRANSACTION} END)"
#: A two-phase commit: its owner ends it, its coordinator never does.
_IS_UNENDING: Final = 'coalesce("is_two_phase_commit", FALSE) AND "ends_by" IS NULL'
_EXTENT: Final[Mapping[str, str]] = {
    "rows": "count(*)",
    "transactions": f"count(DISTINCT {_TRANSACTION})",
    "new": f'count(DISTINCT CASE WHEN "runs_seen" = 1 THEN {_TRANSACTION} END)',
    "new_rows": 'count(CASE WHEN "runs_seen" = 1 THEN 1 END)',
    "partitions": 'count(DISTINCT concat("topic", \'-\', "partition"))',
    "held": f"count(CASE WHEN {_IS_HOLDER} THEN 1 END)",
    "holding": _HOLDING,
    "idle": f'count(DISTINCT CASE WHEN "holds" THEN {_TRANSACTION} END) - {_HOLDING}',
    "held_offsets": f'coalesce(sum(CASE WHEN {_IS_HOLDER} THEN "blocked_offsets" END), 0)',
    "safe": f'count(DISTINCT CASE WHEN "safe_to_abort" THEN {_TRANSACTION} END)',
    "safe_rows": 'count(CASE WHEN "safe_to_abort" THEN 1 END)',
    "safe_later": f"count(DISTINCT CASE WHEN {_IS_SAFE_LATER} THEN {_TRANSACTION} END)",
    "ends_ms": f'max(CASE WHEN {_IS_HOLDER} THEN "ends_by" END)',
    "undecided": f"count(DISTINCT CASE WHEN {_IS_HOLDER} AND {_IS_UNENDING} THEN {_TRANSACTION} END)",
    "safe_from_ms": f'max(CASE WHEN {_IS_SAFE_LATER} THEN "safe_from" END)',
}


@dataclass(frozen=True, slots=True)
class Reach:
    """The open transactions of one verdict, in numbers. A row is a transaction on one partition. Times are epoch ms."""

    rows: int
    transactions: int
    partitions: int
    #: Transactions, and rows, that no earlier audit saw.
    new: int = 0
    new_rows: int = 0
    #: Partitions whose last stable offset these transactions hold; and how many of the transactions hold a partition.
    #: The others only wait behind a holder.
    held: int = 0
    holding: int = 0
    #: Transactions that hold a partition on which nothing waits yet.
    idle: int = 0
    #: Offsets of held partitions that consumers do not get; whether more may wait, because a high watermark is older
    #: than its copy; and the first held partitions, those with most offsets.
    held_offsets: int = 0
    is_at_least: bool = False
    places: tuple[Row, ...] = ()
    #: Since when one of these partitions has been held longest, and whether brokers' clocks prove it.
    since_ms: int | None = None
    is_since_proven: bool = False
    #: By when coordinators end the last holder, or should have ended it; the number of holders that no coordinator
    #: ends, because they are two-phase commits; and the applications of these.
    ends_ms: int | None = None
    undecided: int = 0
    owners: tuple[str, ...] = ()
    #: Transactions, and rows, that are safe to abort now; transactions that become safe if they stay open; and when the
    #: last of these becomes safe.
    safe: int = 0
    safe_rows: int = 0
    safe_later: int = 0
    safe_from_ms: int | None = None
    #: Transactions by reason, and by application (None: not known); most first. One may have a reason for each
    #: partition.
    reasons: tuple[tuple[str | None, int], ...] = ()
    applications: tuple[tuple[str | None, int], ...] = ()


def extents(run: StoredRun) -> dict[str, Reach]:
    """Verdict (or LOOKS_LATE) -> how far its open transactions reach."""
    found: dict[str, Row] = {}
    for row in _groups(run):
        extent = found.setdefault(row["name"], {"reasons": (), "applications": ()})
        if row["is_of_all"]:
            extent |= {name: row[name] for name in _EXTENT}
            extent |= {name: ms(row[name]) for name in ("safe_from_ms", "ends_ms")}
        elif row["place"] <= MOST_GROUPS:
            several = "reasons" if row["is_of_reason"] else "applications"
            extent[several] += ((row["reason"] if row["is_of_reason"] else row["application"], row["transactions"]),)
    for name, held in grouped(_holders(run), name_of).items():
        timed = [row for row in held if row["blocks_since"] is not None]
        oldest = min(timed, key=lambda row: row["blocks_since"], default=dict.fromkeys(_HOLDER))
        found[name] |= {
            "places": () if name == "OPEN" else tuple(held[:NAMED_PLACES]),
            "owners": tuple(dict.fromkeys(row["application"] for row in held if _is_unending(row))),
            "is_at_least": any(row["is_at_least"] for row in held),
            "since_ms": ms(oldest["blocks_since"]),
            "is_since_proven": oldest["broker_clock_age_ms"] is not None,
        }
    return {name: Reach(**values) for name, values in sorted(found.items())}


def _groups(run: StoredRun) -> list[Row]:
    """What each verdict reaches: in all, by reason and by application, those with most transactions first. One query
    for all."""
    most_first = (
        f"ORDER BY {_EXTENT['transactions']} DESC, coalesce(\"reason\", 'None'), coalesce(\"application\", 'None')"
    )
    chosen = {
        "name": NAME,
        "reason": '"reason"',
        "application": '"application"',
        "is_of_reason": 'grouping("reason") = 0',
        "is_of_all": 'grouping("reason") + grouping("application") = 2',
        **_EXTENT,
        "place": f'row_number() OVER (PARTITION BY {NAME}, grouping("reason"), grouping("application") {most_first})',
    }
    sets = f'GROUPING SETS (({NAME}), ({NAME}, "reason"), ({NAME}, "application"))'
    columns = ", ".join(f'{expression} AS "{column}"' for column, expression in chosen.items())
    return run.ask("open_transactions", columns, (), f' GROUP BY {sets} ORDER BY "place" LIMIT {30 * MOST_GROUPS}')


_HOLDER: Final = (
    *("topic", "partition", "start_offset", "verdict", "reason", "application", "is_two_phase_commit", "ends_by"),
    *("blocks_since", "broker_clock_age_ms", "blocked_offsets"),
)
_MOST_OFFSETS: Final = '"blocked_offsets" DESC, "topic", "partition"'
_LAG: Final = ("topic", "partition", "end_offset", "high_watermark")


def _holders(run: StoredRun) -> list[Row]:
    """The transactions that hold a partition: those in time last, those with most offsets first."""
    is_holder: list[Filter] = [("holds", "=", True), ("blocked_offsets", ">", 0)]
    order = f"CASE WHEN \"verdict\" = 'OPEN' THEN 1 ELSE 0 END, {_MOST_OFFSETS}"
    rows = run.rows("open_transactions", _HOLDER, is_holder, order=order, limit=MOST_HELD)
    lags = run.rows("partitions", _LAG, [("lag_offsets", ">", 0)], limit=MOST_HELD) if rows else []
    short = {(lag["topic"], lag["partition"]) for lag in lags if is_short(lag)}
    return [row | {"is_at_least": (row["topic"], row["partition"]) in short} for row in rows]


def _is_unending(row: Row) -> bool:
    return row["application"] is not None and bool(row["is_two_phase_commit"]) and row["ends_by"] is None


def is_short(partition: Row) -> bool:
    """Whether more offsets may wait than are counted: the checkpoint of the high watermark is older than the copy."""
    return (partition["end_offset"] or 0) > (partition["high_watermark"] or 0)


# ---- The same in words


#: Most owners of two-phase commits to name.
NAMED_OWNERS: Final = 2


def held(reach: Reach, as_of_ms: int) -> str:
    """What the transactions hold, in words: which partitions, for how long, how many offsets wait there, until when,
    and how many transactions only wait."""
    waiting = reach.transactions - reach.holding - reach.idle
    if not reach.held and not reach.idle:
        return "it waits behind another" if reach.transactions == 1 else "all wait behind others"
    parts = []
    if reach.held:
        parts += [_partitions(reach, as_of_ms), f"{_offsets(reach)}{_until(reach, as_of_ms)}"]
    if reach.undecided:
        parts.append(_owners(reach.undecided, reach.owners))
    if waiting > 0:
        parts.append(f"{waiting} wait{'s' if waiting == 1 else ''} behind others")
    if reach.idle:
        whom = f"{reach.idle} of them" if reach.idle < reach.transactions else "it" if reach.idle == 1 else "them"
        parts.append(f"nothing waits for {whom} yet")
    return "; ".join(parts)


def _partitions(reach: Reach, as_of_ms: int) -> str:
    places = ", ".join(f"{where(row)} from offset {row['start_offset']}" for row in reach.places)
    verb = "holds" if reach.transactions == 1 else f"{reach.holding} hold{'s' if reach.holding == 1 else ''}"
    if reach.held == 1:
        said = f"{verb} {places or '1 partition'}"
    else:
        more = reach.held - len(reach.places)
        others = f" and {more} more" if places and more else ""
        said = f"{verb} {counted(reach.held, 'partition')}{f' ({places}{others})' if places else ''}"
    if reach.since_ms is None:
        return said
    longest = "" if reach.held == 1 else ", the longest"
    return f"{said}{longest} for {elapsed(as_of_ms - reach.since_ms)} by {clock(is_brokers=reach.is_since_proven)}"


def _offsets(reach: Reach) -> str:
    least = "at least " if reach.is_at_least else ""
    return f"{least}{counted(reach.held_offsets, 'offset')} wait{'s' if reach.held_offsets == 1 else ''}"


def _until(reach: Reach, as_of_ms: int) -> str:
    """By when coordinators end the last of the holders that they end; empty if they end none, or should have ended them
    by now."""
    if reach.ends_ms is None or reach.ends_ms < as_of_ms:
        return ""
    last = "the last " if reach.holding - reach.undecided > 1 else ""
    return f"{', ' if last else ' '}{last}until {not_before(reach.ends_ms)}"


def _owners(number: int, owners: Sequence[str]) -> str:
    """The holders that are two-phase commits, in words: they stay open until their owners decide."""
    of = some_of([*map(printable, owners)], NAMED_OWNERS)
    until = "until its owner decides" if number == 1 else "until their owners decide"
    return f"{counted(number, 'two-phase commit')} of {of} {until}" if of else f"{number} {until}"
