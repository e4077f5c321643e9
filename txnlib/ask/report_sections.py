"""The sections of a report: their order, their words, and what they say.

A report is its answer (`report.Report`) and these. Text (`terminal_report`), page (`page.report_page`) and JSON
(`run_result`) write them: a row of SECTIONS is in all three. A section of open transactions has entries (`entries`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from txnlib.ask import report_fields
from txnlib.ask.entries import PLACES
from txnlib.ask.grid import INDENT
from txnlib.ask.queries import Row, StoredRun
from txnlib.ask.report import MEANINGS, Report
from txnlib.ask.report_fields import Fields
from txnlib.ask.report_rows import SHOWN_COPIES
from txnlib.ask.stuck_ids import STUCK_ID
from txnlib.ask.words import where
from txnlib.core.display import counted, printable, size, some_of, utc_time

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged, Acknowledgement
    from txnlib.ask.page_rows import Page
    from txnlib.ask.transaction import TransactionStory


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a report. The text has it if it has a title, the page if it has a heading; both leave it out if it
    says nothing."""

    #: Its anchor on the page.
    name: str
    #: The verdict of the open transactions that it lists; or none.
    verdict: str = ""
    #: In the text: its title, and the indentation of lines that continue a sentence.
    title: str = ""
    indent: int = INDENT
    #: What it says, a sentence each. The page lists them, if it has no macro for the section.
    says: Callable[[Report], Sequence[str]] = lambda report: ()
    #: On the page: its heading; its label in the navigation, if that is another; what it counts, if not its sentences;
    #: and whether it is there, if not whenever it counts something.
    heading: str = ""
    label: str = ""
    counts: Callable[[Page], int | str] | None = None
    is_there: Callable[[Page], bool] | None = None
    #: What programs get.
    fields: Callable[[StoredRun, Report], Fields] = lambda run, report: {}

    def count(self, page: Page) -> int | str:
        return len(self.says(page.report)) if self.counts is None else self.counts(page)

    def is_on(self, page: Page) -> bool:
        is_there = bool(self.count(page)) if self.is_there is None else self.is_there(page)
        return bool(self.heading) and is_there


def on_page(page: Page) -> list[Section]:
    """The sections of a page."""
    return [section for section in SECTIONS if section.is_on(page)]


def navigation(page: Page) -> list[tuple[str, str, int | str]]:
    """The sections of a page: anchor, label, and what it counts."""
    return [(section.name, section.label or section.heading, section.count(page)) for section in on_page(page)]


def anchor_of(name: str, page: Page) -> str | None:
    """The anchor of what shows the transactions of a verdict."""
    if name in page.report.verdicts or name == STUCK_ID:
        return name.lower()
    return "transactions" if name == "OPEN" else "acknowledged" if acknowledged_rows(name, page) else None


# ---- What a section counts


def transactions(verdict: str, page: Page) -> int:
    """The number of transactions of a section, each counted once, on however many partitions. For OPEN, only those that
    hold a partition."""
    reach = page.report.extents.get(verdict)
    if reach is None:
        return len(page.report.transactions.get(verdict, ()))
    return reach.holding if verdict == "OPEN" else reach.transactions


def acknowledged_rows(verdict: str, page: Page) -> int:
    """The number of rows of open_transactions of a section that are acknowledged. The section does not list them."""
    return 0 if page.report.known is None else len(page.report.known.of_name(verdict))


def all_open(page: Page) -> int:
    """The number of open transactions, each counted once however many partitions it has."""
    return sum(page.report.counts.get("transactions", {}).values())


def new_since(page: Page) -> dict[str, int]:
    """Verdict -> number of transactions that no earlier audit has seen."""
    return {name: extent.new for name, extent in page.report.extents.items() if extent.new}


def _has_acknowledged(page: Page) -> bool:
    """Whether a file of acknowledgements was given that has entries."""
    known = page.report.known
    return known is not None and bool(known.transactions or known.findings or known.ended or known.idle)


# ---- What a section says

