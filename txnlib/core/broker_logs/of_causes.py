"""Log lines of each cause and each finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.broker_logs.kafka_lines import lines_named, of_coordinator
from txnlib.core.broker_logs.log_line import BrokerLogs
from txnlib.core.finding_catalogue import FINDINGS, Finding
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


LOGS_OF_FINDINGS: Final[Mapping[Finding, BrokerLogs]] = {
    finding: _logs(rule.logs, rule.not_logged) for finding, rule in FINDINGS.items()
}
