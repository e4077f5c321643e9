"""The head of the report page: whether anything is wrong, since when, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.extents import LOOKS_LATE, names_of, verdict_of
from txnlib.ask.headline import Answer, Counted, answer, headline, sections_of
from txnlib.ask.report_entries import Entry, entry
from txnlib.ask.report_text import section_title, uncopied, uncopied_coordinators
from txnlib.ask.rows import Row, in_transactions
from txnlib.ask.summary import PREPARED, SECTIONS, Summary
from txnlib.core.display import printable
from txnlib.core.rows import grouped
from txnlib.core.verdicts.abort_plan import Action
from txnlib.page.page_rows import Page

#: Verdict -> phrase for one transaction and for several.
_PHRASES: Final = {
    "HANGING": ("1 transaction hangs", "{} transactions hang"),
    "STUCK": ("1 is stuck", "{} are stuck"),
    "LATE": ("1 is late", "{} are late"),
    "SUSPECT": ("1 may be hanging", "{} may be hanging"),
}
#: Verdicts of transactions that need somebody.
NEED_SOMEBODY: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN")
#: Action of the plan -> phrase for what to do, in order, and the sections that explain it.
TO_DO: Final = {
    "ABORT": ("to abort now, by hand, with a look before and after", ("HANGING",)),
    "ABORT_LATER": ("hanging, and not to be aborted yet: each entry says why", ("HANGING",)),
    "ABORT_AS_DECIDED": ("whose ABORT the partition refuses: an abort by hand agrees with it", ("STUCK",)),
    "END_AT_COORDINATOR": (
        "to be ended by the application or at the coordinator: no abort by hand",
        ("LATE", PREPARED),
    ),
    "REVIVE_COORDINATOR": ("waiting for a coordinator that decided: get it going; no abort by hand", ("STUCK",)),
    "DO_NOT_ABORT": ("hanging or stuck, and not to be aborted by hand: each entry says why", ("HANGING", "STUCK")),
    "WAIT": ("too young to be called hanging: audit again later", ("SUSPECT",)),
    "CAPTURE_MORE": ("without a verdict: copy what is missing (coverage says what), and audit again", ("UNKNOWN",)),
    "CHECK_TIMESTAMPS": ("late by old timestamps alone: look at what writes them", ("LATE",)),
}
#: Section -> its anchor on the page.
ANCHORS: Final = {**{name: verdict_of(name).lower() for name in (*SECTIONS, LOOKS_LATE)}, "OPEN": "transactions"}


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """The first screen: the answer of the report, as a sentence and as tiles with links."""

    answer: Answer
    headline: str
    #: Number of steps of the plan, what they are, and the anchor of the section that explains it.
    do: Sequence[tuple[int, str, str]]
    #: What is open, and the anchor of the section that shows it; None if there is none.
    tiles: Sequence[tuple[Counted, str | None]]
    #: The only hanging transaction, if it may be aborted: its steps are few enough to stand in the answer.
    only: Entry | None
    unseen: Sequence[str]


def first_screen(page: Page) -> FirstScreen:
    """The first screen of a page."""
    summary = page.summary
    found, hanging = answer(summary), summary.transactions.get("HANGING", ())
    is_one = len(hanging) == 1 and summary.counts["verdicts"].get("HANGING") == 1
    return FirstScreen(
        answer=found,
        headline=_headline(found, summary),
        do=[
            (
                summary.actions[action],
                phrase,
                next((ANCHORS[name] for name in names if summary.transactions.get(name)), "plan"),
            )
            for action, (phrase, names) in TO_DO.items()
            if summary.actions.get(action)
        ],
        tiles=[(each, _anchor(each.name, page)) for each in found.counted],
        only=entry("HANGING", hanging, summary) if is_one and hanging[0]["safe_to_abort"] else None,
        unseen=_unseen(page),
    )


def pieces(section: str, page: Page) -> int:
    """The number of rows of open_transactions in a section, shown or not."""
    if section == PREPARED:
        return len(page.summary.transactions.get(section, []))
    return int(page.summary.counts.get("verdicts", {}).get(section, 0))


def counted(section: str, page: Page) -> int:
    """The number of transactions of a section, each counted once if its coordinator ends it on all its partitions."""
    transactions = in_transactions(page.summary.counts)
    return sum(transactions.get(name, 0) for name in names_of(section)) or pieces(section, page)


def all_open(page: Page) -> int:
    """The number of open transactions, each counted once however many partitions it has."""
    return sum(in_transactions(page.summary.counts).values())


def reasons_of(section: str, page: Page) -> list[tuple[str, int]]:
    """The reasons of a section with their numbers of transactions, most first."""
    found = [(reason, count) for name in names_of(section) for reason, count in _reasons(name, page)]
    return sorted(found, key=lambda each: -each[1])


def all_reasons(page: Page) -> list[tuple[str, str, int]]:
    """Verdict, reason and number of transactions."""
    return [
        (name, reason, count) for name in sorted(page.summary.extents) for reason, count in sorted(_reasons(name, page))
    ]


def _reasons(name: str, page: Page) -> list[tuple[str, int]]:
    extent = page.summary.extents.get(name)
    return [] if extent is None else [(str(reason), count) for reason, count in extent.reasons]


def acknowledged_pieces(section: str, page: Page) -> int:
    """The number of rows of open_transactions with this verdict that are acknowledged. Their section does not list
    them."""
    return 0 if page.summary.known is None else len(page.summary.known.of_verdict(section))


def has_acknowledged(page: Page) -> bool:
    """Whether a file of acknowledgements was given that has entries."""
    known = page.summary.known
    return known is not None and bool(known.transactions or known.findings or known.ended or known.idle)


def _anchor(section: str, page: Page) -> str | None:
    """The anchor of what shows the transactions of a verdict."""
    if section == "OPEN" or page.summary.transactions.get(verdict_of(section)):
        return ANCHORS[section]
    return "acknowledged" if acknowledged_pieces(section, page) else None


def new_since(page: Page) -> dict[str, int]:
    """Verdict -> number of transactions that no earlier audit has seen."""
    new = {name: extent.new for name, extent in page.summary.extents.items()}
    return {name: new[name] for name in (*SECTIONS, LOOKS_LATE, "OPEN") if new.get(name)}


def navigation(page: Page) -> list[tuple[str, str, int | str]]:
    """The sections of the page in their order: anchor, label, and what it counts."""
    summary = page.summary
    read = f"{summary.partitions_read} of {summary.partitions_known}"
    entries: list[tuple[str, str, int | str, bool]] = [
        ("new", "New", sum(new_since(page).values()), len(page.runs) > 1),
        *(
            (name.lower(), section_title(name, summary).capitalize(), counted(name, page), True)
            for name in sections_of(summary)
        ),
        ("split", "Split", len(summary.split), bool(summary.split)),
        ("plan", "Action plan", sum(summary.actions.values()), bool(page.plan)),
        ("transactions", "All open", all_open(page), bool(page.opened)),
        (
            "acknowledged",
            "Acknowledged",
            len(summary.known.transactions) if summary.known else 0,
            has_acknowledged(page),
        ),
        ("lag", "LSO lag", page.lagging, True),
        ("two-phase", "Two-phase commit", page.two_phase_open, bool(page.two_phase_open)),
        ("findings", "Findings", sum(each.count for each in summary.findings), bool(summary.findings)),
        ("coverage", "Coverage", read, True),
        ("history", "History", len(page.runs), True),
    ]
    return [(anchor, label, count) for anchor, label, count, is_there in entries if is_there]


def _headline(found: Answer, summary: Summary) -> str:
    """The counts as a sentence. The title of the page is the same."""
    verdicts = {each.name: each.number for each in found.counted}
    wrong = {name: verdicts[name] for name in _PHRASES if verdicts.get(name)}
    phrases = [_PHRASES[name][0] if number == 1 else _PHRASES[name][1].format(number) for name, number in wrong.items()]
    is_calm = not phrases
    if is_calm:
        phrases = ["Nothing hangs, nothing is late, nothing is stuck"]
    elif not verdicts.get("HANGING"):
        phrases[0] = f"Nothing hangs, but {phrases[0]}"
    old = verdicts.get(LOOKS_LATE, 0)
    critical = sum(each.count for each in summary.findings if each.severity == "CRITICAL")
    unknown = verdicts.get("UNKNOWN", 0)
    more = {
        f"{unknown} could not be judged": unknown,
        f"{old} only look{'s' if old == 1 else ''} late": old,
        f"{critical} finding{'' if critical == 1 else 's'} CRITICAL": critical,
    }
    also = [said for said, number in more.items() if number]
    if also and is_calm:
        also[0] = f"but {also[0]}"
    if len(also) > is_calm:
        also[-1] = f"and {also[-1]}"
    return f"{', '.join([*phrases, *also])}."


def _unseen(page: Page) -> list[str]:
    """What the audit did not see, as the end of the sentence."""
    summary = page.summary
    unseen = []
    if summary.missing_partitions:
        lost, left = uncopied(summary)
        unseen.append(f"no copy of {lost}{', …' if left else ''}")
    if summary.missing_coordinators:
        unseen.append(uncopied_coordinators(summary))
    harmed = {name: summary.counts.get("coverage", {}).get(name, 0) for name in ("DAMAGED", "PARTIAL")}
    unseen += [
        f"{count} {'copy' if count == 1 else 'copies'} {name.lower()}" for name, count in harmed.items() if count
    ]
    if page.quarantined:
        unseen.append(f"{page.quarantined} unreadable stretch{'' if page.quarantined == 1 else 'es'} in quarantine")
    if summary.is_instant_assumed:
        unseen.append("capture instants assumed from the newest records (audit --captured-at gives them)")
    return unseen


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


def heading(section: str, page: Page) -> str:
    """What the transactions of a section have in common."""
    if section == PREPARED:
        return "open for long; their owners decide"
    transactions = in_transactions(page.summary.counts)
    name = next((name for name in names_of(section) if transactions.get(name)), section)
    return headline(name, counted(section, page))


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
