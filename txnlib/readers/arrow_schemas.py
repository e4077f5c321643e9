"""The Arrow schemas of the readers, one per kind of data.

Kafka's -1 sentinels are null. `source` names one copy of a partition: the log directory under the input it came from, and
whether it is raw or text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

TOPIC_PARTITION: Final = pa.struct([("topic", pa.string()), ("partition", pa.int32())])

RECORD_BATCHES: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.string()),
        # Of the file it stands in: `segments` tells its path, which a million rows need not repeat.
        ("segment_base_offset", pa.int64()),
        ("position", pa.int64()),
        ("size", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        # Offsets missing between the batch before it in the same file and this one; null for the first of a file.
        ("offset_gap", pa.int64()),
        ("records_count", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("base_sequence", pa.int32()),
        ("last_sequence", pa.int32()),
        ("partition_leader_epoch", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("control_type", pa.string()),
        ("coordinator_epoch", pa.int32()),
        ("timestamp_type", pa.string()),
        ("max_timestamp_ms", pa.int64()),
        ("delete_horizon_ms", pa.int64()),
        ("compression_type", pa.string()),
        ("magic", pa.int32()),
        ("crc", pa.int64()),
    ]
)

TRANSACTION_LOG: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        # The leader epoch of the batch: the leader of a coordinator partition is the coordinator.
        ("coordinator_epoch", pa.int32()),
        ("transactional_id", pa.string()),
        ("is_tombstone", pa.bool_()),
        ("value_version", pa.int32()),
        ("producer_id", pa.int64()),
        ("previous_producer_id", pa.int64()),
        ("next_producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("next_producer_epoch", pa.int32()),
        ("last_producer_epoch", pa.int32()),
        ("transaction_timeout_ms", pa.int32()),
        ("state", pa.string()),
        ("partitions", pa.list_(TOPIC_PARTITION)),
        ("last_update_ms", pa.int64()),
        ("start_ms", pa.int64()),
        ("client_transaction_version", pa.int32()),
        ("unknown_tags", pa.list_(pa.int32())),
    ]
)

COMMITTED_OFFSETS: Final = pa.schema(
    [
        # Where the record stands: a partition of `__consumer_offsets`.
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("offset", pa.int64()),
        # Of a commit inside a transaction; null for others.
        ("producer_id", pa.int64()),
        ("group_id", pa.string()),
        ("committed_topic", pa.string()),
        ("committed_partition", pa.int32()),
        ("is_tombstone", pa.bool_()),
        ("committed_offset", pa.int64()),
        ("commit_timestamp_ms", pa.int64()),
    ]
)

UNREADABLE: Final = pa.struct(
    [
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("reason", pa.string()),
        ("sample", pa.string()),
        # Base offset of the first batch that could be read after it; null where nothing could.
        ("next_offset", pa.int64()),
    ]
)

LANDMARK: Final = pa.struct([("position", pa.int64()), ("size", pa.int32()), ("base_offset", pa.int64()), ("crc", pa.int64())])

#: One row per segment of a capture, raw or dumped, whether or not anything in it could be read.
SEGMENTS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.string()),
        ("path", pa.string()),
        ("kind", pa.string()),
        ("segment_base_offset", pa.int64()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        # Base offset of the highest batch that does not follow the one before it.
        ("last_gap_offset", pa.int64()),
        ("bytes", pa.int64()),
        ("batches", pa.int64()),
        # How the segment ends: CLEAN, ZEROS (preallocated), TORN (inside a batch), CORRUPT (nothing believable follows).
        ("tail", pa.string()),
        # Whether coordinator records, marker types, and so on were printed at all (text only; true for raw).
        ("is_decoded", pa.bool_()),
        # Newest broker-stamped time in it: markers, LogAppendTime batches, coordinator records.
        ("newest_broker_ms", pa.int64()),
        ("unreadable", pa.list_(UNREADABLE)),
        # Of a raw segment: by what the next audit knows it again, and where it goes on reading (`landmarks.py`).
        ("landmarks", pa.list_(LANDMARK)),
        ("last_offset_before", pa.int64()),
    ]
)

#: The same of a part of a segment, and where the part begins. `tail` and `is_decoded` are null where the segment goes on.
SEGMENT_PARTS: Final = pa.schema([*SEGMENTS, ("part_position", pa.int64())])

PRODUCER_SNAPSHOTS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.string()),
        ("path", pa.string()),
        ("snapshot_offset", pa.int64()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("last_sequence", pa.int32()),
        ("last_offset", pa.int64()),
        ("offset_delta", pa.int32()),
        ("last_timestamp_ms", pa.int64()),
        ("coordinator_epoch", pa.int32()),
        ("current_txn_first_offset", pa.int64()),
    ]
)

ABORTED_TRANSACTIONS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source", pa.string()),
        ("path", pa.string()),
        ("segment_base_offset", pa.int64()),
        ("producer_id", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("last_stable_offset", pa.int64()),
    ]
)

CHECKPOINTS: Final = pa.schema(
    [
        ("source", pa.string()),
        ("path", pa.string()),
        # high_watermark, recovery_point, log_start_offset, cleaner_offset, leader_epoch
        ("name", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("value", pa.int64()),
        # Of a leader epoch: its first offset.
        ("start_offset", pa.int64()),
    ]
)

TABLES: Final[Mapping[str, Any]] = {
    "record_batches": RECORD_BATCHES,
    "transaction_log": TRANSACTION_LOG,
    "committed_offsets": COMMITTED_OFFSETS,
    "segments": SEGMENTS,
    "producer_snapshots": PRODUCER_SNAPSHOTS,
    "aborted_transactions": ABORTED_TRANSACTIONS,
    "checkpoints": CHECKPOINTS,
}

#: Rows per Arrow batch handed to Spark: enough to amortise the hand-over, little enough to keep a task small.
ROWS_PER_BATCH: Final = 65_536
#: The same of rows that are made record by record, as Python objects.
DECODED_ROWS_PER_BATCH: Final = 8_192
