"""Each rule of docs/rules/copies.md, on both sides of its limit."""

from __future__ import annotations

import pytest

from tests.core.verdicts.test_verdict import (
    AT_ONE,
    COMPLETE,
    MARKED,
    MINUTE,
    NOBODY,
    NOON,
    ONGOING,
    PARTITION,
    PREPARED,
    judged,
)
from tests.support.cases import case, decided, replace, with_marker
from txnlib.core.copies import End, Role
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.verdicts.age import proven_since_ms
from txnlib.core.verdicts.case import Crc
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.doubt import DOUBTS
from txnlib.core.verdicts.reason import Reason, Verdict
from txnlib.core.verdicts.verdict import judge

ONE = AT_ONE.as_of_ms
#: An Ongoing transaction that began before noon.
LONG = replace(ONGOING, start_ms=NOON - MINUTE, last_update_ms=NOON - MINUTE, record_ms=NOON - MINUTE)
EXPIRED = replace(COMPLETE, owner=Owner.EXPIRED, state=None)
ROTATED = replace(COMPLETE, owner=Owner.ROTATED)
COMMITTED = decided("COMMIT", 5, decided_ms=NOON, completed_ms=NOON + 1)


@pytest.mark.parametrize("coordinator", [NOBODY, ONGOING, COMPLETE, PREPARED, EXPIRED, ROTATED])
@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ({"is_tail_lost": True}, Reason.PARTITION_LOG_INCOMPLETE),
        ({"ends": End.SHORT}, Reason.PARTITION_LOG_INCOMPLETE),
        ({"gap_offset": 29999, "role": Role.FURTHEST}, Reason.PARTITION_LOG_INCOMPLETE),
        ({"is_disputed": True}, Reason.COPIES_DISAGREE),
        ({"crc": Crc.INVALID}, Reason.CORRUPT_MESSAGE),
        ({"crc": Crc.INVALID, "is_tail_lost": True}, Reason.CORRUPT_MESSAGE),
    ],
)
def test_a_partition_that_cannot_be_believed_makes_every_standing_unknown(coordinator, loss, reason):
    assert judged(replace(PARTITION, **loss), coordinator)[:2] == (Verdict.UNKNOWN, reason)


def test_a_hole_in_the_leaders_own_copy_hides_no_marker_that_the_leader_has():
    assert judged(replace(PARTITION, gap_offset=29999), NOBODY)[0] is Verdict.HANGING


def test_a_copy_that_is_not_current_still_shows_what_hung_before_its_newest_stamp():
    old = replace(PARTITION, role=Role.OTHER, known_until_ms=NOON + 30 * MINUTE)
    assert judged(old, NOBODY)[0] is Verdict.HANGING
    # A quarter of an hour at the newest stamp is not enough, whatever the audit's instant is.
    assert judged(replace(old, known_until_ms=NOON + 15 * MINUTE), NOBODY)[:2] == (
        Verdict.UNKNOWN,
        Reason.PARTITION_COPY_NOT_CURRENT,
    )


@pytest.mark.parametrize("coordinator", [NOBODY, COMPLETE, PREPARED, EXPIRED, ROTATED])
def test_what_only_the_snapshot_of_a_follower_has_open_need_not_be_open_at_the_leader(coordinator):
    """Its records are deleted, and each replica has a state of its own."""
    gone = replace(PARTITION, is_begin_gone=True)
    assert judged(replace(gone, role=Role.OTHER), coordinator)[:2] == (
        Verdict.UNKNOWN,
        Reason.PARTITION_COPY_NOT_CURRENT,
    )
    for role in (Role.LEADER, Role.LAST_LEADER, Role.FURTHEST):
        assert judged(replace(gone, role=role), coordinator)[0] is not Verdict.UNKNOWN
    # Its coordinator lists it, so the leader had it, too.
    assert judged(replace(gone, role=Role.OTHER), ONGOING)[0] is not Verdict.UNKNOWN


@pytest.mark.parametrize("standing", [ONGOING, COMPLETE, PREPARED, replace(COMPLETE, owner=Owner.NEXT)])
@pytest.mark.parametrize("copy", [{"role": Role.OTHER}, {"ends": End.SHORT}])
def test_an_id_that_lives_may_have_gone_on_since_an_old_copy_of_its_coordinator(standing, copy):
    assert judged(PARTITION, replace(standing, **copy))[:2] == (Verdict.UNKNOWN, Reason.COORDINATOR_COPY_NOT_CURRENT)


