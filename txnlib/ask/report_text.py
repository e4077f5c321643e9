"""The report as text: one screen with the answer, then why, then what to do.

Reads a Summary and computes no verdict.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from txnlib.ask.extents import LOOKS_LATE, VerdictExtent
from txnlib.ask.grid import WIDTH
from txnlib.ask.own_command import PROGRAM, own_command
from txnlib.ask.report_entries import (
    INDENT,
    Line,
    acknowledged_lines,
    brief,
    broken_lines,
    clock,
    is_holder,
    is_new,
    labelled,
    transaction,
    where,
    whole_transaction,
)
from txnlib.ask.rows import Row, in_transactions
from txnlib.ask.summary import PREPARED, SECTIONS, SHOWN, Summary, cards
from txnlib.core.display import counted, duration, printable, size, utc_time
from txnlib.core.verdicts.copies import LeaderBasis
from txnlib.core.verdicts.kafka_commands import refusal
from txnlib.core.verdicts.reason import Reason

#: How a line points to the command that shows more, which stands whole at the end of the report.
_POINTER: Final = re.compile(r"[( ](open --verdict \w+|diff|coverage|collect-plan)\)")
SHOWN_ENDED: Final = 5
SHOWN_CLOCKS: Final = 3
#: Reasons, and applications, to name where a section has more transactions than fit.
SHOWN_IN_ALL: Final = 5
#: Number of transactions (for LATE and PREPARED: owners) of a section to describe in full: by default, and for sections that need
#: action if there are few sections. Then the number to give one line each. So a report has about 40 lines.
IN_FULL, IN_FULL_URGENT, IN_BRIEF = 1, 2, 3
_URGENT: Final = ("HANGING", "STUCK")
_FEW: Final = 2
#: Reason of transactions that are late only by their timestamps.
_IN_TIME: Final = Reason.TIMEOUT_NOT_PASSED.value

#: Verdict -> its meaning for one transaction, in one line.
HEADLINES: Final[Mapping[str, str]] = {
    "HANGING": "nobody will ever end it",
    "STUCK": "its coordinator decided, but the marker does not arrive",
    "LATE": "its coordinator still expects it, and it is counted as late",
    "SUSPECT": "nobody will end it, but it is young",
    PREPARED: "two-phase commits that have been open for long: their owners decide",
    "UNKNOWN": "the captured files do not allow a verdict",
    LOOKS_LATE: "only looks late: its client's timestamps are old, and its coordinator still waits",
    "OPEN": "in time",
}
#: The same for several, where it differs.
_OF_SEVERAL: Final[Mapping[str, str]] = {
    "HANGING": "nobody will ever end them",
    "STUCK": "their coordinators decided, but markers do not arrive",
    "LATE": "their coordinators still expect them, and they are counted as late",
    "SUSPECT": "nobody will end them, but they are young",
    LOOKS_LATE: "only look late: their clients' timestamps are old, and their coordinators still wait",
}


def headline(verdict: str, transactions: int) -> str:
    """What a verdict means for a number of transactions."""
    return HEADLINES[verdict] if transactions == 1 else _OF_SEVERAL.get(verdict, HEADLINES[verdict])


def in_words(name: str) -> str:
    """A verdict, or what else a transaction counts as, as it is printed."""
    return name.replace("_", " ")


def render(summary: Summary, width: int = WIDTH, program: str = PROGRAM) -> str:
    """The report as text, wrapped to a width if words allow it. Commands are never wrapped. `program`: what calls txn-audit."""
    lines: list[Line] = [*_head(summary), *_answer(summary), *_read(summary)]
    for verdict in SECTIONS:
        lines += _section(verdict, summary)
    lines += [
        *broken_lines(summary.broken),
        *_ended(summary),
        *acknowledged_lines(summary.known),
        *_findings(summary),
        *_incomplete(summary),
        "",
        f"tables in {printable(summary.output)} (Delta)",
    ]
    lines += _further(lines, summary, program)
    return "\n".join(each for line in lines for each in _wrapped(line, width))


def _wrapped(line: Line, width: int) -> list[str]:
    if isinstance(line, str):
        return [line]
    text, indent = line
    return textwrap.wrap(text, width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)


def _head(summary: Summary) -> list[Line]:
    captured = ""
    if summary.captured_to_ms is not None:
        captured = f"captured {duration(summary.as_of_ms - summary.captured_to_ms)} before, "
    elif summary.is_instant_assumed:
        captured = "capture instants assumed from the newest records, "
    version = "" if summary.kafka_version is None else f", Kafka {printable(summary.kafka_version)}"
    brokers = f"{summary.brokers} broker{'' if summary.brokers == 1 else 's'}"
    cluster = printable(summary.cluster)
    return [(f"txnlib audit  cluster {cluster}  as of {utc_time(summary.as_of_ms)}  ({captured}{brokers}{version})", 14), ""]


def unread_coordinators(summary: Summary) -> str:
    """That no coordinator was read, if there is one: then good news is about the partitions alone."""
    if summary.coordinators_read or not summary.coordinators_known:
        return ""
    known = counted(summary.coordinators_known, "coordinator partition")
    return f"0 of {known} read: what coordinators expect is not known"


def _answer(summary: Summary) -> list[Line]:
    verdicts = in_transactions(summary.counts)
    alarming = {name: verdicts.get(name, 0) for name in HEADLINES if verdicts.get(name, 0) and name != "OPEN"}
    opened = verdicts.get("OPEN", 0)
    critical = _critical(summary)
    if not alarming:
        said = "  nothing hangs, nothing is late, nothing is stuck.  "
        if not opened:
            return [(f"{said}No transaction is open.", 2), *critical]
        oldest = "" if summary.oldest_open_ms is None else f", the oldest for {duration(summary.as_of_ms - summary.oldest_open_ms)}"
        number = "1 open transaction" if opened == 1 else f"{opened} open transactions, all"
        return [(f"{said}{number} in time{oldest}.", 2), *critical]
    names = [*alarming, *(["OPEN"] if opened else [])]
    width, longest = max(len(str(verdicts[name])) for name in names), max(8, *(len(in_words(name)) for name in names))
    lines: list[Line] = [
        (
            f"  {verdicts[name]:>{width}} {in_words(name):<{longest}}  {headline(name, verdicts[name])}{_extent(name, summary)}",
            width + longest + 5,
        )
        for name in names
    ]
    return [*lines, *critical, *_new(summary, alarming)]


def _critical(summary: Summary) -> list[Line]:
    """What belongs to the answer beside verdicts: findings that cannot wait, with their first places, and coordinators not read."""
    found = [row for row in summary.findings if row["severity"] == "CRITICAL"]
    unread = unread_coordinators(summary)
    lines: list[Line] = [(f"  CRITICAL  {row['count']} {row['name']}: {_places(row)}", 12) for row in found]
    return [*lines, *([(f"  {unread}", 4)] if unread else [])]


def _new(summary: Summary, alarming: Mapping[str, int]) -> list[Line]:
    """What no earlier audit has seen; nothing in the first audit of a cluster, where all is new."""
    if summary.earlier_ms is None:
        return []
    new = {name: extent.new for name in alarming if (extent := summary.extents.get(name)) is not None and extent.new}
    said = ", ".join(f"{number} {in_words(name)}" for name, number in new.items()) or "nothing"
    return [(f"  new since the audit as of {utc_time(summary.earlier_ms)}: {said}", 4)]


def _known_of(verdict: str, summary: Summary) -> str:
    """How many of a verdict are acknowledged."""
    known = 0 if summary.known is None else len({key[2] for key in summary.known.of_verdict(verdict)})
    return f" ({known} acknowledged)" if known else ""


def _extent(verdict: str, summary: Summary) -> str:
    """How many partitions the transactions of a verdict hold, for how long and by which clock, and how many only wait."""
    extent = summary.extents.get(verdict)
    if extent is None or verdict == "OPEN":
        return _known_of(verdict, summary)
    return f": {_held(extent, summary.as_of_ms)}{_known_of(verdict, summary)}"


def _held(extent: VerdictExtent, as_of_ms: int) -> str:
    waiting = extent.transactions - extent.holding
    if not extent.held:
        return "it waits behind another" if extent.transactions == 1 else "all wait behind others"
    held = f"{counted(extent.held, 'partition')} held"
    if extent.since_ms is not None:
        longest = "" if extent.held == 1 else ", the longest"
        age = duration(as_of_ms - extent.since_ms)
        held += f"{longest} for {age} by {clock(is_brokers=extent.is_since_proven)}"
    return f"{held}; {waiting} {'waits' if waiting == 1 else 'wait'} behind others" if waiting > 0 else held


def _read(summary: Summary) -> list[Line]:
    partitions = f"{summary.partitions_read} of {summary.partitions_known} partitions"
    if summary.partitions_quiet:
        partitions += f" (nothing open on {summary.partitions_quiet} more, by their leaders' word)"
    coordinators = f"{summary.coordinators_read} of {summary.coordinators_known} coordinator partitions"
    line = f"  read {partitions}, {coordinators}, {size(summary.unreadable_bytes)} unreadable"
    if summary.worst_lag is not None:
        lag = summary.worst_lag
        age = "" if lag["lag_ms"] is None else f"{duration(lag['lag_ms'])} by its record's time, "
        line += f".  LSO lag: highest {age}{counted(lag['lag_offsets'], 'offset')} ({where(lag)})"
    lines: list[Line] = [(line, 7)]
    if summary.partitions_as_text:
        said = "read as text, which has no bytes to check: no abort there is called safe, and copies of the files would settle it"
        lines.append((f"  {counted(summary.partitions_as_text, 'partition')} {said} (docs/capture.md)", 4))
    if summary.missing_partitions:
        lost = [f"{printable(topic)}-{partition}" for topic, partition in summary.missing_partitions]
        unread = summary.partitions_known - summary.partitions_read - summary.partitions_quiet - len(summary.missing_coordinators)
        more = f" and {unread - len(lost)} more (coverage)" if unread > len(lost) else ""
        lines.append((f"  not read, because no copy was captured: {', '.join(lost)}{more}", 4))
    if summary.missing_coordinators:
        named = ", ".join(str(number) for number in summary.missing_coordinators[:20])
        more = "" if len(summary.missing_coordinators) <= 20 else ", …"
        lines.append((f"  not captured: __transaction_state-{{{named}{more}}} (what to copy: collect-plan)", 4))
    if summary.metadata_ms is not None and (unproven := UNPROVEN.get(summary.metadata_basis)) is not None:
        lines.append((f"  the cluster's metadata log ends at {utc_time(summary.metadata_ms)}: {unproven}", 4))
    lines += [(clocks_line(row), 4) for row in summary.clocks[:SHOWN_CLOCKS]]
    if not DECISIVE.isdisjoint(summary.assumed):
        lines.append((f"  assumed, because nothing in the capture shows them: Kafka's defaults of {', '.join(summary.assumed)}", 4))
    return lines


def _bound(ms: int) -> str:
    return duration(ms) if ms >= 1_000 else f"{ms} ms"


def clocks_line(row: Row) -> str:
    """The difference of two brokers' clocks, with its bound."""
    one, other, offset = row["broker"], row["other_broker"], row["offset_ms"]
    ahead, behind = (other, one) if offset > 0 else (one, other)
    samples = row["samples"] + row["samples_back"]
    said = f"  clocks: broker {printable(ahead)} is {duration(abs(offset))} ahead of broker {printable(behind)}"
    return f"{said} (± {_bound(row['error_ms'])}, by {counted(samples, 'marker')}); ages are proven by each broker's own clock"


