"""Log lines of each cause, by the cause's text in `CAUSES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.broker_logs import cluster_lines as cluster
from txnlib.core.broker_logs import transaction_lines as lines
from txnlib.core.broker_logs.cluster_lines import of_coordinator
from txnlib.core.broker_logs.log_line import BrokerLogs
from txnlib.core.finding_catalogue import Finding

_ACCEPTED: Final = "a leader that accepts a batch logs nothing"
_VERIFICATION: Final = (
    f"{_ACCEPTED}, and from 3.6 on one that refuses it because its verification failed logs only DEBUG (`kafka.server.KafkaApis`)"
)
_LATE: Final = BrokerLogs(
    (lines.ROLLED_BACK, lines.INITIALIZED, lines.PRODUCER_RETRIED, lines.VERIFICATION_SKIPPED),
    f"{_VERIFICATION}. The lines show what made the batch late",
)
_UNCLEAN: Final = BrokerLogs(cluster.UNCLEAN)
_WITHOUT_ADDING: Final = BrokerLogs((lines.VERIFICATION_SKIPPED,), _VERIFICATION)
_LOST_RECORDS: Final = (
    *map(of_coordinator, (*cluster.UNCLEAN, *cluster.DELETED, cluster.RECOVERY_TRUNCATED)),
    lines.NOTHING_TO_LOAD,
    lines.LOADING_FAILED,
    lines.LOADED,
)
_EXPIRED: Final = "a coordinator logs an expiry only if it fails"
_NO_CHECK: Final = "no broker checks who made a producer id. The lines show the ids that the cluster handed out"
_EPOCH_REFUSED: Final = (lines.MARKER_REFUSED_EPOCH, lines.REFUSED_EPOCH)

LOGS_OF_CAUSES: Final[Mapping[str, BrokerLogs]] = {
    "an unclean election removed the newest records of the partition, and with them the marker of the decision": _UNCLEAN,
    "the leader of the partition was elected without being in sync, and may have lost the marker of the decision": _UNCLEAN,
    "the topic was deleted and created again after the decision, and its markers were deleted with it": BrokerLogs(
        (*cluster.DELETED, cluster.LOG_CREATED)
    ),
    "the partition had no leader when its coordinator ended the transaction, and the marker was dropped (brokers from 4.2 on)": (
        BrokerLogs((lines.MARKER_SKIPPED, cluster.WITHOUT_LEADER))
    ),
    "transaction.version was lowered while the transaction, or the one before it, was open": BrokerLogs(
        (cluster.TRANSACTION_VERSION,)
    ),
    "its coordinator decided a transaction with this partition, and the marker is gone: the topic was created again, the log was "
    "truncated (unclean election), or the copy is an older one": BrokerLogs(
        (*cluster.UNCLEAN, *cluster.DELETED, lines.MARKER_SKIPPED)
    ),
    "the partition has no leader, so nobody can write the marker": BrokerLogs(
        (cluster.WITHOUT_LEADER, cluster.NOT_ELECTED, lines.MARKER_RETRIED)
    ),
    "the coordinator's partition has no leader, so nobody acts for {transactional_id}": BrokerLogs(
        (of_coordinator(cluster.WITHOUT_LEADER), of_coordinator(cluster.NOT_ELECTED), lines.RESIGNED)
    ),
    "the broker that was the coordinator was fenced, and its successor has not finished the transaction": BrokerLogs(
        (cluster.FENCED, lines.ELECTED, lines.LOADED, lines.LOADING_FAILED)
    ),
    "the producer writes old timestamps: by its coordinator's clock, the transaction is younger than its last write": BrokerLogs(
        silent_because="a leader accepts old timestamps and logs nothing, unless a limit of the topic refuses them"
    ),
    "a transactional offset commit raced its verification (KAFKA-15784; brokers 3.6, fixed in 3.7.0)": BrokerLogs(
        (lines.ROLLED_BACK,), f"{_ACCEPTED}. The line shows what the commit raced with"
    ),
    "late produce request after the end of the transaction (KAFKA-14402 family; closed by transactions v2, 4.0)": _LATE,
    "a repeated marker of the previous transaction ended the next one too early (KAFKA-19446; brokers 4.0 and 4.1)": BrokerLogs(
        (lines.MARKER_RETRIED, lines.MARKERS_AFTER_LOADING, lines.MARKERS_CANCELLED),
        "brokers 4.0 and 4.1 accept a repeated marker and log nothing. The lines show why it was repeated",
    ),
    "a client other than Kafka's own continued to write after its EndTxn (KAFKA-18957)": BrokerLogs(silent_because=_VERIFICATION),
    "a client wrote without adding the partition to its transaction (KAFKA-12671; brokers before 3.6, or with "
    "transaction.partition.verification.enable off)": _WITHOUT_ADDING,
    "a client wrote without adding the partition to its newest transaction (KAFKA-12671; brokers before 3.6, or with "
    "transaction.partition.verification.enable off)": _WITHOUT_ADDING,
    "no coordinator made the producer id: a client made it up, or the records are from another cluster": BrokerLogs(
        (*cluster.PRODUCER_IDS, lines.GIVEN_TO), _NO_CHECK
    ),
    "a coordinator partition lost its records (disk lost, topic created again, log truncated)": BrokerLogs(_LOST_RECORDS),
    "its transactional id expired, and compaction removed its tombstone": BrokerLogs((lines.GIVEN_TO,), _EXPIRED),
    "a coordinator partition lost its records, or a client made up its producer id": BrokerLogs(
        (lines.GIVEN_TO, *_LOST_RECORDS), _NO_CHECK
    ),
    "the partition hung for longer than transactional.id.expiration.ms, and its id expired meanwhile": BrokerLogs(
        (lines.INITIALIZED,), _EXPIRED
    ),
    "late produce request with a producer id that its transactional id has given up (epochs exhausted, or the id was "
    "created again)": _LATE,
    "an unclean election of its coordinator's partition removed the coordinator's newest records": BrokerLogs(
        (*map(of_coordinator, cluster.UNCLEAN), lines.LOADED)
    ),
    "a client wrote with an epoch that its coordinator never assigned (accepted without verification, before 4.0)": BrokerLogs(
        (*_EPOCH_REFUSED, lines.VERIFICATION_SKIPPED),
        f"{_ACCEPTED}. The lines show what its epoch stopped afterwards",
    ),
    "the coordinator lost its newest records (unclean election, or a restored older copy)": BrokerLogs(_LOST_RECORDS),
    "the partition has seen a newer producer epoch than the decision's, so it refuses every retry of the marker": BrokerLogs(
        _EPOCH_REFUSED
    ),
    "the partition has seen a newer coordinator epoch, as after a marker by a zombie coordinator or by hand (KAFKA-9144 "
    "and similar), so it refuses every retry of the marker": BrokerLogs(
        (lines.MARKER_REFUSED_COORDINATOR, lines.REFUSED_COORDINATOR_EPOCH)
    ),
    "the partition's leader is not reachable": BrokerLogs((lines.UNREACHABLE, lines.MARKER_RETRIED)),
    "the coordinator stopped sending markers (KAFKA-16352, fixed in 3.8.0; KAFKA-9777, fixed in 2.6.0; KAFKA-10080)": BrokerLogs(
        (
            lines.MARKERS_CANCELLED,
            lines.NO_LONGER_COORDINATOR,
            lines.COMPLETION_CANCELLED,
            lines.DEAD_QUEUE,
            lines.MARKERS_AFTER_LOADING,
        ),
        "a coordinator that forgets a marker logs nothing. The lines show events that come before it",
    ),
    "a repeated marker is refused under transactions v2 (KAFKA-19999; 4.2 before its fix)": BrokerLogs(
        (*_EPOCH_REFUSED, lines.REPEATED_MARKER)
    ),
    "the epoch is exhausted, so its coordinator cannot fence it (KAFKA-20090)": BrokerLogs(
        (lines.EPOCH_EXHAUSTED, lines.SCAN_FAILED)
    ),
    "its coordinator does not run the timeout scan: __transaction_state-{coordinator_partition} has no leader, or one "
    "that is overloaded": BrokerLogs(
        (lines.SCAN_FAILED, lines.ROLLBACK_FAILED, lines.RESIGNED, lines.ELECTED, lines.LOADING_FAILED)
    ),
}


def logs_of_cause(cause: str, names: Mapping[str, object]) -> BrokerLogs | None:
    """The log lines of a cause, by its text with the names of a transaction; None if a newer or older release wrote the text."""
    for text, logs in LOGS_OF_CAUSES.items():
        filled = text
        for name in ("transactional_id", "coordinator_partition"):
            filled = filled.replace(f"{{{name}}}", str(names.get(name)))
        if filled == cause:
            return logs
    return None


# ---- Log lines of each finding


_COORDINATOR_MOVED: Final = (lines.ELECTED, lines.RESIGNED)
_REFUSES: Final = BrokerLogs(
    (lines.ILLEGAL_STEP,), "the coordinator that wrote the record did not notice. The line is a refused step"
)
_NOT_CHECKED: Final = BrokerLogs(silent_because="coordinators do not check this field, neither when they write nor when they load")
_BY_HAND: Final = "brokers do not log the WriteTxnMarkers request of kafka-transactions.sh. Only the request log has it, at DEBUG"
_INDEX: Final = BrokerLogs(
    (cluster.INDEX_REBUILT,), "a broker reads the transaction index without checking it, except when it starts after a crash"
)
_NOT_COMPARED: Final = BrokerLogs(silent_because="brokers do not compare their memory with their logs after they have loaded them")
_FORECAST: Final = BrokerLogs(silent_because="it is a forecast, and what it is about has not happened yet")

LOGS_OF_FINDINGS: Final[Mapping[Finding, BrokerLogs]] = {
    Finding.INVALID_PRODUCER_EPOCH: BrokerLogs((lines.COPIED_EPOCH, lines.REFUSED_EPOCH)),
    Finding.OUT_OF_ORDER_SEQUENCE_NUMBER: BrokerLogs(
        (lines.REFUSED_SEQUENCE,),
        "a leader that accepts a gap logs nothing, and followers do not check. The line is a batch that was refused",
    ),
    Finding.INVALID_TXN_STATE: BrokerLogs((lines.REFUSED_NON_TRANSACTIONAL, lines.FETCHER_FAILED)),
    Finding.TRANSACTION_COORDINATOR_FENCED: BrokerLogs(
        (lines.COPIED_COORDINATOR_EPOCH, lines.REFUSED_COORDINATOR_EPOCH, *_COORDINATOR_MOVED)
    ),
    Finding.TIMESTAMP_IN_FUTURE: BrokerLogs(
        (lines.REFUSED_TIMESTAMP, lines.REFUSED_APPEND),
        "a leader that accepts a timestamp logs nothing. The lines are records that were refused, and their partition",
    ),
    Finding.INVALID_TIMESTAMP: BrokerLogs(
        (lines.REFUSED_TIMESTAMP, lines.REFUSED_APPEND),
        "a leader that accepts a timestamp logs nothing. The lines are records that were refused, and their partition",
    ),
    Finding.CORRUPT_MESSAGE: BrokerLogs(
        (lines.FETCHED_CORRUPT, cluster.RECOVERY_TRUNCATED),
        "a leader returns the error to the producer and logs nothing. The lines are of followers, and of a start",
    ),
    Finding.INVALID_TRANSACTION_TIMEOUT: BrokerLogs(
        silent_because="the coordinator returns INVALID_TRANSACTION_TIMEOUT to the application and logs nothing"
    ),
    Finding.ILLEGAL_TRANSITION: _REFUSES,
    Finding.SUSPICIOUS_PHANTOM_APPEND: BrokerLogs((lines.APPEND_FAILED, lines.FENCE_FAILED)),
    Finding.STATE_NEVER_WRITTEN: BrokerLogs(
        silent_because="coordinators load the state from their log without checking that it may be there"
    ),
    Finding.PARTITIONS_CHANGED: _NOT_CHECKED,
    Finding.TIMEOUT_CHANGED: _NOT_CHECKED,
    Finding.START_TIMESTAMP_MISSING: _NOT_CHECKED,
    Finding.START_TIMESTAMP_IN_EMPTY: _NOT_CHECKED,
    Finding.START_TIMESTAMP_CHANGED: _NOT_CHECKED,
    Finding.PARTITIONS_IN_EMPTY: _NOT_CHECKED,
    Finding.PRODUCER_ID_CHANGED: _REFUSES,
    Finding.PRODUCER_EPOCH_WENT_BACK: _REFUSES,
    Finding.UNEXPECTED_PRODUCER_EPOCH: BrokerLogs((lines.FENCE_FAILED, lines.INITIALIZED)),
    Finding.EPOCH_DOUBLE_BUMP: BrokerLogs((lines.ROLLED_BACK,), "brokers 4.0.0 log the abort, not its epoch"),
    Finding.COORDINATOR_EPOCH_WENT_BACK: BrokerLogs(_COORDINATOR_MOVED),
    Finding.EPOCH_BEYOND_EXHAUSTION: BrokerLogs((lines.EPOCH_EXHAUSTED, lines.SCAN_FAILED)),
    Finding.PRODUCER_ID_OWNED_TWICE: BrokerLogs((lines.GIVEN_TO, cluster.PRODUCER_IDS_WRONG, *cluster.PRODUCER_IDS)),
    Finding.WRONG_COORDINATOR_PARTITION: BrokerLogs((lines.PARTITIONS_ADDED,)),
    Finding.SPLIT_OUTCOME: BrokerLogs((lines.WRONG_RESULT, lines.MARKERS_CANCELLED), _BY_HAND),
    Finding.MARKER_MISSING: BrokerLogs((lines.MARKER_SKIPPED, *cluster.UNCLEAN)),
    Finding.MARKER_WITHOUT_DECISION: BrokerLogs(silent_because=_BY_HAND),
    Finding.MARKER_OF_DEPOSED_COORDINATOR: BrokerLogs((lines.NO_LONGER_COORDINATOR, lines.MARKERS_CANCELLED, *_COORDINATOR_MOVED)),
    Finding.ABORTED_WHILE_ONGOING: BrokerLogs(silent_because=_BY_HAND),
    Finding.DUPLICATE_MARKER: BrokerLogs((lines.REPEATED_MARKER, lines.MARKERS_AFTER_LOADING, lines.MARKER_RETRIED)),
    Finding.WRITTEN_BEFORE_TRANSACTION: BrokerLogs(
        (lines.ROLLED_BACK, lines.PRODUCER_RETRIED),
        "a leader that accepts a batch logs nothing. The lines show what made the batch late",
    ),
    Finding.UNKNOWN_TOPIC_OR_PARTITION: BrokerLogs((*cluster.DELETED, lines.MARKER_SKIPPED)),
    Finding.TRANSACTIONAL_IDS_NOT_REUSED: BrokerLogs((lines.INITIALIZED,)),
    Finding.PRODUCER_IDS_NOT_REUSED: BrokerLogs(
        cluster.PRODUCER_IDS, "brokers do not log a new producer. The lines are blocks of 1,000 producer ids"
    ),
    Finding.COPIES_DISAGREE: _UNCLEAN,
    Finding.UNCLEAN_LEADER_ELECTION: _UNCLEAN,
    Finding.PRODUCER_ID_NEVER_ALLOCATED: BrokerLogs(
        cluster.PRODUCER_IDS, "no broker checks who made a producer id. The lines show the ids that the cluster handed out"
    ),
    Finding.CAPTURE_JSON_CONTRADICTED: BrokerLogs(silent_because="the contradiction is in the capture, not in the cluster"),
    Finding.COPY_OF_DELETED_TOPIC: BrokerLogs((*cluster.DELETED, cluster.LOG_STRAY)),
    Finding.ABORT_NOT_INDEXED: _INDEX,
    Finding.INDEXED_ABORT_NOT_IN_LOG: _INDEX,
    Finding.LIVE_PRODUCER_DISAGREES: _NOT_COMPARED,
    Finding.LIVE_STABLE_OFFSET_DISAGREES: _NOT_COMPARED,
    Finding.LIVE_STATE_DISAGREES: _NOT_COMPARED,
    Finding.LIVE_OWNER_UNKNOWN: _NOT_COMPARED,
    Finding.PRODUCER_EPOCHS_RUN_OUT: _FORECAST,
    Finding.TRANSACTIONAL_ID_EXPIRES: _FORECAST,
    Finding.PRODUCER_IDS_FILL_MEMORY: _FORECAST,
    Finding.CLIENT_BEHIND_TRANSACTION_VERSION: _FORECAST,
    Finding.LAST_STABLE_OFFSET_STANDS_STILL: _FORECAST,
}