@pytest.mark.parametrize("standing", [EXPIRED, ROTATED])
def test_what_an_id_gave_up_stays_given_up_unless_an_election_took_that_back(standing):
    old = replace(standing, role=Role.OTHER)
    assert judged(PARTITION, old)[0] is Verdict.HANGING
    assert judged(PARTITION, replace(old, is_record_committed=False))[:2] == (
        Verdict.UNKNOWN,
        Reason.COORDINATOR_COPY_NOT_CURRENT,
    )


@pytest.mark.parametrize("basis", CountBasis)
def test_nobody_has_a_producer_id_only_where_the_number_of_coordinator_partitions_has_one_answer(basis):
    expected = Verdict.UNKNOWN if basis is CountBasis.AMBIGUOUS else Verdict.HANGING
    found = judge(case(PARTITION, replace(NOBODY, count_basis=basis), AT_ONE))
    assert found.verdict is expected
    assert ("--coordinator-partitions" in found.explanation) == (expected is Verdict.UNKNOWN)
    assert judged(PARTITION, replace(COMPLETE, count_basis=basis))[0] is Verdict.HANGING


@pytest.mark.parametrize("coordinator", [ONGOING, COMPLETE, PREPARED, EXPIRED])
def test_damage_to_the_newest_records_of_a_coordinator_puts_every_statement_in_doubt(coordinator):
    assert judged(PARTITION, replace(coordinator, damaged_offset=78))[:2] == (
        Verdict.UNKNOWN,
        Reason.COORDINATOR_LOG_DAMAGED,
    )


@pytest.mark.parametrize("coordinator", [ONGOING, replace(ONGOING, transaction_timeout_ms=2**31 - 1)])
def test_a_marker_younger_than_the_coordinators_copy_ends_what_is_ongoing_there(coordinator):
    young = replace(PARTITION, newest_marker_ms=ONE)
    assert judged(young, coordinator)[:2] == (Verdict.UNKNOWN, Reason.CAPTURE_SKEW)
    assert judged(replace(young, newest_marker_ms=ONE - 1_000), coordinator)[0] is not Verdict.UNKNOWN
    unknown = replace(young, newest_marker_ms=ONE - 299_999, clocks_differ_ms=300_000)
    assert judged(unknown, coordinator)[0] is Verdict.UNKNOWN


def test_a_commit_younger_than_the_last_record_of_an_id_shows_that_its_coordinators_copy_is_old():
    """Only a coordinator writes a COMMIT marker, after it has recorded the decision."""
    recorded = replace(COMPLETE, record_ms=NOON)
    later = replace(PARTITION, newest_commit_ms=NOON + 1_001)
    assert judged(later, recorded)[:2] == (Verdict.UNKNOWN, Reason.COORDINATOR_COPY_NOT_CURRENT)
    assert judged(replace(later, newest_commit_ms=NOON + 1_000), recorded)[0] is Verdict.HANGING
    assert judged(replace(later, clocks_differ_ms=300_000), recorded)[0] is Verdict.HANGING
    # By a coordinator epoch that it never had, no coordinator decided it.
    assert judged(replace(later, newest_commit_coordinator_epoch=20), recorded)[0] is Verdict.HANGING
    assert judged(replace(later, newest_commit_coordinator_epoch=19), recorded)[0] is Verdict.UNKNOWN


def test_what_the_coordinator_began_after_an_older_copy_of_the_partition_is_another_transaction():
    older = replace(PARTITION, known_until_ms=NOON + 30 * MINUTE)
    assert judged(older, LONG)[0] is Verdict.LATE
    later = replace(LONG, start_ms=NOON + 30 * MINUTE - 999)
    assert judged(older, later)[:2] == (Verdict.UNKNOWN, Reason.CAPTURE_SKEW)
    assert judged(older, replace(later, start_ms=NOON + 30 * MINUTE - 1_000))[0] is not Verdict.UNKNOWN


