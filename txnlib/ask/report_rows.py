"""The report of a run, from its tables. Each question has a limit: nothing that grows with the logs is collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.extents import Reach, extents, is_short
from txnlib.ask.pending_commits import put_commits
from txnlib.ask.queries import AUDIT_RUNS, KEY, Filter, Row, StoredRun, among, key_of, ms
from txnlib.ask.report import MEANINGS, SHOWN_PLACES, FindingPlaces, Report
from txnlib.ask.stuck_ids import StuckId, stuck_ids
from txnlib.ask.transaction import broken_transactions
from txnlib.ask.words import PREPARED, ahead, counted_as, name_of, named, where, which_ends
from txnlib.core.copies import UNOPENED
from txnlib.core.coverage.unread import UnreadFiles
from txnlib.core.display import not_before, printable, told
from txnlib.core.finding import Severity
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.schema import shown
from txnlib.core.verdicts.plan_step import NO_ACTION, OF_WHOLE_TRANSACTION, Action

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged

#: Action of the plan -> the sentence about the first step; and another one, if the step has to wait until an instant.
STEPS: Final[Mapping[str, str]] = {
    "ABORT": "abort {place} by hand: it is safe, if the checks still show what they must",
    "ABORT_AS_DECIDED": "abort {place} by hand: its coordinator decided ABORT, and the partition refuses its marker",
    "RESTORE_REPLICAS": "{owner}: too few replicas are in sync to end it: its entry says which to bring back",
    "END_AT_COORDINATOR": "{owner}: its application, or its coordinator, ends it; no abort by hand",
    "REVIVE_COORDINATOR": "{owner}: get its coordinator __transaction_state-{coordinator} going; no abort by hand",
    "ABORT_LATER": "{place} hangs, and is not to be aborted yet",
    "WAIT": "{place} is too young to be called hanging: audit again later",
    "CAPTURE_MORE": "{place} could not be judged: copy what is missing (collect-plan), and audit again",
    "DO_NOT_ABORT": "do not abort {place} by hand: its entry says why",
    "CHECK_TIMESTAMPS": "{owner}: look at the timestamps that it writes; nothing is to be ended",
}
_LATER: Final[Mapping[str, str]] = {
    "ABORT_LATER": "no abort is safe yet: {place} will be from {instant} on, if an audit then still proves the rest",
    "WAIT": "{place} is too young to be called hanging: audit again from {instant} on",
}

#: Number of transactions of each verdict in a report, of copies, and of places of a finding. The tables have all.
SHOWN: Final = 20
SHOWN_COPIES: Final = 10
SHOWN_MISSING: Final = 20
#: Most partitions of the shown transactions, groups that wait there, and missing coordinators to name.
MOST_PARTITIONS: Final = 10_000
GROUPS: Final = 10_000
COORDINATORS: Final = 1_000
STATUSES: Final = ("COMPLETE", "PARTIAL", "DAMAGED", "MISSING")
#: Orders of rows: those that hold a partition and block most first, and partitions that lag longest first.
MOST_BLOCKING: Final = (
    'coalesce("holds", FALSE) DESC, "blocked_offsets" DESC NULLS LAST, "topic", "partition", "producer_id",'
    ' "start_offset"'
)
_BY_PLACE: Final = '"topic", "partition", "start_offset"'
LONGEST_LAG: Final = '"lag_ms" DESC NULLS LAST, "lag_offsets" DESC, "topic", "partition"'
_OPEN: Final = shown("report")
_PLAN: Final = shown("report: plan")
_BEHIND: Final = shown("report: partition")
_INSTANTS: Final = ("transaction_start", "last_timestamp", "blocks_since", "first_seen", "safe_from", "ends_by")
_WHOLE: Final = {action.name for action in OF_WHOLE_TRANSACTION}


def report_of(
    run: StoredRun,
    known: Acknowledged | None = None,
    *,
    shown: int = SHOWN,
    shown_copies: int = SHOWN_COPIES,
    shown_places: int = SHOWN_PLACES,
) -> Report:
    """The report of a run.

    `known`: what is acknowledged; sections do not list it. `shown`: most transactions of each section, and most ended
    and most broken ones. `shown_copies`: most incomplete copies. `shown_places`: most places of each finding.
    """
    reach, found = extents(run), finding_places(run, shown_places)
    stuck = stuck_ids(run, [] if known is None else [entry.filters for entry, _ in known.findings])
    covered = _coverage(run, shown_copies) | _unread(run, shown_copies)
    severities = {name: sum(each.count for each in found if each.severity == name) for name in Severity.__members__}
    counts = {
        "verdicts": {name: extent.rows for name, extent in reach.items()},
        "new": {name: extent.new_rows for name, extent in reach.items()},
        "transactions": {name: extent.transactions for name, extent in reach.items()},
        "holding": {name: extent.held for name, extent in reach.items()},
        "findings": {name: count for name, count in severities.items() if count},
        "in_doubt": _in_doubt(run),
        "ids": {"STUCK": len(stuck)} if stuck else {},
        "coverage": covered.pop("statuses"),
        "unread": {"FILES": covered["unreadable_files"], "PARTITIONS": covered["partitions_in_part"]},
        "rows": {
            "open_transactions": sum(extent.rows for extent in reach.values()),
            "record_batches": covered.pop("batches"),
        },
    }
    earlier = _earlier(run)
    ended = run.rows("ended_transactions", (*KEY, "verdict", "reason", "says"), order=_BY_PLACE, limit=shown)
    oldest = run.one("open_transactions", {"began": 'min(coalesce("transaction_start", "blocks_since"))'})["began"]
    return Report(
        cluster=run.cluster,
        as_of_ms=run.as_of_ms,
        as_of_basis=run.settings["as_of_basis"],
        output=run.tables.root,
        kafka_version=run.settings["kafka_version"],
        topic=run.topic,
        assumed=tuple(run.settings["assumed"]),
        metadata_ms=run.settings["metadata_known_ms"],
        metadata_basis=run.settings["metadata_basis"],
        is_count_assumed=run.settings["coordinator_partitions_basis"] == "DEFAULT",
        counts=counts,
        transactions=_opened(run, reach, known, shown),
        actions={
            key[0]: count for key, count in run.grouped("abort_plan", ("action",), "count(*)", of_plan(run)).items()
        },
        stuck_ids=stuck,
        first=_first(run, known) or _first_id(stuck),
        known=known,
        extents=reach,
        earlier_ms=None if earlier is None else ms(earlier["as_of"]),
        withdrawn=[] if earlier is None else _withdrawn(run, earlier, shown),
        worst_lag=_worst_lag(run),
        oldest_open_ms=ms(oldest),
        findings=found,
        ended=list(map(named, ended)),
        ended_known=run.number("ended_transactions", "count(*)") or 0,
        broken=broken_transactions(run, shown),
        **covered,
    )


def _in_doubt(run: StoredRun) -> dict[str, int]:
    """The number of undecided two-phase commits that are overdue, and of those that are in time.

    One is overdue if it has been open for longer than `in_doubt_after_minutes`, or if nobody knows since when it is
    open.
    """
    since_ms = max(run.as_of_ms - run.settings["in_doubt_after_ms"], 0)
    since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()
    known = run.number("in_doubt_transactions", "count(*)") or 0
    in_time = run.number("in_doubt_transactions", "count(*)", [("open_since", ">=", since)]) or 0
    return {name: number for name, number in (("OVERDUE", known - in_time), ("IN_TIME", in_time)) if number}


def _earlier(run: StoredRun) -> Row | None:
    """The newest finished audit of the cluster before this one: run_id and as_of."""
    is_done = [("cluster", "=", run.cluster), ("status", "=", "DONE"), ("run_id", "<>", run.run_id)]
    rows = run.tables.rows(AUDIT_RUNS, ("run_id", "as_of"), is_done)
    before = [row for row in rows if row["as_of"] is not None and (ms(row["as_of"]) or 0) < run.as_of_ms]
    return max(before, key=lambda row: row["as_of"], default=None)


def _withdrawn(run: StoredRun, earlier: Row, most: int) -> list[str]:
    """Sentences about open transactions that the audit before called safe to abort, now or from an instant on, and that
    this audit does not."""
    columns = (*KEY, "safe_to_abort", "safe_from", "do_not_abort_because", "topic_id", "first_batch_crc")
    before = [("run_id", "=", earlier["run_id"]), *run.only("open_transactions")]
    promised = [
        row
        for kind in (("safe_to_abort", "=", True), ("safe_from", "IS NOT", None))
        for row in run.tables.rows("open_transactions", columns, [*before, kind], limit=MOST_PARTITIONS)
    ]
    if not promised:
        return []
    then = {key_of(row): row for row in promised}
    here = among(promised, "topic", "partition", "producer_id")
    rows = run.rows("open_transactions", columns, here, order=_BY_PLACE)
    said = []
    for row in rows:
        promise = then.get(key_of(row))
        if promise is None or row["safe_to_abort"] or row["first_batch_crc"] != promise["first_batch_crc"]:
            continue
        was, now = ms(promise["safe_from"]), ms(row["safe_from"])
        if was is not None and now is not None and now - was < 1_000:
            continue
        when = "now" if was is None else f"from {not_before(was)} on"
        because = told(row["do_not_abort_because"])
        place = f"{where(row)} from offset {row['start_offset']}"
        said.append(f"an abort of {place} was called safe {when}; it is not, because {because}")
    return said[:most]


def _first(run: StoredRun, known: Acknowledged | None) -> str:
    """The first step of the plan that is not acknowledged, in words."""
    left_out = set() if known is None else set(known.transactions)
    steps = _steps(run, shown("report: first"), order='"number"', most=len(left_out) + 1)
    step = next((each for each in steps if key_of(each) not in left_out), None)
    if step is None:
        return ""
    owner = step["transactional_id"]
    words = {
        "place": f"{where(step)} from offset {step['start_offset']}",
        "owner": f"producer {step['producer_id']}" if owner is None else printable(owner),
        "coordinator": step["coordinator_partition"],
    }
    instant = ms(step["not_before"])
    said = (
        STEPS[step["action"]].format(**words)
        if instant is None or step["action"] not in _LATER
        else _LATER[step["action"]].format(**words, instant=not_before(instant))
    )
    if step["is_holder"] is not False or Action[step["action"]] in NO_ACTION:
        return said
    complete(run, [step])
    ends = which_ends(step["holder_ends_by"], run.as_of_ms)
    return f"{said}; that frees nobody yet: it waits behind {ahead(step)}{ends}"


def _first_id(stuck: Sequence[StuckId]) -> str:
    """What to do about the id that has been stuck longest; empty if none is."""
    if not stuck:
        return ""
    first = stuck[0]
    coordinator = f"__transaction_state-{first.coordinator_partition}"
    return (
        f"{printable(first.transactional_id)}: get its coordinator {coordinator} going, which sends its markers again"
    )


def _steps(run: StoredRun, columns: Sequence[str], where: Sequence[Filter] = (), *, order: str, most: int) -> list[Row]:
    return run.rows("abort_plan", columns, [*where, *of_plan(run)], order=order, limit=most)


def of_plan(run: StoredRun) -> list[Filter]:
    """The filter on the plan of a report about a topic: the producers with something open on the topic, because a step
    may name another partition of the same transaction."""
    if run.topic is None:
        return []
    opened = run.grouped("open_transactions", ("producer_id",), "count(*)")
    return [("producer_id", "IN", {producer for (producer,) in opened})]


def _worst_lag(run: StoredRun) -> Row | None:
    columns = ("topic", "partition", "lag_offsets", "lag_ms")
    lags = run.rows("partitions", columns, [("lag_offsets", ">", 0)], order=LONGEST_LAG, limit=1)
    put_ends(run, lags)
    return lags[0] | {"ends_by": ms(lags[0]["ends_by"])} if lags else None


def put_ends(run: StoredRun, lags: Sequence[Row]) -> None:
    """Adds to each partition the verdict (or LOOKS_LATE) of its holder, and by when a coordinator ends the holder; None
    if nobody does, or if nobody knows when."""
    is_holder: list[Filter] = [*among(lags, "topic", "partition"), ("holds", "=", True)]
    columns = ("topic", "partition", "ends_by", "verdict", "reason")
    found = run.rows("open_transactions", columns, is_holder, limit=MOST_PARTITIONS) if lags else []
    holders = {(row["topic"], row["partition"]): row for row in found}
    for row in lags:
        holder = holders.get((row["topic"], row["partition"]))
        row["ends_by"] = None if holder is None else holder["ends_by"]
        if holder is not None:
            row["blocking_verdict"] = name_of(holder)


def finding_places(run: StoredRun, most: int) -> list[FindingPlaces]:
    """All findings of a run, the most severe first. One query for each that has places."""
    numbers = run.grouped("findings", ("name", "severity"), "count(*)")
    worst_first = sorted(numbers.items(), key=lambda item: (-Severity[item[0][1]], item[0][0]))
    order = '"topic" NULLS LAST, "partition", "offset", "producer_id", "transactional_id"'
    found = []
    for (name, severity), count in worst_first:
        rule = FINDINGS[name]
        of_severity: list[Filter] = [("name", "=", name), ("severity", "=", severity)]
        is_told = severity != Severity.INFO.name
        places = run.rows("findings", shown("page: findings"), of_severity, order=order, limit=most) if is_told else []
        found.append(FindingPlaces(name, severity, count, rule.meaning, rule.advice, places))
    return found


def _opened(run: StoredRun, reach: Mapping[str, Reach], known: Acknowledged | None, most: int) -> dict[str, list[Row]]:
    """The first transactions of each verdict, each with its step, the next holder of its partition, and the groups that
    wait."""
    found = {name: _planned(run, name, known, most) for name in MEANINGS if name in reach and name != "OPEN"}
    if "OPEN" in reach:
        found[PREPARED] = _planned(run, PREPARED, known, most)
        planned = {key_of(row) for row in found[PREPARED]}
        is_holder: list[Filter] = [("verdict", "=", "OPEN"), ("holds", "=", True), ("blocked_offsets", ">", 0)]
        oldest = '"blocks_since", "topic", "partition"'
        held = run.rows("open_transactions", _OPEN, is_holder, order=oldest, limit=most + len(planned))
        none = dict.fromkeys(_PLAN)
        found["OPEN"] = [row | none for row in held if key_of(row) not in planned][:most]
    complete(run, [row for rows in found.values() for row in rows])
    return {name: rows for name, rows in found.items() if rows}


def _planned(run: StoredRun, name: str, known: Acknowledged | None, most: int) -> list[Row]:
    """The first open transactions of a verdict (or LOOKS_LATE, or PREPARED) that have a step in the plan, each with its
    step: those that hold a partition first, then in the order of the plan."""
    left_out = set() if known is None else known.of_name(name)
    of_name = counted_as(name)
    columns = (*KEY, "transactional_id", *_PLAN)
    order = '"is_holder" DESC, "number"'
    steps = _steps(run, columns, of_name, order=order, most=most + len(left_out))
    if not steps:
        return []
    of_them = [*of_name, *among(steps, "producer_id")]
    opened = run.rows("open_transactions", _OPEN, of_them, order=MOST_BLOCKING, limit=MOST_PARTITIONS)
    # The plan has one step for what a coordinator does on all partitions of a transaction.
    whole = {(step["producer_id"], step["transactional_id"]): step for step in steps if step["action"] in _WHOLE}
    own = {key_of(step): step for step in steps}
    rows = []
    for row in opened:
        step = own.get(key_of(row)) or whole.get((row["producer_id"], row["transactional_id"]))
        if step is not None and key_of(row) not in left_out:
            rows.append(row | {column: step[column] for column in _PLAN} | {"is_first": key_of(row) == key_of(step)})
    return sorted(rows, key=lambda row: (row["holds"] is False, row["number"], not row["is_first"]))[:most]


def complete(run: StoredRun, rows: Sequence[Row]) -> None:
    """Adds to each row what holds its partition now and next, by when a coordinator ends the holder, and the groups
    that wait there. Instants become epoch ms."""
    if not rows:
        return
    here = among(rows, "topic", "partition")
    columns = ("topic", "partition", *_BEHIND)
    behind = {(row["topic"], row["partition"]): row for row in run.rows("partitions", columns, here)}
    is_holder: list[Filter] = [*here, ("holds", "=", True)]
    holders = run.rows("open_transactions", ("topic", "partition", "ends_by"), is_holder, limit=MOST_PARTITIONS)
    ends = {(row["topic"], row["partition"]): ms(row["ends_by"]) for row in holders}
    waiting: dict[tuple[str, int], set[str]] = {}
    for row in run.rows("blocked_groups", ("topic", "partition", "group_id"), here, order='"group_id"', limit=GROUPS):
        waiting.setdefault((row["topic"], row["partition"]), set()).add(row["group_id"])
    put_commits(run, rows)
    for row in rows:
        place = row["topic"], row["partition"]
        row.update({name: behind.get(place, {}).get(name) for name in _BEHIND})
        row.update(groups=sorted(waiting.get(place, ())), holder_ends_by=ends.get(place), is_at_least=is_short(row))
        row.update({name: ms(row[name]) for name in _INSTANTS if name in row})


#: SQL for a copy of which no file was opened.
_UNOPENED: Final = f"""(coalesce("tail", '') = '{UNOPENED}' AND "first_offset" IS NULL)"""
_COVERED: Final = {
    "partitions_read": "count(DISTINCT CASE WHEN NOT {missing} THEN {partition} END)",
    "partitions_known": "count(DISTINCT {partition})",
    "partitions_quiet": 'count(DISTINCT CASE WHEN coalesce("is_nothing_open", FALSE) THEN {partition} END)',
    "partitions_as_text": ("""count(DISTINCT CASE WHEN "is_judged" AND "source" LIKE 'text:%' THEN {partition} END)"""),
    "partitions_hidden": ('count(DISTINCT CASE WHEN "is_judged" AND "hidden_below" IS NOT NULL THEN {partition} END)'),
    "coordinators_read": 'count(DISTINCT CASE WHEN NOT {missing} AND {coordinator} THEN "partition" END)',
    "coordinators_known": 'count(DISTINCT CASE WHEN {coordinator} THEN "partition" END)',
    "partitions_in_part": """count(DISTINCT CASE WHEN "is_judged" AND {harmed} AND {data} THEN {partition} END)""",
    "batches": 'coalesce(sum("batches"), 0)',
    "partitions_uncaptured": "count(DISTINCT CASE WHEN \"status\" = 'MISSING' THEN {partition} END)",
    "coordinators_uncaptured": (
        'count(DISTINCT CASE WHEN "status" = \'MISSING\' AND {coordinator} THEN "partition" END)'
    ),
    "brokers": 'count(DISTINCT "broker")',
    "captured_to_ms": 'max("captured_at")',
    "is_instant_assumed": 'coalesce(bool_or(NOT {missing} AND "captured_at" IS NULL), FALSE)',
}


def _coverage(run: StoredRun, shown_copies: int) -> dict[str, Any]:
    parts = {
        "partition": """concat("topic", '-', "partition")""",
        "missing": f"(\"status\" = 'MISSING' OR {_UNOPENED})",
        "coordinator": f"\"topic\" = '{TRANSACTION_STATE_TOPIC}'",
        "data": f"\"topic\" NOT IN ('{TRANSACTION_STATE_TOPIC}', '{CLUSTER_METADATA_TOPIC}')",
        "harmed": "\"status\" IN ('PARTIAL', 'DAMAGED')",
    }
    numbers = run.one("coverage", {name: expression.format(**parts) for name, expression in _COVERED.items()})
    statuses = {key[0]: number for key, number in run.grouped("coverage", ("status",), "count(*)").items()}
    is_lost: Filter = ("status", "=", "MISSING")
    coordinators = [is_lost, ("topic", "=", TRANSACTION_STATE_TOPIC)]
    others = [is_lost, ("topic", "<>", TRANSACTION_STATE_TOPIC), ("is_nothing_open", "IS", None)]
    by_place = '"topic", "partition"'
    missing = run.rows("coverage", ("partition",), coordinators, order='"partition"', limit=COORDINATORS)
    missing_data = run.rows("coverage", ("topic", "partition"), others, order=by_place, limit=SHOWN_MISSING)
    is_harmed: list[Filter] = [("status", "IN", ("PARTIAL", "DAMAGED")), ("is_judged", "=", True)]
    columns = ("topic", "partition", "source", "status", "detail")
    # Each has a copy, or is MISSING.
    for what in ("partitions", "coordinators"):
        uncaptured = numbers.pop(f"{what}_uncaptured")
        numbers[f"{what}_unopened"] = numbers[f"{what}_known"] - numbers[f"{what}_read"] - uncaptured
    return {
        **numbers,
        "captured_to_ms": ms(numbers["captured_to_ms"]),
        "statuses": {status: statuses.get(status, 0) for status in STATUSES},
        "missing_coordinators": tuple(row["partition"] for row in missing),
        "missing_partitions": tuple((row["topic"], row["partition"]) for row in missing_data),
        "incomplete": run.rows("coverage", columns, is_harmed, order=by_place, limit=shown_copies + 1),
    }


def _unread(run: StoredRun, most: int) -> dict[str, Any]:
    """What was given and not read: for each reason how much, and the first files, those with most bytes first."""
    # A report about a topic has what is of its partitions or coordinators, and what has no partition: it may be of any.
    filters: list[list[Filter]] = [[]]
    if run.topic is not None:
        filters = [[("topic", "IN", (run.topic, TRANSACTION_STATE_TOPIC))], [("topic", "IS", None)]]
    kinds, rows, files = list[UnreadFiles](), list[Row](), 0
    for given in filters:
        chosen = '"code", count(DISTINCT "path") AS "files", sum("bytes") AS "bytes"'
        for row in run.ask("unread_files", chosen, given, ' GROUP BY "code"'):
            first = run.rows("unread_files", ("path",), [*given, ("code", "=", row["code"])], order=_LARGEST, limit=2)
            kinds.append(UnreadFiles(row["code"], row["files"], row["bytes"], [each["path"] for each in first]))
        if kinds:
            files += run.number("unread_files", 'count(DISTINCT "path")', given) or 0
            rows += run.rows("unread_files", _UNREAD, given, order=_LARGEST, limit=most)
    return {
        "unreadable_files": files,
        "unreadable_bytes": sum(kind.bytes for kind in kinds),
        "unread_by_reason": sorted(kinds, key=lambda kind: kind.rank),
        "unread": rows,
    }


#: What a report lists of `unread_files`, and its order.
_UNREAD: Final = ("path", "topic", "partition", "code", "reason", "bytes")
_LARGEST: Final = '"bytes" DESC, "path", "code"'
_OPEN_TIME: Final = "active_transaction_open_time_max_ms"


def broker_rows(run: StoredRun, columns: Sequence[str], most: int) -> list[Row]:
    """The first brokers, each with KIP-939's active-transaction-open-time-max in ms: the age of the oldest Ongoing
    transaction of its coordinators."""
    rows = run.rows("brokers", ("broker", *columns, "oldest_ongoing_start"), order='"broker"', limit=most)
    for row in rows:
        start = ms(row.pop("oldest_ongoing_start"))
        row[_OPEN_TIME] = None if start is None else max(run.as_of_ms - start, 0)
    return rows
