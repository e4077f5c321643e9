"""What the open transactions of a verdict hold, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.ask.extents import Reach
from txnlib.ask.words import clock, where
from txnlib.core.display import counted, elapsed, not_before, printable, some_of

#: Most owners of two-phase commits to name.
NAMED_OWNERS: Final = 2


def held(reach: Reach, as_of_ms: int) -> str:
    """Which partitions they hold, for how long, how many offsets wait there, until when, and how many only wait."""
    waiting = reach.transactions - reach.holding - reach.idle
    if not reach.held and not reach.idle:
        return "it waits behind another" if reach.transactions == 1 else "all wait behind others"
    parts = []
    if reach.held:
        parts += [_partitions(reach, as_of_ms), f"{_offsets(reach)}{_until(reach, as_of_ms)}"]
    if reach.undecided:
        parts.append(_owners(reach.undecided, reach.owners))
    if waiting > 0:
        parts.append(f"{waiting} wait{'s' if waiting == 1 else ''} behind others")
    if reach.idle:
        whom = f"{reach.idle} of them" if reach.idle < reach.transactions else "it" if reach.idle == 1 else "them"
        parts.append(f"nothing waits for {whom} yet")
    return "; ".join(parts)


def _partitions(reach: Reach, as_of_ms: int) -> str:
    places = ", ".join(f"{where(row)} from offset {row['start_offset']}" for row in reach.places)
    verb = "holds" if reach.transactions == 1 else f"{reach.holding} hold{'s' if reach.holding == 1 else ''}"
    if reach.held == 1:
        said = f"{verb} {places or '1 partition'}"
    else:
        more = reach.held - len(reach.places)
        others = f" and {more} more" if places and more else ""
        said = f"{verb} {counted(reach.held, 'partition')}{f' ({places}{others})' if places else ''}"
    if reach.since_ms is None:
        return said
    longest = "" if reach.held == 1 else ", the longest"
    return f"{said}{longest} for {elapsed(as_of_ms - reach.since_ms)} by {clock(is_brokers=reach.is_since_proven)}"


def _offsets(reach: Reach) -> str:
    least = "at least " if reach.is_at_least else ""
    return f"{least}{counted(reach.held_offsets, 'offset')} wait{'s' if reach.held_offsets == 1 else ''}"


def _until(reach: Reach, as_of_ms: int) -> str:
    """By when coordinators end the last of these that they end; empty if they end none, or are overdue."""
    if reach.ends_ms is None or reach.ends_ms < as_of_ms:
        return ""
    last = "the last " if reach.holding - reach.undecided > 1 else ""
    return f"{', ' if last else ' '}{last}until {not_before(reach.ends_ms)}"


def _owners(number: int, owners: Sequence[str]) -> str:
    """Two-phase commits never time out: until when is in their owners' hands."""
    of = some_of([*map(printable, owners)], NAMED_OWNERS)
    until = "until its owner decides" if number == 1 else "until their owners decide"
    return f"{counted(number, 'two-phase commit')} of {of} {until}" if of else f"{number} {until}"
