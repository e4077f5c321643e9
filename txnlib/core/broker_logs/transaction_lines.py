"""Log lines about batches, markers and transactional ids."""

from __future__ import annotations

from typing import Final

from txnlib.core.broker_logs.log_line import OLDEST, Form, Level, LogFile, LogLine, Version, Writer

_TRANSACTION: Final = "kafka.coordinator.transaction"
_JAVA_TRANSACTION: Final = "org.apache.kafka.coordinator.transaction"
_STORAGE: Final = "org.apache.kafka.storage.internals.log"
_COORDINATOR: Final = f"{_TRANSACTION}.TransactionCoordinator"
_STATES: Final = f"{_TRANSACTION}.TransactionStateManager"
_MARKERS: Final = f"{_TRANSACTION}.TransactionMarkerChannelManager"
_ANSWERS: Final = f"{_TRANSACTION}.TransactionMarkerRequestCompletionHandler"
_OLD_PRODUCERS: Final = "kafka.log.ProducerAppendInfo"
_PRODUCERS: Final = f"{_STORAGE}.ProducerAppendInfo"
_APPENDS: Final = "kafka.server.ReplicaManager.appendToLocalLog"
_OLD_SCHEDULER: Final = "kafka.utils.KafkaScheduler.schedule"
_SCHEDULER: Final = "org.apache.kafka.server.util.KafkaScheduler.schedule"

_DEBUG, _INFO, _WARN, _ERROR = Level.DEBUG, Level.INFO, Level.WARN, Level.ERROR
_SERVER: Final = LogFile.SERVER


def _moved(text: str, method: str, level: Level, logged_by: str | None = None) -> tuple[Form, ...]:
    """A text of ProducerAppendInfo, which moved to another package in 3.5."""
    return (
        Form(text, f"{_OLD_PRODUCERS}.{method}", level, last=(3, 4), logged_by=logged_by),
        Form(text, f"{_PRODUCERS}.{method}", level, first=(3, 5), logged_by=logged_by),
    )


def _by_coordinator(shows: str, text: str, source: str, level: Level = _INFO, first: Version = OLDEST) -> LogLine:
    return LogLine(shows, Writer.COORDINATOR, _SERVER, (Form(text, source, level, first),))


# --- What a leader refuses: the exception is below "Error processing append operation on partition". ---

