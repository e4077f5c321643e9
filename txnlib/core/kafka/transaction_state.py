"""The states of a transactional id, and the legal steps between them. Kafka: `TransactionState`.

`STEPS` alone decides whether a step between two *records* is legal. The log is not the memory of the coordinator: Dead
and PrepareEpochFence are never written, and a step through them appears as its two ends (Ongoing -> PrepareAbort).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The byte code in a record; `kafka_name` is what Kafka's tools print."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))


BY_KAFKA_NAME: Final[Mapping[str, TransactionState]] = {state.kafka_name: state for state in TransactionState}

_S = TransactionState

#: States of a transaction that its coordinator has yet to finish.
ACTIVE_STATES: Final = frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT})
PREPARED_STATES: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETE_STATES: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
#: States that exist only in the coordinator's memory. A record with one of them is a finding by itself.
NEVER_WRITTEN_STATES: Final = frozenset({_S.DEAD, _S.PREPARE_EPOCH_FENCE})


class Step(IntEnum):
    """The kind of a step between two consecutive records of one transactional id."""

    LEGAL = 0
    #: Legal only as a retried append of the same value (docs/rules/transactions.md#phantom-appends).
    RETRY = 1
    #: Legal only for transactions v2 (4.0+).
    TRANSACTIONS_V2 = 2
    ILLEGAL = 3


#: (state before, state after) -> kind of the step. None means "no record, or a tombstone".
STEPS: Final[Mapping[tuple[TransactionState | None, TransactionState | None], Step]] = {
    (before, after): Step.ILLEGAL for before in (None, *TransactionState) for after in (None, *TransactionState)
} | {
    (None, None): Step.LEGAL,  # an id whose first write failed expires without a record
    (None, _S.EMPTY): Step.LEGAL,
    (_S.EMPTY, None): Step.LEGAL,
    (_S.COMPLETE_COMMIT, None): Step.LEGAL,
    (_S.COMPLETE_ABORT, None): Step.LEGAL,
    (_S.EMPTY, _S.EMPTY): Step.LEGAL,
    (_S.EMPTY, _S.ONGOING): Step.LEGAL,
    (_S.EMPTY, _S.PREPARE_ABORT): Step.TRANSACTIONS_V2,
    (_S.ONGOING, _S.ONGOING): Step.LEGAL,
    (_S.ONGOING, _S.PREPARE_COMMIT): Step.LEGAL,
    (_S.ONGOING, _S.PREPARE_ABORT): Step.LEGAL,
    (_S.PREPARE_COMMIT, _S.PREPARE_COMMIT): Step.RETRY,
    (_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT): Step.LEGAL,
    (_S.PREPARE_ABORT, _S.PREPARE_ABORT): Step.RETRY,
    (_S.PREPARE_ABORT, _S.COMPLETE_ABORT): Step.LEGAL,
    (_S.COMPLETE_COMMIT, _S.EMPTY): Step.LEGAL,
    (_S.COMPLETE_COMMIT, _S.ONGOING): Step.LEGAL,
    (_S.COMPLETE_COMMIT, _S.PREPARE_ABORT): Step.TRANSACTIONS_V2,
    (_S.COMPLETE_COMMIT, _S.COMPLETE_COMMIT): Step.RETRY,
    (_S.COMPLETE_ABORT, _S.EMPTY): Step.LEGAL,
    (_S.COMPLETE_ABORT, _S.ONGOING): Step.LEGAL,
    (_S.COMPLETE_ABORT, _S.PREPARE_ABORT): Step.TRANSACTIONS_V2,
    (_S.COMPLETE_ABORT, _S.COMPLETE_ABORT): Step.RETRY,
}
