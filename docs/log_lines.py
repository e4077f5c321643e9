"""The page of brokers' log lines: by cause, by finding, and as Kafka writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markdown_table import table

from txnlib.core.broker_logs.kafka_lines import LOGS_OF_CAUSES, LOGS_OF_FINDINGS
from txnlib.core.broker_logs.log_line import BrokerLogs, Form, Level, LogLine, Writer

HEAD = """\
# Log lines

What brokers log about each cause and each finding. `txn-audit explain` prints the `grep` commands for the likeliest cause of a
transaction. `L1` and so on are rows of [Lines](#lines). `*`: search for `__transaction_state` as the topic. `around`: Kafka does
not log the fault itself, only what led to it or followed.
"""

LINES = """\
## Lines

Search for the fixed parts of a text: `…` is any text, and names in braces are those of the transaction. Brokers from 2.8 to 4.3 log
a line at INFO, unless its row says otherwise. Files are those of Kafka's own log4j configuration; containers usually print all to
stdout. DEBUG lines are missing unless somebody turned them on. What a leader refuses is two lines: "Error processing append
operation on partition", and the exception.
"""

#: What a row does not say.
USUAL = "2.8-4.3 INFO"


def log_lines() -> str:
    """The page."""
    findings = {f"`{finding.name}`": logs for finding, logs in LOGS_OF_FINDINGS.items()}
    causes = {_named(cause): logs for cause, logs in LOGS_OF_CAUSES.items()}
    parts = [
        HEAD,
        "## Causes\n",
        *_searched("cause", causes, "<br>"),
        "## Findings\n",
        *_searched("finding", findings, ", ", is_short=True),
        LINES,
    ]
    numbers = _numbers()
    for where, lines in _by_log().items():
        rows = [row for line in lines for row in _rows(numbers[line.shows], line)]
        parts += [
            f"### {where[0].upper()}{where[1:]}\n",
            *table(("line", "what it shows, and its text", "versions"), rows),
        ]
    return "\n".join(parts)


def _searched(what: str, logs_of: Mapping[str, BrokerLogs], between: str, *, is_short: bool = False) -> list[str]:
    """A row for each set of lines, with all that share it. `is_short`: without the reason why nothing is logged."""
    groups: dict[str, list[str]] = {}
    for name, logs in logs_of.items():
        shown = _lines_of(logs)
        if is_short and not logs.lines:
            _, _, elsewhere = logs.silent_because.partition(". ")
            shown = f"none. {elsewhere}".removesuffix(". ")
        groups.setdefault(shown, []).append(name)
    return table((what, "lines"), [(between.join(names), shown) for shown, names in groups.items()])


def _lines_of(logs: BrokerLogs) -> str:
    """The names of rows. `around`: the fault itself is not logged."""
    if not logs.lines:
        return f"none: {logs.silent_because}"
    numbers = _numbers()
    named = ", ".join(numbers[line.shows] + "*" * _is_of_coordinator(line) for line in logs.lines)
    return f"around: {named}" if logs.silent_because else named


def _by_log() -> dict[str, list[LogLine]]:
    """Whose log and which file -> its lines. What a line shows is the same about the coordinator's partition."""
    logs: Iterable[BrokerLogs] = (*LOGS_OF_FINDINGS.values(), *LOGS_OF_CAUSES.values())
    by_name: dict[str, LogLine] = {}
    for line in (line for each in logs for line in each.lines):
        if not _is_of_coordinator(line):
            by_name.setdefault(line.shows, line)
    found: dict[str, list[LogLine]] = {}
    for line in by_name.values():
        found.setdefault(f"{line.writer}: {line.file}", []).append(line)
    return found


def _numbers() -> dict[str, str]:
    """What a line shows -> the name of its row."""
    lines = [line for each in _by_log().values() for line in each]
    return {line.shows: f"L{number}" for number, line in enumerate(lines, 1)}


def _is_of_coordinator(line: LogLine) -> bool:
    """Whether a line about any partition is searched for the coordinator's partition."""
    about = line.writer is Writer.COORDINATOR_REPLICA or line.writer is Writer.CONTROLLER
    return about and any(
        "__transaction_state" in form.text or "{coordinator_partition}" in form.text for form in line.forms
    )


def _rows(number: str, line: LogLine) -> list[list[str]]:
    """A row for each text."""
    forms: dict[str, dict[str, list[Form]]] = {}
    for form in line.forms:
        forms.setdefault(form.text, {}).setdefault(_level(form), []).append(form)
    rows: list[list[str]] = []
    for text, levels in forms.items():
        versions = "; ".join(f"{_versions(each)} {level}" for level, each in levels.items())
        shown = f"`{text}`" if rows else f"{line.shows}<br>`{text}`"
        rows.append(["" if rows else number, shown, "" if versions == USUAL else versions])
    return rows


def _level(form: Form) -> str:
    """With the class that logs it, if somebody has to turn it on."""
    if form.level is not Level.DEBUG:
        return form.level
    return f"{form.level} in `{(form.logged_by or form.source).rpartition('.')[0]}`"


def _named(cause: str) -> str:
    """The text of a cause, with names in place of those of a transaction."""
    return cause.replace("{transactional_id}", "the id").replace("-{coordinator_partition}", "")


def _versions(forms: Sequence[Form]) -> str:
    ends = min(form.first for form in forms), max(form.last for form in forms)
    return "-".join(".".join(map(str, version)) for version in dict.fromkeys(ends))
