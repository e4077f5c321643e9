"""The state of a marker, and whole outcomes, against grids by hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.core.verdicts.marker_states import (
    MARKER_STATES,
    MEANINGS,
    WHOLE_MEANINGS,
    WHOLE_OUTCOMES,
    DecisionState,
    MarkerEvidence,
    MarkerState,
    WholeOutcome,
    whole_outcome,
)

#: Rows: what the coordinator says. Columns: what the copy shows.
GRID = """
             AGREES  DIFFERS        ABSENT     HIDDEN
NOT_KNOWN    FOUND   FOUND          UNDECIDED  UNKNOWN
OPEN         EARLY   EARLY          UNDECIDED  UNDECIDED
TWO_PHASE    EARLY   EARLY          IN_DOUBT   IN_DOUBT
DECIDED      FOUND   CONTRADICTING  PENDING    UNKNOWN
COMPLETE     FOUND   CONTRADICTING  MISSING    UNKNOWN
"""


def _grid():
    head, *rows = [line.split() for line in GRID.strip().splitlines()]
    return {(row[0], seen): state for row in rows for seen, state in zip(head, row[1:], strict=True)}


def test_the_table_is_the_grid():
    assert {(decision.value, seen.value): state.value for (decision, seen), state in MARKER_STATES.items()} == _grid()
    assert set(MARKER_STATES) == set(product(DecisionState, MarkerEvidence))


#: Markers on the partitions of one transaction -> its outcome.
WHOLE_BY_HAND = [
    ("FOUND", "COMPLETE"),
    ("FOUND FOUND", "COMPLETE"),
    ("FOUND CONTRADICTING", "SPLIT"),
    ("CONTRADICTING", "SPLIT"),
    ("CONTRADICTING MISSING UNKNOWN", "SPLIT"),
    ("FOUND MISSING", "HALF_MARKED"),
    ("FOUND PENDING", "HALF_MARKED"),
    ("PENDING", "HALF_MARKED"),
    ("EARLY UNDECIDED", "HALF_MARKED"),
    ("EARLY IN_DOUBT", "HALF_MARKED"),
    ("MISSING UNKNOWN", "HALF_MARKED"),
    ("FOUND UNKNOWN", "IN_DOUBT"),
    ("UNKNOWN", "IN_DOUBT"),
    ("IN_DOUBT IN_DOUBT", "IN_DOUBT"),
    ("UNDECIDED UNDECIDED", "OPEN"),
]


@pytest.mark.parametrize(("markers", "outcome"), WHOLE_BY_HAND)
def test_partitions_together_make_an_outcome(markers, outcome):
    assert whole_outcome(map(MarkerState, markers.split())) is WholeOutcome(outcome)


def test_a_transaction_without_partitions_has_no_outcome():
    assert whole_outcome([]) is None


def test_every_state_has_one_outcome_and_a_meaning():
    assert sorted(state for any_of in WHOLE_OUTCOMES.values() for state in any_of) == sorted(MarkerState)
    assert set(MEANINGS) == set(MarkerState)
    assert set(WHOLE_MEANINGS) == set(WholeOutcome) == set(WHOLE_OUTCOMES)


@given(st.lists(st.sampled_from(MarkerState), min_size=1), st.sampled_from(MarkerState))
def test_one_more_partition_never_makes_an_outcome_better(states, more):
    ranks = list(WHOLE_OUTCOMES)
    assert ranks.index(whole_outcome([*states, more])) <= ranks.index(whole_outcome(states))


@given(st.lists(st.sampled_from(MarkerState), min_size=1))
def test_the_order_of_partitions_does_not_matter(states):
    assert whole_outcome(states) is whole_outcome(reversed(states))


def test_complete_means_that_every_marker_was_found():
    for states in product(MarkerState, repeat=2):
        assert (whole_outcome(states) is WholeOutcome.COMPLETE) == (set(states) == {MarkerState.FOUND})
