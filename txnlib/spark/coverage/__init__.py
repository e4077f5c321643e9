"""What each copy of a log contains, and what it proves."""

from __future__ import annotations

from txnlib.spark.coverage.coverage import coverage, lowered
from txnlib.spark.coverage.contradicted_batches import contradicted_batches
from txnlib.spark.coverage.deleted_topics import with_gone
from txnlib.spark.coverage.quarantine import quarantine

__all__ = [
    "coverage",
    "lowered",
    "contradicted_batches",
    "with_gone",
    "quarantine",
]
