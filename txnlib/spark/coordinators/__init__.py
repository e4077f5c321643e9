"""The coordinators' side: the state of each transactional id."""

from __future__ import annotations

from txnlib.spark.coordinators.console_copies import console_records, console_segments
from txnlib.spark.coordinators.coordinator_states import coordinator_log
from txnlib.spark.coordinators.coordinator_states import coordinator_states
from txnlib.spark.coordinators.transactional_ids import transactional_ids
from txnlib.spark.coordinators.transactional_ids import producer_id_owners
from txnlib.spark.coordinators.transaction_markers import markers_of
from txnlib.spark.coordinators.transactions import transactions
from txnlib.spark.coordinators.transaction_markers import clock

__all__ = [
    "console_records",
    "console_segments",
    "coordinator_log",
    "coordinator_states",
    "transactional_ids",
    "producer_id_owners",
    "markers_of",
    "transactions",
    "clock",
]
