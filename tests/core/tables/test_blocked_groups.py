"""Groups that have read everything below a last stable offset. `tests/jobs/test_waiting_groups.py` has whole audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from txnlib.core.copies import CoverageRow
from txnlib.core.rows import OnPartition
from txnlib.core.tables.blocked_groups import (
    BlockedGroup,
    BlockedPartition,
    GroupPosition,
    ReadEnd,
    StableEnd,
    blocked_groups,
)

PLACE = ("orders", 0)
BLOCKED = BlockedPartition(
    *PLACE, last_stable_offset=8, high_watermark=13, blocking_producer_id=7, blocking_transactional_id="t"
)
COPY = CoverageRow(
    *PLACE, source="raw:1", is_judged=True, log_start_offset=0, read_from_offset=0, gap_offset=None, damaged_offset=None
)


def waiting(
    partition: BlockedPartition, *copies: CoverageRow, read_end: int | None = 5, asked: list[Any] | None = None
) -> list[BlockedGroup]:
    """The groups that wait, of which one stands at every offset."""

    def positions(places: Sequence[OnPartition]) -> Sequence[GroupPosition]:
        asked.extend(places) if asked is not None else None
        return [GroupPosition(f"group-{at}", *PLACE, at, 60_000) for at in range(15)] if places else []

    def ends(ranges: Sequence[StableEnd]) -> Sequence[ReadEnd]:
        asked.extend(ranges) if asked is not None else None
        return [ReadEnd(*PLACE, read_end)] if ranges and read_end is not None else []

    return list(blocked_groups([partition], copies, positions, ends, as_of_ms=120_000))


def test_a_group_waits_from_the_readable_end_to_the_last_stable_offset() -> None:
    asked: list[Any] = []
    rows = waiting(BLOCKED, COPY, asked=asked)
    assert [row.committed_offset for row in rows] == [5, 6, 7, 8]
    assert asked == [OnPartition(*PLACE), StableEnd(*PLACE, "raw:1", 8)]
    assert rows[0] == BlockedGroup(120_000, "group-5", *PLACE, 5, 8, 13, 8, 60_000, 7, "t")


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({"damaged_offset": 7}, 7),
        ({"damaged_offset": 9}, 8),
        ({"gap_offset": 7}, 7),
        ({"read_from_offset": 6}, 6),
        ({"log_start_offset": 6}, 6),
        ({"log_start_offset": 3}, 5),
    ],
)
def test_below_what_was_not_read_a_group_may_have_records_to_read(change: dict[str, int], first: int) -> None:
    rows = waiting(BLOCKED, replace(COPY, **change))  # type: ignore[arg-type]
    assert [row.committed_offset for row in rows] == list(range(first, 9))


def test_nothing_to_read_lets_every_group_wait() -> None:
    assert len(waiting(BLOCKED, COPY, read_end=None)) == 9


def test_where_it_is_not_known_what_can_be_read_only_a_group_at_the_last_stable_offset_waits() -> None:
    assert [row.committed_offset for row in waiting(BLOCKED, replace(COPY, is_judged=False))] == [8]
    empty = replace(COPY, log_start_offset=None, read_from_offset=None)
    assert [row.committed_offset for row in waiting(BLOCKED, empty, read_end=None)] == [8]


def test_where_nothing_is_blocked_nothing_is_asked() -> None:
    asked: list[Any] = []
    assert waiting(replace(BLOCKED, high_watermark=8), COPY, asked=asked) == []
    assert asked == []
