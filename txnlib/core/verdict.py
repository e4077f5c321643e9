"""Will anybody end this open transaction, and is it overdue? Evidence to a verdict with its reason.

Three steps, each a table: what holds the transaction (`standing`), what stands in the way of saying so (`doubt`), and
whether the standing, at this age, is a verdict. Kafka's live tool compares neither epochs nor states and stays silent
about stuck and refused markers; this is the strict reading (semantics.md 4.4), and `find_hanging` beside it the exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from txnlib.core.evidence import CoordinatorSide, Evidence, Owner, PartitionSide, Thresholds
from txnlib.core.find_hanging import find_hanging, is_candidate
from txnlib.core.sentinels import CLOCKS_DIFFER_MS, LATE_TRANSACTION_BUFFER_MS
from txnlib.core.transaction_state import TransactionState


class Verdict(StrEnum):
    HANGING = "HANGING"
    SUSPECT = "SUSPECT"
    STUCK = "STUCK"
    LATE = "LATE"
    OPEN = "OPEN"
    UNKNOWN = "UNKNOWN"


class Reason(StrEnum):
    # Nobody will end it.
    PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR = "PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR"
    TRANSACTIONAL_ID_EXPIRED = "TRANSACTIONAL_ID_EXPIRED"
    PRODUCER_ID_ROTATED = "PRODUCER_ID_ROTATED"
    WRITTEN_AFTER_MARKER = "WRITTEN_AFTER_MARKER"
    PARTITION_NOT_IN_TRANSACTION = "PARTITION_NOT_IN_TRANSACTION"
    EPOCH_AHEAD_OF_COORDINATOR = "EPOCH_AHEAD_OF_COORDINATOR"
    # Its coordinator decided.
    MARKER_PENDING = "MARKER_PENDING"
    MARKER_OVERDUE = "MARKER_OVERDUE"
    MARKER_REFUSED = "MARKER_REFUSED"
    # Its coordinator expects it.
    EXPECTED = "EXPECTED"
    OVERDUE = "OVERDUE"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"
    # It cannot be said.
    COORDINATOR_PARTITION_NOT_CAPTURED = "COORDINATOR_PARTITION_NOT_CAPTURED"
    COORDINATOR_LOG_DAMAGED = "COORDINATOR_LOG_DAMAGED"
    PARTITION_LOG_INCOMPLETE = "PARTITION_LOG_INCOMPLETE"
    CAPTURE_SKEW = "CAPTURE_SKEW"


#: reason -> one plain sentence for an on-call engineer. `{…}` are fields of the evidence.
EXPLANATIONS: Final[Mapping[Reason, str]] = {
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        "no transactional id in any coordinator partition ever had producer {producer_id}, so nobody will write its marker"
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        "its transactional id {transactional_id} expired (tombstone), and an expired producer id never comes back"
    ),
    Reason.PRODUCER_ID_ROTATED: (
        "{transactional_id} goes on with another producer id, so nobody will write a marker for producer {producer_id}"
    ),
    Reason.WRITTEN_AFTER_MARKER: (
        "written after the {marker_type} marker at offset {marker_offset}; its coordinator holds no transaction with this "
        "partition ({transactional_id} is in {state})"
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        "its coordinator does not list this partition in a transaction of {transactional_id} (state {state})"
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        "the partition has seen epoch {producer_epoch}, its coordinator holds epoch {coordinator_producer_epoch}: the marker "
        "will be refused"
    ),
    Reason.MARKER_PENDING: "its coordinator decided ({state}); the marker is on its way",
    Reason.MARKER_OVERDUE: "its coordinator decided ({state}) long ago, and the marker has not reached this partition",
    Reason.MARKER_REFUSED: (
        "its coordinator decided ({state}), but the partition refuses the marker: it has seen epoch {producer_epoch} and "
        "coordinator epoch {coordinator_epoch}"
    ),
    Reason.EXPECTED: "{transactional_id} is {state} with this partition, and in time",
    Reason.OVERDUE: "{transactional_id} is still {state} with this partition, and its coordinator should have aborted it",
    Reason.TWO_PHASE_COMMIT: "{transactional_id} takes part in two-phase commit: it may stay open until its owner decides",
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: (
        "no captured coordinator knows producer {producer_id}, and __transaction_state partition(s) {missing} are missing or "
        "incomplete: it may belong there"
    ),
    Reason.COORDINATOR_LOG_DAMAGED: (
        "records of __transaction_state-{coordinator_partition} newer than the last one of {transactional_id} are lost"
    ),
    Reason.PARTITION_LOG_INCOMPLETE: (
        "the copy of this partition has a hole before offset {gap_offset}: the marker may stand in it"
    ),
    Reason.CAPTURE_SKEW: (
        "the copies of the partition and of its coordinator were taken at different instants, and the transaction may have "
        "begun, or ended, between them"
    ),
}


#: (verdict, what `find-hanging` prints) where the two differ -> why, in the same sentence.
DIFFERENCES: Final[Mapping[tuple[Verdict, bool], str]] = {
    (Verdict.HANGING, False): "find-hanging stays silent, since it compares neither epochs nor decisions",
    (Verdict.STUCK, False): "find-hanging stays silent about what a coordinator decided",
    (Verdict.UNKNOWN, True): "find-hanging, asked at this instant, would print it",
}


def _is_absorbed(evidence: Evidence) -> bool:
    start, stamped = evidence.at_coordinator.transaction_start_ms, evidence.on_partition.stamped_after_ms
    return start is not None and stamped is not None and stamped < start - CLOCKS_DIFFER_MS


def _is_zombies(evidence: Evidence) -> bool:
    return is_ahead(evidence.at_coordinator.producer_epoch, evidence.on_partition.producer_epoch)


#: What else is odd about a transaction that its coordinator expects, though its marker will end all of it.
ODDITIES: Final[Mapping[str, Callable[[Evidence], bool]]] = {
    "its first records were written before that transaction began, and will be ended with it": _is_absorbed,
    "its records carry an older epoch than its coordinator holds: a fenced producer wrote them": _is_zombies,
}


class LateBy(StrEnum):
    LAST_WRITE = "LAST_WRITE"
    COORDINATOR_START = "COORDINATOR_START"
    BOTH = "BOTH"


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    reason: Reason
    explanation: str
    kafka_find_hanging: bool | None
    late_by: LateBy | None
    age_basis: str
    broker_clock_age_ms: int | None


#: Reasons that mean: no coordinator will end it. A verdict only where nothing stands in doubt.
NOBODY_ENDS_IT: Final = frozenset(
    {
        Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
        Reason.TRANSACTIONAL_ID_EXPIRED,
        Reason.PRODUCER_ID_ROTATED,
        Reason.WRITTEN_AFTER_MARKER,
        Reason.PARTITION_NOT_IN_TRANSACTION,
        Reason.EPOCH_AHEAD_OF_COORDINATOR,
    }
)


class Holds(Enum):
    """What the id's last record makes of this partition."""

    NOTHING = "NOTHING"  # Empty, Complete, or a transaction without this partition
    ONGOING = "ONGOING"
    PREPARED = "PREPARED"


