"""The conditions for a safe abort. Each has the text to print where it fails. Source: DESIGN.md 5.4.

A marker by hand bypasses the coordinator. It is right only if no coordinator will ever write one, and it reverts acknowledged
records if a COMMIT was decided. Unknown facts count as not met. Kafka: `TransactionsCommand.AbortTransactionCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.display import duration, instant
from txnlib.core.instants import clock_ms, latest_ms
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.ages import known_at_ms, proven_since_ms
from txnlib.core.verdicts.evidence import Crc, Decided, Evidence, Owner, Thresholds
from txnlib.core.verdicts.reason import Reason, Verdict


class Condition(StrEnum):
    VERDICT_IS_HANGING = "VERDICT_IS_HANGING"
    AGE_IS_PROVEN = "AGE_IS_PROVEN"
    COPIES_ARE_CURRENT = "COPIES_ARE_CURRENT"
    COORDINATORS_ARE_COUNTED = "COORDINATORS_ARE_COUNTED"
    START_IS_EXACT = "START_IS_EXACT"
    START_IS_COMMITTED = "START_IS_COMMITTED"
    CRC_IS_VALID = "CRC_IS_VALID"
    PARTITION_HAS_A_LEADER = "PARTITION_HAS_A_LEADER"
    NO_COMMIT_IS_DUE = "NO_COMMIT_IS_DUE"
    NO_COORDINATOR_HOLDS_IT = "NO_COORDINATOR_HOLDS_IT"
    NO_ERROR_IS_FOUND = "NO_ERROR_IS_FOUND"


@dataclass(frozen=True, slots=True)
class Case:
    """The input of the conditions."""

    evidence: Evidence
    verdict: Verdict
    reason: Reason
    thresholds: Thresholds

    @property
    def at_ms(self) -> int:
        return known_at_ms(self.evidence, self.thresholds)


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of a safe abort: whether it holds, and what it means, or why it does not hold."""

    condition: Condition
    holds: bool
    says: str


#: Condition, in order of precedence -> what it means.
CONDITIONS: Final[Mapping[Condition, str]] = {
    Condition.VERDICT_IS_HANGING: "no coordinator will end it, and it is older than the timeout",
    Condition.AGE_IS_PROVEN: "brokers' clocks prove that age",
    Condition.COPIES_ARE_CURRENT: (
        "the copies of the partition and of every coordinator partition that could own it are current and whole"
    ),
    Condition.COORDINATORS_ARE_COUNTED: "the number of coordinator partitions is known",
    Condition.START_IS_EXACT: "its first batch is known",
    Condition.START_IS_COMMITTED: "its first batch is below the high watermark",
    Condition.CRC_IS_VALID: "the CRC of every batch that the verdict depends on was checked",
    Condition.PARTITION_HAS_A_LEADER: "the partition has a leader, according to capture.json or the metadata log",
    Condition.NO_COMMIT_IS_DUE: "if a COMMIT was decided, its marker is in the partition",
    Condition.NO_COORDINATOR_HOLDS_IT: "no transaction of its transactional id may still end it",
    Condition.NO_ERROR_IS_FOUND: "no finding of severity ERROR or CRITICAL names it",
}


def checks(case: Case) -> tuple[Check, ...]:
    """All conditions, in order, each with the reason why it is not met. An abort is safe if all are met."""
    problems = {condition: _PROBLEMS[condition](case) for condition in CONDITIONS}
    return tuple(Check(condition, problem is None, problem or CONDITIONS[condition]) for condition, problem in problems.items())


def safe_from_ms(case: Case, found: Sequence[Check]) -> int | None:
    """When the age will be proven by time alone, in epoch ms; None if something else is missing.

    If nothing else proves an age, this audit does: the transaction was open at its instant. `found`: the checks of the case.
    """
    missing = [check.condition for check in found if not check.holds]
    if missing not in ([Condition.AGE_IS_PROVEN], [Condition.VERDICT_IS_HANGING], _YOUNG) or case.verdict not in _MAY_AGE:
        return None
    since = proven_since_ms(case.evidence)
    return (case.at_ms if since is None else since) + case.thresholds.max_transaction_timeout_ms + 1


