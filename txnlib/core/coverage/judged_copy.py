"""Which copy of a partition is judged: the role of each among the copies, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.copies import NO_LEADER, End, LeaderBasis, Role, highest, is_above
from txnlib.core.coverage.captured_files import is_broker_id
from txnlib.core.coverage.copy_facts import CopyFacts
from txnlib.core.coverage.leaders import PartitionLeader
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS

_UNCONFIRMED: Final = (LeaderBasis.METADATA_LOG_UNCONFIRMED, LeaderBasis.METADATA_LOG_DAMAGED)


@dataclass(frozen=True, slots=True)
class LeaderProof:
    """What the metadata log proves about leaders."""

    #: None if there is no metadata log.
    basis: LeaderBasis | None = None
    #: The instant up to which the metadata log names the leader. A copy that was taken later may have had another one;
    #: None if not known.
    reach_ms: int | None = None
    #: Whether a leader that the log does not name may be lost in it.
    hides_leaders: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointOnly:
    """What the leader-epoch-checkpoint of a copy shows whose log was not captured."""

    broker: str | None
    captured_at_ms: int | None
    #: Its newest leader epoch, and the offset up to which its log is known to reach, as `CopyFacts.reach`.
    reach: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CopyRole:
    """The role of a copy, and the leader that it follows from."""

    role: Role
    leader: str | None
    leader_basis: LeaderBasis | None
    is_leader: bool | None


def roles(
    copies: Sequence[CopyFacts], beside: Sequence[CheckpointOnly], named: PartitionLeader, proof: LeaderProof
) -> Iterator[CopyRole]:
    """The role of each copy of a partition. `beside`: copies whose logs were not captured. `named`: the leader by
    capture.json and the metadata log.

    If any copy has a higher leader epoch than the metadata log, the metadata log is outdated for the partition. A copy
    that was taken after the end of the metadata log may have had another leader by then. A copy that was taken before
    its broker began to lead is a follower's. If the metadata log hides leaders, a partition without a leader may have
    one in what is lost.
    """
    is_of_metadata = named.leader_basis not in (None, LeaderBasis.CAPTURE_JSON)
    newest_epoch = highest((*(copy.epochs.leader_epoch for copy in copies), *(each.reach[0] for each in beside)))
    is_refuted = _is_note_refuted(copies, beside, named.leader)
    is_outdated = is_refuted or (is_of_metadata and is_above(newest_epoch, named.led_epoch))
    leader = None if is_outdated else named.leader
    others: list[CopyFacts | CheckpointOnly] = [*copies, *beside]
    for copy in copies:
        in_force = named.leader_basis
        is_late = copy.captured_at_ms is None or proof.reach_ms is None or copy.captured_at_ms > proof.reach_ms
        if in_force is LeaderBasis.METADATA_LOG and is_late:
            in_force = LeaderBasis.METADATA_LOG_UNCONFIRMED
        may_be_lost = proof.hides_leaders and (proof.basis is LeaderBasis.METADATA_LOG_DAMAGED or in_force is None)
        basis = None if is_outdated else in_force
        if basis is None and may_be_lost:
            basis = LeaderBasis.METADATA_LOG_DAMAGED
        was_follower = is_of_metadata and _is_before(copy.captured_at_ms, named.led_since_ms)
        is_leader = None if leader is None or copy.broker is None else leader == copy.broker
        is_none = was_follower or copy.out_of_use is not None
        role = Role.OTHER if is_none else _role(copy, others, named, leader, basis)
        yield CopyRole(role, leader, basis, is_leader)


def _role(
    copy: CopyFacts,
    others: Sequence[CopyFacts | CheckpointOnly],
    named: PartitionLeader,
    leader: str | None,
    basis: LeaderBasis | None,
) -> Role:
    is_furthest = copy.reach == max(each.reach for each in others)
    if basis is LeaderBasis.METADATA_LOG_STALE:
        return Role.OTHER
    if leader is None:
        return Role.FURTHEST if is_furthest else Role.OTHER
    if leader == NO_LEADER:
        in_sync = named.in_sync or ()
        is_last_in_sync = copy.broker in in_sync and copy.reach == max(
            each.reach for each in others if each.broker in in_sync
        )
        captured = {each.broker for each in others if isinstance(each, CopyFacts) and each.out_of_use is None}
        are_all_captured = bool(named.replicas) and set(named.replicas) <= captured
        return Role.LAST_LEADER if is_last_in_sync or (is_furthest and are_all_captured) else Role.OTHER
    if leader == copy.broker:
        return Role.LEADER if is_furthest or basis not in _UNCONFIRMED else Role.OTHER
    # If the folder does not name a broker, the copy's broker is unknown, unless there is only one replica. Console text
    # is no replica.
    if is_furthest and not is_broker_id(copy.broker) and not copy.extent.is_printed:
        return Role.LEADER if named.replicas == (leader,) else Role.FURTHEST
    return Role.OTHER


def _is_before(ms: int | None, other_ms: int | None) -> bool:
    """Whether an instant is certainly before another one, although their clocks may differ."""
    return ms is not None and other_ms is not None and ms < other_ms - CLOCKS_DIFFER_MS


def _is_note_refuted(copies: Sequence[CopyFacts], beside: Sequence[CheckpointOnly], leader: str | None) -> bool:
    """Whether another copy refutes that the named leader still led the partition when its own copy was taken.

    The other copy, or its checkpoint of leader epochs alone, has a higher leader epoch, or the same one and a higher
    end: followers are never ahead of their leader. If the other copy was taken later, it proves this only if its leader
    stamped a marker before the leader's copy was taken. If it was taken so shortly before that it may have been read
    after, it proves nothing.
    """
    replicas = [copy for copy in copies if not copy.extent.is_printed and copy.broker is not None]
    own = [copy for copy in replicas if copy.broker == leader and copy.ends_whole and copy.out_of_use is None]
    if leader is None or not own:
        return False
    led = max(own, key=lambda copy: (copy.reach, -1 if copy.captured_at_ms is None else copy.captured_at_ms))

    def is_earlier(other: CopyFacts | CheckpointOnly) -> bool:
        is_known = other.captured_at_ms is not None and led.captured_at_ms is not None
        is_same = other.captured_at_ms == led.captured_at_ms
        return not is_known or is_same or _is_before(other.captured_at_ms, led.captured_at_ms)

    def was_deposed(other: CopyFacts) -> bool:
        is_newer = is_above(other.epochs.leader_epoch, led.epochs.leader_epoch)
        return is_newer and _is_before(other.epochs.stamped_ms, led.captured_at_ms)

    others: list[CopyFacts | CheckpointOnly] = [*replicas, *beside]
    ahead = [each for each in others if each.broker != leader and each.reach > led.reach]
    return any(is_earlier(each) or (isinstance(each, CopyFacts) and was_deposed(each)) for each in ahead)


def order_to_judge(copy: CopyFacts, role: CopyRole) -> tuple[object, ...]:
    """Sort key of the copies of a partition: the first one is judged.

    Undamaged copies come first, then those printed in full, the leader's, those of the newest leader epoch, the
    longest.
    """
    is_led = role.role is Role.LEADER and copy.end is not End.SHORT
    lacks_records = not copy.extent.is_decoded or copy.extent.is_printed
    epoch, end = copy.epochs.leader_epoch, copy.survives_until
    newest_first = 1 if epoch is None else -epoch, 1 if end is None else -end
    return copy.is_damaged, lacks_records, not is_led, *newest_first, not copy.source.startswith("raw:"), copy.source
