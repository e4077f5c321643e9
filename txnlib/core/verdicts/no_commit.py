"""The third statement of the proof: no COMMIT includes the open records. Source: docs/rules/abort.md#no-commit."""

from __future__ import annotations

from typing import Final

from txnlib.core.cluster_metadata import Election
from txnlib.core.copies import is_above
from txnlib.core.display import instant
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, UNKNOWN_CLOCKS_DIFFER_MS, is_from
from txnlib.core.kafka.marker_acceptance import marker_needed
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.clocks import newest_leader_epoch
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.earlier_audits import EarlierAudit, is_same_transaction
from txnlib.core.verdicts.history import Decided
from txnlib.core.verdicts.match import has_own_epoch, marker_epoch
from txnlib.core.verdicts.reason import Reason
from txnlib.core.verdicts.statements import Proof, Refuters, Statement, refuted


def no_commit_includes_it(case: Case) -> Proof:
    """By the whole history of the coordinator, by this transaction's own ABORT, or because no marker can have been
    lost; or by one of these in an earlier audit, and again since."""
    history, decision, no_loss = _by_history(case), _by_decision(case), _by_no_loss(case)
    proven = next((way for way in (history, decision, no_loss, _by_earlier_audit(case)) if way.holds), None)
    lost = [] if proven is None or decision.holds else refuted(case, _DECISIONS_LOST)
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
    return [each for each in case.history.unmarked if each.is_commit]


def _lost_since(case: Case) -> Election | None:
    """An unclean election of a coordinator partition since the first batch: neither its log nor a marker need show a
    decision."""
    # The controller's clock was compared with no other.
    before = case.begun_after_ms
    oldest = None if before is None else before - UNKNOWN_CLOCKS_DIFFER_MS
    elections = case.unclean_elections
    return next((each for each in elections if each.at_ms is None or oldest is None or each.at_ms >= oldest), None)


def _unclean_coordinator(case: Case) -> str:
    lost = _lost_since(case)
    when = "" if lost is None or lost.at_ms is None else f" at {instant(lost.at_ms)}"
    return f"an unclean election of a partition of {TRANSACTION_STATE_TOPIC}{when} may have lost its COMMIT"


#: What shows that a coordinator decided what its log no longer has: then neither a log nor a marker need show it.
_DECISIONS_LOST: Final[Refuters] = (
    (lambda case: _lost_since(case) is not None, _unclean_coordinator),
    (
        lambda case: case.history.lacks is not None,
        lambda case: f"records of its coordinator are missing, a COMMIT may be among them: {case.history.lacks}",
    ),
)


def _by_history(case: Case) -> Proof:
    """(a) Nothing is missing in the coordinators' records, and every COMMIT that lists the partition has its own marker
    here. What refutes that nothing is missing: `core.verdicts.history.REFUTERS`."""
    history = case.history
    if not history.is_whole:
        return _way(False, history.because)
    if _commits(case) or case.truncated_markers:
        return _way(False, "a COMMIT that may include this partition has no marker that is surely its own here")
    return _way(True, "no COMMIT includes it: the coordinators' records show every decision", (history.because,))


def _by_decision(case: Case) -> Proof:
    """(b) Exactly this transaction was decided, and to ABORT."""
    problems = refuted(case, _NOT_DECIDED)
    if problems:
        return _way(False, problems[0])
    newest = case.history.unmarked[-1]
    record = f"offset {newest.of.last_record_offset} of __transaction_state-{newest.of.coordinator_partition}"
    return _way(
        True,
        "its coordinator decided ABORT, and only the marker is missing",
        (f"{record}: {newest.of.outcome} of its epoch",),
    )


def _newest_decision(case: Case) -> Decided | None:
    unmarked = case.history.unmarked
    return unmarked[-1] if unmarked else None


