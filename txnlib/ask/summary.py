"""The summary of a run, as its report shows it: counts, and the rows that need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.broken_transactions import TransactionOnPartitions, broken_transactions
from txnlib.ask.extents import VerdictExtent, extents, name_of, verdict_of
from txnlib.ask.rows import AUDIT_RUNS, KEY, Filter, Row, StoredRun, among, key_of, ms
from txnlib.core.display import printable
from txnlib.core.finding_catalogue import FINDINGS, Finding, Severity
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.rows import grouped
from txnlib.core.schema import shown
from txnlib.core.verdicts.abort_plan import OF_WHOLE_TRANSACTION

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged

#: Section of two-phase commits that have been open for longer than transaction.max.timeout.ms.
PREPARED: Final = "PREPARED"

#: Sections of a report, in their order.
SECTIONS: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", PREPARED, "UNKNOWN")
#: Those in which the transactions of one owner are handled together.
IN_ONE_CARD: Final = ("LATE", PREPARED)
#: Transactions that no earlier audit has seen.
_IS_NEW: Final = (("runs_seen", "=", 1),)
_LAGS: Final = (("lag_offsets", ">", 0),)
#: Number of transactions in each section of a report. The tables have all.
SHOWN: Final = 20
SHOWN_COPIES: Final = 10
SHOWN_PLACES: Final = 3
SHOWN_MISSING: Final = 20
#: Most partitions of the shown transactions.
MOST_PARTITIONS: Final = 10_000

_OPEN: Final = shown("report")
_INSTANTS: Final = ("transaction_start", "last_timestamp", "blocks_since", "first_seen", "safe_from")
_PLAN: Final = shown("report: plan")
_BEHIND: Final = shown("report: partition")
#: Orders of rows: those that block most first, and partitions that lag longest first.
MOST_BLOCKING: Final = '"blocked_offsets" DESC NULLS LAST, "topic", "partition", "producer_id", "start_offset"'
LONGEST_LAG: Final = '"lag_ms" DESC NULLS LAST, "lag_offsets" DESC, "topic", "partition"'
STATUSES: Final = ("COMPLETE", "PARTIAL", "DAMAGED", "MISSING")
#: Most groups to read that wait on the shown partitions, and most missing coordinator partitions to name.
GROUPS: Final = 10_000
COORDINATORS: Final = 1_000


@dataclass(frozen=True, slots=True)
class FindingPlaces:
    """The findings of one name: how many, what they mean, what to do, and where."""

    name: str
    severity: str
    count: int
    #: The sentences of the runbook. Code is in backticks.
    meaning: str
    advice: str = ""
    #: The first rows of `findings`; none if the severity is INFO.
    places: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in report form: counts of everything, and the rows that need action. Instants are epoch ms."""

    cluster: str
    as_of_ms: int
    as_of_basis: str
    output: str
    kafka_version: str | None = None
    #: Counts: rows by verdict; transactions, rows (alarms) and new rows by verdict, where LOOKS_LATE is apart from
    #: LATE; findings by severity; undecided two-phase commits that are overdue or in time; coverage by status; rows of
    #: tables.
    counts: Mapping[str, Any] = field(default_factory=dict)
    #: Verdict or PREPARED -> rows of open_transactions with their plan, in its order: those that hold a partition come
    #: first. Without those that are acknowledged.
    transactions: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    #: Action of the plan -> number of its steps.
    actions: Mapping[str, int] = field(default_factory=dict)
    #: Of those that only their age keeps from being safe to abort, the first that is old enough: its key, and
    #: safe_from.
    next_safe: Row | None = None
    #: Verdict, or LOOKS_LATE -> how far its transactions reach.
    extents: Mapping[str, VerdictExtent] = field(default_factory=dict)
    #: What is acknowledged; None if nothing was given.
    known: Acknowledged | None = None
    #: Instant of the audit of this cluster before this one; None if this is the first.
    earlier_ms: int | None = None
    captured_to_ms: int | None = None
    is_instant_assumed: bool = False
    brokers: int = 0
    partitions_read: int = 0
    partitions_known: int = 0
    #: Partitions without a copy of which the leader said that nothing was open.
    partitions_quiet: int = 0
    #: Partitions whose judged copy is text of Kafka's tools.
    partitions_as_text: int = 0
    #: Partitions of whose judged copy nothing shows what was open where it begins.
    partitions_hidden: int = 0
    coordinators_read: int = 0
    coordinators_known: int = 0
    missing_coordinators: tuple[int, ...] = ()
    #: Topic and number of the first other partitions of which no copy was read.
    missing_partitions: tuple[tuple[str, int], ...] = ()
    unreadable_bytes: int = 0
    worst_lag: Row | None = None
    #: When the oldest open transaction began, according to its coordinator, else by the best available clock.
    oldest_open_ms: int | None = None
    #: All findings by name, the most severe first.
    findings: Sequence[FindingPlaces] = ()
    #: Transactions that the previous run warned of and that are no longer open, and their number.
    ended: Sequence[Row] = ()
    ended_known: int = 0
    #: Transactions that are split or half-marked.
    broken: Sequence[TransactionOnPartitions] = ()
    #: Copies that are not COMPLETE.
    incomplete: Sequence[Row] = ()
    #: Broker settings for which Kafka's defaults are assumed.
    assumed: tuple[str, ...] = ()
    #: The newest time in the cluster's metadata log, and what its leaders are worth; None: there is no such log.
    metadata_ms: int | None = None
    metadata_basis: str | None = None

    @property
    def split(self) -> list[TransactionOnPartitions]:
        """The broken transactions, except those that only wait for a marker."""
        return [each for each in self.broken if not each.is_only_pending]


