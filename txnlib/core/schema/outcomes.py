"""The tables about whole transactions: their outcome on every partition."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    AS_OF,
    BOOLEAN,
    INT,
    LONG,
    PARTITION_COLUMNS,
    STRING,
    TIMESTAMP,
    Column,
    Table,
    are_present,
    is_one_of,
)
from txnlib.core.verdicts.marker_states import MarkerState

TRANSACTION_COLUMNS: Final = (
    Column(
        "transactional_id",
        STRING,
        "Transactional id; NULL if no captured coordinator has the producer id, or several do.",
    ),
    Column("coordinator_partition", INT, "Partition of __transaction_state with the records of the id."),
    Column("transaction_number", LONG, "Number of the transaction, counted per id; NULL if none is known."),
    Column("producer_id", LONG, "Producer id."),
    Column("producer_epoch", INT, "Producer epoch at the beginning."),
)

TRANSACTION_OUTCOMES: Final = Table(
    comment="Each transaction on each partition that it touched: decision, marker, and what it wrote there.",
    columns=(
        AS_OF,
        *TRANSACTION_COLUMNS,
        *PARTITION_COLUMNS,
        Column(
            "known_from",
            STRING,
            "COORDINATOR (listed by its records), MARKER (the list is lost; the marker of its decision is here) or"
            " PARTITION (only the partition shows it).",
        ),
        Column("is_two_phase_commit", BOOLEAN, "Whether it is a two-phase commit, which never times out (KIP-939)."),
        Column("decided_outcome", STRING, "Decision: COMMIT, ABORT or OPEN; NULL if no record of it survives."),
        Column("decided", TIMESTAMP, "When it was decided, by the coordinator's clock."),
        Column("marker", STRING, f"State of the marker: {', '.join(MarkerState)} (docs/rules/reference.md)."),
        Column("marker_offset", LONG, "Offset of that marker; NULL if there is none."),
        Column("marker_epoch", INT, "Producer epoch of the marker."),
        Column("marker_coordinator_epoch", INT, "Coordinator epoch of the marker."),
        Column("marked", TIMESTAMP, "Time of the marker, by a broker's clock."),
        Column("outcome", STRING, "How it ended here: COMMIT, ABORT or OPEN; NULL if not known."),
        Column("first_offset", LONG, "Offset of its first record here; NULL if it wrote none, or none is left."),
        Column("records", LONG, "Its records here; NULL if not counted."),
        Column("bytes", LONG, "Bytes of its batches here; NULL if not counted."),
        Column("says", STRING, "What is odd about the marker, as a sentence; NULL if nothing is."),
    ),
    checks={
        "marker_is_known": is_one_of("marker", *MarkerState),
        "transaction_is_placed": are_present("producer_id", "topic", "partition"),
    },
    shown={
        "transaction": (
            "topic partition marker marker_offset outcome records first_offset bytes marked known_from"
            " transaction_number producer_id producer_epoch marker_epoch marker_coordinator_epoch decided_outcome"
            " decided is_two_phase_commit says"
        )
    },
)
