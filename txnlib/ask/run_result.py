"""The result of a run for programs: its JSON and its gauges.

A run that failed has one, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from txnlib.ask.grid import json_text, plain
from txnlib.ask.queries import StoredRun
from txnlib.ask.report import Report
from txnlib.ask.report_fields import SHOWN_BROKERS, SHOWN_LAGS, all_of, instant_of
from txnlib.ask.report_sections import SECTIONS
from txnlib.core.display import Written, printable

#: Changes if a field is renamed or removed, or changes its meaning. A later version may add fields.
SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. Times are epoch ms of the machine that ran it."""

    cluster: str
    version: str
    exit_code: int
    started_ms: int
    finished_ms: int
    run_id: str | None = None
    #: Engine that carried it out, with its version.
    engine: str | None = None
    #: Error message of a failed run, else None.
    error: str | None = None
    written: Mapping[str, Written] = field(default_factory=dict)
    #: What it found, as `results_of` returns it; None if the run failed.
    found: Mapping[str, Any] | None = None
    #: Undecided two-phase commits by state. The JSON has no field for these.
    in_doubt: Mapping[str, int] = field(default_factory=dict)


# ---- JSON


def render_numbers(outcome: Outcome) -> str:
    """The run as JSON text that ends with a line feed."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "success": outcome.error is None,
        "exit_code": outcome.exit_code,
        "error": outcome.error,
        "cluster": outcome.cluster,
        "run_id": outcome.run_id,
        "version": outcome.version,
        "engine": outcome.engine,
        "started": instant_of(outcome.started_ms),
        "finished": instant_of(outcome.finished_ms),
        "duration_seconds": (outcome.finished_ms - outcome.started_ms) / 1000,
        "written": {
            name: {"rows": each.rows, "seconds": round(each.seconds, 3)}
            for name, each in sorted(outcome.written.items())
        },
        "found": outcome.found,
    }
    return json_text(plain(content))


def results_of(run: StoredRun, report: Report, finished_ms: int | None = None) -> dict[str, Any]:
    """What a run found, as fields of the JSON. `finished_ms`: when the audit ended, if it is known."""
    newest_ms = report.captured_to_ms
    found: dict[str, Any] = {
        "as_of": instant_of(report.as_of_ms),
        "as_of_basis": report.as_of_basis,
        "newest_capture": None if newest_ms is None else instant_of(newest_ms),
        "newest_capture_age_seconds": (
            None if newest_ms is None or finished_ms is None else (finished_ms - newest_ms) / 1000
        ),
        "tables": report.output,
    }
    for section in sorted(SECTIONS, key=lambda each: each.name == "findings"):  # which are last
        found |= section.fields(run, report)
    return found


# ---- Gauges

#: One value, or one for each combination of values of the labels other than `cluster`. None is unknown and not written.
Value = float | int | None
Values = Value | Mapping[Any, Value]


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge: its help text, its labels other than `cluster`, and its values.

    There are only gauges, without quotes in their help texts, so that their text is valid both as OpenMetrics and in
    the older text format, which node_exporter's textfile collector reads.
    """

    about: str
    labels: tuple[str, ...]
    values: Callable[[Outcome], Values]


def _of_run(about: str, values: Callable[[Outcome], Values], *labels: str) -> Metric:
    return Metric(about, labels, values)


def _found(about: str, values: Callable[[Mapping[str, Any]], Values], *labels: str) -> Metric:
    """A number of the JSON. A run that failed has none: its result is unknown, and 0 would be good news."""
    return Metric(about, labels, lambda run: None if run.found is None else values(run.found))


