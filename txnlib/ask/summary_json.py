"""The summary of a run as JSON; also of a run that failed. The models are its schema.

A later version may add fields. `schema_version` changes if a field is renamed or removed, or changes its meaning.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from txnlib.ask.extents import LOOKS_LATE
from txnlib.ask.grid import escaped_json, instant_json
from txnlib.ask.headline import answer
from txnlib.ask.rows import Row, in_transactions
from txnlib.ask.run_result import SEVERITIES, SHOWN_BROKERS, SHOWN_LAGS, SHOWN_TRANSACTIONS, URGENCY, Outcome, Results
from txnlib.ask.summary import SHOWN, STATUSES

if TYPE_CHECKING:
    from txnlib.ask.acknowledgements import Acknowledged

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenTransactionEntry(_Part):
    """An open transaction: its key in the tables and its most important properties."""

    topic: str = Field(description="Topic of the partition.")
    partition: int = Field(description="Number of the partition.")
    producer_id: int = Field(description="Producer id.")
    producer_epoch: int | None = Field(description="Producer epoch.")
    start_offset: int = Field(description="First offset of the transaction on the partition.")
    transactional_id: str | None = Field(description="Transactional id; null if unknown.")
    verdict: str = Field(description="Verdict on the transaction.")
    reason: str | None = Field(description="Reason of the verdict, a name from docs/rules/reference.md.")
    blocks_since: str | None = Field(description="Since when the transaction blocks consumers, ISO-8601.")
    blocked_offsets: int | None = Field(
        description="Offsets from the start of the transaction, or the log start above it, to the high watermark."
    )
    blocked_bytes: int | None = Field(description="The same in bytes.")
    safe_to_abort: bool | None = Field(
        description="Whether an abort by hand is safe; see `txn-audit abort-plan` for the command."
    )
    runs_seen: int | None = Field(description="Number of audits that saw the transaction, including this one.")
    application: str | None = Field(description="Application of the transactional id, derived from its form.")
    explanation: str | None = Field(description="The reason as one sentence.")
    safe_from: str | None = Field(
        description="When an abort becomes safe, if only the age is not proven yet, ISO-8601; else null."
    )
    acknowledged_by: str | None = Field(description="Who acknowledged it (`--acknowledged`); null if nobody did.")


class LaggingPartition(_Part):
    """A partition whose last stable offset is below its high watermark."""

    topic: str = Field(description="Topic of the partition.")
    partition: int = Field(description="Number of the partition.")
    lag_offsets: int = Field(description="Offsets from the last stable offset to the high watermark.")
    lag_bytes: int | None = Field(description="The same in bytes; null if not read.")
    lag_seconds: float | None = Field(description="Age of the record at the last stable offset; null if unknown.")
    blocking_producer_id: int | None = Field(
        description=(
            "Producer whose open transaction is at the last stable offset; null if its marker is not replicated yet."
        )
    )
    blocking_transactional_id: str | None = Field(description="Transactional id of that transaction.")
    blocking_verdict: str | None = Field(description="Verdict on that transaction.")


_LAGGING: Final = tuple(name for name in LaggingPartition.model_fields if name != "lag_seconds")


class Lag(_Part):
    """How far read_committed consumers lag because of open transactions."""

    partitions: int = Field(description="Number of partitions whose last stable offset is below their high watermark.")
    max_offsets: int = Field(description="Largest lag of these, in offsets.")
    max_seconds: float | None = Field(description="Largest lag of these, in seconds; null if none is known.")
    longest: list[LaggingPartition] = Field(description=f"The {SHOWN_LAGS} partitions that lag longest.")


class Broker(_Part):
    """A broker from which copies were captured."""

    broker: str = Field(description="Name of its folder in the capture.")
    partitions_with_late_transactions: int = Field(
        description="PartitionsWithLateTransactionsCount of the broker at as_of."
    )
    active_transaction_open_time_max_seconds: float | None = Field(
        description="Age of the oldest Ongoing transaction of its coordinators; null if there is none."
    )


class Coverage(_Part):
    """What was captured of the cluster and could be read."""

    partitions_known: int = Field(description="Number of partitions known to exist.")
    partitions_quiet: int = Field(description="Those without a copy of which the leader said that nothing was open.")
    partitions_read: int = Field(description="Those of which a copy was read.")
    coordinators_known: int = Field(description="Partitions of __transaction_state known to exist.")
    coordinators_read: int = Field(description="Those of which a copy was read.")
    partitions: dict[str, int] = Field(
        description=f"Number of partitions by the status of their judged copy: {', '.join(STATUSES)}."
    )
    unreadable_bytes: int = Field(description="Bytes of copies that could not be read.")


class NamedFindings(_Part):
    """Findings of one name."""

    name: str = Field(description="Name of the finding (docs/rules/reference.md).")
    severity: str = Field(description="Severity of the finding.")
    count: int = Field(description="Number of findings of this name.")


class EndedTransactionEntry(_Part):
    """A transaction that the earlier run warned of and that is no longer open."""

    topic: str = Field(description="Topic of the partition.")
    partition: int = Field(description="Number of the partition.")
    producer_id: int = Field(description="Producer id.")
    start_offset: int = Field(description="First offset of the transaction on the partition.")
    verdict: str = Field(description="Verdict of the previous run.")
    says: str = Field(description="How the transaction ended, as a sentence.")


class Known(_Part):
    """An entry of the file of acknowledgements."""

    topic: str | None = Field(description="Topic that the entry names.")
    partition: int | None = Field(description="Number of the partition that it names.")
    producer_id: int | None = Field(description="Producer id that it names.")
    start_offset: int | None = Field(description="First offset that it names.")
    transactional_id: str | None = Field(description="Transactional id that it names.")
    finding: str | None = Field(description="Finding that it names; null if it is about open transactions.")
    until: str = Field(description="Instant from which on it counts again, ISO-8601.")
    by: str = Field(description="Who acknowledges it.")
    why: str = Field(description="Why.")
    matches: int = Field(description="Number of open transactions, or findings, for which it is the first entry.")
    is_over: bool = Field(description="Whether it is over, though what it names is still there.")


class TableCount(_Part):
    """One table that the run wrote."""

    rows: int | None = Field(description="Number of rows written; null if unknown.")
    seconds: float = Field(description="Seconds to compute and write them. Tables overlap in time.")


class Findings(_Part):
    """The results of a run."""

    as_of: str = Field(description="Instant of the audit: ages and verdicts are as of then. ISO-8601 in UTC.")
    as_of_basis: str = Field(description="Source of that instant, in words.")
    newest_capture: str | None = Field(description="When the newest copy was taken, ISO-8601; null if not noted.")
    newest_capture_age_seconds: float | None = Field(
        description="Age of that copy when the audit ended, if that is known."
    )
    tables: str = Field(description="Location of the tables.")
    answer: list[str] = Field(
        description=(
            "The first lines of the report: what each verdict holds and since when, what to do first, what cannot wait."
        )
    )
    verdicts: dict[str, int] = Field(
        description=f"Number of rows of `open_transactions` by verdict: {', '.join(URGENCY)}."
    )
    transactions_by_verdict: dict[str, int] = Field(
        description=(
            "Number of transactions by verdict, each counted once however many partitions it has. LOOKS_LATE: LATE only"
            " by old timestamps of clients, not counted as LATE here."
        )
    )
    transactions: list[OpenTransactionEntry] = Field(
        description=(
            f"The first {SHOWN_TRANSACTIONS} of these, in that order; within a verdict, those that block most come"
            " first."
        )
    )
    transactions_left_out: int = Field(description="Number of open transactions not listed here.")
    ended: list[EndedTransactionEntry] = Field(
        description=f"The first {SHOWN} transactions that the previous run warned of and that are no longer open."
    )
    acknowledged: list[Known] = Field(description="Entries of the file of acknowledgements, if one was given.")
    lag: Lag = Field(description="How far last stable offsets are below their high watermarks.")
    brokers: list[Broker] = Field(description=f"The first {SHOWN_BROKERS:,} brokers from which copies were captured.")
    coverage: Coverage = Field(description="What was captured and could be read.")
    findings: dict[str, int] = Field(description=f"Number of findings by severity: {', '.join(SEVERITIES)}.")
    named_findings: list[NamedFindings] = Field(description="Findings above INFO, by name.")


class Numbers(_Part):
    """The content of the file."""

    schema_version: Literal[1] = Field(default=SCHEMA_VERSION, description="Version of this schema.")
    success: bool = Field(description="Whether the audit completed, whatever it found.")
    exit_code: int = Field(
        description="Exit code: 0 done, 1 failed, 2 bad usage or no readable input, 3 `--fail-on` matched."
    )
    error: str | None = Field(description="Why the audit failed; null if it did not.")
    cluster: str = Field(description="Name of the cluster.")
    run_id: str | None = Field(description="Id of the run; null if the audit failed before it had one.")
    version: str = Field(description="Version of txnlib.")
    started: str = Field(description="When the audit began, ISO-8601, by the clock of its machine.")
    finished: str = Field(description="When the audit ended, by the same clock.")
    duration_seconds: float = Field(description="Seconds in between, excluding the start of Python.")
    written: dict[str, TableCount] = Field(description="Tables written, by name.")
    found: Findings | None = Field(description="Results of the audit; null if it failed.")


def render_numbers(outcome: Outcome) -> str:
    """The run as JSON text that ends with a line feed."""
    numbers = Numbers(
        success=outcome.error is None,
        exit_code=outcome.exit_code,
        error=outcome.error,
        cluster=outcome.cluster,
        run_id=outcome.run_id,
        version=outcome.version,
        started=instant_json(outcome.started_ms),
        finished=instant_json(outcome.finished_ms),
        duration_seconds=(outcome.finished_ms - outcome.started_ms) / 1000,
        written={
            name: TableCount(rows=each.rows, seconds=round(each.seconds, 3))
            for name, each in sorted(outcome.written.items())
        },
        found=None if outcome.results is None else found(outcome.results, outcome.finished_ms),
    )
    return escaped_json(numbers.model_dump_json(indent=2)) + "\n"


def found(results: Results, finished_ms: int | None = None) -> Findings:
    """The results of a run. `finished_ms`: when the audit ended, if it is known."""
    summary = results.summary
    verdicts = {name: summary.counts["verdicts"].get(name, 0) for name in URGENCY}
    newest_ms = summary.captured_to_ms
    return Findings(
        as_of=instant_json(summary.as_of_ms),
        as_of_basis=summary.as_of_basis,
        newest_capture=None if newest_ms is None else instant_json(newest_ms),
        newest_capture_age_seconds=(
            None if newest_ms is None or finished_ms is None else (finished_ms - newest_ms) / 1000
        ),
        tables=summary.output,
        answer=answer(summary).lines,
        verdicts=verdicts,
        transactions_by_verdict={name: in_transactions(summary.counts).get(name, 0) for name in (*URGENCY, LOOKS_LATE)},
        transactions=[_transaction(row, summary.known) for row in results.transactions],
        transactions_left_out=sum(verdicts.values()) - len(results.transactions),
        ended=[
            EndedTransactionEntry(**{name: row[name] for name in EndedTransactionEntry.model_fields})
            for row in summary.ended[:SHOWN]
        ],
        acknowledged=[] if summary.known is None else _known(summary.known),
        lag=Lag(
            partitions=results.lag.get("partitions") or 0,
            max_offsets=results.lag.get("offsets") or 0,
            max_seconds=seconds(results.lag.get("ms")),
            longest=[
                LaggingPartition(**{name: row[name] for name in _LAGGING}, lag_seconds=seconds(row["lag_ms"]))
                for row in results.lags
            ],
        ),
        brokers=[
            Broker(
                broker=row["broker"],
                partitions_with_late_transactions=row["partitions_with_late_transactions"],
                active_transaction_open_time_max_seconds=seconds(row["active_transaction_open_time_max_ms"]),
            )
            for row in results.brokers
        ],
        coverage=Coverage(
            partitions_known=summary.partitions_known,
            partitions_quiet=summary.partitions_quiet,
            partitions_read=summary.partitions_read,
            coordinators_known=summary.coordinators_known,
            coordinators_read=summary.coordinators_read,
            partitions={status: results.partitions.get(status, 0) for status in STATUSES},
            unreadable_bytes=summary.unreadable_bytes,
        ),
        findings={name: summary.counts["findings"].get(name, 0) for name in SEVERITIES},
        named_findings=[
            NamedFindings(name=each.name, severity=each.severity, count=each.count)
            for each in summary.findings
            if each.severity != "INFO"
        ],
    )


def _transaction(row: Row, known: Acknowledged | None) -> OpenTransactionEntry:
    instants = {name: None if row[name] is None else instant_json(row[name]) for name in ("blocks_since", "safe_from")}
    entry = None if known is None else known.entry_of(row)
    values = {name: row[name] for name in OpenTransactionEntry.model_fields if name in row}
    return OpenTransactionEntry(**values | instants, acknowledged_by=None if entry is None else entry.by)


def _known(known: Acknowledged) -> list[Known]:
    """The entries that match something, and those that match nothing."""
    active = Counter(id(entry) for _, entry in known.transactions.values())
    entries = {id(entry): entry for _, entry in known.transactions.values()}
    counted = [
        *((entry, active[key], False) for key, entry in entries.items()),
        *((entry, number, False) for entry, number in known.findings),
        *((entry, 0, True) for entry in known.ended),
        *((entry, 0, False) for entry in known.idle),
    ]
    return [
        Known(
            **entry.model_dump(exclude={"until"}), until=instant_json(entry.until_ms), matches=number, is_over=is_over
        )
        for entry, number, is_over in counted
    ]


def seconds(ms: int | None) -> float | None:
    """Seconds of milliseconds."""
    return None if ms is None else ms / 1000
