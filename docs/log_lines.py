"""The log lines of causes and findings, for the runbook."""

from __future__ import annotations

import textwrap

from txnlib.core.broker_logs import (
    LOGS_OF_CAUSES,
    LOGS_OF_FINDINGS,
    BrokerLogs,
    Form,
    LogLine,
    Writer,
)
from txnlib.core.broker_logs.log_line import Version
from txnlib.core.finding_catalogue import Finding

WIDTH = 140

CAUSES = """\
## Causes

What the brokers' logs show of each cause in `causes`. The numbers are those of [Log lines](#log-lines).
`txn-audit explain` prints the commands for the likeliest cause of a transaction, with its names. Causes with the same lines share
an entry.
"""

LINES = """\
## Log lines

Search for the fixed parts of a text: `…` stands for any text, and names in braces for those of the transaction. The texts were read
in Kafka's sources, in one release of each minor version. The files are those of Kafka's own log4j configuration; a broker in a
container usually prints all of them to stdout. DEBUG lines are missing unless someone turned them on. What a leader refuses is two
lines: "Error processing append operation on partition", and the exception.
"""


def of_findings(names: list[str]) -> list[str]:
    """What the logs show of findings with the same advice: an item for each set of lines."""
    groups: dict[BrokerLogs, list[str]] = {}
    for name in names:
        groups.setdefault(LOGS_OF_FINDINGS[Finding[name]], []).append(f"`{name}`")
    return [
        _item(f"{', '.join(each)}: {_shown(logs)}" if len(groups) > 1 else _shown(logs), "  * ") for logs, each in groups.items()
    ]


def causes() -> str:
    """The section about causes."""
    groups: dict[BrokerLogs, list[str]] = {}
    for cause, logs in LOGS_OF_CAUSES.items():
        groups.setdefault(logs, []).append(_named(cause))
    items = [
        line for logs, each in groups.items() for line in (*(_item(cause, "* ") for cause in each), _item(_shown(logs), "  * "))
    ]
    return "\n".join([CAUSES, *items, ""])


def log_lines() -> str:
    """The section with every line: a row for each form."""
    rows = ["| | what it shows | log | text | versions | class and method |", "|---|---|---|---|---|---|"]
    for number, line in enumerate(_lines(), 1):
        head = f"L{number} | {line.shows} | {line.writer}: {line.file}"
        for form in line.forms:
            rows.append(f"| {head} | `{form.text}` | {_versions(form.first, form.last)} {form.level} | {_source(form)} |")
            head = " | | "
    return "\n".join([LINES, *rows, ""])


def _lines() -> list[LogLine]:
    """Every line once. What a line shows is the same about the coordinator's partition."""
    tables = (*LOGS_OF_FINDINGS.values(), *LOGS_OF_CAUSES.values())
    by_name: dict[str, LogLine] = {}
    for line in (line for logs in tables for line in logs.lines):
        if not _is_of_coordinator(line):
            by_name.setdefault(line.shows, line)
    return list(by_name.values())


def _is_of_coordinator(line: LogLine) -> bool:
    """Whether a line about any partition is searched for the coordinator's partition."""
    about = line.writer is Writer.COORDINATOR_REPLICA or line.writer is Writer.CONTROLLER
    return about and any("__transaction_state" in form.text or "{coordinator_partition}" in form.text for form in line.forms)


def _shown(logs: BrokerLogs) -> str:
    numbers = {line.shows: number for number, line in enumerate(_lines(), 1)}
    about: dict[bool, list[str]] = {}
    for line in logs.lines:
        phrase = f"{line.shows.partition(';')[0]} (L{numbers[line.shows]})"
        about.setdefault(_is_of_coordinator(line), []).append(phrase)
    heads = {False: "Logs", True: "Logs, with `__transaction_state` as the topic"}
    parts = [f"{heads[is_coordinator]}: {'; '.join(phrases)}." for is_coordinator, phrases in about.items()]
    if logs.silent_because:
        parts.append(f"Not logged: {logs.silent_because}.")
    return " ".join(parts)


def _named(cause: str) -> str:
    """The text of a cause, with names in place of those of a transaction."""
    return cause.replace("{transactional_id}", "the id").replace("-{coordinator_partition}", "")


def _source(form: Form) -> str:
    return f"`{form.source}`" + (f", logged by `{form.logged_by}`" if form.logged_by else "")


def _versions(first: Version, last: Version) -> str:
    names = [".".join(map(str, version)) for version in dict.fromkeys((first, last))]
    return " to ".join(names)


def _item(text: str, bullet: str) -> str:
    indent = " " * len(bullet)
    wrapped = textwrap.wrap(
        text, WIDTH, initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return "\n".join(wrapped)