def _may_be_of_a_later_transaction(case: Case) -> bool:
    """Whether an ABORT need not be of these records.

    Under transactions v2 an end has the epoch after that of its records, so it is of the first batch if no other epoch
    follows. Before, transactions share epochs: the records must be of the one that was aborted, not of one before.
    """
    newest = _newest_decision(case)
    if newest is None or case.span.first_epoch != case.span.producer_epoch:
        return True
    is_v2_end = (newest.of.transaction_version or 0) >= 2 and marker_epoch(newest.of) == case.span.producer_epoch + 1
    return not (is_v2_end and has_own_epoch(newest.of)) and not (newest.is_followed and newest.began_before)


def _is_no_abort(case: Case) -> bool:
    newest = _newest_decision(case)
    return newest is None or newest.of.outcome != "ABORT" or not newest.lists_partition


_NOT_DECIDED: Final[Refuters] = (
    (_is_no_abort, "its own decision is not known"),
    (lambda case: bool(_commits(case)), "a COMMIT of its time has no marker here"),
    (lambda case: bool(case.truncated_markers), "a marker of it was lost"),
    (_may_be_of_a_later_transaction, "the ABORT may be of a later transaction"),
)


def _by_no_loss(case: Case) -> Proof:
    """(c) A completed decision has written its marker to every partition, and no acknowledged marker can have vanished
    here."""
    problems = refuted(case, _MAY_BE_LOST)
    if problems:
        return _way(False, problems[0])
    first, newest = case.first_leader_epoch, case.newest_leader_epoch
    if newest == first:
        where = "its checkpoint" if case.copy.checkpoint_leader_epoch is not None else "__cluster_metadata"
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
    # The epoch of an id that went on with another producer id is of that one.
    known = None if case.claim.owner == Owner.ROTATED else case.claim.producer_epoch
    return case.may_be_v2 and (known is None or known > case.span.producer_epoch)


def _beyond_its_epoch(case: Case) -> str:
    if case.claim.is_nobodys:
        return (
            "under transactions v2, nothing tells whether open records that no coordinator knows have lost their"
            " marker or were never registered: ask the owner of the application that wrote them"
        )
    return "under transactions v2, records of an older epoch than the coordinator's have lost their marker"


def _first_leader(case: Case) -> int:
    return case.first_leader_epoch or 0


def _has_new_leader(case: Case) -> bool:
    newest = case.newest_leader_epoch
    return newest is not None and newest > _first_leader(case)


def _are_elections_hidden(case: Case) -> bool:
    """Whether the metadata log does not show each election since the first batch."""
    # A snapshot does not show whether an election before it was clean.
    newest = case.newest_leader_epoch or 0
    shown = {each.leader_epoch for each in case.elections if each.offset is not None}
    return not shown >= set(range(_first_leader(case) + 1, newest + 1)) or not case.facts.is_metadata_confirmed


def _unclean(case: Case) -> Election | None:
    """The first election since the first batch that could lose a marker."""
    first = _first_leader(case)
    later = (each for each in case.elections if each.leader_epoch is not None and each.leader_epoch > first)
    # From 4.2 on, coordinators complete a transaction without the marker of a partition that has no leader.
    waits = is_from(_DROPS_MARKERS_FROM, case.kafka_version) is False
    return next((each for each in later if each.is_unclean or (each.leader is None and not waits)), None)


def _unclean_text(case: Case) -> str:
    found = _unclean(case)
    return f"leader epoch {found.leader_epoch if found else None} began with an unclean election, or without a leader"


_DROPS_MARKERS_FROM: Final = (4, 2)
_MAY_BE_LOST: Final[Refuters] = (
    (
        lambda case: bool(case.truncated_markers),
        lambda case: f"a marker of it was lost: {', '.join(case.truncated_markers)}",
    ),
    (
        lambda case: case.truncated_until is not None and case.truncated_until >= case.span.start_offset,
        "another copy has a truncated tail above its first batch, so its marker may have been lost",
    ),
    (
        lambda case: any(each.lists_partition and not each.may_be_deleted for each in _commits(case)),
        "a COMMIT of its time has no marker here",
    ),
    (_is_beyond_its_epoch, _beyond_its_epoch),
    (
        lambda case: case.copy.checkpoint_leader_epoch is None and not case.facts.is_metadata_confirmed,
        "the leader-epoch-checkpoint of the partition was not copied",
    ),
    (
        lambda case: case.copy.checkpoint_leader_epoch is None and case.facts.hides_elections,
        "records of the metadata log are lost, and an election may be among them",
    ),
    (
        lambda case: case.first_leader_epoch is None or case.newest_leader_epoch is None,
        "the leader epoch of its first batch is not known",
    ),
    (lambda case: _unclean(case) is not None, _unclean_text),
    (
        lambda case: _has_new_leader(case) and _are_elections_hidden(case),
        lambda case: (
            f"leaders changed since (leader epoch {_first_leader(case)} to"
            f" {case.newest_leader_epoch}), and nothing shows that their elections were clean"
        ),
    ),
)


