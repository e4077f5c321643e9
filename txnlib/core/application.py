"""The application name inside a transactional id. Frameworks and operators build ids from it.

The first pattern that matches the whole id wins. Patterns of the settings file come before these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

#: Name of the group that matches the application.
APPLICATION: Final = "application"
#: What ids without any name count as: nothing tells their applications apart.
BARE_UUIDS: Final = "bare UUIDs"
_UUID: Final = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_BARE: Final = re.compile(rf"{_UUID}(?:[-_.]\d+)?")
#: Of a container, a commit or a random number: digits and letters both.
_HEX: Final = "(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{6,64}"
#: The letters and digits in which Kubernetes writes hashes of replica sets, with a digit among them, and of pods.
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
_POD: Final = f"(?=[a-z]*[0-9])[{_SAFE}]{{6,10}}-[{_SAFE}]{{5}}"
_NUMBER: Final = r"(?:[-_.]\d+)?"

#: Framework -> pattern.
PATTERNS: Final = {
    "Kafka Streams, exactly_once_v2: <application.id>-<process>-<thread>": rf"(?P<application>.+)-{_UUID}-\d+",
    "Kafka Streams, exactly_once: <application.id>-<subtopology>_<partition>": r"(?P<application>.+)-\d+_\d+",
    "Kafka Connect, tasks of a source in the default group: connect-cluster-<connector>-<task>": (
        r"connect-cluster-(?P<application>.+)-\d+"
    ),
    "Kafka Connect, its config topic: connect-cluster-<group.id>": r"connect-cluster-(?P<application>.+)",
    "a pod of a Deployment: <name>-<replica set>-<pod>": rf"(?P<application>.+)-{_POD}{_NUMBER}",
    "Flink KafkaSink: <prefix>-<subtask>-<checkpoint>": r"(?P<application>.+)-\d+-\d+",
    "one process: <name>-<uuid>": rf"(?P<application>.+)[-_.]{_UUID}",
    "one container or process: <name>-<hexadecimal digits>": rf"(?P<application>.+?)[-_.]{_HEX}{_NUMBER}",
    "numbered instances (Kafka Connect tasks, Spring, own producers): <name>-<number>": (
        r"(?P<application>.*[^\d\W_])[-_.\d]*\d"
    ),
}


_BUILT_IN: Final = frozenset(PATTERNS.values())


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
    """The application in an id; the id itself if no pattern matches. All ids that are only a UUID count as one."""
    for pattern in patterns:
        match = pattern.fullmatch(transactional_id)
        if match is not None and match[APPLICATION]:
            is_bare = pattern.pattern in _BUILT_IN and _BARE.fullmatch(transactional_id)
            return BARE_UUIDS if is_bare else match[APPLICATION]
    return BARE_UUIDS if _BARE.fullmatch(transactional_id) else transactional_id
