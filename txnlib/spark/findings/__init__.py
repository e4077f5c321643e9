"""What is odd in the log: Spark selects it, and the core makes findings of it."""

from __future__ import annotations

from typing import Final

from txnlib.core.findings.coordinator_records import of_abandoned_ids, of_abandoned_producers
from txnlib.core.findings.coordinator_records import of_records
from txnlib.core.findings.contradictions import of_copies, of_indexed, of_replicas, of_unindexed
from txnlib.core.findings.odd_markers import of_early_writes, of_markers, of_undecided_aborts, of_unmarked
from txnlib.core.findings.producer_batches import of_corrupt_batches
from txnlib.spark.coordinators.transaction_markers import lost_markers
from txnlib.spark.findings.coordinator_findings import abandoned_ids, id_findings, odd_records, owner_findings
from txnlib.spark.findings.copy_findings import differing_batches, differing_records
from txnlib.spark.findings.live_answer_findings import live_answer_findings
from txnlib.spark.findings.marker_findings import early_writes, odd_markers, undecided_aborts
from txnlib.spark.findings.producer_findings import abandoned_producers, corrupt_batches, producer_findings
from txnlib.spark.findings.copy_findings import lost_aborts, open_on_replicas, unindexed_aborts

#: Rules that judge each row by itself: what Spark selects for each, and the function of the core.
RULES: Final = (
    (odd_records, of_records),
    (abandoned_ids, of_abandoned_ids),
    (abandoned_producers, of_abandoned_producers),
    (corrupt_batches, of_corrupt_batches),
    (odd_markers, of_markers),
    (lost_markers, of_unmarked),
    (early_writes, of_early_writes),
    (undecided_aborts, of_undecided_aborts),
    (differing_batches, of_copies),
    (differing_records, of_copies),
    (open_on_replicas, of_replicas),
    (unindexed_aborts, of_unindexed),
    (lost_aborts, of_indexed),
)
#: Functions whose rules need settings or small tables as well.
OTHERS: Final = (producer_findings, id_findings, owner_findings, live_answer_findings)

__all__ = ["RULES", "OTHERS"]
