"""The leader changes of partitions, from the cluster's metadata log."""

from __future__ import annotations

from typing import Final

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.errors import MissingTableError
from txnlib.queries.rows import Row, StoredRun, ms

#: Number of newest states of a partition to read, and of its leader changes to show.
STATES, SHOWN = 1_000, 20
METADATA_LOG: Final = f"{CLUSTER_METADATA_TOPIC}-0"
_COLUMNS: Final = ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "is_unclean", "since_offset", "since")


def leader_changes(run: StoredRun, topic: str, partition: int, since_ms: int | None) -> list[Row]:
    """The states of a partition that begin with another leader or leader epoch, by offset, not before an instant.

    Columns: those of partition_assignments, and at_ms. Empty without a metadata log, and for tables of earlier versions.
    """
    if since_ms is None:
        return []
    here = [("topic", "=", topic), ("partition", "=", partition), ("since_offset", "IS NOT", None)]
    try:
        newest = run.rows("partition_assignments", _COLUMNS, here, order='"since_offset" DESC', limit=STATES)
    except MissingTableError:
        return []
    states = newest[::-1]
    before = [None, *states]
    changed = [row | {"at_ms": ms(row["since"])} for row, last in zip(states, before, strict=False) if _is_change(row, last)]
    return [row for row in changed if row["at_ms"] is not None and row["at_ms"] >= since_ms][-SHOWN:]


def _is_change(row: Row, before: Row | None) -> bool:
    return before is None or any(row[name] != before[name] for name in ("topic_id", "leader", "leader_epoch"))


def change_text(row: Row) -> tuple[str, str]:
    """What happened, and to which partition: `leader 1` and `orders-0, leader epoch 2, in sync 1, 3`."""
    what = "no leader" if row["leader"] is None else f"leader {row['leader']}"
    in_sync = ", ".join(map(str, row["isr"] or ())) or "none"
    detail = f"{row['topic']}-{row['partition']}, leader epoch {row['leader_epoch']}, in sync {in_sync}"
    return (f"unclean {what}" if row["is_unclean"] else what), detail
