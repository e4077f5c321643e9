"""The tables about whole transactions: their outcome on every partition."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    AS_OF,
    BOOLEAN,
    INT,
    LONG,
    PARTITION_COLUMNS,
    PARTITION_LIST,
    STRING,
    TIMESTAMP,
    Array,
    Column,
    Table,
    are_present,
    is_one_of,
    struct,
)
from txnlib.core.verdicts.transaction_outcome import MEANINGS, MarkerState

TRANSACTION_COLUMNS: Final = (
    Column("transactional_id", STRING, "Transactional id; NULL if no captured coordinator has the producer id, or several do."),
    Column("coordinator_partition", INT, "Partition of __transaction_state with the records of the id."),
    Column(
        "transaction_number",
        LONG,
        "Number of the transaction in `transactions`; NULL if no record of its coordinator survives.",
    ),
    Column("producer_id", LONG, "Producer id."),
    Column("producer_epoch", INT, "Producer epoch at the beginning."),
)

TRANSACTION_OUTCOMES: Final = Table(
    comment="Each transaction on each partition that it touched: its decided outcome, its marker, and what it wrote there.",
    columns=(
        AS_OF,
        *TRANSACTION_COLUMNS,
        *PARTITION_COLUMNS,
        Column(
            "known_from",
            STRING,
            "COORDINATOR (its records list the partition), MARKER_TIME (the list is lost; the marker was written between start and "
            "completion) or PARTITION (no record of the coordinator explains what the partition shows).",
        ),
        Column("is_two_phase_commit", BOOLEAN, "Whether the transaction never times out (KIP-939)."),
        Column("decided_outcome", STRING, "Decision of the coordinator: COMMIT, ABORT or OPEN; NULL if no record of it survives."),
        Column("decided", TIMESTAMP, "When the transaction was decided, by the coordinator's clock."),
        Column("marker", STRING, " ".join(f"{state.value}: {meaning}." for state, meaning in MEANINGS.items())),
        Column("marker_offset", LONG, "Offset of that marker; NULL if there is none."),
        Column("marker_epoch", INT, "Producer epoch of the marker."),
        Column("marker_coordinator_epoch", INT, "Coordinator epoch of the marker."),
        Column("marked", TIMESTAMP, "Time of the marker, by the clock of the partition's leader."),
        Column("outcome", STRING, "How the transaction ended on the partition: COMMIT, ABORT or OPEN; NULL if it is not known."),
        Column("first_offset", LONG, "Offset of its first record on the partition; NULL if it wrote none, or none is left."),
        Column("records", LONG, "Records of the transaction on the partition; NULL if they were not counted."),
        Column("bytes", LONG, "Bytes of their batches."),
        Column("says", STRING, "What is odd about the marker, as a sentence; NULL if nothing is."),
    ),
    checks={
        "marker_is_known": is_one_of("marker", *MarkerState),
        "transaction_is_placed": are_present("producer_id", "topic", "partition"),
    },
)

#: A copy that has a marker.
COPY_OF_MARKER: Final = struct(broker=STRING, source=STRING, offset=LONG)

MARKER_REPAIRS: Final = Table(
    comment="What each partition of a decided transaction needs that lacks its marker. The product never writes to a cluster.",
    columns=(
        AS_OF,
        *(column for column in TRANSACTION_COLUMNS if column.name != "producer_epoch"),
        *PARTITION_COLUMNS,
        Column("decided_outcome", STRING, "Decision of the coordinator: COMMIT or ABORT."),
        Column("decided", TIMESTAMP, "When the transaction was decided, by the coordinator's clock."),
        Column("marker", STRING, "MISSING, PENDING or CONTRADICTING, as in `transaction_outcomes`."),
        Column(
            "copies",
            Array(COPY_OF_MARKER),
            "Captured copies that have the marker, such as that of an old leader; NULL if none has.",
        ),
        Column("marker_epoch", INT, "Producer epoch of the decision, which its coordinator gives the marker."),
        Column("coordinator_epoch", INT, "Newest coordinator epoch of that coordinator partition."),
        Column("transaction_version", INT, "Transaction version of the transaction, if a record or a feature shows it."),
        Column("seen_epoch", INT, "Producer epoch that the partition has seen; NULL if it does not know the producer."),
        Column("seen_coordinator_epoch", INT, "Coordinator epoch of the last marker that the partition has of the producer."),
        Column("is_accepted", STRING, "Whether the partition accepts these epochs: ACCEPTED, REFUSED or DEPENDS_ON_VERSION."),
        Column(
            "request",
            STRING,
            "Body of the WriteTxnMarkers request that would write the marker, as JSON with Kafka's names. Where the partition "
            "refuses the decided epochs, the request has the lowest that it accepts. NULL if another marker has ended the records.",
        ),
        Column("tool", STRING, "Who can send the request, or why no shipped tool can."),
        Column("fate", STRING, "What became of the records: OPEN; COMMIT or ABORT, by another marker; or NONE, if there are none."),
        Column("first_offset", LONG, "Offset of the first of these records; NULL if there are none."),
        Column("ended_at_offset", LONG, "Offset of the marker that ended them; NULL if none did."),
        Column("consumers_saw", STRING, "What consumers have seen meanwhile, as a sentence."),
    ),
)

IN_DOUBT_TRANSACTIONS: Final = Table(
    comment="Undecided transactions of two-phase commit (KIP-939): only the application's transaction manager may decide them.",
    columns=(
        AS_OF,
        *TRANSACTION_COLUMNS,
        Column("application", STRING, "Application of the transactional id, derived from its form."),
        Column("state", STRING, "State at the coordinator. Kafka does not record when a client prepares: the state stays Ongoing."),
        Column("open_since", TIMESTAMP, "When the transaction began, by the coordinator's clock."),
        Column("last_update", TIMESTAMP, "Time of its last record at the coordinator: it was prepared after that, or not yet."),
        Column("open_ms", LONG, "Time from open_since to as_of; NULL if open_since is unknown."),
        Column(
            "is_overdue",
            BOOLEAN,
            "Whether it is open for longer than `in_doubt_after_minutes`; true if nobody knows since when it is open.",
        ),
        Column("partitions", PARTITION_LIST, "Partitions that it holds."),
        Column("records", LONG, "Records that it holds on these partitions; NULL if they were not counted."),
        Column("bytes", LONG, "Bytes of their batches."),
        Column(
            "is_kept", BOOLEAN, "Whether a client has come back and kept the transaction as prepared; NULL if no record says so."
        ),
        Column(
            "kept_producer_id",
            LONG,
            "Producer id that InitProducerId with keepPreparedTxn would return; NULL for a new one. The transaction keeps its own.",
        ),
        Column("kept_producer_epoch", INT, "Producer epoch that it would return."),
        Column("first_seen", TIMESTAMP, "as_of of the first audit that saw the transaction undecided."),
        Column("runs_seen", INT, "Number of audits that saw it, including this one."),
    ),
    checks={"transaction_is_named": are_present("as_of", "transactional_id", "producer_id")},
)
