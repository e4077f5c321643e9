"""Leaders from capture.json and from the metadata log: every case as a row of a grid."""

from dataclasses import replace

import pytest

from tests.support.copies import NOW, assigned, noted
from txnlib.core.copies import LeaderBasis
from txnlib.core.coverage.leaders import leaders

BEFORE, AFTER = NOW - 1, NOW + 1
CURRENT, STALE = LeaderBasis.METADATA_LOG, LeaderBasis.METADATA_LOG_STALE
UNCONFIRMED, DAMAGED = LeaderBasis.METADATA_LOG_UNCONFIRMED, LeaderBasis.METADATA_LOG_DAMAGED

#: Leader in capture.json, in the metadata log (None: the partition is in neither; -1: no leader), since when, basis of
#: the metadata log -> leader that is used, its basis.
LEADERS = {
    "only the notes": (1, None, None, None, ("1", "CAPTURE_JSON")),
    "only the metadata log": (None, 2, BEFORE, CURRENT, ("2", "METADATA_LOG")),
    "only an unconfirmed metadata log": (None, 2, BEFORE, UNCONFIRMED, ("2", "METADATA_LOG_UNCONFIRMED")),
    "only a stale metadata log": (None, 2, BEFORE, STALE, (None, "METADATA_LOG_STALE")),
    "both agree": (2, 2, BEFORE, CURRENT, ("2", "CAPTURE_JSON")),
    "they differ, and the notes are newer": (1, 2, BEFORE, CURRENT, ("1", "CAPTURE_JSON")),
    "they differ, and the election is newer": (1, 2, AFTER, CURRENT, ("2", "METADATA_LOG")),
    "they differ, and a snapshot does not show since when": (1, 2, None, CURRENT, ("1", "CAPTURE_JSON")),
    "the election is newer, but the log is stale": (1, 2, AFTER, STALE, (None, "METADATA_LOG_STALE")),
    "only a damaged metadata log": (None, 2, BEFORE, DAMAGED, ("2", "METADATA_LOG_DAMAGED")),
    "they differ, and the log is damaged": (1, 2, BEFORE, DAMAGED, ("1", "CAPTURE_JSON")),
    "the election is newer, and more may follow": (1, 2, AFTER, DAMAGED, ("2", "METADATA_LOG_DAMAGED")),
    "the metadata log says that there is no leader": (None, -1, BEFORE, CURRENT, ("-1", "METADATA_LOG")),
    "the notes say that there is no leader": (-1, 2, BEFORE, CURRENT, ("-1", "CAPTURE_JSON")),
}


@pytest.mark.parametrize(("leader", "in_log", "since_ms", "basis", "expected"), LEADERS.values(), ids=LEADERS)
def test_who_leads_and_how_that_is_known(leader, in_log, since_ms, basis, expected):
    notes = [] if leader is None else [noted(leader=leader, replicas=[1, 2])]
    states = [] if in_log is None else [assigned("t", in_log, since_ms)]
    (found,) = leaders(notes, states, basis, NOW).values()
    assert (found.leader, found.leader_basis) == expected
    is_assigned = found.leader_basis is not LeaderBasis.CAPTURE_JSON
    assert found.in_sync == (("2", "3") if is_assigned else None)
    assert found.replicas == (("2", "3") if is_assigned else ("1", "2"))
    assert basis is not DAMAGED or found.assigned_leader is None, "it contradicts no note"


def test_without_an_instant_the_notes_are_the_newer() -> None:
    (found,) = leaders([noted(leader=1, replicas=[1])], [assigned("t", 2, AFTER)], CURRENT, None).values()
    assert (found.leader, found.noted_leader, found.assigned_leader) == ("1", "1", "2")


def test_a_leader_leads_since_its_leader_epoch_began() -> None:
    """A record that changes only replicas leaves the leader epoch as it is."""
    now = assigned("t", 2, AFTER)
    (found,) = leaders((), [replace(now, since_ms=BEFORE, is_current=False), now], CURRENT, NOW).values()
    assert (found.led_epoch, found.led_since_ms) == (0, BEFORE)
    (found,) = leaders((), [replace(now, since_ms=None, is_current=False), now], CURRENT, NOW).values()
    assert found.led_since_ms is None, "a snapshot does not show when it began"
    (found,) = leaders(
        (), [replace(now, since_ms=BEFORE, leader_epoch=7, is_current=False), now], CURRENT, NOW
    ).values()
    assert found.led_since_ms == AFTER
