"""Rows of the logs that stories and timelines show: single batches out of runs, and leader changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from txnlib.ask.rows import Filter, Row, StoredRun, ms
from txnlib.core.batch_runs import single_batches
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC
from txnlib.errors import MissingTableError

# ---- Single batches from `record_batches`, whose rows may be runs of batches

#: Number of batches in the rows.
COUNT: Final = 'sum(coalesce("batches_count", 1))'
#: Columns without which the batches of a run are not known.
_OF_RUNS: Final = ("base_offset", "last_offset", "offset_gap", "base_sequence", "position", "first_timestamp_ms", "packed_batches")


def first_batches(run: StoredRun, columns: Sequence[str], where: Sequence[Filter], since: int, limit: int) -> list[Row]:
    """The first batches of one producer at or after an offset, by offset."""
    rows = _rows(run, columns, [*where, ("last_offset", ">=", since)], order='"base_offset"', limit=limit + 1)
    return [batch for batch in _singles(columns, rows) if batch["base_offset"] >= since][:limit]


def last_batches(run: StoredRun, columns: Sequence[str], where: Sequence[Filter], before: int, limit: int) -> list[Row]:
    """The last batches of one producer before an offset, by offset."""
    rows = _rows(run, columns, [*where, ("base_offset", "<", before)], order='"base_offset" DESC', limit=limit + 1)
    return [batch for batch in _singles(columns, rows[::-1]) if batch["base_offset"] < before][-limit:]


def batches_between(run: StoredRun, columns: Sequence[str], where: Sequence[Filter], first: int, last: int) -> list[Row]:
    """The batches that begin between two offsets, both included, by offset."""
    rows = _rows(run, columns, [*where, ("last_offset", ">=", first), ("base_offset", "<=", last)])
    found = [batch for batch in _singles(columns, rows) if first <= batch["base_offset"] <= last]
    return sorted(found, key=lambda batch: batch["base_offset"])


def _rows(
    run: StoredRun, columns: Sequence[str], where: Sequence[Filter], *, order: str = "", limit: int | None = None
) -> list[Row]:
    wanted = [*columns, *(name for name in _OF_RUNS if name not in columns)]
    return run.rows("record_batches", wanted, where, order=order, limit=limit)


def _singles(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    for row in rows:
        for batch in single_batches(row):
            yield {name: batch[name] for name in columns}


# ---- The leader changes of partitions, from the cluster's metadata log


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
