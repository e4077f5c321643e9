"""What Kafka writes, and the state that its brokers derive from it."""

from __future__ import annotations

from txnlib.core.kafka.wire import CorruptRecordError
from txnlib.core.kafka.record_batch import (
    RecordBatch,
    Record,
    EndTxnMarker,
    ControlType,
    TimestampType,
    CompressionType,
    iter_records,
    read_end_txn_marker,
)
from txnlib.core.kafka.producer_state import ProducerState, append
from txnlib.core.kafka.producer_state import MarkerVersion, Acceptance, acceptance
from txnlib.core.kafka.transaction_log import (
    TransactionLogEntry,
    TopicPartition,
    UnknownVersionError,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.kafka.coordinator import CoordinatorRecord, transition
from txnlib.core.kafka.coordinator_partition import CountBasis, partition_for, count_partitions
from txnlib.core.kafka.offset_commit import OffsetCommit, OffsetCommitKey, read_offset_commit_key, read_offset_commit_value
from txnlib.core.kafka.metadata_records import MetadataRecord, MetadataType, read_metadata_record, read_metadata_json
from txnlib.core.kafka.broker_files import read_producer_snapshot
from txnlib.core.kafka.broker_files import read_transaction_index
from txnlib.core.kafka.constants import is_from

__all__ = [
    "CorruptRecordError",
    "RecordBatch",
    "Record",
    "EndTxnMarker",
    "ControlType",
    "TimestampType",
    "CompressionType",
    "iter_records",
    "read_end_txn_marker",
    "ProducerState",
    "append",
    "MarkerVersion",
    "Acceptance",
    "acceptance",
    "TransactionLogEntry",
    "TopicPartition",
    "UnknownVersionError",
    "read_transaction_log_key",
    "read_transaction_log_value",
    "TransactionState",
    "CoordinatorRecord",
    "transition",
    "CountBasis",
    "partition_for",
    "count_partitions",
    "OffsetCommit",
    "OffsetCommitKey",
    "read_offset_commit_key",
    "read_offset_commit_value",
    "MetadataRecord",
    "MetadataType",
    "read_metadata_record",
    "read_metadata_json",
    "read_producer_snapshot",
    "read_transaction_index",
    "is_from",
]
