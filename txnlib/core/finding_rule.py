"""The fields of a row in the catalogue of findings."""

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
    FORECASTS = "What will go wrong next"


@dataclass(frozen=True, slots=True)
class FindingRule:
    severity: Severity
    topic: Topic
    meaning: str
    #: What to do, for the runbook. Findings of a topic with the same advice share an entry.
    advice: str
    #: Names of the lines that brokers log about it (`broker_logs.kafka_lines`), with spaces between them.
    logs: str
    #: Why the fault itself is not logged; None if it is.
    not_logged: str | None
