"""The dossier of a producer id: the facts of logs on its open transactions.

Spark gathers them (`spark.tables.dossiers`), the core judges them with those of the cluster (`cluster_facts`). Each
fact is listed once, here: schemas are derived from these classes. Facts are what tables show; what follows from them is
decided elsewhere. None means "not known". Times are epoch ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.display import offset_text
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, BY_KAFKA_NAME, PREPARED_STATES, TransactionState
from txnlib.core.rows import TopicPartition

#: Most markers of a producer on a partition in a dossier, and most of its decisions: the newest. A busy producer has
#: millions.
MOST_MARKERS: Final = 200
#: States that an id leaves by writing a marker, or in which its next transaction may include any partition.
_PENDING: Final = ACTIVE_STATES | {TransactionState.PREPARE_EPOCH_FENCE}


class Owner(StrEnum):
    """How a producer id relates to the transactional id that is known to have had it."""

    NOBODY = "NOBODY"
    CURRENT = "CURRENT"
    #: The id has another producer id now; the old one is never used again.
    ROTATED = "ROTATED"
    #: The last record of the id is a tombstone.
    EXPIRED = "EXPIRED"
    #: The id names it as its next producer id and does not use it yet.
    NEXT = "NEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMarker:
    """A marker of the producer in a partition."""

    offset: int
    type: str | None = None
    epoch: int | None = None
    coordinator_epoch: int | None = None
    ms: int | None = None
    #: Epoch of the leader that wrote it, whose clock stamped it.
    leader_epoch: int | None = None
    #: The first offset that it ended; None if nothing was open. When that batch was written, and whether a broker's
    #: clock says so.
    first_offset: int | None = None
    first_timestamp_ms: int | None = None
    is_broker_clock: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorDecision:
    """A decided transaction of the producer id: a row of `transactions`, in the order of its coordinator's log."""

    transactional_id: str | None = None
    coordinator_partition: int
    transaction_number: int | None = None
    outcome: str
    state: str | None = None
    #: Epochs of the first record, and of the Prepare record and its markers; the latter is None if only a Complete
    #: record is left.
    first_epoch: int | None = None
    decided_epoch: int | None = None
    coordinator_epoch: int | None = None
    #: Leader epoch of its last record, which tells whose clock stamped it.
    stamped_epoch: int | None = None
    transaction_version: int | None = None
    client_transaction_version: int | None = None
    #: None if only a record without its partitions is left.
    partitions: tuple[TopicPartition, ...] | None = None
    first_record_offset: int
    last_record_offset: int
    start_ms: int | None = None
    #: When it was decided by the value of its record; and the append times of its Prepare and its Complete record.
    said_ms: int | None = None
    prepared_ms: int | None = None
    completed_ms: int | None = None

    @property
    def place(self) -> str:
        """Where its last record is, in words."""
        log = f"{TRANSACTION_STATE_TOPIC}-{self.coordinator_partition}"
        return f"{offset_text(self.last_record_offset)} of {log}"

    @property
    def dated_ms(self) -> int | None:
        """When it was decided, by its coordinator's clock; else when it was completed."""
        return self.said_ms if self.said_ms is not None else self.prepared_ms or self.completed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class OddStep:
    """A record of an id that does not follow from the one before, though none is missing between the two."""

    state_before: str | None = None
    epoch_before: int | None = None
    start_before_ms: int | None = None
    #: Partitions in the record before on which the producer has something open.
    listed_before: tuple[TopicPartition, ...] = ()
    offset: int
    state: str | None = None
    epoch: int | None = None
    start_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexplainedCommit:
    """A COMMIT marker of the producer on another partition that no decision of its coordinator explains."""

    topic: str
    partition: int
    ms: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Records of a coordinator's log that are missing: those below an offset, or between two."""

    end_offset: int
    #: The newest time before the end of the hole, and the leader epoch that tells whose clock that is.
    ms: int | None = None
    epoch: int | None = None
    #: The last record before the hole that was read; None: the hole may begin with the log.
    after_offset: int | None = None
    after_ms: int | None = None
    after_epoch: int | None = None
    #: The missing records were written after the copies of `since_run`, and before those of `until_run`.
    since_run: str | None = None
    until_run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What was read of the coordinator's log about a producer id, by this audit and by earlier ones."""

    coordinator_partition: int
    topic_id: str | None = None
    #: What is missing, oldest first.
    holes: tuple[Hole, ...] = ()
    #: The last record that was read.
    until_offset: int
    until_ms: int | None = None
    until_epoch: int | None = None
    #: The instant up to which the copy with that record is known.
    copied_ms: int | None = None
    #: Whether that record was the end of the log when it was copied.
    is_current: bool = False
    #: Whether the producer id was assigned behind the hole.
    is_assigned_behind: bool = False
    decisions: tuple[CoordinatorDecision, ...] = ()
    odd_steps: tuple[OddStep, ...] = ()
    unexplained: tuple[UnexplainedCommit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAudit:
    """A row of an earlier audit about a transaction with the same place, producer and first offset."""

    run_id: str
    as_of_ms: int
    #: Up to when its copy of the partition was known; None if not known.
    copied_ms: int | None = None
    topic_id: str | None = None
    first_batch_crc: int | None = None
    reason: str | None = None
    newest_leader_epoch: int | None = None
    #: Offset of the last record of its transactional id.
    record_offset: int | None = None
    #: What it read of its coordinator's log.
    carried: Carried | None = None
    safe_to_abort: bool = False
    #: The instant from which on it called an abort safe; None if it named none.
    safe_from_ms: int | None = None

    @property
    def is_promised(self) -> bool:
        """Whether it called an abort safe, from some instant on."""
        return self.safe_to_abort or self.safe_from_ms is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerElsewhere:
    """A marker of the producer after the first batch that the judged copy lacks, or of which it has only an empty batch
    header: the log cleaner removed the rest."""

    #: Whether it is in a part of the copy that a newer leader truncated.
    is_truncated: bool
    is_cleaned: bool = False
    broker: str | None
    offset: int
    type: str | None
    epoch: int | None = None
    ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBeside:
    """What a producer snapshot or transaction index, of any copy of the partition, says of the producer after its first
    open batch. The log beside the file may end earlier, or may not be captured."""

    is_index: bool
    broker: str | None
    #: The number in its name.
    file_offset: int
    #: A snapshot shows the state of all batches below this offset; an index, the marker of an abort at it.
    offset: int
    #: First offset of what is open, or of what was aborted; None: nothing is open.
    first_offset: int | None = None
    #: Last offset that the producer wrote, as a snapshot shows it.
    last_offset: int | None = None
    #: Whether it is of a part of the log that a newer leader truncated.
    is_truncated: bool = False

    @property
    def end_offset(self) -> int:
        """The log reached at least up to here."""
        return self.offset + 1 if self.is_index else self.offset

    @property
    def says(self) -> str:
        """What it says, with its name, in words."""
        name = f"{self.file_offset:020}.{'txnindex' if self.is_index else 'snapshot'} of broker {self.broker}"
        if self.is_index:
            return f"{name} has an abort of it, by a marker at offset {self.offset}"
        if self.first_offset is None:
            return f"{name} has nothing open of its producer"
        more = "" if self.last_offset is None else f" to {self.last_offset}"
        return f"{name} has a transaction of its producer open from offset {self.first_offset}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBatch:
    """A row of `checked_batches` about the open transaction."""

    place: str
    base_offset: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    last_sequence: int | None = None
    partition_leader_epoch: int | None = None
    crc: int | None = None
    is_crc_valid: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStamps:
    """Broker-stamped times in one leader epoch of the judged copy: one leader, so one clock."""

    #: -1 if the log does not show it.
    leader_epoch: int = -1
    #: The newest stamp before the first batch.
    before_ms: int | None = None
    #: The newest stamp before the end of the last batch.
    before_last_ms: int | None = None
    #: The oldest stamp from the first batch on, and the oldest one after the last batch.
    behind_ms: int | None = None
    behind_last_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedMarker:
    """A marker of no known transaction that ended nothing and equals the marker before it: it may have been sent
    again."""

    marker: WrittenMarker
    #: The newest marker before it that belongs to a known transaction, and that transaction.
    own: WrittenMarker | None = None
    decision: CoordinatorDecision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingMarkers:
    """What the markers of the producer on another partition show. `commit` is COMMIT with the epoch of the open records
    or higher.

    A marker is unexplained if no known transaction of a coordinator has it.
    """

    topic: str
    partition: int
    newest_unexplained_ms: int | None = None
    newest_unexplained_commit_ms: int | None = None
    newest_unexplained_commit_coordinator_epoch: int | None = None
    #: Leader epoch of that COMMIT, which tells whose clock stamped it.
    newest_unexplained_commit_leader_epoch: int | None = None
    #: The newest coordinator epoch of all these markers.
    newest_coordinator_epoch: int | None = None
    is_committed: bool = False
    committed_ms: int | None = None
    #: The newest repeated markers. The other fields do not count them.
    repeated: tuple[RepeatedMarker, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSpan:
    """An open transaction of the producer on one partition, with what surrounds it."""

    topic: str
    partition: int
    start_offset: int
    #: The lowest start offset of everything that is open on the partition, by this producer or another.
    first_open_offset: int | None = None
    last_offset: int | None = None
    #: Epoch of the first batch, and the newest one that the partition has seen.
    first_epoch: int | None = None
    producer_epoch: int
    coordinator_epoch: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    is_broker_clock: bool = False
    is_start_exact: bool = True
    records: int | None = None
    bytes_from_here: int | None = None
    #: The newest markers of the producer here, in order; all of them precede the open transaction.
    markers: tuple[WrittenMarker, ...] = ()
    checks: tuple[CheckedBatch, ...] = ()
    stamps: tuple[EpochStamps, ...] = ()
    markers_elsewhere: tuple[MarkerElsewhere, ...] = ()
    #: The last offset of its batches that only other copies have.
    last_elsewhere_offset: int | None = None
    files_beside: tuple[FileBeside, ...] = ()
    siblings: tuple[SiblingMarkers, ...] = ()
    #: Offset of the newest producer snapshot of the judged copy, before the first batch, in which the producer has
    #: nothing open.
    closed_offset: int | None = None
    #: The oldest marker here, of any producer, that a captured decision explains.
    oldest_decided_offset: int | None = None
    #: When the epoch of the first batch was handed out; None if no record shows it.
    epoch_since_ms: int | None = None
    earlier: tuple[EarlierAudit, ...] = ()

    @property
    def marker(self) -> WrittenMarker | None:
        """The producer's last marker here, before the open transaction."""
        return self.markers[-1] if self.markers else None

    @property
    def first_check(self) -> CheckedBatch | None:
        """The check of the first open batch; None if that batch is gone."""
        found = next((each for each in self.checks if each.place == "first"), None)
        return None if found is None or (found.base_offset or 0) > self.start_offset else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A transactional id that has, had or will have the producer id, with its last record. Without an id, it is a claim
    of nobody."""

    transactional_id: str | None = None
    coordinator_partition: int | None = None
    owner: Owner = Owner.NOBODY
    #: Offsets of the first and the last surviving record that name the producer id.
    first_record_offset: int | None = None
    last_record_offset: int | None = None
    #: Whether the first of these records assigned the producer id (Empty, epoch 0); and when it was written.
    is_first_assigned: bool = False
    created_ms: int | None = None
    #: The newest producer epoch in records that name the producer id.
    highest_epoch: int | None = None
    state: str | None = None
    producer_epoch: int | None = None
    transaction_timeout_ms: int | None = None
    start_ms: int | None = None
    last_update_ms: int | None = None
    record_ms: int | None = None
    record_coordinator_epoch: int | None = None
    record_offset: int | None = None
    #: Whether the current copy of the coordinator's log reaches beyond the last record and does not contain it.
    is_superseded: bool = False
    #: When the newest missing record before its last record was written at the latest; None if none is missing.
    hole_ms: int | None = None
    #: From this offset up to its last record, no record is missing; 0: none at all.
    complete_from: int | None = None
    client_transaction_version: int | None = None
    partitions: tuple[TopicPartition, ...] = ()
    odd_steps: tuple[OddStep, ...] = ()

    @property
    def is_nobodys(self) -> bool:
        """Whether no id ever had the producer id, as far as the capture shows."""
        return self.owner == Owner.NOBODY

    @property
    def has_id(self) -> bool:
        """Whether a transactional id has the producer id, or will have it next."""
        return self.owner in (Owner.CURRENT, Owner.NEXT)

    @property
    def owns_producer_id(self) -> bool:
        """Whether the producer id is the current one of the transactional id."""
        return self.owner == Owner.CURRENT

    @property
    def transaction_state(self) -> TransactionState | None:
        """The state of its last record; None after a tombstone."""
        return None if self.state is None else BY_KAFKA_NAME[self.state]

    @property
    def is_active(self) -> bool:
        """Whether its coordinator has yet to end a transaction. One in PrepareEpochFence, it aborts."""
        state = self.transaction_state
        return self.owns_producer_id and state in _PENDING

    @property
    def is_prepared(self) -> bool:
        return self.owns_producer_id and self.transaction_state in PREPARED_STATES

    @property
    def is_two_phase_commit(self) -> bool:
        return self.transaction_timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS

    @property
    def pending(self) -> str | None:
        """What the id may still do that could include the partition, in words: `payments is Ongoing`. None: nothing."""
        # What an id does under another producer id does not count, once it gave this one up.
        if self.owner != Owner.ROTATED and self.transaction_state in _PENDING:
            if self.is_superseded:
                # Only ids between transactions expire: records that show its end are missing.
                in_copy = f"was {self.state} in an older copy of its log"
                return f"{self.transactional_id} {in_copy}, and no record shows its end"
            two_phase = " in a two-phase commit" if self.is_two_phase_commit else ""
            return f"{self.transactional_id} is {self.state}{two_phase}"
        if self.owner == Owner.NEXT:
            return f"{self.transactional_id} will use the producer id next"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """Everything about one producer id."""

    producer_id: int
    open: tuple[OpenSpan, ...]
    claims: tuple[Claim, ...] = ()
    decisions: tuple[CoordinatorDecision, ...] = ()
    #: The newest epoch of the producer on any partition.
    newest_epoch: int | None = None
    #: Transactional ids that have the producer id by a broker's answer, but not by any record in the log.
    answered_owners: tuple[str, ...] = ()
    #: Names of findings of severity ERROR or CRITICAL about the producer id or its transactional ids.
    alarms: tuple[str, ...] = ()
    #: Whether it is proven that the cluster never handed it out.
    is_never_allocated: bool = False
