"""Prometheus gauges of a run, for node_exporter's textfile collector; also of a run that failed.

There are only gauges, without quotes in their help texts, so the text is valid both as OpenMetrics and in the older text format,
which the collector reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from txnlib.ask.extents import LOOKS_LATE
from txnlib.ask.rows import in_transactions
from txnlib.ask.run_result import SEVERITIES, SHOWN_BROKERS, SHOWN_LAGS, URGENCY, Outcome, Results
from txnlib.ask.summary import STATUSES
from txnlib.core.display import printable

#: Values of the labels other than `cluster`, and the value; a value of None is unknown and not written.
Sample = tuple[tuple[object, ...], float | int | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge: its help text, its labels other than `cluster`, and its samples."""

    about: str
    labels: tuple[str, ...]
    samples: Callable[[Outcome], Iterator[Sample]]


def _one(value: Callable[[Outcome], float | int | None]) -> Callable[[Outcome], Iterator[Sample]]:
    return lambda outcome: iter([((), value(outcome))])


def _of(value: Callable[[Results], float | int | None]) -> Callable[[Outcome], Iterator[Sample]]:
    """No sample for a run that failed: its result is unknown, and 0 would be good news."""
    return lambda outcome: iter([] if outcome.results is None else [((), value(outcome.results))])


def _each(samples: Callable[[Results], list[Sample]]) -> Callable[[Outcome], Iterator[Sample]]:
    return lambda outcome: iter([] if outcome.results is None else samples(outcome.results))


def _counts(counted: Mapping[str, int], names: tuple[str, ...]) -> list[Sample]:
    """A sample for each name, 0 if it was not counted: a series that comes and goes cannot be compared over time."""
    return [((name,), counted.get(name, 0)) for name in names]


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