_EPOCH: Final = "Epoch of producer {producer_id} at offset … in {topic}-{partition} is …, which is smaller than the last seen epoch"
_STRICT_EPOCH: Final = "Epoch of producer {producer_id} at offset … in {topic}-{partition} is …, which is … the last seen epoch"
_EPOCH_ERROR: Final = f"InvalidProducerEpochException: {_EPOCH}"
_CHECKS: Final = "checkProducerEpoch"
REFUSED_EPOCH: Final = LogLine(
    "the leader refused a batch or marker, because the partition has seen a newer producer epoch",
    Writer.LEADER,
    _SERVER,
    (
        Form(_EPOCH_ERROR, f"{_OLD_PRODUCERS}.{_CHECKS}", _ERROR, last=(3, 4), logged_by=_APPENDS),
        Form(_EPOCH_ERROR, f"{_PRODUCERS}.{_CHECKS}", _ERROR, (3, 5), (3, 8), _APPENDS),
        Form(_EPOCH_ERROR, f"{_PRODUCERS}.{_CHECKS}", _INFO, (3, 9), (4, 1), _APPENDS),
        Form(f"InvalidProducerEpochException: {_STRICT_EPOCH}", f"{_PRODUCERS}.{_CHECKS}", _INFO, first=(4, 2), logged_by=_APPENDS),
    ),
)
COPIED_EPOCH: Final = LogLine(
    "a follower copied a batch or marker with an older producer epoch, so a leader accepted it",
    Writer.FOLLOWER,
    _SERVER,
    (
        Form(_EPOCH, f"{_OLD_PRODUCERS}.{_CHECKS}", _WARN, last=(3, 4)),
        Form(_EPOCH, f"{_PRODUCERS}.{_CHECKS}", _WARN, (3, 5), (4, 1)),
        Form(_STRICT_EPOCH, f"{_PRODUCERS}.{_CHECKS}", _WARN, first=(4, 2)),
    ),
)
REPEATED_MARKER: Final = LogLine(
    "the leader accepted a repeated marker of transactions v2",
    Writer.LEADER,
    _SERVER,
    (
        Form(
            "Idempotent transaction marker retry detected for producer {producer_id} epoch",
            f"{_PRODUCERS}.{_CHECKS}",
            _INFO,
            first=(4, 2),
        ),
    ),
)
_SEQUENCE: Final = "OutOfOrderSequenceException: "
REFUSED_SEQUENCE: Final = LogLine(
    "the leader refused a batch whose sequence does not follow the producer's last one",
    Writer.LEADER,
    _SERVER,
    (
        *_moved(
            _SEQUENCE + "Out of order sequence number for producer {producer_id} at offset … in partition {topic}-{partition}:",
            "checkSequence",
            _ERROR,
            _APPENDS,
        ),
        # Since 3.5, the space before "at" is missing.
        *_moved(
            _SEQUENCE
            + "Invalid sequence number for new epoch of producer {producer_id}…at offset … in partition {topic}-{partition}:",
            "checkSequence",
            _ERROR,
            _APPENDS,
        ),
        Form(
            _SEQUENCE + "Invalid sequence number for producer {producer_id} at offset … in partition {topic}-{partition}:",
            f"{_PRODUCERS}.checkSequence",
            _ERROR,
            first=(4, 1),
            logged_by=_APPENDS,
        ),
    ),
)
REFUSED_NON_TRANSACTIONAL: Final = LogLine(
    "the leader refused a non-transactional batch inside an open transaction",
    Writer.LEADER,
    _SERVER,
    _moved(
        "InvalidTxnStateException: Expected transactional write from producer {producer_id} at offset … in partition "
        "{topic}-{partition}",
        "appendDataBatch",
        _ERROR,
        _APPENDS,
    ),
)
_FETCH: Final = "kafka.server.AbstractFetcherThread.processFetchRequest"
FETCHER_FAILED: Final = LogLine(
    "a follower could not append what its leader accepted, and stopped copying the partition",
    Writer.FOLLOWER,
    _SERVER,
    (Form("Unexpected error occurred while processing data for partition {topic}-{partition} at offset", _FETCH, _ERROR),),
)
FETCHED_CORRUPT: Final = LogLine(
    "a follower received a damaged batch from its leader",
    Writer.FOLLOWER,
    _SERVER,
    (Form("Found invalid messages during fetch for partition {topic}-{partition} offset", _FETCH, _ERROR),),
)
REFUSED_COORDINATOR_EPOCH: Final = LogLine(
    "the leader refused the marker of a deposed coordinator",
    Writer.LEADER,
    _SERVER,
    _moved(
        "TransactionCoordinatorFencedException: Invalid coordinator epoch for producerId {producer_id} at offset … in partition "
        "{topic}-{partition}:",
        "checkCoordinatorEpoch",
        _ERROR,
        _APPENDS,
    ),
)
COPIED_COORDINATOR_EPOCH: Final = LogLine(
    "a follower copied the marker of a deposed coordinator, so a leader accepted it",
    Writer.FOLLOWER,
    _SERVER,
    _moved(
        "Detected invalid coordinator epoch for producerId {producer_id} at offset … in partition {topic}-{partition}:",
        "checkCoordinatorEpoch",
        _INFO,
    ),
)
REFUSED_APPEND: Final = LogLine(
    "the leader refused an append; the exception is in the next line",
    Writer.LEADER,
    _SERVER,
    (
        Form("Error processing append operation on partition {topic}-{partition}", _APPENDS, _ERROR, last=(4, 0)),
        Form("Error processing append operation on partition …:{topic}-{partition}", _APPENDS, _ERROR, first=(4, 1)),
    ),
)
_TIMESTAMP: Final = "InvalidTimestampException: One or more records have been rejected due to invalid timestamp"
REFUSED_TIMESTAMP: Final = LogLine(
    "the leader refused records whose timestamps are out of range",
    Writer.LEADER,
    _SERVER,
    (
        Form(_TIMESTAMP, "kafka.log.LogValidator.processRecordErrors", _ERROR, last=(3, 4), logged_by=_APPENDS),
        Form(_TIMESTAMP, f"{_STORAGE}.LogValidator.processRecordErrors", _ERROR, first=(3, 5), logged_by=_APPENDS),
    ),
)
_SKIPPED_CHECK: Final = "AddPartitionsToTxnRequest failed for node … with invalid version exception."
VERIFICATION_SKIPPED: Final = LogLine(
    "the leader appended without verification, because the coordinator is older than 3.6",
    Writer.LEADER,
    _SERVER,
    (
        Form(_SKIPPED_CHECK, "kafka.server.AddPartitionsToTxnManager.onComplete", _WARN, (3, 6), (4, 0)),
        Form(_SKIPPED_CHECK, "org.apache.kafka.server.transaction.AddPartitionsToTxnManager.onComplete", _WARN, first=(4, 1)),
    ),
)
PRODUCER_RETRIED: Final = LogLine(
    "the producer sent a batch again, so it may arrive late",
    Writer.PRODUCER,
    LogFile.APPLICATION,
    (
        Form(
            "Got error produce response with correlation id … on topic-partition {topic}-{partition}, retrying",
            "org.apache.kafka.clients.producer.internals.Sender.completeBatch",
            _WARN,
        ),
    ),
)

