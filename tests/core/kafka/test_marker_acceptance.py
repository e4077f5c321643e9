"""Acceptance of a marker by a partition (docs/rules/transactions.md#epochs-of-markers)."""

from itertools import product

import pytest

from txnlib.core.kafka.marker_acceptance import (
    ACCEPTANCES,
    Acceptance,
    Brokers,
    MarkerEpoch,
    MarkerVersion,
    acceptance,
    record_epochs,
)

#: Rows: the marker's epoch and the brokers. Columns: V0_OR_V1, V2, UNKNOWN. a: accepted, r: refused, ?: by version.
GRID = """
LOWER  BEFORE_4_2  r r r
LOWER  FROM_4_2    r r r
LOWER  UNKNOWN     r r r
EQUAL  BEFORE_4_2  a a a
EQUAL  FROM_4_2    a r ?
EQUAL  UNKNOWN     a ? ?
HIGHER BEFORE_4_2  a a a
HIGHER FROM_4_2    a a a
HIGHER UNKNOWN     a a a
"""
CELLS = {"a": Acceptance.ACCEPTED, "r": Acceptance.REFUSED, "?": Acceptance.DEPENDS_ON_VERSION}


def test_markers_are_accepted_by_epoch_and_from_4_2_on_by_transaction_version():
    written = {}
    for line in GRID.strip().splitlines():
        epoch, brokers, *cells = line.split()
        row = zip(MarkerVersion, cells, strict=True)
        written |= {(MarkerEpoch(epoch), Brokers(brokers), version): CELLS[cell] for version, cell in row}
    assert written == ACCEPTANCES
    assert set(ACCEPTANCES) == set(product(MarkerEpoch, Brokers, MarkerVersion))


#: seen, marker's epoch, brokers, transaction version -> accepted.
CASES = [
    (5, 5, "4.1.1", 2, "a"),
    (5, 5, "4.2.0", 2, "r"),
    (5, 6, "4.2.0", 2, "a"),
    (5, 5, "4.2.0", 1, "a"),
    (5, 4, "3.9.1", None, "r"),
    (5, 5, "3.9.1", None, "a"),  # clusters before 4.0 have no transaction version 2
    (5, 5, "3.9.1", 2, "a"),
    (32767, 32767, "4.3.0", 2, "a"),  # the last epoch has no successor
    (32766, 32766, "4.3.0", 2, "r"),
    (5, 5, None, 2, "?"),
    (5, 5, "trunk", None, "?"),
    (5, 6, None, None, "a"),
]


@pytest.mark.parametrize(("seen", "marker", "version", "transactions", "expected"), CASES)
def test_by_versions_as_people_note_them(seen, marker, version, transactions, expected):
    assert acceptance(seen, marker, version, transactions) is CELLS[expected]


@pytest.mark.parametrize(("version", "highest"), [(None, 7), (0, 7), (1, 7), (2, 6), (3, 6)])
@pytest.mark.parametrize(("outcome", "lowest"), [("COMMIT", 6), ("ABORT", 5)])
def test_an_end_of_transactions_v2_raises_the_epoch_and_before_it_only_a_coordinator_does(
    outcome, lowest, version, highest
):
    """docs/rules/transactions.md#epochs-at-the-end-of-a-transaction"""
    assert record_epochs(7, outcome, version) == (lowest, highest)
