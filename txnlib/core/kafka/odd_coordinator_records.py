"""What is odd about a coordinator's record, or the step to it.

Each record has the complete state, so "after" is the record itself; the work is in judging the step. A step is judged
only between provably consecutive records, because compaction may have removed others. And a record may stay in the log
although its append timed out and the coordinator took the step back: then the next record follows from an earlier one.
Kafka: `TransactionMetadata.prepareTransitionTo`, `completeTransitionTo`; docs/rules/transactions.md#phantom-appends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, is_ahead
from txnlib.core.kafka.transaction_state import (
    BY_KAFKA_NAME,
    COMPLETE_STATES,
    NEVER_WRITTEN_STATES,
    PREPARED_STATES,
    STEPS,
    Step,
    TransactionState,
)

_WRITTEN_BY_NO_COORDINATOR: Final = (
    "no coordinator writes such records. Check that the copies are from one cluster and one time. If they are, look for"
    " an unclean election of that `__transaction_state` partition."
)
ILLEGAL_TRANSITION: Final = Finding(
    name="ILLEGAL_TRANSITION",
    severity=Severity.ERROR,
    topic=Topic.RECORDS,
    meaning=(
        "A record of a transactional id has a state, a producer id or a producer epoch that no coordinator writes"
        " after the record before it."
    ),
    advice=_WRITTEN_BY_NO_COORDINATOR,
)
COORDINATOR_EPOCH_WENT_BACK: Final = Finding(
    name="COORDINATOR_EPOCH_WENT_BACK",
    severity=Severity.ERROR,
    topic=Topic.RECORDS,
    meaning=(
        "The leader epoch of a coordinator partition decreased between two records: two coordinators wrote to it."
    ),
    advice=_WRITTEN_BY_NO_COORDINATOR,
)
EPOCH_BEYOND_EXHAUSTION: Final = Finding(
    name="EPOCH_BEYOND_EXHAUSTION",
    severity=Severity.WARNING,
    topic=Topic.RECORDS,
    meaning=(
        "A transactional id is Empty or Ongoing at an epoch that no client may have: it cannot be fenced (KAFKA-20090)."
    ),
    advice=(
        "the id can no longer be fenced (KAFKA-20090). Stop its application, then let the id expire or give the"
        " application another id."
    ),
)


_S = TransactionState


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRecord:
    """The fields of one record of an id on which a step depends. A tombstone has no state."""

    state_name: str | None
    producer_id: int | None
    producer_epoch: int | None
    next_producer_id: int | None
    start_ms: int | None
    lists_partitions: bool
    #: The leader epoch of the batch around it.
    coordinator_epoch: int | None

    @property
    def state(self) -> TransactionState | None:
        return None if self.state_name is None else BY_KAFKA_NAME[self.state_name]

    @property
    def epoch(self) -> int:
        """The producer epoch. No broker writes a record without one; 0 stands in for it."""
        return self.producer_epoch or 0

    @property
    def aborts_nothing(self) -> bool:
        """Whether it is the abort of an empty transaction, which is the only record of that transaction."""
        return self.state is _S.PREPARE_ABORT and not self.lists_partitions


@dataclass(frozen=True, slots=True)
class SuspectStep:
    """`suspect` of `coordinator_states`: a record that a native predicate did not clear, and the one before it."""

    before: CoordinatorRecord | None
    after: CoordinatorRecord
    #: Whether every offset between the two is present in the log, so that nothing between them was compacted away.
    is_consecutive: bool


def oddities(step: SuspectStep) -> Iterator[tuple[Finding, str]]:
    """The findings about a record and about the step to it, each with what is odd."""
    before, after = step.before, step.after
    if after.state in (_S.EMPTY, _S.ONGOING) and after.epoch > EXHAUSTED_EPOCH:
        yield EPOCH_BEYOND_EXHAUSTION, f"producer epoch {after.epoch}"
    if before is not None and is_ahead(before.coordinator_epoch, of=after.coordinator_epoch):
        epochs = f"{before.coordinator_epoch} to {after.coordinator_epoch}"
        yield COORDINATOR_EPOCH_WENT_BACK, f"coordinator epoch {epochs}"
    illegal = list(_illegal(before, after, is_consecutive=step.is_consecutive))
    if illegal:
        yield ILLEGAL_TRANSITION, ", ".join(illegal)


def _illegal(before: CoordinatorRecord | None, after: CoordinatorRecord, *, is_consecutive: bool) -> Iterator[str]:
    """The fields of a record that no coordinator writes after the record before."""
    if after.state in NEVER_WRITTEN_STATES:
        yield "a state that exists only in memory"
    if before is None:
        return
    is_illegal = STEPS[before.state, after.state] is Step.ILLEGAL
    if is_consecutive and is_illegal and not _is_explained(before, after):
        yield "no coordinator takes this step"
    if before.state is None or after.state is None:
        return
    if before.producer_id == after.producer_id:
        if after.epoch < before.epoch and not (is_consecutive and _goes_on_one_epoch_below(before, after)):
            yield f"producer epoch {before.epoch} to {after.epoch}"
    elif is_consecutive and not is_illegal and not _may_change_producer_id(before, after):
        yield f"producer id {before.producer_id} to {after.producer_id}"


def _may_change_producer_id(before: CoordinatorRecord, after: CoordinatorRecord) -> bool:
    """An initialisation brings a new producer id, and a Complete moves to the announced one when epochs are exhausted.

    Brokers before 4.3 do not announce it. An initialisation that timed out is followed by the exhausted producer id.
    """
    if after.state in COMPLETE_STATES and before.state in PREPARED_STATES:
        if before.next_producer_id is not None:
            return after.producer_id == before.next_producer_id
        return before.epoch > EXHAUSTED_EPOCH and after.epoch == 0
    return after.state is _S.EMPTY or (
        before.state is _S.EMPTY and before.epoch == 0 and _client_epoch(after) >= EXHAUSTED_EPOCH
    )


def _client_epoch(record: CoordinatorRecord) -> int:
    return record.epoch - 1 if record.aborts_nothing else record.epoch


# ---- What an append that timed out explains


def _is_explained(before: CoordinatorRecord, after: CoordinatorRecord) -> bool:
    """Whether the step is legal if the coordinator took the record before it back.

    Either a Prepare whose transaction then continues or ends the other way; or the first record of a transaction
    (Ongoing, or the abort of an empty one), whose id then begins again or expires as if it had not begun; or a
    tombstone, whose id then goes on with its producer id. Kafka:
    `TransactionStateManager.writeTombstonesForExpiredTransactionalIds`.
    """
    if before.state is None:
        return after.state is _S.ONGOING or after.aborts_nothing
    if after.state is None:
        return before.state is _S.ONGOING or before.aborts_nothing
    is_same_id = before.producer_id == after.producer_id
    if after.state is _S.EMPTY and (before.state is _S.ONGOING or before.aborts_nothing):
        if is_same_id:
            return after.epoch >= before.epoch
        return before.epoch >= EXHAUSTED_EPOCH and after.epoch == 0
    return (
        before.state in PREPARED_STATES
        and after.state in PREPARED_STATES | {_S.ONGOING}
        and is_same_id
        and (before.start_ms == after.start_ms or (before.aborts_nothing and after.state is _S.ONGOING))
    )


def _goes_on_one_epoch_below(before: CoordinatorRecord, after: CoordinatorRecord) -> bool:
    """An initialisation or a Prepare was taken back, and the transaction of the previous epoch goes on."""
    if after.epoch != before.epoch - 1:
        return False
    if before.state is _S.EMPTY:
        return not after.aborts_nothing
    return before.state in PREPARED_STATES and after.state in PREPARED_STATES | {_S.ONGOING}
