"""Reports from both sides: what is open, what it blocks, and what to do."""

from __future__ import annotations

from txnlib.spark.reports.open_transactions import open_transactions
from txnlib.spark.reports.transaction_outcomes import transaction_outcomes

__all__ = [
    "open_transactions",
    "transaction_outcomes",
]
