"""The tables that readers fill from the files of a capture.

Kafka's -1 is NULL. Times are `*_ms`, as they stand in the log.
"""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    BOOLEAN,
    COPY_COLUMNS,
    INT,
    LONG,
    PARTITION_COLUMNS,
    PARTITION_LIST,
    STRING,
    Array,
    Column,
    Struct,
    Table,
    struct,
)

RECORD_BATCHES: Final = Table(
    comment="The header of every batch of every copy.",
    columns=(
        *COPY_COLUMNS,
        Column("segment_base_offset", LONG, "Base offset in the name of its segment. `segments` has the path of the file."),
        Column("position", LONG, "Byte position of the batch in its segment."),
        Column("size", INT, "Bytes of the batch, including the fields for offset and length."),
        Column("base_offset", LONG, "Offset of the first record, even if compaction removed it."),
        Column("last_offset", LONG, "Offset of the last record, even if compaction removed it."),
        Column("offset_gap", LONG, "Number of offsets that are missing between the previous batch in the file and this one."),
        Column("records_count", INT, "Records in the batch; 0 if compaction removed all of them and kept the header."),
        Column("producer_id", LONG, "Producer id; NULL for batches without one."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("base_sequence", INT, "Sequence of the first record; NULL for markers and transactional offset commits."),
        Column("last_sequence", INT, "Sequence of the last record, wrapping from 2147483647 to 0."),
        Column("partition_leader_epoch", INT, "Leader epoch in which the batch was appended."),
        Column("is_transactional", BOOLEAN, "Whether the batch belongs to a transaction."),
        Column("is_control", BOOLEAN, "Whether the batch is a control batch, such as a marker."),
        Column("control_type", STRING, "COMMIT or ABORT for a marker; NULL for data, other control batches and shallow dumps."),
        Column("coordinator_epoch", INT, "Epoch of the coordinator that wrote the marker."),
        Column("timestamp_type", STRING, "CREATE_TIME (the client's clock) or LOG_APPEND_TIME (the broker's)."),
        Column("max_timestamp_ms", LONG, "Largest timestamp of the batch; for a marker, always from a broker's clock."),
        Column("delete_horizon_ms", LONG, "Time from which compaction may remove the tombstones or the marker of the batch."),
        Column("compression_type", STRING, "none, gzip, snappy, lz4 or zstd."),
        Column("magic", INT, "Version of the batch format: 2, or 0 or 1 for old message sets."),
        Column("crc", LONG, "Stored CRC-32C."),
    ),
    checks={"offsets_are_in_order": "base_offset <= last_offset"},
)

TRANSACTION_LOG: Final = Table(
    comment="The records of __transaction_state.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "File the record was read from."),
        Column("position", LONG, "Byte position of its batch."),
        Column(
            "offset",
            LONG,
            "Offset of the record. Negative if a console consumer printed the record; such offsets only give the order.",
        ),
        Column("timestamp_ms", LONG, "Append time by the coordinator's clock."),
        Column("coordinator_epoch", INT, "Leader epoch of the batch, which is the coordinator epoch."),
        Column("transactional_id", STRING, "Transactional id in the key."),
        Column("is_tombstone", BOOLEAN, "Whether the value is null, because the id expired."),
        Column("value_version", INT, "Version of the value: 0, or 1 with tagged fields; NULL if text does not show it."),
        Column("producer_id", LONG, "Producer id of the transaction."),
        Column("previous_producer_id", LONG, "Tag 0: producer id before this transition (since Kafka 4.3)."),
        Column("next_producer_id", LONG, "Tag 1: producer id after an epoch overflow."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("next_producer_epoch", INT, "Tag 3: epoch of the client while a prepared transaction is kept (KIP-939)."),
        Column("last_producer_epoch", INT, "Tag 4: epoch before the last bump."),
        Column("transaction_timeout_ms", INT, "Timeout that the client requested; 2147483647 for two-phase commit."),
        Column("state", STRING, "Kafka's name of the state."),
        Column("partitions", PARTITION_LIST, "Partitions of the transaction; NULL in Empty, [] in Complete."),
        Column("last_update_ms", LONG, "Time of the transition, by the coordinator's clock."),
        Column("start_ms", LONG, "Time of the first Ongoing record of the transaction, by the coordinator's clock."),
        Column(
            "client_transaction_version",
            INT,
            "Tag 2: transaction version of the client, or of the cluster if it aborted the transaction.",
        ),
        Column("unknown_tags", Array(INT), "Numbers of tagged fields that this version does not know."),
    ),
)

COMMITTED_OFFSETS: Final = Table(
    comment="The commits of consumer groups in __consumer_offsets.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "File the record was read from."),
        Column("position", LONG, "Byte position of its batch."),
        Column("offset", LONG, "Offset of the record in its partition of __consumer_offsets."),
        Column("producer_id", LONG, "Producer whose transaction contains the commit; NULL if the commit is not transactional."),
        Column("group_id", STRING, "Consumer group that committed."),
        Column("committed_topic", STRING, "Topic of the committed offset."),
        Column("committed_partition", INT, "Partition of the committed offset."),
        Column("is_tombstone", BOOLEAN, "Whether the value is null, because the commit expired or was deleted."),
        Column("committed_offset", LONG, "Offset that the group would read next."),
        Column("commit_timestamp_ms", LONG, "Time of the commit, by the group coordinator's clock."),
    ),
)

