"""What a case derives of its partition: stamps, sequences, earlier audits, markers elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import (
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    MARKER,
    MINUTE,
    NOON,
    ONE,
    SPAN,
    judged,
    placed,
)
from txnlib.core.display import instant
from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.core.tables.judged_transactions import judge_dossier
from txnlib.core.verdicts.case import Case, Crc
from txnlib.core.verdicts.case_facts import is_start_proven
from txnlib.core.verdicts.dossier import CheckedBatch, EpochStamps, RepeatedMarker, SiblingMarkers
from txnlib.core.verdicts.earlier_audits import EarlierAudit, is_same_transaction


def case_of(dossier=DOSSIER, facts=FACTS, place=None, **span) -> Case:
    of = replace(dossier, open=(replace(dossier.open[0], **span),))
    return Case(dossier=of, span=of.open[0], facts=placed(facts, place or {}))


def test_stamps_of_all_leader_epochs_count():
    stamps = (
        EpochStamps(before_ms=NOON - 9, behind_ms=NOON + 9, behind_last_ms=NOON + 9),
        EpochStamps(before_ms=NOON - 1, behind_ms=NOON + 1, behind_last_ms=NOON + 5),
        EpochStamps(behind_ms=946_684_800_000),
    )
    found = case_of(stamps=stamps)
    assert (found.stamped_before_ms, found.stamped_after_ms, found.written_before_ms) == (NOON - 1, NOON + 1, NOON + 5)


def test_a_brokers_own_time_of_a_batch_counts_unless_stamps_contradict_it():
    stamped = {"is_broker_clock": True, "first_timestamp_ms": NOON}
    assert case_of(**stamped).first_timestamp_ms == NOON
    old = {"is_broker_clock": True, "first_timestamp_ms": 946_684_800_000}
    assert case_of(**old).first_timestamp_ms is None
    assert case_of(first_timestamp_ms=None).first_timestamp_ms == NOON


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
    (None, CHECK, replace(COPY, read_from_offset=1), True),
    (None, CHECK, replace(COPY, read_from_offset=None, log_start_offset=9), True),
    (None, replace(CHECK, base_sequence=None), COPY, True),
    (None, replace(CHECK, base_sequence=None), HOLE, False),
    (BEFORE, replace(CHECK, base_sequence=None), replace(COPY, damaged_offset=9), False),
    (replace(BEFORE, last_sequence=None), CHECK, COPY, True),
    (replace(BEFORE, last_sequence=None), CHECK, HOLE, False),
    (None, None, COPY, True),
    (None, None, replace(COPY, gap_offset=1), False),
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
    assert case_of(checks=checks).crc is expected


EARLIER = EarlierAudit(
    run_id="a", as_of_ms=NOON + 5 * MINUTE, copied_ms=NOON + 4 * MINUTE, topic_id="AAAA", first_batch_crc=77
)
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
    assert is_same_transaction(earlier, COPY, SPAN.checks[1].crc) is expected
    seen = case_of(earlier=(earlier,)).seen_open_ms
    assert seen == (NOON + 4 * MINUTE if expected else None)
    (row,) = judge_dossier(replace(DOSSIER, open=(replace(SPAN, earlier=(earlier,)),)), FACTS)
    assert (row.runs_seen, row.first_seen_ms) == ((1, ONE) if expected is False else (2, NOON + 5 * MINUTE))


def test_an_earlier_audit_proves_the_instant_of_its_copies_not_its_as_of():
    wrong = replace(EARLIER, as_of_ms=NOON - 600 * MINUTE, copied_ms=ONE - MINUTE)
    unstamped = (replace(SPAN.stamps[0], behind_ms=None, behind_last_ms=None),)
    found = case_of(earlier=(wrong,), stamps=unstamped).seen_open_ms
    assert found == ONE - MINUTE
    # One from before the stamps in front of the first batch is of another log.
    assert case_of(earlier=(replace(EARLIER, copied_ms=NOON - 10 * MINUTE),)).seen_open_ms is None
    assert case_of(earlier=(replace(EARLIER, copied_ms=None),)).seen_open_ms is None


def test_siblings_that_were_committed_since_are_named_in_order():
    since = SiblingMarkers(topic="b", partition=1, is_committed=True, committed_ms=NOON)
    other = replace(since, topic="a")
    old = replace(since, topic="c", committed_ms=NOON - 60 * MINUTE)
    untold = replace(since, topic="d", is_committed=False)
    assert case_of(siblings=(since, other, old, untold)).committed_siblings == ("a-1", "b-1")
    assert case_of(siblings=(old,), stamps=()).committed_siblings == ("c-1",)


def test_what_is_blocked_reaches_to_the_high_watermark():
    row = judged()
    assert (row.blocked_offsets, row.blocked_bytes) == (50, 700)
    assert judged(copy={"high_watermark": None, "end_offset": 70}).blocked_offsets == 20
    assert judged(copy={"high_watermark": 10}).blocked_offsets == 0
    assert judged(span={"start_offset": 0}, copy={"log_start_offset": None}).blocked_offsets == 100
    assert [judged(copy={"log_start_offset": start}).blocked_offsets for start in (49, 51)] == [50, 49], (
        "nobody reads what is deleted"
    )
    assert judged(copy={"read_from_offset": 60}).blocked_bytes is None
    assert judged(copy={"read_from_offset": 50}).blocked_bytes == 700


def test_a_row_says_since_when_it_blocks():
    assert judged().blocks_since_ms == NOON + MINUTE
    unstamped = {"stamps": ()}
    assert judged(span=unstamped).blocks_since_ms == NOON
    assert judged(span=unstamped | {"first_timestamp_ms": None, "last_timestamp_ms": -1}).blocks_since_ms is None
    assert judged().duration_minutes == 60
    assert judged(span={"last_timestamp_ms": ONE + 90_000}).duration_minutes == -1


@pytest.mark.parametrize(
    ("written", "taken", "expected"),
    [
        (ONE - 10 * MINUTE + 1_000, ONE, False),
        (ONE - 10 * MINUTE + 1_001, ONE, True),
        (ONE + 5 * MINUTE, ONE, True),
        (ONE + 5 * MINUTE + 1, ONE, False),  # a client's invention
        (ONE, None, False),
        # A client whose clock is ahead wrote before both copies.
        (ONE, ONE - 10 * MINUTE, False),
        (ONE - 9 * MINUTE, ONE - 10 * MINUTE, False),
        (ONE - 9 * MINUTE, ONE - 10 * MINUTE + 1, True),
    ],
)
def test_a_write_after_the_coordinators_copy_is_one_between_the_copies(written, taken, expected):
    older = replace(COPY, captured_at_ms=ONE - 10 * MINUTE, known_until_ms=ONE - 10 * MINUTE)
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, copies=(older,)),))
    copies = (replace(COPY, captured_at_ms=taken, newest_stamp_ms=None),)
    found = case_of(DOSSIER, facts, {"copies": copies}, last_timestamp_ms=written, stamps=())
    assert found.is_written_after_coordinator is expected
    assert not case_of(DOSSIER, facts, {"copies": copies}, last_timestamp_ms=written).is_written_after_coordinator


def test_copies_that_disagree_dispute_what_is_not_the_leaders():
    assert not case_of(place={"alarms": ("COPIES_DISAGREE",)}).is_disputed
    other = (replace(COPY, role="FURTHEST"),)
    assert case_of(place={"alarms": ("COPIES_DISAGREE",), "copies": other}).is_disputed
    assert not case_of(place={"alarms": ("OTHER",), "copies": other}).is_disputed


@pytest.mark.parametrize(("base_offset", "is_gone"), [(50, False), (55, True)])
def test_a_later_batch_is_not_the_first_one(base_offset: int, is_gone: bool) -> None:
    """Its CRC, its leader epoch and its sequence say nothing of the first batch, which was deleted."""
    (before, first) = SPAN.checks
    checks = (before, replace(first, base_offset=base_offset))
    found = case_of(checks=checks, place={"copies": (replace(COPY, log_start_offset=base_offset),)})
    assert (found.is_begin_gone, found.first_leader_epoch is None, found.first_batch_crc is None) == (is_gone,) * 3
    assert found.is_start_exact


def test_nothing_is_known_of_a_partition_without_a_copy():
    found = case_of(place={"copies": ()})
    assert (found.is_current, found.copy.is_other) == (False, True)
    assert (found.copy.has_leader, found.copy.led_by) == (None, None)
    assert case_of(place={"copies": (replace(COPY, leader="-1"),)}).copy.led_by is None
    bare = case_of(DOSSIER, replace(FACTS, coordinators=()))
    assert (bare.coordinator_copy.is_other, bare.is_coordinator_current, bare.is_instant_assumed) == (True, False, True)
    assert bare.coordinators.uncertain_copies == ("no partition of __transaction_state was captured",)


@pytest.mark.parametrize(("stamp", "by"), [(ONE + 1_000, ONE), (ONE + 1_001, ONE + 1_001), (None, ONE), (0, ONE)])
def test_a_copy_is_not_older_than_its_newest_stamp(stamp, by):
    assert case_of(place={"copies": (replace(COPY, newest_stamp_ms=stamp),)}).captured_by_ms == by


def test_the_newest_unexplained_markers_elsewhere_are_summed_up():
    older = SiblingMarkers(topic="a", partition=0, newest_unexplained_ms=NOON, newest_unexplained_commit_ms=NOON)
    newer = replace(older, newest_unexplained_ms=NOON + 2, newest_unexplained_commit_ms=NOON + 1)
    newer = replace(newer, newest_unexplained_commit_coordinator_epoch=7)
    silent = SiblingMarkers(topic="b", partition=0)
    found = case_of(siblings=(older, newer, silent))
    assert (found.newest_marker_ms, found.newest_commit) == (NOON + 2, newer)
    assert case_of(siblings=(silent,)).newest_marker_ms is None
    limit = NOON - MINUTE + 10 - 300_000
    at = replace(older, is_committed=True, committed_ms=limit)
    assert case_of(siblings=(at,)).committed_siblings == ("a-0",)
    assert case_of(siblings=(replace(at, committed_ms=None),)).committed_siblings == ("a-0",)


def test_a_row_names_at_most_twenty_siblings():
    siblings = tuple(SiblingMarkers(topic="a", partition=n, is_committed=True) for n in range(21))
    (row,) = judge_dossier(replace(DOSSIER, open=(replace(SPAN, siblings=siblings),)), FACTS)
    assert len(row.committed_siblings) == 20


def test_a_row_says_up_to_when_its_copy_shows_it():
    assert judged().copied_at_ms == ONE
    assert judged(copy={"known_until_ms": None}).copied_at_ms is None
    assert judged(copy={"high_watermark": None, "end_offset": None}).blocked_offsets == 0
    assert judged(copy={"read_from_offset": None}).blocked_bytes == 700
    assert judged(copy={"read_from_offset": 60, "log_start_offset": 60}).blocked_bytes == 700
    assert judged(copy={"read_from_offset": 60, "log_start_offset": None}).blocked_bytes is None


@pytest.mark.parametrize(
    ("first_open_offset", "alarms", "holds"),
    [(50, (), True), (49, (), False), (50, ("LIVE_STABLE_OFFSET_DISAGREES",), None), (50, ("CORRUPT_BATCH",), True)],
)
def test_the_first_open_transaction_of_a_partition_holds_it(first_open_offset, alarms, holds):
    assert judged(span={"first_open_offset": first_open_offset}, place={"alarms": alarms}).holds is holds


#: A COMMIT on another partition that ended nothing, behind the own one of a decision -> whether it may be of another.
AGAIN = replace(MARKER, offset=41, first_offset=None)
REPEATS = [
    ({"ms": NOON - MINUTE + 20}, {}, False),
    # Two clocks that were never compared: the time between the two markers tells.
    ({"ms": NOON - MINUTE + 50}, {}, False),
    ({"ms": NOON - MINUTE + 51}, {}, True),
    ({"ms": None}, {}, False),
    # No marker has an older coordinator epoch than its decision, or a newer one than its completion.
    ({"coordinator_epoch": 18}, {}, True),
    ({"coordinator_epoch": 20}, {"stamped_epoch": 19}, True),
    ({"coordinator_epoch": 20}, {"stamped_epoch": 20}, False),
    # Another leader's clock stamped it.
    ({"ms": NOON, "leader_epoch": 4}, {}, False),
    ({"ms": NOON + 5 * MINUTE, "leader_epoch": 4}, {}, True),
]


@pytest.mark.parametrize(("marked", "decided", "is_unexplained"), REPEATS)
def test_a_marker_that_was_sent_again_on_another_partition_counts_no_more(marked, decided, is_unexplained):
    marker = replace(AGAIN, **marked)
    repeated = RepeatedMarker(marker=marker, own=MARKER, decision=replace(DECISION, **decided))
    markers = SiblingMarkers(topic="bar", partition=1, is_committed=True, committed_ms=MARKER.ms)
    (found,) = case_of(siblings=(replace(markers, repeated=(repeated,)),)).siblings
    assert found.newest_unexplained_ms == (marker.ms if is_unexplained else None)
    assert found.newest_unexplained_commit_coordinator_epoch == (marker.coordinator_epoch if is_unexplained else None)
    assert found.committed_ms == (max(MARKER.ms, marker.ms) if is_unexplained else MARKER.ms)


def test_what_no_decision_explains_is_summed_up_with_the_other_markers_there():
    newest, abort = replace(AGAIN, ms=NOON + 1), replace(AGAIN, type="ABORT", ms=NOON + 3)
    unshown, older = replace(AGAIN, ms=-1), replace(AGAIN, epoch=4, ms=NOON + 2)
    markers = SiblingMarkers(
        topic="bar", partition=1, newest_unexplained_ms=NOON, newest_unexplained_commit_ms=NOON, committed_ms=NOON,
        newest_unexplained_commit_coordinator_epoch=7,
    )  # fmt: skip

    def of(*repeated):
        given = replace(markers, repeated=tuple(RepeatedMarker(marker=each) for each in repeated))
        (found,) = case_of(siblings=(given,)).siblings
        commit = found.newest_unexplained_commit_ms, found.newest_unexplained_commit_coordinator_epoch
        return found.newest_unexplained_ms, *commit, found.committed_ms

    assert of() == (NOON, NOON, 7, NOON)
    assert of(replace(newest, ms=NOON - 1)) == (NOON, NOON, 7, NOON)
    assert of(newest, abort) == (NOON + 3, NOON + 1, 19, NOON + 1)
    assert of(older) == (NOON + 2, NOON + 2, 19, NOON), "its epoch is older than the open records"
    assert of(newest, unshown) == (NO_INSTANT_MS, NO_INSTANT_MS, 19, NO_INSTANT_MS)


def test_an_answered_stable_offset_is_named_with_its_instant():
    row = judged(copy={"answered_stable_offset": 60, "answered_at_ms": ONE})
    assert row.reason == "BROKER_ANSWERED_OTHERWISE"
    assert f"nothing was open below offset 60 at {instant(ONE)}" in row.explanation
