"""Facts of an open transaction: what is known, and what later audits need of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_case import case_of
from tests.support.cases import decided, derived, with_marker
from tests.support.dossier_samples import (
    CLAIM,
    COMPACTED,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    LOST,
    MINUTE,
    NOON,
    ONE,
    ORPHAN,
    SPAN,
)
from txnlib.core.cluster_metadata import Election
from txnlib.core.copies import CopyBeside, TruncatedEpoch
from txnlib.core.verdicts.case_facts import is_start_proven
from txnlib.core.verdicts.dossier import (
    MOST_MARKERS,
    Carried,
    EarlierAudit,
    Hole,
    MarkerElsewhere,
    SiblingMarkers,
)
from txnlib.core.verdicts.earlier_audits import are_one, with_earlier

#: What an earlier audit read of the log of the coordinator, up to offset 80.
READ = Carried(
    coordinator_partition=3, topic_id="AAAA", until_offset=80, until_ms=NOON, until_epoch=18, copied_ms=NOON + 5
)
SEEN = EarlierAudit(run_id="first", as_of_ms=NOON, topic_id="AAAA", first_batch_crc=77, carried=READ)


def seen(carried, **changes):
    """The sample, with what an earlier audit read."""
    audit = replace(SEEN, carried=None if carried is None else replace(READ, **carried))
    return case_of(changes.pop("dossier", DOSSIER), changes.pop("facts", FACTS), earlier=(audit,), **changes)


def coordinated(**changes):
    return replace(FACTS, coordinators=(replace(COORDINATOR, **changes),))


# ---- What earlier audits read.

#: Changes of what was read -> whether it is of the log of the coordinator; whether that is of another topic now.
OF_ITS_LOG = [
    ({}, True, False),
    ({"topic_id": None}, True, False),
    ({"topic_id": "BBBB"}, False, True),
    ({"coordinator_partition": 4}, False, False),
    (None, False, False),
]


@pytest.mark.parametrize(("carried", "is_its", "is_made_again"), OF_ITS_LOG)
def test_an_earlier_audit_read_the_log_of_the_same_topic(carried, is_its, is_made_again):
    found = seen(carried)
    assert (found.carried is not None, found.is_made_again) == (is_its, is_made_again)


@pytest.mark.parametrize(
    ("hole", "decisions", "vanished"),
    [
        (None, (DECISION,), []),
        (None, (DECISION, LOST), [72]),
        (72, (LOST,), [72]),
        (73, (LOST,), []),
        (None, (replace(LOST, start_ms=None, first_record_offset=0, last_record_offset=0),), [0]),
    ],
)
def test_a_decision_that_was_read_vanishes_only_in_a_hole(hole, decisions, vanished):
    found = seen({"decisions": decisions}, facts=coordinated(hole_offset=hole))
    assert [each.last_record_offset for each in found.vanished] == vanished


def test_nothing_vanished_of_more_decisions_than_a_dossier_has():
    known = tuple(replace(DECISION, last_record_offset=200 + number) for number in range(MOST_MARKERS))
    old = replace(LOST, start_ms=1, first_record_offset=1, last_record_offset=2)
    assert not seen({"decisions": (old,)}, dossier=replace(DOSSIER, decisions=known)).vanished
    assert seen({"decisions": (old,)}, dossier=replace(DOSSIER, decisions=known[1:])).vanished == [old]


# ---- What later ones need.

TONIGHT = {
    "coordinator_partition": 3, "topic_id": "AAAA", "until_offset": 99, "until_ms": NOON + 7, "until_epoch": 19,
    "copied_ms": ONE, "is_current": True, "is_assigned_behind": False, "decisions": (DECISION,), "holes": (),
}  # fmt: skip
NEWER = {"until_offset": 120, "until_ms": NOON, "until_epoch": 18, "copied_ms": NOON + 5}
#: What was read before, the log of the coordinator, the claim -> what is carried, as it differs from tonight's.
TO_CARRY = [
    (None, {}, {}, {}),
    ({}, {}, {}, {}),
    ({"until_offset": 120}, {}, {}, NEWER),
    ({"until_offset": 99}, {}, {}, {}),
    (None, {"copies": (replace(COPY, role="OTHER"),)}, {}, {"is_current": False}),
    (None, {"copies": ()}, {}, {"is_current": False, "topic_id": None, "copied_ms": None}),
    ({"is_assigned_behind": True}, {}, {}, {"is_assigned_behind": True}),
    (None, {"hole_offset": 10}, {"is_first_assigned": True}, {"is_assigned_behind": True, "holes": (
        Hole(end_offset=10),)}),
]  # fmt: skip


@pytest.mark.parametrize(("carried", "log", "claim", "expected"), TO_CARRY)
def test_later_audits_need_what_was_read_last(carried, log, claim, expected):
    of = replace(DOSSIER, claims=(replace(CLAIM, **claim),))
    found = seen(carried, dossier=of, facts=coordinated(last_ms=NOON + 7, **log)).to_carry
    assert found == replace(Carried(**TONIGHT), **expected)


def test_what_cannot_be_read_again_is_carried_on():
    assert seen({}, dossier=ORPHAN).to_carry == READ
    assert seen({}, facts=coordinated(last_offset=None)).to_carry is None


# ---- One decision, read twice.

#: Changes of a decision at offsets 70 to 72 -> whether it may be the same transaction.
AS_ONE = [
    ({}, True),
    ({"first_record_offset": 72, "last_record_offset": 80, "start_ms": 1}, True),
    ({"first_record_offset": 73, "last_record_offset": 80, "start_ms": 1}, False),
    ({"first_record_offset": 60, "last_record_offset": 70, "start_ms": 1}, True),
    ({"first_record_offset": 60, "last_record_offset": 69, "start_ms": 1}, False),
    ({"first_record_offset": 73, "last_record_offset": 80}, True),
    ({"first_record_offset": 73, "last_record_offset": 80, "start_ms": None}, False),
    ({"coordinator_partition": 4}, False),
    ({"transactional_id": "other"}, False),
]


@pytest.mark.parametrize(("changes", "expected"), AS_ONE)
def test_records_that_overlap_or_began_together_are_of_one_transaction(changes, expected):
    other = replace(LOST, **changes)
    assert (are_one(LOST, other), are_one(other, LOST)) == (expected, expected)


def test_two_transactions_without_a_start_are_not_one_for_that():
    behind = replace(LOST, first_record_offset=80, last_record_offset=82, start_ms=None)
    assert not are_one(replace(LOST, start_ms=None), behind)


#: First and last offset as read now, and before; those that count, and whose state.
READ_TWICE = [
    ((70, 72), (70, 72), (70, 72, "now")),
    ((70, 72), (70, 71), (70, 72, "now")),
    ((71, 72), (70, 72), (70, 72, "before")),
    ((71, 72), (70, 73), (70, 73, "before")),
    ((71, 74), (70, 72), (70, 74, "now")),
]


@pytest.mark.parametrize(("now", "before", "expected"), READ_TWICE)
def test_of_a_decision_that_was_read_twice_all_that_was_read_counts(now, before, expected):
    def read(offsets, state):
        return replace(LOST, first_record_offset=offsets[0], last_record_offset=offsets[1], state=state)

    (found,) = with_earlier([read(now, "now")], [read(before, "before")])
    assert (found.first_record_offset, found.last_record_offset, found.state) == expected


#: The end of tonight's hole, the newest record of its id -> the ends of the holes that are left, and who saw each
#: first.
HOLES = [
    (81, 95, [(40, "first")]),
    (82, 95, [(40, "first"), (82, None)]),
    (82, 80, [(40, "first")]),
    (82, 81, [(40, "first"), (82, None)]),
    (82, None, [(40, "first"), (82, None)]),
]


@pytest.mark.parametrize(("end", "newest", "expected"), HOLES)
def test_what_an_earlier_audit_read_fills_a_hole(end, newest, expected):
    of = replace(DOSSIER, claims=(replace(CLAIM, record_offset=newest),))
    found = seen({"holes": (Hole(end_offset=40),)}, dossier=of, facts=coordinated(hole_offset=end)).holes
    assert [(each.end_offset, each.until_run) for each in found] == expected


def test_a_hole_keeps_the_first_audit_that_saw_it():
    found = seen({"holes": (Hole(end_offset=40, until_run="older"),)}, facts=coordinated(hole_offset=10))
    assert [each.until_run for each in found.holes] == ["older"]


# ---- What is whole.

#: The coordinator's log, the claim, how many decisions -> whether every decision is in the dossier.
ALL_DECISIONS = [
    ({}, {}, 1, True),
    ({"hole_offset": 90}, {}, 1, False),
    ({"hole_offset": 10}, {"is_first_assigned": True}, 1, True),
    ({"hole_offset": 11}, {"is_first_assigned": True}, 1, False),
    ({"copies": ()}, {}, 1, False),
    ({"copies": ()}, {"is_first_assigned": True}, 1, False),
    ({}, {}, MOST_MARKERS - 1, True),
    ({}, {}, MOST_MARKERS, False),
]


@pytest.mark.parametrize(("log", "claim", "count", "expected"), ALL_DECISIONS)
def test_a_log_without_a_hole_behind_the_assignment_shows_every_decision(log, claim, count, expected):
    claims = (replace(CLAIM, **{"record_offset": 95, **claim}),)
    decisions = tuple(replace(DECISION, last_record_offset=62 + number) for number in range(count))
    found = case_of(replace(DOSSIER, claims=claims, decisions=decisions), coordinated(**log))
    assert found.has_all_decisions is expected


@pytest.mark.parametrize(
    ("copy", "expected"),
    [
        ({"first_offset": 0}, True),
        ({"first_offset": None}, False),
        ({"first_offset": 1}, False),
        ({"first_offset": 0, "read_from_offset": 20}, False),
        ({"first_offset": 0, "gap_offset": 45}, False),
    ],
)
def test_a_copy_with_its_beginning_and_without_a_hole_shows_every_marker(copy, expected):
    assert case_of(place={"copies": (replace(COPY, **copy),)}).shows_all_markers is expected


@pytest.mark.parametrize(
    ("start", "copy", "expected"),
    [(0, {}, False), (19, {"log_start_offset": 20}, True), (20, {"log_start_offset": 20}, False), (19, {
        "read_from_offset": 20}, True)],
)  # fmt: skip
def test_a_beginning_below_the_log_is_gone(start, copy, expected):
    found = case_of(place={"copies": (replace(COPY, **copy),)}, start_offset=start, checks=())
    assert found.is_begin_gone is expected


@pytest.mark.parametrize(
    ("ms", "known_until_ms", "expected"),
    [(ONE - 5 * MINUTE, ONE, True), (ONE - 5 * MINUTE + 1, ONE, False), (ONE + MINUTE, None, True), (None, ONE, False)],
)
def test_a_commit_elsewhere_is_unexplained_if_its_coordinator_was_read_after_it(ms, known_until_ms, expected):
    sibling = SiblingMarkers(topic="foo", partition=6, newest_unexplained_commit_ms=ms)
    log = coordinated(copies=(replace(COPY, known_until_ms=known_until_ms),))
    assert bool(case_of(facts=log, siblings=(sibling,)).unexplained_commits) is expected


def test_a_marker_is_its_own_only_if_it_is_here_and_fits_no_other_decision():
    sure = replace(with_marker(decided("COMMIT", 5, decided_ms=NOON, completed_ms=NOON), True), is_alone=True)
    unsure = replace(with_marker(sure, None), is_alone=True)
    shared = replace(sure, is_alone=False)
    assert derived(case_of(), marked=[sure, unsure, shared]).own is sure


#: Where the marker before it is, a hole, the last sequence before it -> whether nothing in front can be missing.
BEHIND_MARKERS = [(40, None, 0, True), (40, 40, 0, True), (40, 41, 0, False), (40, 41, 4, True), (None, None, 0, False)]


@pytest.mark.parametrize(("since", "gap", "last", "expected"), BEHIND_MARKERS)
def test_a_hole_behind_the_marker_before_it_may_lack_a_batch(since, gap, last, expected):
    before, first = SPAN.checks
    checks = (replace(before, last_sequence=last), first)
    assert is_start_proven(checks, replace(COPY, gap_offset=gap), since) is expected


# ---- Other copies.


@pytest.mark.parametrize(
    ("changes", "has_ended", "ended", "truncated"),
    [
        ({"offset": 100}, True, 1, 0),
        ({"offset": 99}, False, 1, 0),
        ({"offset": 100, "is_truncated": True}, False, 0, 1),
        ({"offset": 100, "is_cleaned": True}, True, 0, 0),
    ],
)
def test_a_marker_behind_the_end_of_the_copy_ends_it(changes, has_ended, ended, truncated):
    marker = replace(MarkerElsewhere(is_truncated=False, broker="2", offset=0, type="COMMIT"), **changes)
    found = case_of(markers_elsewhere=(marker,))
    assert (found.has_ended, len(found.ended_elsewhere), len(found.truncated_markers)) == (has_ended, ended, truncated)


@pytest.mark.parametrize(("last", "end", "expected"), [(100, 100, True), (99, 100, False), (0, None, True)])
def test_a_batch_behind_the_end_of_the_copy_continues_it(last, end, expected):
    found = case_of(place={"copies": (replace(COPY, end_offset=end),)}, last_elsewhere_offset=last)
    assert found.is_continued_elsewhere is expected


def test_what_a_newer_leader_truncated_is_that_of_all_copies():
    def cut(source, end, *offsets):
        truncated = tuple(TruncatedEpoch(leader_epoch=3, from_offset=offset) for offset in offsets)
        return replace(COPY, source=source, is_judged=False, end_offset=end, truncated=truncated)

    found = case_of(place={"copies": (COPY, cut("raw:2", 70, 60), cut("raw:3", 80, 65))})
    assert (found.truncated_from, found.truncated_until) == (60, 79)
    assert (case_of().truncated_from, case_of().truncated_until) == (None, None)


@pytest.mark.parametrize(("beside", "expected"), [((), 3), ((2,), 3), ((5, None), 5)])
def test_a_copy_without_its_log_shows_a_leader_epoch_too(beside, expected):
    copies = tuple(CopyBeside("raw:9", "9", epoch, 0) for epoch in beside)
    assert case_of(place={"copies": (replace(COPY, copies_beside=copies),)}).newest_leader_epoch == expected


# ---- Its instants.

#: Elections of the partition: leader epoch, instant.
LED = tuple(
    Election(offset=epoch, at_ms=NOON - ms, leader=1, leader_epoch=epoch) for epoch, ms in ((2, 3_000), (3, 2_000))
)


def test_a_first_batch_is_not_older_than_its_leader_epoch():
    assert case_of(place={"elections": LED}).made_ms == NOON - 2_000
    assert case_of(place={"elections": LED}, epoch_since_ms=NOON - 1_000).made_ms == NOON - 1_000
    assert case_of().made_ms is None


@pytest.mark.parametrize(
    ("behind_ms", "taken_ms", "epoch", "expected"),
    [
        (NOON + MINUTE, ONE, 3, 3),
        (ONE, ONE, 4, 4),  # the partition's copy is not younger than the coordinators' copies
        (ONE + 1, ONE + 2, 4, None),
        (ONE, ONE + 2, 4, 4),
        (None, ONE + 2, 4, None),
        (None, ONE + 2, 3, 3),  # the first batch is of it
        (NOON, None, 3, None),
    ],
)
def test_a_leader_epoch_that_began_before_coordinators_were_copied_is_kept(behind_ms, taken_ms, epoch, expected):
    copy = replace(COPY, leader_epoch=epoch, captured_at_ms=taken_ms, newest_stamp_ms=None)
    stamps = (replace(SPAN.stamps[0], behind_ms=NOON), replace(SPAN.stamps[0], leader_epoch=epoch, behind_ms=behind_ms))
    assert case_of(place={"copies": (copy,)}, stamps=stamps[1:] if epoch == 3 else stamps).led_at_copies == expected


def test_a_checkpoint_shows_what_was_written_before_it():
    def written(mark):
        found = case_of(place={"copies": (replace(COPY, high_watermark=mark),)})
        return found.checkpointed_ms, found.written_checkpointed_ms

    assert [written(mark) for mark in (50, 51, 52)] == [(None, None), (ONE, None), (ONE, ONE)]


@pytest.mark.parametrize(("last", "expected"), [(51, True), (50, False), (None, False)])
def test_what_reaches_beyond_its_first_offset_was_written_again(last, expected):
    assert case_of(last_offset=last).is_written_again is expected


def test_an_orphan_is_as_old_as_any_hole_of_a_coordinator():
    logs = (replace(COMPACTED, hole_ms=NOON), replace(COMPACTED, partition=4, hole_ms=NOON + 1))
    facts = replace(FACTS, coordinators=logs)
    of = replace(DOSSIER, claims=(replace(CLAIM, hole_ms=NOON - 1),))
    assert (case_of(ORPHAN, facts).compacted_ms, case_of(of, facts).compacted_ms) == (NOON + 1, NOON - 1)


def test_a_snapshot_in_front_of_which_no_stamp_is_left_hides_stamps():
    unstamped = (replace(SPAN.stamps[0], before_ms=None),)

    def hides(read_from, log_start, stamps=unstamped):
        copy = replace(COPY, read_from_offset=read_from, log_start_offset=log_start)
        return case_of(place={"copies": (copy,)}, stamps=stamps).hides_stamps

    assert (hides(0, None), hides(1, None), hides(30, 20), hides(20, 20)) == (False, True, True, False)
    assert not hides(30, 20, SPAN.stamps)


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [(NOON, NOON + 5, NOON), (NOON, NOON - 5, NOON - 5), (NOON, None, NOON), (None, NOON, None)],
)
def test_it_began_after_the_oldest_of_the_stamps_around_it(before, behind, expected):
    assert case_of(stamps=(replace(SPAN.stamps[0], before_ms=before, behind_ms=behind),)).begun_after_ms == expected


def test_a_clients_time_of_a_batch_counts_whatever_stamps_say():
    assert case_of(first_timestamp_ms=NOON - 24 * 60 * MINUTE).first_timestamp_ms == NOON - 24 * 60 * MINUTE


@pytest.mark.parametrize(
    ("known_until_ms", "expected"), [(NOON, True), (NOON + 29 * MINUTE + 59_000, False), (ONE, False)]
)
def test_a_coordinators_copy_of_no_noted_instant_is_as_old_as_what_it_shows(known_until_ms, expected):
    copies = (replace(COPY, captured_at_ms=None, known_until_ms=known_until_ms),)
    found = case_of(facts=coordinated(copies=copies), last_timestamp_ms=NOON + 30 * MINUTE, stamps=())
    assert found.is_written_after_coordinator is expected


@pytest.mark.parametrize(
    ("stable", "log_start", "expected"), [(1, None, True), (1, 0, True), (1, 1, False), (0, None, False)]
)
def test_a_stable_offset_above_the_first_batch_and_the_log_start_closed_it(stable, log_start, expected):
    """A leader raises it to the log start. Kafka: `UnifiedLog.maybeIncrementFirstUnstableOffset`."""
    copy = replace(COPY, answered_stable_offset=stable, log_start_offset=log_start)
    assert case_of(place={"copies": (copy,)}, start_offset=0).is_answered_closed is expected