def test_M19_a_decision_just_before_an_older_copy_may_be_later_by_another_clock():
    older = replace(PARTITION, known_until_ms=NOON + 30 * MINUTE)
    decided = replace(COMPLETE, ended_ms=NOON + 30 * MINUTE - 999, decision=COMMITTED)
    assert judged(older, decided)[:2] == (Verdict.UNKNOWN, Reason.CAPTURE_SKEW)
    assert judged(older, replace(decided, ended_ms=NOON + 30 * MINUTE - 1_000))[0] is Verdict.HANGING
    # Its marker is here; or both copies are of one instant.
    assert judged(older, replace(decided, decision=with_marker(COMMITTED, True)))[0] is Verdict.HANGING
    assert judged(PARTITION, replace(decided, ended_ms=ONE - 999))[0] is Verdict.HANGING
    assert judged(PARTITION, replace(decided, ended_ms=ONE))[0] is Verdict.HANGING
    assert judged(PARTITION, replace(decided, ended_ms=ONE + 1))[0] is Verdict.UNKNOWN


@pytest.mark.parametrize("coordinator", [NOBODY, COMPLETE, EXPIRED, ROTATED])
def test_records_that_compaction_removed_after_the_partitions_copy_may_have_ended_it(coordinator):
    taken = replace(PARTITION, known_until_ms=NOON + 30 * MINUTE)
    cleaned = replace(coordinator, compacted_ms=NOON + 30 * MINUTE + 1)
    assert judged(taken, cleaned)[:2] == (Verdict.UNKNOWN, Reason.COORDINATOR_RECORDS_COMPACTED)
    assert judged(taken, replace(cleaned, compacted_ms=NOON + 30 * MINUTE - 1_000))[0] is Verdict.HANGING


def test_under_transactions_v2_the_same_epoch_proves_that_nothing_ended():
    taken = replace(PARTITION, known_until_ms=NOON + 30 * MINUTE)
    cleaned = replace(COMPLETE, compacted_ms=ONE, client_transaction_version=2, transaction_version=2)
    assert judged(taken, cleaned)[0] is Verdict.HANGING
    assert judged(taken, replace(cleaned, producer_epoch=6))[0] is Verdict.UNKNOWN
    assert judged(taken, replace(cleaned, client_transaction_version=1))[0] is Verdict.UNKNOWN
    # Transactions from before the level became 2 may have had the same epoch.
    begun = replace(taken, stamped_before_ms=NOON - MINUTE)
    assert judged(begun, replace(cleaned, levels=((1, NOON - 60 * MINUTE), (2, None))))[0] is Verdict.HANGING
    assert judged(begun, replace(cleaned, levels=((1, NOON + MINUTE), (2, None))))[0] is Verdict.UNKNOWN


# Age.


@pytest.mark.parametrize("later", [0, 10 * MINUTE])
def test_a_decision_is_as_old_as_the_copies_not_as_the_audit(later):
    second = replace(PREPARED, record_ms=NOON, known_until_ms=NOON + 1_000)
    taken = replace(PARTITION, known_until_ms=NOON + 1_000)
    assert judged(taken, second, replace(AT_ONE, as_of_ms=NOON + 1_000 + later))[:2] == (
        Verdict.OPEN,
        Reason.MARKER_PENDING,
    )
    overdue = replace(taken, known_until_ms=NOON + 6 * MINUTE), replace(second, known_until_ms=NOON + 6 * MINUTE)
    assert judged(*overdue)[1] is Reason.MARKER_OVERDUE


def test_an_audit_later_than_the_capture_makes_nothing_older():
    late = replace(AT_ONE, as_of_ms=ONE + 600 * MINUTE)
    young = replace(PARTITION, last_timestamp_ms=ONE - MINUTE)
    assert judged(young, NOBODY, late)[0] is Verdict.SUSPECT
    assert judged(young, ONGOING, late)[0] is Verdict.OPEN


@pytest.mark.parametrize("claimed", [0, -1, None])
def test_a_time_that_no_clock_shows_is_no_age(claimed):
    broken = replace(PARTITION, last_timestamp_ms=claimed, first_timestamp_ms=None)
    young = replace(ONGOING, start_ms=ONE - 1_000)
    assert judged(broken, young)[0] is Verdict.OPEN
    assert judged(broken, NOBODY)[0] is Verdict.HANGING  # a marker proves half an hour
    assert judged(replace(broken, stamped_after_ms=None), NOBODY)[0] is Verdict.SUSPECT


