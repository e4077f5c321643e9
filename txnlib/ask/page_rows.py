"""What a page shows beside its report: rows, counts, plan and coverage.

Instants are epoch milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.entries import cards
from txnlib.ask.explain import Explained, explain
from txnlib.ask.nights import Night, nights
from txnlib.ask.own_command import anywhere
from txnlib.ask.queries import AUDIT_RUNS, Filter, Key, Row, StoredRun, key_of, ms, transactions_of
from txnlib.ask.report import MEANINGS, Report
from txnlib.ask.report_rows import LONGEST_LAG, MOST_BLOCKING, broker_rows, of_plan, put_ends, report_of
from txnlib.ask.words import NAME, PREPARED, named
from txnlib.core.display import printable
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.rows import grouped
from txnlib.core.schema import shown
from txnlib.core.verdicts.plan_step import Action

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged

#: Number of transactions of each verdict with a story, which takes a dozen queries each.
STORIES: Final[Mapping[str, int]] = {"HANGING": 6, "STUCK": 3, "LATE": 3, "SUSPECT": 2, PREPARED: 2, "UNKNOWN": 2}
SHOWN_STEPS: Final = 40
#: Most rows of a list. The page folds long lists, and says how many rows are left out if there are more.
MOST_ROWS: Final = 10_000
#: Most transactions of each section with all details, and most ended ones.
SHOWN_CARDS: Final = 200
SHOWN_INCOMPLETE: Final = 1_000
SHOWN_TOPICS: Final = 1_000
#: Most partitions that are damaged or partial, and most that are missing, by number.
SHOWN_PARTITIONS: Final = 10_000
SHOWN_RUNS: Final = 30
SHOWN_ENDINGS: Final = 1_000
SHOWN_BROKERS: Final = 1_000
_OF_BROKER: Final = ("partitions_led", "partitions_with_late_transactions", "coordinators_led")
#: Most places of one finding.
SHOWN_PLACES: Final = 1_000

#: Order of the open transactions: the worst verdict first.
_WORST_FIRST: Final = (
    f"CASE {NAME} "
    + " ".join(f"WHEN '{name}' THEN {rank}" for rank, name in enumerate(MEANINGS))
    + f" END, {MOST_BLOCKING}"
)
#: Filters for the row of a partition: its judged copy, or MISSING.
_JUDGED: Final[tuple[Filter, ...]] = (("is_judged", "=", True), ("status", "=", "MISSING"))
#: Number of runs to search for the newest finished ones of the cluster.
RUNS_READ: Final = 500


#: What the history of audits counts.
NEED_SOMEBODY: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN")
#: Action of the plan -> phrase for what to do, in order.
TO_DO: Final = {
    "ABORT": "to abort now, by hand, with a look before and after",
    "ABORT_AS_DECIDED": "whose ABORT the partition refuses: an abort by hand agrees with it",
    "RESTORE_REPLICAS": "that wait for replicas: bring back those that each entry names; no abort by hand",
    "END_AT_COORDINATOR": "to be ended by the application or at the coordinator: no abort by hand",
    "REVIVE_COORDINATOR": "waiting for a coordinator that decided: get it going; no abort by hand",
    "ABORT_LATER": "hanging, and not to be aborted yet: each entry says from when on",
    "WAIT": "too young to be called hanging: audit again later",
    "CAPTURE_MORE": "without a verdict: copy what is missing (coverage says what), and audit again",
    "DO_NOT_ABORT": "hanging or stuck, and not to be aborted by hand: each entry says why",
    "CHECK_TIMESTAMPS": "late by old timestamps alone: look at what writes them",
}


@dataclass(frozen=True, slots=True)
class Page:
    """One run, as its page shows it. Each list has a limit; the counts beside them have none."""

    #: The report, with more rows of each of its lists.
    report: Report
    run_id: str
    version: str = ""
    inputs: str = ""
    #: The settings of the run.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The --tables for `txn-audit`; None for tables in a catalog, which it cannot read.
    tables: str | None = None
    #: Every open transaction in few columns, the worst verdict first.
    opened: Sequence[Row] = ()
    stories: Mapping[Key, Explained] = field(default_factory=dict)
    #: Rows of abort_plan in order.
    plan: Sequence[Row] = ()
    #: Rows of partitions whose last stable offset lags, and their number.
    lags: Sequence[Row] = ()
    lagging: int = 0
    brokers: Sequence[Row] = ()
    #: Topic -> status -> number of partitions, without coordinators; and the number of topics.
    topics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    topics_known: int = 0
    coordinators_complete: int = 0
    #: Topic, partition and status of judged copies that are not complete, and of missing partitions.
    harmed: Sequence[Row] = ()
    #: Open transactions of two-phase commits, oldest first, and their number.
    two_phase: Sequence[Row] = ()
    two_phase_open: int = 0
    #: Finished runs of the cluster up to this one, newest first: run_id, as_of_ms, verdicts, lag_ms.
    runs: Sequence[Row] = ()
    #: Finished runs of the cluster up to this one, oldest first, with what transactions held in each.
    nights: Sequence[Night] = ()
    #: Transactions that earlier runs warned of and that have ended, newest first: rows of ended_transactions.
    endings: Sequence[Row] = ()


def page_rows_of(
    run: StoredRun, *, tables: str | None, stories: Mapping[str, int] = STORIES, known: Acknowledged | None = None
) -> Page:
    """The page of a run. `tables`: the --tables for `txn-audit`. `stories`: the number of stories in each section.

    `known`: what is acknowledged, which has a section of its own.
    """
    report = report_of(run, known, shown=SHOWN_CARDS, shown_copies=SHOWN_INCOMPLETE, shown_places=SHOWN_PLACES)
    plans = run.rows("abort_plan", shown("page: plan"), of_plan(run), order='"number"', limit=MOST_ROWS)
    is_two_phase: list[Filter] = [("is_two_phase_commit", "=", True)]
    oldest_first = '"transaction_start", "topic", "partition"'
    two_phase = run.rows(
        "open_transactions", shown("page: two-phase"), is_two_phase, order=oldest_first, limit=MOST_ROWS
    )
    lags = run.rows("partitions", shown("page: lag"), [("lag_offsets", ">", 0)], order=LONGEST_LAG, limit=MOST_ROWS)
    put_ends(run, lags)
    opened = run.rows("open_transactions", shown("page"), order=_WORST_FIRST, limit=MOST_ROWS)
    runs, noted = _runs(run)
    return Page(
        report=report,
        run_id=run.run_id,
        version=noted.get("version") or "",
        inputs=noted.get("input") or "",
        settings=run.settings,
        tables=None if tables is None else anywhere(tables),
        opened=_with_ms(list(map(named, opened)), "blocks_since", "ends_by"),
        stories=_stories(run, report, stories),
        plan=plans,
        lags=_with_ms(lags, "ends_by"),
        lagging=run.number("partitions", "count(*)", [("lag_offsets", ">", 0)]) or 0,
        brokers=broker_rows(run, _OF_BROKER, SHOWN_BROKERS),
        two_phase=_with_ms(two_phase, "transaction_start"),
        two_phase_open=run.number("open_transactions", "count(*)", is_two_phase) or 0,
        runs=runs,
        nights=nights(run).of,
        endings=_endings(run, runs),
        **_coverage(run),
    )


def _with_ms(rows: list[Row], *names: str) -> list[Row]:
    """The rows with instants as epoch ms."""
    for row in rows:
        row.update({name: ms(row[name]) for name in names})
    return rows


def _stories(run: StoredRun, report: Report, numbers: Mapping[str, int]) -> dict[Key, Explained]:
    """The stories of the first transaction of each of the first cards."""
    stories: dict[Key, Explained] = {}
    for verdict, most in numbers.items():
        for row, *_ in cards(verdict, report.transactions.get(verdict, []))[:most]:
            stories[key_of(row)] = explain(run, row["topic"], row["partition"], row["start_offset"])
    return stories


def _coverage(run: StoredRun) -> dict[str, Any]:
    """Topics, those with incomplete partitions first, and their incomplete partitions."""
    topics: dict[str, dict[str, int]] = {}
    harmed: list[Row] = []
    by_place = '"topic", "partition"'
    for which in _JUDGED:
        for (topic, status), count in run.grouped("coverage", ("topic", "status"), "count(*)", [which]).items():
            topics.setdefault(topic, {})[status] = count
        where = [which, ("status", "<>", "COMPLETE")]
        harmed += run.rows("coverage", ("topic", "partition", "status"), where, order=by_place, limit=SHOWN_PARTITIONS)
    coordinators = topics.pop(TRANSACTION_STATE_TOPIC, {})
    order = sorted(topics, key=lambda topic: (topics[topic].keys() == {"COMPLETE"}, topic))
    return {
        "topics": {topic: topics[topic] for topic in order[:SHOWN_TOPICS]},
        "topics_known": len(topics),
        "coordinators_complete": coordinators.get("COMPLETE", 0),
        "harmed": harmed,
    }


def _runs(run: StoredRun) -> tuple[list[Row], Row]:
    """The finished runs up to this one, and the row of this one."""
    columns = ("run_id", "as_of", "status", "counts", "version", "input")
    newest = run.tables.rows(
        AUDIT_RUNS, columns, [("cluster", "=", run.cluster)], order='"as_of" DESC', limit=RUNS_READ
    )
    noted = next((row for row in newest if row["run_id"] == run.run_id), {})
    finished = [row for row in _with_ms(newest, "as_of") if row["status"] == "DONE" and row["as_of"] <= run.as_of_ms]
    finished = finished[:SHOWN_RUNS]
    ids = [row["run_id"] for row in finished]
    lag = run.tables.grouped("partitions", ("run_id",), 'max("lag_ms")', [("run_id", "IN", ids)]) if ids else {}
    return [
        {
            "run_id": row["run_id"],
            "as_of_ms": row["as_of"],
            "verdicts": transactions_of(json.loads(row["counts"] or "{}")),
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
    rows = run.tables.rows("ended_transactions", shown("page: ended"), where, order=order, limit=SHOWN_ENDINGS)
    return [named(row) | {"as_of": ms(row["as_of"])} for row in rows]


# ---- Coverage by topic


@dataclass(frozen=True, slots=True)
class CoveredTopic:
    """One topic: its partitions, and how many of them are COMPLETE."""

    topic: str
    partitions: int
    complete: int
    #: Status that is not COMPLETE -> its partitions in words, such as `partitions 0 to 3, 7`.
    harmed: Mapping[str, str]

    @property
    def is_whole(self) -> bool:
        return self.complete == self.partitions


def covered_topics(page: Page) -> list[CoveredTopic]:
    """The topics in their order."""
    harmed = harmed_partitions(page)
    return [
        CoveredTopic(topic, sum(counts.values()), counts.get("COMPLETE", 0), harmed.get(topic, {}))
        for topic, counts in page.topics.items()
    ]


def harmed_partitions(page: Page) -> dict[str, dict[str, str]]:
    """Topic -> status that is not COMPLETE -> its partitions in words."""
    found: dict[str, dict[str, str]] = {}
    for (topic, status), rows in grouped(page.harmed, lambda row: (row["topic"], row["status"])).items():
        found.setdefault(topic, {})[status] = _numbered([row["partition"] for row in rows])
    return found


def _numbered(numbers: Sequence[int]) -> str:
    """Numbers of partitions in words. Neighbours are a range."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    said = ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in ranges)
    return f"partition{'' if len(numbers) == 1 else 's'} {said}"


