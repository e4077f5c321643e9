"""Log lines of each cause and each finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.broker_logs.kafka_lines import lines_named, of_coordinator
from txnlib.core.broker_logs.log_line import BrokerLogs
from txnlib.core.finding_catalogue import Finding
from txnlib.core.verdicts.cause import CauseName


def _logs(names: str = "", silent_because: str | None = None, about_coordinator: str = "", then: str = "") -> BrokerLogs:
    """Lines by name: of any partition, those of `about_coordinator` for the coordinator's partition, then `then`."""
    lines = (*lines_named(names), *map(of_coordinator, lines_named(about_coordinator)), *lines_named(then))
    return BrokerLogs(lines, silent_because)


_UNCLEAN: Final = "UNCLEAN_KRAFT UNCLEAN_TRIGGERED ELECTED_FROM_OFFLINE TRUNCATED"
_DELETED: Final = "TOPIC_REMOVED_KRAFT TOPIC_REMOVED_ZOOKEEPER LOG_DELETED"
_PRODUCER_IDS: Final = "PRODUCER_IDS_KRAFT PRODUCER_IDS_ZOOKEEPER"
_EPOCH_REFUSED: Final = "MARKER_REFUSED_EPOCH REFUSED_EPOCH"
_ACCEPTED: Final = "a leader that accepts a batch logs nothing"
_VERIFICATION: Final = (
    f"{_ACCEPTED}, and from 3.6 on one that refuses it because its verification failed logs only DEBUG (`kafka.server.KafkaApis`)"
)
_LATE: Final = _logs(
    "ROLLED_BACK INITIALIZED PRODUCER_RETRIED VERIFICATION_SKIPPED", f"{_VERIFICATION}. The lines show what made the batch late"
)
_NOT_ADDED: Final = _logs("VERIFICATION_SKIPPED", _VERIFICATION)
_EXPIRED: Final = "a coordinator logs an expiry only if it fails"
_NO_CHECK: Final = "no broker checks who made a producer id. The lines show the ids that the cluster handed out"
_LOSSES: Final = f"{_UNCLEAN} {_DELETED} RECOVERY_TRUNCATED"
_LOADS: Final = "NOTHING_TO_LOAD LOADING_FAILED LOADED"

