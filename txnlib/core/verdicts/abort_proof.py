"""Safe to abort: a proof of five statements, each with its witnesses.

A marker by hand bypasses the coordinator. It is right only if no coordinator will ever write one, and it reverts
acknowledged records if a COMMIT included them. A statement holds if it has a witness and nothing in the capture refutes
it. Each table below lists what refutes a statement, or leaves it without a witness, and what would settle it, in the
order of docs/rules/abort.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.copies import Role
from txnlib.core.display import duration, instant
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS, is_from
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.marker_acceptance import marker_needed
from txnlib.core.kafka_commands import knows_describe_producers
from txnlib.core.verdicts.doubt import NOBODY_ENDS_IT, known_at_ms, made_ms, proven_since_ms
from txnlib.core.verdicts.evidence import Crc, Decided, Election, Evidence, Owner, PartitionSide, Thresholds
from txnlib.core.verdicts.reason import Reason, Verdict


class Statement(StrEnum):
    IS_OPEN_NOW = "IS_OPEN_NOW"
    NO_COORDINATOR_ENDS_IT = "NO_COORDINATOR_ENDS_IT"
    NO_COMMIT_INCLUDES_IT = "NO_COMMIT_INCLUDES_IT"
    IS_OLD_ENOUGH = "IS_OLD_ENOUGH"
    NOTHING_ELSE_IS_WRONG = "NOTHING_ELSE_IS_WRONG"


#: Statement, in order -> what it says.
STATEMENTS: Final[Mapping[Statement, str]] = {
    Statement.IS_OPEN_NOW: "it is open now: the leader's whole copy shows its first batch, below the high watermark",
    Statement.NO_COORDINATOR_ENDS_IT: "no coordinator will end it: the logs of all that could are current and whole",
    Statement.NO_COMMIT_INCLUDES_IT: "no COMMIT includes it",
    Statement.IS_OLD_ENOUGH: "it is older than the timeout by brokers' clocks",
    Statement.NOTHING_ELSE_IS_WRONG: "no finding of severity ERROR or CRITICAL names it",
}


@dataclass(frozen=True, slots=True)
class Case:
    """The input of the statements. `kafka_version`: that of the brokers; None if unknown."""

    evidence: Evidence
    verdict: Verdict
    reason: Reason
    thresholds: Thresholds
    kafka_version: str | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """One statement: whether it holds; what holds, or what fails and what would settle it; and its witnesses, in
    words."""

    name: Statement
    holds: bool
    says: str
    witnesses: tuple[str, ...] = ()


#: What refutes a statement, or leaves it without a witness -> what would settle it.
Refuters = Sequence[tuple[Callable[[Case], bool], str | Callable[[Case], str]]]


def proofs(case: Case) -> tuple[Proof, ...]:
    """The five statements, in order. An abort is safe if all hold."""
    statements = (is_open_now, no_coordinator_ends_it, no_commit_includes_it, is_old_enough, nothing_else_is_wrong)
    return tuple(prove(case) for prove in statements)


def _refuted(case: Case, refuters: Refuters) -> list[str]:
    """What refutes a statement, in words."""
    return [text if isinstance(text, str) else text(case) for applies, text in refuters if applies(case)]


def _settled(statement: Statement, problems: Sequence[str], witnesses: Sequence[str]) -> Proof:
    if problems:
        return Proof(statement, False, "; ".join(problems))
    return Proof(statement, True, STATEMENTS[statement], tuple(witnesses))


# ---- 1. It is open now: docs/rules/abort.md#open-now


def is_open_now(case: Case) -> Proof:
    """The judged copy is the current and whole one of a certain leader; the first batch is known, committed and intact;
    and no other copy has a marker behind it."""
    partition = case.evidence.on_partition
    place, broker = f"{partition.topic}-{partition.partition}", f"broker {partition.leader}"
    witnesses = [
        f"the copy of {place} from {broker}, its leader, taken at {instant(partition.known_until_ms)}",
        f"its first batch at offset {partition.start_offset}, with a valid CRC, below the high watermark",
    ]
    if partition.answered_stable_offset is not None:
        witnesses.append(f"{broker} answered a last stable offset of {partition.answered_stable_offset}")
    return _settled(Statement.IS_OPEN_NOW, _refuted(case, _NOT_OPEN)[:1], witnesses)


def _of_partition(holds: Callable[[PartitionSide], bool]) -> Callable[[Case], bool]:
    return lambda case: holds(case.evidence.on_partition)


_NOT_OPEN: Final[Refuters] = (
    (
        _of_partition(lambda of: bool(of.ended_elsewhere)),
        lambda case: f"it has ended by {', '.join(case.evidence.on_partition.ended_elsewhere)}: capture again",
    ),
    (
        _of_partition(lambda of: of.is_begin_gone),
        "its first batch is gone: only a producer snapshot, or the answer of its leader, shows it; look at its leader"
        " with describe-producers",
    ),
    (
        _of_partition(lambda of: of.crc is Crc.INVALID),
        "the CRC of one of its batches does not match: copy another replica",
    ),
    (
        _of_partition(lambda of: of.crc is Crc.NOT_CHECKED),
        "it was read from text, which has no bytes to check: audit the raw segments",
    ),
    (
        _of_partition(lambda of: of.is_answered_closed),
        "its leader answered, when the capture was taken, that nothing was open there: capture again",
    ),
    (
        _of_partition(lambda of: of.has_leader is None),
        "the leader of the partition is not known for certain: copy __cluster_metadata-0 of a running broker, or add"
        " the leader to capture.json (partitions)",
    ),
    (
        _of_partition(lambda of: of.has_leader is False),
        "the partition has no leader: no marker can be written until it has one",
    ),
    (
        _of_partition(lambda of: of.role != Role.LEADER or not of.is_current),
        "the copy of the partition is not known to be current: copy its leader's log directory",
    ),
    (
        _of_partition(lambda of: of.is_tail_lost),
        "the copy of the partition is damaged behind it: copy another replica",
    ),
    (
        _of_partition(lambda of: of.gap_offset is not None),
        "records behind it are missing, and its marker may have been among them (a cleaner of another replica may have"
        " removed it before it was copied): look for it in the other replicas",
    ),
    (
        _of_partition(lambda of: not of.is_start_exact),
        "its first batch may be missing from this copy, so its true start offset is not known: copy another replica",
    ),
    (
        _of_partition(lambda of: of.is_start_committed is None),
        "the high watermark is not known: copy the broker's replication-offset-checkpoint",
    ),
    (
        _of_partition(lambda of: of.is_start_committed is False),
        "it begins at or above the high watermark: an election may still remove it; capture again",
    ),
)


# ---- 2. No coordinator will end it: docs/rules/abort.md#no-coordinator-left


def no_coordinator_ends_it(case: Case) -> Proof:
    """Every coordinator that could have it is counted, current and whole, and none can include it; nor could one since
    its copy."""
    statement = Statement.NO_COORDINATOR_ENDS_IT
    if case.reason not in NOBODY_ENDS_IT:
        return Proof(statement, False, f"a coordinator may still end it: the verdict is {case.verdict}")
    return _settled(statement, _refuted(case, _MAY_BE_ENDED), _witnesses_of_coordinators(case))


_MAY_BE_ENDED: Final[Refuters] = (
    (
        lambda case: case.reason is Reason.EPOCH_AHEAD_OF_COORDINATOR,
        "its coordinator still lists the partition, but can no longer end the transaction there, because the partition"
        " refuses its marker: stop the application, so that it does not commit, and audit again when its coordinator"
        " has aborted the rest",
    ),
    (
        lambda case: bool(case.evidence.at_coordinator.pending_ids),
        lambda case: (
            f"{', '.join(case.evidence.at_coordinator.pending_ids)}, so it may still include or end these records:"
            " audit again after that"
        ),
    ),
    (
        lambda case: bool(case.evidence.at_coordinator.answered_owners),
        lambda case: (
            f"{', '.join(case.evidence.at_coordinator.answered_owners)} has the producer id by a broker's answer:"
            " capture again"
        ),
    ),
    (
        lambda case: case.evidence.at_coordinator.count_basis is not CountBasis.GIVEN,
        "the number of coordinator partitions is assumed: give --coordinator-partitions, note it in capture.json, or"
        " copy the cluster's metadata log",
    ),
    (
        lambda case: bool(case.evidence.at_coordinator.uncertain_copies),
        lambda case: case.evidence.at_coordinator.uncertain_copies[0],
    ),
    (
        lambda case: not _is_written_before_copies(case),
        "it may have been written to after its coordinator was copied: copy the coordinators again, after the"
        " partitions",
    ),
    (
        lambda case: not knows_describe_producers(case.kafka_version) and case.evidence.at_coordinator.has_id,
        "brokers before 3.0 cannot check a start offset, and its transactional id lives: they abort whatever is open",
    ),
)


def _is_written_before_copies(case: Case) -> bool:
    """Whether the last write is proven to be older than the oldest copy of a coordinator that could include it."""
    partition, copied = case.evidence.on_partition, case.evidence.at_coordinator.earliest_copy_ms
    if copied is None or partition.is_written_after_coordinator:
        return False
    if partition.captured_at_ms is not None and partition.captured_at_ms <= copied:
        return True
    return partition.written_before_ms is not None and partition.written_before_ms <= copied


def _witnesses_of_coordinators(case: Case) -> list[str]:
    coordinator, partition = case.evidence.at_coordinator, case.evidence.on_partition
    taken = instant(coordinator.earliest_copy_ms)
    written = f"its last write is older than that: {instant(partition.written_before_ms)} at the latest"
    order = [written] if partition.written_before_ms is not None else ["the partition was not copied later"]
    if coordinator.owner is Owner.NOBODY:
        return [
            (
                f"every coordinator partition, each by its leader, the oldest copied at {taken}: none names the"
                " producer id"
            ),
            *order,
        ]
    state = "expired" if coordinator.state is None else f"in {coordinator.state.kafka_name}"
    which = f"__transaction_state-{coordinator.coordinator_partition}"
    return [
        f"the copy of {which} from its leader, taken at {taken}",
        f"the last record of {coordinator.transactional_id}, at offset {coordinator.record_offset}: {state}",
        *order,
    ]


# ---- 3. No COMMIT includes it: docs/rules/abort.md#no-commit


def no_commit_includes_it(case: Case) -> Proof:
    """By the whole history of the coordinator, by this transaction's own ABORT, or because no marker can have been
    lost; or by one of these in an earlier audit, and again since."""
    history, decision, no_loss = _by_history(case), _by_decision(case), _by_no_loss(case)
    proven = next((way for way in (history, decision, no_loss, _by_earlier_audit(case)) if way.holds), None)
    lost = [] if proven is None or decision.holds else _refuted(case, _DECISIONS_LOST)
    if lost:
        return _way(False, lost[0])
    if proven is not None:
        return proven
    due = next((each for each in reversed(_commits(case)) if each.lists_partition or not each.began_later), None)
    return _way(
        False, f"a COMMIT may include it: {history.says}, and {no_loss.says}" if due is None else _commit_due(case, due)
    )


def _way(holds: bool, says: str, witnesses: tuple[str, ...] = ()) -> Proof:
    """One way to prove the third statement."""
    return Proof(Statement.NO_COMMIT_INCLUDES_IT, holds, says, witnesses)


def _commits(case: Case) -> list[Decided]:
    return [each for each in case.evidence.history.unmarked if each.type == "COMMIT"]


def _lost_since(case: Case) -> Election | None:
    """An unclean election of a coordinator partition since the first batch: neither its log nor a marker need show a
    decision."""
    # The controller's clock was compared with no other.
    before = case.evidence.on_partition.surely_before_ms
    oldest = None if before is None else before - UNKNOWN_CLOCKS_DIFFER_MS
    elections = case.evidence.at_coordinator.unclean_elections
    return next((each for each in elections if each.at_ms is None or oldest is None or each.at_ms >= oldest), None)


def _unclean_coordinator(case: Case) -> str:
    lost = _lost_since(case)
    when = "" if lost is None or lost.at_ms is None else f" at {instant(lost.at_ms)}"
    return f"an unclean election of a partition of {TRANSACTION_STATE_TOPIC}{when} may have lost its COMMIT"


#: What shows that a coordinator decided what its log no longer has: then neither a log nor a marker need show it.
_DECISIONS_LOST: Final[Refuters] = (
    (lambda case: _lost_since(case) is not None, _unclean_coordinator),
    (
        lambda case: case.evidence.history.lacks is not None,
        lambda case: (
            f"records of its coordinator are missing, a COMMIT may be among them: {case.evidence.history.lacks}"
        ),
    ),
)


def _by_history(case: Case) -> Proof:
    """(a) Nothing is missing in the coordinators' records, and every COMMIT that lists the partition has its own marker
    here. What refutes that nothing is missing: `core.verdicts.history.REFUTERS`."""
    history = case.evidence.history
    if not history.is_whole:
        return _way(False, history.because)
    if _commits(case) or case.evidence.on_partition.truncated_markers:
        return _way(False, "a COMMIT that may include this partition has no marker that is surely its own here")
    return _way(True, "no COMMIT includes it: the coordinators' records show every decision", (history.because,))


def _by_decision(case: Case) -> Proof:
    """(b) Exactly this transaction was decided, and to ABORT."""
    problems = _refuted(case, _NOT_DECIDED)
    if problems:
        return _way(False, problems[0])
    newest = case.evidence.history.unmarked[-1]
    record = f"offset {newest.record_offset} of __transaction_state-{newest.coordinator_partition}"
    return _way(
        True,
        "its coordinator decided ABORT, and only the marker is missing",
        (f"{record}: {newest.type} of its epoch",),
    )


def _newest_decision(case: Case) -> Decided | None:
    unmarked = case.evidence.history.unmarked
    return unmarked[-1] if unmarked else None


def _may_be_of_a_later_transaction(case: Case) -> bool:
    """Whether an ABORT need not be of these records.

    Under transactions v2 an end has the epoch after that of its records, so it is of the first batch if no other epoch
    follows. Before, transactions share epochs: the records must be of the one that was aborted, not of one before.
    """
    partition, newest = case.evidence.on_partition, _newest_decision(case)
    if newest is None or partition.first_epoch != partition.producer_epoch:
        return True
    is_v2_end = (newest.transaction_version or 0) >= 2 and newest.producer_epoch == partition.producer_epoch + 1
    return not (is_v2_end and newest.is_own_epoch) and not (newest.is_followed and newest.began_before)


def _is_no_abort(case: Case) -> bool:
    newest = _newest_decision(case)
    return newest is None or newest.type != "ABORT" or not newest.lists_partition


_NOT_DECIDED: Final[Refuters] = (
    (_is_no_abort, "its own decision is not known"),
    (lambda case: bool(_commits(case)), "a COMMIT of its time has no marker here"),
    (_of_partition(lambda of: bool(of.truncated_markers)), "a marker of it was lost"),
    (_may_be_of_a_later_transaction, "the ABORT may be of a later transaction"),
)


def _by_no_loss(case: Case) -> Proof:
    """(c) A completed decision has written its marker to every partition, and no acknowledged marker can have vanished
    here."""
    problems = _refuted(case, _MAY_BE_LOST)
    if problems:
        return _way(False, problems[0])
    partition = case.evidence.on_partition
    first, newest = partition.first_leader_epoch, partition.newest_leader_epoch
    if newest == first:
        where = "its checkpoint" if partition.checkpoint_leader_epoch is not None else "__cluster_metadata"
        return _way(
            True,
            "no COMMIT includes it: a decision would have left its marker, and no leader that could have lost it"
            " followed",
            (f"leader epoch {first} of its first batch is still the newest in the log and in {where}",),
        )
    return _way(
        True,
        "no COMMIT includes it: a decision would have left its marker, and every election since was clean",
        (f"__cluster_metadata: every election of leader epochs {(first or 0) + 1} to {newest} was clean",),
    )


def _is_beyond_its_epoch(case: Case) -> bool:
    """Under transactions v2, open records of an older epoch than the coordinator's, or without one, have lost their
    marker or were never registered."""
    coordinator = case.evidence.at_coordinator
    # The epoch of an id that went on with another producer id is of that one.
    known = None if coordinator.owner is Owner.ROTATED else coordinator.producer_epoch
    return coordinator.may_be_v2 and (known is None or known > case.evidence.on_partition.producer_epoch)


def _beyond_its_epoch(case: Case) -> str:
    if case.evidence.at_coordinator.owner is Owner.NOBODY:
        return (
            "under transactions v2, nothing tells whether open records that no coordinator knows have lost their"
            " marker or were never registered: ask the owner of the application that wrote them"
        )
    return "under transactions v2, records of an older epoch than the coordinator's have lost their marker"


def _first_leader(case: Case) -> int:
    return case.evidence.on_partition.first_leader_epoch or 0


def _has_new_leader(case: Case) -> bool:
    newest = case.evidence.on_partition.newest_leader_epoch
    return newest is not None and newest > _first_leader(case)


def _are_elections_hidden(case: Case) -> bool:
    """Whether the metadata log does not show each election since the first batch."""
    # A snapshot does not show whether an election before it was clean.
    cluster, newest = case.evidence.in_cluster, case.evidence.on_partition.newest_leader_epoch or 0
    shown = {each.leader_epoch for each in case.evidence.elections if each.offset is not None}
    return not shown >= set(range(_first_leader(case) + 1, newest + 1)) or not cluster.is_confirmed


def _unclean(case: Case) -> Election | None:
    """The first election since the first batch that could lose a marker."""
    first = _first_leader(case)
    later = (each for each in case.evidence.elections if each.leader_epoch is not None and each.leader_epoch > first)
    # From 4.2 on, coordinators complete a transaction without the marker of a partition that has no leader.
    waits = is_from(_DROPS_MARKERS_FROM, case.kafka_version) is False
    return next((each for each in later if each.is_unclean or (each.leader is None and not waits)), None)


def _unclean_text(case: Case) -> str:
    found = _unclean(case)
    return f"leader epoch {found.leader_epoch if found else None} began with an unclean election, or without a leader"


_DROPS_MARKERS_FROM: Final = (4, 2)
_MAY_BE_LOST: Final[Refuters] = (
    (
        _of_partition(lambda of: bool(of.truncated_markers)),
        lambda case: f"a marker of it was lost: {', '.join(case.evidence.on_partition.truncated_markers)}",
    ),
    (
        _of_partition(lambda of: of.truncated_from is not None and (of.truncated_until or 0) >= of.start_offset),
        "another copy has a truncated tail above its first batch, so its marker may have been lost",
    ),
    (
        lambda case: any(each.lists_partition and not each.may_be_deleted for each in _commits(case)),
        "a COMMIT of its time has no marker here",
    ),
    (_is_beyond_its_epoch, _beyond_its_epoch),
    (
        lambda case: (
            case.evidence.on_partition.checkpoint_leader_epoch is None and not case.evidence.in_cluster.is_confirmed
        ),
        "the leader-epoch-checkpoint of the partition was not copied",
    ),
    (
        lambda case: (
            case.evidence.on_partition.checkpoint_leader_epoch is None and case.evidence.in_cluster.hides_elections
        ),
        "records of the metadata log are lost, and an election may be among them",
    ),
    (
        _of_partition(lambda of: of.first_leader_epoch is None or of.newest_leader_epoch is None),
        "the leader epoch of its first batch is not known",
    ),
    (lambda case: _unclean(case) is not None, _unclean_text),
    (
        lambda case: _has_new_leader(case) and _are_elections_hidden(case),
        lambda case: (
            f"leaders changed since (leader epoch {_first_leader(case)} to"
            f" {case.evidence.on_partition.newest_leader_epoch}), and nothing shows that their elections were clean"
        ),
    ),
)


def _by_earlier_audit(case: Case) -> Proof:
    """What an earlier audit proved up to its copies stays proven; only what came later needs evidence of its own."""
    earlier = case.evidence.earlier_proof
    if earlier is None or case.evidence.on_partition.truncated_markers:
        return _way(False, "no earlier audit proved it")
    return _way(
        True,
        "no COMMIT includes it: an earlier audit proved it, and its coordinator decided nothing since",
        (f"audit {earlier.run_id}, by copies of {instant(earlier.copied_ms)}",),
    )


def _commit_due(case: Case, due: Decided) -> str:
    unknown = None
    if not due.lists_partition:
        unknown = "compaction removed the records that show whether the decision includes this partition"
    if due.may_be_deleted:
        unknown = "the part of the log that may have had its marker is deleted"
    if unknown is not None:
        decided = f"its coordinator decided COMMIT at {instant(due.decided_ms)}"
        return f"{decided}, and {unknown}: first look for its marker in another replica"
    if due.is_marked:
        return (
            f"its coordinator decided COMMIT at {instant(due.decided_ms)}, and the marker here may be of another"
            " decision: brokers' clocks do not tell; first look at the other replicas and at the records themselves"
        )
    partition = case.evidence.on_partition
    needed = marker_needed(
        f"type {due.type}, producer id {partition.producer_id}",
        (due.producer_epoch, partition.producer_epoch),
        (due.coordinator_epoch, partition.coordinator_epoch),
        due.transaction_version,
    )
    return (
        "a COMMIT marker is due here: the tool can only abort, which would discard acknowledged records; first look"
        f" for a replica or an old leader that has it (a marker would need {needed})"
    )


# ---- 4. It is old enough: docs/rules/abort.md#age-by-broker-clocks


def is_old_enough(case: Case) -> Proof:
    """The age that brokers' clocks prove exceeds the timeout, at the oldest of the copies."""
    statement, since = Statement.IS_OLD_ENOUGH, proven_since_ms(case.evidence)
    at, timeout = known_at_ms(case.evidence, case.thresholds), case.thresholds.max_transaction_timeout_ms
    if since is None:
        return Proof(statement, False, "no broker's clock proves its age: its timestamps come from the client")
    age, made = max(at - since, 0), made_ms(case.evidence)
    if age <= timeout:
        says = f"brokers' clocks prove only {duration(age)} of its age: the client's timestamps may lie in the past"
        if made is not None and made == since:
            says = f"it is at most {duration(age)} old: only then was its producer id, or its epoch, handed out"
        return Proof(statement, False, says)
    if case.verdict is Verdict.SUSPECT:
        return Proof(
            statement, False, "it is younger than the timeout by its last write: a request may still be in flight"
        )
    before = clock_ms(case.evidence.on_partition.stamped_before_ms)
    # A coordinator whose clock is behind began it before what stands before it.
    least, most = duration(age), "" if before is None or before > since else duration(at - before)
    how_long = least if most == least else f"at least {least}" + (f", and at most {most}" if most else "")
    return Proof(
        statement, True, f"it has been open for {how_long}, by brokers' clocks", (f"it was open at {instant(since)}",)
    )


