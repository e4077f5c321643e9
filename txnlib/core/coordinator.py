"""What does a coordinator know of a transactional id after a record, and was the step to it legal?

Each record carries the whole state, so "after" is the record itself; the work is in judging the step. Two things make a
strange step innocent: compaction (records between the two may be gone) and phantom appends (the record stayed in the log
although the coordinator took the step back in memory). So steps are judged only between records that are provably
consecutive, and what a phantom explains is called one. Kafka: `TransactionMetadata.prepareTransitionTo`,
`completeTransitionTo`; semantics.md 1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding import Finding
from txnlib.core.sentinels import EXHAUSTED_EPOCH, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_ID
from txnlib.core.transaction_log import TransactionLogEntry
from txnlib.core.transaction_state import (
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
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class Transition:
    """The step between two records of one id; `step` is None where records between them may be gone."""

    step: Step | None
    findings: tuple[Finding, ...]


def transition(before: CoordinatorRecord | None, after: CoordinatorRecord, *, is_consecutive: bool) -> Transition:
    """How an id got from one record to the next.

    `is_consecutive`: every offset between the two is present in the log, so nothing was compacted away between them.
    """
    findings = list(_findings_of_record(after.entry))
    if before is None:
        return Transition(None, tuple(findings))
    if after.partition_leader_epoch < before.partition_leader_epoch:
        findings.append(Finding.COORDINATOR_EPOCH_WENT_BACK)
    step = None
    if is_consecutive:
        step = STEPS[_state(before.entry), _state(after.entry)]
        findings += _findings_of_step(before.entry, after.entry, step)
    if before.entry and after.entry and _epoch_went_back(before.entry, after.entry):
        findings.append(Finding.PRODUCER_EPOCH_WENT_BACK)
    return Transition(step, tuple(dict.fromkeys(findings)))


def _state(entry: TransactionLogEntry | None) -> TransactionState | None:
    return None if entry is None else entry.transaction_state


def _findings_of_record(entry: TransactionLogEntry | None) -> tuple[Finding, ...]:
    if entry is None:
        return ()
    return tuple(finding for finding, is_odd in RECORD_CHECKS.items() if is_odd(entry))


def _starts(entry: TransactionLogEntry) -> bool:
    return entry.transaction_state in PREPARED_STATES | COMPLETE_STATES | {_S.ONGOING}


def _is_with_client(entry: TransactionLogEntry) -> bool:
    return entry.transaction_state in {_S.EMPTY, _S.ONGOING}


#: finding -> whether one record alone shows it.
RECORD_CHECKS: Final[Mapping[Finding, Callable[[TransactionLogEntry], bool]]] = {
    Finding.STATE_NEVER_WRITTEN: lambda e: e.transaction_state in NEVER_WRITTEN_STATES,
    Finding.START_TIMESTAMP_MISSING: lambda e: _starts(e) and e.start_timestamp_ms is not None and e.start_timestamp_ms < 0,
    Finding.PARTITIONS_IN_EMPTY: lambda e: e.transaction_state is _S.EMPTY and bool(e.transaction_partitions),
    Finding.EPOCH_BEYOND_EXHAUSTION: lambda e: _is_with_client(e) and e.producer_epoch > EXHAUSTED_EPOCH,
}


def _findings_of_step(before: TransactionLogEntry | None, after: TransactionLogEntry | None, step: Step) -> list[Finding]:
    findings = []
    if step is Step.ILLEGAL:
        is_phantom = before is not None and _is_phantom(before, after)
        findings.append(Finding.SUSPICIOUS_PHANTOM_APPEND if is_phantom else Finding.ILLEGAL_TRANSITION)
    if before is None or after is None or step is Step.ILLEGAL:
        return findings
    for (states_before, states_after), checks in STEP_CHECKS.items():
        if before.transaction_state in states_before and after.transaction_state in states_after:
            findings += [finding for finding, is_odd in checks.items() if is_odd(before, after)]
    if _shrank_as_a_phantom(before, after):
        findings = [Finding.SUSPICIOUS_PHANTOM_APPEND if f is Finding.PARTITIONS_CHANGED else f for f in findings]
    return findings


def _is_phantom(before: TransactionLogEntry, after: TransactionLogEntry | None) -> bool:
    """A record taken back in memory (semantics.md 1.9), so that what follows does not follow from it.

    A Prepare, whose transaction then goes on, or ends the other way; or the first Ongoing of a transaction, whose id then
    begins anew, or expires, as if it had never begun one.
    """
    if before.transaction_state is _S.ONGOING:
        begins_anew = after is not None and after.transaction_state is _S.EMPTY and after.producer_id == before.producer_id
        return after is None or (begins_anew and after.producer_epoch >= before.producer_epoch)
    return after is not None and (
        before.transaction_state in PREPARED_STATES
        and after.transaction_state in PREPARED_STATES | {_S.ONGOING}
        and before.producer_id == after.producer_id
        and before.start_timestamp_ms == after.start_timestamp_ms
    )


def _shrank_as_a_phantom(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """Ongoing{a} whose append timed out, then Ongoing{b} or Prepare{}: the set shrinks without a bug in the broker.

    No append that timed out explains a Prepare with a partition that no Ongoing has.
    """
    if before.transaction_state is not _S.ONGOING:
        return False
    return after.transaction_state is _S.ONGOING or _partitions(after) < _partitions(before)


def _partitions(entry: TransactionLogEntry) -> frozenset[object]:
    return frozenset(entry.transaction_partitions or ())


def _changed_producer_id(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    return before.producer_id != after.producer_id


def _changed_timeout(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    return before.transaction_timeout_ms != after.transaction_timeout_ms


def _completed_as_another(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    """A Complete keeps the producer id, or moves to (next id, 0) at epoch exhaustion.

    Brokers before 4.3 do not write the next id, so an exhausted epoch alone allows the move.
    """
    if before.producer_id == after.producer_id:
        return False
    if before.next_producer_id not in (None, NO_PRODUCER_ID):
        return after.producer_id != before.next_producer_id
    return not (before.producer_epoch > EXHAUSTED_EPOCH and after.producer_epoch == 0)


def _bumped_twice(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    return before.producer_id == after.producer_id and after.producer_epoch - before.producer_epoch == 2


_States = frozenset[TransactionState]
_StepCheck = Callable[[TransactionLogEntry, TransactionLogEntry], bool]
_ONGOING: Final[_States] = frozenset({_S.ONGOING})

#: (states before, states after) -> finding -> whether the two values show it (semantics.md 1.6, last table).
STEP_CHECKS: Final[Mapping[tuple[_States, _States], Mapping[Finding, _StepCheck]]] = {
    (_ONGOING, _ONGOING): {
        Finding.PRODUCER_ID_CHANGED: _changed_producer_id,
        Finding.TIMEOUT_CHANGED: _changed_timeout,
        Finding.PARTITIONS_CHANGED: lambda b, a: not _partitions(b) <= _partitions(a),
    },
    (_ONGOING, PREPARED_STATES): {
        Finding.PRODUCER_ID_CHANGED: _changed_producer_id,
        Finding.TIMEOUT_CHANGED: _changed_timeout,
        Finding.PARTITIONS_CHANGED: lambda b, a: _partitions(b) != _partitions(a),
        Finding.EPOCH_DOUBLE_BUMP: _bumped_twice,
    },
    (PREPARED_STATES, PREPARED_STATES): {  # a retry; another value is none
        Finding.PRODUCER_ID_CHANGED: _changed_producer_id,
        Finding.TIMEOUT_CHANGED: _changed_timeout,
        Finding.PARTITIONS_CHANGED: lambda b, a: _partitions(b) != _partitions(a),
    },
    (PREPARED_STATES, COMPLETE_STATES): {
        Finding.PRODUCER_ID_CHANGED: _completed_as_another,
        Finding.TIMEOUT_CHANGED: _changed_timeout,
    },
}


def _epoch_went_back(before: TransactionLogEntry, after: TransactionLogEntry) -> bool:
    return before.producer_id == after.producer_id and after.producer_epoch < before.producer_epoch
