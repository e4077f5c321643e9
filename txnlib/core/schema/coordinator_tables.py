"""The tables of the coordinators' side: the transactions of each transactional id."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    BOOLEAN,
    INT,
    LONG,
    PARTITION_LIST,
    STRING,
    TIMESTAMP,
    Array,
    Column,
    Table,
    struct,
)

_ID_COLUMNS: Final = (
    Column("transactional_id", STRING, "Transactional id; in reports, the one that has or had the producer id."),
    Column("coordinator_partition", INT, "Partition of __transaction_state with the records of the id."),
)

#: What the core needs of a record to judge it.
_JUDGED_FIELDS: Final = struct(
    state_name=STRING,
    producer_id=LONG,
    producer_epoch=INT,
    next_producer_id=LONG,
    start_ms=LONG,
    lists_partitions=BOOLEAN,
    coordinator_epoch=INT,
)

COORDINATOR_STATES: Final = Table(
    comment="Each coordinator record, with the state before it and whether the step is legal.",
    columns=(
        *_ID_COLUMNS,
        Column("offset", LONG, "Offset of the record."),
        Column("timestamp_ms", LONG, "Append time by the coordinator's clock."),
        Column("coordinator_epoch", INT, "Leader epoch of the batch, which is the coordinator epoch."),
        Column("is_tombstone", BOOLEAN, "Whether the id expired with this record."),
        Column("state_before", STRING, "State in the id's previous record; NULL for none or a tombstone."),
        Column("state", STRING, "State in this record; NULL for a tombstone."),
        Column("transition", STRING, "The step in words."),
        Column(
            "is_consecutive",
            BOOLEAN,
            "Whether no record of the id can be missing between the one before it and this one.",
        ),
        Column("legality", STRING, "LEGAL, RETRY, TRANSACTIONS_V2, ILLEGAL, or UNKNOWN if records may be missing."),
        Column("transaction_number", LONG, "Number of the transaction, counted per id; NULL if none is known."),
        Column(
            "value_version", INT, "Version of the value: 0, or 1 with tagged fields; NULL if text does not show it."
        ),
        Column("producer_id", LONG, "Producer id."),
        Column("previous_producer_id", LONG, "Tag 0: producer id before this transition (since Kafka 4.3)."),
        Column("next_producer_id", LONG, "Tag 1: producer id after an epoch overflow."),
        Column("producer_epoch", INT, "Producer epoch."),
        Column("transaction_timeout_ms", INT, "Timeout that the client requested; 2147483647 for two-phase commit."),
        Column("partitions", PARTITION_LIST, "Partitions of the transaction."),
        Column("last_update_ms", LONG, "Time of the transition, by the coordinator's clock."),
        Column("start_ms", LONG, "Start of the transaction; NULL if neither recorded nor derivable."),
        Column(
            "client_transaction_version",
            INT,
            "Tag 2: transaction version of the client, or of the cluster if it aborted.",
        ),
        Column("is_superseded", BOOLEAN, "Whether the current copy reaches beyond the record and lacks it."),
        Column("hole_ms", LONG, "When the newest missing record before this one was written, at the latest."),
        Column("hole_offset", LONG, "Offset of the newest record, up to this one, after a hole."),
        Column(
            "suspect",
            struct(before=_JUDGED_FIELDS, after=_JUDGED_FIELDS, is_consecutive=BOOLEAN),
            "What the core needs to judge a record that may be odd, and the step to it; NULL for all others.",
        ),
    ),
)

TRANSACTIONAL_IDS: Final = Table(
    comment="The last state of each transactional id.",
    columns=(
        *_ID_COLUMNS,
        Column("producer_id", LONG, "Producer id in the last value."),
        Column("producer_epoch", INT, "Producer epoch in the last value."),
        Column("state", STRING, "State; NULL after a tombstone."),
        Column("transaction_timeout_ms", INT, "Timeout that the client requested; 2147483647 for two-phase commit."),
        Column("transaction_start", TIMESTAMP, "Start of the last transaction; NULL in Empty."),
        Column("partitions", PARTITION_LIST, "Partitions without the marker of the decision."),
        Column("last_update", TIMESTAMP, "Time of the last transition, by the coordinator's clock."),
        Column("record_offset", LONG, "Offset of the id's last record."),
        Column("record_timestamp", TIMESTAMP, "Append time of the id's last record."),
        Column("coordinator_epoch", INT, "Coordinator epoch of the id's last record."),
        Column("is_two_phase_commit", BOOLEAN, "Whether it is a two-phase commit, which never times out (KIP-939)."),
        Column("application", STRING, "Application, derived from the form of the transactional id."),
    ),
    shown={
        "list": "transactional_id coordinator coordinator_partition producer_id producer_epoch state partitions",
        "describe": (
            "coordinator transactional_id coordinator_partition producer_id producer_epoch state transaction_timeout_ms"
            " transaction_start duration_ms partitions"
        ),
    },
)

#: The partitions of a transaction, each with the marker that carries the decision.
MARKERS: Final = Array(
    struct(
        topic=STRING,
        partition=INT,
        marker_offset=LONG,
        marker_type=STRING,
        marker_epoch=INT,
        marker_coordinator_epoch=INT,
        marker_ms=LONG,
        marker_leader_epoch=INT,
        first_offset=LONG,
        first_timestamp_ms=LONG,
        is_broker_clock=BOOLEAN,
        is_followed=BOOLEAN,
        possible_offsets=Array(LONG),
        clock_offset_ms=LONG,
        clocks_differ_ms=LONG,
    )
)

MEASURED_CLOCKS: Final = Table(
    comment="How far the clock of a partition's leader is ahead of a coordinator's, by decisions and their markers.",
    columns=(
        Column("coordinator_clock", STRING, "Broker of the coordinator, or its partition and leader epoch."),
        Column("clock", STRING, "Broker of the partition's leader, or the partition and leader epoch."),
        Column("offset_ms", LONG, "How far that clock is ahead; 0 if there are too few pairs for an estimate."),
        Column("error_ms", LONG, "Measured error of the offset."),
        Column("differ_ms", LONG, "How far the two may differ at worst beside the offset."),
        Column("shown_ms", LONG, "What a single pair shows where there is no estimate, else 0."),
    ),
)

TRANSACTIONS: Final = Table(
    comment="The transactions of each transactional id: how they ended, and when each partition was marked.",
    columns=(
        *_ID_COLUMNS,
        Column("transaction_number", LONG, "Number of the transaction, counted per id; NULL if none is known."),
        Column("producer_id", LONG, "Producer id."),
        Column("producer_epoch", INT, "Producer epoch at the beginning."),
        Column("state", STRING, "State in the last record."),
        Column("start", TIMESTAMP, "When it began, by the coordinator's clock."),
        Column("prepared", TIMESTAMP, "When it was decided: append time of the Prepare record."),
        Column(
            "decided", TIMESTAMP, "When it was decided: the time in the Prepare record, else in the Complete record."
        ),
        Column("completed", TIMESTAMP, "When all markers were acknowledged: append time of the Complete record."),
        Column("partitions", PARTITION_LIST, "Partitions of the transaction."),
        Column("outcome", STRING, "COMMIT, ABORT or OPEN."),
        Column(
            "ended_by",
            STRING,
            "CLIENT, TIMEOUT, NEW_PRODUCER (or an administrator), COORDINATOR (TIMEOUT or NEW_PRODUCER) or UNKNOWN.",
        ),
        Column("time_to_decide_ms", LONG, "Time from the beginning to the decision."),
        Column("time_to_write_markers_ms", LONG, "Time from the decision to the Complete record."),
        Column("decided_epoch", INT, "Producer epoch of the Prepare record and of the markers."),
        Column("decided_coordinator_epoch", INT, "Leader epoch of the Prepare record's batch."),
        Column("stamped_epoch", INT, "Leader epoch of the last record's batch: whose clock stamped it."),
        Column(
            "markers",
            MARKERS,
            "Each partition: the decision's marker (NULL if none), what it ended, and how far clocks differ.",
        ),
        Column("transaction_timeout_ms", INT, "Timeout that the client requested; 2147483647 for two-phase commit."),
        Column("is_two_phase_commit", BOOLEAN, "Whether it is a two-phase commit, which never times out (KIP-939)."),
        Column("transaction_version", INT, "Transaction version, if a record contains it."),
        Column(
            "client_transaction_version", INT, "Transaction version of the client, if an Ongoing record contains it."
        ),
        Column(
            "cluster_transaction_version",
            INT,
            "Level of the feature transaction.version at its end, or now; NULL if not known.",
        ),
        Column("first_record_offset", LONG, "Offset of its first surviving record."),
        Column("last_record_offset", LONG, "Offset of its last record."),
    ),
)

PRODUCER_ID_OWNERS: Final = Table(
    comment="The transactional ids that have or had each producer id.",
    columns=(
        Column("producer_id", LONG, "Producer id."),
        *_ID_COLUMNS,
        Column("known_from", STRING, "Field that names it: producer_id, previous_producer_id or next_producer_id."),
        Column(
            "owner",
            STRING,
            "CURRENT, NEXT (not in use yet), ROTATED (the transactional id has another one now) or EXPIRED (by a"
            " tombstone).",
        ),
        Column(
            "given_up",
            STRING,
            "Why it is no longer in use: EPOCHS_EXHAUSTED, EXPIRED or UNKNOWN; NULL for the current one.",
        ),
        Column("first_record_offset", LONG, "Offset of the first surviving record that names it."),
        Column("last_record_offset", LONG, "Offset of the last record that names it."),
        Column("first_seen", TIMESTAMP, "Append time of the first surviving record that names it."),
        Column("last_seen", TIMESTAMP, "Append time of the last record that names it."),
    ),
)
