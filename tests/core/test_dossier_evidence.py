"""The evidence on each open transaction, from its dossier: owners, decisions, stamps, earlier audits."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.core.verdicts.coordinator_copies import Coordinators
from txnlib.core.verdicts.dossier import (
    CapturedCopy,
    CheckedBatch,
    ClockDifference,
    EarlierAudit,
    EpochStamps,
    SiblingMarkers,
)
from txnlib.core.verdicts.dossier_evidence import best_claim, evidence_of
from txnlib.core.verdicts.dossier_history import hole_of
from txnlib.core.verdicts.dossier_partition import committed_siblings, is_same_transaction, is_start_proven
from txnlib.core.verdicts.evidence import Crc, Evidence, Owner
from txnlib.core.verdicts.judged import judge_dossier


def evidence(dossier=DOSSIER, facts=FACTS, **span) -> Evidence:
    of = replace(dossier, open=(replace(dossier.open[0], **span),))
    return evidence_of(of, of.open[0], facts, Coordinators.of(facts))


# ---- Owners.

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
    found = best_claim([replace(CLAIM, **each) for each in claims], SPAN)
    assert (None if found is None else found.transactional_id) == winner


def test_an_id_whose_record_the_current_copy_no_longer_has_has_expired():
    row = judged(claim={"is_superseded": True, "state": "Ongoing", "partitions": (FOO,)})
    assert (row.reason, row.coordinator_state, row.kafka_find_hanging) == ("TRANSACTIONAL_ID_EXPIRED", None, True)


def test_an_orphan_is_known_as_far_as_the_least_known_coordinator():
    other = replace(COORDINATOR, partition=4, copies=(replace(COPY, is_current=False, known_until_ms=NOON, role="OTHER"),))
    found = evidence(ORPHAN, replace(FACTS, coordinators=(COORDINATOR, other))).at_coordinator
    assert (found.owner, found.known_until_ms, found.is_log_current) == (Owner.NOBODY, NOON, False)
    lacking = replace(COORDINATOR, partition=4, copies=(CapturedCopy(status="MISSING", leader="2"),))
    found = evidence(ORPHAN, replace(FACTS, coordinators=(COORDINATOR, lacking))).at_coordinator
    assert (found.missing_partitions, found.known_until_ms) == ((4,), None)
    assert evidence(ORPHAN, replace(FACTS, coordinators=())).at_coordinator.missing_partitions is None


def test_the_leader_to_copy_from_is_named():
    found = evidence(DOSSIER).at_coordinator
    assert (found.leader, found.has_leader) == ("1", True)
    lost = replace(COORDINATOR, copies=(replace(COPY, is_decoded=False, leader="7"),))
    assert evidence(ORPHAN, replace(FACTS, coordinators=(lost,))).at_coordinator.leader == "7"
    headless = replace(COORDINATOR, copies=(replace(COPY, leader="-1"),))
    found = evidence(DOSSIER, replace(FACTS, coordinators=(headless,))).at_coordinator
    assert (found.leader, found.has_leader) == (None, False)


@pytest.mark.parametrize(
    ("last", "end", "mark", "hole"),
    [(99, 100, 100, 8), (98, 100, 100, 100), (99, 100, 101, 101), (None, 0, 0, 8), (None, 5, None, 5)],
)
def test_records_may_be_missing_at_the_end_of_a_coordinators_log(last, end, mark, hole):
    copy = replace(COPY, survives_until=end, high_watermark=mark)
    assert hole_of(replace(COORDINATOR, hole_offset=8, last_offset=last, copies=(copy,))) == hole


# ---- Decisions.


def test_the_newest_decision_and_the_commit_that_is_due():
    found = evidence(replace(DOSSIER, decisions=(LOST, DECISION))).at_coordinator
    assert found.decision is not None
    assert found.commit_due is not None
    assert (found.decision.record_offset, found.decision.is_marked) == (72, False)
    assert (found.commit_due.type, found.commit_due.lists_partition) == ("COMMIT", True)
    marked = evidence().at_coordinator
    assert marked.decision is not None
    assert (marked.decision.is_marked, marked.commit_due) == (True, None)
    aborted = replace(LOST, outcome="ABORT")
    assert evidence(replace(DOSSIER, decisions=(DECISION, aborted))).at_coordinator.commit_due is None


def test_what_only_a_last_record_shows_may_or_may_not_list_the_partition():
    gone = replace(LOST, partitions=None)
    found = evidence(replace(DOSSIER, decisions=(DECISION, gone))).at_coordinator.decision
    assert found is not None
    assert (found.is_marked, found.lists_partition) == (None, False)


def test_the_time_of_an_end_may_be_as_late_as_its_copy():
    assert evidence().at_coordinator.ended_ms == DECISION.completed_ms
    untimed = replace(LOST, completed_ms=None)
    assert evidence(replace(DOSSIER, decisions=(untimed,))).at_coordinator.ended_ms == ONE
    prepared = replace(untimed, state="PrepareCommit")
    assert evidence(replace(DOSSIER, decisions=(prepared,))).at_coordinator.ended_ms == prepared.prepared_ms
    assert evidence(
        replace(DOSSIER, decisions=(untimed,)), markers=(replace(MARKER, ms=NOON + MINUTE),)
    ).at_coordinator.ended_ms == (LOST.prepared_ms)


def test_an_overdue_decision_without_its_marker_is_stuck_although_an_older_marker_is_here():
    prepared = replace(LOST, state="PrepareCommit", completed_ms=None)
    claim = {"state": "PrepareCommit", "partitions": (FOO,), "record_ms": NOON + 1_000, "last_update_ms": NOON + 1_000}
    row = judged(dossier={"decisions": (DECISION, prepared)}, claim=claim)
    assert (row.verdict, row.reason) == ("STUCK", "MARKER_OVERDUE")


@pytest.mark.parametrize(("leader", "differ"), [("1", 1_000), ("2", 7_000), ("3", 300_000)])
def test_one_broker_has_one_clock_and_others_are_compared_by_their_estimate(leader, differ):
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, copies=(replace(COPY, leader=leader),)),))
    clocks = (ClockDifference(coordinator_partition=3, differ_ms=7_000),) if leader == "2" else ()
    assert evidence(DOSSIER, facts, clocks=clocks).on_partition.clocks_differ_ms == differ


def test_a_fence_that_its_coordinator_carries_out_is_expected():
    row = judged(claim={"state": "PrepareEpochFence", "partitions": (FOO,), "start_ms": ONE - 1_000})
    assert (row.verdict, row.kafka_find_hanging) == ("LATE", False)


# ---- The partition.


def test_stamps_of_all_leader_epochs_count():
    stamps = (
        EpochStamps(leader_epoch=1, before_ms=NOON - 9, behind_ms=NOON + 9, behind_last_ms=NOON + 9),
        EpochStamps(leader_epoch=2, before_ms=NOON - 1, behind_ms=NOON + 1, behind_last_ms=NOON + 5),
        EpochStamps(leader_epoch=3, behind_ms=946_684_800_000),
    )
    found = evidence(stamps=stamps).on_partition
    assert (found.stamped_before_ms, found.stamped_after_ms, found.written_before_ms) == (NOON - 1, NOON + 1, NOON + 5)


def test_a_brokers_own_time_of_a_batch_counts_unless_stamps_contradict_it():
    stamped = {"is_broker_clock": True, "first_timestamp_ms": NOON}
    assert evidence(**stamped).on_partition.first_timestamp_ms == NOON
    old = {"is_broker_clock": True, "first_timestamp_ms": 946_684_800_000}
    assert evidence(**old).on_partition.first_timestamp_ms is None
    assert evidence(first_timestamp_ms=None).on_partition.first_timestamp_ms == NOON


CHECK = CheckedBatch(place="first", producer_epoch=5, base_sequence=5, last_sequence=6, is_crc_valid=True)
BEFORE = CheckedBatch(place="before", producer_epoch=5, base_sequence=0, last_sequence=4, is_crc_valid=True)
HOLE = replace(COPY, gap_offset=9)
#: The batch before, the first one, the copy -> whether no batch can be missing between the two.
STARTS = [
    (BEFORE, CHECK, COPY, True),
    (BEFORE, replace(CHECK, base_sequence=6), COPY, False),
    (replace(BEFORE, last_sequence=MAX_SEQUENCE), replace(CHECK, base_sequence=0), COPY, True),
    (replace(BEFORE, producer_epoch=4), CHECK, COPY, False),
    (replace(BEFORE, producer_epoch=4), replace(CHECK, base_sequence=0), COPY, True),
    (None, CHECK, COPY, False),
    (None, replace(CHECK, base_sequence=0), COPY, True),
    (None, CHECK, replace(COPY, read_from_offset=9), True),
    (None, CHECK, replace(COPY, read_from_offset=None, log_start_offset=9), True),
    (None, replace(CHECK, base_sequence=None), COPY, True),
    (None, replace(CHECK, base_sequence=None), HOLE, False),
    (BEFORE, replace(CHECK, base_sequence=None), replace(COPY, damaged_offset=9), False),
    (replace(BEFORE, last_sequence=None), CHECK, COPY, True),
    (replace(BEFORE, last_sequence=None), CHECK, HOLE, False),
    (None, None, COPY, True),
    (None, None, HOLE, False),
]


@pytest.mark.parametrize(("before", "first", "copy", "expected"), STARTS)
def test_sequences_show_that_no_batch_is_missing_before_the_first(before, first, copy, expected):
    assert is_start_proven([each for each in (before, first) if each is not None], copy) is expected


@pytest.mark.parametrize(
    ("valid", "expected"),
    [([True, True], Crc.VALID), ([True, None], Crc.NOT_CHECKED), ([None, False], Crc.INVALID), ([], Crc.NOT_CHECKED)],
)
def test_every_checked_batch_must_be_valid(valid, expected):
    checks = tuple(replace(CHECK, is_crc_valid=each) for each in valid)
    assert evidence(checks=checks).on_partition.crc is expected


EARLIER = EarlierAudit(run_id="a", as_of_ms=NOON + 5 * MINUTE, copied_ms=NOON + 4 * MINUTE, topic_id="AAAA", first_batch_crc=77)
#: Changes to the row of an earlier audit -> whether it saw this transaction.
SEEN = [
    ({}, True),
    ({"topic_id": None}, True),
    ({"first_batch_crc": None}, True),
    ({"topic_id": None, "first_batch_crc": None}, None),
    ({"topic_id": "BBBB"}, False),
    ({"first_batch_crc": 78}, False),
    ({"topic_id": None, "first_batch_crc": 78}, False),
]


@pytest.mark.parametrize(("change", "expected"), SEEN)
def test_an_earlier_audit_saw_the_same_topic_id_and_the_same_first_batch(change, expected):
    earlier = replace(EARLIER, **change)
    assert is_same_transaction(earlier, COPY, SPAN.checks[1]) is expected
    seen = evidence(earlier=(earlier,)).on_partition.first_seen_ms
    assert seen == (NOON + 4 * MINUTE if expected else None)
    (row,) = judge_dossier(replace(DOSSIER, open=(replace(SPAN, earlier=(earlier,)),)), FACTS)
    assert (row.runs_seen, row.first_seen_ms) == ((1, ONE) if expected is False else (2, NOON + 5 * MINUTE))


def test_an_earlier_audit_proves_the_instant_of_its_copies_not_its_as_of():
    wrong = replace(EARLIER, as_of_ms=NOON - 600 * MINUTE, copied_ms=ONE - MINUTE)
    unstamped = (replace(SPAN.stamps[0], behind_ms=None, behind_last_ms=None),)
    found = evidence(earlier=(wrong,), stamps=unstamped).on_partition.first_seen_ms
    assert found == ONE - MINUTE
    # One from before the stamps in front of the first batch is of another log.
    assert evidence(earlier=(replace(EARLIER, copied_ms=NOON - 10 * MINUTE),)).on_partition.first_seen_ms is None
    assert evidence(earlier=(replace(EARLIER, copied_ms=None),)).on_partition.first_seen_ms is None


def test_siblings_that_were_committed_since_are_named_in_order():
    since = SiblingMarkers(topic="b", partition=1, is_committed=True, committed_ms=NOON)
    other = replace(since, topic="a")
    old = replace(since, topic="c", committed_ms=NOON - 60 * MINUTE)
    untold = replace(since, topic="d", is_committed=False)
    assert committed_siblings(replace(SPAN, siblings=(since, other, old, untold))) == ("a-1", "b-1")
    assert committed_siblings(replace(SPAN, siblings=(old,), stamps=())) == ("c-1",)


def test_what_is_blocked_reaches_to_the_high_watermark():
    row = judged()
    assert (row.blocked_offsets, row.blocked_bytes) == (50, 700)
    assert judged(copy={"high_watermark": None, "end_offset": 70}).blocked_offsets == 20
    assert judged(copy={"high_watermark": 10}).blocked_offsets == 0
    assert judged(copy={"read_from_offset": 60}).blocked_bytes is None
    assert judged(copy={"read_from_offset": 50}).blocked_bytes == 700


def test_a_row_says_since_when_it_blocks():
    assert judged().blocks_since_ms == NOON + MINUTE
    unstamped = {"stamps": ()}
    assert judged(span=unstamped).blocks_since_ms == NOON
    assert judged(span=unstamped | {"first_timestamp_ms": None, "last_timestamp_ms": -1}).blocks_since_ms is None
    assert judged().duration_minutes == 60
    assert judged(span={"last_timestamp_ms": ONE + 90_000}).duration_minutes == -1
