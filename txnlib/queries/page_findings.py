"""Findings with their places and the advice of the runbook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding_catalogue import FINDINGS, Finding, Severity, Topic
from txnlib.queries.rows import Row, StoredRun

#: Most places of one finding.
SHOWN_PLACES: Final = 1_000

_PLACE: Final = ("topic", "partition", "offset", "producer_id", "transactional_id", "evidence")
_ORDER: Final = '"topic", "partition", "offset", "producer_id"'


@dataclass(frozen=True, slots=True)
class FindingPlaces:
    """One finding of a run: how often, what it means, what to do, and where."""

    name: str
    severity: str
    count: int
    meaning: str
    #: The sentences of the runbook. Code is in backticks.
    advice: str
    #: Rows of `findings`, at most `SHOWN_PLACES`; none if the severity is INFO, unless it is a forecast.
    places: Sequence[Row] = ()


def finding_places(run: StoredRun) -> list[FindingPlaces]:
    """All findings of a run, the most severe first. One query for each that has places."""
    counted = run.grouped("findings", ("name", "severity"), "count(*)")
    worst_first = sorted(counted.items(), key=lambda item: (-Severity[item[0][1]], item[0][0]))
    return [_finding(run, name, severity, count) for (name, severity), count in worst_first]


def _finding(run: StoredRun, name: str, severity: str, count: int) -> FindingPlaces:
    rule = FINDINGS[Finding[name]]
    # A forecast is its date and its arithmetic, whatever its severity.
    is_context = severity == Severity.INFO.name and rule.topic is not Topic.FORECASTS
    places = [] if is_context else run.rows("findings", _PLACE, [("name", "=", name)], order=_ORDER, limit=SHOWN_PLACES)
    return FindingPlaces(name, severity, count, rule.meaning, rule.advice, places)
