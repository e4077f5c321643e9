"""What earlier audits saw of an open transaction, and what they read.

Compaction may have removed since what they read. It is stored with each open transaction, so each night has what all
nights read that saw it. No conclusion is carried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from txnlib.core.copies import CoverageRow
from txnlib.core.verdicts.dossier import CoordinatorDecision, EarlierAudit, Hole


def holes(tonight: Hole | None, by: EarlierAudit | None, newest_record: int | None) -> tuple[Hole, ...]:
    """The records about a producer id that are missing both in this capture and in what earlier audits read, oldest
    first. `tonight`: those missing in this capture. `by`: the newest audit that read this log.

    `newest_record`: the offset of the newest record of its id. Compaction removes a record only if a newer one of its
    key is there.
    """
    read = None if by is None else by.carried
    if by is None or read is None or tonight is None:
        return () if tonight is None else (tonight,)
    before = () if read.is_assigned_behind else read.holes
    known = tuple(replace(each, until_run=each.until_run or by.run_id) for each in before)
    is_filled = tonight.end_offset <= read.until_offset + 1
    if is_filled or (newest_record is not None and newest_record <= read.until_offset):
        return known
    behind = replace(
        tonight,
        after_offset=read.until_offset,
        after_ms=read.until_ms,
        after_epoch=read.until_epoch,
        since_run=by.run_id if read.is_current else None,
    )
    return (*known, behind)


#: The number of newest audits that are always kept.
_NEWEST: Final = 4


def telling(audits: Sequence[EarlierAudit], named: Collection[str | None]) -> list[EarlierAudit]:
    """The audits that a world needs, oldest first. If a transaction is open for years, it does not need all. `named`:
    run ids that holes name.

    An audit between two that saw the same leader epoch, for the same reason, is left out: it could only tell more
    exactly when a decision was complete.
    """
    last = len(audits) - 1
    return [
        each
        for number, each in enumerate(audits)
        if number == 0
        or last - number < _NEWEST
        or each.run_id in named
        or _seen(each) != _seen(audits[number - 1])
        or _seen(each) != _seen(audits[number + 1])
    ]


def _seen(audit: EarlierAudit) -> tuple[int | None, str | None]:
    return audit.newest_leader_epoch, audit.reason


def with_earlier(
    decisions: Sequence[CoordinatorDecision], earlier: Iterable[CoordinatorDecision]
) -> list[CoordinatorDecision]:
    """The decisions of this capture and of earlier audits. A decision that both read is one, with the records of
    both."""
    return list(_merged(decisions, list(earlier)))


def _merged(
    decisions: Sequence[CoordinatorDecision], earlier: list[CoordinatorDecision]
) -> Iterator[CoordinatorDecision]:
    for each in decisions:
        same = next((other for other in earlier if are_one(each, other)), None)
        if same is not None:
            earlier.remove(same)
        if same is None or each.first_record_offset <= same.first_record_offset:
            yield each
        elif each.last_record_offset <= same.last_record_offset:
            yield same
        else:
            yield replace(
                same,
                state=each.state,
                stamped_epoch=each.stamped_epoch,
                last_record_offset=each.last_record_offset,
                completed_ms=each.completed_ms,
            )
    yield from earlier


def are_one(left: CoordinatorDecision, right: CoordinatorDecision) -> bool:
    """Whether both are about one transaction: their records overlap, or both began at the same time."""
    if (left.transactional_id, left.coordinator_partition) != (right.transactional_id, right.coordinator_partition):
        return False
    overlap = left.first_record_offset <= right.last_record_offset and (
        right.first_record_offset <= left.last_record_offset
    )
    return overlap or (left.start_ms is not None and left.start_ms == right.start_ms)


def is_same_transaction(earlier: EarlierAudit, copy: CoverageRow, first_batch_crc: int | None) -> bool | None:
    """Whether an earlier audit saw this transaction: the same topic id and the same first batch; None if neither is
    known."""
    pairs = ((earlier.topic_id, copy.topic_id), (earlier.first_batch_crc, first_batch_crc))
    known = [left == right for left, right in pairs if left is not None and right is not None]
    if not all(known):
        return False
    return True if known else None


@dataclass(frozen=True, slots=True)
class Seen:
    """How often audits saw a transaction, this one included, and the instant of the first, in epoch ms."""

    first_seen_ms: int
    runs_seen: int


def seen(earlier: Iterable[EarlierAudit], copy: CoverageRow, first_batch_crc: int | None, as_of_ms: int) -> Seen:
    """By which audits a transaction was seen, or may have been. `earlier`: those with an open transaction at that
    place."""
    found = [each for each in earlier if is_same_transaction(each, copy, first_batch_crc) is not False]
    instants = {each.run_id: each.as_of_ms for each in found}
    return Seen(min(instants.values(), default=as_of_ms), 1 + len(instants))
