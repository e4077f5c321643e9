"""The schemas of the tables: one StructType each, in which every column has a comment.

A table, its Delta table and the function that makes it have the same name; in capitals, that name is a schema here. `delta.store`
adds `cluster` and `run_id` to every table. Raw Kafka times are `*_ms` columns; report tables have timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TOPIC_PARTITION: Final = ("topic", "partition")
COPY: Final = (*TOPIC_PARTITION, "source")
PRODUCER: Final = (*TOPIC_PARTITION, "producer_id")
#: What identifies an open transaction on a partition.
OPEN_TRANSACTION: Final = (*PRODUCER, "start_offset")

_STRING, _INT, _LONG, _BOOL, _TIME = StringType(), IntegerType(), LongType(), BooleanType(), TimestampType()


def column(name: str, data_type: DataType, comment: str) -> StructField:
    return StructField(name, data_type, nullable=True, metadata={"comment": comment})


_TP_STRUCT: Final = StructType([StructField("topic", _STRING), StructField("partition", _INT)])
_TP_LIST: Final = ArrayType(_TP_STRUCT)

_WHERE: Final = [
    column("topic", _STRING, "Topic of the partition."),
    column("partition", _INT, "Number of the partition."),
]
_COPY: Final = [
    *_WHERE,
    column("source", _STRING, "Copy of the partition: raw or text, and the log directory in the capture."),
]
_AS_OF: Final = column("as_of", _TIME, "Instant of the audit: ages and verdicts are as of then.")

RECORD_BATCHES: Final = StructType(
    [
        *_COPY,
        column("segment_base_offset", _LONG, "Base offset in the name of its segment. `segments` has the path of the file."),
        column("position", _LONG, "Byte position of the batch in its segment."),
        column("size", _INT, "Bytes of the batch, including the fields for offset and length."),
        column("base_offset", _LONG, "Offset of the first record, even if compaction removed it."),
        column("last_offset", _LONG, "Offset of the last record, even if compaction removed it."),
        column("offset_gap", _LONG, "Number of offsets missing between the previous batch of the file and this one."),
        column("records_count", _INT, "Records in the batch; 0 if compaction removed all of them and kept the header."),
        column("producer_id", _LONG, "Producer id; NULL for batches without one."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("base_sequence", _INT, "Sequence of the first record; NULL for markers and transactional offset commits."),
        column("last_sequence", _INT, "Sequence of the last record, wrapping from 2147483647 to 0."),
        column("partition_leader_epoch", _INT, "Leader epoch in which the batch was appended."),
        column("is_transactional", _BOOL, "Whether the batch belongs to a transaction."),
        column("is_control", _BOOL, "Whether the batch is a control batch, such as a marker."),
        column("control_type", _STRING, "COMMIT or ABORT for a marker; NULL for data, other control batches and shallow dumps."),
        column("coordinator_epoch", _INT, "Epoch of the coordinator that wrote the marker."),
        column("timestamp_type", _STRING, "CREATE_TIME (the client's clock) or LOG_APPEND_TIME (the broker's)."),
        column("max_timestamp_ms", _LONG, "Largest timestamp of the batch. That of a marker is always by a broker's clock."),
        column("delete_horizon_ms", _LONG, "Time from which compaction may remove the tombstones or the marker of the batch."),
        column("compression_type", _STRING, "none, gzip, snappy, lz4 or zstd."),
        column("magic", _INT, "Version of the batch format: 2, or 0 or 1 for old message sets."),
        column("crc", _LONG, "Stored CRC-32C."),
    ]
)

TRANSACTION_LOG: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File the record was read from."),
        column("position", _LONG, "Byte position of its batch."),
        column(
            "offset", _LONG, "Offset of the record. Negative if a console consumer printed it; such an offset only gives the order."
        ),
        column("timestamp_ms", _LONG, "Append time by the coordinator's clock."),
        column("coordinator_epoch", _INT, "Leader epoch of the batch, which is the coordinator epoch."),
        column("transactional_id", _STRING, "Transactional id in the key."),
        column("is_tombstone", _BOOL, "Whether the value is null, because the id expired."),
        column(
            "value_version",
            _INT,
            "Version of the value: 0, or 1 with tagged fields; NULL if text does not show it.",
        ),
        column("producer_id", _LONG, "Producer id of the transaction."),
        column("previous_producer_id", _LONG, "Tag 0: producer id before this transition (since Kafka 4.3)."),
        column("next_producer_id", _LONG, "Tag 1: producer id after an epoch overflow."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("next_producer_epoch", _INT, "Tag 3: epoch of the client while a prepared transaction is kept (KIP-939)."),
        column("last_producer_epoch", _INT, "Tag 4: epoch before the last bump."),
        column("transaction_timeout_ms", _INT, "Timeout that the client requested; 2147483647 for two-phase commit."),
        column("state", _STRING, "Kafka's name of the state."),
        column("partitions", _TP_LIST, "Partitions of the transaction; NULL in Empty, [] in Complete."),
        column("last_update_ms", _LONG, "Time of the transition, by the coordinator's clock."),
        column("start_ms", _LONG, "Time of the first Ongoing record of the transaction, by the coordinator's clock."),
        column(
            "client_transaction_version",
            _INT,
            "Tag 2: transaction version of the client, or of the cluster if it aborted the transaction.",
        ),
        column("unknown_tags", ArrayType(_INT), "Numbers of tagged fields that this version does not know."),
    ]
)

COMMITTED_OFFSETS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File the record was read from."),
        column("position", _LONG, "Byte position of its batch."),
        column("offset", _LONG, "Offset of the record in its partition of __consumer_offsets."),
        column("producer_id", _LONG, "Producer whose transaction contains the commit; NULL if the commit is not transactional."),
        column("group_id", _STRING, "Consumer group that committed."),
        column("committed_topic", _STRING, "Topic of the committed offset."),
        column("committed_partition", _INT, "Partition of the committed offset."),
        column("is_tombstone", _BOOL, "Whether the value is null, because the commit expired or was deleted."),
        column("committed_offset", _LONG, "Offset that the group would read next."),
        column("commit_timestamp_ms", _LONG, "Time of the commit, by the group coordinator's clock."),
    ]
)

TRUNCATED: Final = ArrayType(StructType([StructField("leader_epoch", _INT), StructField("from_offset", _LONG)]))
COVERAGE: Final = StructType(
    [
        *_COPY,
        column("broker", _STRING, "Broker from which the copy was taken, by the name of its folder."),
        column(
            "is_judged",
            _BOOL,
            "Whether verdicts are based on this copy: the leader's copy, else the longest of those with the newest leader epoch.",
        ),
        column("leader", _STRING, "Broker that leads the partition, from capture.json; NULL if that names none."),
        column("is_leader", _BOOL, "Whether the copy is the leader's, according to capture.json."),
        column("leader_epoch", _INT, "Newest leader epoch in the batches and the leader-epoch-checkpoint of the copy."),
        column(
            "role",
            _STRING,
            "LEADER; LAST_LEADER (no broker leads the partition, and this copy would be elected); FURTHEST (the leader, or the "
            "broker of the copy, is unknown, and no other copy reaches further); or OTHER.",
        ),
        column(
            "is_current",
            _BOOL,
            "Whether the copy shows everything up to the instant at which it was taken; else up to its newest broker timestamp.",
        ),
        column(
            "truncated",
            TRUNCATED,
            "Leader epochs whose batches, from an offset on, were truncated by a newer leader and are not history; NULL if none.",
        ),
        column("first_offset", _LONG, "Offset of the first batch that was read."),
        column("end_offset", _LONG, "Offset after the last batch that was read."),
        column("survives_until", _LONG, "Offset after the last batch that was not truncated by a newer leader."),
        column("log_start_offset", _LONG, "Log start offset from the checkpoint, else the base offset of the first segment."),
        column(
            "read_from_offset",
            _LONG,
            "Base offset of the first segment read. If above the log start, a snapshot replaces what is before it.",
        ),
        column("high_watermark", _LONG, "High watermark from the checkpoint; NULL if none was captured."),
        column(
            "noted_high_watermark",
            _LONG,
            "Highest high watermark of the partition in the checkpoints of any broker that were not captured after the copy.",
        ),
        column(
            "ends",
            _STRING,
            "How the copy ends: WHOLE; TORN (inside a batch); or SHORT (below that high watermark, or in unreadable bytes).",
        ),
        column("checkpointed_at", _TIME, "When the checkpoint was copied, from capture.json."),
        column("captured_at", _TIME, "When the copy was taken, from capture.json."),
        column(
            "known_until",
            _TIME,
            "Instant up to which the copy shows everything; assumed from its own records if necessary.",
        ),
        column("is_instant_assumed", _BOOL, "Whether known_until comes from the newest broker-stamped record."),
        column("bytes", _LONG, "Bytes of the segments."),
        column("batches", _LONG, "Batches that were read."),
        column("unreadable_bytes", _LONG, "Bytes that could not be read; see quarantine."),
        column("gap_offset", _LONG, "Highest offset that does not follow the previous one."),
        column("damaged_offset", _LONG, "Highest offset below which something was unreadable."),
        column("tail", _STRING, "How the newest segment ends: CLEAN, ZEROS, TORN or CORRUPT."),
        column("is_decoded", _BOOL, "Whether the copy shows markers and coordinator records: printed (text) or decoded (raw)."),
        column("status", _STRING, "COMPLETE, PARTIAL, DAMAGED or MISSING."),
        column("detail", _STRING, "What is missing, in words."),
        column(
            "is_gone",
            _BOOL,
            "For a MISSING partition: whether its topic no longer exists, as proven by the brokers' checkpoints together with "
            "capture.json; NULL if nothing is proven.",
        ),
    ]
)

QUARANTINE: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File that contains the bytes."),
        column("position", _LONG, "Position of the first unreadable byte."),
        column("length", _LONG, "Number of unreadable bytes."),
        column("reason", _STRING, "Why the bytes could not be read."),
        column("sample", _STRING, "The first bytes, as hex or text."),
        column("next_offset", _LONG, "Offset of the first batch read after these bytes; NULL if none followed."),
    ]
)

CHECKED_BATCHES: Final = StructType(
    [
        *_COPY,
        column("producer_id", _LONG, "Producer of the batch."),
        column(
            "start_offset", _LONG, "First offset of the open transaction whose verdict depends on the batch; NULL for an odd batch."
        ),
        column(
            "place",
            _STRING,
            "before (the last data batch of its producer before the transaction), first, last (of the transaction) or odd (the "
            "batch, or the batch after it, does not fit what its producer wrote before).",
        ),
        column("base_offset", _LONG, "Offset of the first record of the batch."),
        column("last_offset", _LONG, "Offset of the last record of the batch."),
        column("path", _STRING, "File that contains the batch."),
        column("position", _LONG, "Byte position in that file."),
        column("size", _INT, "Bytes of the batch."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("base_sequence", _INT, "Sequence of its first record."),
        column("last_sequence", _INT, "Sequence of its last record."),
        column("is_crc_valid", _BOOL, "Whether the CRC matches; NULL if it could not be checked (text, or a file that is gone)."),
    ]
)

SEGMENTS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File of the segment, or of the dump that prints it."),
        column("kind", _STRING, "raw, text, or the kind of a file that is not a segment."),
        column("segment_base_offset", _LONG, "Base offset in the name of the segment."),
        column("first_offset", _LONG, "Offset of the first batch."),
        column("end_offset", _LONG, "Offset after the last batch."),
        column("last_gap_offset", _LONG, "Highest offset in the segment that does not follow the previous one."),
        column("bytes", _LONG, "Bytes of the segment."),
        column("batches", _LONG, "Batches read."),
        column("tail", _STRING, "How the segment ends: CLEAN, ZEROS, TORN or CORRUPT."),
        column("is_decoded", _BOOL, "Whether the relevant records were printed or decoded."),
        column("newest_broker_ms", _LONG, "Newest broker-stamped time in the segment."),
        column(
            "unreadable",
            ArrayType(
                StructType(
                    [
                        StructField("position", _LONG),
                        StructField("length", _LONG),
                        StructField("reason", _STRING),
                        StructField("sample", _STRING),
                        StructField("next_offset", _LONG),
                    ]
                )
            ),
            "Ranges of bytes that could not be read.",
        ),
        column(
            "landmarks",
            ArrayType(
                StructType(
                    [
                        StructField("position", _LONG),
                        StructField("size", _INT),
                        StructField("base_offset", _LONG),
                        StructField("crc", _LONG),
                    ]
                )
            ),
            "For a raw segment: the first batch in each 16 MiB, and the last one. The next audit recognises the segment by them.",
        ),
        column("last_offset_before", _LONG, "Last offset before the last batch; NULL if there is none."),
    ]
)

PRODUCER_SNAPSHOTS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "Snapshot file."),
        column("snapshot_offset", _LONG, "The snapshot contains the state before this offset."),
        column("producer_id", _LONG, "Producer id; NULL in the row that records that the snapshot was read."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("last_sequence", _INT, "Last sequence of the newest batch of the producer."),
        column("last_offset", _LONG, "Last offset of that batch."),
        column("offset_delta", _INT, "Last offset minus first offset of that batch."),
        column("last_timestamp_ms", _LONG, "Time of the last batch or marker of the producer."),
        column("coordinator_epoch", _INT, "Coordinator epoch of the last marker of the producer."),
        column("current_txn_first_offset", _LONG, "First offset of the open transaction of the producer."),
    ]
)

ABORTED_TRANSACTIONS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "Transaction index file."),
        column("segment_base_offset", _LONG, "Base offset of the segment."),
        column("producer_id", _LONG, "Producer id; NULL in the row that records that the index was read."),
        column("first_offset", _LONG, "First offset of the aborted transaction."),
        column("last_offset", _LONG, "Offset of the ABORT marker."),
        column("last_stable_offset", _LONG, "Last stable offset right after the marker."),
    ]
)

CHECKPOINTS: Final = StructType(
    [
        column("source", _STRING, "Log directory of the checkpoint file."),
        column("path", _STRING, "Checkpoint file."),
        column("name", _STRING, "high_watermark, recovery_point, log_start_offset, cleaner_offset or leader_epoch."),
        *_WHERE,
        column("value", _LONG, "Offset, or leader epoch."),
        column("start_offset", _LONG, "First offset of the leader epoch; NULL for other checkpoints."),
    ]
)

STATE_FIELDS: Final = StructType(
    [
        StructField("producer_epoch", _INT),
        StructField("last_sequence", _INT),
        StructField("last_offset", _LONG),
        StructField("offset_delta", _INT),
        StructField("coordinator_epoch", _INT),
        StructField("current_txn_first_offset", _LONG),
        StructField("last_timestamp", _LONG),
    ]
)
BATCH_FIELDS: Final = StructType(
    [
        StructField("base_offset", _LONG),
        StructField("last_offset", _LONG),
        StructField("producer_epoch", _INT),
        StructField("base_sequence", _INT),
        StructField("max_timestamp_ms", _LONG),
        StructField("is_transactional", _BOOL),
        StructField("is_marker", _BOOL),
        StructField("control_type", _STRING),
        StructField("coordinator_epoch", _INT),
    ]
)

MARKER_FIELDS: Final = StructType(
    [
        StructField("offset", _LONG),
        StructField("type", _STRING),
        StructField("epoch", _INT),
        StructField("coordinator_epoch", _INT),
        StructField("ms", _LONG),
    ]
)

PRODUCER_SPANS: Final = StructType(
    [
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("span", _LONG, "Number of the producer's markers before the span. A span is everything between two markers."),
        column("producer_epoch", _INT, "Producer epoch of the first batch."),
        column("first_offset", _LONG, "First offset of the transaction in the span; NULL if there is none."),
        column("last_offset", _LONG, "Last data offset of the transaction."),
        column("is_start_exact", _BOOL, "Whether the first batch of the transaction is known, from the log or from a snapshot."),
        column("marker_offset", _LONG, "Offset of the marker that ends the span; NULL for an open span."),
        column("marker_type", _STRING, "COMMIT or ABORT."),
        column("marker_epoch", _INT, "Producer epoch of the marker."),
        column("marker_coordinator_epoch", _INT, "Coordinator epoch of the marker."),
        column("marker_ms", _LONG, "Time of the marker, by a broker's clock."),
        column("marker_before", MARKER_FIELDS, "For an open span: the marker before it; NULL if none was seen."),
        column("batches", _LONG, "Batches of the transaction."),
        column("records", _LONG, "Records of the transaction."),
        column("bytes", _LONG, "Bytes of the batches of the transaction."),
        column("first_timestamp_ms", _LONG, "Timestamp of the first batch of the transaction."),
        column("last_timestamp_ms", _LONG, "Timestamp of the newest batch of the transaction."),
        column("is_broker_clock", _BOOL, "Whether these timestamps are by the broker's clock (LogAppendTime)."),
        column("state", STATE_FIELDS, "For the newest span: the producer state of the partition after it."),
        column(
            "suspect",
            StructType([StructField("before", STATE_FIELDS), StructField("batch", BATCH_FIELDS)]),
            "A batch that a native predicate could not clear, with the state before it; the core judges it. The other columns of "
            "the row are empty, unless the batch ends a span.",
        ),
        column(
            "is_newest",
            _BOOL,
            "Whether the span is the newest of its producer. Newest spans are in separate files, because all others no longer "
            "change; NULL in rows of older versions.",
        ),
        column(
            "suspects_count",
            _LONG,
            "For the newest span: number of suspects of the producer in the partition, including those not stored.",
        ),
    ]
)

PRODUCER_STATES: Final = StructType(
    [
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Producer epoch of the last batch or marker."),
        column("coordinator_epoch", _INT, "Coordinator epoch of the last marker; NULL if none reached the partition."),
        column("last_sequence", _INT, "Last sequence; NULL if the epoch has no data."),
        column(
            "last_timestamp",
            _TIME,
            "Time of the last batch (by the client's clock in CreateTime topics) or marker.",
        ),
        column("last_timestamp_ms", _LONG, "The same as it stands in the log, even one that no clock shows (NULL there)."),
        column("current_transaction_start_offset", _LONG, "First offset of the open transaction; NULL if none is open."),
    ]
)

PARTITION_TRANSACTIONS: Final = StructType(
    [
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Producer epoch of the first batch."),
        column("first_offset", _LONG, "Offset of the first record."),
        column("last_offset", _LONG, "Offset of the last record."),
        column("marker_offset", _LONG, "Offset of the marker; NULL while open."),
        column("outcome", _STRING, "COMMIT, ABORT or OPEN; NULL if a dump does not show the type of the marker."),
        column("marker_epoch", _INT, "Producer epoch of the marker; one higher than that of the data in transactions v2."),
        column("coordinator_epoch", _INT, "Coordinator epoch of the marker."),
        column("completed", _TIME, "Time of the marker, by a broker's clock."),
        column("batches", _LONG, "Number of data batches."),
        column("records", _LONG, "Number of data records."),
        column("bytes", _LONG, "Bytes of the data batches."),
        column("first_timestamp", _TIME, "Timestamp of the first batch."),
        column("last_timestamp", _TIME, "Timestamp of the newest batch."),
    ]
)

_ID: Final = [
    column("transactional_id", _STRING, "Transactional id."),
    column("coordinator_partition", _INT, "Partition of __transaction_state with the records of the id."),
]

COORDINATOR_STATES: Final = StructType(
    [
        *_ID,
        column("offset", _LONG, "Offset of the record."),
        column("timestamp_ms", _LONG, "Append time by the coordinator's clock."),
        column("coordinator_epoch", _INT, "Leader epoch of the record's batch."),
        column("is_tombstone", _BOOL, "Whether the id expired with this record."),
        column("state_before", _STRING, "State in the previous record of the id; NULL if there is none, or a tombstone."),
        column("state", _STRING, "State in this record; NULL for a tombstone."),
        column("transition", _STRING, "The step in words."),
        column("is_consecutive", _BOOL, "Whether no record can be missing between these two records."),
        column("legality", _STRING, "LEGAL, RETRY, TRANSACTIONS_V2, ILLEGAL, or UNKNOWN if records may be missing."),
        column(
            "transaction_number",
            _LONG,
            "Number of the transaction among those of the id; NULL for records outside of a transaction.",
        ),
        column("value_version", _INT, "Version of the value; NULL if text does not show it."),
        column("producer_id", _LONG, "Producer id."),
        column("previous_producer_id", _LONG, "Producer id before this transition, if the record contains it."),
        column("next_producer_id", _LONG, "Producer id after an epoch overflow, if the record contains it."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("transaction_timeout_ms", _INT, "Timeout of the id."),
        column("partitions", _TP_LIST, "Partitions of the transaction."),
        column("last_update_ms", _LONG, "Time of the transition, by the coordinator's clock."),
        column("start_ms", _LONG, "Start of the transaction; NULL if neither recorded nor derivable."),
        column("client_transaction_version", _INT, "Transaction version, if the record contains it."),
        column("is_superseded", _BOOL, "Whether the current copy of the log extends beyond the record but no longer contains it."),
        column(
            "hole_ms",
            _LONG,
            "Time of the newest record, up to this one, that follows a hole. Records missing in the hole are older.",
        ),
        column("findings", ArrayType(_STRING), "Names of the findings about the record."),
    ]
)

TRANSACTIONAL_IDS: Final = StructType(
    [
        *_ID,
        column("producer_id", _LONG, "Producer id in the last value."),
        column("producer_epoch", _INT, "Producer epoch in the last value."),
        column("state", _STRING, "Kafka's name of the state; NULL after a tombstone."),
        column("transaction_timeout_ms", _INT, "Timeout; 2147483647 for two-phase commit."),
        column("transaction_start", _TIME, "Start of the last transaction; NULL in Empty."),
        column("partitions", _TP_LIST, "Partitions of the transaction that do not have the marker of its decision yet."),
        column("last_update", _TIME, "Time of the last transition, by the coordinator's clock."),
        column("record_offset", _LONG, "Offset of the last record."),
        column("record_timestamp", _TIME, "Append time of the last record."),
        column("coordinator_epoch", _INT, "Coordinator epoch of the last record."),
        column("is_two_phase_commit", _BOOL, "Whether transactions of the id never time out (KIP-939)."),
        column("application", _STRING, "Application of the id, derived from its form."),
    ]
)

MARKERS: Final = ArrayType(
    StructType(
        [
            StructField("topic", _STRING),
            StructField("partition", _INT),
            StructField("marker_offset", _LONG),
            StructField("marker_type", _STRING),
            StructField("marker_epoch", _INT),
            StructField("marker_coordinator_epoch", _INT),
            StructField("marker_ms", _LONG),
            StructField("first_offset", _LONG),
            StructField("first_timestamp_ms", _LONG),
            StructField("is_broker_clock", _BOOL),
            StructField("is_followed", _BOOL),
            StructField("clock_offset_ms", _LONG),
            StructField("clocks_differ_ms", _LONG),
        ]
    )
)

TRANSACTIONS: Final = StructType(
    [
        *_ID,
        column("transaction_number", _LONG, "Number of the transaction among those of the id, in the surviving records."),
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Producer epoch at the beginning."),
        column("state", _STRING, "State in the last record."),
        column("start", _TIME, "When the transaction began."),
        column("prepared", _TIME, "When the transaction was decided: append time of the Prepare record."),
        column("completed", _TIME, "When all markers were acknowledged: append time of the Complete record."),
        column("partitions", _TP_LIST, "Partitions of the transaction."),
        column("outcome", _STRING, "COMMIT, ABORT or OPEN."),
        column(
            "ended_by", _STRING, "CLIENT, TIMEOUT, NEW_PRODUCER (or an administrator), COORDINATOR (one of these two) or UNKNOWN."
        ),
        column("time_to_decide_ms", _LONG, "Time from the beginning to the decision."),
        column("time_to_write_markers_ms", _LONG, "Time from the decision to the Complete record, which follows the last marker."),
        column("decided_epoch", _INT, "Producer epoch of the Prepare record and of the markers."),
        column("decided_coordinator_epoch", _INT, "Leader epoch of the batch of the Prepare record."),
        column(
            "markers",
            MARKERS,
            "The partitions, each with the marker that carries the decision (NULL if none was found), the first offset that it "
            "ended and its time, whether any marker of the producer follows the decision, the estimated difference between the "
            "clocks of the partition's leader and of the coordinator, and how far the two may still differ.",
        ),
        column("transaction_timeout_ms", _INT, "Timeout that the client requested."),
        column("is_two_phase_commit", _BOOL, "Whether the transaction never times out (KIP-939)."),
        column("transaction_version", _INT, "Transaction version, if a record contains it."),
        column("first_record_offset", _LONG, "Offset of the first surviving record of the transaction."),
        column("last_record_offset", _LONG, "Offset of the last record of the transaction."),
    ]
)

PRODUCER_ID_OWNERS: Final = StructType(
    [
        column("producer_id", _LONG, "Producer id."),
        *_ID,
        column("known_from", _STRING, "Field that names the producer id: producer_id, previous_producer_id or next_producer_id."),
        column(
            "owner",
            _STRING,
            "CURRENT, NEXT (not in use yet), ROTATED (the transactional id has another one now) or EXPIRED (by a tombstone).",
        ),
        column(
            "given_up",
            _STRING,
            "Why the producer id is no longer in use: EPOCHS_EXHAUSTED, EXPIRED or UNKNOWN; NULL for the current one.",
        ),
        column("first_record_offset", _LONG, "Offset of the first surviving record that names the producer id."),
        column("last_record_offset", _LONG, "Offset of the last record that names the producer id."),
        column("first_seen", _TIME, "Append time of the first of these records."),
        column("last_seen", _TIME, "Append time of the last of these records."),
    ]
)

CHECK: Final = StructType([StructField("condition", _STRING), StructField("holds", _BOOL), StructField("says", _STRING)])
CAUSE: Final = StructType([StructField("cause", _STRING), StructField("likelihood", _STRING), StructField("evidence", _STRING)])
EVIDENCE_RECORD: Final = StructType(
    [
        StructField("topic", _STRING),
        StructField("partition", _INT),
        StructField("offset", _LONG),
        StructField("record", _STRING),
        StructField("says", _STRING),
    ]
)

OPEN_TRANSACTIONS: Final = StructType(
    [
        _AS_OF,
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Producer epoch known to the partition."),
        column(
            "coordinator_epoch", _INT, "Coordinator epoch of the producer's last marker on the partition; NULL if there is none."
        ),
        column("start_offset", _LONG, "First offset of the open transaction."),
        column(
            "last_timestamp",
            _TIME,
            "Time of the producer's last write, by the client's clock in CreateTime topics.",
        ),
        column("last_timestamp_ms", _LONG, "The same as it stands in the log, even one that no clock shows (NULL there)."),
        column("duration_minutes", _LONG, "Whole minutes since last_timestamp, as find-hanging prints it."),
        column("transactional_id", _STRING, "Transactional id that has or had the producer id."),
        column("coordinator_partition", _INT, "Partition of __transaction_state with the records of the id."),
        column("coordinator_state", _STRING, "State of the id; NULL if unknown or expired."),
        column("transaction_start", _TIME, "Start of the transaction, according to its coordinator."),
        column("transaction_timeout_ms", _LONG, "Timeout of the id."),
        column("is_two_phase_commit", _BOOL, "Whether the id uses two-phase commit."),
        column("verdict", _STRING, "HANGING, SUSPECT, STUCK, LATE, OPEN or UNKNOWN."),
        column("reason", _STRING, "Name of the reason."),
        column("explanation", _STRING, "The reason as one sentence."),
        column("kafka_find_hanging", _BOOL, "Whether the live find-hanging would print the transaction; NULL if undecidable."),
        column("causes", ArrayType(CAUSE), "Probable causes, most likely first."),
        column("evidence", ArrayType(EVIDENCE_RECORD), "Records that support the verdict."),
        column("late_by", _STRING, "Which limit was exceeded: LAST_WRITE, COORDINATOR_START or BOTH; NULL unless LATE."),
        column("age_basis", _STRING, "Clock of last_timestamp: BROKER_CLOCK or CLIENT_CLOCK."),
        column("broker_clock_age_ms", _LONG, "Age proven by brokers' clocks; NULL if none is proven."),
        column("safe_to_abort", _BOOL, "Whether the abort command may be run."),
        column("abort_command", _STRING, "The exact command; NULL if a marker by hand would be wrong."),
        column("do_not_abort_because", _STRING, "Why not to abort, or not yet."),
        column("blocked_offsets", _LONG, "Offsets from the start of the transaction to the high watermark."),
        column("blocked_bytes", _LONG, "Bytes of the batches from the start of the transaction on."),
        column("blocks_since", _TIME, "Since when the transaction blocks consumers, by the best available clock."),
        column("first_seen", _TIME, "as_of of the first audit that saw the transaction."),
        column("runs_seen", _INT, "Number of audits that saw the transaction, including this one."),
        column("application", _STRING, "Application of the transactional id, derived from its form."),
        column("safe_from", _TIME, "When an abort becomes safe, if only the age is not proven yet; NULL otherwise."),
        column("safety", ArrayType(CHECK), "The conditions of a safe abort, each with whether it is met, or why not."),
        column("records", _LONG, "Records of the open transaction, which an abort discards; NULL if they were not counted."),
        column("committed_siblings", ArrayType(_STRING), "Other partitions on which the producer has committed since, at most 20."),
    ]
)
HANGING_TRANSACTIONS: Final = OPEN_TRANSACTIONS
LATE_TRANSACTIONS: Final = OPEN_TRANSACTIONS

STEPS: Final = ArrayType(StructType([StructField("command", _STRING), StructField("must_print", _STRING)]))

BROKERS: Final = StructType(
    [
        _AS_OF,
        column("broker", _STRING, "Broker, by the name of its folder."),
        column("is_leadership_assumed", _BOOL, "Whether capture.json names no leader of some of its partitions."),
        column("replicas", _LONG, "Number of copies of partitions captured from the broker."),
        column("partitions_led", _LONG, "Number of partitions that the broker leads."),
        column("partitions_with_late_transactions", _LONG, "Kafka's PartitionsWithLateTransactionsCount at as_of."),
        column("coordinators_led", _LONG, "Number of partitions of __transaction_state that the broker leads."),
        column(
            "active_transaction_open_time_max_ms",
            _LONG,
            "KIP-939's active-transaction-open-time-max of the broker's coordinators: age of the oldest Ongoing "
            "transaction; NULL if none.",
        ),
    ]
)

ENDED_TRANSACTIONS: Final = StructType(
    [
        _AS_OF,
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("start_offset", _LONG, "First offset of the transaction."),
        column("transactional_id", _STRING, "Transactional id, if known."),
        column("verdict", _STRING, "Verdict of the last run that saw the transaction open."),
        column("reason", _STRING, "Reason of that verdict."),
        column("run_id_then", _STRING, "Run that reached that verdict."),
        column("last_seen", _TIME, "as_of of that run."),
        column(
            "how",
            _STRING,
            "DECIDED (its coordinator's marker), BY_HAND (a marker without a decision), SPLIT (by hand, against the decision), "
            "MARKED (a marker of unknown origin), LOG_START_MOVED, TOPIC_GONE, GONE, or NOT_CAPTURED, which the next audit "
            "reports again.",
        ),
        column("outcome", _STRING, "COMMIT or ABORT, according to the marker."),
        column("marker_offset", _LONG, "Offset of the marker."),
        column("ended_at", _TIME, "Time of the marker."),
        column("says", _STRING, "How the transaction ended, as a sentence."),
    ]
)

ABORT_PLAN: Final = StructType(
    [
        _AS_OF,
        column("number", _INT, "Order of the actions, starting with 1."),
        column(
            "action",
            _STRING,
            "ABORT, ABORT_LATER (not safe yet), ABORT_AS_DECIDED (the coordinator's ABORT is refused), "
            "END_AT_COORDINATOR, REVIVE_COORDINATOR, DO_NOT_ABORT (a marker by hand would be wrong), CHECK_TIMESTAMPS, WAIT or "
            "CAPTURE_MORE.",
        ),
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("start_offset", _LONG, "First offset of the open transaction."),
        column("transactional_id", _STRING, "Transactional id, if known."),
        column("coordinator_partition", _INT, "Partition of __transaction_state with the records of the id."),
        column("verdict", _STRING, "Verdict on the transaction."),
        column("reason", _STRING, "Reason of the verdict."),
        column("do_not_abort_because", _STRING, "Why no marker may be written by hand, or not yet."),
        column("before", STEPS, "Commands to run first, and what they must print."),
        column("command", _STRING, "The command that ends the transaction; NULL if none should be run."),
        column(
            "command_for_old_brokers", _STRING, "The same command for brokers before 3.0, if the version of the brokers is unknown."
        ),
        column("after", STEPS, "Commands that show whether the command took effect."),
        column(
            "notes",
            ArrayType(_STRING),
            "What to know before: what the command discards, which permissions it needs, and the order of steps.",
        ),
        column(
            "is_holder", _BOOL, "Whether the transaction blocks the last stable offset; if not, another transaction blocks first."
        ),
        column(
            "places", ArrayType(_STRING), "Every partition on which the step ends the transaction, with its start offset there."
        ),
        column("blocked_offsets", _LONG, "Offsets from the start of the transaction to the high watermark."),
        column("blocks_since", _TIME, "Since when the transaction blocks consumers."),
    ]
)

PARTITIONS: Final = StructType(
    [
        _AS_OF,
        *_WHERE,
        column("end_offset", _LONG, "Offset after the last batch."),
        column("log_start_offset", _LONG, "Lowest offset that can be read."),
        column("high_watermark", _LONG, "High watermark from the checkpoint, else the end offset."),
        column(
            "is_high_watermark_assumed", _BOOL, "Whether the high watermark is the end offset, because no checkpoint was captured."
        ),
        column("last_stable_offset", _LONG, "Last stable offset: read_committed consumers stop here."),
        column("lag_offsets", _LONG, "High watermark minus last stable offset."),
        column("lag_bytes", _LONG, "Bytes of the batches from the last stable offset on."),
        column("lag_ms", _LONG, "as_of minus the timestamp of the batch at the last stable offset."),
        column("blocking_producer_id", _LONG, "Producer whose open transaction blocks the last stable offset."),
        column("blocking_transactional_id", _STRING, "Transactional id of that transaction."),
        column("blocking_verdict", _STRING, "Verdict on that transaction."),
        column(
            "next_blocking_offset",
            _LONG,
            "Start of the open transaction that blocks next, once that one has ended; NULL if none does.",
        ),
        column("next_blocking_producer_id", _LONG, "Producer of that transaction."),
        column("next_blocking_transactional_id", _STRING, "Transactional id of that transaction, if known."),
        column("is_late", _BOOL, "Whether brokers count the partition in PartitionsWithLateTransactionsCount."),
    ]
)

BLOCKED_GROUPS: Final = StructType(
    [
        _AS_OF,
        column("group_id", _STRING, "Consumer group that has read everything up to the last stable offset and waits."),
        *_WHERE,
        column("committed_offset", _LONG, "Offset that the group would read next, from its last effective commit."),
        column("last_stable_offset", _LONG, "Last stable offset: read_committed consumers stop here."),
        column("high_watermark", _LONG, "High watermark of the partition."),
        column("lag_offsets", _LONG, "High watermark minus committed offset."),
        column("committed_at", _TIME, "Time of the commit, by the group coordinator's clock; NULL if not recorded."),
        column("blocking_producer_id", _LONG, "Producer whose open transaction blocks the last stable offset."),
        column("blocking_transactional_id", _STRING, "Transactional id of that transaction."),
    ]
)

FINDINGS: Final = StructType(
    [
        column("name", _STRING, "Name of the finding."),
        column("severity", _STRING, "INFO, WARNING, ERROR or CRITICAL."),
        *_WHERE,
        column("offset", _LONG, "Offset of the record that shows the finding."),
        column("producer_id", _LONG, "Producer id."),
        column("transactional_id", _STRING, "Transactional id."),
        column("message", _STRING, "Meaning of the finding."),
        column("evidence", _STRING, "The record and the state before it."),
    ]
)

AUDIT_RUNS: Final = StructType(
    [
        _AS_OF,
        column("started_at", _TIME, "When the run began."),
        column("finished_at", _TIME, "When the run ended; NULL while it is running, or if it died."),
        column(
            "status",
            _STRING,
            "RUNNING; DONE; FAILED; DIED (as found by a later audit); INGESTED and RECONSTRUCTED after these jobs.",
        ),
        column("input", _STRING, "Inputs of the audit."),
        column("settings", _STRING, "Settings as JSON."),
        column("version", _STRING, "Version of txnlib."),
        column("counts", _STRING, "Number of rows of every table, and per verdict, as JSON."),
        column("owner", _STRING, "The process that carried out the run: host, process id, start in epoch seconds."),
    ]
)

TABLES: Final[Mapping[str, StructType]] = {
    "audit_runs": AUDIT_RUNS,
    "segments": SEGMENTS,
    "checkpoints": CHECKPOINTS,
    "coverage": COVERAGE,
    "quarantine": QUARANTINE,
    "record_batches": RECORD_BATCHES,
    "transaction_log": TRANSACTION_LOG,
    "committed_offsets": COMMITTED_OFFSETS,
    "producer_snapshots": PRODUCER_SNAPSHOTS,
    "aborted_transactions": ABORTED_TRANSACTIONS,
    "producer_spans": PRODUCER_SPANS,
    "checked_batches": CHECKED_BATCHES,
    "coordinator_states": COORDINATOR_STATES,
    "transactional_ids": TRANSACTIONAL_IDS,
    "transactions": TRANSACTIONS,
    "producer_states": PRODUCER_STATES,
    "partition_transactions": PARTITION_TRANSACTIONS,
    "producer_id_owners": PRODUCER_ID_OWNERS,
    "open_transactions": OPEN_TRANSACTIONS,
    "hanging_transactions": HANGING_TRANSACTIONS,
    "abort_plan": ABORT_PLAN,
    "ended_transactions": ENDED_TRANSACTIONS,
    "brokers": BROKERS,
    "late_transactions": LATE_TRANSACTIONS,
    "partitions": PARTITIONS,
    "blocked_groups": BLOCKED_GROUPS,
    "findings": FINDINGS,
}

#: Rows of `segments` for one part of a file; see `readers.arrow_schemas`.
SEGMENT_PARTS: Final = StructType([*SEGMENTS, StructField("part_position", _LONG)])

#: Rows that the reader yields and that are not stored as a table.
READ_ONLY: Final[Mapping[str, StructType]] = {"console_log": TRANSACTION_LOG}


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame with exactly the columns, order, types and comments of the schema.

    Raises ValueError if a column is missing: `DataFrame.to` alone would fill it with nulls.
    """
    missing = [field.name for field in schema if field.name not in frame.columns]
    if missing:
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    return frame.to(schema)
