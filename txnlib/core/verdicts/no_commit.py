"""Histories in which a COMMIT includes the open records: whether there is one.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from txnlib.core.display import instant
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, is_ahead
from txnlib.core.kafka.marker_acceptance import marker_needed, record_epochs
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.dossier import CoordinatorDecision, Owner
from txnlib.core.verdicts.match import has_own_epoch, marker_epoch
from txnlib.core.verdicts.scene import (
    FIRST,
    TooManyWorlds,
    begun,
    complete,
    decided,
    is_complete,
)
from txnlib.core.verdicts.statements import Proof, Statement
from txnlib.core.verdicts.times import Times
from txnlib.core.verdicts.world import MOST_CHOICES, NO_RECORD, Hidden, World, Worlds
from txnlib.core.verdicts.world_story import Covering, told


@dataclass(frozen=True, slots=True)
class Answer:
    """What the worlds of a case say."""

    #: The third statement of the proof.
    no_commit: Proof
    #: The newest decision that lists the partition and may include open records, but whose marker is certainly not
    #: here.
    unmarked: CoordinatorDecision | None = None
    #: What shows that its coordinator lost decisions; None if nothing does.
    lost_decisions: str | None = None


def answer_of(case: Case) -> Answer:
    """Searches the worlds of a case."""
    try:
        scene = Worlds(case)
    except TooManyWorlds:
        return Answer(_too_many())
    unmarked = (of for number, of in reversed([*enumerate(scene.decisions)]) if _is_unmarked(scene, number))
    return Answer(_no_commit(scene), next(unmarked, None), scene.lost_decisions)


def _is_unmarked(scene: Worlds, number: int) -> bool:
    of = scene.decisions[number]
    if not scene.lists_partition(of) or not _may_have_epoch(scene, of):
        return False
    return not scene.may_have_marker(number) and scene.times.may_be_before(FIRST, complete(number))


def _no_commit(scene: Worlds) -> Proof:
    """The third statement of the proof: some world exists, and in no world does a COMMIT include open records and lack
    its marker. Its words are the world that was found, or the facts that exclude every such world."""
    seen, owned = 0, set[int]()
    try:
        if scene.contradiction is not None:
            return _proof(False, f"no history agrees with the capture: {scene.contradiction}")
        for world in scene.worlds():
            seen += 1
            owned |= world.own.keys()
            for found in commits(scene, world):
                return _proof(False, _says(scene, found), told(scene, world, found))
    except TooManyWorlds:
        return _too_many()
    if not seen:
        return _proof(False, _unexplained(scene))
    return _proof(True, *_closed(scene, owned))


def commits(scene: Worlds, world: World) -> Iterator[Covering]:
    """The COMMITs that may include open records in a world."""
    for number, each in enumerate(scene.decisions):
        if number in world.own or each.outcome != "COMMIT" or not _may_have_epoch(scene, each):
            continue
        if not is_complete(each):
            ways, until = iter([world.times]), decided(number)
        elif scene.lost_markers is None:
            continue  # its marker was written and is not lost, so it is deleted: it was in front
        else:
            ways, until = scene.lost_by_audits(world.times, number), complete(number)
        if (then := next((times for times in ways if times.may_be_before(FIRST, until)), None)) is not None:
            yield Covering(number, then, is_complete(each))
    has_unexplained = world.has_unexplained or scene.has_unexplained_elsewhere
    only = next((number for number, each in enumerate(scene.decisions) if _is_only_decision(scene, each)), None)
    if only is None:
        hidden = _hidden(scene, world, has_unexplained=has_unexplained)
    else:
        yield from _lost_of_its_epoch(scene, world, only)
        hidden = _before_upgrade(scene, world, has_unexplained=has_unexplained)
    for way in hidden:
        if way.is_complete and scene.lost_markers is None:
            continue
        aborted = (each for each in range(len(scene.decisions)) if each not in world.own)
        is_first = way.is_in_front and not has_unexplained
        if any(_is_aborted(scene, way.times, each) and (is_first or _is_in_front(way, each)) for each in aborted):
            continue
        until = complete(NO_RECORD) if way.is_complete else decided(NO_RECORD)
        lost_then = scene.lost_by_audits(way.times, NO_RECORD) if way.is_complete else iter([way.times])
        if (then := next((times for times in lost_then if times.precedes(FIRST, until)), None)) is not None:
            yield Covering(NO_RECORD, then, way.is_complete, way.why)


def _hidden(scene: Worlds, world: World, *, has_unexplained: bool) -> Iterator[Hidden]:
    """The ways in which a decision about the producer id is hidden."""
    yield from scene.hidden(world.times, NO_RECORD)
    if has_unexplained:
        before = Times(world.times)
        before.precedes(decided(NO_RECORD), complete(NO_RECORD))
        yield Hidden("an ABORT that no record explains may be one that its coordinator lost", True, before)


def _before_upgrade(scene: Worlds, world: World, *, has_unexplained: bool) -> Iterator[Hidden]:
    """The ways in which a decision of the same epoch is hidden, of a client that went on with transactions v2."""
    if scene.case.is_upgraded:
        for each in _hidden(scene, world, has_unexplained=has_unexplained):
            if each.is_complete and scene.is_of_epoch(each.times, NO_RECORD):
                yield each


def _lost_of_its_epoch(scene: Worlds, world: World, only: int) -> Iterator[Covering]:
    """The ways in which the coordinator lost a COMMIT of exactly the open records, and then decided them again. No
    other transaction has their epoch, unless their first record is lost: then the epoch is handed out again."""
    for way in scene.hidden(world.times, NO_RECORD, scene.decisions[only].first_record_offset):
        times = Times(way.times)
        is_between = times.precedes(begun(only), decided(NO_RECORD)) and times.precedes(
            decided(NO_RECORD), decided(only)
        )
        if not way.is_complete and is_between and times.precedes(FIRST, decided(NO_RECORD)):
            yield Covering(NO_RECORD, times, way.is_complete, way.why)


def _may_have_epoch(scene: Worlds, decision: CoordinatorDecision) -> bool:
    """Whether some open record may belong to the transaction of a decision, by its epoch."""
    epoch, span = marker_epoch(decision), scene.case.span
    if epoch is None:
        return True
    low, high = record_epochs(epoch, decision.outcome, decision.transaction_version)
    return span.producer_epoch >= low and not is_ahead(span.first_epoch, high)


def _is_only_decision(scene: Worlds, decision: CoordinatorDecision) -> bool:
    """Whether a decision is about exactly the open records: no other decision is about their epoch, and its own is the
    next one."""
    span = scene.case.span
    is_v2 = (decision.transaction_version or 0) >= 2 and has_own_epoch(decision)
    is_next = marker_epoch(decision) == span.producer_epoch + 1 and span.first_epoch == span.producer_epoch
    return is_next and is_v2 and bool(scene.lists_partition(decision))


def _is_aborted(scene: Worlds, times: Times, number: int) -> bool:
    """Whether the first batch was certainly written after the start of a transaction that was aborted, and no record
    after that start is missing.

    Then no transaction of the id was between the two (ONE_AT_A_TIME, COMPACTION), so the ABORT is about the batch:
    unless a decision was hidden behind it (`_is_in_front`).
    """
    decision, holes = scene.decisions[number], scene.case.holes
    is_last = not holes or holes[-1].end_offset <= decision.first_record_offset
    is_abort = decision.outcome == "ABORT" and bool(scene.lists_partition(decision))
    return is_abort and is_last and not Times(times).add(FIRST, begun(number), -1)


def _is_in_front(way: Hidden, number: int) -> bool:
    """Whether the first batch or the hidden decision certainly came before a decision was completed. Records that a
    coordinator lost may come after all that it has."""
    return not all(Times(way.times).precedes(complete(number), each) for each in (FIRST, decided(NO_RECORD)))


# ---- The story


def _proof(holds: bool, says: str, witnesses: tuple[str, ...] = ()) -> Proof:
    return Proof(Statement.NO_COMMIT_INCLUDES_IT, holds, says, witnesses)


def _too_many() -> Proof:
    return _proof(False, f"its history allows more than {MOST_CHOICES:,} readings, and not all were compared")


def _says(scene: Worlds, found: Covering) -> str:
    if isinstance(found.decision, int):
        return _due(scene, found.decision)
    lost = f", and its marker: {scene.lost_markers}" if found.is_complete else ""
    return f"a COMMIT may include it: {found.why}{lost}"


def _unexplained(scene: Worlds) -> str:
    """Why no world exists: the marker or decision that none explains."""
    for each in scene.case.unexplained_commits:
        if not scene.are_siblings_explained(scene.times):
            return (
                f"no history agrees with the capture: a COMMIT marker on {each.topic}-{each.partition} carries out no"
                " decision that its coordinator shows, so others may be lost, too"
            )
    for number in reversed(range(len(scene.decisions))):
        if scene.decisions[number].outcome == "COMMIT" and _must_have_marker(scene, number):
            return _due(scene, number)
    return (
        "no history agrees with the capture: a marker of the producer here carries out no decision of its coordinator,"
        " or a decision lacks its marker"
    )


def _must_have_marker(scene: Worlds, number: int) -> bool:
    """Whether a decision has certainly written its marker here, although no marker that is left can be it."""
    if not is_complete(scene.decisions[number]) or scene.is_deleted(scene.times, number):
        return False
    return not scene.may_have_marker(number)


def _due(scene: Worlds, number: int) -> str:
    """Which COMMIT may include open records, and what to do about it."""
    of, case = scene.decisions[number], scene.case
    made, look = (
        f"its coordinator decided COMMIT at {instant(of.dated_ms)}",
        "first look for its marker in another replica",
    )
    if of.partitions is None:
        return (
            f"{made}, and compaction removed the records that show whether the decision includes this partition: {look}"
        )
    if scene.is_deleted(scene.times, number):
        return f"{made}, and the part of the log that may have had its marker is deleted: {look}"
    if scene.may_have_marker(number):
        return (
            f"{made}, and the marker here may be of another decision: brokers' clocks do not tell; first look at the"
            " other replicas and at the records themselves"
        )
    newest = case.facts.coordinator(of.coordinator_partition).newest_coordinator_epoch
    needed = marker_needed(
        f"type {of.outcome}, producer id {case.dossier.producer_id}",
        (marker_epoch(of), case.span.producer_epoch),
        (of.coordinator_epoch if newest is None else newest, case.span.coordinator_epoch),
        of.transaction_version,
    )
    return (
        "a COMMIT marker is due here: the tool can only abort, which would discard acknowledged records; first look"
        f" for a replica or an old leader that has it (a marker would need {needed})"
    )


def _closed(scene: Worlds, owned: Collection[int]) -> tuple[str, tuple[str, ...]]:
    """The proven statement, and the facts that exclude every world in which a COMMIT includes open records. `owned`:
    the decisions that have a marker here in some world."""
    case, numbers = scene.case, [each for each in range(len(scene.decisions)) if each not in owned]
    own = [
        each
        for each in numbers
        if _is_only_decision(scene, scene.decisions[each]) or _is_aborted(scene, scene.times, each)
    ]
    if own and scene.lost_markers is not None:
        of = scene.decisions[own[-1]]
        only = f"{of.place}: {of.outcome} of its epoch"
        return "its coordinator decided ABORT, and only the marker is missing", (only,)
    shown = _shown(scene)
    if scene.lost_markers is not None:
        return "no COMMIT includes it: the coordinators' records show every decision", shown
    first, newest = case.first_leader_epoch or 0, case.newest_leader_epoch or 0
    says = "no COMMIT includes it: a decision would have left its marker, and"
    if newest == first:
        where = "its checkpoint" if case.copy.checkpoint_leader_epoch is not None else "__cluster_metadata"
        kept = f"leader epoch {first} of its first batch is still the newest in the log and in {where}"
        return f"{says} no leader that could have lost it followed", (kept, *shown)
    kept = f"__cluster_metadata: every election of leader epochs {first + 1} to {newest} was clean"
    return f"{says} every election since was clean", (kept, *shown)


def _shown(scene: Worlds) -> tuple[str, ...]:
    """What the coordinator's log shows of the decisions about the producer id."""
    case, claim = scene.case, scene.case.claim
    if claim.is_nobodys or not case.coordinator.shows_absence:
        return ()
    name = f"{TRANSACTION_STATE_TOPIC}-{claim.coordinator_partition}"
    if not case.holes:
        read = "" if case.coordinator.hole_end is None else ", with what earlier audits read"
        return (f"{name} has every record since offset 0{read}",)
    since = f"compaction removed records of {name} below offset {case.holes[-1].end_offset}"
    if claim.owner == Owner.CURRENT and claim.state == "Empty" and claim.producer_epoch == 0:
        return (f"{since}, but the last record of {claim.transactional_id} assigned the producer id, and stays",)
    if case.is_assigned_behind_holes:
        return (f"{since}, but none since offset {claim.first_record_offset}, which assigned the producer id",)
    return (f"{since}: what they decided was before the first batch, or left its marker",)
