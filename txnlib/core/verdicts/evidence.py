"""The evidence on one open transaction, from both sides. None means "not known", never "no"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from txnlib.core.cluster_metadata import Election, FencedBroker, LoweredFeature, ProducerIdBlock, elections_of
from txnlib.core.copies import End, Role, is_current
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, PREPARED_STATES, TransactionState
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.earlier_audits import EarlierAudit
from txnlib.core.verdicts.history import NO_HISTORY, Decided, History


class Crc(Enum):
    """The result of checking the CRCs of the batches that a verdict depends on."""

    VALID = "VALID"
    #: Text has no bytes to check.
    NOT_CHECKED = "NOT_CHECKED"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSide:
    """What the judged copy of the partition shows. `gap_offset`: a hole above the start."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp_ms: int | None
    #: Epoch of the first batch; that of the partition may be newer.
    first_epoch: int | None = None
    #: When the producer id, or the epoch of the first batch, was handed out, at the latest.
    made_ms: int | None = None
    #: Whether timestamps of the transaction's batches are a broker's (LogAppendTime).
    is_broker_clock: bool = False
    first_timestamp_ms: int | None = None
    #: Whether the log shows the beginning of the transaction; if not, it may have begun below the first captured
    #: offset.
    is_start_exact: bool = True
    #: Newest and oldest broker-stamped time at a lower and at a higher offset of the partition.
    stamped_before_ms: int | None = None
    stamped_after_ms: int | None = None
    #: An instant before the first batch, whichever of the clocks around it is wrong.
    begun_after_ms: int | None = None
    #: Whether such times at lower offsets are unknown, because a snapshot replaces that part of the log.
    hides_stamps: bool = False
    #: Instant of a high watermark checkpoint that already reached beyond the start.
    checkpointed_ms: int | None = None
    gap_offset: int | None = None
    #: The instant up to which the copy shows everything.
    known_until_ms: int | None = None
    #: When the copy was taken, so that nothing in it is younger. None: the same as above.
    captured_at_ms: int | None = None
    is_capture_instant_assumed: bool = False
    #: Role of the copy among the copies of the partition, and how it ends (`core.copies`).
    role: Role = Role.LEADER
    end: End = End.WHOLE
    has_leader: bool | None = True
    #: Whether the record that names its leader, or removes its topic, may be lost in the metadata log.
    is_leader_hidden: bool = False
    #: The broker that leads it, or led it when that was last known; None if not known, or if there is none.
    leader: str | None = None
    #: Whether records above the start are known to be missing or damaged.
    is_tail_lost: bool = False
    #: Whether other copies have other batches below their high watermarks, and no leader is noted.
    is_disputed: bool = False
    #: Whether the start is below the high watermark of the copy; None if no checkpoint was captured.
    is_start_committed: bool | None = True
    crc: Crc = Crc.VALID
    first_seen_ms: int | None = None
    #: The newest marker of the producer on any partition that no known decision explains.
    newest_marker_ms: int | None = None
    #: The newest COMMIT among these markers; only a coordinator writes a COMMIT.
    newest_commit_ms: int | None = None
    newest_commit_coordinator_epoch: int | None = None
    clocks_differ_ms: int = CLOCKS_DIFFER_MS
    #: The oldest broker-stamped time behind the last batch: it was not written later. And the newest one before its
    #: end.
    written_before_ms: int | None = None
    written_after_ms: int | None = None
    #: Instant of a high watermark checkpoint that already reached beyond the last batch.
    written_checkpointed_ms: int | None = None
    #: Whether there is more than one batch, so that the last write is not the first.
    is_written_again: bool = False
    #: Whether brokers' clocks, or the producer's own, show a write after the coordinator's copy.
    is_written_after_coordinator: bool = False
    #: What its leader answered when the capture was taken: nothing below that offset was open.
    answered_stable_offset: int | None = None
    answered_at_ms: int | None = None
    #: Whether that may be the log start, to which a leader raises it, whatever is open.
    is_stable_offset_raised: bool = False
    #: Leader epochs: of the first batch, the newest one in any copy, and the newest one in the judged copy's
    #: checkpoint.
    first_leader_epoch: int | None = None
    newest_leader_epoch: int | None = None
    checkpoint_leader_epoch: int | None = None
    #: Whether the first batch is gone: only a producer snapshot, or the answer of the leader, shows where the
    #: transaction began.
    is_begin_gone: bool = False
    #: Identity of the log and of the first batch, by which a later audit recognises the transaction.
    topic_id: str | None = None
    first_batch_crc: int | None = None
    #: The markers of the producer in truncated parts of other copies: `COMMIT at offset 7 of broker 2`.
    truncated_markers: tuple[str, ...] = ()
    #: The markers of the producer behind the first batch that other copies have, in the same words.
    ended_elsewhere: tuple[str, ...] = ()
    #: The first and last offset that another copy has and a newer leader truncated; None if no copy has any.
    truncated_from: int | None = None
    truncated_until: int | None = None
    #: Names of findings of severity ERROR or CRITICAL about the partition, the producer id or the transactional id.
    alarms: tuple[str, ...] = ()
    #: The producer's last marker in this partition, before the open transaction.
    marker_offset: int | None = None
    marker_type: str | None = None
    marker_epoch: int | None = None
    marker_coordinator_epoch: int | None = None
    marker_ms: int | None = None

    @property
    def is_instant_refuted(self) -> bool:
        """Whether the copy was taken after its noted instant: no copy is older than its newest broker stamp."""
        taken, known = self.captured_at_ms, self.known_until_ms
        return self.is_current and taken is not None and known is not None and taken > known

    @property
    def is_answered_closed(self) -> bool:
        """Whether the leader answered a last stable offset above the first batch: then nothing was open there."""
        stable = self.answered_stable_offset
        return stable is not None and stable > self.start_offset and not self.is_stable_offset_raised

    @property
    def is_current(self) -> bool:
        """Whether the copy shows everything up to the instant at which it was taken."""
        return is_current(self.role, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSide:
    """What all captured coordinator logs show about the producer id. `has_leader` None: not known for certain."""

    owner: Owner = Owner.NOBODY
    transactional_id: str | None = None
    coordinator_partition: int | None = None
    #: The last record of the id; `state` is None after a tombstone.
    state: TransactionState | None = None
    record_offset: int | None = None
    producer_epoch: int | None = None
    transaction_timeout_ms: int | None = None
    transaction_start_ms: int | None = None
    last_update_ms: int | None = None
    #: Append time of the last record; for Prepare, the time of the decision.
    record_ms: int | None = None
    record_coordinator_epoch: int | None = None
    #: Newest known leader epoch of that coordinator partition, with which markers are sent again after a failover.
    newest_coordinator_epoch: int | None = None
    is_listed: bool = False
    transaction_version: int | None = None
    #: The instant up to which the coordinator's log is known; for a producer id without an owner, the logs of all
    #: coordinators.
    known_until_ms: int | None = None
    is_capture_instant_assumed: bool = False
    #: Records at or below this offset of the coordinator partition are lost to damage.
    damaged_offset: int | None = None
    #: Coordinator partitions that were not captured, or not completely; None if none was captured.
    missing_partitions: tuple[int, ...] | None = ()
    has_leader: bool | None = None
    #: Whether the record that names the leader of a coordinator may be lost in the metadata log.
    is_leader_hidden: bool = False
    #: The broker that leads the coordinator's partition; for missing partitions, the brokers that lead them. None: not
    #: known.
    leader: str | None = None
    decision: Decided | None = None
    #: The newest COMMIT decision without a known marker in the partition, after the newest decision that has one.
    commit_due: Decided | None = None
    #: Newest append time of a decision or completion, by this producer id, of a transaction listing this partition.
    ended_ms: int | None = None
    #: Role of the best copy, and how it ends (`copies.py`); for a producer id without an owner, of the worst
    #: coordinator.
    role: Role = Role.LEADER
    end: End = End.WHOLE
    #: Whether the last record is below the high watermark of a copy that is not current; None if irrelevant.
    is_record_committed: bool = True
    count_basis: CountBasis = CountBasis.GIVEN
    #: Newest time at which missing records of the coordinator's log may have been written.
    compacted_ms: int | None = None
    #: Level of the cluster's feature `transaction.version`, which decides how coordinators abort, whatever the client
    #: uses.
    cluster_transaction_version: int | None = None
    #: Why the copies of the coordinator partitions that could own the producer id do not prove an absence for certain.
    uncertain_copies: tuple[str, ...] = ()
    #: What ids that have, had or are said to have the producer id may still do: `payments is Ongoing`.
    pending_ids: tuple[str, ...] = ()
    #: Ids that have the producer id by a broker's answer, and of which the log has no record with it.
    answered_owners: tuple[str, ...] = ()
    #: Earliest instant at which a needed copy was taken. What was written later may be in a transaction that it cannot
    #: show.
    earliest_copy_ms: int | None = None
    #: Unclean elections of its partition, or if there is no owner, of all: each may have lost records.
    unclean_elections: tuple[Election, ...] = ()
    may_be_v2: bool = False

    @property
    def is_log_current(self) -> bool:
        """Whether the coordinator's log is known up to the instant at which it was copied."""
        return is_current(self.role, self.end)

    @property
    def are_partitions_missing(self) -> bool:
        """Whether any coordinator partition was not captured, or not completely."""
        return self.missing_partitions != ()

    @property
    def has_id(self) -> bool:
        """Whether a transactional id has the producer id, or will have it next."""
        return self.owner in (Owner.CURRENT, Owner.NEXT)

    @property
    def is_two_phase_commit(self) -> bool:
        return self.transaction_timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS

    @property
    def owns_producer_id(self) -> bool:
        """Whether the producer id is the current one of the transactional id."""
        return self.owner == Owner.CURRENT

    @property
    def is_active(self) -> bool:
        """Whether its coordinator has yet to end a transaction. One in PrepareEpochFence, it aborts."""
        return self.owns_producer_id and (
            self.state in ACTIVE_STATES or self.state is TransactionState.PREPARE_EPOCH_FENCE
        )

    @property
    def is_prepared(self) -> bool:
        return self.owns_producer_id and self.state in PREPARED_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSide:
    """What the cluster's metadata log shows, in its order. Empty if it was not captured."""

    elections: tuple[Election, ...] = ()
    coordinator_elections: tuple[Election, ...] = ()
    fenced: tuple[FencedBroker, ...] = ()
    lowered: tuple[LoweredFeature, ...] = ()
    #: Whether the metadata log shows every election up to the copies.
    is_confirmed: bool = False
    #: Whether elections may be among its records that are lost.
    hides_elections: bool = False
    #: The block that contains the producer id; and whether it is proven that no block ever did.
    block: ProducerIdBlock | None = None
    is_never_allocated: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    on_partition: PartitionSide
    at_coordinator: CoordinatorSide
    in_cluster: ClusterSide = ClusterSide()
    history: History = NO_HISTORY
    #: The earlier audit whose proof that no COMMIT includes it still stands; None if none does.
    earlier_proof: EarlierAudit | None = None

    @property
    def elections(self) -> list[Election]:
        """The elections of the partition."""
        return elections_of(self.on_partition.topic_id, self.in_cluster.elections)
