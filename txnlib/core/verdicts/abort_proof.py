"""Safe to abort: a proof of five statements, each with its witnesses.

A marker by hand bypasses the coordinator. It is right only if no coordinator will ever write one, and it reverts
acknowledged records if a COMMIT included them. A statement holds if it has a witness and nothing in the capture refutes
it: each has a table of what does. The third is in `no_commit`. Source: docs/rules/abort.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.core.copies import Role, highest, is_above
from txnlib.core.display import duration, instant
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka_commands import knows_describe_producers
from txnlib.core.verdicts.age import known_at_ms
from txnlib.core.verdicts.case import Case, Crc
from txnlib.core.verdicts.files_beside import files_against, leader_in_words, newer_leader
from txnlib.core.verdicts.no_commit import Answer
from txnlib.core.verdicts.reason import NOBODY_ENDS_IT, Reason, Verdict, fields_of, reason_by_records
from txnlib.core.verdicts.statements import Proof, Refuters, Statement, refuted, settled
from txnlib.core.verdicts.verdict import Judgement


def proofs(case: Case, judgement: Judgement, answer: Answer) -> tuple[Proof, ...]:
    """The five statements, in order. An abort is safe if all hold. `answer`: of the worlds."""
    return (
        is_open_now(case),
        no_coordinator_ends_it(case, judgement),
        answer.no_commit,
        is_old_enough(case, judgement),
        nothing_else_is_wrong(case),
    )


# ---- 1. It is open now: docs/rules/abort.md#open-now


def is_open_now(case: Case) -> Proof:
    """The judged copy is the current and whole one of a certain leader; the first batch is known, committed and intact;
    and no other copy has a marker behind it."""
    place, broker = f"{case.span.topic}-{case.span.partition}", f"broker {case.copy.led_by}"
    witnesses = [
        f"the copy of {place} from {broker}, its leader, taken at {instant(case.copy.known_until_ms)}",
        f"its first batch at offset {case.span.start_offset}, with a valid CRC, below the high watermark",
    ]
    if case.copy.answered_stable_offset is not None:
        witnesses.append(f"{broker} answered a last stable offset of {case.copy.answered_stable_offset}")
    return settled(Statement.IS_OPEN_NOW, refuted(case, _NOT_OPEN)[:1], witnesses)


_NOT_OPEN: Final[Refuters] = (
    (
        lambda case: bool(case.ended_elsewhere),
        lambda case: f"it has ended by {', '.join(case.ended_elsewhere)}: capture again",
    ),
    (
        lambda case: case.is_continued_elsewhere,
        "another copy, which goes on behind this one, has more of it: capture again",
    ),
    (
        lambda case: bool(files_against(case)),
        lambda case: f"{files_against(case)[0].says}, which the copy of the partition does not show: capture again",
    ),
    (
        lambda case: bool(case.cleaned_markers),
        lambda case: (
            f"its marker was written, and a cleaner removed it ({', '.join(case.cleaned_markers)}): look for it in the"
            " other replicas"
        ),
    ),
    (
        lambda case: newer_leader(case) is not None,
        lambda case: leader_in_words(newer_leader(case)),
    ),
    (
        lambda case: case.is_begin_gone,
        "its first batch is gone: only a producer snapshot, or the answer of its leader, shows it; look at its leader"
        " with describe-producers",
    ),
    (
        lambda case: case.crc is Crc.INVALID,
        "the CRC of one of its batches does not match: copy another replica",
    ),
    (
        lambda case: case.crc is Crc.NOT_CHECKED,
        "it was read from text, which has no bytes to check: audit the raw segments",
    ),
    (
        lambda case: case.is_answered_closed,
        "its leader answered, when the capture was taken, that nothing was open there: capture again",
    ),
    (
        lambda case: case.copy.has_leader is None,
        "the leader of the partition is not known for certain: copy __cluster_metadata-0 of a running broker, or add"
        " the leader to capture.json (partitions), unless both name different ones",
    ),
    (
        lambda case: case.copy.has_leader is False,
        "the partition has no leader: no marker can be written until it has one",
    ),
    (
        lambda case: case.copy.role != Role.LEADER or not case.is_current,
        "the copy of the partition is not known to be current: copy its leader's log directory",
    ),
    (
        lambda case: case.is_tail_lost,
        "the copy of the partition is damaged behind it: copy another replica",
    ),
    (
        lambda case: case.gap_offset is not None,
        "records behind it are missing, and its marker may have been among them (a cleaner of another replica may have"
        " removed it before it was copied): look for it in the other replicas",
    ),
    (
        lambda case: not case.is_start_exact,
        "its first batch may be missing from this copy, so its true start offset is not known: copy another replica",
    ),
    (
        lambda case: case.is_start_committed is None,
        "the high watermark is not known: copy the broker's replication-offset-checkpoint",
    ),
    (
        lambda case: case.is_start_committed is False,
        "it begins at or above the high watermark: an election may still remove it; capture again",
    ),
)


# ---- 2. No coordinator will end it: docs/rules/abort.md#no-coordinator-left


def no_coordinator_ends_it(case: Case, judgement: Judgement) -> Proof:
    """Every coordinator that could have it is counted, current and whole, and none can include it; nor could one since
    its copy."""
    statement = Statement.NO_COORDINATOR_ENDS_IT
    if judgement.reason not in NOBODY_ENDS_IT:
        return Proof(statement, False, f"a coordinator may still end it: the verdict is {judgement.verdict}")
    return settled(statement, refuted(case, _MAY_BE_ENDED), _witnesses_of_coordinators(case))


_MAY_BE_ENDED: Final[Refuters] = (
    (
        lambda case: reason_by_records(case) is Reason.EPOCH_AHEAD_OF_COORDINATOR,
        "its coordinator still lists the partition, but can no longer end the transaction there, because the partition"
        " refuses its marker: stop the application, so that it does not commit, and audit again when its coordinator"
        " has aborted the rest",
    ),
    (
        lambda case: bool(case.pending_ids),
        lambda case: (
            f"{', '.join(case.pending_ids)}, so it may still include or end these records: audit again after that"
        ),
    ),
    (
        lambda case: bool(case.dossier.answered_owners),
        lambda case: (
            f"{', '.join(case.dossier.answered_owners)} has the producer id by a broker's answer: capture again"
        ),
    ),
    (
        lambda case: case.facts.count_basis != CountBasis.GIVEN,
        "the number of coordinator partitions is assumed: give --coordinator-partitions, note it in capture.json, or"
        " copy the cluster's metadata log",
    ),
    (
        lambda case: bool(case.coordinators.uncertain_copies),
        lambda case: case.coordinators.uncertain_copies[0],
    ),
    (
        lambda case: not _is_written_before_copies(case),
        "its producer may have written after its coordinator was copied: copy the coordinators again, after the"
        " partitions",
    ),
    (
        lambda case: not knows_describe_producers(case.kafka_version) and case.claim.has_id,
        "brokers before 3.0 cannot check a start offset, and its transactional id lives: they abort whatever is open",
    ),
)


def _is_written_before_copies(case: Case) -> bool:
    """Whether the last write is proven to be older than the oldest copy of a coordinator that could include it, and its
    producer wrote nothing later that is open elsewhere."""
    copied = case.coordinators.earliest_captured_at_ms
    if copied is None or any(each.is_written_after_coordinator for each in (case, *case.of_producer)):
        return False
    if case.captured_by_ms is not None and case.captured_by_ms <= copied:
        return True
    return case.written_before_ms is not None and case.written_before_ms <= copied


def _witnesses_of_coordinators(case: Case) -> list[str]:
    taken = instant(case.coordinators.earliest_captured_at_ms)
    written = f"its last write is older than that: {instant(case.written_before_ms)} at the latest"
    order = [written] if case.written_before_ms is not None else ["the partition was not copied later"]
    if case.claim.is_nobodys:
        return [
            (
                f"every coordinator partition, each by its leader, the oldest copied at {taken}: none names the"
                " producer id"
            ),
            *order,
        ]
    state = "expired" if case.claim.state is None else f"in {case.claim.state}"
    which = f"__transaction_state-{case.claim.coordinator_partition}"
    return [
        f"the copy of {which} from its leader, taken at {taken}",
        f"the last record of {case.claim.transactional_id}, at {fields_of(case)['record_place']}: {state}",
        *order,
    ]


# ---- 4. It is old enough: docs/rules/abort.md#age-by-broker-clocks


def is_old_enough(case: Case, judgement: Judgement) -> Proof:
    """The age that brokers' clocks prove exceeds the timeout. The oldest copy counts."""
    statement, since = Statement.IS_OLD_ENOUGH, judgement.proven_since_ms
    at, timeout = known_at_ms(case), case.thresholds.max_transaction_timeout_ms
    if since is None:
        return Proof(statement, False, "no broker's clock proves its age: its timestamps come from the client")
    age, made = max(at - since, 0), case.made_ms
    if age <= timeout:
        says = f"brokers' clocks prove only {duration(age)} of its age: the client's timestamps may lie in the past"
        if made is not None and made == since:
            says = f"it is at most {duration(age)} old: only then was its producer id, or its epoch, handed out"
        return Proof(statement, False, says)
    if judgement.verdict is Verdict.SUSPECT:
        return Proof(
            statement, False, "it is younger than the timeout by its last write: a request may still be in flight"
        )
    before = clock_ms(case.stamped_before_ms)
    # If the coordinator's clock is behind, it may say that the transaction began before the stamps that precede it.
    least, most = duration(age), "" if before is None or before > since else duration(at - before)
    how_long = least if most == least else f"at least {least}" + (f", and at most {most}" if most else "")
    return Proof(
        statement, True, f"it has been open for {how_long}, by brokers' clocks", (f"it was open at {instant(since)}",)
    )


