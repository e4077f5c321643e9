"""What refutes a whole history, up to its limits. Source: docs/rules/abort.md#no-commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import (
    BEFORE_MS,
    COMPACTED,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    MARKER,
    MINUTE,
    NOON,
    SPAN,
    STAMPS,
    judged,
    placed,
)
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.clocks import Clocks, Difference
from txnlib.core.verdicts.dossier import SiblingMarkers
from txnlib.core.verdicts.history import Decided

#: Only the history can prove it.
BARE = {"copy": {"checkpoint_leader_epoch": None}}


# ---- The record that assigned the producer id

#: The owner, the state and the epoch of the newest record of the id -> whether it shows that nothing was ever decided.
NEWEST = [
    ("CURRENT", "Empty", 0, True),
    ("CURRENT", "Empty", 1, False),
    ("CURRENT", "CompleteCommit", 0, False),
    ("ROTATED", "Empty", 0, False),
    ("EXPIRED", "Empty", 0, False),
    ("NEXT", "Empty", 0, False),
]


@pytest.mark.parametrize(("owner", "state", "epoch", "is_whole"), NEWEST)
def test_among_holes_empty_at_epoch_0_shows_that_nothing_was_decided(owner, state, epoch, is_whole):
    claim = {"owner": owner, "state": state, "producer_epoch": epoch, "record_offset": 95}
    row = judged(dossier={"decisions": ()}, span={"markers": ()}, claim=claim, coordinator=COMPACTED, **BARE)
    assert row.safety[2].holds is is_whole


# ---- Epochs of the producer

#: The newest epoch of the coordinator's log and of other partitions; the owner; the coordinator -> whether it is
#: refuted. The open records have epoch 5.
EPOCHS = [
    (4, None, "CURRENT", COORDINATOR, True),
    (5, None, "CURRENT", COORDINATOR, False),
    (5, 6, "CURRENT", COORDINATOR, True),
    (6, 6, "CURRENT", COORDINATOR, False),
    (None, 6, "CURRENT", COORDINATOR, False),
    (4, None, "CURRENT", COMPACTED, True),
    (4, None, "EXPIRED", COORDINATOR, True),
    (4, None, "EXPIRED", COMPACTED, False),
]


@pytest.mark.parametrize(("known", "elsewhere", "owner", "coordinator", "is_refuted"), EPOCHS)
def test_an_epoch_that_the_coordinator_never_assigned_refutes_its_log(known, elsewhere, owner, coordinator, is_refuted):
    row = judged(
        dossier={"newest_epoch": elsewhere},
        claim={"highest_epoch": known, "owner": owner, "record_offset": 95},
        coordinator=coordinator,
    )
    assert row.safe_to_abort is not is_refuted
    assert ("newer producer epoch than all of its records" in row.safety[2].says) is is_refuted


# ---- Markers on other partitions

#: The newest marker of another partition that no decision explains -> whether it refutes a log with all of its records,
#: and one whose holes are older than the decision before the open records.
UNEXPLAINED = [
    (None, False, False),
    (NOON - 10 * MINUTE, True, False),
    (NOON - MINUTE + 20 + CLOCKS_DIFFER_MS, True, False),
    (NOON - MINUTE + 21 + CLOCKS_DIFFER_MS, True, True),
]


@pytest.mark.parametrize(("ms", "of_all", "of_the_rest"), UNEXPLAINED)
def test_an_unexplained_marker_elsewhere_refutes_what_it_is_younger_than(ms, of_all, of_the_rest):
    siblings = (SiblingMarkers(topic="foo", partition=6, newest_unexplained_ms=ms),)
    whole = judged(span={"siblings": siblings}, **BARE)
    assert whole.safety[2].holds is not of_all
    rest = judged(span={"siblings": siblings}, coordinator=replace(COMPACTED, hole_offset=62), **BARE)
    assert rest.safety[2].holds is not of_the_rest


def test_an_unexplained_marker_on_its_own_partition_is_judged_by_itself():
    siblings = (SiblingMarkers(topic="foo", partition=5, newest_unexplained_ms=NOON),)
    assert judged(span={"siblings": siblings}, **BARE).safe_to_abort


# ---- Markers here

#: An ABORT that no decision explains, in front of the own marker or behind it -> whether it refutes a log with all of
#: its records, and one whose holes are older than the decision of the own marker.
HERE = [(39, True, False), (41, True, True)]


@pytest.mark.parametrize(("offset", "of_all", "of_the_rest"), HERE)
def test_an_unexplained_marker_here_refutes_what_it_stands_behind(offset, of_all, of_the_rest):
    other = replace(MARKER, offset=offset, type="ABORT", ms=MARKER.ms + offset - MARKER.offset)
    markers = tuple(sorted((MARKER, other), key=lambda each: each.offset))
    assert judged(span={"markers": markers}, **BARE).safety[2].holds is not of_all
    rest = judged(span={"markers": markers}, coordinator=replace(COMPACTED, hole_offset=62), **BARE)
    assert rest.safety[2].holds is not of_the_rest


# ---- Older than the record that assigned the producer id

#: How much later than the marker, and the stamp behind, the producer id was assigned -> whether that refutes the log.
#: Their clocks were compared with none.
ASSIGNED = [(0, False), (5 * MINUTE, False), (5 * MINUTE + 1, True)]


@pytest.mark.parametrize(("later", "is_refuted"), ASSIGNED)
@pytest.mark.parametrize("of", ["marker", "stamp"])
def test_what_is_older_than_its_producer_id_refutes_the_log(of, later, is_refuted):
    at = NOON - MINUTE + 10
    span = {"markers": (), "stamps": (replace(STAMPS, before_ms=None, behind_ms=at),)}
    if of == "marker":
        span = {"markers": (replace(MARKER, ms=at),), "stamps": (replace(STAMPS, before_ms=None, behind_ms=None),)}
    claim = {"is_first_assigned": True, "created_ms": at + later, "state": "Empty"}
    far = {"copy": {"leader": "1", "checkpoint_leader_epoch": None}, "coordinator_copy": {"leader": "2"}}
    row = judged(dossier={"decisions": ()} if of == "stamp" else {}, span=span, claim=claim, **far)
    assert row.safety[2].holds is not is_refuted
    unassigned = judged(
        dossier={"decisions": ()} if of == "stamp" else {}, span=span, claim=claim | {"is_first_assigned": False}, **far
    )
    assert unassigned.safety[2].holds


# ---- Markers beside holes

#: The partition's clock is half a second ahead of the coordinator's, give or take a second.
APART = {("2", "1"): Difference(offset_ms=500, error_ms=20, differ_ms=1_000)}


@pytest.mark.parametrize(("later", "is_refuted"), [(-1_000, False), (1_500, False), (1_501, True), (None, False)])
def test_a_marker_that_may_be_as_old_as_the_holes_refutes_nothing(later, is_refuted):
    """All that is missing is older than the stamps before the first batch; a decision in a hole explains the marker."""
    hole = NOON - 10 * MINUTE
    row = judged(
        dossier={"decisions": ()},
        span={"markers": (replace(MARKER, ms=None if later is None else hole + later),)},
        claim={"record_offset": 95},
        coordinator=replace(COMPACTED, hole_ms=hole, copies=(replace(COPY, leader="2"),)),
        facts={"clocks": Clocks(measured=APART)},
        **BARE,
    )
    assert row.safety[2].holds is not is_refuted
    assert ("a marker of the producer here" in row.safety[2].says) is is_refuted


# ---- Markers in front of what retention deleted


def decided_here(copy: dict, stamps: tuple, **span: object) -> Decided:
    """The only decision, of a copy and the stamps around the open batch."""
    of = replace(SPAN, stamps=stamps, **span)
    return Case(dossier=DOSSIER, span=of, facts=placed(FACTS, {"copies": (replace(COPY, **copy),)})).decided[-1]


CUT = {"log_start_offset": 10, "first_offset": 10}
DECIDED = DECISION.said_ms
#: The copy, the stamp before the open batch, the one behind it; whether the marker is here -> whether it may have been
#: deleted.
DELETED = [
    ({}, None, DECIDED, False, False),
    (CUT, None, DECIDED, False, True),
    (CUT, None, None, False, True),
    (CUT, None, DECIDED - 1, False, False),
    (CUT, BEFORE_MS, DECIDED, False, False),
    (CUT, None, DECIDED, True, False),
    ({"gap_offset": 20}, None, DECIDED, False, True),
    ({"gap_offset": 20}, BEFORE_MS, DECIDED, False, True),
]


@pytest.mark.parametrize(("copy", "before", "behind", "is_here", "is_deleted"), DELETED)
def test_a_marker_may_have_been_deleted_unless_a_stamp_shows_when_the_log_begins(
    copy, before, behind, is_here, is_deleted
):
    stamps = (replace(STAMPS, before_ms=before, behind_ms=behind),)
    found = decided_here(copy, stamps, markers=(MARKER,) if is_here else ())
    assert found.may_be_deleted is is_deleted
    assert found.is_marked is (True if is_here else None if is_deleted else False)


@pytest.mark.parametrize(("before", "holds"), [(None, True), (DECIDED - 5 * MINUTE, False)])
def test_a_commit_whose_marker_may_have_been_deleted_is_none_that_a_leader_lost(before, holds):
    stamps = (replace(STAMPS, before_ms=before, before_last_ms=before),)
    row = judged(span={"markers": (), "stamps": stamps}, copy=CUT, coordinator=COMPACTED)
    assert row.safety[2].holds is holds
    if not holds:
        assert "a COMMIT marker is due here" in row.safety[2].says