#: A range of bytes that could not be read, and the base offset of the first batch after it; NULL if there is none.
UNREADABLE: Final = struct(position=LONG, length=LONG, reason=STRING, sample=STRING, next_offset=LONG)
#: A batch by which the next audit recognises the segment (`readers.segment_fingerprint`).
LANDMARK: Final = struct(position=LONG, size=INT, base_offset=LONG, crc=LONG)

SEGMENTS: Final = Table(
    comment="A row for each file of the capture: what was read, and what could not be read.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "File of the segment, or of the dump that shows it."),
        Column("kind", STRING, "raw, text, or the kind of a file that is not a segment."),
        Column("segment_base_offset", LONG, "Base offset in the name of the segment."),
        Column("first_offset", LONG, "Offset of the first batch."),
        Column("end_offset", LONG, "Offset after the last batch."),
        Column("last_gap_offset", LONG, "Highest base offset in the segment that does not directly follow the batch before it."),
        Column("bytes", LONG, "Bytes of the segment."),
        Column("batches", LONG, "Batches read."),
        # Preallocated (ZEROS), inside a batch (TORN), or nothing believable follows (CORRUPT).
        Column("tail", STRING, "How the segment ends: CLEAN, ZEROS, TORN or CORRUPT."),
        Column("is_decoded", BOOLEAN, "Whether the relevant records were printed or decoded."),
        # Of markers, LogAppendTime batches and coordinator records.
        Column("newest_broker_ms", LONG, "Newest broker-stamped time in the segment."),
        Column("unreadable", Array(UNREADABLE), "Ranges of bytes that could not be read."),
        Column(
            "landmarks",
            Array(LANDMARK),
            "Fingerprint of a raw segment, by which the next audit recognises it: the first batch in every 16 MiB, and the last "
            "batch.",
        ),
        Column("last_offset_before", LONG, "Last offset before the last batch; NULL if there is none."),
    ),
)

#: Rows of `segments` for one part of a file. `tail` and `is_decoded` are NULL if the segment continues after the part.
SEGMENT_PARTS: Final = Struct((*SEGMENTS.columns, Column("part_position", LONG)))

PRODUCER_SNAPSHOTS: Final = Table(
    comment="The producers in the producer state snapshots of brokers.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "Snapshot file."),
        Column("snapshot_offset", LONG, "The snapshot contains the state before this offset."),
        Column("producer_id", LONG, "Producer id; NULL in the row that only records that the snapshot was read."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("last_sequence", INT, "Last sequence of the newest batch of the producer."),
        Column("last_offset", LONG, "Last offset of that batch."),
        Column("offset_delta", INT, "Last offset minus first offset of that batch."),
        Column("last_timestamp_ms", LONG, "Time of the last batch or marker of the producer."),
        Column("coordinator_epoch", INT, "Coordinator epoch of the last marker of the producer."),
        Column("current_txn_first_offset", LONG, "First offset of the open transaction of the producer."),
    ),
)

ABORTED_TRANSACTIONS: Final = Table(
    comment="The entries of the transaction indexes of brokers.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "Transaction index file."),
        Column("segment_base_offset", LONG, "Base offset of the segment."),
        Column("producer_id", LONG, "Producer id; NULL in the row that only records that the index was read."),
        Column("first_offset", LONG, "First offset of the aborted transaction."),
        Column("last_offset", LONG, "Offset of the ABORT marker."),
        Column("last_stable_offset", LONG, "Last stable offset right after the marker."),
    ),
)

CHECKPOINTS: Final = Table(
    comment="What the checkpoint files of each log directory contain.",
    columns=(
        Column("source", STRING, "Log directory of the checkpoint file."),
        Column("path", STRING, "Checkpoint file."),
        Column("name", STRING, "high_watermark, recovery_point, log_start_offset, cleaner_offset or leader_epoch."),
        *PARTITION_COLUMNS,
        Column("value", LONG, "Offset, or leader epoch."),
        Column("start_offset", LONG, "First offset of the leader epoch; NULL for other checkpoints."),
    ),
)
