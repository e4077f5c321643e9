"""What the copies of a coordinator partition prove together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import COORDINATOR, COPY, FACTS, NOON, ONE
from txnlib.core.copies import CoverageRow
from txnlib.core.verdicts.cluster_facts import ClusterFacts
from txnlib.core.verdicts.coordinators import CoordinatorPartition, Coordinators, uncertainties

FOLLOWER = replace(
    COPY, source="raw:2", broker="2", role="OTHER", is_current=False, is_judged=False, known_until_ms=NOON
)
CUT = replace(COPY, damaged_offset=80, status="DAMAGED")
CORRUPT = replace(
    COPY, tail="CORRUPT", ends="SHORT", is_current=False, status="DAMAGED", end_offset=80, survives_until=80
)


def of(*copies: CoverageRow) -> CoordinatorPartition:
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
    ((replace(CORRUPT, end_offset=120), replace(FOLLOWER, is_current=True, survives_until=119)), -1, False),
    ((replace(CORRUPT, end_offset=120), replace(FOLLOWER, is_current=True, survives_until=120)), None, True),
    ((replace(CUT, damaged_offset=None),), -1, False),
    ((replace(COPY, log_start_offset=5000),), None, False),
    ((replace(COPY, read_from_offset=5000),), None, False),
    ((replace(COPY, is_decoded=False),), None, False),
    ((replace(COPY, tail="EMPTY_OR_CUT"),), None, False),
]


@pytest.mark.parametrize(("copies", "lost", "shows_absence"), DAMAGE)
def test_damage_is_made_up_for_by_a_copy_that_contains_it(copies, lost, shows_absence):
    standing = of(*copies)
    found = standing.damaged_offset
    assert (None if found is None else -1 if found > 1 << 60 else found, standing.shows_absence) == (
        lost,
        shows_absence,
    )


def test_the_best_copy_is_the_current_and_whole_one():
    assert of(FOLLOWER, COPY).best is COPY
    standing = of(FOLLOWER)
    assert (standing.best, standing.known_until_ms) == (FOLLOWER, NOON)
    assert of(FOLLOWER, COPY).known_until_ms == ONE
    nothing = of(replace(COPY, status="MISSING"))
    assert (nothing.best, nothing.known_until_ms, nothing.newest_captured_at_ms, nothing.shows_absence) == (
        None,
        None,
        None,
        False,
    )


def test_a_copy_begins_at_the_start_of_a_compacted_log_or_lacks_segments():
    assert COPY.begins_at_start
    assert replace(COPY, log_start_offset=None, read_from_offset=None).begins_at_start
    assert not replace(COPY, log_start_offset=1).begins_at_start
    assert COPY.damage_ends_at is None


#: Change to the only copy -> what makes the partition uncertain.
UNCERTAIN = [
    ({}, None),
    ({"status": "MISSING"}, "was not captured"),
    ({"tail": "UNOPENED"}, "could not be opened"),
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
    (
        {"segment_gap_offset": 7},
        "may lack a segment before offset 7: copy the cleaner-offset-checkpoint of broker 1 after it",
    ),
    ({"log_start_offset": 5000}, "lacks its first segments"),
    ({"is_decoded": False}, "does not show all of its records"),
    ({"high_watermark": None}, "is not confirmed"),
]


@pytest.mark.parametrize(("change", "said"), UNCERTAIN)
def test_a_coordinator_is_certain_if_its_leaders_copy_is_current_whole_and_confirmed(change, said):
    found = uncertainties(of(replace(COPY, **change)))
    assert [said in text for text in found] == ([] if said is None else [True])


def test_the_better_known_copy_is_trusted_more():
    torn = replace(FOLLOWER, ends="TORN", end_offset=120)
    assert of(torn, FOLLOWER).best is FOLLOWER
    longer = replace(FOLLOWER, source="raw:3", end_offset=101)
    assert of(FOLLOWER, longer).best is longer
    assert of(longer, replace(FOLLOWER, is_judged=True)).best == replace(FOLLOWER, is_judged=True)
    assert of(replace(FOLLOWER, end_offset=None), FOLLOWER).best is FOLLOWER


def test_only_what_is_decoded_shows_up_to_when_a_coordinator_is_known():
    shallow = replace(COPY, is_decoded=False, known_until_ms=ONE + 5)
    assert of(FOLLOWER, shallow).known_until_ms == NOON
    assert of(replace(COPY, known_until_ms=None)).known_until_ms is None
    assert of(replace(FOLLOWER, captured_at_ms=ONE - 5), shallow).newest_captured_at_ms == ONE - 5
    assert of(replace(COPY, captured_at_ms=None)).newest_captured_at_ms is None
    assert of(replace(COPY, is_instant_assumed=True), FOLLOWER).is_instant_assumed is False


def test_all_coordinators_are_known_as_far_as_the_least_known_one():
    def known(*coordinators: CoordinatorPartition) -> ClusterFacts:
        return replace(FACTS, coordinators=coordinators)

    second = replace(of(replace(FOLLOWER, ends="TORN")), partition=4)
    assert known(COORDINATOR, second).coordinators_known_until_ms == NOON
    assert known(COORDINATOR, second).worst_coordinator == replace(FOLLOWER, ends="TORN")
    third = replace(of(FOLLOWER), partition=5)
    assert known(third, COORDINATOR, second).worst_coordinator == replace(FOLLOWER, ends="TORN")
    assert known(COORDINATOR, replace(of(), partition=4)).coordinators_known_until_ms is None
    assert known().worst_coordinator is None
    assert known().missing_coordinators is None
    assert known(COORDINATOR, replace(of(CUT), partition=4), replace(of(CUT), partition=1)).missing_coordinators == (
        1,
        4,
    )


@pytest.mark.parametrize(("printed_ms", "said"), [(ONE + 1_001, True), (ONE + 1_000, False), (None, False)])
def test_a_text_that_shows_newer_records_than_a_copy_makes_it_old(printed_ms, said):
    printed = replace(FOLLOWER, source="console:.", newest_stamp_ms=printed_ms)
    assert any("newer than its copy" in text for text in uncertainties(of(COPY, printed))) is said
    assert not uncertainties(of(COPY, replace(printed, source="raw:2")))


def test_a_leader_that_may_be_lost_in_the_metadata_log_is_that_of_any_of_them():
    hidden = of(replace(COPY, leader_basis="METADATA_LOG_DAMAGED"))
    assert Coordinators((of(COPY), hidden)).is_leader_hidden
    assert not Coordinators((of(COPY), CoordinatorPartition(partition=4))).is_leader_hidden
