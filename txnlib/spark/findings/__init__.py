"""What is odd in the log: Spark selects it, and the core makes findings of it."""

from __future__ import annotations

from txnlib.spark.findings.producer_findings import abandoned_producer_findings, corrupt_batch_findings, producer_findings
from txnlib.spark.findings.coordinator_findings import abandoned_id_findings, id_findings, owner_findings, record_findings
from txnlib.spark.findings.marker_findings import (
    early_write_findings,
    marker_findings,
    undecided_abort_findings,
    unmarked_findings,
)
from txnlib.spark.findings.copy_findings import copy_findings, record_copy_findings
from txnlib.spark.findings.transaction_index_findings import indexed_abort_findings, unindexed_abort_findings
from txnlib.spark.findings.live_answer_findings import live_answer_findings

__all__ = [
    "producer_findings",
    "abandoned_producer_findings",
    "corrupt_batch_findings",
    "record_findings",
    "id_findings",
    "owner_findings",
    "abandoned_id_findings",
    "marker_findings",
    "unmarked_findings",
    "early_write_findings",
    "undecided_abort_findings",
    "copy_findings",
    "record_copy_findings",
    "unindexed_abort_findings",
    "indexed_abort_findings",
    "live_answer_findings",
]
