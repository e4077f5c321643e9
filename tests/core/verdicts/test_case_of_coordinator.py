"""What a case derives of its coordinators: the owner, its decisions, their transaction version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_case import case_of
from tests.support.dossier_samples import (
    CLAIM,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    FOO,
    LOST,
    MARKER,
    MINUTE,
    NOON,
    ONE,
    ORPHAN,
    SPAN,
    judged,
)
from txnlib.core.cluster_metadata import Election
from txnlib.core.copies import CoverageRow
from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import UNKNOWN_CLOCKS_DIFFER_MS
from txnlib.core.verdicts.case_facts import best_claim, lists
from txnlib.core.verdicts.whose_clock import Clocks, Difference

CLAIMS = [
    ([], None),
    ([{"transactional_id": "a"}, {"transactional_id": "b", "partitions": (FOO,)}], "b"),
    ([{"transactional_id": "a", "owner": "ROTATED"}, {"transactional_id": "b", "owner": "NEXT"}], "b"),
    ([{"transactional_id": "a", "owner": "EXPIRED"}, {"transactional_id": "b", "owner": "ROTATED"}], "b"),
    ([{"transactional_id": "a", "owner": "NEXT"}, {"transactional_id": "b"}], "b"),
    ([{"transactional_id": "a"}, {"transactional_id": "b", "last_record_offset": 99}], "b"),
    ([{"transactional_id": "b"}, {"transactional_id": "a"}], "a"),
    ([{"transactional_id": "a", "is_superseded": True}, {"transactional_id": "b", "owner": "ROTATED"}], "b"),
]


@pytest.mark.parametrize(("claims", "winner"), CLAIMS)
def test_an_id_that_lists_the_partition_wins_then_the_best_claim(claims, winner):
    assert best_claim([replace(CLAIM, **each) for each in claims], SPAN).transactional_id == winner


def test_an_id_whose_record_the_current_copy_no_longer_has_has_expired():
    row = judged(claim={"is_superseded": True, "state": "Ongoing", "partitions": (FOO,)})
    assert (row.reason, row.coordinator_state, row.kafka_find_hanging) == ("TRANSACTIONAL_ID_EXPIRED", None, True)


def test_the_leader_to_copy_from_is_named():
    found = case_of(DOSSIER)
    assert (found.coordinator_leader, found.coordinator.has_leader) == ("1", True)
    lost = replace(COORDINATOR, copies=(replace(COPY, is_decoded=False, leader="7"),))
    assert case_of(ORPHAN, replace(FACTS, coordinators=(lost,))).coordinator_leader == "7"
    headless = replace(COORDINATOR, copies=(replace(COPY, leader="-1"),))
    found = case_of(DOSSIER, replace(FACTS, coordinators=(headless,)))
    assert (found.coordinator_leader, found.coordinator.has_leader) == (None, False)


@pytest.mark.parametrize(
    ("last", "end", "mark", "hole"),
    [
        (99, 100, 100, 8),
        (98, 100, 100, 100),
        (99, 100, 101, 101),
        (None, 0, 0, 8),
        (None, 5, None, 5),
        (None, 1, None, 1),
    ],
)
def test_records_may_be_missing_at_the_end_of_a_coordinators_log(last, end, mark, hole):
    copy = replace(COPY, survives_until=end, high_watermark=mark)
    assert replace(COORDINATOR, hole_offset=8, last_offset=last, copies=(copy,)).hole_end == hole


def test_the_newest_decision_and_the_commit_that_is_due():
    found = case_of(replace(DOSSIER, decisions=(LOST, DECISION)))
    assert found.decision is not None
    assert found.commit_due is not None
    assert (found.decision.of.last_record_offset, found.decision.is_marked) == (72, False)
    assert (found.commit_due.of.outcome, found.commit_due.lists_partition) == ("COMMIT", True)
    marked = case_of()
    assert marked.decision is not None
    assert (marked.decision.is_marked, marked.commit_due) == (True, None)
    aborted = replace(LOST, outcome="ABORT")
    assert case_of(replace(DOSSIER, decisions=(DECISION, aborted))).commit_due is None


def test_what_only_a_last_record_shows_may_or_may_not_list_the_partition():
    gone = replace(LOST, partitions=None)
    found = case_of(replace(DOSSIER, decisions=(DECISION, gone))).decision
    assert found is not None
    assert (found.is_marked, found.lists_partition) == (None, False)


def test_the_time_of_an_end_may_be_as_late_as_its_copy():
    assert case_of().ended_ms == DECISION.completed_ms
    untimed = replace(LOST, completed_ms=None)
    assert case_of(replace(DOSSIER, decisions=(untimed,))).ended_ms == ONE
    prepared = replace(untimed, state="PrepareCommit")
    assert case_of(replace(DOSSIER, decisions=(prepared,))).ended_ms == prepared.prepared_ms
    assert case_of(replace(DOSSIER, decisions=(untimed,)), markers=(replace(MARKER, ms=NOON + MINUTE),)).ended_ms == (
        LOST.prepared_ms
    )


def test_an_untimed_end_is_as_late_as_the_newest_copy_that_shows_it():
    untimed = replace(LOST, completed_ms=None, prepared_ms=None)
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, copies=(replace(COPY, captured_at_ms=NOON),)),))
    assert case_of(replace(DOSSIER, decisions=(untimed,)), facts).ended_ms == NOON
    gone = replace(FACTS, coordinators=())
    assert case_of(replace(DOSSIER, decisions=(untimed,)), gone).ended_ms == NO_INSTANT_MS
    both = (replace(DECISION, prepared_ms=None), replace(LOST, completed_ms=None))
    at = (replace(MARKER, ms=LOST.prepared_ms),)
    assert case_of(replace(DOSSIER, decisions=both), markers=at).ended_ms == LOST.prepared_ms
    assert case_of(replace(DOSSIER, decisions=both), markers=()).ended_ms == ONE


@pytest.mark.parametrize(("leader", "differ"), [("1", 1_000), ("2", 1_000), ("3", 300_000)])
def test_one_broker_has_one_clock_and_others_are_compared_by_their_estimate(leader, differ):
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, copies=(replace(COPY, leader=leader),)),))
    measured = {("2", "1"): Difference(offset_ms=5, error_ms=20, differ_ms=1_000)}
    found = case_of(DOSSIER, replace(facts, clocks=Clocks(measured=measured)))
    assert found.clocks_differ_ms == differ


def test_a_fence_that_its_coordinator_carries_out_is_expected():
    row = judged(claim={"state": "PrepareEpochFence", "partitions": (FOO,), "start_ms": ONE - 1_000})
    assert (row.verdict, row.kafka_find_hanging) == ("LATE", False)


def test_a_topic_with_the_same_partition_number_is_another_place():
    assert not lists((replace(FOO, topic="bar"),), SPAN)
    assert not lists((replace(FOO, partition=6),), SPAN)
    assert lists((replace(FOO, topic="bar"), FOO), SPAN)


@pytest.mark.parametrize(
    ("level", "version", "highest", "expected"),
    [
        (None, "3.9.1", None, False),
        (None, "4.0.0", None, True),
        (None, None, None, True),
        # What the metadata log shows of all its time, not what is noted of today.
        (0, "4.0.0", None, False),
        (1, "4.0.0", 1, False),
        (2, "4.0.0", None, True),
        # A record of any id refutes it.
        (0, "4.0.0", 2, True),
        (0, "4.0.0", 3, True),
        (None, "3.9.1", 2, True),
    ],
)
def test_records_may_be_of_transactions_v2_unless_something_excludes_it(level, version, highest, expected):
    log = replace(COORDINATOR, partition=7, highest_transaction_version=highest)
    facts = replace(
        FACTS, transaction_version=0, kafka_version=version, levels=None if level is None else ((level, None),)
    )
    facts = replace(facts, coordinators=(COORDINATOR, log))
    assert case_of(DOSSIER, facts).may_be_v2 is expected


@pytest.mark.parametrize(
    ("levels", "version", "known", "expected"),
    [
        (((2, None),), "3.9.1", None, True),
        (((2, NOON + 60 * MINUTE), (1, None)), "3.9.1", None, True),
        (((2, NOON - 60 * MINUTE), (1, None)), "3.9.1", None, False),
        (((1, None),), "3.9.1", "3.9.1", False),
        (((1, None),), "4.1.0", "4.1.0", False),
        ((), "3.9.1", "3.9.1", False),
        (None, "3.9.1", "3.9.1", False),
        (None, "4.1.0", "4.1.0", True),
        (None, None, None, True),
    ],
)
def test_the_level_of_then_comes_before_a_note_of_today(levels, version, known, expected):
    facts = replace(FACTS, transaction_version=None, kafka_version=version, levels=levels)
    assert facts.is_v2_excluded(NOON) is not expected
    assert facts.known_version == known


@pytest.mark.parametrize(
    ("levels", "since_ms", "expected"),
    [
        (None, NOON, False),
        ((), NOON, False),
        (((2, None),), NOON, False),
        (((1, None),), NOON, False),  # it never rose
        (((1, NOON), (2, None)), None, True),
        (((1, NOON), (2, None)), NOON, True),
        (((1, NOON), (2, None)), NOON + UNKNOWN_CLOCKS_DIFFER_MS - 1, True),
        (((1, NOON), (2, None)), NOON + UNKNOWN_CLOCKS_DIFFER_MS, False),
        (((2, NOON), (1, NOON + 1), (2, None)), NOON + 1, True),
    ],
)
def test_whether_the_level_rose_since(levels, since_ms, expected):
    assert replace(FACTS, levels=levels).is_raised_since(since_ms) is expected


@pytest.mark.parametrize(
    ("complete_from", "hole_offset", "last_offset", "expected"),
    [(0, 63, 63, None), (20, 63, 63, 20), (None, 63, 63, 63), (0, None, 63, None), (0, 40, 50, 64)],
)
def test_what_is_missing_behind_the_newest_record_of_an_id_was_of_others(
    complete_from, hole_offset, last_offset, expected
):
    """Unless it is missing at the end of the log."""
    copy = replace(COPY, survives_until=64, high_watermark=64)
    log = replace(COORDINATOR, hole_offset=hole_offset, last_offset=last_offset, copies=(copy,))
    claim = replace(CLAIM, complete_from=complete_from, coordinator_partition=log.partition)
    assert case_of(replace(DOSSIER, claims=(claim,)), replace(FACTS, coordinators=(log,))).hole_end == expected


def test_an_id_of_two_phase_commits_is_as_any_other_between_transactions():
    claim = replace(CLAIM, state="Empty", transaction_timeout_ms=2**31 - 1)
    assert case_of(replace(DOSSIER, claims=(claim,))).pending_ids == ()


def test_an_id_in_a_two_phase_commit_says_so():
    pending = case_of(replace(DOSSIER, claims=(replace(CLAIM, state="Ongoing", transaction_timeout_ms=2**31 - 1),)))
    assert pending.pending_ids == ("bar is Ongoing in a two-phase commit",)
    assert case_of(replace(DOSSIER, claims=(replace(CLAIM, state="Ongoing"),))).pending_ids == ("bar is Ongoing",)


@pytest.mark.parametrize(
    ("offset", "mark", "expected"), [(62, 63, True), (62, 62, False), (62, None, True), (None, 1, True)]
)
def test_a_record_below_the_high_watermark_is_committed(offset, mark, expected):
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, copies=(replace(COPY, high_watermark=mark),)),))
    of = replace(DOSSIER, claims=(replace(CLAIM, record_offset=offset),))
    assert case_of(of, facts).is_record_committed is expected


def test_elections_of_the_owners_partition_are_those_of_its_coordinator():
    elections = (Election(leader_epoch=7),)
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, partition=2), replace(COORDINATOR, elections=elections)))
    assert case_of(DOSSIER, facts).coordinator.elections == elections
    assert case_of(ORPHAN, facts).coordinator.elections == ()


@pytest.mark.parametrize(
    ("of_others", "is_assumed"), [([], False), ([False], False), ([True], True), ([None], False), ([True, False], True)]
)
def test_the_instants_of_an_orphan_are_assumed_if_that_of_one_captured_coordinator_is(of_others, is_assumed):
    others = [
        replace(
            COORDINATOR,
            partition=4 + number,
            copies=(CoverageRow(status="MISSING") if each is None else replace(COPY, is_instant_assumed=each),),
        )
        for number, each in enumerate(of_others)
    ]
    assert case_of(ORPHAN, replace(FACTS, coordinators=(COORDINATOR, *others))).is_instant_assumed is is_assumed