# ---- 5. Nothing else is wrong with it: docs/rules/abort.md#nothing-else-wrong


def nothing_else_is_wrong(case: Case) -> Proof:
    """No finding of severity ERROR or CRITICAL names the partition, the producer id or its ids, or, for an orphan, the
    loss of a coordinator's records; and the producer id is of this cluster."""
    return _settled(Statement.NOTHING_ELSE_IS_WRONG, _refuted(case, _WRONG), ["the table findings"])


_WRONG: Final[Refuters] = (
    (
        lambda case: case.evidence.in_cluster.is_never_allocated,
        "this cluster never allocated the producer id, so another one decides about it: ask the cluster that the"
        " partition was copied from",
    ),
    (
        _of_partition(lambda of: bool(of.alarms)),
        lambda case: (
            f"findings name it or its partition: {', '.join(case.evidence.on_partition.alarms)}; see the table findings"
        ),
    ),
)


def safe_from_ms(case: Case, found: Sequence[Proof]) -> int | None:
    """When the age will be proven by time alone, in epoch ms; None if something else is missing, or time would settle
    nothing.

    If nothing else proves an age, this audit does: the transaction was open at its instant, unless younger stamps in
    the copy show that it was taken later.
    """
    missing = [proof.name for proof in found if not proof.holds]
    if missing != [Statement.IS_OLD_ENOUGH] or case.verdict not in (Verdict.HANGING, Verdict.SUSPECT):
        return None
    since, at = proven_since_ms(case.evidence), known_at_ms(case.evidence, case.thresholds)
    if since is None and case.evidence.on_partition.is_instant_refuted:
        return None
    begun = at if since is None else since
    written = clock_ms(case.evidence.on_partition.last_timestamp_ms)
    if written is not None and written <= at + case.thresholds.clock_tolerance_ms:
        begun = max(begun, written)
    return begun + case.thresholds.max_transaction_timeout_ms + 1
