"""The report as text: one screen with the answer, then why, then what to do."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from typing import Final

from txnlib.ask.entries import IN_ONE_CARD, brief, cards, entry
from txnlib.ask.extents import Reach
from txnlib.ask.grid import INDENT, LABEL, STYLES, WIDTH, command_lines, folded, text_width
from txnlib.ask.own_command import PROGRAM, own_command, program
from txnlib.ask.queries import Row
from txnlib.ask.report import CALM, CALM_IN_PART, Report
from txnlib.ask.report_sections import SECTIONS, Section
from txnlib.ask.stuck_ids import STUCK_ID
from txnlib.ask.words import LOOKS_LATE, PREPARED
from txnlib.core.display import BOOTSTRAP, counted, not_before, printable, utc_time
from txnlib.core.kafka_commands import option, refusal

#: A line; or a line to wrap, with the indentation of its continuation.
Line = str | tuple[str, int]
#: How a line points to the command that shows more, which stands whole at the end of the report.
_POINTER: Final = re.compile(r"[( ](open --verdict \w+|findings --name \w+|diff|coverage|collect-plan)\)")
#: Commands with `--topic`; and actions of the plan that its script carries out.
_OF_TOPIC: Final = ("open", "abort-plan")
_BY_SCRIPT: Final = ("ABORT", "ABORT_AS_DECIDED")
#: Reasons, and applications, to name where a section has more transactions than fit.
SHOWN_IN_ALL: Final = 5
#: Number of transactions (or owners) of a section to describe in full: by default, and for sections that need action if
#: there are few sections. Then the number to give one line each. So a report has about 40 lines.
IN_FULL, IN_FULL_URGENT, IN_BRIEF = 1, 2, 3
_URGENT: Final = ("HANGING", "STUCK")
_FEW: Final = 2


def render(report: Report, width: int = WIDTH, called: str = PROGRAM) -> str:
    """The report as text, wrapped to a width if words allow it, and a command only where a shell goes on.

    `called`: what calls txn-audit.
    """
    of = "" if report.topic is None else f"  topic {printable(report.topic)}"
    version = [] if report.kafka_version is None else [f"Kafka {printable(report.kafka_version)}"]
    what = ", ".join([*filter(None, [report.captured]), counted(report.brokers, "broker"), *version])
    head = f"txnlib audit  cluster {printable(report.cluster)}{of}  as of {utc_time(report.as_of_ms)}  ({what})"
    lines: list[Line] = [(head, 14), "", *_answer(report)]
    lines += [(f"  {report.read}", 7), *((f"  {said}", 4) for said in report.unseen)]
    for section in SECTIONS:
        told = _lines(section, report)
        lines += ["", section.title, *told] if section.title and told else []
    lines += ["", *(_further(lines, report, called) or [f"tables in {printable(report.output)} (Delta)"])]
    return "\n".join(each for line in lines for each in _wrapped(line, width))


def _wrapped(line: Line, width: int) -> list[str]:
    if isinstance(line, str):
        return command_lines(line, width, INDENT)
    text, indent = line
    return folded(text, width, indent)


def _answer(report: Report) -> list[Line]:
    digits = max((len(str(each.number)) for each in report.counted), default=0)
    name = max(8, *(len(each.label) for each in report.counted), 0)
    indent = digits + name + 5
    lines: list[Line] = []
    for fact in report.facts:
        if fact.number is not None:
            lines.append((f"  {fact.number:>{digits}} {fact.label:<{name}}  {fact.says}", indent))
        elif fact.label:
            lines.append((f"  {fact.label:<{indent - 2}}{fact.says}", indent))
        else:
            lines.append((f"  {fact.says}", 4))
    return lines


def _lines(section: Section, report: Report) -> list[Line]:
    """The lines of a section below its title; none if it is not there."""
    if section.verdict:
        return _entries(section.verdict, report) if section.verdict in report.verdicts else []
    if section.title == STUCK_ID:
        return _stuck_ids(report)
    return [(f"  {said}", section.indent) for said in section.says(report)]


def _entries(verdict: str, report: Report) -> list[Line]:
    """The open transactions of a verdict: all in sums, the first ones in full, others in a line each."""
    groups = cards(verdict, report.transactions[verdict])
    is_roomy = sum(name not in (LOOKS_LATE, "OPEN") for name in report.verdicts) <= _FEW
    in_full = IN_FULL_URGENT if verdict in _URGENT and is_roomy else IN_FULL
    if verdict == "OPEN" or (verdict == LOOKS_LATE and not is_roomy):
        in_full = 0
    shown = [row for group in groups[: in_full + IN_BRIEF] for row in group]
    hidden = report.number_of_rows(verdict) - len(shown)
    reach = report.extents.get(verdict)
    lines: list[Line] = []
    if hidden and reach is not None and verdict != "OPEN":
        lines += _in_all(reach)
    for number, group in enumerate(groups[:in_full]):
        lines += [""] if number or lines else []
        lines += _entry_lines(verdict, group, report)
    in_brief = groups[in_full : in_full + IN_BRIEF]
    lines += [""] if in_brief and in_full else []
    lines += [(f"  {brief(group, report)}", INDENT) for group in in_brief]
    if hidden > 0:
        name = "OPEN" if verdict == PREPARED else verdict
        lines.append(f"  and {_more(verdict, hidden, shown, reach)} (open --verdict {name})")
    return lines


def _stuck_ids(report: Report) -> list[Line]:
    """The ids that are stuck without holding a partition: the first in full, others in a line each."""
    lines: list[Line] = []
    for number, each in enumerate(report.stuck_ids[: 1 + IN_BRIEF]):
        who = "" if each.producer_id is None else f"producer {each.producer_id}"
        coordinator = f"coordinator __transaction_state-{each.coordinator_partition}"
        state = each.for_how_long(report.as_of_ms)
        said = [printable(each.transactional_id), *filter(None, [who]), state, coordinator]
        lines.append((f"  {'   '.join(said)}", INDENT))
        if number == 0:
            lines += [line for fact in each.facts() for line in labelled(fact.label, fact.says)]
    more = len(report.stuck_ids) - 1 - IN_BRIEF
    lines += [f"  and {more} more (findings --name COMPLETION_OVERDUE)"] if more > 0 else []
    return lines


def _entry_lines(verdict: str, rows: Sequence[Row], report: Report) -> list[Line]:
    """An entry on about a dozen lines: with its first cause, and without the checks of what is not an abort by hand.

    Commands stay in one piece. The page, and `txn-audit abort-plan`, have the rest.
    """
    shown = entry(verdict, rows, report)
    lines: list[Line] = [(f"  {'   '.join([shown.title, *shown.who])}{'   new' if shown.is_new else ''}", INDENT)]
    causes = 0
    for fact in shown.facts:
        causes += fact.label == "cause"
        is_seen_before = fact.label != "seen" or rows[0]["runs_seen"] > 1
        if is_seen_before and not (fact.label == "cause" and (causes > 1 or verdict in IN_ONE_CARD)):
            lines += labelled(fact.label, fact.says)
    for step in shown.steps:
        if not step.must_print:
            old = "   (brokers before 3.0)" if step.label == "or" else ""
            # What it waits for is said where the label is, so that it does not read as the end of what is above.
            first, then = (step.label, "") if step.wait else ("", step.label)
            lines += [*labelled(first, step.wait), *labelled(then, f"{printable(step.command)}{old}")]
        elif shown.is_by_hand:
            lines += [*labelled(step.label, printable(step.command)), *labelled("", f"must show: {step.must_print}")]
    return lines


def labelled(label: str, text: str) -> list[Line]:
    if not text:
        return []
    line = f"  {label:<{LABEL}}{text}"
    return [line] if BOOTSTRAP in line else [(line, INDENT)]


def _more(verdict: str, rows: int, shown: Sequence[Row], reach: Reach | None) -> str:
    """How many transactions a section does not list. It counts rows if all of them belong to listed transactions, or if
    transactions were not counted."""
    later = "" if verdict == "OPEN" else ", later in the plan"
    if reach is None:
        return f"{rows} more{later}"
    listed = len({(row["producer_id"], row["transactional_id"]) for row in shown})
    transactions = (reach.holding if verdict == "OPEN" else reach.transactions) - listed
    if transactions <= 0:
        return f"{counted(rows, 'more row')} of these"
    return f"{transactions} more{later}" if rows == transactions else f"{transactions} more, {rows} rows"


def _in_all(extent: Reach) -> list[Line]:
    """The transactions of a verdict in sums: how many may be aborted when, why they have the verdict, and whose they
    are."""
    rows = "" if extent.rows == extent.transactions else f" ({extent.rows} rows)"
    said = [f"{counted(extent.transactions, 'transaction')} on {counted(extent.partitions, 'partition')}{rows}"]
    if extent.safe or extent.safe_later:
        on = "" if extent.safe_rows == extent.safe else f" ({counted(extent.safe_rows, 'row')})"
        said.append(f"{extent.safe} safe to abort now{on}")
    if extent.safe_later and extent.safe_from_ms is not None:
        said.append(f"{extent.safe_later} once they are old enough, the last from {not_before(extent.safe_from_ms)} on")
    several = "; some have several" if sum(number for _, number in extent.reasons) > extent.transactions else ""
    return [
        *labelled("in all", "; ".join(said)),
        *labelled("reasons", _most(extent.reasons) + several),
        *labelled("of", _most(extent.applications)),
    ]


def _most(groups: Sequence[tuple[str | None, int]]) -> str:
    """The largest groups with their sizes, and the sum of the other groups; empty if no transaction has a known
    name."""
    if all(name is None for name, _ in groups):
        return ""
    shown = SHOWN_IN_ALL if len(groups) > SHOWN_IN_ALL + 1 else len(groups)
    named = [f"{number} {'not known' if name is None else printable(name)}" for name, number in groups[:shown]]
    others = groups[shown:]
    if others:
        named.append(f"{sum(number for _, number in others)} in {len(others)} others")
    return ", ".join(named)


def _further(lines: Sequence[Line], report: Report, called: str) -> list[Line]:
    """Commands to be pasted: one that explains the transaction to act on first, those that lines above point to, and
    last the script that carries out the aborts of the plan.

    Empty for tables of a catalog, which `txn-audit` cannot read.
    """
    if "/" not in report.output or refusal(report.output) is not None:
        return []
    rows = [row for name in report.verdicts for row in report.transactions[name]]
    first = min(rows, key=lambda row: (row["holds"] is False, row["number"] is None, row["number"] or 0), default=None)
    asked: list[tuple[str, list[str]]] = []
    if first is not None and refusal(first["topic"]) is None:
        asked.append(("explain", [first["topic"], str(first["partition"]), str(first["start_offset"])]))
    asked += [("explain", [own]) for each in report.stuck_ids[:1] if refusal(own := each.transactional_id) is None]
    said = " ".join(line if isinstance(line, str) else line[0] for line in lines)
    asked += [(f"{command}{_only(command, report)}", []) for command in dict.fromkeys(_POINTER.findall(said))]
    commands = [own_command(report.output, command, places, called=called) for command, places in asked]
    told: list[Line] = []
    if commands:
        is_one = len(commands) == 1
        told = [f"for details: {commands[0]}"] if is_one else ["for details:", *(f"  {each}" for each in commands)]
    aborts = sum(report.actions.get(action, 0) for action in _BY_SCRIPT)
    if aborts:
        script = own_command(report.output, f"abort-plan{_only('abort-plan', report)} --format sh", called=called)
        told.append(f"to do {'the abort' if aborts == 1 else f'all {aborts} aborts'}, with checks: {script}")
    return told


def _only(command: str, report: Report) -> str:
    """The option by which a command keeps to the topic of the report."""
    if report.topic is None or command.split()[0] not in _OF_TOPIC or refusal(report.topic) is not None:
        return ""
    return f" {option('--topic', report.topic)}"


# ---- On a terminal: fitted to its width, with coloured verdicts. Piped, it is plain text


#: Text to highlight -> its style: a heading, or a verdict after its count.
_HEADING: Final = re.compile(r"^(?: +\d+ )?([A-Z][A-Z _-]+[A-Z])\b", re.MULTILINE)
_ENTRY: Final = re.compile(r"^  (\S.*?)   producer \d+ epoch", re.MULTILINE)
_LABELS: Final = re.compile(r"^  [a-z][a-z ]{1,7}(?=  )", re.MULTILINE)
_COMMAND: Final = re.compile(r"^  (?:do|then)  +(.*\\\n.*|.*)$", re.MULTILINE)
_CRITICAL: Final = re.compile(r"^  (CRITICAL: .*)$", re.MULTILINE)
_UNREAD: Final = re.compile(
    rf"^  (0 of \d+ coordinator partitions? read: .*|withdrawn since .*|not read: .*|{CALM_IN_PART}; .*)$", re.MULTILINE
)
_CALM: Final = re.compile(rf"^  ({re.escape(CALM)})", re.MULTILINE)
_OTHER_STYLES: Final = {PREPARED: "cyan", LOOKS_LATE: "dim"}


def terminal_report(report: Report, *, is_terminal: bool) -> str:
    """The report as it is printed."""
    width = text_width(shutil.get_terminal_size((WIDTH, 40)).columns if is_terminal else None)
    text = render(report, width, program())
    return _styled(text, report.level) if is_terminal else f"{text}\n"


def _styled(text: str, level: str) -> str:
    """The text in colours. What was not read, or cannot wait, leaves nothing green."""
    # Imported here, because piped output does not need it.
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    styles = {**STYLES, **_OTHER_STYLES, "OPEN": "bold" if _UNREAD.search(text) else "green"}
    for match in _HEADING.finditer(text):
        styled.stylize(styles.get(match[1], "bold"), *match.span(1))
    others = (
        (_ENTRY, "bold", 1),
        (_LABELS, "dim", 0),
        (_COMMAND, "bold", 1),
        (_CRITICAL, "bold red", 1),
        (_UNREAD, "yellow", 1),
    )
    for pattern, style, group in (*others, *([(_CALM, "green", 1)] if level == "calm" else [])):
        for match in pattern.finditer(text):
            styled.stylize(style, *match.span(group))
    console = Console(soft_wrap=True)  # supports NO_COLOR and TERM; commands are not broken, so that they can be copied
    with console.capture() as captured:
        console.print(styled)
    return captured.get()
