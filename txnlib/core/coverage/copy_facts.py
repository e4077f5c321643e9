"""One copy by itself, and its role among the copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from txnlib.core.copies import NO_LEADER, End, LeaderBasis, Role, highest, is_above, lowest
from txnlib.core.coverage.captured_files import Checkpoints, Extent, broker_of, is_broker_id
from txnlib.core.coverage.leader_epochs import EpochsOfCopy
from txnlib.core.coverage.leaders import NotedPartition, PartitionLeader
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC

_WHOLE_TAILS: Final = ("CLEAN", "ZEROS")


class CopyFacts:
    """What is known of one copy."""

    def __init__(
        self,
        source: str,
        extent: Extent,
        checkpoints: Checkpoints,
        epochs: EpochsOfCopy,
        noted: NotedPartition,
        captured_at_ms: int | None,
        noted_high_watermark: int | None,
        newest_snapshot: int | None,
        is_checkpoint_older: bool,
    ) -> None:
        self.source, self.broker, self.is_coordinator = source, broker_of(source), noted.topic == TRANSACTION_STATE_TOPIC
        #: Of a coordinator: where nothing shows that the cleaner took the end of a segment. It takes none from its checkpoint on,
        #: but may have gone on since that was copied. Kafka: `LogCleanerManager`.
        gap, cleaned = extent.named_gap, checkpoints.cleaner_offset
        is_cleaned = gap is None or (cleaned is not None and gap <= cleaned)
        self.segment_gap_offset = gap if self.is_coordinator and not is_cleaned else None
        self.lacks_segment = self.segment_gap_offset is not None and cleaned is not None and not is_checkpoint_older
        if self.lacks_segment:
            extent = replace(extent, damaged_offset=highest((extent.damaged_offset, extent.named_gap)))
        self.extent, self.checkpoints, self.epochs = extent, checkpoints, epochs
        self.captured_at_ms = captured_at_ms
        #: Highest high watermark of the partition in any checkpoint that was not copied after this copy.
        self.noted_high_watermark = noted_high_watermark
        #: The offset after the last batch that was not truncated.
        self.survives_until = epochs.survives_until if epochs.truncated else extent.end_offset
        #: Whether the copy begins above its log start because the capture chose so. Then its first segment is not the log's.
        self.is_scoped = noted.is_scoped(extent.first_segment_offset)
        # The checkpoint lists a partition only if its log start is above its first segment.
        first_offset = highest((checkpoints.log_start_offset, extent.first_segment_offset))
        self.log_start_offset = noted.log_start_offset if self.is_scoped else first_offset
        self._shown_from = highest((newest_snapshot, noted.answered_stable_offset))
        # A text of nothing but first lines is whole where a high watermark confirms that the log is empty.
        is_empty = extent.tail == "EMPTY_OR_CUT" and noted_high_watermark is not None
        self.tail = "CLEAN" if is_empty and noted_high_watermark == self.survives_until else extent.tail

    @property
    def hidden_below(self) -> int | None:
        """The offset from which the copy was read, if nothing shows what was open there. A snapshot from there on would.

        None for a coordinator, in which nothing is open.
        """
        since, start = self.extent.read_from_offset, self.log_start_offset
        begins_at = since if is_above(since, start) else lowest((start, self.extent.first_offset))
        is_shown = self.is_coordinator or not begins_at or (self._shown_from or 0) >= begins_at
        return None if is_shown else begins_at

    @property
    def is_damaged(self) -> bool:
        return self.extent.harm > 0 or self.tail == "CORRUPT" or self.lacks_segment

    @property
    def reach(self) -> tuple[int, int]:
        """How far the copy reaches: its newest leader epoch, then its end."""
        epoch = self.epochs.leader_epoch
        return -1 if epoch is None else epoch, self.survives_until or 0

    @property
    def ends_whole(self) -> bool:
        """Whether the copy was read to its end."""
        return self.tail in _WHOLE_TAILS

    @property
    def end(self) -> End:
        if self.tail == "CORRUPT" or self.is_below_high_watermark or self.is_below_own_checkpoints:
            return End.SHORT
        return End.WHOLE if self.ends_whole and not self.extent.is_printed else End.TORN

    @property
    def is_below_high_watermark(self) -> bool:
        return is_above(self.noted_high_watermark, self.survives_until)

    @property
    def is_below_own_checkpoints(self) -> bool:
        return is_above(highest((self.epochs.reached_offset, self.checkpoints.recovery_point)), self.survives_until)


def begin_by_choice(copy: CopyFacts) -> str | None:
    """Why the copy begins above its log start, in words; None if it does not, or not by choice."""
    since = copy.extent.read_from_offset
    if copy.is_scoped:
        return f"fetched from offset {since} on, by scope; the log begins at {copy.log_start_offset}"
    return f"read from the snapshot at {since} on" if is_above(since, copy.log_start_offset) else None


def problems_of(copy: CopyFacts) -> Iterator[str]:
    """What the copy lacks, in words."""
    extent, is_coordinator = copy.extent, copy.is_coordinator
    begins_at = highest((copy.log_start_offset, extent.read_from_offset))
    # Compaction leaves holes everywhere below its progress; a hole only between segments is a missing segment.
    has_gap = extent.boundary_gap is not None and extent.last_gap_offset is None
    problems = {
        "damaged stretches": extent.harm > 0,
        "unbelievable end": copy.tail == "CORRUPT",
        "ends inside a batch": copy.tail == "TORN",
        "empty, or cut after the first lines of its text": copy.tail == "EMPTY_OR_CUT",
        "ends below the high watermark": copy.is_below_high_watermark,
        "ends below what its own checkpoints note": copy.is_below_own_checkpoints,
        "a newer leader truncated some of its batches": bool(copy.epochs.truncated),
        "offsets missing between segments": copy.lacks_segment or (has_gap and not is_coordinator),
        "its first segments are missing": is_coordinator and is_above(begins_at, 0),
        "markers or coordinator records not printed": extent.is_decoded is False,
        "a console consumer's text, which does not tell where it began": extent.is_printed,
    }
    return (text for text, applies in problems.items() if applies)


# ---- The role of each copy among the copies of its partition


_UNCONFIRMED: Final = (LeaderBasis.METADATA_LOG_UNCONFIRMED, LeaderBasis.METADATA_LOG_DAMAGED)


@dataclass(frozen=True, slots=True)
class LeaderProof:
    """What the metadata log proves about leaders."""

    #: None if there is no metadata log.
    basis: LeaderBasis | None = None
    #: A copy that was taken later may have had another leader than the log says; None if that is not known.
    reach_ms: int | None = None
    #: Whether a leader that the log does not name may be lost in it.
    hides_leaders: bool = False


@dataclass(frozen=True, slots=True)
class CopyRole:
    """The role of a copy, and the leader that it follows from."""

    role: Role
    leader: str | None
    leader_basis: LeaderBasis | None
    is_leader: bool | None


def roles(copies: Sequence[CopyFacts], named: PartitionLeader, proof: LeaderProof) -> Iterator[CopyRole]:
    """The role of each copy of a partition. `named`: its leader by notes and metadata log.

    A leader epoch in any copy that is above the metadata log's shows that the log is outdated for the partition. A copy that was
    taken after the end of the log may have had another leader by then. One that was taken before its broker began to lead is a
    follower's. If the log hides leaders, a partition without a leader may have one in what is lost of it.
    """
    is_of_metadata = named.leader_basis not in (None, LeaderBasis.CAPTURE_JSON)
    newest_epoch = highest(copy.epochs.leader_epoch for copy in copies)
    is_outdated = (is_of_metadata and is_above(newest_epoch, named.led_epoch)) or _is_note_refuted(copies, named.leader)
    leader = None if is_outdated else named.leader
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
        role = Role.OTHER if was_follower else _role(copy, copies, named, leader, basis)
        yield CopyRole(role, leader, basis, is_leader)


def _role(
    copy: CopyFacts, copies: Sequence[CopyFacts], named: PartitionLeader, leader: str | None, basis: LeaderBasis | None
) -> Role:
    is_furthest = copy.reach == max(each.reach for each in copies)
    if basis is LeaderBasis.METADATA_LOG_STALE:
        return Role.OTHER
    if leader is None:
        return Role.FURTHEST if is_furthest else Role.OTHER
    if leader == NO_LEADER:
        in_sync = [each for each in copies if each.broker in (named.in_sync or ())]
        is_last_in_sync = copy in in_sync and copy.reach == max(each.reach for each in in_sync)
        are_all_captured = bool(named.replicas) and set(named.replicas) <= {each.broker for each in copies}
        return Role.LAST_LEADER if is_last_in_sync or (is_furthest and are_all_captured) else Role.OTHER
    if leader == copy.broker:
        return Role.LEADER if is_furthest or basis not in _UNCONFIRMED else Role.OTHER
    # If the folder does not name a broker, the copy's broker is unknown, unless there is only one replica. Console text is no
    # replica.
    if is_furthest and not is_broker_id(copy.broker) and not copy.extent.is_printed:
        return Role.LEADER if named.replicas == (leader,) else Role.FURTHEST
    return Role.OTHER


def _is_before(ms: int | None, other_ms: int | None) -> bool:
    """Whether an instant is certainly before another one, although their clocks may differ."""
    return ms is not None and other_ms is not None and ms < other_ms - CLOCKS_DIFFER_MS


def _is_note_refuted(copies: Sequence[CopyFacts], leader: str | None) -> bool:
    """Whether another copy refutes that a partition's leader led it when its copy was taken.

    The other has a higher leader epoch, or the same one and a higher end: followers are never ahead of their leader. Copies that
    were taken later prove nothing, nor do those that were taken so shortly before that they may have been read after.
    """
    replicas = [copy for copy in copies if not copy.extent.is_printed and copy.broker is not None]
    own = [copy for copy in replicas if copy.broker == leader and copy.ends_whole]
    if leader is None or not own:
        return False
    led = max(own, key=lambda copy: (copy.reach, -1 if copy.captured_at_ms is None else copy.captured_at_ms))

    def is_earlier(other: CopyFacts) -> bool:
        is_known = other.captured_at_ms is not None and led.captured_at_ms is not None
        is_same = other.captured_at_ms == led.captured_at_ms
        return not is_known or is_same or _is_before(other.captured_at_ms, led.captured_at_ms)

    return any(other.broker != leader and other.reach > led.reach and is_earlier(other) for other in replicas)
