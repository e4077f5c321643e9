"""Whose clock stamped a record, and which decision it can be of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_case import case_of
from tests.support.dossier_samples import (
    CLAIM,
    COMPACTED,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    MARKER,
    MINUTE,
    SPAN,
)
from txnlib.core.cluster_metadata import Election
from txnlib.core.verdicts.clock_bounds import ClockBounds
from txnlib.core.verdicts.match import Comparison, began_later_by_epoch
from txnlib.core.verdicts.whose_clock import Clocks, Difference, clocks_by_epoch

OFF = ClockBounds(coordinator_clock="1", clock="7", lower_ms=9 * MINUTE, upper_ms=9 * MINUTE, pairs=3)


@pytest.mark.parametrize(("epoch", "is_off"), [(2, True), (3, False), (None, False)])
def test_a_leader_that_is_not_known_may_be_any_replica(epoch, is_off):
    copies = (COPY, replace(COPY, source="raw:7", broker="7", is_judged=False))
    stamps = (replace(SPAN.stamps[0], leader_epoch=3 if epoch is None else epoch),)
    found = case_of(
        facts=replace(FACTS, clocks=Clocks(bounds=(OFF,))), place={"copies": copies}, stamps=stamps, markers=()
    )
    unknown = found.compared_clocks.unknown
    assert unknown == ({"foo-5@2": 9 * MINUTE - 20} if is_off else {})


#: Elections of the topic -> the clocks by leader epoch.
LEADERS = [
    ((), {3: "1"}),
    ((Election(offset=1, at_ms=1, leader=2, leader_epoch=2),), {2: "2", 3: "1"}),
    ((Election(offset=1, at_ms=1, leader=2, leader_epoch=None),), {3: "1"}),
    ((Election(offset=1, at_ms=1, leader=None, leader_epoch=2),), {3: "1"}),
]


@pytest.mark.parametrize(("elections", "expected"), LEADERS)
def test_elections_show_whose_clock_stamped_a_leader_epoch(elections, expected):
    assert clocks_by_epoch((COPY,), elections) == expected


def test_elections_of_another_topic_of_that_name_show_no_clock():
    other = Election(offset=1, at_ms=1, leader=2, leader_epoch=2, topic_id="BBBB")
    assert clocks_by_epoch((COPY,), (other,)) == {3: "1"}
    bare = replace(COPY, topic_id=None, leader_epoch=None, checkpoint_leader_epoch=None)
    assert clocks_by_epoch((bare,), (replace(other, topic_id=None),)) == {-1: "1"}
    assert clocks_by_epoch((replace(COPY, is_judged=False),), ()) == {}


@pytest.mark.parametrize(
    ("outcome", "epoch", "version", "expected"),
    [
        ("COMMIT", 6, 0, False),
        ("COMMIT", 7, 0, True),
        ("ABORT", 7, 0, False),
        ("ABORT", 8, 0, True),
        ("COMMIT", 7, 2, True),
        ("COMMIT", None, 0, False),
    ],
)
def test_a_transaction_of_a_newer_epoch_began_later(outcome, epoch, version, expected):
    """The open records have epoch 5. A COMMIT raises that by one, an ABORT of 4.0.0 by two."""
    of = replace(DECISION, outcome=outcome, decided_epoch=epoch, transaction_version=version)
    assert began_later_by_epoch(of, SPAN) is expected


#: Leader epochs of the Prepare and of the last record -> how far the marker's clock is ahead of each one's clock.
STAMPED_BY = [((1, 2), (10, 20)), ((None, 2), (20, 20)), ((1, None), (20, 20)), ((2, 2), (20, 20))]


@pytest.mark.parametrize(("epochs", "expected"), STAMPED_BY)
def test_a_prepare_has_the_clock_of_its_leader(epochs, expected):
    named = {("__transaction_state", 3): {1: "a", 2: "b"}, ("foo", 5): {3: "c"}}
    measured = {(there, "c"): Difference(offset_ms=ms, error_ms=1) for there, ms in (("a", 10), ("b", 20))}
    compared = Comparison(Clocks(named=named, measured=measured).of("foo", 5))
    of = replace(DECISION, coordinator_epoch=epochs[0], stamped_epoch=epochs[1])
    found = compared.prepared(of, MARKER), compared.stamped(of, MARKER)
    assert tuple(each.offset_ms for each in found) == expected


@pytest.mark.parametrize(
    ("place", "epoch", "expected"),
    [(("foo", 5), 2, 10 * MINUTE), (("foo", 5), 3, 0), (("foo", 5), None, 0), (("foo", 6), 2, 0)],
)
def test_a_clock_that_is_not_known_moved_as_far_as_that_of_any_replica(place, epoch, expected):
    moved = replace(OFF, coordinator_clock="9", lower_ms=10 * MINUTE, upper_ms=0)
    copies = (COPY, replace(COPY, source="raw:7", broker="7", is_judged=False))
    found = case_of(facts=replace(FACTS, clocks=Clocks(bounds=(moved,))), place={"copies": copies})
    assert found.moved_ms(*place, epoch) == expected


@pytest.mark.parametrize(
    ("log", "leader", "expected"),
    [(COORDINATOR, "1", True), (COORDINATOR, "2", True), (COMPACTED, "1", True), (COMPACTED, "2", None)],
)
def test_a_marker_may_be_of_a_hidden_decision_where_clocks_do_not_tell(log, leader, expected):
    """Compaction may hide one in front of the one that is known, if their clocks may differ by five minutes."""
    waiting = replace(DECISION, state="PrepareCommit", completed_ms=None)
    of = replace(DOSSIER, claims=(replace(CLAIM, record_offset=95),), decisions=(waiting,))
    coordinator = replace(log, copies=(replace(COPY, leader=leader),))
    (found,) = case_of(of, replace(FACTS, coordinators=(coordinator,))).marked
    assert found.is_marked is expected
