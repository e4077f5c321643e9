"""The filters of `list`, as a broker applies them. Kafka: `TransactionStateManager`."""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.core.kafka.wire import on_disk
from txnlib.errors import UsageError


def runs_longer(start_ms: int | None, now_ms: int, filter_ms: int | None) -> bool:
    """Whether a transaction has been running for longer (KIP-994). True if the limit is negative or not given.

    The broker uses -1 as the start of an id without a transaction, so an id in Empty passes. It ignores the state, so an id whose
    transaction has ended passes by the start of that transaction.
    """
    if filter_ms is None or filter_ms < 0:
        return True
    return now_ms - on_disk(start_ms) > filter_ms


def matches_whole(pattern: str | None, names: Sequence[str]) -> list[bool]:
    """Whether an RE2 expression matches each name from beginning to end (KIP-1152); an empty one matches all.

    Brokers use RE2J, the same language in Java: no look-around, no backreferences, linear time. Python's `re` allows both, and
    interprets some expressions differently. Raises UsageError for an invalid expression.
    """
    if not pattern:
        return [True] * len(names)
    import re2

    quiet = re2.Options()
    quiet.log_errors = False  # otherwise it also prints them
    try:
        expression = re2.compile(pattern, quiet)
    except re2.error as error:
        raise UsageError(f"--transactional-id-pattern {pattern}: {error.args[0].decode(errors='replace')[:200]}") from error
    return [expression.fullmatch(name) is not None for name in names]
