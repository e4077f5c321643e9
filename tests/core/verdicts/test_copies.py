"""The instant up to which a copy is known (docs/rules/copies.md#current-copies)."""

from __future__ import annotations

from itertools import product

import pytest

from txnlib.core.copies import ROLES, End, Role, is_current, known_until_ms, leader_basis

#: Rows: role. Columns: WHOLE, TORN, SHORT. C: known up to its capture, S: up to its newest broker-stamped record.
GRID = """
LEADER       C S S
LAST_LEADER  C S S
FURTHEST     C S S
OTHER        S S S
"""
CELLS = {"C": True, "S": False}


def test_a_copy_is_known_up_to_its_capture_only_where_it_is_whole_and_the_leaders():
    written = {}
    for line in GRID.strip().splitlines():
        role, *cells = line.split()
        written |= {(Role(role), end): CELLS[cell] for end, cell in zip(End, cells, strict=True)}
    assert written == {each: is_current(*each) for each in product(Role, End)}


#: Role -> words that only its meaning has.
WORDS = {
    "LEADER": "the leader's copy",
    "LAST_LEADER": "the last leader's copy",
    "FURTHEST": "the copy that reaches furthest",
    "OTHER": "not the leader's copy",
}


@pytest.mark.parametrize("role", WORDS)
def test_a_role_is_told_in_its_own_words(role):
    assert ROLES[Role(role)].startswith(WORDS[role])
    assert set(ROLES) == {Role(each) for each in WORDS} == set(Role)


#: captured, newest stamp -> known until, of a current copy and of another.
INSTANTS = [
    (100, 60, 100, 60),
    (100, 120, 100, 100),  # a broker's clock ahead of the operator's
    (100, None, 100, None),
    (None, 60, 60, 60),  # without a noted instant it is assumed
    (None, None, None, None),
]


@pytest.mark.parametrize(("captured", "stamped", "current", "other"), INSTANTS)
def test_what_is_not_current_is_as_old_as_its_newest_stamp(captured, stamped, current, other):
    assert known_until_ms(Role.LEADER, End.WHOLE, captured, stamped) == current
    assert known_until_ms(Role.OTHER, End.WHOLE, captured, stamped) == other


#: (lag in ms, NoOpRecords, how much younger the newest record of any broker is) -> basis.
BASES = [
    (None, True, None, "METADATA_LOG_UNCONFIRMED"),
    (-600_000, True, 0, "METADATA_LOG"),
    (5_000, True, None, "METADATA_LOG"),
    (5_001, True, None, "METADATA_LOG_UNCONFIRMED"),
    (10_000, True, None, "METADATA_LOG_UNCONFIRMED"),
    (10_001, True, None, "METADATA_LOG_STALE"),
    (10_001, True, 5_000, "METADATA_LOG_STALE"),
    (10_001, True, 5_001, "METADATA_LOG_UNCONFIRMED"),
    (18_000, False, None, "METADATA_LOG"),
    (18_001, False, None, "METADATA_LOG_UNCONFIRMED"),
    (86_400_000, False, None, "METADATA_LOG_UNCONFIRMED"),
]


@pytest.mark.parametrize(("lag_ms", "has_no_ops", "newer_ms", "basis"), BASES)
def test_what_leaders_of_a_metadata_log_are_worth(lag_ms, has_no_ops, newer_ms, basis):
    assert leader_basis(lag_ms, has_no_ops=has_no_ops, newer_ms=newer_ms) == basis
