"""The age of an open transaction, with the clock that measures it.

If only the absence of later records shows an age, it is measured up to the oldest copy that was searched for them, not up to the
audit. Source: docs/rules/copies.md#age.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import LATE_TRANSACTION_BUFFER_MS
from txnlib.core.verdicts.evidence import Evidence, Thresholds
from txnlib.core.verdicts.find_hanging import is_candidate


class LateBy(StrEnum):
    LAST_WRITE = "LAST_WRITE"
    COORDINATOR_START = "COORDINATOR_START"
    BOTH = "BOTH"


#: (the last write is older than the brokers' limit, the coordinator's timeout has passed) -> how it is late.
LATE_BY: Final[Mapping[tuple[bool, bool], LateBy | None]] = {
    (False, False): None,
    (True, False): LateBy.LAST_WRITE,
    (False, True): LateBy.COORDINATOR_START,
    (True, True): LateBy.BOTH,
}


def known_at_ms(evidence: Evidence, thresholds: Thresholds) -> int:
    """The instant at which absence is judged: the earliest of `as_of` and the instants up to which both copies are known."""
    known = (evidence.on_partition.known_until_ms, evidence.at_coordinator.known_until_ms)
    return min([thresholds.as_of_ms, *[each for each in known if each is not None]])


def last_write_ms(evidence: Evidence) -> int | None:
    """The time of the last write, as stamped; None if it is out of range."""
    return clock_ms(evidence.on_partition.last_timestamp_ms)


def is_old_enough(evidence: Evidence, thresholds: Thresholds, at_ms: int) -> bool:
    """Whether the last write is older than the timeout at an instant: Kafka's own rule for a hanging transaction.

    If the client's clock is ahead of that instant, or its time is out of range, the age that brokers' clocks prove counts instead.
    """
    written = last_write_ms(evidence)
    if written is None or written - at_ms > thresholds.clock_tolerance_ms:
        proven = proven_age_ms(evidence, at_ms)
        return proven is not None and proven > thresholds.max_transaction_timeout_ms
    return is_candidate(written, at_ms, thresholds.max_transaction_timeout_ms)


def proven_since_ms(evidence: Evidence) -> int | None:
    """The oldest instant at which brokers' clocks prove that the transaction was open; None if there is none."""
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    proofs = [partition.stamped_after_ms, partition.first_seen_ms]
    if partition.is_broker_clock:
        proofs.append(partition.first_timestamp_ms)
    if coordinator.is_active and coordinator.is_listed:
        proofs.append(coordinator.transaction_start_ms)
    return min((proof for proof in map(clock_ms, proofs) if proof is not None), default=None)


def proven_age_ms(evidence: Evidence, at_ms: int) -> int | None:
    """How long the transaction has been open at an instant, as brokers' clocks prove; None if they prove nothing."""
    since = proven_since_ms(evidence)
    return None if since is None else max(at_ms - since, 0)


def lateness(evidence: Evidence, thresholds: Thresholds, at_ms: int) -> LateBy | None:
    """The rule by which an expected transaction is late: the brokers' metric, the coordinator's timeout, both, or none.

    Source: docs/rules/transactions.md#late-transactions, docs/rules/transactions.md#timeouts-and-expiration.
    """
    written, coordinator = last_write_ms(evidence), evidence.at_coordinator
    limit = thresholds.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    by_write = written is not None and at_ms - written > limit
    start, timeout = clock_ms(coordinator.transaction_start_ms), coordinator.transaction_timeout_ms
    by_start = start is not None and timeout is not None and at_ms > start + timeout + thresholds.timeout_scan_interval_ms
    return LATE_BY[by_write, by_start]