_YOUNG: Final = [Condition.VERDICT_IS_HANGING, Condition.AGE_IS_PROVEN]
_MAY_AGE: Final = (Verdict.HANGING, Verdict.SUSPECT)


def _verdict(case: Case) -> str | None:
    return None if case.verdict is Verdict.HANGING else f"the verdict is {case.verdict}"


def _age(case: Case) -> str | None:
    since = proven_since_ms(case.evidence)
    if since is None:
        return "no broker's clock proves its age: its timestamps come from the client"
    age = max(case.at_ms - since, 0)
    if age > case.thresholds.max_transaction_timeout_ms:
        return None
    return f"brokers' clocks prove only {duration(age)} of its age: the client's timestamps may lie in the past"


def _currency(case: Case) -> str | None:
    partition, coordinator = case.evidence.on_partition, case.evidence.at_coordinator
    if not partition.is_current:
        return f"the copy of the partition is not known to be current: copy its leader's{_broker(partition.leader)}"
    if not coordinator.is_log_current:
        which = _coordinators(case)
        return f"the copy of {which} is not known to be current: copy its leader's{_broker(coordinator.leader)}"
    if coordinator.damaged_offset is not None:
        return f"{_coordinators(case)} is damaged below offset {coordinator.damaged_offset}: copy another replica of it"
    if coordinator.owner is Owner.NOBODY and coordinator.are_partitions_missing:
        return f"coordinator partitions are missing: copy them{_broker(coordinator.leader)}"
    return None


def _broker(leader: str | None) -> str:
    return "" if leader is None else f" (broker {leader})"


def _coordinators(case: Case) -> str:
    number = case.evidence.at_coordinator.coordinator_partition
    return "a coordinator partition" if number is None else f"__transaction_state-{number}"


def _count(case: Case) -> str | None:
    coordinator = case.evidence.at_coordinator
    allowed = {CountBasis.GIVEN} if coordinator.owner is Owner.NOBODY else {CountBasis.GIVEN, CountBasis.DEFAULT}
    if coordinator.count_basis in allowed:
        return None
    return (
        "the number of coordinator partitions is assumed: give --coordinator-partitions, note it in capture.json, or copy the "
        "cluster's metadata log"
    )


def _start(case: Case) -> str | None:
    if case.evidence.on_partition.is_start_exact:
        return None
    return "its first batch may be missing from this copy, so its true start offset is not known: copy another replica"


def _committed(case: Case) -> str | None:
    is_committed = case.evidence.on_partition.is_start_committed
    if is_committed is None:
        return "the high watermark is not known: copy the broker's replication-offset-checkpoint"
    return None if is_committed else "it begins at or above the high watermark: an election may still remove it; capture again"


def _crc(case: Case) -> str | None:
    return {
        Crc.VALID: None,
        Crc.NOT_CHECKED: "it was read from text, which has no bytes to check: audit the raw segments",
        Crc.INVALID: "the CRC of one of its batches does not match: copy another replica",
    }[case.evidence.on_partition.crc]


def _leader(case: Case) -> str | None:
    has_leader = case.evidence.on_partition.has_leader
    if has_leader is None:
        return (
            "the leader of the partition is not known for certain: copy __cluster_metadata-0 of a running broker, or add the "
            "leader to capture.json (partitions)"
        )
    return None if has_leader else "the partition has no leader: no marker can be written until it has one"


def _commit(case: Case) -> str | None:
    partition, due = case.evidence.on_partition, case.evidence.at_coordinator.commit_due
    if due is not None and due.is_marked is None:
        if _began_after(case, due):
            return None
        return (
            f"its coordinator decided COMMIT at {instant(due.decided_ms)}, and compaction removed the records that show whether "
            "the decision includes this partition: first look for its marker in another replica"
        )
    if due is not None:
        return (
            "a COMMIT marker is due here: the tool can only abort, which would discard acknowledged records; first look for a "
            f"replica or an old leader that has it (a marker would need {marker_fields(partition.producer_id, due)})"
        )
    if partition.sibling_commit_ms is not None:
        return (
            "this producer has committed on another partition since this began, and no record shows which partitions that "
            "transaction included: a COMMIT marker may be due here, too"
        )
    return None


