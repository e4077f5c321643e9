"""The evidence on one open transaction, from both sides. None means "not known", never "no"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from txnlib.core.copies import KNOWN_BY, CountBasis, End, KnownBy, Role
from txnlib.core.sentinels import CLOCKS_DIFFER_MS, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.transaction_state import ACTIVE_STATES, PREPARED_STATES, TransactionState


class Owner(Enum):
    """How a producer id relates to the transactional id that is known to have had it."""

    NOBODY = "NOBODY"
    CURRENT = "CURRENT"
    #: The id lives on with another producer id; the old one never comes back.
    ROTATED = "ROTATED"
    #: The id's last record is a tombstone.
    EXPIRED = "EXPIRED"
    #: The id names it as its next producer id, and has not taken it yet.
    NEXT = "NEXT"


class Crc(Enum):
    """What the checksums of the batches that a verdict rests on say."""

    VALID = "VALID"
    #: Text has no bytes to check.
    NOT_CHECKED = "NOT_CHECKED"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The newest decision about the producer id that lists the partition, or may list it; times by its coordinator's clock."""

    #: COMMIT or ABORT.
    type: str
    producer_epoch: int | None
    #: Newest leader epoch of the coordinator partition: what a marker for it would carry.
    coordinator_epoch: int | None
    decided_ms: int | None
    completed_ms: int | None
    transaction_version: int | None = None
    #: Whether its marker stands in the partition; None where the records that would tell are gone.
    is_marked: bool | None = None
    #: Whether its records list the partition; else only its last record is left, which lists none.
    lists_partition: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSide:
    """What the judged copy of the partition shows."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp_ms: int | None
    #: Times the transaction's batches carry are a broker's (LogAppendTime).
    is_broker_clock: bool = False
    first_timestamp_ms: int | None = None
    #: Whether the log shows the transaction's beginning; else it may have begun below the first captured offset.
    is_start_exact: bool = True
    #: Newest and oldest broker-stamped time at a lower and at a higher offset of the partition.
    stamped_before_ms: int | None = None
    stamped_after_ms: int | None = None
    #: Whether nothing is known of such times at lower offsets, because a snapshot stands for them.
    hides_stamps: bool = False
    #: Instant of a high watermark checkpoint that already reached beyond the start.
    checkpointed_ms: int | None = None
    #: A hole in the copy above the start: a marker may stand in it.
    gap_offset: int | None = None
    #: The instant up to which the copy shows everything.
    captured_at_ms: int | None = None
    #: The instant after which nothing in it was written: when it was taken. None: as above.
    taken_at_ms: int | None = None
    is_capture_instant_assumed: bool = False
    #: What the copy is among the copies of the partition, and how it ends (`core.copies`).
    role: Role = Role.LEADER
    end: End = End.WHOLE
    #: Whether the partition has a leader; None where nothing notes it.
    has_leader: bool | None = True
    #: Records above the start are known to be missing or damaged.
    is_tail_lost: bool = False
    #: Other copies hold other batches below their high watermarks, and no leader is noted.
    is_disputed: bool = False
    #: Whether the start stands below the high watermark of the copy; None where no checkpoint notes it.
    is_start_committed: bool | None = True
    crc: Crc = Crc.VALID
    #: Instant of the oldest earlier audit that saw it open.
    first_seen_ms: int | None = None
    #: The newest COMMIT marker of the producer on another partition, since the start, that no known decision explains.
    sibling_commit_ms: int | None = None
    #: The newest marker of the producer on any partition that no known decision explains.
    newest_marker_ms: int | None = None
    #: The newest COMMIT among those: only a coordinator writes one.
    newest_commit_ms: int | None = None
    newest_commit_coordinator_epoch: int | None = None
    #: How far the clocks of the partition's leader and of its coordinator may differ.
    clocks_differ_ms: int = CLOCKS_DIFFER_MS
    #: Names of findings of severity ERROR or CRITICAL about the partition, the producer id or the transactional id.
    alarms: tuple[str, ...] = ()
    #: The producer's last marker in this partition, before the open transaction.
    marker_offset: int | None = None
    marker_type: str | None = None
    marker_epoch: int | None = None
    marker_coordinator_epoch: int | None = None
    marker_ms: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether the copy shows everything up to the instant at which it was taken."""
        return KNOWN_BY[self.role, self.end] is KnownBy.CAPTURE


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSide:
    """What all captured coordinator logs say of the producer id."""

    owner: Owner = Owner.NOBODY
    transactional_id: str | None = None
    coordinator_partition: int | None = None
    #: The id's last record; `state` is None after a tombstone.
    state: TransactionState | None = None
    record_offset: int | None = None
    producer_epoch: int | None = None
    transaction_timeout_ms: int | None = None
    transaction_start_ms: int | None = None
    last_update_ms: int | None = None
    #: Append time of the last record: for Prepare the instant of the decision.
    record_ms: int | None = None
    record_coordinator_epoch: int | None = None
    #: Newest leader epoch seen of that coordinator partition: markers are re-sent with it after a failover.
    newest_coordinator_epoch: int | None = None
    #: Whether the last record's set of partitions holds this one.
    is_listed: bool = False
    #: Transaction version of the last record that carries one.
    transaction_version: int | None = None
    #: The instant up to which the coordinator's log is known; for nobody's producer id, of all coordinators.
    captured_at_ms: int | None = None
    is_capture_instant_assumed: bool = False
    #: Records at or below this offset of the coordinator partition are lost to damage.
    damaged_offset: int | None = None
    #: Coordinator partitions that were not captured, or not whole: what they know is not known.
    missing_partitions: tuple[int, ...] = ()
    #: The newest decision about this producer id that lists the partition.
    decision: Decided | None = None
    #: The newest COMMIT among those whose marker is not known to be in the partition, since the newest whose marker is.
    commit_due: Decided | None = None
    #: Newest append time of a decision or completion, by this producer id, of a transaction listing this partition.
    ended_ms: int | None = None
    #: What its best copy is, and how that ends (`core.copies`); of a producer id that nobody had, of the worst coordinator.
    role: Role = Role.LEADER
    end: End = End.WHOLE
    #: Whether its last record stands below the high watermark of a copy that is not current; None: it need not.
    is_record_committed: bool = True
    #: How the number of coordinator partitions is known.
    count_basis: CountBasis = CountBasis.GIVEN
    #: Newest time at which records of the coordinator's log that are missing now may have been written.
    compacted_ms: int | None = None
    #: Whether the current copy has cleaned its last record away: the id has expired since.
    is_superseded: bool = False
    #: Level of the cluster's feature `transaction.version`: coordinators abort by it, whatever the client speaks.
    cluster_transaction_version: int | None = None

    @property
    def is_log_current(self) -> bool:
        """Whether the coordinator's log is known up to the instant at which it was copied."""
        return KNOWN_BY[self.role, self.end] is KnownBy.CAPTURE

    @property
    def has_id(self) -> bool:
        """Whether a transactional id has the producer id, or is about to have it."""
        return self.owner in (Owner.CURRENT, Owner.NEXT)

    @property
    def is_two_phase_commit(self) -> bool:
        return self.transaction_timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS

    @property
    def is_current(self) -> bool:
        return self.owner is Owner.CURRENT

    @property
    def is_active(self) -> bool:
        return self.is_current and self.state in ACTIVE_STATES

    @property
    def is_prepared(self) -> bool:
        return self.is_current and self.state in PREPARED_STATES


@dataclass(frozen=True, slots=True)
class Evidence:
    on_partition: PartitionSide
    at_coordinator: CoordinatorSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The instant to judge at, the limits to judge by, and how far clocks may differ, all in ms."""

    as_of_ms: int
    max_transaction_timeout_ms: int = 900_000
    transaction_max_timeout_ms: int = 900_000
    stuck_after_ms: int = 300_000
    timeout_scan_interval_ms: int = 10_000
    clock_tolerance_ms: int = 300_000
