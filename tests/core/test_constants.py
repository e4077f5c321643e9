"""Special values and limits of Kafka (semantics.md 0)."""

from __future__ import annotations

import pytest

from txnlib.core.kafka import constants

#: name -> value, with where it stands.
VALUES = {
    "NO_TIMESTAMP": -1,
    "NO_PRODUCER_ID": -1,
    "NO_PRODUCER_EPOCH": -1,
    "NO_SEQUENCE": -1,
    "NO_OFFSET": -1,
    "NO_COORDINATOR_EPOCH": -1,
    "NO_PARTITION_LEADER_EPOCH": -1,
    "MAX_SEQUENCE": 2147483647,
    "EXHAUSTED_EPOCH": 32766,
    "TWO_PHASE_COMMIT_TIMEOUTS": {2147483647, -1},  # as brokers write it, as KIP-939 says
    "LATE_TRANSACTION_BUFFER_MS": 300_000,  # five minutes
    "TIMEOUT_SCAN_INTERVAL_MS": 10_000,
    "PRODUCER_ID_EXPIRATION_MS": 86_400_000,  # a day, since 3.4
    "TRANSACTION_STATE_TOPIC": "__transaction_state",
    "GROUP_METADATA_TOPIC": "__consumer_offsets",
}


@pytest.mark.parametrize("name", VALUES)
def test_a_sentinel_is_kafka_s(name: str) -> None:
    assert getattr(constants, name) == VALUES[name]