#: Settings on which verdicts depend: if none of them is assumed, the report does not name any.
DECISIVE: Final = frozenset({"transaction.max.timeout.ms", "producer.id.expiration.ms"})
#: Basis of the leaders -> what that means for the reader of a report.
UNPROVEN: Final[Mapping[str | None, str]] = {
    LeaderBasis.METADATA_LOG_UNCONFIRMED: "leaders may have changed since, so no abort is called safe",
    LeaderBasis.METADATA_LOG_STALE: "its broker was dead or cut off when it was copied, so no copy counts as current",
    LeaderBasis.METADATA_LOG_DAMAGED: "newer records of it are lost, so nothing that depends on leaders is decided",
}


def _section(verdict: str, summary: Summary) -> list[Line]:
    rows = summary.transactions.get(verdict, [])
    if not rows:
        return []
    total = len(rows) if verdict == PREPARED else _unknown(verdict, summary, len(rows))
    groups = cards(verdict, rows)
    groups.sort(key=lambda group: group[0]["reason"] == _IN_TIME)  # transactions that are late only by their timestamps come last
    if summary.earlier_ms is not None:
        groups.sort(key=lambda group: not is_new(group[0]))
    is_roomy = sum(bool(each) for each in summary.transactions.values()) <= _FEW
    in_full = IN_FULL_URGENT if verdict in _URGENT and is_roomy else IN_FULL
    shown = [row for group in groups[: in_full + IN_BRIEF] for row in group]
    hidden = total - len(shown)
    lines: list[Line] = ["", verdict]
    reach = [summary.extents[name] for name in names_of(verdict) if name in summary.extents]
    if hidden:
        lines += [line for extent in reach for line in _in_all(extent)]
    for number, group in enumerate(groups[:in_full]):
        lines += [""] if number or len(lines) > 2 else []
        lines += whole_transaction(group, summary) if verdict in ("LATE", PREPARED) else transaction(group[0], summary)
    in_brief = groups[in_full : in_full + IN_BRIEF]
    lines += [""] if in_brief else []
    for group in in_brief:
        lines += brief(group, summary)
    if hidden:
        lines.append(f"  and {_more(hidden, shown, reach)} (open --verdict {total_of(verdict)})")
    return lines


