"""The first lines of a report: who holds which partition, what to do first, and what was not seen.

The terminal, the page and messages show the same ones. Text from logs is printable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.ask.extents import LOOKS_LATE, VerdictExtent, names_of
from txnlib.ask.report_entries import clock, owner, where
from txnlib.ask.rows import in_transactions
from txnlib.ask.summary import PREPARED, SECTIONS, Summary, places_of
from txnlib.core.display import counted, duration, elapsed, not_before, utc_time

CALM: Final = "nothing hangs, nothing is late, nothing is stuck."
#: Verdict -> its meaning for one transaction, in one line.
HEADLINES: Final[Mapping[str, str]] = {
    "HANGING": "nobody will ever end it",
    "STUCK": "its coordinator decided, but the marker does not arrive",
    "LATE": "its coordinator still expects it, and it is overdue",
    "SUSPECT": "nobody will end it, but it is young",
    PREPARED: "two-phase commits that have been open for long; their owners decide",
    "UNKNOWN": "the captured files do not allow a verdict",
    LOOKS_LATE: "its client's timestamps are old, but its coordinator still waits",
    "OPEN": "in time",
}
#: The same for several, where it differs.
_OF_SEVERAL: Final[Mapping[str, str]] = {
    "HANGING": "nobody will ever end them",
    "STUCK": "their coordinators decided, but markers do not arrive",
    "LATE": "their coordinators still expect them, and they are overdue",
    "SUSPECT": "nobody will end them, but they are young",
    LOOKS_LATE: "their clients' timestamps are old, but their coordinators still wait",
}
#: Action of the plan -> the step itself, for the first one.
STEPS: Final[Mapping[str, str]] = {
    "ABORT": "abort {place} by hand: it is safe, if the checks still show what they must",
    "ABORT_LATER": "{place} hangs, and is not to be aborted yet",
    "ABORT_AS_DECIDED": "abort {place} by hand: its coordinator decided ABORT, and the partition refuses its marker",
    "END_AT_COORDINATOR": "{owner}: its application, or its coordinator, ends it; no abort by hand",
    "REVIVE_COORDINATOR": "{owner}: get its coordinator __transaction_state-{coordinator} going; no abort by hand",
    "DO_NOT_ABORT": "do not abort {place} by hand: its entry says why",
    "WAIT": "{place} is too young to be called hanging: audit again later",
    "CAPTURE_MORE": "{place} could not be judged: copy what is missing, and audit again",
    "CHECK_TIMESTAMPS": "{owner}: look at the timestamps that it writes; nothing is to be ended",
}
#: Verdicts that mean that something is wrong, and those that are at least odd.
_ALARMS: Final = ("HANGING", "STUCK")
_DOUBTS: Final = ("LATE", "SUSPECT", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class Counted:
    """The transactions of one verdict, or those that only look late: their number, and what they are and hold."""

    name: str
    number: int
    says: str

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is wrong, and what to do first."""

    #: alarm, warning or calm.
    level: str
    #: What is open if nothing is wrong (CALM); empty if something is.
    calm: str
    #: The worst verdict first; none if all is calm.
    counted: tuple[Counted, ...]
    #: What to do first, or from when on something can be done; empty if nothing is to be done.
    first: str
    #: Findings that cannot wait, and that no coordinator was read.
    urgent: tuple[str, ...]
    #: What no earlier audit has seen; empty in the first audit.
    new: str

    @property
    def lines(self) -> list[str]:
        """All of it, a line each."""
        counted = [f"{each.number} {each.words}, {each.says}" for each in self.counted]
        first = [f"first: {self.first}"] if self.first else []
        return [
            *([f"{CALM}  {self.calm}"] if self.calm else []),
            *counted,
            *first,
            *self.urgent,
            *([self.new] if self.new else []),
        ]


def answer(summary: Summary) -> Answer:
    """The answer of a run."""
    verdicts = in_transactions(summary.counts)
    alarming = [name for name in HEADLINES if verdicts.get(name, 0) and name != "OPEN"]
    unread = ""  # of coordinators: then good news is about the partitions alone
    if summary.coordinators_known and not summary.coordinators_read:
        coordinators = counted(summary.coordinators_known, "coordinator partition")
        unread = f"0 of {coordinators} read: what coordinators expect is not known"
    critical = [
        f"CRITICAL: {each.count} {each.name}: {places_of(each)}"
        for each in summary.findings
        if each.severity == "CRITICAL"
    ]
    level = "warning" if unread or any(name in _DOUBTS for name in alarming) else "calm"
    return Answer(
        level="alarm" if critical or any(name in _ALARMS for name in alarming) else level,
        calm="" if alarming else _calm(summary, verdicts.get("OPEN", 0)),
        counted=tuple(
            _counted(name, verdicts[name], summary) for name in HEADLINES if alarming and verdicts.get(name, 0)
        ),
        first=_first(summary),
        urgent=(*critical, *([unread] if unread else [])),
        new=_new(summary, alarming),
    )


