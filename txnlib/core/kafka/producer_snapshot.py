"""A broker's `.snapshot` file: the state of every producer of a partition before an offset.

There is one version on disk, 1. Kafka: `ProducerStateManager.writeSnapshot`, `readSnapshot`.
"""

from __future__ import annotations

import struct
from typing import Final

from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.wire import CorruptRecordError, optional

VERSION: Final = 1
HEADER: Final = struct.Struct(">hIi")  # version, CRC-32C of everything from the count on, count
ENTRY: Final = struct.Struct(
    ">q"  # producerId
    "h"  # producerEpoch
    "i"  # lastSequence
    "q"  # lastOffset
    "i"  # offsetDelta
    "q"  # timestamp
    "i"  # coordinatorEpoch
    "q"  # currentTxnFirstOffset
)
CRC_STARTS_AT: Final = 6


def stored_crc(content: bytes) -> int:
    """The stored CRC-32C of everything from byte 6 on. The caller checks it."""
    if len(content) < HEADER.size:
        raise CorruptRecordError(0, f"a snapshot has at least {HEADER.size} bytes, this one {len(content)}")
    return int(HEADER.unpack_from(content)[1])


def read_producer_snapshot(content: bytes) -> dict[int, ProducerState]:
    """State by producer id. Raises CorruptRecordError for an unknown version or a size that does not match the count."""
    stored_crc(content)
    version, _crc, count = HEADER.unpack_from(content)
    if version != VERSION:
        raise CorruptRecordError(0, f"snapshot version {version} is not known")
    if count < 0 or len(content) != HEADER.size + count * ENTRY.size:
        raise CorruptRecordError(CRC_STARTS_AT, f"{count} entries are promised in {len(content)} bytes")
    producers = {}
    for fields in ENTRY.iter_unpack(content[HEADER.size :]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = fields
        producers[producer_id] = ProducerState(
            producer_epoch=optional(epoch),
            last_sequence=optional(last_sequence),
            last_offset=optional(last_offset),
            offset_delta=offset_delta,
            coordinator_epoch=optional(coordinator_epoch),
            current_txn_first_offset=optional(first_offset),
            last_timestamp=optional(timestamp),
        )
    return producers
