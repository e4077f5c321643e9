"""The tables of the partitions' side: what each producer wrote."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    BOOLEAN,
    COPY_COLUMNS,
    INT,
    LONG,
    PARTITION_COLUMNS,
    STRING,
    TIMESTAMP,
    Column,
    Table,
    struct,
)

#: The state of a producer in a partition.
STATE_FIELDS: Final = struct(
    producer_epoch=INT,
    last_sequence=INT,
    last_offset=LONG,
    offset_delta=INT,
    coordinator_epoch=INT,
    current_txn_first_offset=LONG,
    last_timestamp=LONG,
)
#: What the core needs of a batch to judge it.
BATCH_FIELDS: Final = struct(
    base_offset=LONG,
    last_offset=LONG,
    producer_epoch=INT,
    base_sequence=INT,
    max_timestamp_ms=LONG,
    is_transactional=BOOLEAN,
    is_marker=BOOLEAN,
    control_type=STRING,
    coordinator_epoch=INT,
)
MARKER_FIELDS: Final = struct(offset=LONG, type=STRING, epoch=INT, coordinator_epoch=INT, ms=LONG, leader_epoch=INT)

PRODUCER_SPANS: Final = Table(
    comment="What each producer wrote on each partition between two of its markers.",
    columns=(
        *PARTITION_COLUMNS,
        Column("producer_id", LONG, "Producer id."),
        Column("span", LONG, "Number of the producer's markers before the span."),
        Column("producer_epoch", INT, "Producer epoch of the first batch."),
        Column("newest_epoch", INT, "Producer epoch of the last batch before the marker; NULL if it is not known."),
        Column("first_offset", LONG, "First offset of its transaction; NULL if there is none."),
        Column("last_offset", LONG, "Last data offset of its transaction; NULL if there is none."),
        Column("is_start_exact", BOOLEAN, "Whether the first batch of the transaction is known."),
        Column("marker_offset", LONG, "Offset of the marker that ends the span; NULL for an open span."),
        Column("marker_type", STRING, "Type of that marker: COMMIT or ABORT."),
        Column("marker_epoch", INT, "Producer epoch of that marker."),
        Column("marker_coordinator_epoch", INT, "Coordinator epoch of that marker."),
        Column("marker_ms", LONG, "Time of that marker, by the clock of the leader that wrote it."),
        Column("marker_leader_epoch", INT, "Leader epoch in which that marker was written."),
        Column("marker_before", MARKER_FIELDS, "Of an open span: the marker before it."),
        Column("batches", LONG, "Batches of the transaction."),
        Column("records", LONG, "Records of the transaction."),
        Column("bytes", LONG, "Bytes of the transaction's batches."),
        Column("first_timestamp_ms", LONG, "Timestamp of the transaction's first batch."),
        Column("last_timestamp_ms", LONG, "Timestamp of the transaction's newest batch."),
        Column("is_broker_clock", BOOLEAN, "Whether these timestamps are a broker's (LogAppendTime)."),
        Column("state", STATE_FIELDS, "Of the newest span: the producer's state after it."),
        Column(
            "suspect",
            struct(before=STATE_FIELDS, batch=BATCH_FIELDS),
            "A batch that the core has to judge, with the state before it. The other columns are empty, unless it ends"
            " a span.",
        ),
        Column("is_newest", BOOLEAN, "Whether it is the producer's newest span."),
        Column("suspects_count", LONG, "Of the newest span: number of the producer's suspect batches, stored or not."),
    ),
)

CHECKED_BATCHES: Final = Table(
    comment="The batches whose CRC was checked, because a verdict depends on them or they are odd.",
    columns=(
        *COPY_COLUMNS,
        Column("producer_id", LONG, "Producer of the batch."),
        Column(
            "start_offset", LONG, "First offset of the transaction whose verdict depends on it; NULL for an odd batch."
        ),
        Column(
            "place",
            STRING,
            "before (the producer's last data batch before the transaction), first, last, or odd (it, or the batch"
            " after it, does not fit what the producer wrote before).",
        ),
        Column("base_offset", LONG, "Offset of its first record."),
        Column("last_offset", LONG, "Offset of its last record."),
        Column("path", STRING, "File with the batch."),
        Column("position", LONG, "Byte position in that file."),
        Column("size", INT, "Bytes of the batch."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("base_sequence", INT, "Sequence of its first record."),
        Column("last_sequence", INT, "Sequence of its last record."),
        Column("partition_leader_epoch", INT, "Leader epoch in which it was appended."),
        Column("crc", LONG, "Stored CRC-32C."),
        Column("is_crc_valid", BOOLEAN, "Whether the CRC matches; NULL if it could not be checked."),
    ),
)

PRODUCER_STATES: Final = Table(
    comment="The state of each producer at the end of a partition, as in describe-producers.",
    columns=(
        *PARTITION_COLUMNS,
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch of its last batch or marker."),
        Column("coordinator_epoch", INT, "Coordinator epoch of its last marker."),
        Column("last_sequence", INT, "Last sequence; NULL if the epoch has no data."),
        Column("last_timestamp", TIMESTAMP, "Time of the last batch (client's clock in CreateTime topics) or marker."),
        Column("last_timestamp_ms", LONG, "last_timestamp in epoch ms, even if out of a timestamp's range."),
        Column("current_transaction_start_offset", LONG, "First offset of the open transaction; NULL if none is open."),
    ),
    shown={
        "describe-producers": (
            "producer_id producer_epoch coordinator_epoch last_sequence last_timestamp current_transaction_start_offset"
        )
    },
)

PARTITION_TRANSACTIONS: Final = Table(
    comment="The transactions of each partition, and how they ended.",
    columns=(
        *PARTITION_COLUMNS,
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch of the first batch."),
        Column("first_offset", LONG, "Offset of its first record."),
        Column("last_offset", LONG, "Offset of its last record."),
        Column("marker_offset", LONG, "Offset of the marker; NULL while open."),
        Column("outcome", STRING, "COMMIT, ABORT or OPEN; NULL if a dump does not show the marker's type."),
        Column("marker_epoch", INT, "Producer epoch of the marker; in transactions v2, one above the data's."),
        Column("coordinator_epoch", INT, "Coordinator epoch of the marker."),
        Column("completed", TIMESTAMP, "Time of the marker, by a broker's clock."),
        Column("batches", LONG, "Data batches."),
        Column("records", LONG, "Data records."),
        Column("bytes", LONG, "Bytes of the data batches."),
        Column("first_timestamp", TIMESTAMP, "Timestamp of its first batch."),
        Column("last_timestamp", TIMESTAMP, "Timestamp of its newest batch."),
    ),
)