def names_of(verdict: str) -> tuple[str, ...]:
    """What the transactions of a section count as in the first lines."""
    return ("LATE", LOOKS_LATE) if verdict == "LATE" else (verdict,)


def _more(rows: int, shown: Sequence[Row], reach: Sequence[VerdictExtent]) -> str:
    """What a section does not list, in transactions; in rows if these are of the listed transactions, or nobody counted them."""
    listed = len({(row["producer_id"], row["transactional_id"]) for row in shown})
    transactions = sum(extent.transactions for extent in reach) - listed
    if transactions <= 0:
        return f"{counted(rows, 'more partition')} of these" if reach else f"{rows} more, which block less"
    return f"{transactions} more, which block less" if rows == transactions else f"{transactions} more on {rows} partitions"


def _unknown(verdict: str, summary: Summary, default: int) -> int:
    """The number of rows of a verdict that are not acknowledged."""
    known = 0 if summary.known is None else len(summary.known.of_verdict(verdict))
    return int(summary.counts.get("verdicts", {}).get(verdict, default + known)) - known


def total_of(section: str) -> str:
    """The verdict of the transactions of a section."""
    return "OPEN" if section == PREPARED else section


def _in_all(extent: VerdictExtent) -> list[Line]:
    """The transactions of a verdict in sums: how many may be aborted when, why they have the verdict, and whose they are."""
    rows = "" if extent.rows == extent.transactions else f" ({extent.rows} rows)"
    places = f"{counted(extent.transactions, 'transaction')} on {counted(extent.partitions, 'partition')}{rows}"
    safe = []
    if extent.safe or extent.safe_later:
        on = "" if extent.safe_rows == extent.safe else f" (on {counted(extent.safe_rows, 'partition')})"
        safe.append(f"{extent.safe} safe to abort now{on}")
    if extent.safe_later:
        safe.append(f"{extent.safe_later} once they are old enough, the last from {utc_time(extent.safe_from_ms)} on")
    return [
        *labelled("in all", "; ".join([places, *safe])),
        *labelled("reasons", _most(extent.reasons)),
        *labelled("of", _most(extent.applications)),
    ]


