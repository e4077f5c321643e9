"""`producer_id_blocks`: which broker was given which producer ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.metadata.changes import MetadataChange, in_order

#: Kafka: `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`.
BLOCK_SIZE: Final = 1_000
TYPES: Final = (MetadataType.PRODUCER_IDS,)


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord(MetadataChange):
    """A row of `metadata_log`."""

    broker_id: int | None = None
    broker_epoch: int | None = None
    next_producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class GivenBlock:
    """A row of `producer_id_blocks`."""

    first_producer_id: int
    last_producer_id: int
    broker_id: int | None
    broker_epoch: int | None
    offset: int | None
    allocated_at_ms: int | None


def producer_id_blocks(metadata_log: Sequence[ProducerIdsRecord]) -> Iterator[GivenBlock]:
    """A row for each block.

    A record contains the producer id after its block, which begins after the block before. Kafka: `ProducerIdControlManager`.
    """
    before: int | None = None
    for record in in_order(metadata_log):
        following = record.next_producer_id
        if following is not None:
            first = max(following - BLOCK_SIZE, 0) if before is None else before
            if first < following:
                block = first, following - 1, record.broker_id, record.broker_epoch
                yield GivenBlock(*block, record.since_offset, record.since_ms)
        before = following