# ---- 5. Nothing else is wrong with it: docs/rules/abort.md#nothing-else-wrong


def nothing_else_is_wrong(case: Case) -> Proof:
    """No finding of severity ERROR or CRITICAL names the partition, the producer id or its transactional ids; nor, if
    no id is known, the loss of a coordinator's records. And the producer id is of this cluster."""
    return settled(Statement.NOTHING_ELSE_IS_WRONG, refuted(case, _WRONG), ["the table findings"])


def _last_allocated(case: Case) -> int | None:
    return highest(each.last_producer_id for each in case.facts.blocks)


_WRONG: Final[Refuters] = (
    (
        lambda case: case.dossier.is_never_allocated,
        "this cluster never allocated the producer id, so another one decides about it: ask the cluster that the"
        " partition was copied from",
    ),
    (
        lambda case: case.claim.is_nobodys and is_above(case.dossier.producer_id, _last_allocated(case)),
        "the cluster's metadata log does not show that this cluster allocated the producer id: copy"
        " __cluster_metadata-0 again, after the partition, or ask the cluster that the partition was copied from",
    ),
    (
        lambda case: bool(case.alarms),
        lambda case: f"findings name it or its partition: {', '.join(case.alarms)}; see the table findings",
    ),
)


def safe_from_ms(case: Case, judgement: Judgement, found: Sequence[Proof]) -> int | None:
    """When the age will be proven by time alone, in epoch ms; None if something else is missing, or time would settle
    nothing.

    If nothing else proves an age, this audit does: the transaction was open at its instant, unless younger stamps in
    the copy show that it was taken later.
    """
    missing = [proof.name for proof in found if not proof.holds]
    if missing != [Statement.IS_OLD_ENOUGH] or judgement.verdict not in (Verdict.HANGING, Verdict.SUSPECT):
        return None
    since, at = judgement.proven_since_ms, known_at_ms(case)
    if since is None and case.is_instant_refuted:
        return None
    begun = at if since is None else since
    written = clock_ms(case.span.last_timestamp_ms)
    if written is not None and written <= at + case.thresholds.clock_tolerance_ms:
        begun = max(begun, written)
    return begun + case.thresholds.max_transaction_timeout_ms + 1