#: Transactions to name for one entry of a file of acknowledgements, and entries to show of each kind.
SHOWN_MATCHES: Final = 3
SHOWN_ENTRIES: Final = 10
#: Most transactions that are split or half-marked, most promises that an audit withdraws, and most that ended.
SHOWN_BROKEN: Final = 5
SHOWN_WITHDRAWN: Final = 5
SHOWN_ENDED: Final = 5


def broken_lines(broken: Sequence[TransactionStory]) -> list[str]:
    """A line for each transaction that is split or half-marked, with its partitions."""
    lines = []
    for each in broken[:SHOWN_BROKEN]:
        decided = "not decided" if each.decided_outcome == "OPEN" else f"decided {each.decided_outcome}"
        who = f"{printable(each.transactional_id)}   transaction {each.number}   producer {each.producer_id}"
        lines.append(f"{who}   {decided}: {some_of([*map(_place, each.partitions)], PLACES)}")
    hidden = len(broken) - SHOWN_BROKEN
    return [*lines, f"and {hidden} more: the view latest_whole_transactions"] if hidden > 0 else lines


def _place(row: Row) -> str:
    marked = f"{row['outcome']} at offset {row['marker_offset']}" if row["marker_offset"] is not None else "no marker"
    return f"{where(row)} {marked} ({row['marker']})"


def _first_of(lines: Sequence[str], most: int) -> list[str]:
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]


def _ended(report: Report) -> list[str]:
    """What became of the transactions that the previous audit warned of."""
    lines = [
        f"{where(row)} offset {row['start_offset']}   producer {row['producer_id']}   was {row['verdict']}:"
        f" {printable(row['says'])}"
        for row in report.ended[:SHOWN_ENDED]
    ]
    more = report.ended_known - SHOWN_ENDED
    return [*lines, f"and {more} more (diff)"] if more > 0 else lines


def acknowledged_lines(known: Acknowledged | None, *, has_transactions: bool = True) -> list[str]:
    """Each entry of a file of acknowledgements with what it matches, until when, by whom and why; none if no file was
    given.

    `has_transactions`: also the entries that match transactions.
    """
    if known is None:
        return []
    of_entry: dict[int, tuple[Acknowledgement, list[Row]]] = {}
    for row, entry in known.transactions.values() if has_transactions else ():
        of_entry.setdefault(id(entry), (entry, []))[1].append(row)
    lines = [
        *(f"{_matched(rows)}: {_says(entry)}" for entry, rows in of_entry.values()),
        *(f"{number} {printable(entry)}: {_says(entry)}" for entry, number in known.findings),
    ]
    ended = [f"ended on {utc_time(each.until_ms)}, so this counts again: {_entry(each)}" for each in known.ended]
    idle = [f"matches nothing, and can be removed: {_entry(each)}" for each in known.idle]
    return [line for part in (lines, ended, idle) for line in _first_of(part, SHOWN_ENTRIES)]


