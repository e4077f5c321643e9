"""The partition of `__transaction_state` that owns a transactional id.

Source: docs/rules/transactions.md#coordinator-partition-of-an-id.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

#: Largest number of coordinator partitions to try.
MOST_PARTITIONS: Final = 1_000


class CountBasis(StrEnum):
    """How the number of coordinator partitions is known (docs/rules/copies.md#number-of-coordinator-partitions)."""

    #: By an option, the settings, capture.json or the cluster's metadata log.
    GIVEN = "GIVEN"
    #: Kafka's default of 50, which no captured id refutes.
    DEFAULT = "DEFAULT"
    #: Ids refute 50 and allow only one number up to 1,000.
    ASSUMED = "ASSUMED"
    #: Ids refute 50 and allow several numbers; the smallest is used.
    AMBIGUOUS = "AMBIGUOUS"


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


def count_partitions(owned: Iterable[tuple[str, int]], *, at_least: int, default: int) -> tuple[int, CountBasis]:
    """The number of coordinator partitions that `(transactional_id, partition)` pairs of records allow, and its basis.

    Ids can refute a number but not prove one: ids of 50 partitions that were found in the first 10 may also fit 10. So
    the default is used unless it is refuted, and partitions that were not captured count as missing. If it is refuted,
    the smallest number from `at_least` up that fits every id is assumed. If none fits (mixed clusters), it is the
    default, or more if more were seen.
    """
    pairs = set(owned)
    fits = [n for n in range(max(at_least, 1), MOST_PARTITIONS + 1) if all(partition_for(i, n) == p for i, p in pairs)]
    if not fits or default in fits or not pairs:
        count = max(default, at_least)
        return count, CountBasis.DEFAULT if count == default and (fits or not pairs) else CountBasis.AMBIGUOUS
    return fits[0], CountBasis.ASSUMED if len(fits) == 1 else CountBasis.AMBIGUOUS
