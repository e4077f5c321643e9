"""What is odd in the log: Spark selects it, and the core makes findings of it.

A module selects the rows for the module of its name in `core.findings`: `producer_findings`, `marker_findings`,
`transaction_index_findings`, `copy_findings`, `coordinator_findings`, `live_answer_findings`.
"""

from __future__ import annotations

from typing import Final

from txnlib.core.findings.metadata_findings import metadata_findings
from txnlib.spark.findings import (
    coordinator_findings,
    copy_findings,
    marker_findings,
    producer_findings,
    transaction_index_findings,
)
from txnlib.spark.findings.live_answer_findings import live_answer_findings

#: Rules that judge each row by itself.
RULES: Final = (
    *coordinator_findings.RULES,
    *producer_findings.RULES,
    *marker_findings.RULES,
    *copy_findings.RULES,
    *transaction_index_findings.RULES,
)
#: Functions whose rules need settings or small tables as well.
OTHERS: Final = (
    metadata_findings,
    producer_findings.producer_findings,
    coordinator_findings.id_findings,
    coordinator_findings.owner_findings,
    coordinator_findings.unfinished_transactions,
    live_answer_findings,
)
