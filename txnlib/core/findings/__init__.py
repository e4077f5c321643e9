"""Rules of single findings, and their thresholds."""

from __future__ import annotations

from txnlib.core.findings.marker_check import Decision, Marker, marker_finding
from txnlib.core.findings.ended_by import EndedBy, Ending, ended_by
from txnlib.core.findings.application import application_of, compiled
from txnlib.core.findings.abandoned_ids import LEFT_BEHIND_AFTER_MS, MANY_TRANSACTIONAL_IDS, MANY_PRODUCER_IDS, FEW
from txnlib.core.findings.forecasts import FORECASTS, Forecast, ForecastSettings

__all__ = [
    "Decision",
    "Marker",
    "marker_finding",
    "EndedBy",
    "Ending",
    "ended_by",
    "application_of",
    "compiled",
    "LEFT_BEHIND_AFTER_MS",
    "MANY_TRANSACTIONAL_IDS",
    "MANY_PRODUCER_IDS",
    "FEW",
    "FORECASTS",
    "Forecast",
    "ForecastSettings",
]
