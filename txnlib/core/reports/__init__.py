"""Tables of a run about what is open, blocked, late or ended, and the keys of questions about tables of the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdKey:
    """A transactional id."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class TransactionKey:
    """A transaction in its coordinator's records."""

    transactional_id: str
    coordinator_partition: int
    transaction_number: int

    @property
    def key(self) -> TransactionKey:
        return TransactionKey(self.transactional_id, self.coordinator_partition, self.transaction_number)


@dataclass(frozen=True, slots=True)
class ProducerKey:
    """A producer on a partition."""

    topic: str
    partition: int
    producer_id: int
