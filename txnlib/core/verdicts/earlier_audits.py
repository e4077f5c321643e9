"""Earlier audits of the cluster that saw an open transaction. The oldest of them is when it was first seen."""

from __future__ import annotations

from txnlib.core.copies import CoverageRow
from txnlib.core.verdicts.dossier import EarlierAudit


def is_same_transaction(earlier: EarlierAudit, copy: CoverageRow, first_batch_crc: int | None) -> bool | None:
    """Whether an earlier audit saw this transaction: the same topic id and the same first batch; None if nothing
    tells."""
    pairs = ((earlier.topic_id, copy.topic_id), (earlier.first_batch_crc, first_batch_crc))
    known = [left == right for left, right in pairs if left is not None and right is not None]
    if not all(known):
        return False
    return True if known else None