class Marker(Enum):
    """Where the decision's marker stands on this partition; the epoch check applies to a coming marker too."""

    NOT_WRITTEN = "NOT_WRITTEN"
    WRITTEN = "WRITTEN"
    REFUSED = "REFUSED"


#: What holds the transaction when its id still has the producer id.
CURRENT_STANDINGS: Final[Mapping[tuple[Holds, Marker], Reason]] = {
    (Holds.NOTHING, Marker.NOT_WRITTEN): Reason.PARTITION_NOT_IN_TRANSACTION,
    (Holds.NOTHING, Marker.WRITTEN): Reason.WRITTEN_AFTER_MARKER,
    (Holds.NOTHING, Marker.REFUSED): Reason.PARTITION_NOT_IN_TRANSACTION,
    (Holds.ONGOING, Marker.NOT_WRITTEN): Reason.EXPECTED,
    (Holds.ONGOING, Marker.WRITTEN): Reason.EXPECTED,
    (Holds.ONGOING, Marker.REFUSED): Reason.EPOCH_AHEAD_OF_COORDINATOR,
    (Holds.PREPARED, Marker.NOT_WRITTEN): Reason.MARKER_PENDING,
    (Holds.PREPARED, Marker.WRITTEN): Reason.WRITTEN_AFTER_MARKER,
    (Holds.PREPARED, Marker.REFUSED): Reason.MARKER_REFUSED,
}

