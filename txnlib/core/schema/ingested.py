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
    Table,
    are_present,
    struct,
)

#: The batches of a run: `core.batch_runs.RunBatch`.
RUN_BATCHES: Final = Array(
    struct(offset=INT, offset_delta=INT, sequence=INT, position=LONG, size=INT, timestamp=LONG, crc=LONG)
)

PART: Final = Column(
    "part", LONG, "Number of what one audit read of one file. Runs that list it in `segments` have the row."
)

RECORD_BATCHES: Final = Table(
    comment=(
        "The headers of the batches of every copy. A row is one batch, or a run of consecutive batches of one producer."
    ),
    columns=(
        *COPY_COLUMNS,
        Column("segment_base_offset", LONG, "Base offset in the name of the segment."),
        Column("position", LONG, "Byte position in the segment."),
        Column("size", INT, "Bytes of the batch, or of all batches of a run."),
        Column("base_offset", LONG, "Offset of the first record, even if compaction removed it."),
        Column("last_offset", LONG, "Offset of the last record, even if compaction removed it."),
        Column("offset_gap", LONG, "Number of offsets missing before the (first) batch; within a run, none are."),
        Column("records_count", INT, "Records; 0 if compaction kept only the header."),
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column(
            "base_sequence", INT, "Sequence of the first record; NULL for markers and transactional offset commits."
        ),
        Column("last_sequence", INT, "Sequence of the last record, wrapping from 2147483647 to 0."),
        Column("partition_leader_epoch", INT, "Leader epoch in which it was appended."),
        Column("is_transactional", BOOLEAN, "Whether it belongs to a transaction."),
        Column("is_control", BOOLEAN, "Whether it is a control batch, such as a marker."),
        Column("control_type", STRING, "Of a marker: COMMIT or ABORT; NULL in shallow dumps."),
        Column("coordinator_epoch", INT, "Of a marker: epoch of the coordinator that wrote it."),
        Column("timestamp_type", STRING, "CREATE_TIME (the client's clock) or LOG_APPEND_TIME (the broker's)."),
        Column("max_timestamp_ms", LONG, "Largest timestamp of the last batch; of a marker, a broker's."),
        Column("delete_horizon_ms", LONG, "Time from which compaction may remove its tombstones or marker."),
        Column("compression_type", STRING, "none, gzip, snappy, lz4 or zstd."),
        Column("magic", INT, "Batch format: 2, or 0 or 1 for old message sets."),
        Column("crc", LONG, "Stored CRC-32C; NULL for a run."),
        Column("batches_count", INT, "Number of batches: 1 unless it is a run."),
        Column("last_batch_offset", LONG, "Base offset of the last batch."),
        Column("first_timestamp_ms", LONG, "Largest timestamp of the first batch."),
        Column("batches_hash", LONG, "Of a run: a hash by which copies are compared."),
        Column(
            "run_batches", RUN_BATCHES, "Of a run: its batches, by numbers relative to the first (`core.batch_runs`)."
        ),
        PART,
    ),
    checks={
        "offsets_are_in_order": "base_offset <= last_offset",
        "run_has_its_batches": "batches_count IS NULL OR batches_count = 1 OR run_batches IS NOT NULL",
    },
)

