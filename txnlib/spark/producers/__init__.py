"""The partitions' side: the state of each producer on each partition."""

from __future__ import annotations

from txnlib.spark.producers.producer_steps import with_states
from txnlib.spark.producers.producer_spans import producer_spans
from txnlib.spark.producers.producer_states import producer_states
from txnlib.spark.producers.producer_states import partition_transactions
from txnlib.spark.producers.checked_batches import checked_batches

__all__ = [
    "with_states",
    "producer_spans",
    "producer_states",
    "partition_transactions",
    "checked_batches",
]