def test_a_write_stamped_in_the_future_is_as_old_as_brokers_prove():
    ahead = replace(PARTITION, last_timestamp_ms=ONE + 30 * 86_400_000)
    assert judged(ahead, NOBODY)[0] is Verdict.HANGING
    assert judged(replace(ahead, stamped_after_ms=ONE - 15 * MINUTE), NOBODY)[0] is Verdict.SUSPECT
    # A clock that is a little ahead is no reason to distrust it.
    assert judged(replace(PARTITION, last_timestamp_ms=ONE + 5 * MINUTE), NOBODY)[0] is Verdict.SUSPECT


# Late by the client's clock alone.


def test_late_by_old_timestamps_alone_is_said_to_be_in_time_by_its_coordinator():
    replayed = replace(ONGOING, start_ms=ONE - 2_000)
    found = judge(case(PARTITION, replayed, AT_ONE))
    assert (found.verdict, found.reason, found.late_by) == (Verdict.LATE, Reason.TIMEOUT_NOT_PASSED, "LAST_WRITE")
    assert "by its coordinator's clock, bar began it 2 s ago" in found.explanation


def test_without_a_start_at_the_coordinator_nothing_is_known_of_its_timeout():
    found = judge(case(PARTITION, replace(ONGOING, start_ms=None), AT_ONE))
    assert (found.verdict, found.reason) == (Verdict.LATE, Reason.OVERDUE)


# Decisions and their markers.


@pytest.mark.parametrize(
    ("is_marked", "reason"),
    [
        (True, Reason.WRITTEN_AFTER_MARKER),
        (False, Reason.PARTITION_NOT_IN_TRANSACTION),
        (None, Reason.WRITTEN_AFTER_MARKER),
    ],
)
def test_the_newest_decision_says_whether_its_marker_is_here(is_marked, reason):
    coordinator = replace(COMPLETE, decision=with_marker(COMMITTED, is_marked))
    assert judged(MARKED, coordinator)[:2] == (Verdict.HANGING, reason)


# Order of precedence.

#: Doubts in order of precedence: the reason, and evidence for it. Each is alone in what it changes.
OLD = {"known_until_ms": NOON + 10 * MINUTE, "ends": End.TORN}
DOUBTFUL = [
    (Reason.CORRUPT_MESSAGE, {"crc": Crc.INVALID}, {}),
    (Reason.PARTITION_LOG_INCOMPLETE, {"is_tail_lost": True}, {}),
    (Reason.COPIES_DISAGREE, {"is_disputed": True}, {}),
    (Reason.BROKER_ANSWERED_OTHERWISE, {"answered_stable_offset": PARTITION.start_offset + 1}, {}),
    (Reason.COORDINATOR_PARTITION_NOT_CAPTURED, {}, {"missing_partitions": (7,)}),
    (Reason.COORDINATOR_LOG_DAMAGED, {}, {"damaged_offset": 78, "record_offset": 77}),
    (Reason.COORDINATOR_COPY_NOT_CURRENT, {}, {"ends": End.SHORT, "is_record_committed": False}),
    (Reason.CAPTURE_SKEW, {}, {"ended_ms": ONE + 1}),
    (Reason.COORDINATOR_RECORDS_COMPACTED, {}, {"compacted_ms": ONE + 1}),
    (Reason.PARTITION_COPY_NOT_CURRENT, {"is_begin_gone": True, "role": Role.OTHER}, {}),
    (Reason.PARTITION_COPY_NOT_CURRENT, OLD, {}),
    (Reason.COORDINATOR_COPY_NOT_CURRENT, {}, OLD),
    (Reason.CAPTURE_SKEW, {"known_until_ms": NOON + 10 * MINUTE, "is_instant_assumed": True}, {}),
    (Reason.METADATA_LOG_DAMAGED, {"is_leader_hidden": True}, {}),
]
#: Owner -> the doubt that it cannot have: a producer id without an owner has no last record; with one, no owner is
#: missing.
IMPOSSIBLE = {"NOBODY": 6, "CURRENT": 4, "EXPIRED": 4}
OWNERS = {"NOBODY": NOBODY, "CURRENT": COMPLETE, "EXPIRED": EXPIRED}
SEEN_EARLY = replace(PARTITION, seen_open_ms=NOON + MINUTE)


