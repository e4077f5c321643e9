"""Prometheus gauges of a run, for node_exporter's textfile collector; also of a run that failed.

There are only gauges, without quotes in their help texts, so the text is valid both as OpenMetrics and in the older
text format, which the collector reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from txnlib.ask.run_result import SHOWN_BROKERS, SHOWN_LAGS, Outcome, Results
from txnlib.ask.summary_json import Findings, found, seconds
from txnlib.core.display import printable

#: One value, or one for each combination of values of the labels other than `cluster`. None is unknown and not written.
Value = float | int | None
Values = Value | Mapping[Any, Value]


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge: its help text, its labels other than `cluster`, and its values."""

    about: str
    labels: tuple[str, ...]
    values: Callable[[Outcome, Findings | None], Values]


def _of_run(about: str, values: Callable[[Outcome], Values], *labels: str) -> Metric:
    return Metric(about, labels, lambda outcome, _: values(outcome))


def _found(about: str, values: Callable[[Findings], Values], *labels: str) -> Metric:
    """A number of the summary. A run that failed has none: its result is unknown, and 0 would be good news."""
    return Metric(about, labels, lambda _, found: None if found is None else values(found))


def _more(about: str, values: Callable[[Results], Values], *labels: str) -> Metric:
    """A number that the summary lacks, or has only as text."""
    return Metric(about, labels, lambda outcome, _: None if outcome.results is None else values(outcome.results))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


