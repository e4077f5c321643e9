"""The party that ended a transaction: its client, its coordinator, or an operator.

A client ends its own transaction with EndTxn. A coordinator aborts a transaction that timed out, or whose transactional
id a new producer has initialised (InitProducerId, which `forceTerminateTransaction` and `fenceProducers` send, too).
Source: docs/rules/transactions.md#epochs-at-the-end-of-a-transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS

#: How soon after the end the Empty record of a new producer follows, because its client retries until the abort is
#: complete.
REINITIALIZED_WITHIN_MS: Final = 5_000


class EndedBy(StrEnum):
    CLIENT = "CLIENT"
    TIMEOUT = "TIMEOUT"
    #: A new producer of the same transactional id, or an administrator.
    NEW_PRODUCER = "NEW_PRODUCER"
    #: The coordinator: the transaction timed out, or a new producer initialised the id; which one is not known.
    COORDINATOR = "COORDINATOR"
    UNKNOWN = "UNKNOWN"


class EpochStep(Enum):
    """How the epoch changed from the transaction's last Ongoing record to its Prepare record."""

    #: Transactions v0 and v1: an EndTxn keeps the epoch.
    KEPT = "KEPT"
    #: A coordinator's own abort raises it, for a client without transactions v2; by two in Kafka 4.0.0.
    RAISED = "RAISED"
    #: With transactions v2 every end raises it.
    RAISED_BY_V2 = "RAISED_BY_V2"
    #: Raised, and the version of the client is unknown.
    RAISED_BY_SOMEBODY = "RAISED_BY_SOMEBODY"
    #: The abort of an empty transaction, which only a client of transactions v2 requests.
    NOTHING_ADDED = "NOTHING_ADDED"
    #: The Ongoing records are lost.
    UNKNOWN = "UNKNOWN"


class Age(Enum):
    """Whether the transaction was older than its timeout when it was decided."""

    IN_TIME = "IN_TIME"
    TIMED_OUT = "TIMED_OUT"
    UNKNOWN = "UNKNOWN"


#: Step and age -> who aborted before the timeout, if no new producer follows at once. In all other cases nobody knows.
_ABORTED_BY: Final[Mapping[tuple[EpochStep, Age], EndedBy]] = {
    (EpochStep.RAISED, Age.IN_TIME): EndedBy.NEW_PRODUCER,
    (EpochStep.RAISED, Age.UNKNOWN): EndedBy.COORDINATOR,
    (EpochStep.RAISED_BY_V2, Age.IN_TIME): EndedBy.CLIENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the records of one decided transaction show; None if unknown."""

    is_commit: bool
    #: Epochs of the last Ongoing record and of the Prepare record.
    ongoing_epoch: int | None
    prepared_epoch: int | None
    #: Transaction version of the client, from the Ongoing record.
    client_version: int | None
    #: Whether the transaction began with its Prepare record, according to all records of its id.
    is_without_ongoing: bool
    #: Time from the beginning to the decision.
    open_ms: int | None
    timeout_ms: int | None
    #: Whether a record that gives the id to a new producer follows within `REINITIALIZED_WITHIN_MS`.
    is_reinitialized: bool


def ended_by(ending: Ending) -> EndedBy:
    """Who decided the transaction."""
    step, age = _step(ending), _age(ending)
    # Only clients commit.
    if ending.is_commit or step in (EpochStep.KEPT, EpochStep.NOTHING_ADDED):
        return EndedBy.CLIENT
    if age is Age.TIMED_OUT:
        return EndedBy.TIMEOUT
    if ending.is_reinitialized and step is not EpochStep.UNKNOWN:
        return EndedBy.NEW_PRODUCER
    return _ABORTED_BY.get((step, age), EndedBy.UNKNOWN)


def _step(ending: Ending) -> EpochStep:
    if ending.is_without_ongoing:
        return EpochStep.NOTHING_ADDED
    if ending.ongoing_epoch is None or ending.prepared_epoch is None:
        return EpochStep.UNKNOWN
    if ending.prepared_epoch == ending.ongoing_epoch:
        return EpochStep.KEPT
    if ending.client_version is None:
        return EpochStep.RAISED_BY_SOMEBODY
    # Only Kafka 4.0.0 raises the epoch by two, and only if its coordinator aborts (KAFKA-19367).
    is_own_step = ending.client_version >= 2 and ending.prepared_epoch == ending.ongoing_epoch + 1
    return EpochStep.RAISED_BY_V2 if is_own_step else EpochStep.RAISED


def _age(ending: Ending) -> Age:
    if ending.timeout_ms in TWO_PHASE_COMMIT_TIMEOUTS:
        return Age.IN_TIME
    if ending.open_ms is None or ending.timeout_ms is None:
        return Age.UNKNOWN
    return Age.TIMED_OUT if ending.open_ms >= ending.timeout_ms else Age.IN_TIME
