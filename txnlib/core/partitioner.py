"""Which partition of `__transaction_state` owns a transactional id? Kafka: `TransactionStateManager.partitionFor`."""

from __future__ import annotations

from collections.abc import Iterable


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, wrapping at 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(transactional_id: str, partitions: int) -> int:
    """The coordinator partition of an id; abs(Integer.MIN_VALUE) counts as 0 (Kafka: `Utils.abs`)."""
    value = java_string_hash(transactional_id)
    return 0 if value == -(1 << 31) else abs(value) % partitions


def count_partitions(owned: Iterable[tuple[str, int]], *, at_least: int, default: int) -> int:
    """The number of coordinator partitions that `(transactional_id, partition)` pairs of records prove or allow.

    The smallest number that puts every id where it was found, from `at_least` up; `default` where nothing was found or
    nothing fits (mixed clusters). One or two ids prove little: then the default wins if it fits.
    """
    pairs = set(owned)
    fits = [n for n in range(max(at_least, 1), 1001) if all(partition_for(i, n) == p for i, p in pairs)]
    if not fits or (not pairs and at_least <= default):
        return max(default, at_least)
    if default in fits and len(pairs) < 3:
        return default
    return fits[0]
