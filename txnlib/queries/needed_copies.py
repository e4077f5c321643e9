"""The copy that would settle an undecided transaction, by its reason. See `txn-audit collect-plan`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.reason import Reason
from txnlib.queries.rows import Row


class Wanted(Enum):
    """What to copy, or to note in capture.json."""

    PARTITION = "PARTITION"
    COORDINATOR = "COORDINATOR"
    EVERY_COORDINATOR = "EVERY_COORDINATOR"
    METADATA = "METADATA"
    NOTES = "NOTES"


#: Reason of an UNKNOWN -> what would settle it.
WANTED: Final[Mapping[str, Wanted]] = {
    Reason.PARTITION_LOG_INCOMPLETE: Wanted.PARTITION,
    Reason.PARTITION_COPY_NOT_CURRENT: Wanted.PARTITION,
    Reason.COORDINATOR_RECORDS_COMPACTED: Wanted.PARTITION,
    Reason.COPIES_DISAGREE: Wanted.PARTITION,
    Reason.CORRUPT_MESSAGE: Wanted.PARTITION,
    Reason.BROKER_ANSWERED_OTHERWISE: Wanted.PARTITION,
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: Wanted.EVERY_COORDINATOR,
    Reason.COORDINATOR_LOG_DAMAGED: Wanted.COORDINATOR,
    Reason.COORDINATOR_COPY_NOT_CURRENT: Wanted.COORDINATOR,
    Reason.CAPTURE_SKEW: Wanted.COORDINATOR,
    Reason.METADATA_LOG_DAMAGED: Wanted.METADATA,
    Reason.BROKER_VERSION_UNKNOWN: Wanted.NOTES,
}


def wanted_for(row: Row) -> Wanted | None:
    """What would settle an open transaction; None if it is judged. An unknown owner may be at any coordinator."""
    wanted = WANTED.get(row["reason"]) if row["verdict"] == "UNKNOWN" else None
    if wanted not in (Wanted.COORDINATOR, Wanted.EVERY_COORDINATOR):
        return wanted
    return Wanted.EVERY_COORDINATOR if row["coordinator_partition"] is None else Wanted.COORDINATOR


def needed_for(row: Row) -> str:
    """The line of `collect-plan` that would settle an open transaction; empty if it is judged."""
    wanted = wanted_for(row)
    if wanted is None:
        return ""
    if wanted is Wanted.NOTES:
        return "note kafka_version in capture.json"
    if wanted is Wanted.METADATA:
        return f"{CLUSTER_METADATA_TOPIC}-0 of another broker"
    what = {
        Wanted.PARTITION: f"{row['topic']}-{row['partition']} from its leader",
        Wanted.COORDINATOR: f"{TRANSACTION_STATE_TOPIC}-{row['coordinator_partition']} from its leader, after the partitions",
        Wanted.EVERY_COORDINATOR: f"every partition of {TRANSACTION_STATE_TOPIC} from its leader, after the partitions",
    }[wanted]
    return f"{what} (txn-audit collect-plan)"
