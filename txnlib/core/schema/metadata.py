"""The tables of the cluster's own metadata log: who led what, and which settings applied, when."""

from __future__ import annotations

from typing import Final

from txnlib.core.schema.columns import (
    BOOLEAN,
    INT,
    LONG,
    PARTITION_COLUMNS,
    STRING,
    TIMESTAMP,
    Array,
    Column,
    Table,
    are_present,
)

#: From when to when a row applies. Offsets are those of `__cluster_metadata`.
_SINCE: Final = (
    Column("since_offset", LONG, "Metadata offset from which it applies; NULL if only snapshots show it."),
    Column("since", TIMESTAMP, "Time from which it applies; NULL if only snapshots show it."),
    Column("until_offset", LONG, "Metadata offset at which it ended; NULL if it still applies."),
    Column("until", TIMESTAMP, "Time at which it ended; NULL if it still applies."),
    Column("is_current", BOOLEAN, "Whether it still applied at the end of the captured metadata log."),
)

PARTITION_ASSIGNMENTS: Final = Table(
    comment="The leader and replicas of each partition over time.",
    columns=(
        *PARTITION_COLUMNS,
        Column("topic_id", STRING, "Topic id, as Kafka prints it."),
        Column("leader", INT, "Leader of the partition; NULL if it has none."),
        Column("leader_epoch", INT, "Leader epoch of the partition."),
        Column("isr", Array(INT), "In-sync replicas; without a leader, the last ones."),
        Column("replicas", Array(INT), "Replicas of the partition."),
        Column(
            "eligible_leader_replicas", Array(INT), "Replicas that may lead although they are not in sync (KIP-966)."
        ),
        Column("is_unclean", BOOLEAN, "Whether the leader was elected without being in sync: records may be lost."),
        *_SINCE,
    ),
    checks={"partition_is_named": are_present("topic_id", "partition")},
)

CLUSTER_SETTINGS: Final = Table(
    comment="The dynamic settings and the feature levels over time.",
    columns=(
        Column("scope", STRING, "What it applies to, such as FEATURE or TOPIC."),
        Column("scope_name", STRING, "Its topic, broker or group; NULL for features and the default."),
        Column("name", STRING, "Name of the setting or feature."),
        Column("value", STRING, "Value, or level of the feature; [hidden] if it may be secret."),
        *_SINCE,
    ),
    checks={"setting_is_named": are_present("scope", "name")},
)

BROKER_SESSIONS: Final = Table(
    comment="The registrations of each broker, and when it was fenced.",
    columns=(
        Column("broker_id", INT, "Broker that registered."),
        Column("broker_epoch", LONG, "Epoch of the registration."),
        Column("incarnation_id", STRING, "Id of the broker's process."),
        Column("is_fenced", BOOLEAN, "Whether it is fenced, and so leads no partition."),
        Column("is_in_controlled_shutdown", BOOLEAN, "Whether it is shutting down."),
        *_SINCE,
    ),
    checks={"broker_is_named": are_present("broker_id")},
)

PRODUCER_ID_BLOCKS: Final = Table(
    comment="The blocks of producer ids that brokers were given.",
    columns=(
        Column("first_producer_id", LONG, "First producer id of the block."),
        Column("last_producer_id", LONG, "Last producer id of the block."),
        Column("broker_id", INT, "Broker that got the block."),
        Column("broker_epoch", LONG, "Epoch of the broker that got the block."),
        Column("offset", LONG, "Offset of the metadata record; NULL if only a snapshot shows it."),
        Column("allocated_at", TIMESTAMP, "Time of the metadata record; NULL if only a snapshot shows it."),
    ),
    checks={"block_is_in_order": "first_producer_id <= last_producer_id"},
)
