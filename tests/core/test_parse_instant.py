"""Which instant an option names."""

from __future__ import annotations

import pytest

from txnlib.core.instants import parse_instant
from txnlib.errors import UsageError

NOON = 1_795_262_400_000


@pytest.mark.parametrize(
    "given",
    [
        *("2026-11-21T12:00:00Z", "2026-11-21T12:00", "2026-11-21 12:00:00", "2026-11-21T13:00:00+01:00"),
        *("1795262400000", "1795262400", NOON, NOON // 1000),
    ],
)
def test_an_instant_is_the_same_however_it_is_written(given):
    assert parse_instant(given) == NOON


def test_an_instant_has_milliseconds():
    assert parse_instant("2026-11-21T12:00:00.345Z") == NOON + 345


@pytest.mark.parametrize("day", ["2026-11-21", "20261121", "2026-W47-6"])
def test_a_day_is_refused_with_two_of_its_instants(day):
    with pytest.raises(UsageError, match="a day is no instant; give a time of it") as refused:
        parse_instant(day)
    assert str(refused.value).endswith("such as 2026-11-21T02:00:00Z, or of its end, 2026-11-21T23:59:59Z")


def test_a_day_is_its_first_instant_where_something_begins():
    assert parse_instant("2026-11-21", "--since", takes_days=True) == NOON - 43_200_000


@pytest.mark.parametrize(
    "given",
    [
        *("yesterday", "", "2026-13-01", "\u00b2", "-1", "--5", "9" * 20, "9" * 5_000, "9223372036854775807"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_what_is_none_is_refused(given):
    with pytest.raises(UsageError, match="expected"):
        parse_instant(given)