#: What holds the transaction when the id does not have the producer id any more, or never had.
OTHER_STANDINGS: Final[Mapping[Owner, Reason]] = {
    Owner.NOBODY: Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
    Owner.ROTATED: Reason.PRODUCER_ID_ROTATED,
    Owner.EXPIRED: Reason.TRANSACTIONAL_ID_EXPIRED,
}


def judge(evidence: Evidence, thresholds: Thresholds) -> Judgement:
    """The verdict on one open transaction, with its reason in words, and what the live tool would have said."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    reason = standing(evidence, thresholds)
    doubted = doubt(evidence, reason, thresholds)
    late_by, live = None, live_answer(evidence, thresholds)
    if doubted is not None:
        verdict, reason = Verdict.UNKNOWN, doubted
    elif reason in NOBODY_ENDS_IT:
        is_old = is_candidate(partition.last_timestamp_ms, thresholds.as_of_ms, thresholds.max_transaction_timeout_ms)
        verdict = Verdict.HANGING if is_old else Verdict.SUSPECT
    elif reason is Reason.EXPECTED:
        late_by = lateness(evidence, thresholds)
        verdict = Verdict.OPEN if late_by is None else Verdict.LATE
        reason = Reason.EXPECTED if late_by is None else Reason.OVERDUE
    else:
        verdict = DECIDED_VERDICTS[reason]
    return Judgement(
        verdict=verdict,
        reason=reason,
        explanation="; ".join([explain(reason, evidence), *_remarks(verdict, reason, evidence, live)]),
        kafka_find_hanging=live,
        late_by=late_by,
        age_basis="BROKER_CLOCK" if partition.is_broker_clock else "CLIENT_CLOCK",
        broker_clock_age_ms=broker_clock_age_ms(partition, coordinator, thresholds.as_of_ms),
    )


def _remarks(verdict: Verdict, reason: Reason, evidence: Evidence, live: bool | None) -> list[str]:
    """What a reader who compares the verdict with the live tool, or with the records, would ask about."""
    odd = [text for text, applies in ODDITIES.items() if reason in EXPECTED_REASONS and applies(evidence)]
    difference = None if live is None else DIFFERENCES.get((verdict, live))
    return odd if difference is None else [*odd, difference]


#: Reasons that mean: its coordinator holds it and will end it.
EXPECTED_REASONS: Final = frozenset({Reason.EXPECTED, Reason.OVERDUE, Reason.TWO_PHASE_COMMIT})

#: Verdicts that need no age.
DECIDED_VERDICTS: Final[Mapping[Reason, Verdict]] = {
    Reason.MARKER_PENDING: Verdict.OPEN,
    Reason.MARKER_OVERDUE: Verdict.STUCK,
    Reason.MARKER_REFUSED: Verdict.STUCK,
    Reason.TWO_PHASE_COMMIT: Verdict.OPEN,
}


def standing(evidence: Evidence, thresholds: Thresholds) -> Reason:
    """What, by the records alone, holds the transaction."""
    coordinator = evidence.at_coordinator
    if coordinator.owner in OTHER_STANDINGS:
        return OTHER_STANDINGS[coordinator.owner]
    reason = CURRENT_STANDINGS[_holds(coordinator), _marker(evidence, thresholds)]
    if reason is Reason.EXPECTED and coordinator.is_two_phase_commit:
        return Reason.TWO_PHASE_COMMIT
    if reason is Reason.MARKER_PENDING and _is_overdue(coordinator, thresholds):
        return Reason.MARKER_OVERDUE
    return reason


def _holds(coordinator: CoordinatorSide) -> Holds:
    if not coordinator.is_listed:
        return Holds.NOTHING
    if coordinator.state is TransactionState.ONGOING:
        return Holds.ONGOING
    return Holds.PREPARED if coordinator.is_prepared else Holds.NOTHING


def _is_overdue(coordinator: CoordinatorSide, thresholds: Thresholds) -> bool:
    decided = coordinator.record_ms
    return decided is not None and thresholds.as_of_ms - decided > thresholds.stuck_after_ms


def _marker(evidence: Evidence, thresholds: Thresholds) -> Marker:
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    if coordinator.is_prepared and coordinator.is_listed:
        if is_decision_marker(partition, coordinator, thresholds.clock_tolerance_ms):
            return Marker.WRITTEN
        return Marker.REFUSED if _refuses(partition, coordinator) else Marker.NOT_WRITTEN
    if coordinator.is_listed and is_ahead(partition.producer_epoch, coordinator.producer_epoch):
        return Marker.REFUSED
    return Marker.WRITTEN if follows_last_transaction(partition, coordinator, thresholds.clock_tolerance_ms) else Marker.NOT_WRITTEN


#: Prepare state -> the marker that carries the decision.
DECISIONS: Final[Mapping[TransactionState, str]] = {
    TransactionState.PREPARE_COMMIT: "COMMIT",
    TransactionState.PREPARE_ABORT: "ABORT",
}


def is_decision_marker(partition: PartitionSide, coordinator: CoordinatorSide, clock_tolerance_ms: int) -> bool:
    """Whether the producer's last marker here is the one that the Prepare record promises (semantics.md 4.4).

    TV0 and TV1 reuse an epoch for many transactions, so the time counts too. What a dump does not print cannot disagree.
    """
    decision = None if coordinator.state is None else DECISIONS.get(coordinator.state)
    if partition.marker_offset is None or decision is None:
        return False
    agrees = partition.marker_type in (None, decision)
    agrees &= partition.marker_epoch == coordinator.producer_epoch
    agrees &= not is_ahead(coordinator.record_coordinator_epoch, partition.marker_coordinator_epoch)
    if partition.marker_ms is not None and coordinator.last_update_ms is not None:
        agrees &= partition.marker_ms >= coordinator.last_update_ms - min(clock_tolerance_ms, CLOCKS_DIFFER_MS)
    return agrees


def _refuses(partition: PartitionSide, coordinator: CoordinatorSide) -> bool:
    """A leader refuses a marker whose producer epoch or coordinator epoch is below what the partition has seen."""
    return is_ahead(partition.producer_epoch, coordinator.producer_epoch) or is_ahead(
        partition.coordinator_epoch, coordinator.newest_coordinator_epoch
    )


def is_ahead(seen: int | None, held: int | None) -> bool:
    """Whether an epoch seen in a partition is newer than the one its coordinator holds; what is not known is not."""
    return seen is not None and held is not None and seen > held


def follows_last_transaction(partition: PartitionSide, coordinator: CoordinatorSide, clock_tolerance_ms: int) -> bool:
    """Whether the marker before the open batches ended the id's *last* transaction, so that they came too late for it."""
    if partition.marker_ms is None or coordinator.last_prepared_ms is None:
        return partition.marker_ms is not None and coordinator.last_prepared_ms is None
    return partition.marker_ms >= coordinator.last_prepared_ms - min(clock_tolerance_ms, CLOCKS_DIFFER_MS)