TRANSACTION_LOG: Final = Table(
    comment="The records of __transaction_state.",
    columns=(
        *COPY_COLUMNS,
        Column("segment_base_offset", LONG, "Base offset in the name of the segment."),
        Column("position", LONG, "Byte position of the record's batch."),
        Column("offset", LONG, "Offset of the record; negative, and only an order, in text of a console consumer."),
        Column("timestamp_ms", LONG, "Append time by the coordinator's clock."),
        Column("coordinator_epoch", INT, "Leader epoch of the batch, which is the coordinator epoch."),
        Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
        Column("is_tombstone", BOOLEAN, "Whether the id expired with this record."),
        Column(
            "value_version", INT, "Version of the value: 0, or 1 with tagged fields; NULL if text does not show it."
        ),
        Column("producer_id", LONG, "Producer id."),
        Column("previous_producer_id", LONG, "Tag 0: producer id before this transition (since Kafka 4.3)."),
        Column("next_producer_id", LONG, "Tag 1: producer id after an epoch overflow."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("next_producer_epoch", INT, "Tag 3: the client's epoch while a prepared transaction is kept (KIP-939)."),
        Column("last_producer_epoch", INT, "Tag 4: epoch before the last bump."),
        Column("transaction_timeout_ms", INT, "Timeout that the client requested; 2147483647 for two-phase commit."),
        Column("state", STRING, "State in this record; NULL for a tombstone."),
        Column("partitions", PARTITION_LIST, "Partitions of the transaction; NULL in Empty, [] in Complete."),
        Column("last_update_ms", LONG, "Time of the transition, by the coordinator's clock."),
        Column("start_ms", LONG, "Time of the transaction's first Ongoing record, by the coordinator's clock."),
        Column(
            "client_transaction_version",
            INT,
            "Tag 2: transaction version of the client, or of the cluster if it aborted.",
        ),
        Column("unknown_tags", Array(INT), "Numbers of tagged fields that this version does not know."),
        PART,
    ),
)

METADATA_LOG: Final = Table(
    comment="The records of __cluster_metadata, from segments and snapshots of every broker and controller.",
    columns=(
        Column("source", STRING, "Copy: raw or text, and the log directory in the capture."),
        Column("path", STRING, "File with the record."),
        Column("snapshot_offset", LONG, "Of a snapshot: the offset before which it shows the state."),
        Column("position", LONG, "Byte position of the record's batch."),
        Column("offset", LONG, "Offset of the record in the log or snapshot."),
        Column("last_offset", LONG, "The same; of consecutive NoOpRecords, which are one row, the last."),
        Column("timestamp_ms", LONG, "Time of the (last) record, by the controller's clock."),
        Column("controller_epoch", INT, "Leader epoch of the batch, which is the controller's epoch."),
        Column("type", STRING, "Type of the record."),
        Column("version", INT, "Version of the record; NULL for control records."),
        Column(
            "name", STRING, "Name of the topic, feature, setting or controller transaction, or why that was aborted."
        ),
        Column("topic_id", STRING, "Topic id, as Kafka prints it."),
        Column("partition_id", INT, "Number of the partition."),
        Column("replicas", Array(INT), "Replicas of the partition; NULL if not changed."),
        Column("isr", Array(INT), "In-sync replicas; NULL if not changed."),
        Column("removing_replicas", Array(INT), "Replicas being removed; NULL if not changed."),
        Column("adding_replicas", Array(INT), "Replicas being added; NULL if not changed."),
        Column("sets_leader", BOOLEAN, "Whether the record sets the leader, which raises the leader epoch."),
        Column("leader", INT, "Leader that it sets; NULL if it sets none, or that there is none."),
        Column("leader_epoch", INT, "Leader epoch; NULL in a change, which only raises it."),
        Column("partition_epoch", INT, "Partition epoch; NULL in a change, which only raises it."),
        Column("leader_recovery_state", INT, "1 if the leader was elected uncleanly and is recovering, else 0."),
        Column("eligible_leader_replicas", Array(INT), "Eligible leader replicas (KIP-966); NULL if not changed."),
        Column("last_known_elr", Array(INT), "Last known eligible leader replicas; NULL if not changed."),
        Column("broker_id", INT, "Broker that registers, is fenced or gets producer ids."),
        Column("broker_epoch", LONG, "Epoch of the broker's registration."),
        Column("incarnation_id", STRING, "Id of the broker's process."),
        Column("is_fenced", BOOLEAN, "Whether the broker is fenced from here on; NULL if not changed."),
        Column("is_in_controlled_shutdown", BOOLEAN, "Whether the broker is shutting down; NULL if not changed."),
        Column("feature_level", INT, "Level of the feature; 0 if it is not supported."),
        Column("resource_type", STRING, "What a setting applies to, such as TOPIC or BROKER."),
        Column("resource_name", STRING, "Its topic or broker; empty for the default of all brokers."),
        Column("value", STRING, "Value of the setting; NULL if removed, [hidden] if it may be secret."),
        Column("next_producer_id", LONG, "Producer id after the block that the broker gets."),
        Column(
            "is_effective",
            BOOLEAN,
            "Whether it counts: in the newest complete snapshot or the unbroken log around it, not of an aborted"
            " controller transaction, and not refuted by a better copy.",
        ),
    ),
    checks={"offsets_are_in_order": "offset <= last_offset", "record_has_a_type": are_present("type")},
)

COMMITTED_OFFSETS: Final = Table(
    comment="The commits of consumer groups in __consumer_offsets.",
    columns=(
        *COPY_COLUMNS,
        Column("segment_base_offset", LONG, "Base offset in the name of the segment."),
        Column("position", LONG, "Byte position of the record's batch."),
        Column("offset", LONG, "Offset of the record in its partition of __consumer_offsets."),
        Column("producer_id", LONG, "Producer of the commit's transaction; NULL if there is none."),
        Column("group_id", STRING, "Consumer group that committed."),
        Column("committed_topic", STRING, "Topic of the committed offset."),
        Column("committed_partition", INT, "Partition of the committed offset."),
        Column("is_tombstone", BOOLEAN, "Whether the commit expired or was deleted."),
        Column("committed_offset", LONG, "Offset that the group would read next."),
        Column("commit_timestamp_ms", LONG, "Time of the commit, by the group coordinator's clock."),
        PART,
    ),
)

#: A range of bytes that could not be read, and the base offset of the first batch after it; NULL if there is none.
UNREADABLE: Final = struct(position=LONG, length=LONG, reason=STRING, sample=STRING, next_offset=LONG)
#: A batch by which the next audit recognises the segment (`readers.fingerprints`).
LANDMARK: Final = struct(position=LONG, size=INT, base_offset=LONG, crc=LONG, leader_epoch=INT)

SEGMENTS: Final = Table(
    comment="What was read of each file of the capture, and what could not be.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "File of the segment, or of the dump that shows it."),
        Column("kind", STRING, "raw, text, or the kind of another file."),
        Column("segment_base_offset", LONG, "Base offset in the name of the segment."),
        Column("first_offset", LONG, "Offset of the first batch."),
        Column("end_offset", LONG, "Offset after the last batch."),
        Column("last_gap_offset", LONG, "Highest base offset that does not follow the batch before it."),
        Column("bytes", LONG, "Bytes of the segment."),
        Column("batches", LONG, "Batches read."),
        # Preallocated (ZEROS), a text of first lines only (EMPTY_OR_CUT), inside a batch (TORN), in contents without a
        # known end (UNMEASURED), or nothing believable follows (CORRUPT).
        Column("tail", STRING, "How the segment ends: CLEAN, ZEROS, EMPTY_OR_CUT, TORN, UNMEASURED or CORRUPT."),
        Column("is_decoded", BOOLEAN, "Whether the relevant records were printed or decoded."),
        # Of markers, LogAppendTime batches and coordinator records.
        Column("newest_broker_ms", LONG, "Newest broker-stamped time in the segment."),
        Column("unreadable", Array(UNREADABLE), "Ranges of bytes that could not be read."),
        Column(
            "landmarks",
            Array(LANDMARK),
            "Fingerprint by which the next audit recognises what was read: the first batch, and the last.",
        ),
        Column("version", STRING, "Version of txnlib that read it, if the next audit can use what was read."),
        Column("parts", Array(LONG), "Numbers of the parts of which it consists, up to the end of the last batch."),
    ),
)

