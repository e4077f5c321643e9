"""Parts of the report page: navigation, what a section counts, coverage by topic, and the plan in groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.entries import Entry, entry
from txnlib.ask.rows import Row
from txnlib.ask.stuck_ids import STUCK_ID
from txnlib.core.display import printable
from txnlib.core.rows import grouped
from txnlib.core.verdicts.abort_plan import Action
from txnlib.page.page_rows import Page

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


def only_step(page: Page) -> Entry | None:
    """The only hanging transaction, if it may be aborted: its steps are few enough to stand in the answer."""
    hanging = page.report.transactions.get("HANGING", ())
    is_one = len(hanging) == 1 and page.report.number_of_rows("HANGING") == 1
    return entry("HANGING", hanging, page.report) if is_one and hanging[0]["safe_to_abort"] else None


def anchor_of(name: str, page: Page) -> str | None:
    """The anchor of what shows the transactions of a verdict."""
    if name in page.report.sections or name == STUCK_ID:
        return name.lower()
    return "transactions" if name == "OPEN" else "acknowledged" if acknowledged_rows(name, page) else None


def acknowledged_rows(section: str, page: Page) -> int:
    """The number of rows of open_transactions of a section that are acknowledged. The section does not list them."""
    return 0 if page.report.known is None else len(page.report.known.of_name(section))


def has_acknowledged(page: Page) -> bool:
    """Whether a file of acknowledgements was given that has entries."""
    known = page.report.known
    return known is not None and bool(known.transactions or known.findings or known.ended or known.idle)


def transactions(section: str, page: Page) -> int:
    """The number of transactions of a section, each counted once if its coordinator ends it on all its partitions; of
    those in time, those that hold a partition."""
    reach = page.report.extents.get(section)
    if reach is None:
        return len(page.report.transactions.get(section, ()))
    return reach.holding if section == "OPEN" else reach.transactions


def all_open(page: Page) -> int:
    """The number of open transactions, each counted once however many partitions it has."""
    return sum(page.report.counts.get("transactions", {}).values())


def new_since(page: Page) -> dict[str, int]:
    """Verdict -> number of transactions that no earlier audit has seen."""
    return {name: extent.new for name, extent in page.report.extents.items() if extent.new}


def navigation(page: Page) -> list[tuple[str, str, int | str]]:
    """The sections of the page in their order: anchor, label, and what it counts."""
    report = page.report
    read = f"{report.partitions_read} of {report.partitions_known}"
    known = len(report.known.transactions) if report.known else 0
    entries: list[tuple[str, str, int | str, bool]] = [
        ("new", "New", sum(new_since(page).values()), len(page.runs) > 1),
        *((name.lower(), _label(name), transactions(name, page), True) for name in report.sections),
        (STUCK_ID.lower(), "Stuck ids", len(report.stuck_ids), bool(report.stuck_ids)),
        ("split", "Split", len(report.split), bool(report.split)),
        ("plan", "Action plan", sum(report.actions.values()), bool(page.plan)),
        ("transactions", "All open", all_open(page), bool(page.opened)),
        ("acknowledged", "Acknowledged", known, has_acknowledged(page)),
        ("lag", "LSO lag", page.lagging, True),
        ("two-phase", "Two-phase commit", page.two_phase_open, bool(page.two_phase_open)),
        ("findings", "Findings", sum(each.count for each in report.findings), bool(report.findings)),
        ("coverage", "Coverage", read, True),
        ("history", "History", len(page.runs), True),
    ]
    return [(anchor, label, count) for anchor, label, count, is_there in entries if is_there]


def _label(section: str) -> str:
    """What a section lists: of those in time, only holders, while the answer counts all."""
    return "OPEN, holding" if section == "OPEN" else section


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
    #: What only this step of its group says.
    says: Sequence[str]
    #: The partitions and start offsets beside those of `rows`.
    other_places: Sequence[str]

    @property
    def row(self) -> Row:
        return self.rows[0]


@dataclass(frozen=True, slots=True)
class PlanGroup:
    """Steps of one action, which follow each other in the plan: those that free a partition, or those that do not
    yet."""

    action: str
    is_holder: bool
    verdict: str
    steps: Sequence[PlanStep]
    #: What all steps say.
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
    """Why no marker may be written, or not yet; then what the step does to records, and the notes."""
    because = row["do_not_abort_because"]
    if because is not None:
        yield f"{'Not yet' if row['action'] == Action.ABORT_LATER.name else 'No abort by hand'}, because {because}"
    if row["effect"] is not None:
        yield f"Effect: {row['effect']}"
    yield from (note for note in row["notes"] or () if note != because)
