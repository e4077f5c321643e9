"""The reason of an open transaction by its records, as grids."""

from __future__ import annotations

from itertools import product

import pytest

from tests.core.verdicts.test_verdict import COMPLETE, MARKED, ONGOING, PARTITION, PREPARED
from tests.support.cases import case, decided, replace, with_marker
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.reason import (
    REASONS_OF_OTHERS,
    REASONS_OF_OWNER,
    DecisionMarker,
    LastRecord,
    Reason,
    last_record,
    marker_state,
    reason_by_records,
)

#: Rows: what the id's last record makes of the partition. Columns: the marker of its decision. -: no evidence leads
#: there.
GRID = """
          NOT_WRITTEN                   WRITTEN               REFUSED                         MAY_BE_REFUSED
NOTHING   PARTITION_NOT_IN_TRANSACTION  WRITTEN_AFTER_MARKER  -                               -
ONGOING   EXPECTED                      -                     EPOCH_AHEAD_OF_COORDINATOR      BROKER_VERSION_UNKNOWN
PREPARED  MARKER_PENDING                WRITTEN_AFTER_MARKER  MARKER_REFUSED                  MARKER_PENDING
"""

#: One case for each cell that evidence reaches.
MISSED = decided("ABORT", 5, decided_ms=1, completed_ms=2)
V2 = {"client_transaction_version": 2, "transaction_version": 2}
REACHED = {
    ("NOTHING", "NOT_WRITTEN"): (PARTITION, COMPLETE, "3.9.1"),
    ("NOTHING", "WRITTEN"): (MARKED, COMPLETE, "3.9.1"),
    ("ONGOING", "NOT_WRITTEN"): (MARKED, ONGOING, "3.9.1"),
    ("ONGOING", "REFUSED"): (replace(PARTITION, producer_epoch=7), ONGOING, "3.9.1"),
    ("ONGOING", "MAY_BE_REFUSED"): (replace(PARTITION, producer_epoch=6), ONGOING, None),
    ("PREPARED", "NOT_WRITTEN"): (PARTITION, PREPARED, "3.9.1"),
    ("PREPARED", "WRITTEN"): (MARKED, PREPARED, "3.9.1"),
    ("PREPARED", "REFUSED"): (replace(PARTITION, producer_epoch=6), PREPARED, "3.9.1"),
    ("PREPARED", "MAY_BE_REFUSED"): (PARTITION, replace(PREPARED, **V2), None),
}

#: Owner -> reason, if its last record does not decide.
OTHERS = {
    "NOBODY": "PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR",
    "ROTATED": "PRODUCER_ID_ROTATED",
    "EXPIRED": "TRANSACTIONAL_ID_EXPIRED",
    "NEXT": "PARTITION_NOT_IN_TRANSACTION",
}


def cells() -> list[tuple[str, str, Reason]]:
    """What the record makes, the marker, the reason."""
    header, *rows = GRID.strip().splitlines()
    return [
        (held, column, Reason(cell))
        for held, *row in map(str.split, rows)
        for column, cell in zip(header.split(), row, strict=True)
        if cell != "-"
    ]


def test_the_table_of_a_current_owner_is_the_grid():
    assert {(LastRecord(held), DecisionMarker(column)): reason for held, column, reason in cells()} == REASONS_OF_OWNER


@pytest.mark.parametrize(("held", "column", "reason"), cells())
def test_evidence_leads_to_its_cell(held, column, reason):
    partition, coordinator, version = REACHED[held, column]
    given = case(partition, coordinator, version=version)
    assert (last_record(given).value, marker_state(given).value) == (held, column)
    assert reason_by_records(given) is reason


def test_no_evidence_leads_to_an_empty_cell():
    """All combinations of what the two functions read; a decision that is not listed, or not made, has no marker to
    refuse."""
    reached = set()
    partitions = [replace(p, producer_epoch=epoch, coordinator_epoch=19 + by) for p in (PARTITION, MARKED)
                  for epoch, by in product((4, 5, 6, 7), (0, 1))]  # fmt: skip
    for state, is_listed, cluster, decision in product(
        (None, *TransactionState), (False, True), (None, 2), (None, MISSED, with_marker(MISSED, True))
    ):
        fields = {"state": state, "is_listed": is_listed, "decision": decision}
        coordinator = replace(ONGOING, client_transaction_version=cluster, transaction_version=cluster, **fields)
        for partition, version in product(partitions, (None, "3.9.1", "4.2.0")):
            given = case(partition, coordinator, version=version)
            reached.add((last_record(given).value, marker_state(given).value))
    assert reached == {(held, column) for held, column, _ in cells()} == set(REACHED)


def test_the_table_of_other_owners_is_the_grid():
    assert {Owner(owner): Reason(reason) for owner, reason in OTHERS.items()} == REASONS_OF_OTHERS
    assert {Owner(owner) for owner in OTHERS} == set(Owner) - {Owner.CURRENT}


@pytest.mark.parametrize("owner", OTHERS)
@pytest.mark.parametrize("record", [ONGOING, COMPLETE, PREPARED])
def test_the_last_record_of_another_owner_decides_nothing(owner, record):
    assert reason_by_records(case(MARKED, replace(record, owner=Owner(owner)))).value == OTHERS[owner]


#: How much later than the decision its marker is stamped -> whether it is the one of the decision.
STAMPED = {-1_001: False, -1_000: True, 0: True, 60_000: True}


@pytest.mark.parametrize("later", STAMPED)
def test_without_its_records_a_marker_is_of_a_decision_if_it_is_not_older(later):
    marked = replace(MARKED, marker_ms=PREPARED.last_update_ms + later)
    state = marker_state(case(marked, replace(PREPARED, decision=None)))
    assert (state is DecisionMarker.WRITTEN) is STAMPED[later]


def test_a_time_that_a_dump_does_not_show_is_ignored():
    undated = replace(PREPARED, decision=None, last_update_ms=None)
    assert marker_state(case(MARKED, undated)) is DecisionMarker.WRITTEN
    assert (
        marker_state(case(replace(MARKED, marker_ms=None), replace(PREPARED, decision=None))) is DecisionMarker.WRITTEN
    )