def marker_fields(producer_id: int, due: Decided) -> str:
    """The fields of a marker for a decision, in words."""
    version = "not known" if due.transaction_version is None else due.transaction_version
    return (
        f"type {due.type}, producer id {producer_id}, producer epoch {_shown(due.producer_epoch)}, coordinator epoch "
        f"{_shown(due.coordinator_epoch)}, transaction version {version}"
    )


def _shown(value: int | None) -> str:
    return "not known" if value is None else str(value)


def _began_after(case: Case, due: Decided) -> bool:
    """Whether the open records are younger than a decision of which only the last record is left."""
    partition = case.evidence.on_partition
    ended = latest_ms(due.completed_ms if due.completed_ms is not None else due.decided_ms)
    stamped = clock_ms(partition.stamped_before_ms)
    if ended is not None and stamped is not None and stamped > ended + partition.clocks_differ_ms:
        return True
    is_v2 = (due.transaction_version or 0) >= 2
    return is_v2 and due.producer_epoch is not None and partition.producer_epoch >= due.producer_epoch


def _holder(case: Case) -> str | None:
    coordinator = case.evidence.at_coordinator
    return next((why for applies, why in _HOLDERS if applies(case)), None) if coordinator.has_id else _given_up(case)


def _given_up(case: Case) -> str | None:
    """An abandoned producer id ends with its last decision, but markers of a COMMIT in progress are still to come."""
    is_committing = case.evidence.at_coordinator.state is TransactionState.PREPARE_COMMIT
    return _COMMITTING if is_committing else None


_COMMITTING: Final = "its transactional id is in PrepareCommit: an abort here could split the outcome"

#: Properties of a living transactional id that forbid an abort by hand, in order of precedence.
_HOLDERS: Final[tuple[tuple[Callable[[Case], bool], str], ...]] = (
    (
        lambda case: case.reason is Reason.EPOCH_AHEAD_OF_COORDINATOR,
        "its coordinator still lists the partition, but can no longer end the transaction there: stop the application, so that it "
        "does not commit, and only then abort here; the coordinator's own marker is refused until the partition forgets the "
        "producer (producer.id.expiration.ms)",
    ),
    (lambda case: case.evidence.at_coordinator.state is TransactionState.PREPARE_COMMIT, _COMMITTING),
    (
        lambda case: case.evidence.at_coordinator.is_active and case.evidence.at_coordinator.is_two_phase_commit,
        "its transactional id is in a two-phase commit that its owner may still commit",
    ),
    (
        lambda case: case.evidence.at_coordinator.is_active or case.evidence.at_coordinator.owner is Owner.NEXT,
        "its transactional id is now in another transaction, which may still add this partition and end it: audit again after that "
        "transaction",
    ),
)


def _alarm(case: Case) -> str | None:
    alarms = case.evidence.on_partition.alarms
    return f"findings name it or its partition: {', '.join(alarms)}; see the table findings" if alarms else None


_PROBLEMS: Final[Mapping[Condition, Callable[[Case], str | None]]] = {
    Condition.VERDICT_IS_HANGING: _verdict,
    Condition.AGE_IS_PROVEN: _age,
    Condition.COPIES_ARE_CURRENT: _currency,
    Condition.COORDINATORS_ARE_COUNTED: _count,
    Condition.START_IS_EXACT: _start,
    Condition.START_IS_COMMITTED: _committed,
    Condition.CRC_IS_VALID: _crc,
    Condition.PARTITION_HAS_A_LEADER: _leader,
    Condition.NO_COMMIT_IS_DUE: _commit,
    Condition.NO_COORDINATOR_HOLDS_IT: _holder,
    Condition.NO_ERROR_IS_FOUND: _alarm,
}

#: Conditions without which a marker by hand would be wrong, not only unproven. No command is printed then.
NEVER_WITHOUT: Final = frozenset(
    {
        Condition.VERDICT_IS_HANGING,
        Condition.CRC_IS_VALID,
        Condition.START_IS_COMMITTED,
        Condition.NO_COMMIT_IS_DUE,
        Condition.NO_COORDINATOR_HOLDS_IT,
    }
)
