"""What refutes a whole history, up to its limits. Source: docs/rules/abort.md#no-commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import COMPACTED, COORDINATOR, MARKER, MINUTE, NOON, STAMPS, judged
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.verdicts.dossier import SiblingMarkers

#: Only the history can prove it.
BARE = {"copy": {"checkpoint_leader_epoch": None}}


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