LOGS_OF_CAUSES: Final[Mapping[CauseName, BrokerLogs]] = {
    CauseName.UNCLEAN_ELECTION: _logs(_UNCLEAN),
    CauseName.UNDATED_ELECTION: _logs(_UNCLEAN),
    CauseName.TOPIC_CREATED_AGAIN: _logs(f"{_DELETED} LOG_CREATED"),
    CauseName.DROPPED_WITHOUT_LEADER: _logs("MARKER_SKIPPED WITHOUT_LEADER"),
    CauseName.TRANSACTION_VERSION_LOWERED: _logs("TRANSACTION_VERSION"),
    CauseName.MARKER_LOST: _logs(f"{_UNCLEAN} {_DELETED} MARKER_SKIPPED"),
    CauseName.NO_LEADER: _logs("WITHOUT_LEADER NOT_ELECTED MARKER_RETRIED"),
    CauseName.NO_COORDINATOR: _logs(about_coordinator="WITHOUT_LEADER NOT_ELECTED", then="RESIGNED"),
    CauseName.COORDINATOR_FENCED: _logs("FENCED ELECTED LOADED LOADING_FAILED"),
    CauseName.OLD_TIMES: _logs(
        silent_because="a leader accepts old timestamps and logs nothing, unless a limit of the topic refuses them"
    ),
    CauseName.OFFSET_COMMIT_RACED: _logs("ROLLED_BACK", f"{_ACCEPTED}. The line shows what the commit raced with"),
    CauseName.LATE_PRODUCE: _LATE,
    CauseName.ENDED_EARLY: _logs(
        "MARKER_RETRIED MARKERS_AFTER_LOADING MARKERS_CANCELLED",
        "brokers 4.0 and 4.1 accept a repeated marker and log nothing. The lines show why it was repeated",
    ),
    CauseName.OTHER_CLIENT_CONTINUED: _logs(silent_because=_VERIFICATION),
    CauseName.PARTITION_NOT_ADDED: _NOT_ADDED,
    CauseName.PARTITION_NOT_ADDED_TO_NEWEST: _NOT_ADDED,
    CauseName.FOREIGN_PRODUCER_ID: _logs(f"{_PRODUCER_IDS} GIVEN_TO", _NO_CHECK),
    CauseName.COORDINATOR_LOST_RECORDS: _logs(about_coordinator=_LOSSES, then=_LOADS),
    CauseName.ID_EXPIRED: _logs("GIVEN_TO", _EXPIRED),
    CauseName.RECORDS_LOST_OR_ID_MADE_UP: _logs("GIVEN_TO", _NO_CHECK, about_coordinator=_LOSSES, then=_LOADS),
    CauseName.HUNG_UNTIL_EXPIRY: _logs("INITIALIZED", _EXPIRED),
    CauseName.LATE_WITH_FORMER_PRODUCER_ID: _LATE,
    CauseName.COORDINATOR_UNCLEAN_ELECTION: _logs(about_coordinator=_UNCLEAN, then="LOADED"),
    CauseName.EPOCH_MADE_UP: _logs(
        f"{_EPOCH_REFUSED} VERIFICATION_SKIPPED", f"{_ACCEPTED}. The lines show what its epoch stopped afterwards"
    ),
    CauseName.COORDINATOR_LOST_NEWEST_RECORDS: _logs(about_coordinator=_LOSSES, then=_LOADS),
    CauseName.EPOCH_AHEAD: _logs(_EPOCH_REFUSED),
    CauseName.COORDINATOR_EPOCH_AHEAD: _logs("MARKER_REFUSED_COORDINATOR REFUSED_COORDINATOR_EPOCH"),
    CauseName.LEADER_UNREACHABLE: _logs("UNREACHABLE MARKER_RETRIED"),
    CauseName.FORGOTTEN: _logs(
        "MARKERS_CANCELLED NO_LONGER_COORDINATOR COMPLETION_CANCELLED DEAD_QUEUE MARKERS_AFTER_LOADING",
        "a coordinator that forgets a marker logs nothing. The lines show events that come before it",
    ),
    CauseName.REPEATED_MARKER_REFUSED: _logs(f"{_EPOCH_REFUSED} REPEATED_MARKER"),
    CauseName.EPOCH_EXHAUSTED: _logs("EPOCH_EXHAUSTED SCAN_FAILED"),
    CauseName.TIMEOUT_SCAN_STOPPED: _logs("SCAN_FAILED ROLLBACK_FAILED RESIGNED ELECTED LOADING_FAILED"),
}


def logs_of_cause(cause: str, names: Mapping[str, object]) -> BrokerLogs | None:
    """The log lines of a cause, by its text with the names of a transaction; None if a newer or older release wrote the text."""
    filled = {name: names.get(name) for name in ("transactional_id", "coordinator_partition")}
    return next((logs for name, logs in LOGS_OF_CAUSES.items() if name.format(**filled) == cause), None)


_COORDINATOR_MOVED: Final = "ELECTED RESIGNED"
_REFUSES: Final = _logs("ILLEGAL_STEP", "the coordinator that wrote the record did not notice. The line is a refused step")
_NOT_CHECKED: Final = _logs(silent_because="coordinators do not check this field, neither when they write nor when they load")
_BY_HAND: Final = "brokers do not log the WriteTxnMarkers request of kafka-transactions.sh. Only the request log has it, at DEBUG"
_INDEX: Final = _logs(
    "INDEX_REBUILT", "a broker reads the transaction index without checking it, except when it starts after a crash"
)
_NOT_COMPARED: Final = _logs(silent_because="brokers do not compare their memory with their logs after they have loaded them")
_FORECAST: Final = _logs(silent_because="it is a forecast, and what it is about has not happened yet")
_TIMESTAMP: Final = _logs(
    "REFUSED_TIMESTAMP REFUSED_APPEND",
    "a leader that accepts a timestamp logs nothing. The lines are records that were refused, and their partition",
)