def sections_of(summary: Summary) -> list[str]:
    """The sections with transactions, in the order in which the first lines name what is in them."""
    order = [*HEADLINES]
    shown = (section for section in SECTIONS if summary.transactions.get(section))
    return sorted(shown, key=lambda section: order.index(next(iter(extents_of(section, summary)), section)))


def extents_of(section: str, summary: Summary) -> dict[str, VerdictExtent]:
    """What the transactions of a section count as: LATE, LOOKS_LATE or both, for instance. Nothing if nobody counted
    them."""
    return {name: summary.extents[name] for name in names_of(section) if name in summary.extents}


def headline(verdict: str, transactions: int) -> str:
    """What a verdict means for a number of transactions."""
    return HEADLINES[verdict] if transactions == 1 else _OF_SEVERAL.get(verdict, HEADLINES[verdict])


def _calm(summary: Summary, opened: int) -> str:
    if not opened:
        return "No transaction is open."
    oldest = (
        ""
        if summary.oldest_open_ms is None
        else f", the oldest for {elapsed(summary.as_of_ms - summary.oldest_open_ms)}"
    )
    number = "1 open transaction" if opened == 1 else f"{opened} open transactions, all"
    return f"{number} in time{oldest}."


def _counted(name: str, number: int, summary: Summary) -> Counted:
    """How many partitions they hold, for how long and by which clock, how many offsets wait, and how many only wait
    themselves."""
    extent = summary.extents.get(name)
    held = "" if extent is None or name == "OPEN" else f": {_held(extent, summary)}"
    known = 0 if summary.known is None else len({key[2] for key in summary.known.of_name(name)})
    return Counted(name, number, f"{headline(name, number)}{held}{f' ({known} acknowledged)' if known else ''}")


def _held(extent: VerdictExtent, summary: Summary) -> str:
    if not extent.held:
        return "it waits behind another" if extent.transactions == 1 else "all wait behind others"
    named = ", ".join(f"{where(row)} from offset {row['start_offset']}" for row in extent.places)
    verb = "holds" if extent.transactions == 1 else f"{extent.holding} hold{'s' if extent.holding == 1 else ''}"
    if extent.held == 1:
        said = f"{verb} {named or '1 partition'}"
    else:
        more = extent.held - len(extent.places)
        said = (
            f"{verb} {extent.held}"
            f" partitions{f' ({named}' if named else ''}{f' and {more} more' if named and more else ''}"
        )
        said += ")" if named else ""
    if extent.since_ms is not None:
        longest = "" if extent.held == 1 else ", the longest"
        said += (
            f"{longest} for {elapsed(summary.as_of_ms - extent.since_ms)} by {clock(is_brokers=extent.is_since_proven)}"
        )
    said += f"; {counted(extent.held_offsets, 'offset')} wait{'s' if extent.held_offsets == 1 else ''}"
    waiting = extent.transactions - extent.holding
    return f"{said}; {waiting} wait{'s' if waiting == 1 else ''} behind others" if waiting > 0 else said


def captured(summary: Summary) -> str:
    """How far the newest copy is from the instant of the audit; empty if that is not known."""
    if summary.captured_to_ms is None:
        return ""
    apart = summary.as_of_ms - summary.captured_to_ms
    return f"captured {duration(abs(apart))} {'before' if apart >= 0 else 'after'}"


def _first(summary: Summary) -> str:
    """The first step of the plan that is shown; and if none is safe to abort yet, when the first will be."""
    planned = [row for rows in summary.transactions.values() for row in rows if row["number"] is not None]
    if not planned:
        return ""
    row = min(planned, key=lambda row: row["number"])
    place = f"{where(row)} from offset {row['start_offset']}"
    said = STEPS[row["action"]].format(place=place, owner=owner(row), coordinator=row["coordinator_partition"])
    later, safe = summary.next_safe, sum(extent.safe for extent in summary.extents.values())
    if row["action"] != "ABORT" and safe:
        return (
            f"{said}; to abort {safe} that wait{'s' if safe == 1 else ''} behind others is safe (abort-plan --action"
            " ABORT)"
        )
    if row["action"] == "ABORT" or later is None:
        return said
    at = not_before(later["safe_from"])
    none = (
        f"no abort is safe yet: {where(later)} from offset {later['start_offset']} will be at {at}, if it is still open"
    )
    return none if row["action"] == "ABORT_LATER" else f"{said}; {none}"


def _new(summary: Summary, alarming: list[str]) -> str:
    """What no earlier audit has seen; nothing in the first audit of a cluster, where all is new."""
    if summary.earlier_ms is None or not alarming:
        return ""
    new = {name: extent.new for name in alarming if (extent := summary.extents.get(name)) is not None and extent.new}
    said = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in new.items()) or "nothing"
    return f"new since the audit as of {utc_time(summary.earlier_ms)}: {said}"
