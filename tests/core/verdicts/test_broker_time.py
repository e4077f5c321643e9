"""Brokers' clocks around a record: an interval, or nothing."""

from __future__ import annotations

import pytest

from tests.support.dossier_samples import MINUTE, NOON
from txnlib.core.verdicts.dossier import EpochStamps
from txnlib.core.verdicts.dossier_evidence import before_first_ms, latest_bound_ms, newest_ms

FIVE = 5 * MINUTE

#: Stamps behind a record, a stamp before it, how far the clock is behind -> the latest time at which it was written.
BOUNDS = [
    ([NOON], None, None, NOON),
    ([NOON + 9, NOON], None, None, NOON),
    ([None, 0, -1, NOON], None, None, NOON),
    ([], NOON, None, None),
    # A stamp behind that is older than one before proves nothing, unless clocks may differ that much.
    ([NOON], NOON + FIVE, None, NOON + FIVE),
    ([NOON], NOON + FIVE + 1, None, None),
    ([NOON, NOON + 2 * FIVE], NOON + FIVE + 1, None, NOON + 2 * FIVE),
    ([946_684_800_000], NOON, None, None),
    # A clock that is behind is corrected, one that is ahead is not.
    ([NOON], None, -1_001, NOON + 1_001),
    ([NOON], None, -1_000, NOON),
    ([NOON], None, 60_000, NOON),
    ([NOON], NOON + FIVE + 1, -2 * FIVE, NOON + 2 * FIVE),
]


@pytest.mark.parametrize(("behind", "floor", "lag", "expected"), BOUNDS)
def test_a_record_is_not_younger_than_a_stamp_behind_it(behind, floor, lag, expected):
    assert latest_bound_ms(behind, floor, lag) == expected


def test_the_newest_of_some_times_is_one_that_a_clock_shows():
    assert newest_ms([None, 0, NOON, NOON - 1]) == NOON
    assert newest_ms([None, -5]) is None
    assert (
        before_first_ms([EpochStamps(before_ms=NOON), EpochStamps(before_ms=None), EpochStamps(before_ms=NOON + 1)])
        == NOON + 1
    )
