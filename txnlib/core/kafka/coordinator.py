"""The state of a transactional id after each record, and illegal steps.

Each record has the complete state, so "after" is the record itself; the work is in judging the step. Two things excuse
a strange step: compaction (records between the two may be gone) and phantom appends (the record stayed in the log
although the coordinator rolled the step back in memory). So steps are judged only between provably consecutive records,
and a step that a phantom append explains is reported as such. Kafka: `TransactionMetadata.prepareTransitionTo`,
`completeTransitionTo`; docs/rules/transactions.md#missing-coordinator-records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, is_ahead
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import (
    COMPLETE_STATES,
    NEVER_WRITTEN_STATES,
    PREPARED_STATES,
    STEPS,
    Step,
    TransactionState,
)

_S = TransactionState


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """One record of an id: its value (None: tombstone) and the leader epoch of the batch around it."""

    entry: TransactionLogEntry | None
    partition_leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """The step between two records of one id. `step` is None if records between them may be gone."""

    step: Step | None
    findings: tuple[Finding, ...]


def transition(before: CoordinatorRecord | None, after: CoordinatorRecord, *, is_consecutive: bool) -> Transition:
    """The step of an id from one record to the next.

    `is_consecutive`: every offset between the two is present in the log, so nothing between them was compacted away.
    """
    findings = [finding for finding, is_odd in RECORD_CHECKS.items() if after.entry is not None and is_odd(after.entry)]
    if before is None:
        return Transition(None, tuple(findings))
    if is_ahead(before.partition_leader_epoch, of=after.partition_leader_epoch):
        findings.append(Finding.COORDINATOR_EPOCH_WENT_BACK)
    step = None
    if is_consecutive:
        step = STEPS[_state(before.entry), _state(after.entry)]
        findings += _findings_of_step(before.entry, after.entry, step)
    elif before.entry and after.entry and _rose(before.entry, after.entry) < 0:
        findings.append(Finding.PRODUCER_EPOCH_WENT_BACK)
    return Transition(step, tuple(dict.fromkeys(findings)))


def _state(entry: TransactionLogEntry | None) -> TransactionState | None:
    return None if entry is None else entry.transaction_state


def _epoch(entry: TransactionLogEntry) -> int:
    """The producer epoch. No broker writes a record without one; 0 stands in for it."""
    return entry.producer_epoch or 0


def _is_start_known(entry: TransactionLogEntry) -> bool:
    """Whether the start of the transaction, or that there is none, is known. Text without a version may not print
    it."""
    return entry.start_timestamp_ms is not None or entry.version is not None


_BEGUN: Final = PREPARED_STATES | COMPLETE_STATES | {_S.ONGOING}
#: Finding -> predicate on one record.
RECORD_CHECKS: Final[Mapping[Finding, Callable[[TransactionLogEntry], bool]]] = {
    Finding.STATE_NEVER_WRITTEN: lambda e: e.transaction_state in NEVER_WRITTEN_STATES,
    Finding.START_TIMESTAMP_MISSING: lambda e: (
        e.transaction_state in _BEGUN and e.start_timestamp_ms is None and _is_start_known(e)
    ),
    Finding.START_TIMESTAMP_IN_EMPTY: lambda e: e.transaction_state is _S.EMPTY and e.start_timestamp_ms is not None,
    Finding.PARTITIONS_IN_EMPTY: lambda e: e.transaction_state is _S.EMPTY and bool(e.transaction_partitions),
    Finding.EPOCH_BEYOND_EXHAUSTION: lambda e: (
        e.transaction_state in {_S.EMPTY, _S.ONGOING} and _epoch(e) > EXHAUSTED_EPOCH
    ),
}


def _findings_of_step(
    before: TransactionLogEntry | None, after: TransactionLogEntry | None, step: Step
) -> list[Finding]:
    findings = []
    if step is Step.ILLEGAL:
        is_phantom = before is not None and _is_phantom(before, after)
        findings.append(Finding.SUSPICIOUS_PHANTOM_APPEND if is_phantom else Finding.ILLEGAL_TRANSITION)
    if before is None or after is None:
        return findings
    if step is not Step.ILLEGAL:
        for (states_before, states_after), checks in STEP_CHECKS.items():
            if before.transaction_state in states_before and after.transaction_state in states_after:
                findings += [finding for finding, is_odd in checks.items() if is_odd(before, after)]
    if _rose(before, after) < 0:
        findings.append(Finding.PRODUCER_EPOCH_WENT_BACK)
    explained = {finding for was_taken_back, of in PHANTOMS.items() if was_taken_back(before, after) for finding in of}
    return [Finding.SUSPICIOUS_PHANTOM_APPEND if finding in explained else finding for finding in findings]


def _is_phantom(before: TransactionLogEntry, after: TransactionLogEntry | None) -> bool:
    """Whether a record was rolled back in memory, so that the next record does not follow from it.

    Either a Prepare whose transaction then continues or ends the other way; or the first record of a transaction
    (Ongoing, or the abort of an empty one), whose id then begins again as if it had not begun. Only an abort of an
    empty transaction may expire in this way: the expiration of an Ongoing id is never explained by a phantom.
    """
    is_first = before.transaction_state is _S.ONGOING or _aborts_nothing(before)
    if after is None:
        return _aborts_nothing(before)
    if is_first and after.transaction_state is _S.EMPTY:
        return _initialises_instead(before, after)
    return (
        before.transaction_state in PREPARED_STATES
        and after.transaction_state in PREPARED_STATES | {_S.ONGOING}
        and before.producer_id == after.producer_id
        and (before.start_timestamp_ms == after.start_timestamp_ms or _began_twice(before, after))
    )


def _initialises_instead(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """Whether an Empty record may follow in place of a transaction that never began."""
    if before.producer_id == after.producer_id:
        return _epoch(after) >= _epoch(before)
    return _epoch(before) >= EXHAUSTED_EPOCH and _epoch(after) == 0


def _aborts_nothing(entry: TransactionLogEntry) -> bool:
    return entry.transaction_state is _S.PREPARE_ABORT and not entry.transaction_partitions


def _began_twice(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """The first record of a transaction timed out, so a retry, or the abort of an empty transaction, began it again.

    Only the first record of a transaction has its own time as the start.
    """
    may_begin = all(each.transaction_state is _S.ONGOING or _aborts_nothing(each) for each in (before, after))
    return may_begin and all(each.start_timestamp_ms == each.last_update_timestamp_ms for each in (before, after))


def _shrank(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """Ongoing{a} whose append timed out, then Ongoing{b} or Prepare{}: the set shrinks without a bug in the broker.

    No append that timed out explains a Prepare with a partition that no Ongoing has.
    """
    if before.transaction_state is not _S.ONGOING:
        return False
    return after.transaction_state is _S.ONGOING or _partitions(after) < _partitions(before)


def _goes_on_as_before_initialisation(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """An initialisation timed out, and the previous client continues: one epoch back, or with the exhausted producer
    id."""
    if before.transaction_state is not _S.EMPTY:
        return False
    client_epoch = _epoch(after) - 1 if _aborts_nothing(after) else _epoch(after)
    if before.producer_id == after.producer_id:
        return _epoch(before) - client_epoch == 1
    return _epoch(before) == 0 and client_epoch >= EXHAUSTED_EPOCH


def _goes_on_as_before_prepare(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """A Prepare timed out, and its transaction continues at the previous epoch, or is prepared again at a later one."""
    if before.transaction_state not in PREPARED_STATES:
        return False
    if after.transaction_state in PREPARED_STATES:
        return _rose(before, after) in (-1, 1, 2)
    return after.transaction_state is _S.ONGOING and _rose(before, after) == -1


def _initialised_over_a_gap(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """An epoch gap of 2: there was a record between the two that is not in the log."""
    return after.transaction_state is _S.EMPTY and _rose(before, after) == 2


def _partitions(entry: TransactionLogEntry) -> frozenset[object]:
    return frozenset(entry.transaction_partitions or ())


def _rose(before: TransactionLogEntry, after: TransactionLogEntry) -> int:
    """The increase of the epoch; 0 if the producer id changed."""
    return _epoch(after) - _epoch(before) if before.producer_id == after.producer_id else 0


def _changed_start(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    return _is_start_known(before) and _is_start_known(after) and before.start_timestamp_ms != after.start_timestamp_ms


def _completed_as_another(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """A Complete keeps the producer id, or moves to (next id, 0) at epoch exhaustion.

    Brokers before 4.3 do not write the next id, so an exhausted epoch alone allows the move.
    """
    if before.producer_id == after.producer_id:
        return False
    if before.next_producer_id is not None:
        return after.producer_id != before.next_producer_id
    return not (_epoch(before) > EXHAUSTED_EPOCH and _epoch(after) == 0)


def _completed_at_another_epoch(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """A Complete has the epoch of its Prepare, or the announced one, which is 0 unless KIP-939 names it."""
    is_announced = after.producer_id == before.next_producer_id
    if is_announced and before.next_producer_epoch is not None:
        return _epoch(after) != before.next_producer_epoch
    if before.producer_id == after.producer_id:
        return _rose(before, after) > 0
    return is_announced and _epoch(after) != 0


def _initialised_at_another_epoch(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    if before.producer_id == after.producer_id:
        return _rose(before, after) > 1
    return _epoch(after) != 0


_States = frozenset[TransactionState]
_StepCheck = Callable[[TransactionLogEntry, TransactionLogEntry], bool]
_ONGOING: Final[_States] = frozenset({_S.ONGOING})
_EMPTY: Final[_States] = frozenset({_S.EMPTY})
_NOT_BEGUN: Final[_States] = _EMPTY | COMPLETE_STATES

_KEPT: Final[Mapping[Finding, _StepCheck]] = {
    Finding.PRODUCER_ID_CHANGED: lambda b, a: b.producer_id != a.producer_id,
    Finding.UNEXPECTED_PRODUCER_EPOCH: lambda b, a: _rose(b, a) > 0,
    Finding.TIMEOUT_CHANGED: lambda b, a: b.transaction_timeout_ms != a.transaction_timeout_ms,
}
_KEPT_ONCE_BEGUN: Final[Mapping[Finding, _StepCheck]] = {**_KEPT, Finding.START_TIMESTAMP_CHANGED: _changed_start}

#: (states before, states after) -> finding -> predicate on the two values
#: (docs/rules/transactions.md#values-that-a-step-keeps).
STEP_CHECKS: Final[Mapping[tuple[_States, _States], Mapping[Finding, _StepCheck]]] = {
    (_NOT_BEGUN, _EMPTY): {Finding.UNEXPECTED_PRODUCER_EPOCH: _initialised_at_another_epoch},
    (_NOT_BEGUN, _ONGOING): _KEPT,
    (_NOT_BEGUN, PREPARED_STATES): {  # the abort of an empty transaction, by a client of transactions v2
        **_KEPT,
        Finding.UNEXPECTED_PRODUCER_EPOCH: lambda b, a: b.producer_id == a.producer_id and _rose(b, a) not in (-1, 1),
        Finding.PARTITIONS_CHANGED: lambda b, a: bool(_partitions(a)),
    },
    (_ONGOING, _ONGOING): {
        **_KEPT_ONCE_BEGUN,
        Finding.PARTITIONS_CHANGED: lambda b, a: not _partitions(b) <= _partitions(a),
    },
    (_ONGOING, PREPARED_STATES): {
        Finding.PRODUCER_ID_CHANGED: _KEPT[Finding.PRODUCER_ID_CHANGED],
        Finding.UNEXPECTED_PRODUCER_EPOCH: lambda b, a: _rose(b, a) > 2,
        Finding.EPOCH_DOUBLE_BUMP: lambda b, a: _rose(b, a) == 2,
        Finding.TIMEOUT_CHANGED: _KEPT[Finding.TIMEOUT_CHANGED],
        Finding.START_TIMESTAMP_CHANGED: _changed_start,
        Finding.PARTITIONS_CHANGED: lambda b, a: _partitions(b) != _partitions(a),
    },
    (PREPARED_STATES, PREPARED_STATES): {  # a retry, unless the value differs
        **_KEPT_ONCE_BEGUN,
        Finding.PARTITIONS_CHANGED: lambda b, a: _partitions(b) != _partitions(a),
    },
    (PREPARED_STATES, COMPLETE_STATES): {
        **_KEPT_ONCE_BEGUN,
        Finding.PRODUCER_ID_CHANGED: _completed_as_another,
        Finding.UNEXPECTED_PRODUCER_EPOCH: _completed_at_another_epoch,
    },
    (COMPLETE_STATES, COMPLETE_STATES): _KEPT_ONCE_BEGUN,  # a retry
}

#: How the previous record may have been rolled back in memory -> what that explains in the step
#: (docs/rules/transactions.md#phantom-appends).
PHANTOMS: Final[Mapping[_StepCheck, frozenset[Finding]]] = {
    _shrank: frozenset({Finding.PARTITIONS_CHANGED}),
    _began_twice: frozenset({Finding.START_TIMESTAMP_CHANGED, Finding.PARTITIONS_CHANGED}),
    _goes_on_as_before_initialisation: frozenset(
        {
            Finding.PRODUCER_ID_CHANGED,
            Finding.UNEXPECTED_PRODUCER_EPOCH,
            Finding.PRODUCER_EPOCH_WENT_BACK,
            Finding.TIMEOUT_CHANGED,
        }
    ),
    _goes_on_as_before_prepare: frozenset({Finding.UNEXPECTED_PRODUCER_EPOCH, Finding.PRODUCER_EPOCH_WENT_BACK}),
    _initialised_over_a_gap: frozenset({Finding.UNEXPECTED_PRODUCER_EPOCH}),
}
