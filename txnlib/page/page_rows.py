"""The rows and counts that the report page shows beside the summary. Instants are epoch milliseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.broken_transactions import TransactionOnPartitions, broken_transactions
from txnlib.ask.episode import Episode
from txnlib.ask.own_command import anywhere
from txnlib.ask.rows import RUNS, Filter, Row, StoredRun, column_names, in_transactions, ms
from txnlib.ask.story import explain
from txnlib.ask.story_text import Explained
from txnlib.ask.summary import LONGEST_LAG, MOST_BLOCKING, SECTIONS, SHOWN, SHOWN_COPIES, Summary, cards, summarise
from txnlib.core.finding_catalogue import FINDINGS, Finding, Severity, Topic
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged

#: Number of transactions in each section with a story, which takes a dozen queries each.
STORIES: Final[Mapping[str, int]] = {"HANGING": 6, "STUCK": 3, "LATE": 3, "SUSPECT": 2, "PREPARED": 2, "UNKNOWN": 2}
SHOWN_STEPS: Final = 40
#: Most rows of a list. The page folds long lists, and says how many rows are left out if there are more.
MOST_ROWS: Final = 10_000
#: Most transactions of each section with all details, and most ended ones.
SHOWN_CARDS: Final = 200
SHOWN_INCOMPLETE: Final = 1_000
SHOWN_TOPICS: Final = 1_000
#: Most partitions in the coverage map. If there are more, topics are only counted.
SHOWN_PARTITIONS: Final = 10_000
SHOWN_RUNS: Final = 30
SHOWN_ENDINGS: Final = 1_000
SHOWN_BROKERS: Final = 1_000

#: topic, partition, producer_id, start_offset of an open transaction.
Key = tuple[str, int, int, int]

#: Verdicts that mean that something is wrong, worst first.
_WRONG: Final = ("HANGING", "STUCK", "LATE", "SUSPECT")
_PLAN: Final = column_names(
    "number action topic partition producer_id start_offset transactional_id verdict reason do_not_abort_because command "
    "command_for_old_brokers before after effect notes places blocked_offsets"
)
_OPENED: Final = column_names(
    "topic partition producer_id start_offset transactional_id verdict reason blocked_offsets blocks_since runs_seen"
)
_TWO_PHASE: Final = column_names(
    "topic partition start_offset producer_id transactional_id coordinator_state coordinator_partition transaction_start "
    "blocked_offsets verdict"
)
_ENDED: Final = column_names("run_id as_of topic partition start_offset producer_id transactional_id verdict says")
_LAG: Final = column_names(
    "topic partition lag_offsets lag_bytes lag_ms last_stable_offset high_watermark blocking_producer_id "
    "blocking_transactional_id blocking_verdict"
)
_BROKER: Final = (
    "broker",
    "partitions_led",
    "partitions_with_late_transactions",
    "coordinators_led",
    "active_transaction_open_time_max_ms",
)
#: Order of the open transactions: the worst verdict first.
_WORST_FIRST: Final = (
    'CASE "verdict" '
    + " ".join(f"WHEN '{verdict}' THEN {rank}" for rank, verdict in enumerate((*SECTIONS, "OPEN")))
    + f" ELSE {len(SECTIONS) + 1} END, {MOST_BLOCKING}"
)
#: Filter for the row of a partition in the coverage map: its judged copy, or MISSING.
_JUDGED: Final[tuple[Filter, ...]] = (("is_judged", "=", True), ("status", "=", "MISSING"))
#: Number of broker-stamped batches after a start to load, from each end of the range.
GROWTH: Final = 100
#: Number of transactions of a verdict to search for the oldest one that blocks consumers.
OLDEST_READ: Final = 20
#: Number of runs to search for the newest finished ones of the cluster.
RUNS_READ: Final = 500


@dataclass(frozen=True, slots=True)
class Story:
    """One open transaction from both sides, and the growth of the log after its start."""

    episode: Episode[Explained]
    #: Broker-stamped batches from its start on: base_offset, max_timestamp_ms.
    growth: Sequence[Row] = ()
    #: Row of `partitions`: last_stable_offset, high_watermark.
    partition: Row = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One run, as its page shows it. Each list has a limit; the counts beside them have none."""

    #: As in the report. The fields below have more rows of some of its lists.
    summary: Summary
    run_id: str
    version: str = ""
    inputs: str = ""
    #: The settings of the run.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The --tables for `txn-audit`; None for tables in a catalog, which it cannot read.
    tables: str | None = None
    #: Verdict or PREPARED -> rows with all details: as `Summary.transactions`, at most `SHOWN_CARDS`.
    transactions: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    #: Every open transaction in few columns, the worst verdict first.
    opened: Sequence[Row] = ()
    #: Transactions that the previous run warned of and that are no longer open.
    ended: Sequence[Row] = ()
    #: Copies that are not COMPLETE.
    incomplete: Sequence[Row] = ()
    #: All findings, the most severe first, with the places of those above INFO.
    findings: Sequence[FindingPlaces] = ()
    #: verdict, reason, count.
    reasons: Sequence[Row] = ()
    #: The open transaction of the worst verdict that has blocked longest: topic, partition, verdict, blocks_since.
    oldest: Row | None = None
    stories: Mapping[Key, Story] = field(default_factory=dict)
    #: Transactions that are split or half-marked, at most `SHOWN_CARDS`.
    broken: Sequence[TransactionOnPartitions] = ()
    #: Rows of abort_plan in order, and the number of each action.
    plan: Sequence[Row] = ()
    actions: Mapping[str, int] = field(default_factory=dict)
    #: Rows of partitions whose last stable offset lags, and their number.
    lags: Sequence[Row] = ()
    lagging: int = 0
    brokers: Sequence[Row] = ()
    #: Topic, partition and status of judged copies and of missing partitions, only for `topics`.
    covered: Sequence[Row] = ()
    #: Topic -> status -> number of partitions, without coordinators; and the number of topics.
    topics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    topics_known: int = 0
    quarantined: int = 0
    #: Open transactions of two-phase commits, oldest first, and their number.
    two_phase: Sequence[Row] = ()
    two_phase_open: int = 0
    #: Finished runs of the cluster up to this one, newest first: run_id, as_of_ms, verdicts, lag_ms.
    runs: Sequence[Row] = ()
    #: Transactions that earlier runs warned of and that have ended, newest first: rows of ended_transactions.
    endings: Sequence[Row] = ()


