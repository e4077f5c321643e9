"""The report of a run as data, made once: the answer, what holds partitions, what waits behind, the plan, coverage.

Terminal, page, JSON, messages and exit codes show it, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from txnlib.ask.extents import Reach, held
from txnlib.ask.pending_commits import waiting_text
from txnlib.ask.queries import Row, transactions_of
from txnlib.ask.stuck_ids import STUCK_ID, StuckId
from txnlib.ask.words import INSTANTS_ASSUMED, LOOKS_LATE, PREPARED, Fact, ends_text, where
from txnlib.core.copies import LeaderBasis
from txnlib.core.coverage.unread import UnreadFiles
from txnlib.core.display import counted, duration, elapsed, offset_text, printable, size, utc_time
from txnlib.core.instants import BY_CLIENTS, BY_NOBODY
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged
    from txnlib.ask.transaction import TransactionStory

#: What a transaction counts as -> what that means for one, and for several, in the order of the report.
MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "HANGING": ("nobody will ever end it", "nobody will ever end them"),
    "STUCK": (
        "its coordinator decided, but the marker does not arrive",
        "their coordinators decided, but markers do not arrive",
    ),
    "LATE": (
        "its coordinator still expects it, and it is overdue",
        "their coordinators still expect them, and they are overdue",
    ),
    "SUSPECT": ("nobody will end it, but it is young", "nobody will end them, but they are young"),
    PREPARED: (
        "a two-phase commit that has been open for long; its owner decides",
        "two-phase commits that have been open for long; their owners decide",
    ),
    "UNKNOWN": ("the captured files do not allow a verdict",) * 2,
    LOOKS_LATE: (
        "its client's timestamps are old, but its coordinator still waits",
        "their clients' timestamps are old, but their coordinators still wait",
    ),
    "OPEN": ("in time",) * 2,
}
CALM: Final = "nothing hangs, nothing is late, nothing is stuck."
#: The good news, where a part of the given files was not read.
CALM_IN_PART: Final = "nothing hangs in what was read"
#: Most reasons, and partitions that were read in part, to name in a sentence.
_SHOWN_REASONS: Final = 3
#: Names that mean that something is wrong, and those that are at least odd.
_ALARMS: Final = ("HANGING", "STUCK")
_DOUBTS: Final = ("LATE", "SUSPECT", "UNKNOWN")
#: Topics without records of applications.
_NO_DATA: Final = (TRANSACTION_STATE_TOPIC, CLUSTER_METADATA_TOPIC)
#: Most places of a finding to name.
SHOWN_PLACES: Final = 3
#: Settings on which verdicts depend: if none of them is assumed, the report does not name any.
DECISIVE: Final = frozenset({"transaction.max.timeout.ms", "producer.id.expiration.ms"})
#: Basis of the leaders -> what that means for the reader of a report.
UNPROVEN: Final[Mapping[str | None, str]] = {
    LeaderBasis.METADATA_LOG_UNCONFIRMED: "leaders may have changed since, so no abort is called safe",
    LeaderBasis.METADATA_LOG_STALE: "its broker was dead or cut off when it was copied, so no copy counts as current",
    LeaderBasis.METADATA_LOG_DAMAGED: "newer records of it are lost, so nothing that depends on leaders is decided",
}


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

    @property
    def where(self) -> str:
        """The first places in words; empty if there are none."""
        first = self.places[:SHOWN_PLACES]
        named = list(dict.fromkeys(filter(None, map(_place_of_finding, first))))
        more = self.count - len(first)
        return ", ".join(named) + (f" and {more} more" if named and more > 0 else "")


@dataclass(frozen=True)
class Report:
    """One run in report form. Instants are epoch ms."""

    cluster: str
    as_of_ms: int
    as_of_basis: str
    output: str
    kafka_version: str | None = None
    #: Only what is said of this topic; None: of all.
    topic: str | None = None
    #: Counts, for programs: rows, new rows and transactions by verdict (or LOOKS_LATE); partitions that these hold;
    #: findings by severity; undecided two-phase commits; copies by status; rows of tables.
    counts: Mapping[str, Any] = field(default_factory=dict)
    #: Verdict, LOOKS_LATE or PREPARED -> rows of open_transactions with their step, those that hold a partition first.
    #: Acknowledged rows are left out; of transactions in time, all that hold no partition.
    transactions: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    #: Transactional ids that are stuck without holding a partition and not acknowledged, those that wait longest first.
    stuck_ids: Sequence[StuckId] = ()
    #: Action of the plan -> number of its steps; and what its first step says.
    actions: Mapping[str, int] = field(default_factory=dict)
    first: str = ""
    extents: Mapping[str, Reach] = field(default_factory=dict)
    #: What is acknowledged; None if nothing was given.
    known: Acknowledged | None = None
    #: Instant of the newest earlier audit of this cluster, None if this is the first; and the transactions that it
    #: called safe to abort, now or later, and that this audit does not.
    earlier_ms: int | None = None
    withdrawn: Sequence[str] = ()
    captured_to_ms: int | None = None
    is_instant_assumed: bool = False
    brokers: int = 0
    partitions_read: int = 0
    partitions_known: int = 0
    #: Partitions without a copy whose leader said that nothing was open.
    partitions_quiet: int = 0
    #: Partitions whose judged copy is text of Kafka's tools.
    partitions_as_text: int = 0
    #: Partitions whose judged copy begins at an offset where nothing shows what was open.
    partitions_hidden: int = 0
    #: Partitions, and coordinator partitions, with captured files of which none was opened.
    partitions_unopened: int = 0
    coordinators_unopened: int = 0
    coordinators_read: int = 0
    coordinators_known: int = 0
    missing_coordinators: tuple[int, ...] = ()
    #: Whether the number of coordinator partitions is Kafka's default, because nothing shows another one.
    is_count_assumed: bool = False
    #: Topic and number of the first other partitions of which no copy was read.
    missing_partitions: tuple[tuple[str, int], ...] = ()
    #: What was given and not read, whether it has a partition or not: its number of paths and bytes, by reason, and the
    #: first rows of `unread_files`.
    unreadable_files: int = 0
    unreadable_bytes: int = 0
    unread_by_reason: Sequence[UnreadFiles] = ()
    unread: Sequence[Row] = ()
    #: Partitions, without those of coordinators, whose judged copy is not complete.
    partitions_in_part: int = 0
    worst_lag: Row | None = None
    #: When the oldest open transaction began, according to its coordinator, else by the best available clock.
    oldest_open_ms: int | None = None
    #: All findings by name, the most severe first.
    findings: Sequence[FindingPlaces] = ()
    #: Transactions that the previous run warned of and that are no longer open, and their number.
    ended: Sequence[Row] = ()
    ended_known: int = 0
    #: Transactions that are split or half-marked.
    broken: Sequence[TransactionStory] = ()
    #: Copies that are not COMPLETE.
    incomplete: Sequence[Row] = ()
    #: Broker settings for which Kafka's defaults are assumed.
    assumed: tuple[str, ...] = ()
    #: The newest time in the cluster's metadata log, and how well it proves leaders; None: there is no such log.
    metadata_ms: int | None = None
    metadata_basis: str | None = None

    # ---- The answer

    @property
    def alarming(self) -> list[str]:
        """What is open and not simply in time, the most urgent first."""
        verdicts = transactions_of(self.counts)
        return [name for name in MEANINGS if verdicts.get(name, 0) and name != "OPEN"]

    @property
    def is_calm(self) -> bool:
        """Whether all that is open is in time, and no id is stuck."""
        return not self.alarming and not self.stuck_ids

    @cached_property
    def counted(self) -> list[Fact]:
        """What the transactions of each verdict are and hold, the worst verdict first; none if all is calm."""
        verdicts = {} if self.is_calm else transactions_of(self.counts)
        stuck = [_counted_ids(self)] if self.stuck_ids else []
        urgent, others = ([name for name in MEANINGS if (name in _ALARMS) is is_urgent] for is_urgent in (True, False))
        return [
            *(_counted(name, verdicts[name], self) for name in urgent if verdicts.get(name, 0)),
            *stuck,
            *(_counted(name, verdicts[name], self) for name in others if verdicts.get(name, 0)),
        ]

    @property
    def headline(self) -> str:
        """The counts in one sentence."""
        counts = ", ".join(f"{each.number} {each.label}" for each in self.counted if each.label != "OPEN")
        calm = self.nothing_wrong.rstrip(".")
        return f"{counts or calm[:1].upper() + calm[1:]}."

    @property
    def nothing_wrong(self) -> str:
        """The sentence that nothing is wrong. It is only about what was read, and names what was not."""
        return f"{CALM_IN_PART}; {'; '.join(self.not_read)}." if self.not_read else CALM

    @cached_property
    def not_read(self) -> list[str]:
        """What was given and not read: how much, why and where, the gravest first."""
        said = [kind.says for kind in self.unread_by_reason[:_SHOWN_REASONS]]
        more = len(self.unread_by_reason) - len(said)
        if more > 0:
            said.append(f"{counted(more, 'more reason')} (coverage)")
        told = {(row["topic"], row["partition"]) for row in self.unread}
        cut = [row for row in self.incomplete if row["topic"] not in _NO_DATA]
        others = [row for row in cut if (row["topic"], row["partition"]) not in told]
        number = self.partitions_in_part - (len(cut) - len(others))
        if others and number > 0:
            named_ones = ", ".join(f"{where(row)} ({printable(row['detail'])})" for row in others[:_SHOWN_REASONS])
            left = number - len(others[:_SHOWN_REASONS])
            said.append(
                f"{counted(number, 'partition')} {'was' if number == 1 else 'were'} read in part: {named_ones}"
                + (f" and {left} more (coverage)" if left > 0 else "")
            )
        return said

    @property
    def calm(self) -> str:
        """What is open if nothing is wrong; empty if something is."""
        if not self.is_calm:
            return ""
        opened = transactions_of(self.counts).get("OPEN", 0)
        if not opened:
            return "No transaction is open in that." if self.not_read else "No transaction is open."
        oldest = self.oldest_open_ms
        age = "" if oldest is None else f", the oldest for {elapsed(self.as_of_ms - oldest)}"
        said = f"{'1 open transaction' if opened == 1 else f'{opened} open transactions, all'} in time{age}"
        reach = self.extents.get("OPEN")
        return f"{said}: {held(reach, self.as_of_ms)}." if reach is not None and reach.held else f"{said}."

    @property
    def level(self) -> str:
        """alarm, warning or calm."""
        if self._critical or self.stuck_ids or any(name in _ALARMS for name in self.alarming):
            return "alarm"
        is_in_doubt = any(name in _DOUBTS for name in self.alarming)
        return "warning" if self._unread or self.not_read or is_in_doubt else "calm"

    @property
    def _critical(self) -> list[str]:
        worst = (each for each in self.findings if each.severity == "CRITICAL")
        return [f"CRITICAL: {each.count} {each.name}: {each.where}" for each in worst]

    @property
    def _unread(self) -> list[str]:
        """A sentence that no coordinator was read, so that nothing is known of what coordinators expect; empty if one
        was."""
        if self.coordinators_read or not self.coordinators_known:
            return []
        coordinators = counted(self.coordinators_known, "coordinator partition")
        return [f"0 of {coordinators} read: what coordinators expect is not known"]

    @property
    def urgent(self) -> list[str]:
        """What cannot wait: critical findings, promises of a safe abort that are withdrawn, no coordinator read, files
        not read."""
        promises = counted(len(self.withdrawn), "promise") + " of a safe abort"
        since = f"withdrawn since the audit as of {utc_time(self.earlier_ms)}: {promises}, see below"
        not_read = [f"not read: {'; '.join(self.not_read)}"] if self.not_read and not self.is_calm else []
        return [*self._critical, *([since] if self.withdrawn else []), *self._unread, *not_read]

    @property
    def new(self) -> str:
        """What no earlier audit has seen; nothing in the first audit of a cluster, where all is new."""
        if self.earlier_ms is None or not self.alarming:
            return ""
        new = {name: reach.new for name in self.alarming if (reach := self.extents.get(name)) and reach.new}
        said = ", ".join(f"{number} {name}" for name, number in new.items()) or "nothing"
        return f"new since the audit as of {utc_time(self.earlier_ms)}: {said}"

    @property
    def facts(self) -> list[Fact]:
        """What is wrong, what to do first, and what cannot wait."""
        return [
            *([Fact("", f"{self.nothing_wrong}  {self.calm}")] if self.calm else []),
            *self.counted,
            *([Fact("first", self.first)] if self.first else []),
            *(Fact("", said) for said in self.urgent),
            *([Fact("", self.new)] if self.new else []),
        ]

    @property
    def answer(self) -> list[str]:
        """The facts as text, one line each."""
        return list(map(str, self.facts))

    # ---- What the audit saw

    @property
    def captured(self) -> str:
        """How far the newest copy is from the instant of the audit; empty if that is not known."""
        if self.captured_to_ms is None:
            return ""
        apart = self.as_of_ms - self.captured_to_ms
        return f"captured {duration(abs(apart))} {'before' if apart >= 0 else 'after'}"

    @property
    def read(self) -> str:
        """How much was read, and how far last stable offsets lag if nothing above says so."""
        partitions = f"{self.partitions_read} of {self.partitions_known} partitions"
        if self.partitions_quiet:
            partitions += f" (nothing open on {self.partitions_quiet} more, by their leaders' word)"
        coordinators = f"{self.coordinators_read} of {self.coordinators_known} coordinator partitions"
        if self.partitions_known and not self.coordinators_known:
            coordinators = "no coordinator partitions (by the metadata log, there is no __transaction_state)"
        files = counted(self.unreadable_files, "file") if self.unreadable_files else "nothing"
        unreadable = f"{size(self.unreadable_bytes)} in {files}" if self.unreadable_bytes else files
        said = f"read {partitions}, {coordinators}, {unreadable} unreadable"
        lag = self.worst_lag
        if lag is None or any(extent.held for name, extent in self.extents.items() if name != "OPEN"):
            return said
        age = "" if lag["lag_ms"] is None else f"{elapsed(lag['lag_ms'])} by its record's time, "
        ends = ends_text(lag.get("ends_by"), self.as_of_ms)
        highest = f"highest {age}{counted(lag['lag_offsets'], 'offset')} ({where(lag)}{f'; {ends}' if ends else ''})"
        return f"{said}.  LSO lag: {highest}"

    @property
    def unseen(self) -> list[str]:
        """What the audit did not see, or had to assume: a sentence each, with the command that tells more."""
        said = []
        if self.partitions_as_text:
            as_text = counted(self.partitions_as_text, "partition")
            said.append(
                f"{as_text} read as text, which has no bytes to check: no abort there is called safe, and copies of the"
                " files would settle it (docs/capture.md)"
            )
        if self.partitions_hidden:
            hidden = counted(self.partitions_hidden, "partition")
            said.append(
                f"what was open before the first record of {hidden} is not known: no producer snapshot of that was"
                " captured (coverage)"
            )
        if self.missing_partitions:
            named_ones = [f"{printable(topic)}-{partition}" for topic, partition in self.missing_partitions]
            unread = self.partitions_known - self.partitions_read - self.partitions_quiet - self.partitions_unopened
            left = max(unread - len(self.missing_coordinators) - len(named_ones), 0)
            others = f" and {left} more (coverage)" if left else ""
            said.append(f"not read, because no copy was captured: {', '.join(named_ones)}{others}")
        if self.coordinators_unopened:
            closed = counted(self.coordinators_unopened, "coordinator partition")
            said.append(f"not opened: {closed} (what to do: coverage)")
        if self.coordinators_known and not self.coordinators_read and not self.coordinators_unopened:
            number = f": {self.coordinators_known} are assumed, Kafka's default" if self.is_count_assumed else ""
            said.append(f"no coordinator partition was captured (what to copy: collect-plan){number}")
        elif self.missing_coordinators:
            numbers = ", ".join(map(str, self.missing_coordinators[:20]))
            more = ", …" if len(self.missing_coordinators) > 20 else ""
            lost = f"__transaction_state-{{{numbers}{more}}}"
            if self.is_count_assumed and more:
                lost = (
                    f"{len(self.missing_coordinators)} of {self.coordinators_known} partitions of __transaction_state,"
                    f" if it has {self.coordinators_known}, which is assumed as Kafka's default (else audit again with"
                    " --coordinator-partitions N)"
                )
            said.append(f"not captured: {lost} (what to copy: collect-plan)")
        if self.as_of_basis in (BY_CLIENTS, BY_NOBODY):
            said.append(f"as of the {self.as_of_basis}")
        elif self.is_instant_assumed:
            said.append(INSTANTS_ASSUMED)
        if self.metadata_ms is not None and self.metadata_basis in UNPROVEN:
            until = utc_time(self.metadata_ms)
            said.append(f"the cluster's metadata log ends at {until}: {UNPROVEN[self.metadata_basis]}")
        if not DECISIVE.isdisjoint(self.assumed):
            assumed = ", ".join(self.assumed)
            said.append(f"assumed, because nothing in the capture shows them: Kafka's defaults of {assumed}")
        return said

    @property
    def split(self) -> list[TransactionStory]:
        """The broken transactions, except those that only wait for a marker."""
        return [each for each in self.broken if not each.is_only_pending]

    # ---- What is open

    @property
    def verdicts(self) -> list[str]:
        """The verdicts (or LOOKS_LATE, or PREPARED) of which transactions are shown, the most urgent first; those in
        time only where something is wrong."""
        is_calm = self.is_calm and self.topic is None
        return [name for name in MEANINGS if self.transactions.get(name) and not (is_calm and name == "OPEN")]

    def number_of_rows(self, verdict: str) -> int:
        """The rows of open_transactions of a verdict, shown or not, without those acknowledged."""
        listed = len(self.transactions.get(verdict, ()))
        if verdict == PREPARED:
            return listed
        known = 0 if self.known is None else len(self.known.of_name(verdict))
        if verdict == "OPEN":
            return (self.extents["OPEN"].held if "OPEN" in self.extents else listed) - known
        return int(self.counts.get("verdicts", {}).get(verdict, listed + known)) - known


def meaning(name: str, transactions: int) -> str:
    """What a verdict means for a number of transactions."""
    return MEANINGS[name][transactions != 1]


def _counted(name: str, number: int, report: Report) -> Fact:
    """What the transactions of a verdict hold, for how long and by which clock, what waits for them, and how many only
    wait."""
    reach = report.extents.get(name)
    said = "" if reach is None else f": {held(reach, report.as_of_ms)}"
    said += "" if name == "OPEN" else waiting_text(report.transactions.get(name, ()))
    known = 0 if report.known is None else report.known.whole.get(name, 0)
    return Fact(name, f"{meaning(name, number)}{said}{f' ({known} acknowledged)' if known else ''}", number)


def _counted_ids(report: Report) -> Fact:
    """Which ids are stuck without holding a partition, and for how long."""
    first, number = report.stuck_ids[0], len(report.stuck_ids)
    named = f"{printable(first.transactional_id)} has been in {first.for_how_long(report.as_of_ms)}"
    if number == 1:
        return Fact(STUCK_ID, f"an id holds no partition, and can begin no transaction: {named}", 1)
    return Fact(STUCK_ID, f"ids hold no partition, and can begin no transaction, the longest: {named}", number)


def _place_of_finding(row: Row) -> str:
    own = "" if row["transactional_id"] is None else printable(row["transactional_id"])
    if row["topic"] is None:
        return own
    place = where(row) + ("" if row["offset"] is None else f" {offset_text(row['offset'])}")
    return f"{own} in {place}" if own and row["topic"] == TRANSACTION_STATE_TOPIC else place