LOGS_OF_FINDINGS: Final[Mapping[Finding, BrokerLogs]] = {
    Finding.INVALID_PRODUCER_EPOCH: _logs("COPIED_EPOCH REFUSED_EPOCH"),
    Finding.OUT_OF_ORDER_SEQUENCE_NUMBER: _logs(
        "REFUSED_SEQUENCE",
        "a leader that accepts a gap logs nothing, and followers do not check. The line is a batch that was refused",
    ),
    Finding.INVALID_TXN_STATE: _logs("REFUSED_NON_TRANSACTIONAL FETCHER_FAILED"),
    Finding.TRANSACTION_COORDINATOR_FENCED: _logs(f"COPIED_COORDINATOR_EPOCH REFUSED_COORDINATOR_EPOCH {_COORDINATOR_MOVED}"),
    Finding.TIMESTAMP_IN_FUTURE: _TIMESTAMP,
    Finding.INVALID_TIMESTAMP: _TIMESTAMP,
    Finding.CORRUPT_MESSAGE: _logs(
        "FETCHED_CORRUPT RECOVERY_TRUNCATED",
        "a leader returns the error to the producer and logs nothing. The lines are of followers, and of a start",
    ),
    Finding.INVALID_TRANSACTION_TIMEOUT: _logs(
        silent_because="the coordinator returns INVALID_TRANSACTION_TIMEOUT to the application and logs nothing"
    ),
    Finding.ILLEGAL_TRANSITION: _REFUSES,
    Finding.SUSPICIOUS_PHANTOM_APPEND: _logs("APPEND_FAILED FENCE_FAILED"),
    Finding.STATE_NEVER_WRITTEN: _logs(
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
    Finding.UNEXPECTED_PRODUCER_EPOCH: _logs("FENCE_FAILED INITIALIZED"),
    Finding.EPOCH_DOUBLE_BUMP: _logs("ROLLED_BACK", "brokers 4.0.0 log the abort, not its epoch"),
    Finding.COORDINATOR_EPOCH_WENT_BACK: _logs(_COORDINATOR_MOVED),
    Finding.EPOCH_BEYOND_EXHAUSTION: _logs("EPOCH_EXHAUSTED SCAN_FAILED"),
    Finding.PRODUCER_ID_OWNED_TWICE: _logs(f"GIVEN_TO PRODUCER_IDS_WRONG {_PRODUCER_IDS}"),
    Finding.WRONG_COORDINATOR_PARTITION: _logs("PARTITIONS_ADDED"),
    Finding.SPLIT_OUTCOME: _logs("WRONG_RESULT MARKERS_CANCELLED", _BY_HAND),
    Finding.MARKER_MISSING: _logs(f"MARKER_SKIPPED {_UNCLEAN}"),
    Finding.MARKER_WITHOUT_DECISION: _logs(silent_because=_BY_HAND),
    Finding.MARKER_OF_DEPOSED_COORDINATOR: _logs(f"NO_LONGER_COORDINATOR MARKERS_CANCELLED {_COORDINATOR_MOVED}"),
    Finding.ABORTED_WHILE_ONGOING: _logs(silent_because=_BY_HAND),
    Finding.DUPLICATE_MARKER: _logs("REPEATED_MARKER MARKERS_AFTER_LOADING MARKER_RETRIED"),
    Finding.WRITTEN_BEFORE_TRANSACTION: _logs(
        "ROLLED_BACK PRODUCER_RETRIED", f"{_ACCEPTED}. The lines show what made the batch late"
    ),
    Finding.UNKNOWN_TOPIC_OR_PARTITION: _logs(f"{_DELETED} MARKER_SKIPPED"),
    Finding.TRANSACTIONAL_IDS_NOT_REUSED: _logs("INITIALIZED"),
    Finding.PRODUCER_IDS_NOT_REUSED: _logs(
        _PRODUCER_IDS, "brokers do not log a new producer. The lines are blocks of 1,000 producer ids"
    ),
    Finding.COPIES_DISAGREE: _logs(_UNCLEAN),
    Finding.UNCLEAN_LEADER_ELECTION: _logs(_UNCLEAN),
    Finding.PRODUCER_ID_NEVER_ALLOCATED: _logs(_PRODUCER_IDS, _NO_CHECK),
    Finding.CAPTURE_JSON_CONTRADICTED: _logs(silent_because="the contradiction is in the capture, not in the cluster"),
    Finding.COPY_OF_DELETED_TOPIC: _logs(f"{_DELETED} LOG_STRAY"),
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