# --- What a coordinator does with an id. ---

_MARKER: Final = "Sending {transactional_id}'s transaction marker for partition {topic}-{partition} has "
MARKER_REFUSED_EPOCH: Final = _by_coordinator(
    "the leader refused the marker for its producer epoch, and the coordinator gave up",
    f"{_MARKER}permanently failed with error …InvalidProducerEpochException",
    f"{_ANSWERS}.onComplete",
)
MARKER_REFUSED_COORDINATOR: Final = _by_coordinator(
    "the leader refused the marker for its coordinator epoch, and the coordinator gave up",
    f"{_MARKER}permanently failed with error …TransactionCoordinatorFencedException",
    f"{_ANSWERS}.onComplete",
)
MARKER_RETRIED: Final = _by_coordinator(
    "the leader could not write the marker, and the coordinator sends it again",
    f"{_MARKER}failed with error …, retrying with current coordinator epoch",
    f"{_ANSWERS}.onComplete",
)
MARKER_SKIPPED: Final = _by_coordinator(
    "the coordinator found no leader of the partition, and completed the transaction without its marker",
    "Couldn't find leader endpoint for partitions …{topic}-{partition}… while trying to send transaction markers for "
    "{transactional_id}, these partitions are likely deleted already",
    f"{_MARKERS}.addTxnMarkersToBrokerQueue",
)
MARKERS_CANCELLED: Final = _by_coordinator(
    "the coordinator moved while it was sending markers; its successor sends them again",
    "Transaction coordinator epoch for {transactional_id} has changed from … to …; cancel sending transaction markers",
    f"{_ANSWERS}.onComplete",
)
NO_LONGER_COORDINATOR: Final = _by_coordinator(
    "the broker was deposed while it was sending markers",
    "I am no longer the coordinator for {transactional_id}; cancel sending transaction markers",
    f"{_ANSWERS}.onComplete",
)
COMPLETION_CANCELLED: Final = _by_coordinator(
    "the coordinator did not complete the transaction, because its state had changed meanwhile",
    "The cached metadata …transactionalId={transactional_id}, … after completed sending the markers with coordinator epoch",
    f"{_MARKERS}.writeTxnCompletion",
)
DEAD_QUEUE: Final = _by_coordinator(
    "the coordinator put a marker into a queue that it had removed",
    "Added …{transactional_id}… to dead queue for txn partition {coordinator_partition} to destination broker",
    f"{_TRANSACTION}.TxnMarkerQueue.addMarkers",
    _WARN,
    first=(3, 8),
)
MARKERS_AFTER_LOADING: Final = _by_coordinator(
    "a new coordinator sent the markers again",
    "Sending txn markers for …{transactional_id}… after loading partition {coordinator_partition}",
    f"{_STATES}.loadTransactionsForTxnTopicPartition",
    first=(3, 8),
)
_UNREACHABLE: Final = "[TransactionCoordinator id=…] Connection to node … could not be established. "
_CONNECTS: Final = "org.apache.kafka.clients.NetworkClient.processDisconnection"
UNREACHABLE: Final = LogLine(
    "the coordinator cannot connect to a leader; node is the leader's broker id",
    Writer.COORDINATOR,
    _SERVER,
    (
        Form(f"{_UNREACHABLE}Broker may not be available.", _CONNECTS, _WARN, last=(3, 6)),
        Form(f"{_UNREACHABLE}Node may not be available.", _CONNECTS, _WARN, first=(3, 7)),
    ),
)
ROLLED_BACK: Final = _by_coordinator(
    "the coordinator aborted the transaction at its timeout",
    "Completed rollback of ongoing transaction for transactionalId {transactional_id} due to timeout",
    f"{_COORDINATOR}.onEndTransactionComplete",
)
ROLLBACK_FAILED: Final = _by_coordinator(
    "the coordinator could not abort the transaction at its timeout",
    "Rollback of ongoing transaction for transactionalId {transactional_id} failed due to error",
    f"{_COORDINATOR}.onEndTransactionComplete",
    _WARN,
)
SCAN_FAILED: Final = LogLine(
    "the scan for expired transactions failed",
    Writer.COORDINATOR,
    _SERVER,
    (
        Form("Uncaught exception in scheduled task 'transaction-abort'", _OLD_SCHEDULER, _ERROR, last=(3, 4)),
        Form("Uncaught exception in scheduled task 'transaction-abort'", _SCHEDULER, _ERROR, first=(3, 5)),
    ),
)
_OVERFLOW: Final = "IllegalStateException: Cannot fence producer with epoch equal to Short.MaxValue since this would overflow"
_METADATA: Final = f"{_TRANSACTION}.TransactionMetadata"
_JAVA_METADATA: Final = f"{_JAVA_TRANSACTION}.TransactionMetadata"
EPOCH_EXHAUSTED: Final = LogLine(
    "the coordinator cannot raise the epoch any more",
    Writer.COORDINATOR,
    _SERVER,
    (
        Form(_OVERFLOW, f"{_METADATA}.prepareFenceProducerEpoch", _ERROR, last=(3, 4), logged_by=_OLD_SCHEDULER),
        Form(_OVERFLOW, f"{_METADATA}.prepareFenceProducerEpoch", _ERROR, (3, 5), (4, 1), _SCHEDULER),
        Form(_OVERFLOW, f"{_JAVA_METADATA}.prepareFenceProducerEpoch", _ERROR, (4, 2), (4, 2), _SCHEDULER),
        Form(
            "Fencing producer {transactional_id} {producer_id} with epoch equal to Short.MaxValue",
            f"{_JAVA_METADATA}.prepareFenceProducerEpoch",
            _ERROR,
            first=(4, 3),
        ),
        Form(
            "Aborting producer {transactional_id} {producer_id} with epoch equal to Short.MaxValue",
            f"{_JAVA_METADATA}.prepareAbortOrCommit",
            _ERROR,
            first=(4, 3),
        ),
    ),
)
INITIALIZED: Final = _by_coordinator(
    "an application initialised the id, with the producer id and epoch that it got",
    "Initialized transactionalId {transactional_id} with producerId … and producer epoch",
    f"{_COORDINATOR}.handleInitProducerId",
)
GIVEN_TO: Final = _by_coordinator(
    "a coordinator gave the producer id to an id; search all coordinators",
    "Initialized transactionalId … with producerId {producer_id} and producer epoch",
    f"{_COORDINATOR}.handleInitProducerId",
)
APPEND_FAILED: Final = _by_coordinator(
    "the coordinator rolled a state back in memory, because its append failed or timed out",
    "TransactionalId {transactional_id} append transaction log for … transition failed due to …, resetting pending state from",
    f"{_STATES}.appendTransactionToLog",
)
FENCE_FAILED: Final = _by_coordinator(
    "the coordinator could not write the epoch with which it fences a producer",
    "The coordinator failed to write an epoch fence transition for producer {transactional_id} to the transaction log with error",
    f"{_COORDINATOR}.endTransaction",
    _WARN,
)
_RESULT: Final = (
    "TransactionalId: {transactional_id}'s state is …, but received transaction marker result to send:",
    f"{_COORDINATOR}.logInvalidStateTransitionAndReturnError",
)
WRONG_RESULT: Final = LogLine(
    "the application asked for an end that contradicts the state of its id",
    Writer.COORDINATOR,
    _SERVER,
    (Form(*_RESULT, _DEBUG, last=(3, 9)), Form(*_RESULT, _WARN, first=(4, 0))),
)
_ILLEGAL: Final = "TransactionMetadata(transactionalId={transactional_id}, …'s transition to … failed: this should not happen"
ILLEGAL_STEP: Final = LogLine(
    "the coordinator refused to take an illegal step",
    Writer.COORDINATOR,
    _SERVER,
    (
        Form(_ILLEGAL, f"{_METADATA}.throwStateTransitionFailure", _ERROR, last=(4, 1)),
        Form(_ILLEGAL, f"{_JAVA_METADATA}.throwStateTransitionFailure", _ERROR, first=(4, 2)),
    ),
)

