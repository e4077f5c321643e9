"""The age of an open transaction: by its last write, and as brokers' clocks prove."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from txnlib.core.copies import highest, lowest
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import LATE_TRANSACTION_BUFFER_MS
from txnlib.core.kafka_commands import is_candidate
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.reason import NOBODY_ENDS_IT, Reason


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


def known_at_ms(case: Case) -> int:
    """The instant at which absence is judged: the earliest of `as_of` and the instants up to which both copies are
    known."""
    known = (case.copy.known_until_ms, case.coordinators_known_until_ms)
    return min([case.thresholds.as_of_ms, *[each for each in known if each is not None]])


def last_write_ms(case: Case) -> int | None:
    """The time of the last write, as stamped; None if it is out of range."""
    return clock_ms(case.span.last_timestamp_ms)


def has_outlived_timeout(case: Case, at_ms: int) -> bool:
    """Whether the last write is older than the timeout at an instant: Kafka's own rule for a hanging transaction.

    If the client's clock is ahead of that instant, or its time is out of range, the age that brokers' clocks prove
    counts instead.
    """
    written = last_write_ms(case)
    if written is None or written - at_ms > case.thresholds.clock_tolerance_ms:
        proven = proven_age_ms(case, at_ms)
        return proven is not None and proven > case.thresholds.max_transaction_timeout_ms
    return is_candidate(written, at_ms, case.thresholds.max_transaction_timeout_ms)


def proven_since_ms(case: Case) -> int | None:
    """The oldest instant at which brokers' clocks prove that the transaction was open; None if there is none.

    A transaction is never older than its producer id and epoch, whatever stamps say.
    """
    proofs = [case.stamped_after_ms, case.seen_open_ms]
    if case.span.is_broker_clock:
        proofs.append(case.first_timestamp_ms)
    if case.claim.is_active and case.is_listed:
        proofs.append(case.claim.start_ms)
    proven = lowest(map(clock_ms, proofs))
    return proven if proven is None else highest((proven, case.made_ms))


def proven_age_ms(case: Case, at_ms: int) -> int | None:
    """How long the transaction has been open at an instant, as brokers' clocks prove; None if they prove nothing."""
    since = proven_since_ms(case)
    return None if since is None else max(at_ms - since, 0)


def lateness(case: Case, at_ms: int, limit_ms: int | None = None) -> LateBy | None:
    """The rule by which an expected transaction is late: the brokers' metric, the coordinator's timeout, both, or none.

    `limit_ms`: the brokers' one; by default, that of the audit. Source: docs/rules/transactions.md#late-transactions,
    docs/rules/transactions.md#timeouts-and-expiration.
    """
    written, ends_by = last_write_ms(case), times_out_ms(case)
    limit = case.thresholds.transaction_max_timeout_ms if limit_ms is None else limit_ms
    by_write = written is not None and at_ms - written > limit + LATE_TRANSACTION_BUFFER_MS
    return LATE_BY[by_write, ends_by is not None and at_ms > ends_by]


def times_out_ms(case: Case) -> int | None:
    """By when its coordinator aborts an expected transaction: when its timeout has passed, and a scan has found it."""
    start, timeout = clock_ms(case.claim.start_ms), case.claim.transaction_timeout_ms
    return None if start is None or timeout is None else start + timeout + case.thresholds.timeout_scan_interval_ms


def ages_since(case: Case, reason: Reason) -> bool:
    """Whether the transaction is old enough at `as_of`, but not yet at the instant up to which both copies are
    known."""
    known, as_of = known_at_ms(case), case.thresholds.as_of_ms
    if reason in NOBODY_ENDS_IT:
        return has_outlived_timeout(case, as_of) and not has_outlived_timeout(case, known)
    if reason is Reason.EXPECTED:
        return lateness(case, as_of) is not None and lateness(case, known) is None
    return False
