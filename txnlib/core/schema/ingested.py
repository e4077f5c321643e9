"""The tables that readers fill from the files of a capture.

Kafka's -1 is NULL. Times are `*_ms`, as they stand in the log.
"""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    BINARY,
    BOOLEAN,
    COPY_COLUMNS,
    INT,
    LONG,
    PARTITION_COLUMNS,
    PARTITION_LIST,
    STRING,
    Array,
    Column,
    OfLog,
    Struct,
    Table,
    are_present,
    struct,
)

RECORD_BATCHES: Final = Table(
    comment="The headers of the batches of every copy. A row is one batch, or a run of consecutive batches of one producer.",
    columns=(
        *COPY_COLUMNS,
        Column("segment_base_offset", LONG, "Base offset in the name of its segment. `segments` has the path of the file."),
        Column("position", LONG, "Byte position of the batch in its segment; of a run, of its first batch."),
        Column("size", INT, "Bytes of the batch, including the fields for offset and length; of a run, of all its batches."),
        Column("base_offset", LONG, "Offset of the first record, even if compaction removed it."),
        Column(
            "last_offset",
            LONG,
            "Offset of the last record, even if compaction removed it. Batches of other producers may lie between those of a run.",
        ),
        Column(
            "offset_gap",
            LONG,
            "Number of offsets that are missing between the previous batch in the file and this one, or the first one of a run. "
            "Before the other batches of a run, none are missing.",
        ),
        Column("records_count", INT, "Records in the row; 0 if compaction removed all of them and kept the header."),
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
        Column(
            "max_timestamp_ms",
            LONG,
            "Largest timestamp of the batch; of a run, that of its last batch. For a marker, always from a broker's clock.",
        ),
        Column("delete_horizon_ms", LONG, "Time from which compaction may remove the tombstones or the marker of the batch."),
        Column("compression_type", STRING, "none, gzip, snappy, lz4 or zstd."),
        Column("magic", INT, "Version of the batch format: 2, or 0 or 1 for old message sets."),
        Column("crc", LONG, "Stored CRC-32C; NULL for a run."),
        Column("batches_count", INT, "Batches in the row: 1, or more for a run (`--detail runs`)."),
        Column("last_batch_offset", LONG, "Base offset of the batch, or of the last one of a run."),
        Column("first_timestamp_ms", LONG, "Largest timestamp of the batch; of a run, that of its first batch."),
        Column("batches_hash", LONG, "For a run, a hash of its batches by which copies are compared; NULL for a single batch."),
        Column(
            "packed_batches",
            BINARY,
            "For a run, the numbers by which its batches differ, 22 bytes each (`core.batch_runs`); NULL for a single batch.",
        ),
    ),
    checks={
        "offsets_are_in_order": "base_offset <= last_offset",
        "run_has_its_batches": "batches_count IS NULL OR batches_count = 1 OR packed_batches IS NOT NULL",
    },
    of_log=OfLog(
        rows="TRUE",
        counts="stored.source = copy.source AND stored.night >= copy.batches_since "
        "AND stored.segment_base_offset >= copy.batches_from",
    ),
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

METADATA_LOG: Final = Table(
    comment="The records of __cluster_metadata, from segments and snapshots of every broker and controller.",
    columns=(
        Column("source", STRING, "Copy of the log: raw or text, and the log directory in the capture."),
        Column("path", STRING, "File the record was read from."),
        Column(
            "snapshot_offset", LONG, "For a record of a snapshot, the offset before which it shows the state; NULL for the log."
        ),
        Column("position", LONG, "Byte position of its batch."),
        Column("offset", LONG, "Offset of the record in the log, or in the snapshot."),
        Column("last_offset", LONG, "The same, or the offset of the last of several consecutive NoOpRecords, which are one row."),
        Column("timestamp_ms", LONG, "Time of the record by the controller's clock; of several NoOpRecords, of the last one."),
        Column("controller_epoch", INT, "Leader epoch of the batch, which is the epoch of the controller."),
        Column("type", STRING, "Type of the record, as Kafka's tools print it."),
        Column("version", INT, "Version of the record; NULL for control records."),
        Column("name", STRING, "Name of the topic, feature, setting or controller transaction; of an aborted one, the reason."),
        Column("topic_id", STRING, "Topic id, as Kafka's tools print it."),
        Column("partition_id", INT, "Number of the partition."),
        Column("replicas", Array(INT), "Replicas of the partition; NULL if the record does not change them."),
        Column("isr", Array(INT), "In-sync replicas; NULL if the record does not change them."),
        Column("removing_replicas", Array(INT), "Replicas that are being removed; NULL if the record does not change them."),
        Column("adding_replicas", Array(INT), "Replicas that are being added; NULL if the record does not change them."),
        Column("sets_leader", BOOLEAN, "Whether the record sets the leader, which raises the leader epoch."),
        Column("leader", INT, "Leader that the record sets; NULL if it sets none, or that there is none."),
        Column("leader_epoch", INT, "Leader epoch; NULL in a change, which only raises it."),
        Column("partition_epoch", INT, "Number of changes of the partition; NULL in a change, which only raises it."),
        Column("leader_recovery_state", INT, "1: the leader was elected uncleanly and is recovering; 0: it is not."),
        Column("eligible_leader_replicas", Array(INT), "Eligible leader replicas (KIP-966); NULL if not changed."),
        Column("last_known_elr", Array(INT), "Last known eligible leader replicas; NULL if not changed."),
        Column("broker_id", INT, "Broker that registers, is fenced or gets a block of producer ids."),
        Column("broker_epoch", LONG, "Epoch of that broker."),
        Column("incarnation_id", STRING, "Id of the broker's process."),
        Column("is_fenced", BOOLEAN, "Whether the broker is fenced from here on; NULL if not changed."),
        Column("is_in_controlled_shutdown", BOOLEAN, "Whether the broker is shutting down; NULL if not changed."),
        Column("feature_level", INT, "Level of the feature; 0 if it is not supported."),
        Column("resource_type", STRING, "What a setting applies to, such as TOPIC or BROKER."),
        Column("resource_name", STRING, "Topic or broker of a setting; empty for the default of all brokers."),
        Column("value", STRING, "Value of the setting; NULL if it is removed, [hidden] if it may be secret."),
        Column("next_producer_id", LONG, "Producer id after the block that the broker gets."),
        Column(
            "is_effective",
            BOOLEAN,
            "Whether the state of the cluster follows from the record: it is in the newest complete snapshot or in the unbroken "
            "log around it, its controller transaction was not aborted, and of several copies it is the one that counts.",
        ),
    ),
    checks={"offsets_are_in_order": "offset <= last_offset", "record_has_a_type": are_present("type")},
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
LANDMARK: Final = struct(position=LONG, size=INT, base_offset=LONG, crc=LONG, leader_epoch=INT)

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
        # Preallocated (ZEROS), a text of first lines only (EMPTY_OR_CUT), inside a batch (TORN), or nothing believable follows
        # (CORRUPT).
        Column("tail", STRING, "How the segment ends: CLEAN, ZEROS, EMPTY_OR_CUT, TORN or CORRUPT."),
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
    ),
)

