"""A `.txnindex` file: the aborted transactions whose marker is in its segment.

There is one version on disk, 0, and neither header nor CRC. Kafka: `TransactionIndex`, `AbortedTxn`.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from txnlib.core.kafka.wire import CorruptRecordError

VERSION: Final = 0
ENTRY: Final = struct.Struct(">hqqqq")  # version, producerId, firstOffset, lastOffset, lastStableOffset


class AbortedTxn(NamedTuple):
    """One aborted transaction; `last_offset` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_transaction_index(content: bytes) -> list[AbortedTxn]:
    """The entries in the order of their markers. A fragment at the end is ignored, as in Kafka.

    Raises CorruptRecordError for an unknown version, or if the markers are not in ascending order.
    """
    entries: list[AbortedTxn] = []
    whole = len(content) - len(content) % ENTRY.size
    for position in range(0, whole, ENTRY.size):
        version, *fields = ENTRY.unpack_from(content, position)
        if version != VERSION:
            raise CorruptRecordError(position, f"version {version} of an aborted transaction is not known")
        entry = AbortedTxn(*fields)
        if not 0 <= entry.first_offset <= entry.last_offset or (entries and entries[-1].last_offset >= entry.last_offset):
            raise CorruptRecordError(position, "aborted transactions are not in the order of their markers")
        entries.append(entry)
    return entries
