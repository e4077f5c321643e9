"""The identity of a client that keeps its prepared transaction.

Source: KIP-939, examples A and B; `TransactionMetadata.isEpochExhausted`. Brokers up to 4.3 refuse `keepPreparedTxn`.
"""

from __future__ import annotations

from dataclasses import dataclass

from txnlib.core.kafka.constants import EXHAUSTED_EPOCH


@dataclass(frozen=True, slots=True)
class Identity:
    """A producer id and epoch. None: a new producer id, which no log shows yet."""

    producer_id: int | None
    producer_epoch: int


def kept_identity(producer_id: int, producer_epoch: int, next_producer_id: int | None, next_producer_epoch: int | None) -> Identity:
    """What InitProducerId with keepPreparedTxn=true would return next, beside the ongoing identity, which stays as it is.

    The next pair is what the last such call returned. Without one, the client still has the ongoing identity.
    """
    has_next = next_producer_id is not None and next_producer_epoch is not None and next_producer_epoch >= 0
    held = Identity(next_producer_id, next_producer_epoch or 0) if has_next else Identity(producer_id, producer_epoch)
    if held.producer_epoch >= EXHAUSTED_EPOCH:
        return Identity(None, 0)
    return Identity(held.producer_id, held.producer_epoch + 1)