#: Rows of `segments` for one part of a file. `tail` and `is_decoded` are NULL if the segment continues after the part.
SEGMENT_PARTS: Final = Struct((*SEGMENTS.columns, Column("part_position", LONG)))

PRODUCER_SNAPSHOTS: Final = Table(
    comment="The producers in the producer state snapshots of brokers, and those with something open in the answers of leaders.",
    columns=(
        *COPY_COLUMNS,
        Column("path", STRING, "Snapshot file, or file of answers."),
        Column(
            "snapshot_offset",
            LONG,
            "The snapshot contains the state before this offset; an answer, the state at or above this high watermark.",
        ),
        Column("is_answer", BOOLEAN, "True if a leader answered it when the capture was taken; NULL for snapshots."),
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

LIVE_PRODUCERS: Final = Table(
    comment="What leaders answered about the producers of their partitions when the capture was taken.",
    columns=(
        *PARTITION_COLUMNS,
        Column("high_watermark", LONG, "High watermark that the leader answered before."),
        Column("producer_id", LONG, "Producer id; NULL in the row that only records that the leader answered."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("current_transaction_start_offset", LONG, "First offset of the open transaction; NULL if none is open."),
    ),
)

LIVE_TRANSACTIONS: Final = Table(
    comment="What coordinators answered about their transactional ids when the capture was taken.",
    columns=(
        Column("transactional_id", STRING, "Transactional id."),
        Column("coordinator_partition", INT, "Partition of __transaction_state of the coordinator."),
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("state", STRING, "State of the id."),
        Column("log_end_offset", LONG, "End offset of that partition that the coordinator answered before."),
    ),
)

CHECKPOINTS: Final = Table(
    comment="What the checkpoint files of each log directory contain.",
    columns=(
        Column("source", STRING, "Log directory of the checkpoint file."),
        Column("path", STRING, "Checkpoint file."),
        Column("name", STRING, "high_watermark, recovery_point, log_start_offset, cleaner_offset, leader_epoch or topic_id."),
        *PARTITION_COLUMNS,
        Column("value", LONG, "Offset, or leader epoch."),
        Column("start_offset", LONG, "First offset of the leader epoch; NULL for other checkpoints."),
        Column("topic_id", STRING, "Topic id in partition.metadata; NULL for other checkpoints."),
    ),
)