def page_rows_of(
    run: StoredRun, *, tables: str | None, stories: Mapping[str, int] = STORIES, known: Acknowledged | None = None
) -> Page:
    """The page of a run. `tables`: the --tables for `txn-audit`. `stories`: the number of stories in each section.

    `known`: what is acknowledged, which has a section of its own.
    """
    whole = summarise(run, known, shown=SHOWN_CARDS, shown_copies=SHOWN_INCOMPLETE)
    summary = _as_reported(whole)
    plans = run.rows("abort_plan", _PLAN, order='"number"', limit=MOST_ROWS)
    is_two_phase: list[Filter] = [("is_two_phase_commit", "=", True)]
    oldest_first = '"transaction_start", "topic", "partition"'
    two_phase = run.rows("open_transactions", _TWO_PHASE, is_two_phase, order=oldest_first, limit=MOST_ROWS)
    runs, noted = _runs(run)
    return Page(
        summary=summary,
        run_id=run.run_id,
        version=noted.get("version") or "",
        inputs=noted.get("input") or "",
        settings=run.settings,
        tables=None if tables is None else anywhere(tables),
        transactions=whole.transactions,
        opened=_with_ms(run.rows("open_transactions", _OPENED, order=_WORST_FIRST, limit=MOST_ROWS), "blocks_since"),
        ended=whole.ended,
        incomplete=whole.incomplete,
        findings=finding_places(run),
        reasons=[
            {"verdict": verdict, "reason": reason, "count": count}
            for verdict, extent in sorted(summary.extents.items())
            for reason, count in sorted(extent.reasons)
        ],
        oldest=_oldest(run),
        stories=_stories(run, summary, stories),
        broken=broken_transactions(run, SHOWN_CARDS),
        plan=plans,
        actions={key[0]: count for key, count in run.grouped("abort_plan", ("action",), "count(*)").items()},
        lags=_lags(run),
        lagging=run.number("partitions", "count(*)", [("lag_offsets", ">", 0)]) or 0,
        brokers=run.rows("brokers", _BROKER, order='"broker"', limit=SHOWN_BROKERS),
        quarantined=run.number("quarantine", "count(*)") or 0,
        two_phase=_with_ms(two_phase, "transaction_start"),
        two_phase_open=run.number("open_transactions", "count(*)", is_two_phase) or 0,
        runs=runs,
        endings=_endings(run, runs),
        **_coverage(run),
    )