def _matched(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{row['verdict']} {where(row)} offset {row['start_offset']}" for row in rows[:SHOWN_MATCHES])
    return shown if len(rows) <= SHOWN_MATCHES else f"{shown} and {counted(len(rows) - SHOWN_MATCHES, 'other')}"


def _says(entry: Acknowledgement) -> str:
    return f"until {utc_time(entry.until_ms)} by {printable(entry.by)}: {printable(entry.why)}"


def _entry(entry: Acknowledgement) -> str:
    return f"{printable(entry)} ({_says(entry)})"


def _findings(report: Report) -> list[str]:
    return [
        f"{each.count:>4} {each.severity:<8} {each.name}: {each.meaning}{f' ({each.where})' if each.where else ''}"
        for each in report.findings
        if each.severity != "INFO"
    ]


def _not_read(report: Report) -> list[str]:
    """The files that were not read, or not to their end, with what to do."""
    shown = report.unread[:SHOWN_COPIES]
    lines = []
    for row in shown:
        amount = [size(row["bytes"])] if row["bytes"] else []
        lines.append("   ".join([printable(row["path"]), *amount, printable(row["reason"])]))
    more = report.unreadable_files - len({row["path"] for row in shown})
    return [*lines, f"and {counted(more, 'more file')} (coverage)"] if more > 0 else lines


def _incomplete(report: Report) -> list[str]:
    lines = [
        f"{where(row)}   {printable(row['source'])}   {row['status']}: {printable(row['detail'])}"
        for row in report.incomplete[:SHOWN_COPIES]
    ]
    return [*lines, "and more (coverage)"] if len(report.incomplete) > SHOWN_COPIES else lines


# ---- The sections


def _of_verdict(verdict: str) -> Section:
    """The open transactions of a verdict. Of those in time, only those that hold a partition."""
    return Section(
        name=verdict.lower(),
        verdict=verdict,
        title=verdict,
        heading=verdict,
        label="OPEN, holding" if verdict == "OPEN" else "",
        counts=partial(transactions, verdict),
        is_there=lambda page: verdict in page.report.verdicts,
    )


#: All sections in their order.
SECTIONS: Final = (
    Section(name="answer", fields=report_fields.of_answer),
    Section(
        name="new",
        heading="New since the last audit",
        label="New",
        counts=lambda page: sum(new_since(page).values()),
        is_there=lambda page: len(page.runs) > 1,
    ),
    *map(_of_verdict, MEANINGS),
    Section(
        name=STUCK_ID.lower(),
        title=STUCK_ID,
        heading="Ids that are stuck without holding a partition",
        label="Stuck ids",
        counts=lambda page: len(page.report.stuck_ids),
        fields=report_fields.of_stuck_ids,
    ),
    Section(
        name="split",
        title="SPLIT OR HALF-MARKED",
        says=lambda report: broken_lines(report.split),
        heading="Split or half-marked",
        label="Split",
        counts=lambda page: len(page.report.split),
    ),
    Section(
        name="withdrawn",
        title="WITHDRAWN SINCE THE AUDIT BEFORE",
        indent=4,
        says=lambda report: _first_of(report.withdrawn, SHOWN_WITHDRAWN),
        heading="Withdrawn since the audit before",
        label="Withdrawn",
        counts=lambda page: len(page.report.withdrawn),
        fields=lambda run, report: {"withdrawn": list(report.withdrawn)},
    ),
    Section(
        name="plan",
        heading="Action plan",
        counts=lambda page: sum(page.report.actions.values()),
        is_there=lambda page: bool(page.plan),
    ),
    Section(
        name="transactions",
        heading="All open transactions",
        label="All open",
        counts=all_open,
        is_there=lambda page: bool(page.opened),
        fields=report_fields.of_open,
    ),
    Section(name="ended", title="ENDED SINCE THE AUDIT BEFORE", says=_ended, fields=report_fields.of_ended),
    Section(
        name="acknowledged",
        title="ACKNOWLEDGED",
        says=lambda report: acknowledged_lines(report.known),
        heading="Acknowledged",
        counts=lambda page: len(page.report.known.transactions) if page.report.known else 0,
        is_there=_has_acknowledged,
        fields=report_fields.of_acknowledged,
    ),
    Section(
        name="lag",
        heading="Lag of last stable offsets",
        label="LSO lag",
        counts=lambda page: page.lagging,
        is_there=lambda page: True,
        fields=report_fields.of_lag,
    ),
    Section(name="two-phase", heading="Two-phase commit", counts=lambda page: page.two_phase_open),
    Section(
        name="findings",
        title="FINDINGS",
        indent=16,
        says=_findings,
        heading="Findings",
        counts=lambda page: sum(each.count for each in page.report.findings),
        is_there=lambda page: bool(page.report.findings),
        fields=report_fields.of_findings,
    ),
    Section(
        name="coverage",
        heading="Coverage",
        counts=lambda page: f"{page.report.partitions_read} of {page.report.partitions_known}",
        is_there=lambda page: True,
        fields=report_fields.of_coverage,
    ),
    Section(name="not-read", title="NOT READ", says=_not_read),
    Section(name="incomplete", title="INCOMPLETE COPIES", says=_incomplete),
    Section(name="history", heading="History", counts=lambda page: len(page.runs), is_there=lambda page: True),
)