def _most(groups: Sequence[tuple[str | None, int]]) -> str:
    """The largest groups with their sizes, and the size of all others; empty if nothing is known of any."""
    if all(name is None for name, _ in groups):
        return ""
    named = [f"{number} {'not known' if name is None else printable(name)}" for name, number in groups[:SHOWN_IN_ALL]]
    others = groups[SHOWN_IN_ALL:]
    if others:
        named.append(f"{sum(number for _, number in others)} in {len(others)} others")
    return ", ".join(named)


def _ended(summary: Summary) -> list[Line]:
    """What became of the transactions that the previous audit warned of."""
    lines: list[Line] = []
    for row in summary.ended[:SHOWN_ENDED]:
        place = f"{where(row)}   offset {row['start_offset']}   producer {row['producer_id']}"
        lines.append((f"  {place}   was {row['verdict']}: {printable(row['says'])}", INDENT))
    hidden = len(summary.ended) - SHOWN_ENDED
    if hidden > 0:
        lines.append(f"  and {hidden} {'or more' if len(summary.ended) == SHOWN else 'more'} (diff)")
    return ["", "ENDED SINCE THE AUDIT BEFORE", *lines] if lines else []


def _findings(summary: Summary) -> list[Line]:
    if not summary.findings:
        return []
    lines: list[Line] = [
        (f"  {row['count']:>4} {row['severity']:<8} {row['name']}: {row['message']}{_at(_places(row))}", 16)
        for row in summary.findings
    ]
    return ["", "FINDINGS", *lines]


