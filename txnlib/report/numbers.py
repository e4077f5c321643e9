"""The summary of a run as JSON; also of a run that failed. The models are its schema.

A later version may add fields; `schema_version` changes if one is renamed, goes, or comes to mean something else.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from txnlib.report.grid import escaped_json
from txnlib.report.outcome import SEVERITIES, SHOWN_BROKERS, SHOWN_LAGS, SHOWN_TRANSACTIONS, STATUSES, URGENCY, Found, Outcome
from txnlib.report.summary import SHOWN, Row

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenTransaction(_Part):
    """An open transaction: its key in the tables, and what to know before anything else."""

    topic: str = Field(description="Topic of the partition.")
    partition: int = Field(description="Number of the partition.")
    producer_id: int = Field(description="Producer id.")
    producer_epoch: int | None = Field(description="Producer epoch.")
    start_offset: int = Field(description="Its first offset there.")
    transactional_id: str | None = Field(description="Transactional id; null: none is known.")
    verdict: str = Field(description="Verdict.")
    reason: str | None = Field(description="Reason of the verdict, a name from rules.md.")
    blocks_since: str | None = Field(description="Since when it blocks, ISO-8601.")
    blocked_offsets: int | None = Field(description="Offsets from its start to the high watermark.")
    blocked_bytes: int | None = Field(description="The same in bytes.")
    safe_to_abort: bool | None = Field(description="Whether it may be aborted by hand; how: `txn-audit abort-plan`.")
    runs_seen: int | None = Field(description="Audits that saw it, this one included.")


class LaggingPartition(_Part):
    """A partition whose last stable offset lies below its high watermark."""

    topic: str = Field(description="Topic of the partition.")
    partition: int = Field(description="Number of the partition.")
    lag_offsets: int = Field(description="Offsets from the last stable offset to the high watermark.")
    lag_bytes: int | None = Field(description="The same in bytes; null: not read.")
    lag_seconds: float | None = Field(description="Age of the record at the last stable offset; null: not known.")
    blocking_producer_id: int | None = Field(
        description="Producer whose transaction stands there; null: its marker is not replicated yet."
    )
    blocking_transactional_id: str | None = Field(description="Its transactional id.")
    blocking_verdict: str | None = Field(description="Its verdict.")


class Lag(_Part):
    """How far read_committed consumers are held back."""

    partitions: int = Field(description="Partitions whose last stable offset lies below their high watermark.")
    max_offsets: int = Field(description="The highest of their lags in offsets.")
    max_seconds: float | None = Field(description="The highest of their lags in time; null: none is known.")
    longest: list[LaggingPartition] = Field(description=f"The {SHOWN_LAGS} that lag longest.")


class Broker(_Part):
    """A broker of which there is a copy."""

    broker: str = Field(description="Name of its folder in the capture.")
    partitions_with_late_transactions: int = Field(
        description="PartitionsWithLateTransactionsCount, as it would count it at as_of."
    )
    active_transaction_open_time_max_seconds: float | None = Field(
        description="How long the oldest Ongoing transaction of its coordinators has been open; null: there is none."
    )


class Coverage(_Part):
    """What of the cluster was captured and could be read."""

    partitions_known: int = Field(description="Partitions known to exist.")
    partitions_read: int = Field(description="Partitions of which a copy was read.")
    coordinators_known: int = Field(description="The same of __transaction_state.")
    coordinators_read: int = Field(description="The same of __transaction_state.")
    partitions: dict[str, int] = Field(description=f"Partitions by the status of their judged copy: {', '.join(STATUSES)}.")
    unreadable_bytes: int = Field(description="Bytes of copies that could not be read.")


class NamedFindings(_Part):
    """Findings of one name."""

    name: str = Field(description="Name of the finding, from rules.md.")
    severity: str = Field(description="Its severity.")
    count: int = Field(description="How many.")


class EndedTransaction(_Part):
    """A transaction that the run before warned of and that is open no longer."""

    topic: str = Field(description="Topic of the partition.")
    partition: int = Field(description="Number of the partition.")
    producer_id: int = Field(description="Producer id.")
    start_offset: int = Field(description="Its first offset there.")
    verdict: str = Field(description="The verdict then.")
    says: str = Field(description="What became of it, in words.")


class Table(_Part):
    """What a step of the run wrote."""

    rows: int | None = Field(description="Rows written; null: not known.")
    seconds: float = Field(description="Seconds to make and write them; steps overlap.")


class Findings(_Part):
    """What a run found."""

    as_of: str = Field(description="The instant judged at, ISO-8601 in UTC.")
    as_of_basis: str = Field(description="Where that instant comes from, in words.")
    newest_capture: str | None = Field(description="When the newest copy was taken, ISO-8601; null: no capture.json tells.")
    newest_capture_age_seconds: float | None = Field(description="How old it was when the audit ended.")
    tables: str = Field(description="Where the tables are.")
    verdicts: dict[str, int] = Field(description=f"Open transactions by verdict: {', '.join(URGENCY)}.")
    transactions: list[OpenTransaction] = Field(
        description=f"Of these the first {SHOWN_TRANSACTIONS}, in that order, those that block most first."
    )
    transactions_left_out: int = Field(description="How many more there are: all are in `open_transactions`.")
    ended: list[EndedTransaction] = Field(
        description=f"The first {SHOWN} that the run before warned of and that are open no longer."
    )
    lag: Lag = Field(description="Last stable offsets below their high watermarks.")
    brokers: list[Broker] = Field(description=f"The first {SHOWN_BROKERS:,} brokers with a copy.")
    coverage: Coverage = Field(description="What was captured and could be read.")
    findings: dict[str, int] = Field(description=f"Findings by severity: {', '.join(SEVERITIES)}.")
    named_findings: list[NamedFindings] = Field(description="Those above INFO by name.")


class Numbers(_Part):
    """The file."""

    schema_version: Literal[1] = Field(default=SCHEMA_VERSION, description="Version of this schema.")
    success: bool = Field(description="Whether the audit was carried out, whatever it found.")
    exit_code: int = Field(description="0 done, 1 failed, 2 bad usage or no readable input, 3 `--fail-on` matched.")
    error: str | None = Field(description="Why it failed; null: it did not.")
    cluster: str = Field(description="Name of the cluster.")
    run_id: str | None = Field(description="The run in the tables; null: it failed before it had one.")
    version: str = Field(description="Version of txnlib.")
    started: str = Field(description="When it began, ISO-8601, by the clock of the machine that ran it.")
    finished: str = Field(description="When it ended.")
    duration_seconds: float = Field(description="From begin to end, without the start of Python.")
    written: dict[str, Table] = Field(description="Tables written, by name.")
    found: Findings | None = Field(description="What it found; null: it failed.")


def render_numbers(outcome: Outcome) -> str:
    """The run as JSON text, with a line feed at its end."""
    numbers = Numbers(
        success=outcome.error is None,
        exit_code=outcome.exit_code,
        error=outcome.error,
        cluster=outcome.cluster,
        run_id=outcome.run_id,
        version=outcome.version,
        started=_instant(outcome.started_ms),
        finished=_instant(outcome.finished_ms),
        duration_seconds=(outcome.finished_ms - outcome.started_ms) / 1000,
        written={name: Table(rows=each.rows, seconds=round(each.seconds, 3)) for name, each in sorted(outcome.written.items())},
        found=None if outcome.found is None else _findings(outcome.found, outcome.finished_ms),
    )
    return escaped_json(numbers.model_dump_json(indent=2)) + "\n"


def _findings(found: Found, finished_ms: int) -> Findings:
    summary = found.summary
    verdicts = {name: summary.counts["verdicts"].get(name, 0) for name in URGENCY}
    newest_ms = summary.captured_to_ms
    return Findings(
        as_of=_instant(summary.as_of_ms),
        as_of_basis=summary.as_of_basis,
        newest_capture=None if newest_ms is None else _instant(newest_ms),
        newest_capture_age_seconds=None if newest_ms is None else (finished_ms - newest_ms) / 1000,
        tables=summary.output,
        verdicts=verdicts,
        transactions=[_transaction(row) for row in found.transactions],
        transactions_left_out=sum(verdicts.values()) - len(found.transactions),
        ended=[EndedTransaction(**{name: row[name] for name in EndedTransaction.model_fields}) for row in summary.ended],
        lag=Lag(
            partitions=found.lag.get("partitions") or 0,
            max_offsets=found.lag.get("offsets") or 0,
            max_seconds=_seconds(found.lag.get("ms")),
            longest=[_lagging(row) for row in found.lags],
        ),
        brokers=[_broker(row) for row in found.brokers],
        coverage=Coverage(
            partitions_known=summary.partitions_known,
            partitions_read=summary.partitions_read,
            coordinators_known=summary.coordinators_known,
            coordinators_read=summary.coordinators_read,
            partitions={status: found.partitions.get(status, 0) for status in STATUSES},
            unreadable_bytes=summary.unreadable_bytes,
        ),
        findings={name: summary.counts["findings"].get(name, 0) for name in SEVERITIES},
        named_findings=[NamedFindings(**{name: row[name] for name in NamedFindings.model_fields}) for row in summary.findings],
    )


def _transaction(row: Row) -> OpenTransaction:
    since = row["blocks_since"]
    values = {name: row[name] for name in OpenTransaction.model_fields}
    return OpenTransaction(**values | {"blocks_since": None if since is None else _instant(since)})


def _lagging(row: Row) -> LaggingPartition:
    values = {name: row[name] for name in LaggingPartition.model_fields if name != "lag_seconds"}
    return LaggingPartition(**values, lag_seconds=_seconds(row["lag_ms"]))


def _broker(row: Row) -> Broker:
    return Broker(
        broker=row["broker"],
        partitions_with_late_transactions=row["partitions_with_late_transactions"],
        active_transaction_open_time_max_seconds=_seconds(row["active_transaction_open_time_max_ms"]),
    )


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _instant(ms: int) -> str:
    """ISO-8601 in UTC, to the millisecond; the number where no calendar reaches: times come from logs."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
