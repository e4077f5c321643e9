"""The row order of Kafka's tool: that of the Java hash tables in which it collects rows.

Kafka does not sort, so its order is that of buckets: the hash of a key, folded, modulo a power of two. With the same order, the
output of the live tool and ours can be compared with `diff`. Keys in the same bucket are in the order of insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from txnlib.core.kafka.coordinator_partition import java_string_hash

Item = TypeVar("Item")
_INT = 0xFFFFFFFF


def long_hash(value: int) -> int:
    """Java's `Long.hashCode`."""
    return (value ^ value >> 32) & _INT


def partition_hash(topic: str, partition: int) -> int:
    """Kafka's `TopicPartition.hashCode`."""
    return (31 * (31 + partition) + java_string_hash(topic)) & _INT


def hash_order(items: Iterable[Item], hash_of: Callable[[Item], int], *, holds: int | None = None, least: int = 16) -> list[Item]:
    """The items in the iteration order of a `HashMap`; `items` are in the order of insertion.

    The map has grown from `least` buckets to its size: the number of items, or `holds` if it contained further ones.
    """
    kept = list(items)
    size = least
    while (len(kept) if holds is None else holds) > size * 3 // 4:  # Java's load factor
        size *= 2

    def bucket(item: Item) -> int:
        value = hash_of(item) & _INT
        return (value ^ value >> 16) & (size - 1)

    return sorted(kept, key=bucket)