#: Every gauge, in the order of the file. docs/numbers.md is rendered from this.
METRICS: Final[Mapping[str, Metric]] = {
    "txnlib_audit_success": Metric(
        "1 if the audit completed, regardless of what it found; 0 if it failed and has no results.",
        (),
        _one(lambda run: int(run.error is None)),
    ),
    "txnlib_audit_exit_code": Metric(
        "Exit code: 0 done, 1 failed, 2 bad usage or no readable input, 3 --fail-on matched.", (), _one(lambda run: run.exit_code)
    ),
    "txnlib_audit_info": Metric(
        "Always 1. The label is the version of txnlib.", ("version",), lambda run: iter([((run.version,), 1)])
    ),
    "txnlib_audit_started_timestamp_seconds": Metric(
        "When the audit began, by the clock of the machine that ran it.", (), _one(lambda run: run.started_ms / 1000)
    ),
    "txnlib_audit_finished_timestamp_seconds": Metric(
        "When the audit ended, by the same clock.", (), _one(lambda run: run.finished_ms / 1000)
    ),
    "txnlib_audit_duration_seconds": Metric(
        "Duration of the audit in seconds, excluding the start of Python.",
        (),
        _one(lambda run: (run.finished_ms - run.started_ms) / 1000),
    ),
    "txnlib_audit_as_of_timestamp_seconds": Metric(
        "Instant of the audit: ages and verdicts are as of then.", (), _of(lambda results: results.summary.as_of_ms / 1000)
    ),
    "txnlib_audit_newest_capture_timestamp_seconds": Metric(
        "When the newest copy was taken; absent if no capture.json contains it.",
        (),
        _of(lambda results: _seconds(results.summary.captured_to_ms)),
    ),
    "txnlib_audit_newest_capture_age_seconds": Metric(
        "Age of the newest copy when the audit ended; absent if no capture.json contains it.", (), lambda run: _capture_age(run)
    ),
    "txnlib_audit_table_rows": Metric(
        "Number of rows that the audit wrote to a table.",
        ("table",),
        lambda run: iter([((name,), written.rows) for name, written in sorted(run.written.items())]),
    ),
    "txnlib_audit_table_seconds": Metric(
        "Seconds to compute and write a table. Several tables are written at a time, so the values do not add up.",
        ("table",),
        lambda run: iter([((name,), written.seconds) for name, written in sorted(run.written.items())]),
    ),
    "txnlib_open_transactions": Metric(
        "Number of open transactions on partitions, by verdict: one on three partitions counts three times.",
        ("verdict",),
        _each(lambda results: _counts(results.summary.counts["verdicts"], URGENCY)),
    ),
    "txnlib_transactions": Metric(
        "Number of open transactions, by verdict. LOOKS_LATE: LATE only by old timestamps of clients, not counted as LATE here.",
        ("verdict",),
        _each(lambda results: _counts(in_transactions(results.summary.counts), (*URGENCY, LOOKS_LATE))),
    ),
    "txnlib_partitions_with_late_transactions": Metric(
        f"PartitionsWithLateTransactionsCount of the broker at as_of. At most {SHOWN_BROKERS:,} brokers.",
        ("broker",),
        _each(lambda results: [((row["broker"],), row["partitions_with_late_transactions"]) for row in results.brokers]),
    ),
    "txnlib_active_transaction_open_time_max_seconds": Metric(
        "Age of the oldest Ongoing transaction of the coordinators on a broker at as_of.",
        ("broker",),
        _each(
            lambda results: [((row["broker"],), _seconds(row["active_transaction_open_time_max_ms"])) for row in results.brokers]
        ),
    ),
    "txnlib_in_doubt_transactions": Metric(
        "Number of undecided two-phase commits: OVERDUE (open for longer than in_doubt_after_minutes) or IN_TIME.",
        ("state",),
        _each(lambda results: _counts(results.summary.counts.get("in_doubt", {}), ("OVERDUE", "IN_TIME"))),
    ),
    "txnlib_broker_clock_offset_seconds": Metric(
        f"How far the clock of the other broker is ahead of the broker's. At most {SHOWN_BROKERS:,} pairs.",
        ("broker", "other"),
        _each(lambda results: [((row["broker"], row["other_broker"]), _seconds(row["offset_ms"])) for row in results.clocks]),
    ),
    "txnlib_broker_clock_offset_error_seconds": Metric(
        "How far the true offset may be from that.",
        ("broker", "other"),
        _each(lambda results: [((row["broker"], row["other_broker"]), _seconds(row["error_ms"])) for row in results.clocks]),
    ),
    "txnlib_lso_lag_max_offsets": Metric(
        "Largest distance from a last stable offset to its high watermark.",
        (),
        _of(lambda results: results.lag.get("offsets") or 0),
    ),
    "txnlib_lso_lag_max_seconds": Metric(
        "Largest age of the record at a last stable offset that is below its high watermark.",
        (),
        _of(lambda results: (results.lag.get("ms") or 0) / 1000),
    ),
    "txnlib_lso_lag_partitions": Metric(
        "Number of partitions whose last stable offset is below their high watermark.",
        (),
        _of(lambda results: results.lag.get("partitions") or 0),
    ),
    "txnlib_lso_lag_offsets": Metric(
        f"Distance from the last stable offset to the high watermark of each of the {SHOWN_LAGS} partitions that lag longest.",
        ("topic", "partition"),
        _each(lambda results: [((row["topic"], row["partition"]), row["lag_offsets"]) for row in results.lags]),
    ),
    "txnlib_lso_lag_seconds": Metric(
        "The same age for each of these partitions.",
        ("topic", "partition"),
        _each(lambda results: [((row["topic"], row["partition"]), _seconds(row["lag_ms"])) for row in results.lags]),
    ),
    "txnlib_coverage_ratio": Metric(
        "Share of the partitions known to exist of which a copy was read.",
        (),
        _of(lambda results: _ratio(results.summary.partitions_read, results.summary.partitions_known)),
    ),
    "txnlib_coordinator_coverage_ratio": Metric(
        "The same for the partitions of __transaction_state.",
        (),
        _of(lambda results: _ratio(results.summary.coordinators_read, results.summary.coordinators_known)),
    ),
    "txnlib_partitions": Metric(
        "Number of partitions, by the status of their judged copy.",
        ("status",),
        _each(lambda results: _counts(results.partitions, STATUSES)),
    ),
    "txnlib_unreadable_bytes": Metric(
        "Bytes of copies that could not be read.", (), _of(lambda results: results.summary.unreadable_bytes)
    ),
    "txnlib_findings": Metric(
        "Number of findings, by severity.",
        ("severity",),
        _each(lambda results: _counts(results.summary.counts["findings"], SEVERITIES)),
    ),
}


def _capture_age(run: Outcome) -> Iterator[Sample]:
    newest = None if run.results is None else run.results.summary.captured_to_ms
    return iter([] if newest is None else [((), (run.finished_ms - newest) / 1000)])


@dataclass(frozen=True, slots=True, eq=False)
class _Gauges:
    """A collector for prometheus_client: each gauge with a sample for each known value."""

    outcome: Outcome

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, metric in METRICS.items():
            gauge = GaugeMetricFamily(name, metric.about, labels=("cluster", *metric.labels))
            for labels, value in metric.samples(self.outcome):
                if value is not None:
                    gauge.add_metric(tuple(map(printable, (self.outcome.cluster, *labels))), value)
            if gauge.samples:
                yield gauge


def render_metrics(outcome: Outcome) -> str:
    """The gauges of a run as text."""
    registry = CollectorRegistry()
    registry.register(_Gauges(outcome))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()
