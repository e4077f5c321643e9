"""Rules of findings: from typed rows to rows of `findings`."""

from __future__ import annotations

from txnlib.core.findings.found import FindingRow, found
from txnlib.core.findings.odd_markers import Decision, Marker, marker_finding
from txnlib.core.findings.ended_by import EndedBy, Ending, ended_by
from txnlib.core.findings.application import application_of, compiled
from txnlib.core.findings.forecasts import Forecast, ForecastSettings, forecasts

__all__ = [
    "FindingRow",
    "found",
    "Decision",
    "Marker",
    "marker_finding",
    "EndedBy",
    "Ending",
    "ended_by",
    "application_of",
    "compiled",
    "Forecast",
    "ForecastSettings",
    "forecasts",
]
