"""The report as text: one screen with the answer, then why, then what to do.

Reads a Summary and computes no verdict.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from txnlib.core.display import duration, printable, size, utc_time
from txnlib.core.verdicts.abort_plan import PERMISSIONS
from txnlib.core.verdicts.copies import LeaderBasis
from txnlib.core.verdicts.reason import Reason
from txnlib.core.verdicts.shell_words import option, refusal, with_places
from txnlib.queries.needed_copies import needed_for
from txnlib.queries.rows import Row
from txnlib.queries.summary import PREPARED, SECTIONS, SHOWN, Summary, cards

WIDTH: Final = 132
_LABEL: Final = 9
SHOWN_CAUSES: Final = 2
SHOWN_GROUPS: Final = 3
SHOWN_ENDED: Final = 5
#: Number of transactions (for LATE and PREPARED: owners) of a section to describe in full: by default, and for sections that need
#: action if there are few sections. Then the number to give one line each. So a report has about 40 lines.
IN_FULL, IN_FULL_URGENT, IN_BRIEF = 1, 2, 3
_URGENT: Final = ("HANGING", "STUCK")
_FEW: Final = 2
#: A line; or a line to wrap, with the indentation of its continuation.
Line = str | tuple[str, int]

#: Reason of transactions that are late only by their timestamps.
_IN_TIME: Final = Reason.TIMEOUT_NOT_PASSED.value

#: Verdict -> its meaning in one line.
HEADLINES: Final = {
    "HANGING": "nobody will ever end it",
    "STUCK": "its coordinator decided, but the marker does not arrive",
    "LATE": "its coordinator still expects it, and it is counted as late",
    "SUSPECT": "nobody will end it, but it is young",
    PREPARED: "two-phase commits that have been open for long: their owners decide",
    "UNKNOWN": "the captured files do not allow a verdict",
    "OPEN": "in time",
}


def render(summary: Summary, width: int = WIDTH) -> str:
    """The report as text, wrapped to a width if words allow it. Commands are never wrapped."""
    lines: list[Line] = [*_head(summary), *_answer(summary), *_read(summary)]
    for verdict in SECTIONS:
        lines += _section(verdict, summary)
    lines += [*_ended(summary), *_findings(summary), *_incomplete(summary), "", f"tables in {printable(summary.output)} (Delta)"]
    lines += _further(summary)
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


def _answer(summary: Summary) -> list[Line]:
    verdicts = summary.counts.get("transactions") or summary.counts.get("verdicts", {})
    alarming = {name: verdicts.get(name, 0) for name in HEADLINES if verdicts.get(name, 0) and name != "OPEN"}
    opened = verdicts.get("OPEN", 0)
    if not alarming:
        if not opened:
            return [("  nothing hangs, nothing is late, nothing is stuck.  No transaction is open.", 2)]
        oldest = "" if summary.oldest_open_ms is None else f", the oldest for {duration(summary.as_of_ms - summary.oldest_open_ms)}"
        number = "1 open transaction" if opened == 1 else f"{opened} open transactions, all"
        return [(f"  nothing hangs, nothing is late, nothing is stuck.  {number} in time{oldest}.", 2)]
    names = [*alarming, *(["OPEN"] if opened else [])]
    width = max(len(str(verdicts[name])) for name in names)
    return [
        (f"  {verdicts[name]:>{width}} {name:<8}  {HEADLINES[name]}{_extent(name, verdicts[name], summary)}", width + 13)
        for name in names
    ]


def _extent(verdict: str, total: int, summary: Summary) -> str:
    """How many partitions the transactions of a verdict block, and for how long; empty if not all of them are loaded."""
    rows = summary.transactions.get(verdict, [])
    if verdict not in ("HANGING", "STUCK", "LATE") or len(rows) < summary.counts.get("verdicts", {}).get(verdict, total):
        return ""
    places = len({where(row) for row in rows})
    since = [row["blocks_since"] for row in rows if row["blocks_since"] is not None]
    longest = f"{'' if places == 1 else ', the longest'} for {duration(summary.as_of_ms - min(since))}" if since else ""
    return f": {places} partition{'' if places == 1 else 's'} blocked{longest}"


def _read(summary: Summary) -> list[Line]:
    partitions = f"{summary.partitions_read} of {summary.partitions_known} partitions"
    coordinators = f"{summary.coordinators_read} of {summary.coordinators_known} coordinator partitions"
    line = f"  read {partitions}, {coordinators}, {size(summary.unreadable_bytes)} unreadable"
    if summary.worst_lag is not None:
        lag = summary.worst_lag
        line += f".  LSO lag: highest {duration(lag['lag_ms'])}, {lag['lag_offsets']} offsets ({where(lag)})"
    lines: list[Line] = [(line, 7)]
    if summary.missing_coordinators:
        named = ", ".join(str(number) for number in summary.missing_coordinators[:20])
        more = "" if len(summary.missing_coordinators) <= 20 else ", …"
        lines.append((f"  not captured: __transaction_state-{{{named}{more}}} (what to copy: txn-audit collect-plan)", 4))
    if summary.metadata_ms is not None and (unproven := UNPROVEN.get(summary.metadata_basis)) is not None:
        lines.append((f"  the cluster's metadata log ends at {utc_time(summary.metadata_ms)}: {unproven}", 4))
    if not DECISIVE.isdisjoint(summary.assumed):
        lines.append((f"  assumed, because nothing in the capture shows them: Kafka's defaults of {', '.join(summary.assumed)}", 4))
    return lines


#: Settings on which verdicts depend: if none of them is assumed, the report does not name any.
DECISIVE: Final = frozenset({"transaction.max.timeout.ms", "producer.id.expiration.ms"})
#: Basis of the leaders -> what that means for the reader of a report.
UNPROVEN: Final[Mapping[str | None, str]] = {
    LeaderBasis.METADATA_LOG_UNCONFIRMED: "leaders may have changed since, so no abort is called safe",
    LeaderBasis.METADATA_LOG_STALE: "its broker was dead or cut off when it was copied, so no copy counts as current",
}


def _section(verdict: str, summary: Summary) -> list[Line]:
    rows = summary.transactions.get(verdict, [])
    if not rows:
        return []
    total = len(rows) if verdict == PREPARED else summary.counts.get("verdicts", {}).get(verdict, len(rows))
    lines: list[Line] = ["", verdict]
    groups = cards(verdict, rows)
    groups.sort(key=lambda group: group[0]["reason"] == _IN_TIME)  # transactions that are late only by their timestamps come last
    is_roomy = sum(bool(each) for each in summary.transactions.values()) <= _FEW
    in_full = IN_FULL_URGENT if verdict in _URGENT and is_roomy else IN_FULL
    for group in groups[:in_full]:
        lines += _late(group) if verdict in ("LATE", PREPARED) else _transaction(group[0], summary)
    for group in groups[in_full : in_full + IN_BRIEF]:
        lines += _brief(group)
    hidden = total - sum(map(len, groups[: in_full + IN_BRIEF]))
    if hidden:
        lines.append(f"  and {hidden} more, which block less: txn-audit abort-plan")
    return lines


def _brief(rows: Sequence[Row]) -> list[Line]:
    """The transactions of one owner in one line: where, whose, since when."""
    first = rows[0]
    places = ", ".join(f"{where(row)} offset {row['start_offset']}" for row in rows)
    blocked = f"{sum(row['blocked_offsets'] or 0 for row in rows)} offsets since {utc_time(first['blocks_since'])}"
    return [(f"  {places}   {producer(first)}   {owner(first)}   blocks {blocked}: {first['reason']}", 2 + _LABEL)]


def owner(row: Row) -> str:
    if row["transactional_id"] is None:
        return "no transactional id known"
    own, application = printable(row["transactional_id"]), printable(row["application"])
    return own if own == application else f"{own} of {application}"


def producer(row: Row) -> str:
    return f"producer {row['producer_id']} epoch {row['producer_epoch']}"


def where(row: Row) -> str:
    return f"{printable(row['topic'])}-{row['partition']}"


def _transaction(row: Row, summary: Summary) -> list[Line]:
    lines: list[Line] = [(f"  {where(row)}   offset {row['start_offset']}   {producer(row)}   {owner(row)}", 2 + _LABEL)]
    lines += _labelled("why", printable(row["explanation"]))
    lines += _labelled("blocks", blocks(row))
    lines += _labelled("behind", behind(row))
    lines += _labelled("waiting", waiting(row))
    for cause in row["causes"][:SHOWN_CAUSES]:
        lines += _labelled("cause", f"{cause['likelihood'].lower()}: {printable(cause['cause'])}")
    lines += _labelled("seen", seen(row))
    if row["abort_command"] is None:
        lines += _labelled("do not", f"write a marker by hand: {printable(row['do_not_abort_because'])}")
        lines += _labelled("capture", needed_for(row))
        lines += _labelled("do", "" if row["command"] is None else printable(row["command"]), wrap=False)
        for note in _notes(row):
            lines += _labelled("note", note)
        return lines
    if row["safe_to_abort"]:
        age = duration(row["broker_clock_age_ms"])
        lines += _labelled("safe", f"yes: open for {age} by the brokers' clocks, and nobody will end it")
        for label, steps in (("before", row["before"]), ("do", None), ("after", row["after"][:1])):
            for step in steps or ():
                lines += _labelled(label, f"{_short(step['command'])}   must show: {printable(step['must_print'])}", wrap=False)
            if steps is None:
                lines += _labelled(label, printable(row["abort_command"]), wrap=False)
                lines += _labelled("or", on_old_brokers(row), wrap=False)
        for note in _notes(row):
            lines += _labelled("note", note)
        return lines
    lines += _labelled("not yet", printable(row["do_not_abort_because"]))
    lines += _labelled("then", printable(row["abort_command"]), wrap=False)
    return lines + _labelled("or", on_old_brokers(row), wrap=False)


def _notes(row: Row) -> list[str]:
    """Notes to read before a step, without what is already said and without permissions, which are in the plan."""
    notes = [note for note in row["notes"] or () if note != row["do_not_abort_because"]]
    return [printable(note) for note in notes if not note.startswith(PERMISSIONS)]


def on_old_brokers(row: Row) -> str:
    """The other form of an abort, if the version of the brokers is unknown."""
    other = row["command_for_old_brokers"]
    return "" if other is None else f"{printable(other)}   (brokers before 3.0)"


def is_holder(row: Row) -> bool:
    """Whether the transaction blocks the last stable offset of its partition; if not, another one blocks first."""
    return row["blocking_producer_id"] in (None, row["producer_id"])


def blocks(row: Row) -> str:
    """Where consumers stop, and which transaction blocks them."""
    extent = f"{row['blocked_offsets']} offsets, {size(row['blocked_bytes'])}; compaction too"
    since = utc_time(row["blocks_since"])
    if is_holder(row):
        stable = row["start_offset"] if row["last_stable_offset"] is None else row["last_stable_offset"]
        return f"read_committed consumers at offset {stable} since {since}: {extent}"
    other = row["blocking_transactional_id"]
    named = f"producer {row['blocking_producer_id']}" + ("" if other is None else f" ({printable(other)})")
    return f"nothing yet: it waits behind {named}, which holds consumers at offset {row['last_stable_offset']}; then {extent}"


def seen(row: Row) -> str:
    runs = row["runs_seen"]
    age = "without a time" if row["last_timestamp_ms"] is None else "at a time that no clock shows,"
    if row["duration_minutes"] is not None:
        age = f"{row['duration_minutes']} min ago"
    clock = "the broker's" if row["age_basis"] == "BROKER_CLOCK" else "its client's"
    audits = "first seen by this audit" if runs <= 1 else f"seen by {runs} audits, first as of {utc_time(row['first_seen'])}"
    return f"last write {age} by {clock} clock; {audits}"


def _late(rows: list[Row]) -> list[Line]:
    first = rows[0]
    timeout = duration(first["transaction_timeout_ms"])
    lines: list[Line] = [f"  {owner(first)}   {producer(first)}   {first['coordinator_state']}   timeout {timeout}"]
    places = ", ".join(f"{where(row)} from offset {row['start_offset']} ({row['blocked_offsets']} offsets)" for row in rows)
    lines += _labelled("blocks", places)
    lines += _labelled(
        "why", f"{printable(first['explanation'])} (coordinator __transaction_state-{first['coordinator_partition']})"
    )
    lines += _labelled("since", f"began {utc_time(first['transaction_start'])} by its coordinator; {seen(first)}")
    lines += _labelled("waiting", ", ".join(filter(None, map(waiting, rows))))
    lines += _labelled("do not", f"write a marker by hand: {printable(first['do_not_abort_because'])}")
    lines += _labelled("do", "" if first["command"] is None else printable(first["command"]), wrap=False)
    for note in _notes(first):
        lines += _labelled("note", note)
    return lines


def _short(command: str) -> str:
    """A command of kafka-transactions.sh without its common prefix."""
    return printable(command.replace("kafka-transactions.sh --bootstrap-server $BOOTSTRAP ", ""))


def behind(row: Row) -> str:
    """The transaction that blocks the partition once this one has ended; empty unless this one blocks now."""
    if row["next_blocking_offset"] is None or row["blocking_producer_id"] != row["producer_id"]:
        return ""
    next_id = row["next_blocking_transactional_id"]
    named = f"producer {row['next_blocking_producer_id']}" + ("" if next_id is None else f" ({printable(next_id)})")
    return f"once it is ended, {named} blocks from offset {row['next_blocking_offset']}"


def waiting(row: Row) -> str:
    groups = row["groups"] or []
    more = f" and {len(groups) - SHOWN_GROUPS} more" if len(groups) > SHOWN_GROUPS else ""
    return f"groups {', '.join(map(printable, groups[:SHOWN_GROUPS]))}{more} on {where(row)}" if groups else ""


def _labelled(label: str, text: str, *, wrap: bool = True) -> list[Line]:
    if not text:
        return []
    line = f"  {label:<{_LABEL}}{text}"
    return [(line, 2 + _LABEL)] if wrap else [line]


def _ended(summary: Summary) -> list[Line]:
    """What became of the transactions that the previous audit warned of."""
    lines: list[Line] = []
    for row in summary.ended[:SHOWN_ENDED]:
        place = f"{where(row)}   offset {row['start_offset']}   producer {row['producer_id']}"
        lines.append((f"  {place}   was {row['verdict']}: {printable(row['says'])}", 2 + _LABEL))
    hidden = len(summary.ended) - SHOWN_ENDED
    if hidden > 0:
        lines.append(f"  and {hidden} {'or more' if len(summary.ended) == SHOWN else 'more'}: txn-audit diff")
    return ["", "ENDED SINCE THE AUDIT BEFORE", *lines] if lines else []


def _findings(summary: Summary) -> list[Line]:
    if not summary.findings:
        return []
    lines: list[Line] = [
        (f"  {row['count']:>4} {row['severity']:<8} {row['name']}: {row['message']}", 16) for row in summary.findings
    ]
    return ["", "FINDINGS", *lines]


def _incomplete(summary: Summary) -> list[Line]:
    if not summary.incomplete:
        return []
    lines: list[Line] = ["", "NOT WHOLE"]
    for row in summary.incomplete:
        copy = f"  {where(row)}   {printable(row['source'])}   {row['status']}: "
        lines.append((copy + printable(row["detail"]), 2 + _LABEL))
    return lines


def _further(summary: Summary) -> list[Line]:
    """Commands for more details. Tables of a catalog have no folder, and txn-audit cannot read them."""
    rows = next((rows for name in HEADLINES if (rows := summary.transactions.get(name))), None)
    if rows is None or "/" not in summary.output:
        return []
    first = rows[0]
    if refusal(first["topic"]) is not None or refusal(summary.output) is not None:
        return []
    places = [first["topic"], str(first["partition"]), str(first["start_offset"])]
    return [f"details: {with_places('txn-audit explain', places, option('--tables', summary.output))}"]
