"""The known causes of open transactions, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CauseName(StrEnum):
    """A known cause. The value is what it says; `{…}` are fields of the case."""

    UNCLEAN_ELECTION = (
        "an unclean election removed the newest records of the partition, and with them the marker of the decision"
    )
    UNDATED_ELECTION = (
        "the leader of the partition was elected without being in sync, and may have lost the marker of the decision"
    )
    TOPIC_CREATED_AGAIN = (
        "the topic was deleted and created again after the decision, and its markers were deleted with it"
    )
    DROPPED_WITHOUT_LEADER = (
        "the partition had no leader when its coordinator ended the transaction, and the marker was dropped (brokers"
        " from 4.2 on)"
    )
    TRANSACTION_VERSION_LOWERED = (
        "transaction.version was lowered while the transaction, or the one before it, was open"
    )
    MARKER_CLEANED = (
        "compaction removed its marker: this broker's cleaner (KAFKA-13727; fixed in 3.0.2, 3.1.1 and 3.2.0), or that"
        " of another replica before this one copied it"
    )
    MARKER_LOST = (
        "its coordinator decided a transaction with this partition, and the marker is gone: the topic was created"
        " again, the log was truncated (unclean election), or the copy is an older one"
    )
    NO_LEADER = "the partition has no leader, so nobody can write the marker"
    NO_COORDINATOR = "the coordinator's partition has no leader, so nobody acts for {transactional_id}"
    TOO_FEW_IN_SYNC = (
        "the partition has fewer in-sync replicas than min.insync.replicas, so it refuses the marker, and its"
        " coordinator tries again for ever"
    )
    COORDINATOR_TOO_FEW_IN_SYNC = (
        "the coordinator's partition has fewer in-sync replicas than min.insync.replicas, so its coordinator cannot"
        " write that the transaction ends"
    )
    COORDINATOR_FENCED = (
        "the broker that was the coordinator was fenced, and its successor has not finished the transaction"
    )
    OLD_TIMES = (
        "the producer writes old timestamps: by its coordinator's clock, the transaction is younger than its last write"
    )
    OFFSET_COMMIT_RACED = (
        "a transactional offset commit raced its verification (KAFKA-15784; brokers 3.6, fixed in 3.7.0)"
    )
    LATE_PRODUCE = (
        "late produce request after its transaction's end (KAFKA-14402 family; fixed by transactions v2, 4.0)"
    )
    ENDED_EARLY = (
        "a repeated marker of the previous transaction ended the next one too early (KAFKA-19446; brokers 4.0 and 4.1)"
    )
    OTHER_CLIENT_CONTINUED = "a client other than Kafka's own continued to write after its EndTxn (KAFKA-18957)"
    PARTITION_NOT_ADDED = (
        "a client wrote without adding the partition to its transaction (KAFKA-12671; brokers before 3.6, or with "
        "transaction.partition.verification.enable off)"
    )
    PARTITION_NOT_ADDED_TO_NEWEST = (
        "a client wrote without adding the partition to its newest transaction (KAFKA-12671; brokers before 3.6, or"
        " with transaction.partition.verification.enable off)"
    )
    FOREIGN_PRODUCER_ID = (
        "no coordinator made the producer id: a client made it up, or the records are from another cluster"
    )
    COORDINATOR_LOST_RECORDS = (
        "a coordinator partition lost its records (disk lost, topic created again, log truncated)"
    )
    ID_EXPIRED = "its transactional id expired, and compaction removed its tombstone"
    RECORDS_LOST_OR_ID_MADE_UP = "a coordinator partition lost its records, or a client made up its producer id"
    HUNG_UNTIL_EXPIRY = (
        "the partition hung for longer than transactional.id.expiration.ms, and its id expired meanwhile"
    )
    LATE_WITH_FORMER_PRODUCER_ID = (
        "late produce request with a producer id that its transactional id has given up (epochs exhausted, or the id"
        " was created again)"
    )
    COORDINATOR_UNCLEAN_ELECTION = (
        "an unclean election of its coordinator's partition removed the coordinator's newest records"
    )
    EPOCH_MADE_UP = (
        "a client wrote with an epoch that its coordinator never assigned (accepted without verification, before 4.0)"
    )
    COORDINATOR_LOST_NEWEST_RECORDS = (
        "the coordinator lost its newest records (unclean election, or a restored older copy)"
    )
    EPOCH_AHEAD = (
        "the partition has seen a newer producer epoch than the decision's, so it refuses every retry of the marker"
    )
    COORDINATOR_EPOCH_AHEAD = (
        "the partition has seen a newer coordinator epoch, as after a marker by a zombie coordinator or by hand"
        " (KAFKA-9144 and similar), so it refuses every retry of the marker"
    )
    LEADER_UNREACHABLE = "the partition's leader is not reachable"
    FORGOTTEN = (
        "the coordinator stopped sending markers (KAFKA-16352, fixed in 3.8.0; KAFKA-9777, fixed in 2.6.0; KAFKA-10080)"
    )
    REPEATED_MARKER_REFUSED = "a repeated marker is refused under transactions v2 (KAFKA-19999; 4.2 before its fix)"
    EPOCH_EXHAUSTED = "the epoch is exhausted, so its coordinator cannot fence it (KAFKA-20090)"
    TIMEOUT_SCAN_STOPPED = (
        "its coordinator does not run the timeout scan: __transaction_state-{coordinator_partition} has no leader, or"
        " one that is overloaded"
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """A known cause in words, how likely it is, and what shows it."""

    cause: str
    likelihood: str
    evidence: str
