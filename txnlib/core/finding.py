"""What a finding is: its severity, topic and meaning, and what to do. Each stands with its rule.

A finding has the name of the error that a broker would have returned, if there is one (Kafka: `Errors`). Reading a log
is a replay: batches that a leader would have refused are accepted, as in replication and recovery, and reported.

docs/rules/reference.md and the findings in docs/runbook.md are rendered from `core.findings.catalogue`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Severity(IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3


class Topic(StrEnum):
    """What a finding is about: its section in the runbook."""

    OUTCOME = "The outcome of a transaction"
    BATCHES = "Batches of a producer"
    RECORDS = "Records of a coordinator"
    LEFT_BEHIND = "What is left behind"
    FILES = "Files"


class Alarm(StrEnum):
    """The findings that a verdict asks for by name. Any other of severity ERROR or CRITICAL only forbids an abort."""

    COORDINATOR_EPOCH_WENT_BACK = "COORDINATOR_EPOCH_WENT_BACK"
    COPIES_DISAGREE = "COPIES_DISAGREE"
    CORRUPT_MESSAGE = "CORRUPT_MESSAGE"
    LIVE_OWNER_UNKNOWN = "LIVE_OWNER_UNKNOWN"
    LIVE_STABLE_OFFSET_DISAGREES = "LIVE_STABLE_OFFSET_DISAGREES"
    MARKER_MISSING = "MARKER_MISSING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An oddity, as a constant of its name in the module of its rule."""

    name: str
    severity: Severity
    topic: Topic
    meaning: str
    #: What to do, for the runbook. Findings of a topic with the same advice share an entry.
    advice: str