def summarise(
    run: StoredRun,
    known: Acknowledged | None = None,
    *,
    shown: int = SHOWN,
    shown_copies: int = SHOWN_COPIES,
    shown_places: int = SHOWN_PLACES,
) -> Summary:
    """The run as its report shows it. Each question has a limit: nothing that grows with the logs is collected.

    `known`: what is acknowledged, which its sections do not list. `shown` is the limit of each section, of the ended
    and of the broken transactions, `shown_copies` that of incomplete copies, `shown_places` that of the places of each
    finding.
    """
    rows, new = _by_name(run), _by_name(run, _IS_NEW)
    verdicts: Counter[str] = Counter()
    for name, number in rows.items():
        verdicts[verdict_of(name)] += number  # those that only look late are LATE, too
    reach = extents(run, rows)
    began = run.one("open_transactions", {"began": 'min(coalesce("transaction_start", "blocks_since"))'})["began"]
    covered = _coverage(run, shown_copies)
    lags = run.rows("partitions", ("topic", "partition", "lag_offsets", "lag_ms"), _LAGS, order=LONGEST_LAG, limit=1)
    found = finding_places(run, shown_places)
    severities: Counter[str] = Counter()
    for each in found:
        severities[each.severity] += each.count
    counts = {
        "verdicts": dict(sorted(verdicts.items())),
        "alarms": rows,
        "new": new,
        "transactions": {verdict: extent.transactions for verdict, extent in reach.items()},
        "findings": dict(severities),
        "in_doubt": _in_doubt(run),
        "coverage": covered.pop("statuses"),
        "rows": {"open_transactions": sum(verdicts.values()), "record_batches": covered.pop("batches")},
    }
    return Summary(
        cluster=run.cluster,
        as_of_ms=run.as_of_ms,
        as_of_basis=run.settings["as_of_basis"],
        output=run.tables.root,
        kafka_version=run.settings["kafka_version"],
        assumed=tuple(run.settings["assumed"]),
        metadata_ms=run.settings["metadata_known_ms"],
        metadata_basis=run.settings["metadata_basis"],
        counts=counts,
        transactions=_sections(run, verdicts, known, shown),
        actions={key[0]: count for key, count in run.grouped("abort_plan", ("action",), "count(*)").items()},
        next_safe=_next_safe(run),
        known=known,
        extents=reach,
        earlier_ms=_earlier_ms(run),
        worst_lag=lags[0] if lags else None,
        oldest_open_ms=ms(began),
        findings=found,
        ended=run.rows(
            "ended_transactions", (*KEY, "verdict", "says"), order='"topic", "partition", "start_offset"', limit=shown
        ),
        ended_known=run.number("ended_transactions", "count(*)") or 0,
        broken=broken_transactions(run, shown),
        **covered,
    )


def _by_name(run: StoredRun, where: Sequence[Filter] = ()) -> dict[str, int]:
    """The number of open transactions on partitions by verdict; what only looks late is counted by itself
    (`extents.name_of`)."""
    numbers: Counter[str] = Counter()
    for (verdict, reason), number in run.grouped("open_transactions", ("verdict", "reason"), "count(*)", where).items():
        numbers[name_of(verdict, reason)] += number
    return dict(sorted(numbers.items()))


def _in_doubt(run: StoredRun) -> dict[str, int]:
    """The number of undecided two-phase commits that are overdue, and that are in time.

    Overdue is what is open for longer than `in_doubt_after_minutes`, or nobody knows since when.
    """
    since_ms = max(run.as_of_ms - run.settings["in_doubt_after_ms"], 0)
    since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()
    known = run.number("in_doubt_transactions", "count(*)") or 0
    in_time = run.number("in_doubt_transactions", "count(*)", [("open_since", ">=", since)]) or 0
    return {name: number for name, number in (("OVERDUE", known - in_time), ("IN_TIME", in_time)) if number}


