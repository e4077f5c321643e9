"""Findings about transactions whose partitions do not show what their coordinator decided: lost markers, and records
that are older than their transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import precise_time
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.finding_row import FindingRow, OfTransaction, found
from txnlib.core.instants import clock_ms

MARKER_MISSING: Final = Finding(
    name="MARKER_MISSING",
    severity=Severity.CRITICAL,
    topic=Topic.OUTCOME,
    meaning=(
        "A completed transaction has no marker on one of its partitions, although the log of that partition extends"
        " from before the transaction to after it. The severity is WARNING if the transaction was aborted, because"
        " an abort by hand repairs that."
    ),
    advice=(
        "the coordinator considers the transaction complete, but a partition never got its marker. The records"
        " there are read as part of the producer's next transaction, or block consumers as `HANGING`. Check for an"
        " unclean election of that partition at the time in `completed`."
    ),
)
WRITTEN_BEFORE_TRANSACTION: Final = Finding(
    name="WRITTEN_BEFORE_TRANSACTION",
    severity=Severity.ERROR,
    topic=Topic.OUTCOME,
    meaning=(
        "Records were written before the transaction that ended them: they came too late for the previous one, or"
        " its marker was lost."
    ),
    advice=(
        "records became part of the wrong transaction (KAFKA-14402; or, with UNCLEAN_LEADER_ELECTION, a leader lost"
        " a marker). Compare them with the source of the data, and upgrade to transactions v2."
    ),
)


@dataclass(frozen=True, slots=True)
class UnmarkedPartition(OfTransaction):
    """A partition of a completed transaction without a marker, in a log in which it could not have been overlooked."""

    outcome: str
    completed_ms: int


def of_unmarked(partitions: Iterable[UnmarkedPartition]) -> Iterator[FindingRow]:
    """The finding about each partition."""
    for each in partitions:
        yield found(
            MARKER_MISSING,
            f"Complete{each.outcome.capitalize()} at {precise_time(each.completed_ms)}, no marker",
            each,
            # A manual abort repairs a lost ABORT marker, but destroys data after a lost COMMIT marker.
            severity=Severity.WARNING if each.outcome == "ABORT" else None,
        )


@dataclass(frozen=True, slots=True)
class EarlyWrite(OfTransaction):
    """Records of a transaction on a partition whose first batch may be older than the transaction."""

    first_offset: int
    first_timestamp_ms: int
    is_broker_clock: bool | None
    #: The oldest time of a marker from the first batch on, up to the marker that ended it.
    stamp_ms: int | None
    began_ms: int
    #: The same on the partition's clock, as far as the two were compared.
    start_ms: int


def of_early_writes(writes: Iterable[EarlyWrite]) -> Iterator[FindingRow]:
    """The finding about records that are older, by a broker's clock, than the transaction that ended them.

    If a marker after the first batch is older than the transaction, the batch is older still.
    """
    for each in writes:
        proof_ms = clock_ms(each.first_timestamp_ms) if each.is_broker_clock else each.stamp_ms
        if proof_ms is not None and proof_ms < each.start_ms:
            began = precise_time(each.began_ms)
            says = f"written before {precise_time(proof_ms)} by the broker's clock; the transaction began at {began}"
            yield found(WRITTEN_BEFORE_TRANSACTION, says, each, offset=each.first_offset)
