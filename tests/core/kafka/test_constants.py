"""Special values and limits of Kafka (docs/rules/transactions.md#limits-and-defaults)."""

import pytest

from txnlib.core.ended_by import REINITIALIZED_WITHIN_MS
from txnlib.core.findings.abandoned_id_findings import (
    FEW,
    LEFT_BEHIND_AFTER_MS,
    MANY_PRODUCER_IDS,
    MANY_TRANSACTIONAL_IDS,
)
from txnlib.core.kafka import constants
from txnlib.core.verdicts.cluster_facts import Thresholds

#: name -> value, with where it stands.
VALUES = {
    "NO_TIMESTAMP": -1,
    "NO_OFFSET": -1,
    "MAX_INT16": 32767,
    "MAX_INT32": 2147483647,
    "MAX_INT64": 9223372036854775807,
    "MAX_SEQUENCE": 2147483647,
    "EXHAUSTED_EPOCH": 32766,
    "TWO_PHASE_COMMIT_TIMEOUTS": {2147483647, -1},  # as brokers write it, as KIP-939 says
    "LATE_TRANSACTION_BUFFER_MS": 300_000,  # five minutes
    "PRODUCER_ID_EXPIRATION_MS": 86_400_000,  # a day, since 3.4
    "TRANSACTION_STATE_TOPIC": "__transaction_state",
    "GROUP_METADATA_TOPIC": "__consumer_offsets",
}
#: Our own limits: a change of one is a decision, and changes verdicts or findings.
LIMITS = [
    (constants.MAX_COORDINATOR_PARTITIONS, 100_000),
    (constants.CLOCKS_DIFFER_MS, 1_000),
    (constants.UNKNOWN_CLOCKS_DIFFER_MS, 300_000),
    (REINITIALIZED_WITHIN_MS, 5_000),
    (LEFT_BEHIND_AFTER_MS, 3_600_000),
    (MANY_TRANSACTIONAL_IDS, 100),
    (MANY_PRODUCER_IDS, 1_000),
    (FEW, 10),
    (Thresholds(as_of_ms=0).timeout_scan_interval_ms, 10_000),  # of the broker
]


@pytest.mark.parametrize("name", VALUES)
def test_a_sentinel_is_kafka_s(name: str) -> None:
    assert getattr(constants, name) == VALUES[name]


@pytest.mark.parametrize(("limit", "expected"), LIMITS)
def test_a_limit_of_our_own_is_kept(limit: int, expected: int) -> None:
    assert limit == expected