def _as_reported(whole: Summary) -> Summary:
    """The summary with as many rows as the report has without a page."""
    shown = {section: rows[:SHOWN] for section, rows in whole.transactions.items()}
    incomplete = whole.incomplete[:SHOWN_COPIES]
    return replace(whole, transactions=shown, ended=whole.ended[:SHOWN], incomplete=incomplete)


def _lags(run: StoredRun) -> list[Row]:
    """The partitions whose read_committed consumers have waited longest."""
    return run.rows("partitions", _LAG, [("lag_offsets", ">", 0)], order=LONGEST_LAG, limit=MOST_ROWS)


def _with_ms(rows: list[Row], *names: str) -> list[Row]:
    """The rows with instants as epoch ms."""
    for row in rows:
        row.update({name: ms(row[name]) for name in names})
    return rows


def _oldest(run: StoredRun) -> Row | None:
    """The transaction that has blocked consumers longest, of the worst verdict that blocks any; else the oldest of the worst."""
    columns = ("topic", "partition", "producer_id", "verdict", "blocks_since")
    first: Row | None = None
    for verdict in _WRONG:
        where: list[Filter] = [("verdict", "=", verdict), ("blocks_since", "IS NOT", None)]
        oldest = run.rows("open_transactions", columns, where, order='"blocks_since"', limit=OLDEST_READ)
        held = _with_holders(run, oldest)
        first = first or (oldest[0] if oldest else None)
        if held:
            return _with_ms(held, "blocks_since")[0]
    return None if first is None else _with_ms([first], "blocks_since")[0]


def _with_holders(run: StoredRun, rows: list[Row]) -> list[Row]:
    """The transactions that block the last stable offset of their partition, with that offset."""
    topics, numbers = sorted({row["topic"] for row in rows}), sorted({row["partition"] for row in rows})
    if not rows:
        return []
    wanted = ("topic", "partition", "last_stable_offset", "blocking_producer_id")
    where: list[Filter] = [("topic", "IN", topics), ("partition", "IN", numbers)]
    partitions = run.rows("partitions", wanted, where, limit=len(topics) * len(numbers))
    stable = {(of["topic"], of["partition"], of["blocking_producer_id"]): of["last_stable_offset"] for of in partitions}
    keyed = [((row["topic"], row["partition"], row["producer_id"]), row) for row in rows]
    return [row | {"last_stable_offset": stable[key]} for key, row in keyed if key in stable]


def _stories(run: StoredRun, summary: Summary, numbers: Mapping[str, int]) -> dict[Key, Story]:
    """The stories of the first transaction of each of the first cards."""
    stories: dict[Key, Story] = {}
    for section, most in numbers.items():
        for row, *_ in cards(section, summary.transactions.get(section, []))[:most]:
            key = (row["topic"], row["partition"], row["producer_id"], row["start_offset"])
            stories[key] = _story(run, *key)
    return stories


def _story(run: StoredRun, topic: str, partition: int, producer_id: int, start_offset: int) -> Story:
    here: list[Filter] = [("topic", "=", topic), ("partition", "=", partition)]
    copy = run.rows("coverage", ("source",), [*here, ("is_judged", "=", True)], limit=1)
    stamped: list[Filter] = [*here, *(("source", "=", row["source"]) for row in copy)]
    stamped += [("base_offset", ">=", start_offset), ("is_control", "=", True), ("producer_id", "IS NOT", None)]
    wanted = ("base_offset", "max_timestamp_ms")
    ends = [run.rows("record_batches", wanted, stamped, order=f'"base_offset"{way}', limit=GROWTH) for way in ("", " DESC")]
    growth = {row["base_offset"]: row for rows in ends for row in rows}
    lag = run.rows("partitions", ("last_stable_offset", "high_watermark"), here, limit=1)
    return Story(explain(run, topic, partition, start_offset), [growth[offset] for offset in sorted(growth)], lag[0] if lag else {})


