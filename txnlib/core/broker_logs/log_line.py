"""Types of log lines: text by version, and whose log has it.

A text is what Kafka's source formats, without the time, the level and the logger's name. `…` stands for any text, and
names in braces for what a command fills in. A text that Kafka throws begins with the name of its exception.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.kafka.constants import is_from
from txnlib.core.kafka_commands import refusal, word

#: Major and minor number of a version of Kafka.
Version = tuple[int, int]

#: The releases whose sources were read: one of each minor version. No other version is claimed.
READ: Final = (
    *("2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.1", "3.8.0", "3.9.1"),
    *("4.0.1", "4.1.1", "4.2.0", "4.3.0"),
)
OLDEST: Final = (2, 8)
NEWEST: Final = (4, 3)


class Writer(StrEnum):
    """Whose log has the line."""

    LEADER = "leader of the partition"
    FOLLOWER = "followers of the partition"
    REPLICA = "replicas of the partition"
    COORDINATOR = "coordinator of the id"
    COORDINATOR_REPLICA = "replicas of the coordinator's partition"
    CONTROLLER = "active controller"
    PRODUCER = "producer's application"


class LogFile(StrEnum):
    """The file, by the log4j configuration that Kafka ships. Containers usually print them to stdout."""

    SERVER = "server.log"
    CONTROLLER = "controller.log"
    STATE_CHANGE = "state-change.log"
    APPLICATION = "the application's log"


class Level(StrEnum):
    #: Not in the logs of a broker with Kafka's own configuration.
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Form:
    """The text of a line in some versions. `source`: class and method with the text; if it throws, `logged_by` logs
    it."""

    text: str
    source: str
    level: Level
    first: Version = OLDEST
    last: Version = NEWEST
    logged_by: str | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that Kafka logs. `shows`: what it means to an operator."""

    shows: str
    writer: Writer
    file: LogFile
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class BrokerLogs:
    """What the logs show of a cause or a finding. `silent_because`: why Kafka logs nothing about the fault itself."""

    lines: tuple[LogLine, ...] = ()
    silent_because: str | None = None


def forms_of(line: LogLine, kafka_version: str | None = None) -> tuple[Form, ...]:
    """The forms that brokers of a version log; all if its version is unknown or was not read."""
    if is_from(OLDEST, kafka_version) is not True or is_from(_next(NEWEST), kafka_version) is True:
        return line.forms
    return tuple(
        form
        for form in line.forms
        if is_from(form.first, kafka_version) and not is_from(_next(form.last), kafka_version)
    )


def _next(version: Version) -> Version:
    return version[0], version[1] + 1


# ---- Commands that find a log line with grep, quoted for a shell


#: Where a command looks. Kafka renames a log each hour, so the name of the newest is a prefix of the others.
PATHS: Final[Mapping[LogFile, str]] = {
    LogFile.SERVER: "$LOGS/server.log*",
    LogFile.CONTROLLER: "$LOGS/controller.log*",
    LogFile.STATE_CHANGE: "$LOGS/state-change.log*",
    LogFile.APPLICATION: "$APPLICATION_LOG",
}
#: Characters with a meaning in an extended regular expression (POSIX, 9.4.3). An apostrophe has one in a shell's
#: quotes.
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
        # Any character matches an apostrophe, so that quotes stay readable.
        out += _SPECIAL.sub(lambda match: f"\\{match[0]}", first).replace("'", ".")
        if line_feed:  # Kafka logs an id as it is, and grep reads one line: the rest of the text is on the next one
            return f"{out}$"
    return out
