"""The catalogue of findings: one row each, with its severity and meaning.

A finding carries the name of the error a broker would have returned, where there is one (Kafka: `Errors`). A dump is a
replay: what a leader would have refused is accepted here, as replication and recovery do, and reported.
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
    """Name of a finding; `FINDINGS` tells severity and meaning."""

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
        _E, "A batch or marker of an older producer epoch follows a newer one: no correct leader accepts that."
    ),
    Finding.OUT_OF_ORDER_SEQUENCE_NUMBER: FindingRule(
        _W,
        "The first sequence of a batch does not follow the last one of its producer: records are missing or repeated.",
    ),
    Finding.INVALID_TXN_STATE: FindingRule(_E, "A non-transactional batch stands inside an open transaction of the same producer."),
    Finding.TRANSACTION_COORDINATOR_FENCED: FindingRule(
        _E, "A marker of an older coordinator epoch follows a newer one: a deposed coordinator was still writing."
    ),
    Finding.TIMESTAMP_IN_FUTURE: FindingRule(
        _W,
        "The last write of a producer is stamped later than the audit's instant: the client's clock is wrong, and ages by it lie.",
    ),
    Finding.INVALID_TIMESTAMP: FindingRule(
        _W,
        "The last write of a producer, or the last record of a transactional id, carries a time that no clock shows (before 1970, "
        "or after the year 9999: nanoseconds, say): ages by it are not known.",
    ),
    Finding.CORRUPT_MESSAGE: FindingRule(
        _E, "The CRC of a batch that a verdict rests on, or of an odd one, does not fit: nothing in its header can be believed."
    ),
    Finding.INVALID_TRANSACTION_TIMEOUT: FindingRule(
        _W, "A transactional id has a timeout of 0 or below, or above transaction.max.timeout.ms: brokers refuse such a one."
    ),
    Finding.ILLEGAL_TRANSITION: FindingRule(
        _E, "Two consecutive records of a transactional id make a step that the coordinator never takes."
    ),
    Finding.SUSPICIOUS_PHANTOM_APPEND: FindingRule(
        _I,
        "A record looks like an append that timed out and was taken back in the coordinator's memory, not in the log.",
    ),
    Finding.STATE_NEVER_WRITTEN: FindingRule(_E, "A record holds a state that only ever lives in the coordinator's memory."),
    Finding.PARTITIONS_CHANGED: FindingRule(
        _W, "The partitions of a transaction shrank, or its Prepare record lists others than the record before it."
    ),
    Finding.TIMEOUT_CHANGED: FindingRule(_W, "The timeout changed at a step other than an initialisation."),
    Finding.START_TIMESTAMP_MISSING: FindingRule(_W, "A record of a begun transaction carries no start time."),
    Finding.START_TIMESTAMP_IN_EMPTY: FindingRule(_W, "A record in state Empty carries the start time of a transaction."),
    Finding.START_TIMESTAMP_CHANGED: FindingRule(_W, "The start time changed between two records of one transaction."),
    Finding.PARTITIONS_IN_EMPTY: FindingRule(_W, "A record in state Empty lists partitions."),
    Finding.PRODUCER_ID_CHANGED: FindingRule(
        _E, "The producer id changed at a step other than an initialisation or a completion at the end of its epochs."
    ),
    Finding.PRODUCER_EPOCH_WENT_BACK: FindingRule(_E, "The epoch of one producer id went back."),
    Finding.UNEXPECTED_PRODUCER_EPOCH: FindingRule(
        _W, "A step ends at an epoch that the coordinator does not give: it raises one only at an initialisation or an end, by 1."
    ),
    Finding.EPOCH_DOUBLE_BUMP: FindingRule(
        _I, "A coordinator's abort raised the epoch by two (KAFKA-19367, Kafka 4.0.0); harmless alone."
    ),
    Finding.COORDINATOR_EPOCH_WENT_BACK: FindingRule(
        _E, "The leader epoch of a coordinator partition went back between two records: two coordinators wrote."
    ),
    Finding.EPOCH_BEYOND_EXHAUSTION: FindingRule(
        _W, "An id is Empty or Ongoing at an epoch that no client may hold: it cannot be fenced (KAFKA-20090)."
    ),
    Finding.PRODUCER_ID_OWNED_TWICE: FindingRule(
        _C, "Two transactional ids claim the same producer id: corruption, or logs of different clusters mixed."
    ),
    Finding.WRONG_COORDINATOR_PARTITION: FindingRule(
        _W, "A transactional id stands in a coordinator partition that its hash does not lead to."
    ),
    Finding.SPLIT_OUTCOME: FindingRule(
        _C, "A marker contradicts the coordinator's decision: one transaction is committed here and aborted there."
    ),
    Finding.MARKER_MISSING: FindingRule(
        _C,
        "A completed transaction has no marker in one of its partitions, whose log reaches from before it to behind it (WARNING "
        "where it was aborted: an abort by hand repairs that).",
    ),
    Finding.MARKER_WITHOUT_DECISION: FindingRule(
        _W,
        "No captured decision explains a marker. An ABORT may be one by hand (kafka-transactions.sh abort); no tool of Kafka's "
        "writes a COMMIT.",
    ),
    Finding.MARKER_OF_DEPOSED_COORDINATOR: FindingRule(
        _E, "A marker carries an older coordinator epoch than its decision: a deposed coordinator wrote it."
    ),
    Finding.ABORTED_WHILE_ONGOING: FindingRule(
        _E,
        "An ABORT marker stands inside a transaction that is still Ongoing with the partition: if the transaction commits, its "
        "outcome is split. Stop its application before it commits.",
    ),
    Finding.DUPLICATE_MARKER: FindingRule(_I, "A marker was written twice, as after a failover of its coordinator; harmless."),
    Finding.WRITTEN_BEFORE_TRANSACTION: FindingRule(
        _E,
        "Records of a transaction were written before it began: they came too late for the one before, and were ended with "
        "this one.",
    ),
    Finding.UNKNOWN_TOPIC_OR_PARTITION: FindingRule(
        _W, "A transaction that has not ended lists a partition whose topic no longer exists: what it wrote there is gone."
    ),
    Finding.TRANSACTIONAL_IDS_NOT_REUSED: FindingRule(
        _W,
        "An application leaves its transactional ids behind after one use: coordinators keep each until it expires (INFO while "
        "they are few).",
    ),
    Finding.PRODUCER_IDS_NOT_REUSED: FindingRule(
        _W,
        "Producers of a partition wrote one batch each and were left behind: its broker keeps each until it expires (INFO while "
        "they are few).",
    ),
    Finding.COPIES_DISAGREE: FindingRule(
        _E,
        "Copies of a partition hold different batches at one offset below their high watermarks: an unclean election, or files "
        "of different clusters.",
    ),
    Finding.ABORT_NOT_INDEXED: FindingRule(
        _E, "An aborted transaction is not in the transaction index: read_committed consumers read its records."
    ),
    Finding.INDEXED_ABORT_NOT_IN_LOG: FindingRule(
        _E, "The transaction index lists an abort whose marker is not in the log: consumers skip records that nobody aborted."
    ),
}
