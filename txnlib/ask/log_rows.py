"""Rows that stories and timelines share: coordinator records, and leader changes from the cluster's metadata log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from txnlib.ask.rows import Filter, Row, StoredRun, column_names, ms

#: What identifies a transaction of a coordinator: its id, and its number.
Numbered = tuple[str, int]

#: Columns of a coordinator's record from which an event is made.
RECORD: Final = column_names(
    "transactional_id coordinator_partition offset timestamp_ms is_tombstone state transaction_number producer_id"
    " producer_epoch partitions"
)
#: Number of newest states of a partition to read, and of its leader changes to show.
STATES, SHOWN = 1_000, 20
_COLUMNS: Final = (
    "topic",
    "partition",
    "topic_id",
    "leader",
    "leader_epoch",
    "isr",
    "is_unclean",
    "since_offset",
    "since",
)


def leader_changes(run: StoredRun, topic: str, partition: int, since_ms: int | None) -> list[Row]:
    """The states of a partition that begin with another leader or leader epoch, by offset, not before an instant.

    Columns: those of partition_assignments, and at_ms. Empty without a metadata log.
    """
    if since_ms is None:
        return []
    here = [("topic", "=", topic), ("partition", "=", partition), ("since_offset", "IS NOT", None)]
    newest = run.rows("partition_assignments", _COLUMNS, here, order='"since_offset" DESC', limit=STATES)
    changed: list[Row] = []
    before: tuple[object, ...] = ()
    for row in reversed(newest):
        led, at_ms = (row["topic_id"], row["leader"], row["leader_epoch"]), ms(row["since"])
        if led != before and at_ms is not None and at_ms >= since_ms:
            changed.append(row | {"at_ms": at_ms})
        before = led
    return changed[-SHOWN:]


def stored_matches(
    run: StoredRun, topic: str, partition: int, markers: Collection[int], starts: Collection[int]
) -> Mapping[int, Numbered]:
    """The transaction of each marker, and of what is open from each start, by offset, as the audit matched them."""
    found: dict[int, Numbered] = {}
    here: list[Filter] = [("topic", "=", topic), ("partition", "=", partition), ("transaction_number", "IS NOT", None)]
    is_open: list[Filter] = [("first_offset", "IN", starts), ("marker_offset", "IS", None)]
    for name, where in (("first_offset", is_open), ("marker_offset", [("marker_offset", "IN", markers)])):
        columns = (name, "transactional_id", "transaction_number")
        for row in run.rows("transaction_outcomes", columns, [*here, *where], is_optional=True):
            found[row[name]] = row["transactional_id"], row["transaction_number"]
    return found
