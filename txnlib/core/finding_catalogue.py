"""The catalogue of findings: one row each, with its severity and meaning.

A finding has the name of the error that a broker would have returned, if there is one (Kafka: `Errors`). Reading a log is a
replay: batches that a leader would have refused are accepted, as in replication and recovery, and reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final


class Severity(IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3


class Finding(Enum):
    """The name of a finding. `FINDINGS` has its severity and meaning."""

    # A partition's log
    INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH"
    OUT_OF_ORDER_SEQUENCE_NUMBER = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    INVALID_TXN_STATE = "INVALID_TXN_STATE"
    TRANSACTION_COORDINATOR_FENCED = "TRANSACTION_COORDINATOR_FENCED"
    TIMESTAMP_IN_FUTURE = "TIMESTAMP_IN_FUTURE"
    INVALID_TIMESTAMP = "INVALID_TIMESTAMP"
    CORRUPT_MESSAGE = "CORRUPT_MESSAGE"
    # The coordinator's log
    INVALID_TRANSACTION_TIMEOUT = "INVALID_TRANSACTION_TIMEOUT"
    ILLEGAL_TRANSITION = "ILLEGAL_TRANSITION"
    SUSPICIOUS_PHANTOM_APPEND = "SUSPICIOUS_PHANTOM_APPEND"
    STATE_NEVER_WRITTEN = "STATE_NEVER_WRITTEN"
    PARTITIONS_CHANGED = "PARTITIONS_CHANGED"
    TIMEOUT_CHANGED = "TIMEOUT_CHANGED"
    START_TIMESTAMP_MISSING = "START_TIMESTAMP_MISSING"
    START_TIMESTAMP_IN_EMPTY = "START_TIMESTAMP_IN_EMPTY"
    START_TIMESTAMP_CHANGED = "START_TIMESTAMP_CHANGED"
    PARTITIONS_IN_EMPTY = "PARTITIONS_IN_EMPTY"
    PRODUCER_ID_CHANGED = "PRODUCER_ID_CHANGED"
    PRODUCER_EPOCH_WENT_BACK = "PRODUCER_EPOCH_WENT_BACK"
    UNEXPECTED_PRODUCER_EPOCH = "UNEXPECTED_PRODUCER_EPOCH"
    EPOCH_DOUBLE_BUMP = "EPOCH_DOUBLE_BUMP"
    COORDINATOR_EPOCH_WENT_BACK = "COORDINATOR_EPOCH_WENT_BACK"
    EPOCH_BEYOND_EXHAUSTION = "EPOCH_BEYOND_EXHAUSTION"
    # Between the logs
    PRODUCER_ID_OWNED_TWICE = "PRODUCER_ID_OWNED_TWICE"
    WRONG_COORDINATOR_PARTITION = "WRONG_COORDINATOR_PARTITION"
    SPLIT_OUTCOME = "SPLIT_OUTCOME"
    MARKER_MISSING = "MARKER_MISSING"
    MARKER_WITHOUT_DECISION = "MARKER_WITHOUT_DECISION"
    MARKER_OF_DEPOSED_COORDINATOR = "MARKER_OF_DEPOSED_COORDINATOR"
    ABORTED_WHILE_ONGOING = "ABORTED_WHILE_ONGOING"
    DUPLICATE_MARKER = "DUPLICATE_MARKER"
    WRITTEN_BEFORE_TRANSACTION = "WRITTEN_BEFORE_TRANSACTION"
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    # Of many producers together
    TRANSACTIONAL_IDS_NOT_REUSED = "TRANSACTIONAL_IDS_NOT_REUSED"
    PRODUCER_IDS_NOT_REUSED = "PRODUCER_IDS_NOT_REUSED"
    # Between copies and files of one partition
    COPIES_DISAGREE = "COPIES_DISAGREE"
    ABORT_NOT_INDEXED = "ABORT_NOT_INDEXED"
    INDEXED_ABORT_NOT_IN_LOG = "INDEXED_ABORT_NOT_IN_LOG"


@dataclass(frozen=True, slots=True)
class FindingRule:
    severity: Severity
    meaning: str


_I, _W, _E, _C = Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL

FINDINGS: Final[Mapping[Finding, FindingRule]] = {
    Finding.INVALID_PRODUCER_EPOCH: FindingRule(
        _E, "A batch or marker of an older producer epoch follows a newer one. No correct leader accepts that."
    ),
    Finding.OUT_OF_ORDER_SEQUENCE_NUMBER: FindingRule(
        _W,
        "The first sequence of a batch does not follow the last sequence of its producer: records are missing or repeated.",
    ),
    Finding.INVALID_TXN_STATE: FindingRule(_E, "A non-transactional batch lies inside an open transaction of the same producer."),
    Finding.TRANSACTION_COORDINATOR_FENCED: FindingRule(
        _E, "A marker of an older coordinator epoch follows a newer one: a deposed coordinator was still writing."
    ),
    Finding.TIMESTAMP_IN_FUTURE: FindingRule(
        _W,
        "The last write of a producer is stamped later than the instant of the audit: the client's clock is wrong, and so are ages "
        "derived from it.",
    ),
    Finding.INVALID_TIMESTAMP: FindingRule(
        _W,
        "The last write of a producer, or the last record of a transactional id, has a timestamp that is out of range (before 1970 "
        "or after the year 9999; nanoseconds, for example): ages derived from it are unknown.",
    ),
    Finding.CORRUPT_MESSAGE: FindingRule(
        _E,
        "The CRC of a batch does not match, and a verdict depends on the batch or the batch is odd: its header cannot be trusted.",
    ),
    Finding.INVALID_TRANSACTION_TIMEOUT: FindingRule(
        _W, "A transactional id has a timeout that brokers refuse: 0, negative, or above transaction.max.timeout.ms."
    ),
    Finding.ILLEGAL_TRANSITION: FindingRule(
        _E, "Two consecutive records of a transactional id form a step that the coordinator never takes."
    ),
    Finding.SUSPICIOUS_PHANTOM_APPEND: FindingRule(
        _I,
        "A record looks like an append that timed out: the coordinator rolled it back in memory, but not in the log.",
    ),
    Finding.STATE_NEVER_WRITTEN: FindingRule(_E, "A record contains a state that exists only in the coordinator's memory."),
    Finding.PARTITIONS_CHANGED: FindingRule(
        _W, "A transaction lost partitions, or its Prepare record lists other partitions than the record before it."
    ),
    Finding.TIMEOUT_CHANGED: FindingRule(_W, "The timeout changed at a step other than an initialisation."),
    Finding.START_TIMESTAMP_MISSING: FindingRule(_W, "A record of a transaction that has begun has no start time."),
    Finding.START_TIMESTAMP_IN_EMPTY: FindingRule(_W, "A record in state Empty has the start time of a transaction."),
    Finding.START_TIMESTAMP_CHANGED: FindingRule(_W, "The start time changed between two records of one transaction."),
    Finding.PARTITIONS_IN_EMPTY: FindingRule(_W, "A record in state Empty lists partitions."),
    Finding.PRODUCER_ID_CHANGED: FindingRule(
        _E, "The producer id changed at a step that is neither an initialisation nor a completion with exhausted epochs."
    ),
    Finding.PRODUCER_EPOCH_WENT_BACK: FindingRule(_E, "The epoch of a producer id decreased between two records."),
    Finding.UNEXPECTED_PRODUCER_EPOCH: FindingRule(
        _W,
        "A step ends with an epoch that the coordinator would not assign: it raises an epoch only at an "
        "initialisation or an end, by 1.",
    ),
    Finding.EPOCH_DOUBLE_BUMP: FindingRule(
        _I, "A coordinator's abort raised the epoch by two (KAFKA-19367, Kafka 4.0.0). Harmless on its own."
    ),
    Finding.COORDINATOR_EPOCH_WENT_BACK: FindingRule(
        _E, "The leader epoch of a coordinator partition decreased between two records: two coordinators wrote to it."
    ),
    Finding.EPOCH_BEYOND_EXHAUSTION: FindingRule(
        _W, "A transactional id is Empty or Ongoing at an epoch that no client may have: it cannot be fenced (KAFKA-20090)."
    ),
    Finding.PRODUCER_ID_OWNED_TWICE: FindingRule(
        _C, "Two transactional ids claim the same producer id: corruption, or a mix of logs of different clusters."
    ),
    Finding.WRONG_COORDINATOR_PARTITION: FindingRule(
        _W, "A transactional id is in a coordinator partition other than the one that its hash selects."
    ),
    Finding.SPLIT_OUTCOME: FindingRule(
        _C, "A marker contradicts the coordinator's decision: the transaction is committed in one place and aborted in another."
    ),
    Finding.MARKER_MISSING: FindingRule(
        _C,
        "A completed transaction has no marker on one of its partitions, although the log of that partition extends from before "
        "the transaction to after it. WARNING if it was aborted: an abort by hand repairs that.",
    ),
    Finding.MARKER_WITHOUT_DECISION: FindingRule(
        _W,
        "No captured decision explains a marker. An ABORT may have been written by hand (kafka-transactions.sh abort); no Kafka "
        "tool writes a COMMIT.",
    ),
    Finding.MARKER_OF_DEPOSED_COORDINATOR: FindingRule(
        _E, "A marker has an older coordinator epoch than its decision: a deposed coordinator wrote it."
    ),
    Finding.ABORTED_WHILE_ONGOING: FindingRule(
        _E,
        "An ABORT marker was written to a partition that an Ongoing transaction still includes: if that transaction commits, its "
        "outcome is split. Stop its application before it commits.",
    ),
    Finding.DUPLICATE_MARKER: FindingRule(
        _I, "A marker was written twice, as happens after a failover of its coordinator. Harmless."
    ),
    Finding.WRITTEN_BEFORE_TRANSACTION: FindingRule(
        _E,
        "Records of a transaction were written before it began: they arrived too late for the transaction before it, and were "
        "ended with this one.",
    ),
    Finding.UNKNOWN_TOPIC_OR_PARTITION: FindingRule(
        _W, "A transaction that has not ended lists a partition whose topic no longer exists: its records there are lost."
    ),
    Finding.TRANSACTIONAL_IDS_NOT_REUSED: FindingRule(
        _W,
        "An application abandons its transactional ids after one use. Coordinators keep each of them until it expires. INFO while "
        "they are few.",
    ),
    Finding.PRODUCER_IDS_NOT_REUSED: FindingRule(
        _W,
        "Producers of a partition wrote one batch each and were then abandoned. Its broker keeps each of them until it expires. "
        "INFO while they are few.",
    ),
    Finding.COPIES_DISAGREE: FindingRule(
        _E,
        "Copies of a partition have different batches at the same offset below their high watermarks: an unclean election, or "
        "files of different clusters.",
    ),
    Finding.ABORT_NOT_INDEXED: FindingRule(
        _E, "An aborted transaction is not in the transaction index: read_committed consumers read its records."
    ),
    Finding.INDEXED_ABORT_NOT_IN_LOG: FindingRule(
        _E, "The transaction index lists an abort whose marker is not in the log: consumers skip records that were not aborted."
    ),
}