def broker_rows(run: StoredRun, columns: Sequence[str], most: int) -> list[Row]:
    """The first brokers, each with KIP-939's active-transaction-open-time-max in ms: the age of the oldest Ongoing
    transaction of its coordinators."""
    rows = run.rows("brokers", ("broker", *columns, "oldest_ongoing_start"), order='"broker"', limit=most)
    found = []
    for row in rows:
        start = ms(row["oldest_ongoing_start"])
        shown = {name: row[name] for name in ("broker", *columns)}
        found.append({**shown, _OPEN_TIME: None if start is None else max(run.as_of_ms - start, 0)})
    return found


_OPEN_TIME: Final = "active_transaction_open_time_max_ms"


def cards(section: str, rows: Sequence[Row]) -> list[list[Row]]:
    """Transactions that are handled together: those of one owner, if the owner has to act."""
    if section not in IN_ONE_CARD:
        return [[row] for row in rows]
    return list(grouped(rows, lambda row: (row["transactional_id"], row["producer_id"])).values())


def _earlier_ms(run: StoredRun) -> int | None:
    """The instant of the newest finished audit of the cluster before this one."""
    is_earlier = [("cluster", "=", run.cluster), ("status", "=", "DONE"), ("run_id", "<>", run.run_id)]
    instants = (ms(row["as_of"]) for row in run.tables.rows(AUDIT_RUNS, ("as_of",), is_earlier))
    return max((instant for instant in instants if instant is not None and instant < run.as_of_ms), default=None)


def finding_places(run: StoredRun, shown: int) -> list[FindingPlaces]:
    """All findings of a run, the most severe first. One query for each that has places."""
    counted = run.grouped("findings", ("name", "severity"), "count(*)")
    worst_first = sorted(counted.items(), key=lambda item: (-Severity[item[0][1]], item[0][0]))
    found = []
    for (name, severity), count in worst_first:
        rule = FINDINGS[Finding[name]]
        of_severity: list[Filter] = [("name", "=", name), ("severity", "=", severity)]
        places = (
            []
            if severity == Severity.INFO.name
            else run.rows("findings", _PLACE, of_severity, order=_BY_PLACE, limit=shown)
        )
        found.append(FindingPlaces(name, severity, count, rule.meaning, rule.advice, places))
    return found


_PLACE: Final = shown("page: findings")
_BY_PLACE: Final = '"topic" NULLS LAST, "partition", "offset", "producer_id", "transactional_id"'


def places_of(finding: FindingPlaces) -> str:
    """The first places of findings of one name; empty if they have none."""
    first = finding.places[:SHOWN_PLACES]
    places = list(dict.fromkeys(filter(None, map(_place, first))))
    more = finding.count - len(first)
    return ", ".join(places) + (f" and {more} more" if places and more > 0 else "")


def _place(row: Row) -> str:
    if row["topic"] is None:
        return "" if row["transactional_id"] is None else printable(row["transactional_id"])
    return f"{printable(row['topic'])}-{row['partition']}" + (
        "" if row["offset"] is None else f" offset {row['offset']}"
    )


def verdict_of_section(section: str) -> str:
    """The verdict of the transactions of a section."""
    return "OPEN" if section == PREPARED else section


def _sections(
    run: StoredRun, verdicts: Mapping[str, int], known: Acknowledged | None, most: int
) -> dict[str, list[Row]]:
    """The first transactions of each section in the order of the plan, each with its step, what is behind it, and who
    waits.

    What is open and planned for is a two-phase commit that was left alone.
    """
    of_section = {section: verdict_of_section(section) for section in SECTIONS}
    shown = {
        section: _planned(run, verdict, known, most) for section, verdict in of_section.items() if verdict in verdicts
    }
    _complete(run, [row for rows in shown.values() for row in rows])
    return {section: rows for section, rows in shown.items() if rows}


def _planned(run: StoredRun, verdict: str, known: Acknowledged | None, most: int) -> list[Row]:
    """The first transactions of a verdict that the plan has, in its order, each with its step."""
    left_out = set() if known is None else known.of_verdict(verdict)
    planned = [("verdict", "=", verdict)]
    steps = run.rows(
        "abort_plan", (*KEY, "transactional_id", *_PLAN), planned, order='"number"', limit=most + len(left_out)
    )
    if not steps:
        return []
    of_them = [*planned, *among(steps, "producer_id")]
    opened = run.rows("open_transactions", _OPEN, of_them, order=MOST_BLOCKING, limit=MOST_PARTITIONS)
    # The plan has one step for what a coordinator does on all partitions of a transaction.
    whole = {(step["producer_id"], step["transactional_id"]): step for step in steps if step["action"] in _WHOLE}
    own = {key_of(step): step for step in steps}
    rows = []
    for row in opened:
        step = own.get(key_of(row)) or whole.get((row["producer_id"], row["transactional_id"]))
        if step is not None and key_of(row) not in left_out:
            rows.append(row | {name: step[name] for name in _PLAN} | {"is_first": key_of(row) == key_of(step)})
    return sorted(rows, key=lambda row: (row["number"], not row["is_first"]))[:most]