def _coverage(run: StoredRun) -> dict[str, Any]:
    """Topics, those with incomplete partitions first, and their partitions."""
    is_data: Filter = ("topic", "<>", TRANSACTION_STATE_TOPIC)
    # An upper bound on the partitions of the shown topics. If one topic is larger, fewer are shown.
    named = [*_statuses(run, [is_data, ("status", "<>", "COMPLETE")]), *_statuses(run, [is_data, ("status", "=", "COMPLETE")])]
    chosen = list(dict.fromkeys(row["topic"] for row in named))[:SHOWN_TOPICS]
    topics: dict[str, dict[str, int]] = {topic: {} for topic in chosen}
    for which in _JUDGED if chosen else ():
        where = [("topic", "IN", chosen), which]
        for (topic, status), count in run.grouped("coverage", ("topic", "status"), "count(*)", where).items():
            topics[topic][status] = count
    return {
        "topics": topics,
        "topics_known": run.number("coverage", 'count(DISTINCT "topic")', [is_data]) or 0,
        "covered": [
            *_statuses(run, [("topic", "=", TRANSACTION_STATE_TOPIC)]),
            *(_statuses(run, [("topic", "IN", chosen)]) if chosen else []),
        ],
    }


def _statuses(run: StoredRun, where: list[Filter]) -> list[Row]:
    """Status of the judged copy of each of the first partitions, or MISSING."""
    rows = [
        row
        for which in _JUDGED
        for row in run.rows(
            "coverage",
            ("topic", "partition", "status"),
            [*where, which],
            order='"topic", "partition"',
            limit=SHOWN_PARTITIONS,
        )
    ]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"]))[:SHOWN_PARTITIONS]


def _runs(run: StoredRun) -> tuple[list[Row], Row]:
    """The finished runs up to this one, and the row of this one."""
    columns = ("run_id", "cluster", "as_of", "status", "started_at", "counts", "version", "input")
    newest = run.tables.rows(RUNS, columns, [("cluster", "=", run.cluster)], order='"as_of" DESC', limit=RUNS_READ)
    noted = next((row for row in newest if row["run_id"] == run.run_id), {})
    finished = [row for row in _with_ms(newest, "as_of") if row["status"] == "DONE" and row["as_of"] <= run.as_of_ms]
    finished = finished[:SHOWN_RUNS]
    ids = [row["run_id"] for row in finished]
    lag = run.tables.grouped("partitions", ("run_id",), 'max("lag_ms")', [("run_id", "IN", ids)]) if ids else {}
    return [
        {
            "run_id": row["run_id"],
            "as_of_ms": row["as_of"],
            "verdicts": in_transactions(json.loads(row["counts"] or "{}")),
            "lag_ms": lag.get((row["run_id"],)),
        }
        for row in finished
    ], noted


def _endings(run: StoredRun, runs: list[Row]) -> list[Row]:
    ids = [row["run_id"] for row in runs]
    if not ids:
        return []
    where: list[Filter] = [("run_id", "IN", ids)]
    order = '"as_of" DESC, "topic", "partition"'
    rows = run.tables.rows("ended_transactions", _ENDED, where, order=order, limit=SHOWN_ENDINGS)
    return [{**row, "as_of": ms(row["as_of"])} for row in rows]


# ---- Findings with their places and the advice of the runbook


#: Most places of one finding.
SHOWN_PLACES: Final = 1_000

_PLACE: Final = ("topic", "partition", "offset", "producer_id", "transactional_id", "evidence")
_ORDER: Final = '"topic", "partition", "offset", "producer_id"'


@dataclass(frozen=True, slots=True)
class FindingPlaces:
    """One finding of a run: how often, what it means, what to do, and where."""

    name: str
    severity: str
    count: int
    meaning: str
    #: The sentences of the runbook. Code is in backticks.
    advice: str
    #: Rows of `findings`, at most `SHOWN_PLACES`; none if the severity is INFO, unless it is a forecast.
    places: Sequence[Row] = ()


def finding_places(run: StoredRun) -> list[FindingPlaces]:
    """All findings of a run, the most severe first. One query for each that has places."""
    counted = run.grouped("findings", ("name", "severity"), "count(*)")
    worst_first = sorted(counted.items(), key=lambda item: (-Severity[item[0][1]], item[0][0]))
    return [_finding(run, name, severity, count) for (name, severity), count in worst_first]


def _finding(run: StoredRun, name: str, severity: str, count: int) -> FindingPlaces:
    rule = FINDINGS[Finding[name]]
    # A forecast is its date and its arithmetic, whatever its severity.
    is_context = severity == Severity.INFO.name and rule.topic is not Topic.FORECASTS
    places = [] if is_context else run.rows("findings", _PLACE, [("name", "=", name)], order=_ORDER, limit=SHOWN_PLACES)
    return FindingPlaces(name, severity, count, rule.meaning, rule.advice, places)
