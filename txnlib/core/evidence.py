"""What is known about one open transaction before it is judged? Both sides, joined; None is "not known", never "no"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from txnlib.core.sentinels import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.transaction_state import ACTIVE_STATES, PREPARED_STATES, TransactionState


class Owner(Enum):
    """How a producer id relates to the transactional id that is known to have had it."""

    NOBODY = "NOBODY"
    CURRENT = "CURRENT"
    #: The id lives on with another producer id; the old one never comes back.
    ROTATED = "ROTATED"
    #: The id's last record is a tombstone.
    EXPIRED = "EXPIRED"


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
    #: The producer's last marker in this partition, before the open transaction.
    marker_offset: int | None = None
    marker_type: str | None = None
    marker_epoch: int | None = None
    marker_coordinator_epoch: int | None = None
    marker_ms: int | None = None


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
    #: Newest append time of a decision or completion, by this producer id, of a transaction listing this partition.
    ended_ms: int | None = None
    #: When the id's last transaction was decided (append time of its Prepare).
    last_prepared_ms: int | None = None

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
    """The instant to judge at and the limits to judge by, all in ms."""

    as_of_ms: int
    max_transaction_timeout_ms: int = 900_000
    transaction_max_timeout_ms: int = 900_000
    stuck_after_ms: int = 300_000
    timeout_scan_interval_ms: int = 10_000
    clock_tolerance_ms: int = 300_000