def _next_safe(run: StoredRun) -> Row | None:
    is_later: list[Filter] = [("safe_to_abort", "=", False), ("safe_from", "IS NOT", None)]
    order = '"safe_from", "topic", "partition", "start_offset"'
    rows = run.rows("open_transactions", (*KEY, "safe_from"), is_later, order=order, limit=1)
    return rows[0] | {"safe_from": ms(rows[0]["safe_from"])} if rows else None


def _complete(run: StoredRun, rows: list[Row]) -> None:
    """Puts to each row what holds its partition now and next, and the groups that wait there; instants become epoch
    ms."""
    if not rows:
        return
    here = among(rows, "topic", "partition")
    behind = {
        (row["topic"], row["partition"]): row for row in run.rows("partitions", ("topic", "partition", *_BEHIND), here)
    }
    waiting: dict[tuple[str, int], set[str]] = {}
    for row in run.rows("blocked_groups", ("topic", "partition", "group_id"), here, order='"group_id"', limit=GROUPS):
        waiting.setdefault((row["topic"], row["partition"]), set()).add(row["group_id"])
    for row in rows:
        place = row["topic"], row["partition"]
        row.update({name: behind.get(place, {}).get(name) for name in _BEHIND})
        row["groups"] = sorted(waiting.get(place, ()))
        row.update({name: ms(row[name]) for name in _INSTANTS})


_WHOLE: Final = {action.name for action in OF_WHOLE_TRANSACTION}


def _coverage(run: StoredRun, shown_copies: int) -> dict[str, Any]:
    partition = """concat("topic", '-', "partition")"""
    is_quiet = 'coalesce("is_nothing_open", FALSE)'
    is_missing, is_coordinator = "\"status\" = 'MISSING'", f"\"topic\" = '{TRANSACTION_STATE_TOPIC}'"
    counted = run.one(
        "coverage",
        {
            "partitions_read": f"count(DISTINCT CASE WHEN NOT {is_missing} THEN {partition} END)",
            "partitions_known": f"count(DISTINCT {partition})",
            "partitions_quiet": f"count(DISTINCT CASE WHEN {is_quiet} THEN {partition} END)",
            "partitions_as_text": (
                f"""count(DISTINCT CASE WHEN "is_judged" AND "source" LIKE 'text:%' THEN {partition} END)"""
            ),
            "partitions_hidden": (
                f'count(DISTINCT CASE WHEN "is_judged" AND "hidden_below" IS NOT NULL THEN {partition} END)'
            ),
            "coordinators_read": (
                f'count(DISTINCT CASE WHEN NOT {is_missing} AND {is_coordinator} THEN "partition" END)'
            ),
            "coordinators_known": f'count(DISTINCT CASE WHEN {is_coordinator} THEN "partition" END)',
            "unreadable_bytes": 'coalesce(sum("unreadable_bytes"), 0)',
            "batches": 'coalesce(sum("batches"), 0)',
            "brokers": 'count(DISTINCT "broker")',
            "captured_to_ms": 'max("captured_at")',
            "is_instant_assumed": f'coalesce(bool_or(NOT {is_missing} AND "captured_at" IS NULL), FALSE)',
        },
    )
    statuses = {key[0]: number for key, number in run.grouped("coverage", ("status",), "count(*)").items()}
    is_lost: list[Filter] = [("status", "=", "MISSING"), ("topic", "=", TRANSACTION_STATE_TOPIC)]
    missing = run.rows("coverage", ("partition",), is_lost, order='"partition"', limit=COORDINATORS)
    is_lost_data: list[Filter] = [
        ("status", "=", "MISSING"),
        ("topic", "<>", TRANSACTION_STATE_TOPIC),
        ("is_nothing_open", "IS", None),
    ]
    missing_data = run.rows(
        "coverage", ("topic", "partition"), is_lost_data, order='"topic", "partition"', limit=SHOWN_MISSING
    )
    return {
        **counted,
        "captured_to_ms": ms(counted["captured_to_ms"]),
        "statuses": {status: statuses.get(status, 0) for status in STATUSES},
        "missing_coordinators": tuple(row["partition"] for row in missing),
        "missing_partitions": tuple((row["topic"], row["partition"]) for row in missing_data),
        "incomplete": run.rows(
            "coverage",
            ("topic", "partition", "source", "status", "detail"),
            [("status", "IN", ("PARTIAL", "DAMAGED")), ("is_judged", "=", True)],
            order='"topic", "partition"',
            limit=shown_copies + 1,
        ),
    }