def test_doubts_are_in_order_of_precedence():
    assert [reason for reason, _ in DOUBTS] == [reason for reason, _, _ in DOUBTFUL]


@pytest.mark.parametrize("owner", OWNERS)
def test_each_doubt_precedes_those_after_it(owner):
    """All doubts at once; then all but the first, and so on."""
    possible = [row for number, row in enumerate(DOUBTFUL) if number != IMPOSSIBLE[owner]]
    assert judged(SEEN_EARLY, OWNERS[owner])[0] is Verdict.HANGING
    for number, (reason, _, _) in enumerate(possible):
        partition, coordinator = {}, {}
        for _, on_partition, at_coordinator in reversed(possible[number:]):
            partition |= on_partition
            coordinator |= at_coordinator
        found = judged(replace(SEEN_EARLY, **partition), replace(OWNERS[owner], **coordinator))
        assert found[:2] == (Verdict.UNKNOWN, reason), number


def test_a_coordinator_whose_leader_may_be_lost_decides_nothing() -> None:
    for coordinator in (NOBODY, COMPLETE, EXPIRED, ONGOING):
        found = judged(SEEN_EARLY, replace(coordinator, is_leader_hidden=True))
        assert found[:2] == (Verdict.UNKNOWN, Reason.METADATA_LOG_DAMAGED)


@pytest.mark.parametrize(
    ("minutes_ago", "timeout_ms", "is_decided"),
    [(60, 2 * 60 * MINUTE, False), (6, 2 * 60 * MINUTE, False), (5, 2 * 60 * MINUTE, True), (60, 60_000, True)],
    ids=["old", "older than any limit allows", "too young for any limit", "late by its coordinator's start"],
)
def test_a_limit_that_may_be_lost_decides_nothing(minutes_ago: int, timeout_ms: int, is_decided: bool) -> None:
    partition = replace(SEEN_EARLY, last_timestamp_ms=ONE - minutes_ago * MINUTE)
    coordinator = replace(ONGOING, transaction_timeout_ms=timeout_ms, start_ms=NOON)
    known = judged(partition, coordinator)[0]
    found = judged(partition, coordinator, replace(AT_ONE, is_limit_hidden=True))[0]
    assert known in (Verdict.OPEN, Verdict.LATE)
    assert found is (known if is_decided else Verdict.UNKNOWN)


@pytest.mark.parametrize("coordinator", [NOBODY, COMPLETE, EXPIRED, ROTATED])
def test_a_limit_that_may_be_lost_decides_only_what_is_late(coordinator) -> None:
    assert judged(PARTITION, coordinator, replace(AT_ONE, is_limit_hidden=True))[0] is Verdict.HANGING


# What may have been written after the coordinator's copy.

LATER = replace(
    SEEN_EARLY, captured_by_ms=ONE, stamped_after_ms=NOON + MINUTE, is_written_again=True, last_timestamp_ms=NOON + 2
)
OLDER = replace(COMPLETE, known_until_ms=ONE - 10 * MINUTE)


@pytest.mark.parametrize(
    ("change", "is_unknown"),
    [
        ({}, True),
        ({"is_written_again": False}, False),
        ({"captured_by_ms": ONE - 10 * MINUTE}, False),
        ({"written_before_ms": ONE - 10 * MINUTE}, False),
        ({"written_before_ms": ONE - 10 * MINUTE + 1}, True),
        ({"written_checkpointed_ms": ONE - 10 * MINUTE}, False),
        ({"written_after_ms": NOON + 5 * MINUTE}, False),
        ({"written_after_ms": NOON + 5 * MINUTE + 3}, True),  # no stamp near it confirms the client's clock
        ({"is_broker_clock": True}, False),
        ({"is_broker_clock": True, "written_after_ms": ONE - 10 * MINUTE}, False),
        ({"is_broker_clock": True, "written_after_ms": ONE - 10 * MINUTE + 1}, True),
        ({"is_broker_clock": True, "hides_stamps": True}, True),
        ({"is_broker_clock": True, "last_timestamp_ms": None}, True),
        ({"written_before_ms": NOON, "is_written_after_coordinator": True}, True),
    ],
)
def test_a_producer_that_may_have_written_again_may_be_in_another_transaction(change, is_unknown):
    found = judged(replace(LATER, **change), OLDER)
    assert found[:2] == ((Verdict.UNKNOWN, Reason.CAPTURE_SKEW) if is_unknown else (Verdict.HANGING, found[1]))


