"""Commands that find a log line with grep, quoted for a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.broker_logs.log_line import BrokerLogs, LogFile, LogLine, forms_of
from txnlib.core.verdicts.shell_words import refusal, word

#: Where a command looks. Kafka renames a log each hour, so the name of the newest is a prefix of the others.
PATHS: Final[Mapping[LogFile, str]] = {
    LogFile.SERVER: "$LOGS/server.log*",
    LogFile.CONTROLLER: "$LOGS/controller.log*",
    LogFile.STATE_CHANGE: "$LOGS/state-change.log*",
    LogFile.APPLICATION: "$APPLICATION_LOG",
}
#: Characters with a meaning in an extended regular expression (POSIX, 9.4.3). An apostrophe has one in a shell's quotes.
_SPECIAL: Final = re.compile(r"[\\.\[\](){}*+?^$|]")
_PART: Final = re.compile(r"(\{\w+\}|…)")
_ANY: Final = ".*"


@dataclass(frozen=True, slots=True)
class GrepCommand:
    """A command, with the line that it finds."""

    line: LogLine
    command: str


def grep_commands(
    logs: BrokerLogs, names: Mapping[str, str | int | None], kafka_version: str | None = None
) -> tuple[GrepCommand, ...]:
    """One command for each line that brokers of a version log. Unknown names match any text."""
    commands = []
    for line in logs.lines:
        patterns = dict.fromkeys(pattern(form.text, names) for form in forms_of(line, kafka_version))
        if patterns:
            searched = " ".join(f"-e {word(each)}" for each in patterns)
            commands.append(GrepCommand(line, f"grep -E {searched} {PATHS[line.file]}"))
    return tuple(commands)


def pattern(text: str, names: Mapping[str, str | int | None]) -> str:
    """The extended regular expression for a text, with its placeholders filled in."""
    out = ""
    for part in _PART.split(text):
        value = names.get(part[1:-1]) if part.startswith("{") else part
        if part == "…" or value is None or refusal(str(value)) is not None:
            out = out if out.endswith(_ANY) else out + _ANY
            continue
        first, line_feed, _ = str(value).partition("\n")
        out += _literal(first)
        if line_feed:  # Kafka logs an id as it is, and grep reads one line: the rest of the text is on the next one
            return f"{out}$"
    return out


def _literal(text: str) -> str:
    """A pattern that matches a text. Any character matches an apostrophe, so that quotes stay readable."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", text).replace("'", ".")