# ---- The action plan of the report page, grouped by action


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What one command ends, or one transaction without a command."""

    #: Rows of the plan with the same command.
    rows: Sequence[Row]
    #: Sentences about this step that not all steps of its group share.
    says: Sequence[str]
    #: Other partitions, with start offsets, that the command also ends.
    other_places: Sequence[str]

    @property
    def row(self) -> Row:
        return self.rows[0]


@dataclass(frozen=True, slots=True)
class PlanGroup:
    """The steps of one action: either all that free a partition, or all that free none yet."""

    action: str
    is_holder: bool
    verdict: str
    steps: Sequence[PlanStep]
    #: Sentences that all steps share.
    says: Sequence[str]
    #: Number of rows of the plan.
    count: int


def plan_groups(plan: Sequence[Row]) -> list[PlanGroup]:
    """The plan in its order, so that its numbers rise from the first group to the last."""
    groups = grouped(plan, lambda row: (row["action"], bool(row["is_holder"])))
    return [_group(rows) for rows in groups.values()]


def can_be_pasted(command: str) -> bool:
    """Whether the page shows the command literally. Ids may contain characters that should not be pasted unseen."""
    return printable(command) == command


def is_offered(row: Row) -> bool:
    """Whether the command is to be run now, and can be copied from the page."""
    return row["command"] is not None and row["action"] != Action.ABORT_LATER.name and can_be_pasted(row["command"])


def _group(rows: Sequence[Row]) -> PlanGroup:
    said = [list(_says(row)) for row in rows]
    shared = [each for each in said[0] if all(each in others for others in said)]
    steps = [_step(each, set(shared)) for each in at_once(rows)]
    first = rows[0]
    return PlanGroup(first["action"], bool(first["is_holder"]), first["verdict"], steps, shared, len(rows))


def at_once(plan: Sequence[Row]) -> list[list[Row]]:
    """Rows of the plan, grouped by the command that settles them."""
    return list(grouped(plan, lambda row: row["number"] if row["command"] is None else row["command"]).values())


def _step(rows: Sequence[Row], shared: set[str]) -> PlanStep:
    own = {f"{row['topic']}-{row['partition']} offset {row['start_offset']}" for row in rows}
    places = dict.fromkeys(place for row in rows for place in row["places"] or ())
    says = dict.fromkeys(each for row in rows for each in _says(row) if each not in shared)
    return PlanStep(rows, list(says), [place for place in places if place not in own])


def _says(row: Row) -> Iterator[str]:
    """Why no marker may be written by hand, or not yet; then what the step does to the records, and the notes."""
    because = row["do_not_abort_because"]
    if because is not None:
        yield f"{'Not yet' if row['action'] == Action.ABORT_LATER.name else 'No abort by hand'}, because {because}"
    if row["effect"] is not None:
        yield f"Effect: {row['effect']}"
    yield from (note for note in row["notes"] or () if note != because)