PRODUCER_SNAPSHOTS: Final = Table(
    comment="The producers in brokers' snapshots, and those with something open in leaders' answers.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "Snapshot file, or file of answers."),
        Column(
            "snapshot_offset",
            LONG,
            "The state is that before this offset; of an answer, at or above this high watermark.",
        ),
        Column("is_answer", BOOLEAN, "True for a leader's answer; NULL for snapshots."),
        Column("producer_id", LONG, "Producer id; NULL in the row that says that the file was read."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("last_sequence", INT, "Last sequence of the producer's newest batch."),
        Column("last_offset", LONG, "Last offset of the producer's newest batch."),
        Column("offset_delta", INT, "Last minus first offset of the producer's newest batch."),
        Column("last_timestamp_ms", LONG, "Time of its last batch or marker."),
        Column("coordinator_epoch", INT, "Coordinator epoch of the producer's last marker."),
        Column("current_txn_first_offset", LONG, "First offset of its open transaction."),
    ),
)

ABORTED_TRANSACTIONS: Final = Table(
    comment="The entries of the transaction indexes of brokers.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "Transaction index file."),
        Column("segment_base_offset", LONG, "Base offset of the segment."),
        Column("producer_id", LONG, "Producer id; NULL in the row that says that the file was read."),
        Column("first_offset", LONG, "First offset of the aborted transaction."),
        Column("last_offset", LONG, "Offset of the ABORT marker."),
        Column("last_stable_offset", LONG, "Last stable offset right after the marker."),
    ),
)

LIVE_PRODUCERS: Final = Table(
    comment="What leaders answered about their producers during the capture.",
    columns=(
        *PARTITION_COLUMNS,
        Column("high_watermark", LONG, "High watermark that the leader answered before."),
        Column("producer_id", LONG, "Producer id; NULL in the row that says that the leader answered."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("current_transaction_start_offset", LONG, "First offset of the open transaction; NULL if none is open."),
    ),
)

LIVE_TRANSACTIONS: Final = Table(
    comment="What coordinators answered about their transactional ids during the capture.",
    columns=(
        Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
        Column("coordinator_partition", INT, "Partition of __transaction_state of the coordinator."),
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("state", STRING, "State of the id."),
        Column("log_end_offset", LONG, "End offset of that partition, answered before."),
    ),
)

CHECKPOINTS: Final = Table(
    comment="What the checkpoint files of each log directory contain.",
    columns=(
        Column("source", STRING, "Log directory of the checkpoint file."),
        Column("path", STRING, "Checkpoint file."),
        Column(
            "name",
            STRING,
            "high_watermark, recovery_point, log_start_offset, cleaner_offset, leader_epoch or topic_id.",
        ),
        *PARTITION_COLUMNS,
        Column("value", LONG, "Offset, or leader epoch."),
        Column("start_offset", LONG, "First offset of the leader epoch; NULL for other checkpoints."),
        Column("topic_id", STRING, "Topic id in partition.metadata; NULL for other checkpoints."),
    ),
)