#: Every gauge, in the order of the file: its help text, its value, and its labels. docs/numbers.md is rendered from
#: this.
METRICS: Final[Mapping[str, Metric]] = {
    "txnlib_audit_success": _of_run(
        "1 if the audit completed, whatever it found; 0 if it failed.", lambda run: int(run.error is None)
    ),
    "txnlib_audit_exit_code": _of_run(
        "Exit code: 0 done, 1 failed, 2 bad usage or no readable input, 3 --fail-on matched.", lambda run: run.exit_code
    ),
    "txnlib_audit_info": _of_run(
        "Always 1. The label is the version of txnlib.", lambda run: {run.version: 1}, "version"
    ),
    "txnlib_audit_started_timestamp_seconds": _of_run(
        "When the audit began, by the clock of the machine that ran it.", lambda run: run.started_ms / 1000
    ),
    "txnlib_audit_finished_timestamp_seconds": _of_run(
        "When the audit ended, by the same clock.", lambda run: run.finished_ms / 1000
    ),
    "txnlib_audit_duration_seconds": _of_run(
        "Duration of the audit, excluding the start of Python.", lambda run: (run.finished_ms - run.started_ms) / 1000
    ),
    "txnlib_audit_as_of_timestamp_seconds": _more(
        "Instant of the audit: ages and verdicts are as of then.", lambda results: results.summary.as_of_ms / 1000
    ),
    "txnlib_audit_newest_capture_timestamp_seconds": _more(
        "When the newest copy was taken; absent if not noted.", lambda results: seconds(results.summary.captured_to_ms)
    ),
    "txnlib_audit_newest_capture_age_seconds": _found(
        "Age of that copy when the audit ended.", lambda found: found.newest_capture_age_seconds
    ),
    "txnlib_audit_table_rows": _of_run(
        "Number of rows that the audit wrote to a table.",
        lambda run: {name: each.rows for name, each in sorted(run.written.items())},
        "table",
    ),
    "txnlib_audit_table_seconds": _of_run(
        "Seconds to compute and write a table. They overlap.",
        lambda run: {name: each.seconds for name, each in sorted(run.written.items())},
        "table",
    ),
    "txnlib_open_transactions": _found(
        "Number of open transactions on partitions, by verdict: one on three partitions counts three times.",
        lambda found: found.verdicts,
        "verdict",
    ),
    "txnlib_transactions": _found(
        "Number of open transactions, by verdict. LOOKS_LATE: LATE only by old timestamps of clients, not counted as"
        " LATE here.",
        lambda found: found.transactions_by_verdict,
        "verdict",
    ),
    "txnlib_partitions_with_late_transactions": _found(
        f"PartitionsWithLateTransactionsCount of the broker at as_of. At most {SHOWN_BROKERS:,} brokers.",
        lambda found: {each.broker: each.partitions_with_late_transactions for each in found.brokers},
        "broker",
    ),
    "txnlib_active_transaction_open_time_max_seconds": _found(
        "Age of the oldest Ongoing transaction of its coordinators at as_of.",
        lambda found: {each.broker: each.active_transaction_open_time_max_seconds for each in found.brokers},
        "broker",
    ),
    "txnlib_in_doubt_transactions": _more(
        "Number of undecided two-phase commits: OVERDUE (open for longer than in_doubt_after_minutes) or IN_TIME.",
        lambda results: {
            name: results.summary.counts.get("in_doubt", {}).get(name, 0) for name in ("OVERDUE", "IN_TIME")
        },
        "state",
    ),
    "txnlib_lso_lag_max_offsets": _found(
        "Largest distance from a last stable offset to its high watermark.", lambda found: found.lag.max_offsets
    ),
    "txnlib_lso_lag_max_seconds": _found(
        "Largest age of the record at such a last stable offset.", lambda found: found.lag.max_seconds or 0.0
    ),
    "txnlib_lso_lag_partitions": _found(
        "Number of partitions whose last stable offset is below their high watermark.",
        lambda found: found.lag.partitions,
    ),
    "txnlib_lso_lag_offsets": _found(
        f"Distance from the last stable offset to the high watermark of each of the {SHOWN_LAGS} partitions that lag"
        " longest.",
        lambda found: {(each.topic, each.partition): each.lag_offsets for each in found.lag.longest},
        *("topic", "partition"),
    ),
    "txnlib_lso_lag_seconds": _found(
        "The same age for each of these partitions.",
        lambda found: {(each.topic, each.partition): each.lag_seconds for each in found.lag.longest},
        *("topic", "partition"),
    ),
    "txnlib_coverage_ratio": _found(
        "Share of the partitions known to exist of which a copy was read.",
        lambda found: _ratio(found.coverage.partitions_read, found.coverage.partitions_known),
    ),
    "txnlib_coordinator_coverage_ratio": _found(
        "The same for the partitions of __transaction_state.",
        lambda found: _ratio(found.coverage.coordinators_read, found.coverage.coordinators_known),
    ),
    "txnlib_partitions": _found(
        "Number of partitions, by the status of their judged copy.", lambda found: found.coverage.partitions, "status"
    ),
    "txnlib_unreadable_bytes": _found(
        "Bytes of copies that could not be read.", lambda found: found.coverage.unreadable_bytes
    ),
    "txnlib_findings": _found("Number of findings, by severity.", lambda found: found.findings, "severity"),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Gauges:
    """A collector for prometheus_client: each gauge with a sample for each known value."""

    outcome: Outcome

    def collect(self) -> Iterator[GaugeMetricFamily]:
        results = self.outcome.results
        numbers = None if results is None else found(results, self.outcome.finished_ms)
        for name, metric in METRICS.items():
            gauge = GaugeMetricFamily(name, metric.about, labels=("cluster", *metric.labels))
            values = metric.values(self.outcome, numbers)
            samples: Iterable[tuple[Any, Value]] = values.items() if isinstance(values, Mapping) else [((), values)]
            for labels, value in samples:
                if value is not None:
                    of = labels if isinstance(labels, tuple) else (labels,)
                    gauge.add_metric(tuple(map(printable, (self.outcome.cluster, *of))), value)
            if gauge.samples:
                yield gauge


def render_metrics(outcome: Outcome) -> str:
    """The gauges of a run as text."""
    registry = CollectorRegistry()
    registry.register(_Gauges(outcome))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()
