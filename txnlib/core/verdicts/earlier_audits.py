"""Earlier audits of the cluster that saw an open transaction. The oldest of them is when it was first seen."""

from __future__ import annotations

from dataclasses import dataclass

from txnlib.core.copies import CoverageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAudit:
    """A row of an earlier audit about a transaction with the same place, producer and first offset."""

    run_id: str
    as_of_ms: int
    #: Up to when its copy of the partition was known; None if not known.
    copied_ms: int | None = None
    topic_id: str | None = None
    first_batch_crc: int | None = None
    reason: str | None = None
    newest_leader_epoch: int | None = None
    #: Offset of the last record of its transactional id.
    record_offset: int | None = None
    #: Whether it proved that no COMMIT includes the records.
    proves_no_commit: bool = False
    safe_to_abort: bool = False
    #: From when on it called an abort safe.
    safe_from_ms: int | None = None

    @property
    def is_promised(self) -> bool:
        """Whether it called an abort safe, from some instant on."""
        return self.safe_to_abort or self.safe_from_ms is not None


def is_same_transaction(earlier: EarlierAudit, copy: CoverageRow, first_batch_crc: int | None) -> bool | None:
    """Whether an earlier audit saw this transaction: the same topic id and the same first batch; None if nothing
    tells."""
    pairs = ((earlier.topic_id, copy.topic_id), (earlier.first_batch_crc, first_batch_crc))
    known = [left == right for left, right in pairs if left is not None and right is not None]
    if not all(known):
        return False
    return True if known else None
