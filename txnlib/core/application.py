"""The application name inside a transactional id. Frameworks and operators build ids from it.

The first pattern that matches the whole id wins. Patterns of the settings file come before these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

#: Name of the group that matches the application.
APPLICATION: Final = "application"
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

#: Framework -> pattern.
PATTERNS: Final = {
    "Kafka Streams, exactly_once_v2: <application.id>-<process>-<thread>": rf"(?P<application>.+)-{_UUID}-\d+",
    "Kafka Streams, exactly_once: <application.id>-<subtopology>_<partition>": r"(?P<application>.+)-\d+_\d+",
    "Kafka Connect, its config topic: connect-cluster-<group.id>": r"connect-cluster-(?P<application>.+)",
    "Flink KafkaSink: <prefix>-<subtask>-<checkpoint>": r"(?P<application>.+)-\d+-\d+",
    "one process: <name>-<uuid>": rf"(?P<application>.+)-{_UUID}",
    "numbered instances (Kafka Connect tasks, Spring, own producers): <name>-<number>": (
        r"(?P<application>.*[^\d\W_])[-_.\d]*\d"
    ),
}


def compiled(own_patterns: Iterable[str] = ()) -> tuple[re.Pattern[str], ...]:
    """The compiled patterns, in order. Raises ValueError for a pattern that is invalid or has no group
    `application`."""
    rules = []
    for pattern in (*own_patterns, *PATTERNS.values()):
        try:
            rule = re.compile(pattern, re.DOTALL)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        if APPLICATION not in rule.groupindex:
            raise ValueError(f"{pattern!r} has no group (?P<application>…)")
        rules.append(rule)
    return tuple(rules)


def application_of(transactional_id: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """The application in an id; the id itself if no pattern matches."""
    for pattern in patterns:
        match = pattern.fullmatch(transactional_id)
        if match is not None and match[APPLICATION]:
            return match[APPLICATION]
    return transactional_id