Doubt = Callable[[Evidence, Reason, Thresholds], bool]


def _has_gap(evidence: Evidence, _reason: Reason, _thresholds: Thresholds) -> bool:
    return evidence.on_partition.gap_offset is not None


def _owner_may_be_missing(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    return reason is Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR and bool(evidence.at_coordinator.missing_partitions)


def _newer_record_is_lost(evidence: Evidence, reason: Reason, _thresholds: Thresholds) -> bool:
    lost, last = evidence.at_coordinator.damaged_offset, evidence.at_coordinator.record_offset
    return reason in NOBODY_ENDS_IT and lost is not None and last is not None and last < lost


def _is_skewed(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> bool:
    """DESIGN.md 5.2, two capture instants: it may have begun after the coordinator's copy, or ended after its own."""
    if reason not in NOBODY_ENDS_IT and reason not in (Reason.MARKER_PENDING, Reason.MARKER_OVERDUE):
        return False
    return _ended_after_capture(evidence) or (reason in NOBODY_ENDS_IT and not _began_before_capture(evidence, thresholds))


#: What can stand in the way of a verdict, in the order in which it is named.
DOUBTS: Final[Mapping[Reason, Doubt]] = {
    Reason.PARTITION_LOG_INCOMPLETE: _has_gap,
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: _owner_may_be_missing,
    Reason.COORDINATOR_LOG_DAMAGED: _newer_record_is_lost,
    Reason.CAPTURE_SKEW: _is_skewed,
}


def doubt(evidence: Evidence, reason: Reason, thresholds: Thresholds) -> Reason | None:
    """The first thing that keeps the standing from being a verdict; None if nothing does."""
    return next((named for named, applies in DOUBTS.items() if applies(evidence, reason, thresholds)), None)


def _ended_after_capture(evidence: Evidence) -> bool:
    ended, captured = evidence.at_coordinator.ended_ms, evidence.on_partition.captured_at_ms
    # A copy that is known until no instant may lack any marker.
    return ended is not None and (captured is None or ended > captured)


def _began_before_capture(evidence: Evidence, thresholds: Thresholds) -> bool:
    """Whether the transaction is known to have begun before the coordinator's log was copied."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    copied = coordinator.captured_at_ms
    if copied is None:
        return False
    taken = partition.captured_at_ms if partition.taken_at_ms is None else partition.taken_at_ms
    if taken is not None and copied >= taken:
        return True
    proofs = (partition.stamped_after_ms, partition.checkpointed_ms)
    if any(proof is not None and proof <= copied for proof in proofs):
        return True
    began = partition.first_timestamp_ms
    if began is None or partition.hides_stamps:
        return False
    lower = began if partition.stamped_before_ms is None else partition.stamped_before_ms
    is_credible = partition.is_broker_clock or lower - began <= thresholds.clock_tolerance_ms
    return is_credible and max(began, lower) <= copied


def lateness(evidence: Evidence, thresholds: Thresholds) -> LateBy | None:
    """By which rule an expected transaction is overdue: the brokers' metric, the coordinator's timeout, both, or none."""
    written, coordinator = evidence.on_partition.last_timestamp_ms, evidence.at_coordinator
    limit = thresholds.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    by_write = written is not None and thresholds.as_of_ms - written > limit
    start, timeout = coordinator.transaction_start_ms, coordinator.transaction_timeout_ms
    by_start = (
        start is not None and timeout is not None and thresholds.as_of_ms > start + timeout + thresholds.timeout_scan_interval_ms
    )
    return LATE_BY[by_write, by_start]


#: (the last write is older than the brokers' limit, the coordinator's timeout has passed) -> how it is late.
LATE_BY: Final[Mapping[tuple[bool, bool], LateBy | None]] = {
    (False, False): None,
    (True, False): LateBy.LAST_WRITE,
    (False, True): LateBy.COORDINATOR_START,
    (True, True): LateBy.BOTH,
}


def live_answer(evidence: Evidence, thresholds: Thresholds) -> bool | None:
    """Whether `kafka-transactions.sh find-hanging` would have printed the row; None if missing coordinators decide it.

    The live description of a prepared id lists only partitions whose marker was not acknowledged yet.
    """
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    is_listed = coordinator.is_active and coordinator.is_listed
    if is_listed and coordinator.is_prepared:
        is_listed = not is_decision_marker(partition, coordinator, thresholds.clock_tolerance_ms)
    return find_hanging(
        is_candidate=is_candidate(partition.last_timestamp_ms, thresholds.as_of_ms, thresholds.max_transaction_timeout_ms),
        is_id_known=coordinator.is_current,
        is_partition_listed=is_listed,
        are_coordinators_complete=not coordinator.missing_partitions,
    )


def broker_clock_age_ms(partition: PartitionSide, coordinator: CoordinatorSide, as_of_ms: int) -> int | None:
    """How long brokers' clocks prove the transaction to be open; None where nothing broker-stamped stands around it."""
    proofs = [partition.stamped_after_ms]
    if partition.is_broker_clock:
        proofs.append(partition.first_timestamp_ms)
    if coordinator.is_active and coordinator.is_listed:
        proofs.append(coordinator.transaction_start_ms)
    known = [proof for proof in proofs if proof is not None]
    return max(as_of_ms - min(known), 0) if known else None


def explain(reason: Reason, evidence: Evidence) -> str:
    """The reason as one sentence about this transaction."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    return EXPLANATIONS[reason].format(
        producer_id=partition.producer_id,
        producer_epoch=partition.producer_epoch,
        coordinator_epoch="unknown" if partition.coordinator_epoch is None else partition.coordinator_epoch,
        transactional_id=coordinator.transactional_id,
        state="expired" if coordinator.state is None else coordinator.state.kafka_name,
        coordinator_producer_epoch=coordinator.producer_epoch,
        coordinator_partition=coordinator.coordinator_partition,
        marker_type=partition.marker_type or "end",
        marker_offset=partition.marker_offset,
        gap_offset=partition.gap_offset,
        missing=", ".join(str(number) for number in coordinator.missing_partitions) or "none",
    )
