"""Events that an earlier audit read, and this capture may lack: compaction has removed them since.

They are stored with each open transaction, so each night has those of all nights that saw it. No conclusion is carried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from txnlib.core.verdicts.dossier import Carried, CoordinatorDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Records of a coordinator's log that are missing: those below an offset, or between two."""

    end_offset: int
    #: The newest time of what stands in front of its end, and whose clock that is.
    ms: int | None = None
    epoch: int | None = None
    #: The last record in front of it that was read; None: it may begin with the log.
    after_offset: int | None = None
    after_ms: int | None = None
    after_epoch: int | None = None


def holes(tonight: Hole | None, carried: Carried | None, newest_record: int | None) -> tuple[Hole, ...]:
    """What is missing of the records about a producer id, oldest first.

    `newest_record`: the offset of the newest record of its id. Compaction removes a record only if a newer one of its
    key is there.
    """
    if carried is None or tonight is None:
        return () if tonight is None else (tonight,)
    before = () if carried.since_offset is None or carried.is_assigned_behind else (
        Hole(end_offset=carried.since_offset, ms=carried.since_ms, epoch=carried.since_epoch),
    )  # fmt: skip
    is_filled = tonight.end_offset <= carried.until_offset + 1
    if is_filled or (newest_record is not None and newest_record <= carried.until_offset):
        return before
    behind = replace(
        tonight, after_offset=carried.until_offset, after_ms=carried.until_ms, after_epoch=carried.until_epoch
    )
    return (*before, behind)


def with_earlier(
    decisions: Sequence[CoordinatorDecision], earlier: Iterable[CoordinatorDecision]
) -> list[CoordinatorDecision]:
    """The decisions, with those that only an earlier audit read, and what only it read of them."""
    return list(_merged(decisions, list(earlier)))


def _merged(
    decisions: Sequence[CoordinatorDecision], earlier: list[CoordinatorDecision]
) -> Iterator[CoordinatorDecision]:
    for each in decisions:
        same = next((other for other in earlier if _are_one(each, other)), None)
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


def _are_one(left: CoordinatorDecision, right: CoordinatorDecision) -> bool:
    """Whether both are one transaction: their records overlap, or one ends what the other began."""
    if (left.transactional_id, left.coordinator_partition) != (right.transactional_id, right.coordinator_partition):
        return False
    overlap = left.first_record_offset <= right.last_record_offset and (
        right.first_record_offset <= left.last_record_offset
    )
    return overlap or (left.start_ms is not None and left.start_ms == right.start_ms)
