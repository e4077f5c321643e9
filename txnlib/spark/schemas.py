"""The schemas of the tables: one StructType each, in which every column has a comment.

A table's name is its file, its function and its Delta table; in capitals it is a schema here. `cluster` and `run_id`
are added by `delta.store`, which stamps every table with them. Raw Kafka times are `*_ms`; report tables carry timestamps.
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
    column("source", _STRING, "Copy of the partition: raw or text, and the folder of the log directory in the capture."),
]
_AS_OF: Final = column("as_of", _TIME, "Instant at which the audit judges.")

RECORD_BATCHES: Final = StructType(
    [
        *_COPY,
        column("segment_base_offset", _LONG, "Base offset in the name of its segment; `segments` has the path of the file."),
        column("position", _LONG, "Byte position of the batch in its segment."),
        column("size", _INT, "Bytes of the whole batch, offset and length included."),
        column("base_offset", _LONG, "Offset of the first record, also after compaction removed it."),
        column("last_offset", _LONG, "Offset of the last record, also after compaction removed it."),
        column("offset_gap", _LONG, "Offsets missing between the batch before it in the file and this one."),
        column("records_count", _INT, "Records in the batch; 0 for a header that compaction left behind."),
        column("producer_id", _LONG, "Producer id; NULL for batches of producers without one."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("base_sequence", _INT, "Sequence of the first record; NULL for markers and transactional offset commits."),
        column("last_sequence", _INT, "Sequence of the last record, wrapping from 2147483647 to 0."),
        column("partition_leader_epoch", _INT, "Leader epoch in which the batch was appended."),
        column("is_transactional", _BOOL, "Whether the batch belongs to a transaction."),
        column("is_control", _BOOL, "Whether it is a control batch, such as a marker."),
        column("control_type", _STRING, "COMMIT or ABORT of a marker; NULL for data, other control batches, shallow dumps."),
        column("coordinator_epoch", _INT, "Epoch of the coordinator that wrote the marker."),
        column("timestamp_type", _STRING, "CREATE_TIME (the client's clock) or LOG_APPEND_TIME (the broker's)."),
        column("max_timestamp_ms", _LONG, "Largest timestamp of the batch; a marker's is always a broker's clock."),
        column("delete_horizon_ms", _LONG, "When compaction may remove the batch's tombstones and marker."),
        column("compression_type", _STRING, "none, gzip, snappy, lz4 or zstd."),
        column("magic", _INT, "Version of the batch format: 2, or 0 and 1 for old message sets."),
        column("crc", _LONG, "Stored CRC-32C."),
    ]
)

TRANSACTION_LOG: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File the record was read from."),
        column("position", _LONG, "Byte position of its batch."),
        column("offset", _LONG, "Offset of the record; negative where a console consumer printed it, and then an order only."),
        column("timestamp_ms", _LONG, "Append time by the coordinator's clock."),
        column("coordinator_epoch", _INT, "Leader epoch of the batch, which is the coordinator's epoch."),
        column("transactional_id", _STRING, "Transactional id in the key."),
        column("is_tombstone", _BOOL, "Whether the value is null: the id expired."),
        column(
            "value_version",
            _INT,
            "Version of the value: 0, or 1 with tagged fields; NULL where text does not print it.",
        ),
        column("producer_id", _LONG, "Producer id of the transaction."),
        column("previous_producer_id", _LONG, "Tag 0: producer id before this transition (written since 4.3)."),
        column("next_producer_id", _LONG, "Tag 1: producer id after an epoch overflow."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("next_producer_epoch", _INT, "Tag 3: epoch of the client while a prepared transaction is kept (KIP-939)."),
        column("last_producer_epoch", _INT, "Tag 4: epoch before the last bump."),
        column("transaction_timeout_ms", _INT, "Timeout the client asked for; 2147483647 for two-phase commit."),
        column("state", _STRING, "Kafka's name of the state."),
        column("partitions", _TP_LIST, "Partitions of the transaction; NULL in Empty, [] in Complete."),
        column("last_update_ms", _LONG, "Coordinator's time of the transition."),
        column("start_ms", _LONG, "Coordinator's time of the first Ongoing record of the transaction."),
        column("client_transaction_version", _INT, "Tag 2: transaction version of the client, or of an aborting cluster."),
        column("unknown_tags", ArrayType(_INT), "Numbers of tagged fields this version does not know."),
    ]
)

COMMITTED_OFFSETS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File the record was read from."),
        column("position", _LONG, "Byte position of its batch."),
        column("offset", _LONG, "Offset of the record in its partition of __consumer_offsets."),
        column("producer_id", _LONG, "Producer whose transaction the commit is part of; NULL where it counts at once."),
        column("group_id", _STRING, "Group that committed."),
        column("committed_topic", _STRING, "Topic it stands in."),
        column("committed_partition", _INT, "Partition it stands in."),
        column("is_tombstone", _BOOL, "Whether the value is null: the commit expired or was deleted."),
        column("committed_offset", _LONG, "Offset the group would read next."),
        column("commit_timestamp_ms", _LONG, "Time of the commit, by the group coordinator's clock."),
    ]
)

TRUNCATED: Final = ArrayType(StructType([StructField("leader_epoch", _INT), StructField("from_offset", _LONG)]))
COVERAGE: Final = StructType(
    [
        *_COPY,
        column("broker", _STRING, "Broker the copy came from, by the name of its folder."),
        column(
            "is_judged",
            _BOOL,
            "Whether verdicts rest on this copy: the leader's, else that of the newest leader epoch, the longest.",
        ),
        column("leader", _STRING, "Broker that leads the partition, by capture.json; NULL where that names none."),
        column("is_leader", _BOOL, "Whether the copy is the leader's, by capture.json."),
        column("leader_epoch", _INT, "Newest leader epoch in the copy, by its batches and its leader-epoch-checkpoint."),
        column(
            "role",
            _STRING,
            "LEADER; LAST_LEADER (no broker leads the partition, and this copy would be elected); FURTHEST (the leader, or whose "
            "copy it is, is not known, and no other copy reaches further); or OTHER.",
        ),
        column(
            "is_current",
            _BOOL,
            "Whether the copy shows everything up to the instant at which it was taken; else up to its newest broker stamp.",
        ),
        column(
            "truncated",
            TRUNCATED,
            "Leader epochs of which batches from an offset on were truncated by a newer leader: no history; NULL: none.",
        ),
        column("first_offset", _LONG, "Offset of the first batch that was read."),
        column("end_offset", _LONG, "Offset after the last batch that was read."),
        column("survives_until", _LONG, "Offset after the last batch that no newer leader truncated."),
        column("log_start_offset", _LONG, "Log start by its checkpoint, else the base offset of the first segment."),
        column(
            "read_from_offset", _LONG, "Base offset of the first segment read; above the log start, a snapshot stands for the rest."
        ),
        column("high_watermark", _LONG, "High watermark by its checkpoint; NULL where none was captured."),
        column(
            "noted_high_watermark",
            _LONG,
            "Highest high watermark of the partition in any captured checkpoint of any broker that is not younger than the copy.",
        ),
        column("ends", _STRING, "WHOLE; TORN (inside a batch); or SHORT (below that high watermark, or in unreadable bytes)."),
        column("checkpointed_at", _TIME, "When that checkpoint was copied, by capture.json."),
        column("captured_at", _TIME, "When the copy was taken, by capture.json."),
        column(
            "known_until",
            _TIME,
            "Instant up to which the copy shows everything; assumed from its own records if need be.",
        ),
        column("is_instant_assumed", _BOOL, "Whether known_until comes from the newest broker-stamped record."),
        column("bytes", _LONG, "Bytes of its segments."),
        column("batches", _LONG, "Batches that were read."),
        column("unreadable_bytes", _LONG, "Bytes that could not be read; see quarantine."),
        column("gap_offset", _LONG, "Highest offset that does not follow the one before it."),
        column("damaged_offset", _LONG, "Highest offset below which something was unreadable."),
        column("tail", _STRING, "How the newest segment ends: CLEAN, ZEROS, TORN or CORRUPT."),
        column("is_decoded", _BOOL, "Whether markers and coordinator records were printed (text) or decoded (raw)."),
        column("status", _STRING, "COMPLETE, PARTIAL, DAMAGED or MISSING."),
        column("detail", _STRING, "What is missing, in words."),
        column(
            "is_gone",
            _BOOL,
            "Of a MISSING partition: whether its topic no longer exists, which the brokers' checkpoints and capture.json prove "
            "together; NULL where nothing is proven.",
        ),
    ]
)

QUARANTINE: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File with the stretch."),
        column("position", _LONG, "First byte of the stretch."),
        column("length", _LONG, "Bytes of the stretch."),
        column("reason", _STRING, "Why it could not be read."),
        column("sample", _STRING, "Its first bytes, as hex or text."),
        column("next_offset", _LONG, "Offset of the first batch read after it; NULL if none followed."),
    ]
)

CHECKED_BATCHES: Final = StructType(
    [
        *_COPY,
        column("producer_id", _LONG, "Producer of the batch."),
        column("start_offset", _LONG, "First offset of the open transaction that rests on it; NULL for an odd batch."),
        column(
            "place",
            _STRING,
            "before (the last data batch of its producer before the transaction), first, last (of the transaction) or odd: it, or "
            "what follows it, does not fit what its producer wrote before.",
        ),
        column("base_offset", _LONG, "Offset of the batch's first record."),
        column("last_offset", _LONG, "Offset of its last record."),
        column("path", _STRING, "File it lies in."),
        column("position", _LONG, "Byte position in that file."),
        column("size", _INT, "Bytes of the batch."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("base_sequence", _INT, "Sequence of its first record."),
        column("last_sequence", _INT, "Sequence of its last record."),
        column("is_crc_valid", _BOOL, "Whether its CRC fits; NULL: it could not be checked (text, or a file that is gone)."),
    ]
)

SEGMENTS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "File of the segment, or of the dump that prints it."),
        column("kind", _STRING, "raw, text, or the kind of a file that is no segment."),
        column("segment_base_offset", _LONG, "Base offset in the segment's name."),
        column("first_offset", _LONG, "Offset of its first batch."),
        column("end_offset", _LONG, "Offset after its last batch."),
        column("last_gap_offset", _LONG, "Highest offset in it that does not follow the one before."),
        column("bytes", _LONG, "Bytes of the segment."),
        column("batches", _LONG, "Batches read."),
        column("tail", _STRING, "CLEAN, ZEROS, TORN or CORRUPT."),
        column("is_decoded", _BOOL, "Whether records that matter were printed or decoded."),
        column("newest_broker_ms", _LONG, "Newest broker-stamped time in it."),
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
            "Stretches that could not be read.",
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
            "Of a raw segment: the first batch in each 16 MiB and the last one, by which the next audit knows it again.",
        ),
        column("last_offset_before", _LONG, "Last offset before the last batch; NULL if there is none."),
    ]
)

PRODUCER_SNAPSHOTS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "Snapshot file."),
        column("snapshot_offset", _LONG, "The snapshot holds the state before this offset."),
        column("producer_id", _LONG, "Producer id; NULL in the row that says the snapshot was read."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("last_sequence", _INT, "Last sequence of its newest batch."),
        column("last_offset", _LONG, "Last offset of its newest batch."),
        column("offset_delta", _INT, "Last offset less first offset of that batch."),
        column("last_timestamp_ms", _LONG, "Time of its last batch or marker."),
        column("coordinator_epoch", _INT, "Coordinator epoch of its last marker."),
        column("current_txn_first_offset", _LONG, "First offset of its open transaction."),
    ]
)

ABORTED_TRANSACTIONS: Final = StructType(
    [
        *_COPY,
        column("path", _STRING, "Transaction index file."),
        column("segment_base_offset", _LONG, "Base offset of its segment."),
        column("producer_id", _LONG, "Producer id; NULL in the row that says the index was read."),
        column("first_offset", _LONG, "First offset of the aborted transaction."),
        column("last_offset", _LONG, "Offset of its ABORT marker."),
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
        column("start_offset", _LONG, "Of a leader epoch: the first offset of it."),
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
        column("span", _LONG, "Number of the producer's markers before it: a span is the stretch between two markers."),
        column("producer_epoch", _INT, "Epoch of its first batch."),
        column("first_offset", _LONG, "First offset of the transaction in it; NULL if there is none."),
        column("last_offset", _LONG, "Last offset of the transaction's data."),
        column("is_start_exact", _BOOL, "Whether the transaction's first batch was seen, here or by a snapshot."),
        column("marker_offset", _LONG, "Offset of the marker that ends the span; NULL for the open one."),
        column("marker_type", _STRING, "COMMIT or ABORT."),
        column("marker_epoch", _INT, "Producer epoch of the marker."),
        column("marker_coordinator_epoch", _INT, "Coordinator epoch of the marker."),
        column("marker_ms", _LONG, "Time of the marker, by a broker's clock."),
        column("marker_before", MARKER_FIELDS, "Of the open span: the marker it begins after; NULL if none was seen."),
        column("batches", _LONG, "Batches of the transaction."),
        column("records", _LONG, "Records of the transaction."),
        column("bytes", _LONG, "Bytes of the transaction's batches."),
        column("first_timestamp_ms", _LONG, "Timestamp of the transaction's first batch."),
        column("last_timestamp_ms", _LONG, "Timestamp of the transaction's newest batch."),
        column("is_broker_clock", _BOOL, "Whether these timestamps are the broker's (LogAppendTime)."),
        column("state", STATE_FIELDS, "Of the newest span: what the partition knows of the producer after it."),
        column(
            "suspect",
            StructType([StructField("before", STATE_FIELDS), StructField("batch", BATCH_FIELDS)]),
            "A batch that a native predicate could not clear, with the state before it; the core judges it. A row of its own "
            "with nothing else in it, unless the batch ends a span.",
        ),
        column(
            "is_newest",
            _BOOL,
            "Whether it is the newest span of its producer. Those stand in files of their own, since all others stay as they are; "
            "NULL in rows of older versions.",
        ),
        column("suspects_count", _LONG, "Of the newest span: how many suspects its producer has in the partition, kept or not."),
    ]
)

PRODUCER_STATES: Final = StructType(
    [
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Epoch of its last batch or marker."),
        column("coordinator_epoch", _INT, "Coordinator epoch of its last marker; NULL if none reached the partition."),
        column("last_sequence", _INT, "Last sequence; NULL if its epoch has no data."),
        column(
            "last_timestamp",
            _TIME,
            "Time of its last batch (the client's clock in CreateTime topics) or marker.",
        ),
        column("last_timestamp_ms", _LONG, "The same as it stands in the log, even one that no clock shows (NULL there)."),
        column("current_transaction_start_offset", _LONG, "First offset of its open transaction; NULL: nothing open."),
    ]
)

PARTITION_TRANSACTIONS: Final = StructType(
    [
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Epoch of its first batch."),
        column("first_offset", _LONG, "Offset of its first record."),
        column("last_offset", _LONG, "Offset of its last record."),
        column("marker_offset", _LONG, "Offset of its marker; NULL while open."),
        column("outcome", _STRING, "COMMIT, ABORT or OPEN; NULL where a dump does not print the marker's type."),
        column("marker_epoch", _INT, "Producer epoch of the marker; one higher than the data's in transactions v2."),
        column("coordinator_epoch", _INT, "Coordinator epoch of the marker."),
        column("completed", _TIME, "Time of the marker, by a broker's clock."),
        column("batches", _LONG, "Batches of data."),
        column("records", _LONG, "Records of data."),
        column("bytes", _LONG, "Bytes of its data batches."),
        column("first_timestamp", _TIME, "Timestamp of its first batch."),
        column("last_timestamp", _TIME, "Timestamp of its newest batch."),
    ]
)

_ID: Final = [
    column("transactional_id", _STRING, "Transactional id."),
    column("coordinator_partition", _INT, "Partition of __transaction_state with its records."),
]

COORDINATOR_STATES: Final = StructType(
    [
        *_ID,
        column("offset", _LONG, "Offset of the record."),
        column("timestamp_ms", _LONG, "Append time by the coordinator's clock."),
        column("coordinator_epoch", _INT, "Leader epoch of the record's batch."),
        column("is_tombstone", _BOOL, "Whether the id expired here."),
        column("state_before", _STRING, "State in the id's record before it; NULL: none, or a tombstone."),
        column("state", _STRING, "State after it; NULL for a tombstone."),
        column("transition", _STRING, "The step in words."),
        column("is_consecutive", _BOOL, "Whether no record can be missing between the two."),
        column("legality", _STRING, "LEGAL, RETRY, TRANSACTIONS_V2, ILLEGAL, or UNKNOWN where records may be missing."),
        column("transaction_number", _LONG, "Counts the id's transactions; NULL for records that belong to none."),
        column("value_version", _INT, "Version of the value; NULL where text does not print it."),
        column("producer_id", _LONG, "Producer id."),
        column("previous_producer_id", _LONG, "Producer id before, where written."),
        column("next_producer_id", _LONG, "Producer id after an epoch overflow, where written."),
        column("producer_epoch", _INT, "Producer epoch."),
        column("transaction_timeout_ms", _INT, "Timeout of the id."),
        column("partitions", _TP_LIST, "Partitions of the transaction."),
        column("last_update_ms", _LONG, "Coordinator's time of the transition."),
        column("start_ms", _LONG, "Start of the transaction; NULL where neither written nor derivable."),
        column("client_transaction_version", _INT, "Transaction version, where written."),
        column("is_superseded", _BOOL, "Whether the current copy of the log, which reaches beyond it, has it no more."),
        column("hole_ms", _LONG, "Time of the newest record up to it that follows a hole: what is missing there is older."),
        column("findings", ArrayType(_STRING), "Names of what is odd about the record."),
    ]
)

TRANSACTIONAL_IDS: Final = StructType(
    [
        *_ID,
        column("producer_id", _LONG, "Producer id of its last value."),
        column("producer_epoch", _INT, "Producer epoch of its last value."),
        column("state", _STRING, "Kafka's name of its state; NULL once expired by a tombstone."),
        column("transaction_timeout_ms", _INT, "Timeout; 2147483647 for two-phase commit."),
        column("transaction_start", _TIME, "Start of its last transaction; NULL in Empty."),
        column("partitions", _TP_LIST, "Partitions of its transaction that still have no marker of its decision."),
        column("last_update", _TIME, "Coordinator's time of its last transition."),
        column("record_offset", _LONG, "Offset of its last record."),
        column("record_timestamp", _TIME, "Append time of its last record."),
        column("coordinator_epoch", _INT, "Coordinator epoch of its last record."),
        column("is_two_phase_commit", _BOOL, "Whether its transactions never time out (KIP-939)."),
        column("application", _STRING, "Application that the id belongs to, by its form."),
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
        column("transaction_number", _LONG, "Counts the id's transactions in the surviving records."),
        column("producer_id", _LONG, "Producer id."),
        column("producer_epoch", _INT, "Producer epoch at its beginning."),
        column("state", _STRING, "State in its last record."),
        column("start", _TIME, "When it began."),
        column("prepared", _TIME, "When it was decided: append time of its Prepare record."),
        column("completed", _TIME, "When all markers were acknowledged: append time of its Complete record."),
        column("partitions", _TP_LIST, "Its partitions."),
        column("outcome", _STRING, "COMMIT, ABORT or OPEN."),
        column("ended_by", _STRING, "CLIENT, TIMEOUT, NEW_PRODUCER (or an administrator), COORDINATOR (one of both) or UNKNOWN."),
        column("time_to_decide_ms", _LONG, "From its beginning to the decision."),
        column("time_to_write_markers_ms", _LONG, "From the decision to its Complete record, which follows the last marker."),
        column("decided_epoch", _INT, "Producer epoch of its Prepare record, and of its markers."),
        column("decided_coordinator_epoch", _INT, "Leader epoch of the Prepare record's batch."),
        column(
            "markers",
            MARKERS,
            "Its partitions, each with the marker that carried the decision (NULL: none found), the first offset that it ended and "
            "its time, whether any marker of the producer follows the decision, the clock of the partition's leader less the "
            "coordinator's as estimated, and how far the two may still differ.",
        ),
        column("transaction_timeout_ms", _INT, "Timeout the client asked for."),
        column("is_two_phase_commit", _BOOL, "Whether it never times out (KIP-939)."),
        column("transaction_version", _INT, "Transaction version, where written."),
        column("first_record_offset", _LONG, "Offset of its first surviving record."),
        column("last_record_offset", _LONG, "Offset of its last record."),
    ]
)

PRODUCER_ID_OWNERS: Final = StructType(
    [
        column("producer_id", _LONG, "Producer id."),
        *_ID,
        column("known_from", _STRING, "Which field names it: producer_id, previous_producer_id or next_producer_id."),
        column("owner", _STRING, "CURRENT, NEXT (a coming one), ROTATED (the id has another one now) or EXPIRED (its tombstone)."),
        column("given_up", _STRING, "Why it has it no longer: EPOCHS_EXHAUSTED, EXPIRED, or UNKNOWN; NULL for the current one."),
        column("first_record_offset", _LONG, "Offset of the first surviving record that names it."),
        column("last_record_offset", _LONG, "Offset of the last record that names it."),
        column("first_seen", _TIME, "Append time of the first."),
        column("last_seen", _TIME, "Append time of the last."),
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
        column("producer_epoch", _INT, "Producer epoch the partition knows."),
        column("coordinator_epoch", _INT, "Coordinator epoch of the producer's last marker here; NULL: no marker yet."),
        column("start_offset", _LONG, "First offset of the open transaction."),
        column(
            "last_timestamp",
            _TIME,
            "Time of the producer's last write: the client's clock in CreateTime topics.",
        ),
        column("last_timestamp_ms", _LONG, "The same as it stands in the log, even one that no clock shows (NULL there)."),
        column("duration_minutes", _LONG, "Whole minutes since last_timestamp, as find-hanging prints it."),
        column("transactional_id", _STRING, "Transactional id that has, or had, the producer id."),
        column("coordinator_partition", _INT, "Partition of __transaction_state with the id's records."),
        column("coordinator_state", _STRING, "State of the id; NULL if unknown or expired."),
        column("transaction_start", _TIME, "Start of the id's transaction by its coordinator."),
        column("transaction_timeout_ms", _LONG, "Timeout of the id."),
        column("is_two_phase_commit", _BOOL, "Whether the id takes part in two-phase commit."),
        column("verdict", _STRING, "HANGING, SUSPECT, STUCK, LATE, OPEN or UNKNOWN."),
        column("reason", _STRING, "Name of the reason."),
        column("explanation", _STRING, "The reason as one sentence."),
        column("kafka_find_hanging", _BOOL, "Whether the live find-hanging would print the row; NULL: not decidable."),
        column("causes", ArrayType(CAUSE), "Probable causes, likeliest first."),
        column("evidence", ArrayType(EVIDENCE_RECORD), "Records that show it."),
        column("late_by", _STRING, "LAST_WRITE, COORDINATOR_START or BOTH; NULL unless LATE."),
        column("age_basis", _STRING, "Clock behind last_timestamp: BROKER_CLOCK or CLIENT_CLOCK."),
        column("broker_clock_age_ms", _LONG, "Age that brokers' clocks prove; NULL if nothing does."),
        column("safe_to_abort", _BOOL, "Whether the abort command may be run."),
        column("abort_command", _STRING, "The exact command; NULL where a marker by hand would be wrong."),
        column("do_not_abort_because", _STRING, "Why not to abort, or not yet."),
        column("blocked_offsets", _LONG, "Offsets from its start to the high watermark."),
        column("blocked_bytes", _LONG, "Bytes of the batches from its start on."),
        column("blocks_since", _TIME, "Since when it blocks, by the best clock there is."),
        column("first_seen", _TIME, "as_of of the first audit that saw it."),
        column("runs_seen", _INT, "Audits that saw it, this one included."),
        column("application", _STRING, "Application of the transactional id, by its form."),
        column("safe_from", _TIME, "From when on an abort would be safe, if only its age is not proven yet; NULL otherwise."),
        column("safety", ArrayType(CHECK), "The conditions of a safe abort, each with whether it holds, or why not."),
        column("records", _LONG, "Records of the open transaction: what an abort discards; NULL where they were not counted."),
        column("committed_siblings", ArrayType(_STRING), "Other partitions on which the producer committed since, at most 20."),
    ]
)
HANGING_TRANSACTIONS: Final = OPEN_TRANSACTIONS
LATE_TRANSACTIONS: Final = OPEN_TRANSACTIONS

STEPS: Final = ArrayType(StructType([StructField("command", _STRING), StructField("must_print", _STRING)]))

BROKERS: Final = StructType(
    [
        column("as_of", _TIME, "Instant judged at."),
        column("broker", _STRING, "Broker, by the name of its folder."),
        column("is_leadership_assumed", _BOOL, "Whether capture.json names no leader of some of its partitions."),
        column("replicas", _LONG, "Copies of partitions captured from it."),
        column("partitions_led", _LONG, "Partitions that it leads."),
        column(
            "partitions_with_late_transactions", _LONG, "Kafka's PartitionsWithLateTransactionsCount, at the instant judged at."
        ),
        column("coordinators_led", _LONG, "Partitions of __transaction_state that it leads."),
        column(
            "active_transaction_open_time_max_ms",
            _LONG,
            "KIP-939's active-transaction-open-time-max of its coordinators: the longest open Ongoing transaction; NULL if none.",
        ),
    ]
)

ENDED_TRANSACTIONS: Final = StructType(
    [
        column("as_of", _TIME, "Instant judged at."),
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("start_offset", _LONG, "First offset of the transaction."),
        column("transactional_id", _STRING, "Its transactional id, where known."),
        column("verdict", _STRING, "Verdict of the last run that saw it open."),
        column("reason", _STRING, "Its reason then."),
        column("run_id_then", _STRING, "Run that judged it so."),
        column("last_seen", _TIME, "Instant of that run."),
        column(
            "how",
            _STRING,
            "DECIDED (its coordinator's marker), BY_HAND (a marker that none decided), SPLIT (by hand, against the decision), "
            "MARKED (a marker of unknown origin), LOG_START_MOVED, TOPIC_GONE, GONE, or NOT_CAPTURED, of which the next audit "
            "tells again.",
        ),
        column("outcome", _STRING, "COMMIT or ABORT, by its marker."),
        column("marker_offset", _LONG, "Offset of the marker."),
        column("ended_at", _TIME, "Time of the marker."),
        column("says", _STRING, "How it ended, as a sentence."),
    ]
)

ABORT_PLAN: Final = StructType(
    [
        column("as_of", _TIME, "Instant judged at."),
        column("number", _INT, "What to do first has number 1."),
        column(
            "action",
            _STRING,
            "ABORT, ABORT_LATER (something speaks against it now), ABORT_AS_DECIDED (the coordinator's ABORT is refused), "
            "END_AT_COORDINATOR, REVIVE_COORDINATOR, DO_NOT_ABORT (a marker by hand would be wrong), CHECK_TIMESTAMPS, WAIT or "
            "CAPTURE_MORE.",
        ),
        *_WHERE,
        column("producer_id", _LONG, "Producer id."),
        column("start_offset", _LONG, "First offset of the open transaction."),
        column("transactional_id", _STRING, "Its transactional id, where known."),
        column("coordinator_partition", _INT, "Partition of __transaction_state of that id."),
        column("verdict", _STRING, "Its verdict."),
        column("reason", _STRING, "Its reason."),
        column("do_not_abort_because", _STRING, "Why no marker may be written by hand, or not yet."),
        column("before", STEPS, "Commands to run first, and what they must print."),
        column("command", _STRING, "The command that ends it; NULL where none should be run."),
        column(
            "command_for_old_brokers", _STRING, "The same for brokers before 3.0, where the version of the brokers is not known."
        ),
        column("after", STEPS, "Commands that show whether it took effect."),
        column("notes", ArrayType(_STRING), "What to know before: what it discards, the permissions it needs, the order of steps."),
        column("is_holder", _BOOL, "Whether it holds the last stable offset; else it waits behind another."),
        column("places", ArrayType(_STRING), "Every partition of the transaction that the step ends, with its start offset."),
        column("blocked_offsets", _LONG, "Offsets from its start to the high watermark."),
        column("blocks_since", _TIME, "Since when it blocks."),
    ]
)

PARTITIONS: Final = StructType(
    [
        _AS_OF,
        *_WHERE,
        column("end_offset", _LONG, "Offset after the last batch."),
        column("log_start_offset", _LONG, "Lowest offset that can be read."),
        column("high_watermark", _LONG, "High watermark by its checkpoint, else the end offset."),
        column("is_high_watermark_assumed", _BOOL, "Whether no checkpoint was captured."),
        column("last_stable_offset", _LONG, "Where read_committed consumers stop."),
        column("lag_offsets", _LONG, "High watermark less last stable offset."),
        column("lag_bytes", _LONG, "Bytes of the batches from the last stable offset on."),
        column("lag_ms", _LONG, "as_of less the timestamp of the batch at the last stable offset."),
        column("blocking_producer_id", _LONG, "Producer whose open transaction holds the last stable offset."),
        column("blocking_transactional_id", _STRING, "Its transactional id."),
        column("blocking_verdict", _STRING, "Verdict on that transaction."),
        column(
            "next_blocking_offset", _LONG, "Start of the open transaction that blocks once that one is ended; NULL if none does."
        ),
        column("next_blocking_producer_id", _LONG, "Its producer."),
        column("next_blocking_transactional_id", _STRING, "Its transactional id, where known."),
        column("is_late", _BOOL, "Whether brokers count it in PartitionsWithLateTransactionsCount."),
    ]
)

BLOCKED_GROUPS: Final = StructType(
    [
        _AS_OF,
        column("group_id", _STRING, "Group that has read all that read_committed consumers are given, and waits."),
        *_WHERE,
        column("committed_offset", _LONG, "Offset the group would read next, by its last commit that took effect."),
        column("last_stable_offset", _LONG, "Where read_committed consumers stop."),
        column("high_watermark", _LONG, "High watermark of the partition."),
        column("lag_offsets", _LONG, "High watermark less committed offset."),
        column("committed_at", _TIME, "When it committed, by the group coordinator's clock; NULL if not written."),
        column("blocking_producer_id", _LONG, "Producer whose open transaction holds the last stable offset."),
        column("blocking_transactional_id", _STRING, "Its transactional id."),
    ]
)

FINDINGS: Final = StructType(
    [
        column("name", _STRING, "Name of the finding."),
        column("severity", _STRING, "INFO, WARNING, ERROR or CRITICAL."),
        *_WHERE,
        column("offset", _LONG, "Offset of the record that shows it."),
        column("producer_id", _LONG, "Producer id."),
        column("transactional_id", _STRING, "Transactional id."),
        column("message", _STRING, "What it means."),
        column("evidence", _STRING, "The record, and the state before it."),
    ]
)

AUDIT_RUNS: Final = StructType(
    [
        _AS_OF,
        column("started_at", _TIME, "When the run began."),
        column("finished_at", _TIME, "When the run ended; NULL while it runs, or if it died."),
        column(
            "status",
            _STRING,
            "RUNNING; DONE, FAILED, or DIED (found so by a later audit); INGESTED and RECONSTRUCTED after these jobs.",
        ),
        column("input", _STRING, "Inputs of the audit."),
        column("settings", _STRING, "Settings as JSON."),
        column("version", _STRING, "Version of txnlib."),
        column("counts", _STRING, "Rows of every table and rows per verdict, as JSON."),
        column("owner", _STRING, "The process that carried it out: host, process id, its start in epoch seconds."),
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

#: Of `segments`, those of a part of a file; see `readers.columns`.
SEGMENT_PARTS: Final = StructType([*SEGMENTS, StructField("file_position", _LONG), StructField("part_position", _LONG)])

#: What the reader yields that is no table of its own.
READ_ONLY: Final[Mapping[str, StructType]] = {"console_log": TRANSACTION_LOG}


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame with exactly the schema's columns, order, types and comments.

    Raises ValueError if a column is missing: `DataFrame.to` alone would fill it with nulls.
    """
    missing = [field.name for field in schema if field.name not in frame.columns]
    if missing:
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    return frame.to(schema)