def _places(row: Row) -> str:
    """The first places of findings of one name; empty if they have none."""
    places = list(dict.fromkeys(filter(None, map(_place, row["places"]))))
    more = row["count"] - len(row["places"])
    return ", ".join(places) + (f" and {more} more" if places and more > 0 else "")


def _place(row: Row) -> str:
    if row["topic"] is None:
        return "" if row["transactional_id"] is None else printable(row["transactional_id"])
    return where(row) + ("" if row["offset"] is None else f" offset {row['offset']}")


def _at(places: str) -> str:
    return f" ({places})" if places else ""


def _incomplete(summary: Summary) -> list[Line]:
    if not summary.incomplete:
        return []
    lines: list[Line] = ["", "NOT WHOLE"]
    for row in summary.incomplete:
        copy = f"  {where(row)}   {printable(row['source'])}   {row['status']}: "
        lines.append((copy + printable(row["detail"]), INDENT))
    return lines


def _further(lines: Sequence[Line], summary: Summary, program: str) -> list[Line]:
    """Commands to be pasted: for details of the first transaction that holds a partition, and those to which lines point.

    `txn-audit` cannot read the tables of a catalog.
    """
    if "/" not in summary.output or refusal(summary.output) is not None:
        return []
    rows = [row for name in HEADLINES for row in summary.transactions.get(name, ())]
    first = next(filter(is_holder, rows), rows[0] if rows else None)
    asked: list[tuple[str, list[str]]] = []
    if first is not None and refusal(first["topic"]) is None:
        asked.append(("explain", [first["topic"], str(first["partition"]), str(first["start_offset"])]))
    said = " ".join(line if isinstance(line, str) else line[0] for line in lines)
    asked += [(command, []) for command in dict.fromkeys(_POINTER.findall(said))]
    commands = [f"  {own_command(summary.output, command, places, called=program)}" for command, places in asked]
    return ["for details:", *commands] if commands else []