@pytest.mark.parametrize("by", [-1, 0, 1])
@pytest.mark.parametrize("of", ["last_timestamp_ms", "written_after_ms"])
def test_a_confirmed_time_precedes_the_coordinators_copy_up_to_its_instant(of, by):
    """The last write, by its producer's clock, and the stamp before it that confirms this clock."""
    copied = ONE - 10 * MINUTE
    times = {"last_timestamp_ms": copied - 1, "written_after_ms": copied - 1, of: copied + by}
    found = judged(replace(LATER, **times), OLDER)
    assert (found[0] is Verdict.UNKNOWN) is (by > 0)


# What proves an age.

STAMPED_MS, START_MS = PARTITION.stamped_after_ms, PARTITION.stamped_after_ms - 7 * MINUTE
#: What differs in the partition, and at its coordinator, which began it seven minutes before the stamp -> since when it
#: is proven to be open, and the clock of its age.
PROVEN = [
    ({}, {}, START_MS, "CLIENT_CLOCK"),
    ({}, {"is_listed": False}, STAMPED_MS, "CLIENT_CLOCK"),
    ({}, {"state": COMPLETE.state}, STAMPED_MS, "CLIENT_CLOCK"),
    ({}, {"owner": Owner.ROTATED}, STAMPED_MS, "CLIENT_CLOCK"),
    ({"seen_open_ms": START_MS - 1}, {}, START_MS - 1, "CLIENT_CLOCK"),
    ({"stamped_after_ms": None}, {"is_listed": False}, None, "CLIENT_CLOCK"),
    ({"first_timestamp_ms": START_MS - 2}, {}, START_MS, "CLIENT_CLOCK"),
    ({"first_timestamp_ms": START_MS - 2, "is_broker_clock": True}, {}, START_MS - 2, "BROKER_CLOCK"),
    ({"made_ms": START_MS + 1}, {}, START_MS + 1, "CLIENT_CLOCK"),
    ({"made_ms": START_MS - 1}, {}, START_MS, "CLIENT_CLOCK"),
]


@pytest.mark.parametrize(("here", "there", "since", "clock"), PROVEN)
def test_an_age_is_proven_by_brokers_clocks_and_by_the_coordinator_that_has_it(here, there, since, clock):
    of = case(replace(PARTITION, **here), replace(ONGOING, start_ms=START_MS, **there))
    assert proven_since_ms(of) == since
    assert judge(of).age_basis == clock


#: What is changed at the partition and at its coordinator, which began it before noon -> the doubt.
OF_EXPECTED = [
    ({}, {}, None),
    # Late only at the instant of the audit.
    (OLD, {}, Reason.PARTITION_COPY_NOT_CURRENT),
    ({**OLD, "known_until_ms": NOON + 30 * MINUTE}, {}, None),
    ({**OLD, "last_timestamp_ms": ONE - 5 * MINUTE}, {}, None),
    # Up to when an old copy is known, is not: then what is Ongoing need not be in it.
    ({"known_until_ms": None, "ends": End.TORN}, {}, Reason.CAPTURE_SKEW),
    ({"known_until_ms": None}, {}, None),
]


@pytest.mark.parametrize(("here", "there", "reason"), OF_EXPECTED)
def test_a_transaction_that_is_expected_ages_only_up_to_its_copies(here, there, reason):
    long = replace(LONG, transaction_timeout_ms=2 * 60 * MINUTE, **there)
    found = judged(replace(PARTITION, **here), long)
    assert (found[1] if found[0] is Verdict.UNKNOWN else None) is reason


def test_a_decision_ages_no_copy():
    assert judged(replace(PARTITION, **OLD), PREPARED)[0] is not Verdict.UNKNOWN