#: Every gauge, in the order of the file. docs/numbers.md is rendered from this.
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
    "txnlib_audit_as_of_timestamp_seconds": _found(
        "Instant of the audit: ages and verdicts are as of then.", lambda found: found["as_of"].timestamp()
    ),
    "txnlib_audit_newest_capture_timestamp_seconds": _found(
        "When the newest copy was taken; absent if not noted.",
        lambda found: found["newest_capture"] and found["newest_capture"].timestamp(),
    ),
    "txnlib_audit_newest_capture_age_seconds": _found(
        "Age of that copy when the audit ended.", lambda found: found["newest_capture_age_seconds"]
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
        "Number of open transactions on partitions, by verdict: one on three partitions counts three times. LOOKS_LATE:"
        " late only by old timestamps of clients. What is acknowledged does not count.",
        lambda found: found["unacknowledged"]["rows"],
        "verdict",
    ),
    "txnlib_transactions": _found(
        "Number of open transactions, by verdict, without those that are acknowledged as a whole.",
        lambda found: found["unacknowledged"]["transactions"],
        "verdict",
    ),
    "txnlib_stuck_ids": _found(
        "Number of transactional ids that are stuck without holding a partition: COMPLETION_OVERDUE.",
        lambda found: len(found["stuck_ids"]),
    ),
    "txnlib_held_partitions": _found(
        "Number of partitions whose last stable offset waits for an open transaction, by its verdict, without those of"
        " acknowledged ones.",
        lambda found: found["unacknowledged"]["held_partitions"],
        "verdict",
    ),
    "txnlib_partitions_with_late_transactions": _found(
        f"PartitionsWithLateTransactionsCount of the broker at as_of. At most {SHOWN_BROKERS:,} brokers.",
        lambda found: {row["broker"]: row["partitions_with_late_transactions"] for row in found["brokers"]},
        "broker",
    ),
    "txnlib_active_transaction_open_time_max_seconds": _found(
        "Age of the oldest Ongoing transaction of its coordinators at as_of.",
        lambda found: {row["broker"]: row["active_transaction_open_time_max_seconds"] for row in found["brokers"]},
        "broker",
    ),
    "txnlib_in_doubt_transactions": _of_run(
        "Number of undecided two-phase commits: OVERDUE (open for longer than in_doubt_after_minutes) or IN_TIME.",
        lambda run: None if run.found is None else all_of(("OVERDUE", "IN_TIME"), run.in_doubt),
        "state",
    ),
    "txnlib_lso_lag_max_offsets": _found(
        "Largest distance from a last stable offset to its high watermark.", lambda found: found["lag"]["max_offsets"]
    ),
    "txnlib_lso_lag_max_seconds": _found(
        "Largest age of the record at such a last stable offset.", lambda found: found["lag"]["max_seconds"] or 0.0
    ),
    "txnlib_lso_lag_partitions": _found(
        "Number of partitions whose last stable offset is below their high watermark.",
        lambda found: found["lag"]["partitions"],
    ),
    "txnlib_lso_lag_offsets": _found(
        f"Distance from the last stable offset to the high watermark of each of the {SHOWN_LAGS} partitions that lag"
        " longest.",
        lambda found: {(row["topic"], row["partition"]): row["lag_offsets"] for row in found["lag"]["longest"]},
        *("topic", "partition"),
    ),
    "txnlib_lso_lag_seconds": _found(
        "The same age for each of these partitions.",
        lambda found: {(row["topic"], row["partition"]): row["lag_seconds"] for row in found["lag"]["longest"]},
        *("topic", "partition"),
    ),
    "txnlib_lso_lag_ends_timestamp_seconds": _found(
        "By when the coordinator ends what holds each of these partitions; absent where nobody will.",
        lambda found: {
            (row["topic"], row["partition"]): row["ends_by"] and row["ends_by"].timestamp()
            for row in found["lag"]["longest"]
        },
        *("topic", "partition"),
    ),
    "txnlib_coverage_ratio": _found(
        "Share of the partitions known to exist of which a copy was read.",
        lambda found: _share(found["coverage"], "partitions"),
    ),
    "txnlib_coordinator_coverage_ratio": _found(
        "The same for the partitions of __transaction_state.", lambda found: _share(found["coverage"], "coordinators")
    ),
    "txnlib_partitions": _found(
        "Number of partitions, by the status of their judged copy.",
        lambda found: found["coverage"]["partitions"],
        "status",
    ),
    "txnlib_unreadable_bytes": _found(
        "Bytes that were given and not read, in a partition or not.",
        lambda found: found["coverage"]["unreadable_bytes"],
    ),
    "txnlib_unreadable_files": _found(
        "Number of files, folders and links that were given and not read, or not to their end.",
        lambda found: found["coverage"]["unreadable_files"],
    ),
    "txnlib_findings": _found(
        "Number of findings, by severity, without those that are acknowledged.",
        lambda found: found["unacknowledged"]["findings"],
        "severity",
    ),
    "txnlib_acknowledged_transactions": _found(
        "Number of open transactions on partitions that are acknowledged, by verdict.",
        lambda found: {name: rows - found["unacknowledged"]["rows"][name] for name, rows in found["verdicts"].items()},
        "verdict",
    ),
    "txnlib_acknowledged_until_timestamp_seconds": _found(
        "When the first acknowledgement ends that silences something; absent if there is none.",
        lambda found: found["acknowledged_until"] and found["acknowledged_until"].timestamp(),
    ),
}


def _share(coverage: Mapping[str, int], what: str) -> float | None:
    known = coverage[f"{what}_known"]
    return coverage[f"{what}_read"] / known if known else None


@dataclass(frozen=True, slots=True, eq=False)
class _Gauges:
    """A collector for prometheus_client: each gauge with a sample for each known value."""

    outcome: Outcome

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, metric in METRICS.items():
            gauge = GaugeMetricFamily(name, metric.about, labels=("cluster", *metric.labels))
            values = metric.values(self.outcome)
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
