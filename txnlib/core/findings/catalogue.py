"""Every finding by its name, and every rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txnlib.core.finding import Finding
from txnlib.core.findings import (
    abandoned_id_findings,
    coordinator_findings,
    copy_findings,
    live_answer_findings,
    marker_findings,
    metadata_findings,
    producer_findings,
    rule,
    transaction_findings,
    transaction_index_findings,
)
from txnlib.core.findings.rule import Rule
from txnlib.core.kafka import odd_coordinator_records, producer_state

#: The modules whose rules find something, in the order in which the documents list their findings.
_MODULES: Final = (
    producer_state,
    producer_findings,
    rule,
    odd_coordinator_records,
    coordinator_findings,
    marker_findings,
    transaction_findings,
    abandoned_id_findings,
    copy_findings,
    metadata_findings,
    transaction_index_findings,
    live_answer_findings,
)
FINDINGS: Final[Mapping[str, Finding]] = {
    found.name: found for module in _MODULES for found in vars(module).values() if isinstance(found, Finding)
}
#: The rules of these modules, each once.
RULES: Final = tuple(found for module in _MODULES for found in vars(module).values() if isinstance(found, Rule))
