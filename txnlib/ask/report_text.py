"""The report as text: one screen with the answer, then why, then what to do.

Reads a Summary and computes no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from txnlib.ask.collect_plan import INSTANTS_ASSUMED
from txnlib.ask.extents import VerdictExtent
from txnlib.ask.grid import WIDTH, command_lines, folded
from txnlib.ask.headline import CALM, HEADLINES, answer, captured, extents_of, sections_of
from txnlib.ask.own_command import PROGRAM, own_command
from txnlib.ask.report_entries import (
    INDENT,
    Line,
    acknowledged_lines,
    brief,
    broken_lines,
    entry_lines,
    is_holder,
    labelled,
    where,
)
from txnlib.ask.rows import Row
from txnlib.ask.summary import PREPARED, SHOWN_COPIES, Summary, cards, places_of, verdict_of_section
from txnlib.core.copies import LeaderBasis
from txnlib.core.display import counted, elapsed, not_before, printable, size, utc_time
from txnlib.core.kafka_commands import refusal

#: How a line points to the command that shows more, which stands whole at the end of the report.
_POINTER: Final = re.compile(r"[( ](open --verdict \w+|diff|coverage|collect-plan)\)")
SHOWN_ENDED: Final = 5
#: Reasons, and applications, to name where a section has more transactions than fit.
SHOWN_IN_ALL: Final = 5
#: Number of transactions (for LATE and PREPARED: owners) of a section to describe in full: by default, and for sections
#: that need action if there are few sections. Then the number to give one line each. So a report has about 40 lines.
IN_FULL, IN_FULL_URGENT, IN_BRIEF = 1, 2, 3
_URGENT: Final = ("HANGING", "STUCK")
_FEW: Final = 2


def render(summary: Summary, width: int = WIDTH, program: str = PROGRAM) -> str:
    """The report as text, wrapped to a width if words allow it, and a command only where a shell goes on.

    `program`: what calls txn-audit.
    """
    lines: list[Line] = [*_head(summary), *_answer(summary), *_read(summary)]
    for section in sections_of(summary):
        lines += _section(section, summary)
    lines += [
        *broken_lines(summary.split),
        *_ended(summary),
        *acknowledged_lines(summary.known),
        *_findings(summary),
        *_incomplete(summary),
    ]
    lines += ["", *(_further(lines, summary, program) or [f"tables in {printable(summary.output)} (Delta)"])]
    return "\n".join(each for line in lines for each in _wrapped(line, width))


def _wrapped(line: Line, width: int) -> list[str]:
    if isinstance(line, str):
        return command_lines(line, width, INDENT)
    text, indent = line
    return folded(text, width, indent)


def _head(summary: Summary) -> list[Line]:
    when = captured(summary)
    version = "" if summary.kafka_version is None else f", Kafka {printable(summary.kafka_version)}"
    what = f"{when}{', ' if when else ''}{counted(summary.brokers, 'broker')}{version}"
    return [
        (f"txnlib audit  cluster {printable(summary.cluster)}  as of {utc_time(summary.as_of_ms)}  ({what})", 14),
        "",
    ]


def _answer(summary: Summary) -> list[Line]:
    found = answer(summary)
    number = max((len(str(each.number)) for each in found.counted), default=0)
    indent = number + max(8, *(len(each.words) for each in found.counted), 0) + 5
    first = [f"first {' ' * (indent - 8)}{found.first}"] if found.first else []
    lines: list[Line] = [
        (f"  {each.number:>{number}} {each.words:<{indent - number - 5}}  {each.says}", indent)
        for each in found.counted
    ]
    others = [
        *([f"{CALM}  {found.calm}"] if found.calm else []),
        *first,
        *found.urgent,
        *([found.new] if found.new else []),
    ]
    return [*lines, *((f"  {said}", indent if said in first else 4) for said in others)]


def _read(summary: Summary) -> list[Line]:
    partitions = f"{summary.partitions_read} of {summary.partitions_known} partitions"
    if summary.partitions_quiet:
        partitions += f" (nothing open on {summary.partitions_quiet} more, by their leaders' word)"
    coordinators = f"{summary.coordinators_read} of {summary.coordinators_known} coordinator partitions"
    line = f"  read {partitions}, {coordinators}, {unreadable(summary)}"
    if summary.worst_lag is not None and not any(
        extent.held for name, extent in summary.extents.items() if name != "OPEN"
    ):
        lag = summary.worst_lag
        age = "" if lag["lag_ms"] is None else f"{elapsed(lag['lag_ms'])} by its record's time, "
        line += f".  LSO lag: highest {age}{counted(lag['lag_offsets'], 'offset')} ({where(lag)})"
    lines: list[Line] = [(line, 7)]
    if summary.partitions_as_text:
        said = (
            "read as text, which has no bytes to check: no abort there is called safe, and copies of the files would"
            " settle it"
        )
        lines.append((f"  {counted(summary.partitions_as_text, 'partition')} {said} (docs/capture.md)", 4))
    if summary.partitions_hidden:
        hidden = counted(summary.partitions_hidden, "partition")
        said = (
            f"what was open before the first record of {hidden} is not known: no producer snapshot of that was captured"
        )
        lines.append((f"  {said} (coverage)", 4))
    if summary.missing_partitions:
        lost, left = uncopied(summary)
        others = f" and {left} more (coverage)" if left else ""
        lines.append((f"  not read, because no copy was captured: {lost}{others}", 4))
    if summary.missing_coordinators:
        lines.append((f"  {uncopied_coordinators(summary)} (what to copy: collect-plan)", 4))
    if summary.is_instant_assumed:
        lines.append((f"  {INSTANTS_ASSUMED}", 4))
    if summary.metadata_ms is not None and (unproven := UNPROVEN.get(summary.metadata_basis)) is not None:
        lines.append((f"  the cluster's metadata log ends at {utc_time(summary.metadata_ms)}: {unproven}", 4))
    if not DECISIVE.isdisjoint(summary.assumed):
        lines.append(
            (
                (
                    "  assumed, because nothing in the capture shows them: Kafka's defaults of"
                    f" {', '.join(summary.assumed)}"
                ),
                4,
            )
        )
    return lines


def uncopied(summary: Summary) -> tuple[str, int]:
    """The first partitions without a copy, but for coordinators, and how many more there are."""
    named = [f"{printable(topic)}-{partition}" for topic, partition in summary.missing_partitions]
    unread = (
        summary.partitions_known
        - summary.partitions_read
        - summary.partitions_quiet
        - len(summary.missing_coordinators)
    )
    return ", ".join(named), max(unread - len(named), 0)


def uncopied_coordinators(summary: Summary) -> str:
    """The first coordinator partitions without a copy, as a sentence."""
    if summary.coordinators_known and not summary.coordinators_read:
        return "no coordinator partition was captured"
    named = ", ".join(map(str, summary.missing_coordinators[:20]))
    return f"not captured: __transaction_state-{{{named}{', …' if len(summary.missing_coordinators) > 20 else ''}}}"


def unreadable(summary: Summary) -> str:
    """How many bytes could not be read."""
    return f"{size(summary.unreadable_bytes) if summary.unreadable_bytes else 'nothing'} unreadable"


#: Settings on which verdicts depend: if none of them is assumed, the report does not name any.
DECISIVE: Final = frozenset({"transaction.max.timeout.ms", "producer.id.expiration.ms"})
#: Basis of the leaders -> what that means for the reader of a report.
UNPROVEN: Final[Mapping[str | None, str]] = {
    LeaderBasis.METADATA_LOG_UNCONFIRMED: "leaders may have changed since, so no abort is called safe",
    LeaderBasis.METADATA_LOG_STALE: "its broker was dead or cut off when it was copied, so no copy counts as current",
    LeaderBasis.METADATA_LOG_DAMAGED: "newer records of it are lost, so nothing that depends on leaders is decided",
}


def _section(section: str, summary: Summary) -> list[Line]:
    rows = summary.transactions[section]
    total = len(rows)
    if section != PREPARED:
        known = 0 if summary.known is None else len(summary.known.of_verdict(section))
        total = int(summary.counts.get("verdicts", {}).get(section, total + known)) - known
    groups = cards(section, rows)
    is_roomy = sum(bool(each) for each in summary.transactions.values()) <= _FEW
    in_full = IN_FULL_URGENT if section in _URGENT and is_roomy else IN_FULL
    shown = [row for group in groups[: in_full + IN_BRIEF] for row in group]
    hidden = total - len(shown)
    lines: list[Line] = ["", section_title(section, summary)]
    reach = [*extents_of(section, summary).values()]
    if hidden:
        lines += [line for extent in reach for line in _in_all(extent)]
    for number, group in enumerate(groups[:in_full]):
        lines += [""] if number or len(lines) > 2 else []
        lines += entry_lines(section, group, summary)
    in_brief = groups[in_full : in_full + IN_BRIEF]
    lines += [""] if in_brief else []
    for group in in_brief:
        lines += brief(group, summary)
    if hidden:
        lines.append(f"  and {_more(hidden, shown, reach)} (open --verdict {verdict_of_section(section)})")
    return lines


def section_title(section: str, summary: Summary) -> str:
    """What the transactions of a section count as, in words."""
    return " AND ".join(extents_of(section, summary)).replace("_", " ") or section


def _more(rows: int, shown: Sequence[Row], reach: Sequence[VerdictExtent]) -> str:
    """What a section does not list, in transactions; in rows if these are of the listed transactions, or nobody counted
    them."""
    listed = len({(row["producer_id"], row["transactional_id"]) for row in shown})
    transactions = sum(extent.transactions for extent in reach) - listed
    if transactions <= 0:
        return f"{counted(rows, 'more row')} of these" if reach else f"{rows} more, later in the plan"
    return f"{transactions} more, later in the plan" if rows == transactions else f"{transactions} more, {rows} rows"


def _in_all(extent: VerdictExtent) -> list[Line]:
    """The transactions of a verdict in sums: how many may be aborted when, why they have the verdict, and whose they
    are."""
    rows = "" if extent.rows == extent.transactions else f" ({extent.rows} rows)"
    places = f"{counted(extent.transactions, 'transaction')} on {counted(extent.partitions, 'partition')}{rows}"
    safe = []
    if extent.safe or extent.safe_later:
        on = "" if extent.safe_rows == extent.safe else f" ({counted(extent.safe_rows, 'row')})"
        safe.append(f"{extent.safe} safe to abort now{on}")
    if extent.safe_later and extent.safe_from_ms is not None:
        safe.append(f"{extent.safe_later} once they are old enough, the last from {not_before(extent.safe_from_ms)} on")
    several = "; some have several" if sum(number for _, number in extent.reasons) > extent.transactions else ""
    return [
        *labelled("in all", "; ".join([places, *safe])),
        *labelled("reasons", _most(extent.reasons) + several),
        *labelled("of", _most(extent.applications)),
    ]


def _most(groups: Sequence[tuple[str | None, int]]) -> str:
    """The largest groups with their sizes, and the size of all others, if they are several; empty if nothing is known
    of any."""
    if all(name is None for name, _ in groups):
        return ""
    shown = SHOWN_IN_ALL if len(groups) > SHOWN_IN_ALL + 1 else len(groups)
    named = [f"{number} {'not known' if name is None else printable(name)}" for name, number in groups[:shown]]
    others = groups[shown:]
    if others:
        named.append(f"{sum(number for _, number in others)} in {len(others)} others")
    return ", ".join(named)


def _ended(summary: Summary) -> list[Line]:
    """What became of the transactions that the previous audit warned of."""
    lines: list[Line] = []
    for row in summary.ended[:SHOWN_ENDED]:
        place = f"{where(row)} offset {row['start_offset']}   producer {row['producer_id']}"
        lines.append((f"  {place}   was {row['verdict']}: {printable(row['says'])}", INDENT))
    if summary.ended_known > SHOWN_ENDED:
        lines.append(f"  and {summary.ended_known - SHOWN_ENDED} more (diff)")
    return ["", "ENDED SINCE THE AUDIT BEFORE", *lines] if lines else []


def _findings(summary: Summary) -> list[Line]:
    lines: list[Line] = [
        (
            (
                f"  {each.count:>4} {each.severity:<8} {each.name}:"
                f" {each.meaning}{f' ({said})' if (said := places_of(each)) else ''}"
            ),
            16,
        )
        for each in summary.findings
        if each.severity != "INFO"
    ]
    return ["", "FINDINGS", *lines] if lines else []


def _incomplete(summary: Summary) -> list[Line]:
    if not summary.incomplete:
        return []
    lines: list[Line] = ["", "INCOMPLETE COPIES"]
    for row in summary.incomplete[:SHOWN_COPIES]:
        copy = f"  {where(row)}   {printable(row['source'])}   {row['status']}: "
        lines.append((copy + printable(row["detail"]), INDENT))
    if len(summary.incomplete) > SHOWN_COPIES:
        lines.append("  and more (coverage)")
    return lines


def _further(lines: Sequence[Line], summary: Summary, program: str) -> list[Line]:
    """Commands to be pasted: for details of the first transaction that holds a partition, and those to which lines
    point.

    `txn-audit` cannot read the tables of a catalog.
    """
    if "/" not in summary.output or refusal(summary.output) is not None:
        return []
    rows = [row for name in HEADLINES for row in summary.transactions.get(name, ())]
    first = min(rows, key=lambda row: (not is_holder(row), row["number"] is None, row["number"] or 0), default=None)
    asked: list[tuple[str, list[str]]] = []
    if first is not None and refusal(first["topic"]) is None:
        asked.append(("explain", [first["topic"], str(first["partition"]), str(first["start_offset"])]))
    said = " ".join(line if isinstance(line, str) else line[0] for line in lines)
    asked += [(command, []) for command in dict.fromkeys(_POINTER.findall(said))]
    commands = [own_command(summary.output, command, places, called=program) for command, places in asked]
    if len(commands) == 1:
        return [f"for details: {commands[0]}"]
    return ["for details:", *(f"  {command}" for command in commands)] if commands else []