def _by_earlier_audit(case: Case) -> Proof:
    """What an earlier audit proved up to its copies stays proven; only what came later needs evidence of its own."""
    earlier = proof_carried(case)
    if earlier is None or case.truncated_markers:
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
    needed = marker_needed(
        f"type {due.of.outcome}, producer id {case.dossier.producer_id}",
        (marker_epoch(due.of), case.span.producer_epoch),
        (due.coordinator_epoch, case.span.coordinator_epoch),
        due.of.transaction_version,
    )
    return (
        "a COMMIT marker is due here: the tool can only abort, which would discard acknowledged records; first look"
        f" for a replica or an old leader that has it (a marker would need {needed})"
    )


# ---- What an earlier audit proved


#: Reasons that mean that the producer id is never used again: no decision about it can follow.
GIVEN_UP: Final = frozenset(
    {
        Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR,
        Reason.TRANSACTIONAL_ID_EXPIRED,
        Reason.PRODUCER_ID_ROTATED,
    }
)


def proof_carried(case: Case) -> EarlierAudit | None:
    """The newest earlier audit that proved that no COMMIT includes the records, if no decision can have followed.

    None followed if the producer id had been given up by then; if the newest record of its id is still the one of that
    audit, because compaction keeps it; or if the leader of its copies leads until now, so that no marker since can have
    vanished. Each counts from the oldest of its copies on. Source: docs/rules/abort.md#no-commit.
    """
    recorded, written = case.claim.record_offset, clock_ms(case.claim.record_ms)
    for each in sorted(case.span.earlier, key=lambda each: -each.as_of_ms):
        is_proven = each.proves_no_commit and is_same_transaction(each, case.copy, case.first_batch_crc)
        is_seen = recorded is not None and recorded == each.record_offset
        is_older = written is not None and not is_above(written, each.copied_ms)
        # A record that is older than its copies, and that it did not have: its copy of the coordinator was not current.
        if not is_proven or _is_committed_since(case, each) or (is_older and not is_seen):
            continue
        is_given_up = each.reason in GIVEN_UP and not case.claim.owns_producer_id
        if is_given_up or (is_seen and is_older) or _is_led_since(case, each):
            return each
    return None


def _is_led_since(case: Case, earlier: EarlierAudit) -> bool:
    """Whether the partition's newest leader, which its checkpoint names, led it already when it was copied before."""
    newest = case.newest_leader_epoch
    return newest is not None and case.copy.checkpoint_leader_epoch == newest == earlier.newest_leader_epoch


def _is_committed_since(case: Case, earlier: EarlierAudit) -> bool:
    """Whether a COMMIT without a marker of its own may be younger than the copies of an earlier audit."""
    seen = earlier.record_offset
    return any(seen is None or each.of.last_record_offset > seen for each in _commits(case))


def led_at_copies(case: Case) -> int | None:
    """For later audits: the newest leader epoch of the judged copy; None if it may have begun after the coordinators
    were copied."""
    newest = newest_leader_epoch((case.copy,), ())
    coordinators, partition = case.earliest_copy_ms, case.captured_at_ms
    if coordinators is None or partition is None:
        return None
    led = [each.behind_ms for each in case.stamps if each.leader_epoch == newest]
    has_begun = min((partition, *(ms for ms in led if ms is not None))) <= coordinators
    return newest if has_begun or newest == case.first_leader_epoch else None
