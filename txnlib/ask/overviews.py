"""Tables of the audit in fewer columns: open and late transactions, findings, blocked groups and coverage."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.grid import TABLE, fold
from txnlib.ask.pending_commits import unstable_groups
from txnlib.ask.queries import Filter, Row, StoredRun
from txnlib.ask.report_rows import MOST_BLOCKING
from txnlib.ask.subject import GROUPS_TOPIC, equal
from txnlib.ask.words import counted_as, named
from txnlib.core.application import application_of, compiled
from txnlib.core.display import at_offset, counted
from txnlib.core.finding import Severity
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.schema import shown
from txnlib.errors import UsageError, meant

#: Status, in the list of coverage, of a file of no partition that was not read.
NOT_READ: Final = "NOT_READ"


def _listed(view: str, rows: list[Row], kept: Sequence[str] = ()) -> CommandOutput:
    """The rows of a view of the catalogue (`core.schema.shown`)."""
    return CommandOutput(shown(view), rows, shown=shown(view, is_wide=False), kept=kept)


def answer_open(run: StoredRun, options: Namespace) -> CommandOutput:
    """The open transactions with their verdicts, those that hold a partition first, then those that block the most
    offsets.

    A limit leaves out those that wait before any that holds a partition.
    """
    where = [*counted_as(options.verdict), *equal(topic=options.topic)]
    rows = run.rows("open_transactions", shown("open"), where, order=MOST_BLOCKING, limit=options.limit)
    return _listed("open", [named(row) for row in rows], kept=shown("open", is_wide=False))


#: Columns of findings for people, at any width.
_FINDING: Final = ("severity", "name", "where", "evidence")


def answer_findings(run: StoredRun, options: Namespace) -> CommandOutput:
    """What is odd in the logs, the most severe first; without a severity and a name, from WARNING on."""
    severity = options.severity or (None if options.name else Severity.WARNING.name)
    is_table = options.format == TABLE
    where = equal(name=options.name, topic=options.topic)
    if severity is not None:
        where.append(("severity", "IN", [each.name for each in Severity if each.value >= Severity[severity].value]))
    ranks = " ".join(f"WHEN '{each.name}' THEN {each.value}" for each in Severity)
    order = f'CASE "severity" {ranks} END DESC, "name", "topic", "partition", "offset"'
    rows = run.rows("findings", shown("findings"), where, order=order, limit=None if is_table else options.limit)
    if not rows and options.name is not None and options.name not in FINDINGS:
        raise UsageError(f"there is no finding {options.name}{meant(options.name, FINDINGS)}")
    people = (
        findings_of_applications(rows, run.settings.get("application_patterns", ()))[: options.limit]
        if is_table
        else None
    )
    left_out = None
    if not options.severity and not options.name:
        left_out = run.number("findings", "count(*)", equal(topic=options.topic, severity=Severity.INFO.name))
    tail = f"\nleft out: {left_out} of severity INFO (--severity INFO shows all)\n" if left_out else ""
    return CommandOutput(shown("findings"), rows, shown=_FINDING, kept=_FINDING, people=people, tail=tail)


def findings_of_applications(rows: Sequence[Row], patterns: Iterable[str]) -> list[Row]:
    """The findings with `where` they are, in words: one row for those of one name and severity about ids of one
    application."""
    rules = compiled(patterns)
    alike: dict[tuple[object, ...], list[Row]] = {}
    for at, row in enumerate(rows):
        name = row["transactional_id"]
        of = at if name is None else application_of(name, rules)
        alike.setdefault((row["severity"], row["name"], of), []).append(row)
    return [{**group[0], "where": _where(group, of)} for (*_, of), group in alike.items()]


def _where(rows: Sequence[Row], application: object) -> str:
    first = rows[0]
    place = "" if first["topic"] is None else f"{first['topic']}-{first['partition']}"
    place += "" if first["offset"] is None else f" {at_offset(first['offset'])}"
    who = [first["transactional_id"] or ""]
    if len(rows) > 1:
        ids = len({row["transactional_id"] for row in rows})
        who = [f"{application}: {len(rows)} times, {counted(ids, 'id')}, first"]
    return " ".join(filter(None, (*who, place))) or "-"


#: What is known of a group whose commits are in an open transaction.
_UNSTABLE: Final = ("group_id", "topic", "partition", "blocking_transactional_id", "blocking_producer_id")


def answer_groups(run: StoredRun, options: Namespace) -> CommandOutput:
    """The consumer groups that wait for a transaction to end, those that lag most first."""
    order = '"lag_offsets" DESC, "group_id", "topic", "partition"'
    rows = run.rows("blocked_groups", shown("groups"), equal(topic=options.topic), order=order)
    unstable = unstable_groups(run, options.topic)
    rows += [dict.fromkeys(shown("groups")) | {name: row[name] for name in _UNSTABLE} for row in unstable]
    listed = _listed("groups", rows, kept=shown("groups", is_wide=False))
    if unstable:
        number = counted(len({row["group_id"] for row in unstable}), "group")
        told = f"without a lag: {number} cannot fetch offsets until the transaction with their commits ends"
        listed = replace(listed, tail=lambda width: fold(f"\n{told} (UNSTABLE_OFFSET_COMMIT)", width))
    is_copied: Filter = ("status", "<>", "MISSING")
    copied = run.grouped("coverage", ("partition",), "count(*)", [*equal(topic=GROUPS_TOPIC), is_copied])
    known = run.grouped("coverage", ("partition",), "count(*)", equal(topic=GROUPS_TOPIC))
    if not copied:
        unknown = f"not known: no copy of {GROUPS_TOPIC} was captured"
        return replace(listed, empty=unknown, notes=[unknown])
    unread = len(known) - len(copied)
    some = f"not known of {unread} of {counted(len(known), 'partition')} of {GROUPS_TOPIC}: no copy was captured"
    return replace(listed, notes=[some]) if unread else listed


def answer_find_late(run: StoredRun, options: Namespace) -> CommandOutput:
    """Late transactions: their coordinator still expects them, but they should have ended by now."""
    order = '"transactional_id", "topic", "partition"'
    return _listed("find-late", run.rows("late_transactions", shown("find-late"), counted_as("LATE"), order=order))


def answer_coverage(run: StoredRun, options: Namespace) -> CommandOutput:
    """What was captured of each partition, and which copy is judged; then what of no partition was not read."""
    rows = run.rows("coverage", shown("coverage"), order='"topic", "partition", "broker", "source"')
    unread = run.rows(
        "unread_files", ("path", "reason", "bytes"), [("topic", "IS", None)], order='"path", "code"', is_optional=True
    )
    none = dict.fromkeys(shown("coverage"))
    rows += [
        none | {"status": NOT_READ, "detail": f"{row['path']}: {row['reason']}", "unreadable_bytes": row["bytes"]}
        for row in unread
    ]
    return _listed("coverage", rows, ("topic", "partition", "broker", "status", "is_judged", "detail"))