# --- Which broker is the coordinator, and what it loaded. ---

_PLACE: Final = "__transaction_state-{coordinator_partition}"
ELECTED: Final = _by_coordinator(
    "the broker became the coordinator",
    "Elected as the txn coordinator for partition {coordinator_partition} at epoch",
    f"{_COORDINATOR}.onElection",
)
RESIGNED: Final = _by_coordinator(
    "the broker stopped being the coordinator",
    "Resigned as the txn coordinator for partition {coordinator_partition} at epoch",
    f"{_COORDINATOR}.onResignation",
)
LOADED: Final = _by_coordinator(
    "the coordinator loaded its log; the number of ids fell if records were lost",
    f"Finished loading … transaction metadata from {_PLACE} in",
    f"{_STATES}.loadTransactionsForTxnTopicPartition",
)
LOADING_FAILED: Final = _by_coordinator(
    "the coordinator could not load its log",
    f"Error loading transactions from transaction log {_PLACE}",
    f"{_STATES}.loadTransactionMetadata",
    _ERROR,
)
NOTHING_TO_LOAD: Final = _by_coordinator(
    "the coordinator found no log to load",
    f"Attempted to load transaction metadata from {_PLACE}, but found no log",
    f"{_STATES}.loadTransactionMetadata",
    _WARN,
)
_COUNT: Final = (
    "KafkaException: Transaction topic number of partitions has changed from",
    f"{_STATES}.validateTransactionTopicPartitionCountIsStable",
)
PARTITIONS_ADDED: Final = LogLine(
    "a coordinator noticed that partitions were added to __transaction_state",
    Writer.COORDINATOR,
    _SERVER,
    (
        Form(*_COUNT, _ERROR, last=(3, 4), logged_by=_OLD_SCHEDULER),
        Form(*_COUNT, _ERROR, first=(3, 5), logged_by=_SCHEDULER),
    ),
)
