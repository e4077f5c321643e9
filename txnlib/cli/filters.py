"""The filters of `list`, as a broker applies them. Kafka: `TransactionStateManager`."""

from __future__ import annotations

from collections.abc import Sequence

from txnlib.errors import UsageError


def runs_longer(start_ms: int | None, now_ms: int, filter_ms: int | None) -> bool:
    """Whether a transaction has been running for longer (KIP-994). Below 0, and not given: all do.

    The broker takes -1 for the start of an id without a transaction, so that an id in Empty passes; and it looks at no state,
    so that one passes whose transaction has ended, by the start that it had.
    """
    if filter_ms is None or filter_ms < 0:
        return True
    return now_ms - (-1 if start_ms is None else start_ms) > filter_ms


def matches_whole(pattern: str | None, names: Sequence[str]) -> list[bool]:
    """Whether an RE2 expression matches each name from beginning to end (KIP-1152); an empty one matches all.

    Brokers use RE2J, the same language in Java: no look-around, no references back, time linear in the name. Python's `re`
    would allow both, and read some expressions otherwise. Raises UsageError for what is none.
    """
    if not pattern:
        return [True] * len(names)
    import pyarrow as pa
    import pyarrow.compute as pc  # brings RE2

    try:
        pc.match_substring_regex(pa.array([""]), pattern)  # alone first: "a)|(b" is wrong, though not in brackets
        matched = pc.match_substring_regex(pa.array(names, pa.string()), rf"\A(?:{pattern})\z")
    except pa.ArrowInvalid as error:
        raise UsageError(f"--transactional-id-pattern {pattern}: {str(error)[:200]}") from error
    return [bool(each) for each in matched.to_pylist()]
