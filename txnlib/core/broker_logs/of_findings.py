"""Log lines of each finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.broker_logs import cluster_lines as cluster
from txnlib.core.broker_logs import transaction_lines as lines
from txnlib.core.broker_logs.log_line import BrokerLogs
from txnlib.core.finding_catalogue import Finding

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
_UNCLEAN: Final = BrokerLogs(cluster.UNCLEAN)

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
