"""What the copies of a coordinator partition prove together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import COORDINATOR, COPY, NOON, ONE
from txnlib.core.verdicts.coordinator_copies import begins_at_start, damage_ends_at, standing_of, uncertainties
from txnlib.core.verdicts.dossier import CapturedCopy, CoordinatorPartition

FOLLOWER = replace(COPY, source="raw:2", broker="2", role="OTHER", is_current=False, is_judged=False, known_until_ms=NOON)
CUT = replace(COPY, damaged_offset=80, status="DAMAGED")
CORRUPT = replace(COPY, tail="CORRUPT", ends="SHORT", is_current=False, status="DAMAGED", end_offset=80, survives_until=80)


def of(*copies: CapturedCopy) -> CoordinatorPartition:
    return replace(COORDINATOR, copies=copies)


#: Copies -> the offset below which records are lost in every copy (-1: at the end), and whether absence is shown.
DAMAGE = [
    ((COPY,), None, True),
    ((CUT,), 80, False),
    # Only a copy that contains the damaged offsets makes up for it.
    ((CUT, FOLLOWER), None, True),
    ((CUT, replace(FOLLOWER, survives_until=80)), None, True),
    ((CUT, replace(FOLLOWER, survives_until=79)), 80, False),
    ((CUT, replace(FOLLOWER, damaged_offset=10)), 80, False),
    ((CUT, replace(FOLLOWER, is_decoded=False)), 80, False),
    ((CUT, replace(FOLLOWER, source="console:x")), 80, False),
    ((CUT, replace(FOLLOWER, log_start_offset=5)), 80, False),
    # Of a damaged end, only a current copy that reaches all that is known.
    ((CORRUPT,), -1, False),
    ((CORRUPT, FOLLOWER), -1, False),
    ((CORRUPT, replace(FOLLOWER, is_current=True)), None, True),
    ((CORRUPT, replace(FOLLOWER, is_current=True, survives_until=99)), -1, False),
    ((replace(CUT, damaged_offset=None),), -1, False),
    ((replace(COPY, log_start_offset=5000),), None, False),
    ((replace(COPY, read_from_offset=5000),), None, False),
    ((replace(COPY, is_decoded=False),), None, False),
]


@pytest.mark.parametrize(("copies", "lost", "shows_absence"), DAMAGE)
def test_damage_is_made_up_for_by_a_copy_that_contains_it(copies, lost, shows_absence):
    standing = standing_of(of(*copies))
    found = standing.damaged_offset
    assert (None if found is None else -1 if found > 1 << 60 else found, standing.shows_absence) == (lost, shows_absence)


def test_the_best_copy_is_the_current_and_whole_one():
    assert standing_of(of(FOLLOWER, COPY)).best is COPY
    standing = standing_of(of(FOLLOWER))
    assert (standing.best, standing.is_current, standing.known_until_ms) == (FOLLOWER, False, NOON)
    assert standing_of(of(FOLLOWER, COPY)).known_until_ms == ONE
    nothing = standing_of(of(replace(COPY, status="MISSING")))
    assert (nothing.best, nothing.known_until_ms, nothing.captured_ms, nothing.shows_absence) == (None, None, None, False)


def test_a_copy_begins_at_the_start_of_a_compacted_log_or_lacks_segments():
    assert begins_at_start(COPY)
    assert begins_at_start(replace(COPY, log_start_offset=None, read_from_offset=None))
    assert not begins_at_start(replace(COPY, log_start_offset=1))
    assert damage_ends_at(COPY) is None


#: Change to the only copy -> what makes the partition uncertain.
UNCERTAIN = [
    ({}, None),
    ({"status": "MISSING"}, "was not captured"),
    ({"leader_basis": None}, "is not known for certain"),
    ({"leader_basis": "METADATA_LOG_UNCONFIRMED"}, "is not known for certain"),
    ({"leader_basis": "METADATA_LOG"}, None),
    ({"leader": None}, "is not known for certain"),
    ({"leader": "-1"}, "is not known for certain"),
    ({"role": "FURTHEST"}, "is not known to be current"),
    ({"role": "LAST_LEADER"}, "is not known to be current"),
    ({"is_current": False}, "is not known to be current"),
    ({"damaged_offset": 7}, "is damaged below offset 7"),
    ({"tail": "CORRUPT"}, "is damaged at its end"),
    ({"newest_stamp_ms": ONE + 1_001}, "younger than its noted instant"),
    ({"newest_stamp_ms": ONE + 1_000}, None),
    ({"newest_stamp_ms": None}, None),
    ({"log_start_offset": 5000}, "lacks its first segments"),
    ({"is_decoded": False}, "does not show all of its records"),
    ({"high_watermark": None}, "is not confirmed"),
]


@pytest.mark.parametrize(("change", "said"), UNCERTAIN)
def test_a_coordinator_is_certain_if_its_leaders_copy_is_current_whole_and_confirmed(change, said):
    found = uncertainties(standing_of(of(replace(COPY, **change))))
    assert [said in text for text in found] == ([] if said is None else [True])
