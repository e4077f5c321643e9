"""Verdicts by what the records show, and the tables behind them."""

from __future__ import annotations

import pytest

from tests.support.cases import AT_ONE, NOON, Given, case, replace
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts import doubt as doubts
from txnlib.core.verdicts import reason as reasons
from txnlib.core.verdicts import verdict as rules
from txnlib.core.verdicts.age import LateBy
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.reason import EXPLANATIONS, Reason, Verdict
from txnlib.core.verdicts.remedy import REFUSALS
from txnlib.core.verdicts.verdict import judge

MINUTE = 60_000

#: An hour old at one o'clock; everything was captured at one o'clock; a marker at half past twelve proves the age.
PARTITION = Given(
    topic="foo",
    partition=5,
    producer_id=132,
    producer_epoch=5,
    coordinator_epoch=19,
    start_offset=29384,
    last_timestamp_ms=NOON,
    first_timestamp_ms=NOON,
    stamped_after_ms=NOON + 30 * MINUTE,
    known_until_ms=AT_ONE.as_of_ms,
)
NOBODY = Given(known_until_ms=AT_ONE.as_of_ms)
ONGOING = Given(
    owner=Owner.CURRENT,
    transactional_id="bar",
    coordinator_partition=3,
    state=TransactionState.ONGOING,
    record_offset=77,
    producer_epoch=5,
    transaction_timeout_ms=60_000,
    start_ms=AT_ONE.as_of_ms - 1_000,
    last_update_ms=AT_ONE.as_of_ms - 1_000,
    record_ms=AT_ONE.as_of_ms - 1_000,
    record_coordinator_epoch=19,
    newest_coordinator_epoch=19,
    is_listed=True,
    known_until_ms=AT_ONE.as_of_ms,
)
COMPLETE = replace(ONGOING, state=TransactionState.COMPLETE_ABORT, is_listed=False)
PREPARED = replace(ONGOING, state=TransactionState.PREPARE_COMMIT)
YOUNG = replace(PARTITION, last_timestamp_ms=AT_ONE.as_of_ms - MINUTE, first_timestamp_ms=AT_ONE.as_of_ms - MINUTE)
MARKED = replace(
    PARTITION,
    marker_offset=29000,
    marker_type="COMMIT",
    marker_epoch=5,
    marker_coordinator_epoch=19,
    marker_ms=AT_ONE.as_of_ms,
)


def judged(
    partition: Given,
    coordinator: Given,
    thresholds: Thresholds = AT_ONE,
    version: str | None = "3.9.1",
) -> tuple:
    judgement = judge(case(partition, coordinator, thresholds, version))
    return judgement.verdict, judgement.reason, judgement.kafka_find_hanging


# The tables, walked in full.


#: Verdicts of reasons that depend on no age.
DECIDED = {
    "MARKER_PENDING": "OPEN",
    "MARKER_OVERDUE": "STUCK",
    "MARKER_REFUSED": "STUCK",
    "TWO_PHASE_COMMIT": "OPEN",
    "BROKER_VERSION_UNKNOWN": "UNKNOWN",
}
#: Rows: how it is late. Columns: whether the coordinator's start is known, and not known.
LATE = {
    "LAST_WRITE": ("TIMEOUT_NOT_PASSED", "OVERDUE"),
    "COORDINATOR_START": ("OVERDUE", "OVERDUE"),
    "BOTH": ("OVERDUE", "OVERDUE"),
}
#: Group of reasons -> its members.
GROUPS = {
    "NOBODY_ENDS_IT": {
        "PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR",
        "TRANSACTIONAL_ID_EXPIRED",
        "PRODUCER_ID_ROTATED",
        "WRITTEN_AFTER_MARKER",
        "PARTITION_NOT_IN_TRANSACTION",
        "EPOCH_AHEAD_OF_COORDINATOR",
    },
    "EXPECTED_BY_RECORDS": {"EXPECTED", "TWO_PHASE_COMMIT"},
    "DECIDED_BY_RECORDS": {"MARKER_PENDING", "MARKER_REFUSED"},
    "EXPECTED_REASONS": {"EXPECTED", "OVERDUE", "TIMEOUT_NOT_PASSED", "TWO_PHASE_COMMIT"},
}


def test_the_tables_of_verdicts_are_the_grids():
    assert {reason.value: verdict.value for reason, verdict in rules.DECIDED_VERDICTS.items()} == DECIDED
    late = {(by, known): reason for by, row in LATE.items() for known, reason in zip((True, False), row, strict=True)}
    assert {(by.value, known): reason.value for (by, known), reason in rules.LATE_REASONS.items()} == late
    assert set(rules.DIFFERENCES) == {(Verdict.HANGING, False), (Verdict.STUCK, False), (Verdict.UNKNOWN, True)}


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_of_reasons_has_its_members(name):
    group = getattr(reasons, name)
    assert {reason.value for reason in group} == GROUPS[name]


def test_every_reason_has_a_sentence_and_exactly_one_way_to_a_verdict():
    assert set(EXPLANATIONS) == set(Reason)
    named = {reason for reason, _ in doubts.DOUBTS}
    late = {Reason.EXPECTED, *rules.LATE_REASONS.values()}
    ways = [reasons.NOBODY_ENDS_IT, set(rules.DECIDED_VERDICTS), named, late]
    assert sorted(r for way in ways for r in way) == sorted(Reason)


def test_every_verdict_says_whether_a_marker_may_be_written_by_hand():
    assert set(REFUSALS) == set(Verdict)
    assert [verdict for verdict, refusal in REFUSALS.items() if refusal is None] == [Verdict.HANGING]


@pytest.mark.parametrize(
    ("last_write", "start", "expected"),
    [
        (AT_ONE.as_of_ms - 1_200_000, AT_ONE.as_of_ms - 70_000, None),  # exactly at both limits
        (AT_ONE.as_of_ms - 1_200_001, AT_ONE.as_of_ms - 70_000, LateBy.LAST_WRITE),
        (AT_ONE.as_of_ms - 1_200_000, AT_ONE.as_of_ms - 70_001, LateBy.COORDINATOR_START),
        (AT_ONE.as_of_ms - 1_200_001, AT_ONE.as_of_ms - 70_001, LateBy.BOTH),
        (None, None, None),  # nothing known, nothing late
    ],
)
def test_lateness_has_two_rules_and_both_are_strict(last_write, start, expected):
    partition = replace(PARTITION, last_timestamp_ms=last_write)
    judgement = judge(case(partition, replace(ONGOING, start_ms=start), AT_ONE))
    assert judgement.late_by == expected
    assert judgement.verdict is (Verdict.OPEN if expected is None else Verdict.LATE)


# Verdicts by what the records show (docs/rules/transactions.md#the-live-search-and-the-strict-reading).


AT_LIMIT = replace(PARTITION, last_timestamp_ms=AT_ONE.as_of_ms - 15 * MINUTE)
ANCIENT_MS = NOON - 700 * 86_400_000
OVERDUE_MS = AT_ONE.as_of_ms - 5 * MINUTE - 1
ORPHAN = "PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR"
EXPIRED = replace(COMPLETE, owner=Owner.EXPIRED, state=None)
#: What the records show -> verdict, reason, whether the live tool prints it.
VERDICTS = {
    "A08 no id ever had the producer id": (PARTITION, NOBODY, "HANGING", ORPHAN, True),
    "young, and nobody will end it": (YOUNG, NOBODY, "SUSPECT", ORPHAN, False),
    "exactly at the timeout of find-hanging": (AT_LIMIT, NOBODY, "SUSPECT", ORPHAN, False),
    "beyond it": (replace(AT_LIMIT, last_timestamp_ms=AT_LIMIT.last_timestamp_ms - 1), NOBODY, "HANGING", ORPHAN, True),
    "A10 outside the transaction, though producer and epoch match": (
        *(PARTITION, replace(ONGOING, is_listed=False)),
        *("HANGING", "PARTITION_NOT_IN_TRANSACTION", True),
    ),
    "A11 in the transaction": (YOUNG, ONGOING, "OPEN", "EXPECTED", False),
    "A13 a higher epoch at the coordinator": (YOUNG, replace(ONGOING, producer_epoch=9), "OPEN", "EXPECTED", False),
    "A15 written after the marker of a prepared transaction": (
        MARKED,
        PREPARED,
        "HANGING",
        "WRITTEN_AFTER_MARKER",
        True,
    ),
    "M14 written after the marker of a completed transaction": (
        MARKED,
        COMPLETE,
        "HANGING",
        "WRITTEN_AFTER_MARKER",
        True,
    ),
    "M17 an epoch ahead of its coordinator, and the live tool is silent": (
        *(PARTITION, replace(ONGOING, producer_epoch=3)),
        *("HANGING", "EPOCH_AHEAD_OF_COORDINATOR", False),
    ),
    "an expired id never comes back": (PARTITION, EXPIRED, "HANGING", "TRANSACTIONAL_ID_EXPIRED", True),
    # However old its last record: brokers expire an id by a record, and that append may have failed.
    "F15 an id whose tombstone was not written has not expired": (
        *(PARTITION, replace(COMPLETE, record_ms=ANCIENT_MS, last_update_ms=ANCIENT_MS)),
        *("HANGING", "PARTITION_NOT_IN_TRANSACTION", True),
    ),
    "a rotated producer id": (PARTITION, replace(ONGOING, owner=Owner.ROTATED), "HANGING", "PRODUCER_ID_ROTATED", True),
    **{
        f"two-phase commit is never late, {timeout}": (
            *(PARTITION, replace(ONGOING, transaction_timeout_ms=timeout, start_ms=NOON - 10**10)),
            *("OPEN", "TWO_PHASE_COMMIT", False),
        )
        for timeout in (2**31 - 1, -1)
    },
    "M24 decided, its marker not yet overdue": (
        *(PARTITION, replace(PREPARED, record_ms=OVERDUE_MS + 1)),
        *("OPEN", "MARKER_PENDING", False),
    ),
    "overdue": (PARTITION, replace(PREPARED, record_ms=OVERDUE_MS), "STUCK", "MARKER_OVERDUE", False),
    "a newer producer epoch was seen": (
        replace(PARTITION, producer_epoch=6),
        PREPARED,
        "STUCK",
        "MARKER_REFUSED",
        False,
    ),
    "a newer coordinator was seen": (
        replace(PARTITION, coordinator_epoch=99),
        PREPARED,
        "STUCK",
        "MARKER_REFUSED",
        False,
    ),
    "after a failover the marker is sent again with the new epoch": (
        *(replace(PARTITION, coordinator_epoch=20), replace(PREPARED, newest_coordinator_epoch=20)),
        *("OPEN", "MARKER_PENDING", False),
    ),
    "the marker says the opposite": (replace(MARKED, marker_type="ABORT"), PREPARED, "OPEN", "MARKER_PENDING", False),
    "is of an earlier epoch": (replace(MARKED, marker_epoch=4), PREPARED, "OPEN", "MARKER_PENDING", False),
    "is of an earlier coordinator": (
        replace(MARKED, marker_coordinator_epoch=18),
        PREPARED,
        "OPEN",
        "MARKER_PENDING",
        False,
    ),
    "is of an earlier transaction with the same epoch": (
        *(replace(MARKED, marker_ms=AT_ONE.as_of_ms - 10 * MINUTE), PREPARED),
        *("OPEN", "MARKER_PENDING", False),
    ),
    "what a dump does not print cannot disagree": (
        *(replace(MARKED, marker_type=None, marker_coordinator_epoch=None), PREPARED),
        *("HANGING", "WRITTEN_AFTER_MARKER", True),
    ),
    "a missing coordinator partition does not matter where the owner is known": (
        *(PARTITION, replace(COMPLETE, missing_partitions=(7,))),
        *("HANGING", "PARTITION_NOT_IN_TRANSACTION", True),
    ),
    "records behind the last one of its id are lost": (
        *(PARTITION, replace(COMPLETE, damaged_offset=78)),
        *("UNKNOWN", "COORDINATOR_LOG_DAMAGED", True),
    ),
    "up to the last one of its id": (
        *(PARTITION, replace(COMPLETE, damaged_offset=77)),
        *("HANGING", "PARTITION_NOT_IN_TRANSACTION", True),
    ),
}


@pytest.mark.parametrize("shown", VERDICTS)
def test_a_verdict_follows_from_what_the_records_show(shown):
    partition, coordinator, verdict, reason, is_printed = VERDICTS[shown]
    assert judged(partition, coordinator) == (verdict, reason, is_printed)


def test_a_coordinator_ends_what_it_expects_by_its_timeout_and_one_scan():
    judgement = judge(case(YOUNG, ONGOING, AT_ONE))
    assert judgement.verdict is Verdict.OPEN
    assert judgement.ends_by_ms == AT_ONE.as_of_ms - 1_000 + 60_000 + AT_ONE.timeout_scan_interval_ms


@pytest.mark.parametrize(
    "coordinator",
    [NOBODY, COMPLETE, PREPARED, replace(ONGOING, transaction_timeout_ms=2_147_483_647)],
    ids=["nobody's", "written late", "decided", "two-phase"],
)
def test_what_no_timeout_ends_has_no_instant_by_which_it_ends(coordinator):
    assert judge(case(YOUNG, coordinator, AT_ONE)).ends_by_ms is None


@pytest.mark.parametrize(
    ("state", "timeout", "late_by"),
    [
        (TransactionState.ONGOING, 1_000, LateBy.COORDINATOR_START),
        (TransactionState.ONGOING, 10_000, None),
        (TransactionState.PREPARE_COMMIT, 1_000, None),
        (TransactionState.PREPARE_ABORT, 1_000, None),
        (TransactionState.COMPLETE_COMMIT, 1_000, None),
        (TransactionState.COMPLETE_ABORT, 1_000, None),
    ],
)
def test_F11_only_ongoing_ids_are_overdue(state, timeout, late_by):
    begun = AT_ONE.as_of_ms - 2_000
    is_listed = not state.name.startswith("COMPLETE")
    at_coordinator = replace(ONGOING, state=state, transaction_timeout_ms=timeout, start_ms=begun, is_listed=is_listed)
    judgement = judge(case(YOUNG, at_coordinator, replace(AT_ONE, timeout_scan_interval_ms=0)))
    assert (judgement.late_by, judgement.verdict is Verdict.LATE) == (late_by, late_by is not None)


# Doubts.


def test_a_copy_that_is_known_until_no_instant_may_lack_any_marker():
    ended = replace(COMPLETE, ended_ms=NOON + MINUTE)
    torn = replace(PARTITION, known_until_ms=None)
    assert judged(torn, ended)[:2] == (Verdict.UNKNOWN, Reason.CAPTURE_SKEW)
    assert judged(torn, COMPLETE)[0] is Verdict.HANGING


@pytest.mark.parametrize(("taken", "verdict"), [(30, Verdict.UNKNOWN), (20, Verdict.HANGING)])
def test_what_stands_behind_the_newest_stamp_of_a_torn_copy_may_be_as_young_as_the_copy(taken, verdict):
    """The coordinator was copied 20 minutes after noon, and the limit is 5 minutes here."""
    torn = replace(PARTITION, known_until_ms=NOON + 10 * MINUTE, stamped_after_ms=None, first_timestamp_ms=None)
    quick = replace(AT_ONE, max_transaction_timeout_ms=5 * MINUTE)
    assert judged(replace(torn, captured_at_ms=NOON + taken * MINUTE), EARLIER_COORDINATOR, quick)[0] is verdict


EARLIER_COORDINATOR = replace(COMPLETE, known_until_ms=NOON + 20 * MINUTE)


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        # A broker-stamped batch behind it, from before the coordinator's copy.
        ({"stamped_after_ms": NOON + 10 * MINUTE}, Verdict.HANGING),
        # Its own time alone proves nothing.
        ({"stamped_after_ms": None}, Verdict.UNKNOWN),
        # Its own time, which a marker near it confirms.
        ({"stamped_after_ms": None, "stamped_before_ms": NOON - 5 * MINUTE}, Verdict.HANGING),
        # The same, but the marker is too far from it to confirm anything.
        ({"stamped_after_ms": None, "stamped_before_ms": NOON - 5 * MINUTE - 1}, Verdict.UNKNOWN),
        # Its own time, but a marker before it is six minutes younger: the client's clock lies.
        ({"stamped_after_ms": None, "stamped_before_ms": NOON + 6 * MINUTE}, Verdict.UNKNOWN),
        # A marker before it is from after the coordinator's copy.
        ({"stamped_after_ms": None, "stamped_before_ms": NOON + 21 * MINUTE}, Verdict.UNKNOWN),
        # It began after the coordinator's copy.
        ({"stamped_after_ms": None, "first_timestamp_ms": NOON + 21 * MINUTE}, Verdict.UNKNOWN),
        # A lying clock, but a checkpoint from before the coordinator's copy reached beyond it.
        (
            {"stamped_after_ms": None, "stamped_before_ms": NOON + 6 * MINUTE, "checkpointed_ms": NOON + 20 * MINUTE},
            Verdict.HANGING,
        ),
        # A marker behind it, from after the coordinator's copy, proves nothing.
        ({"stamped_after_ms": NOON + 30 * MINUTE}, Verdict.UNKNOWN),
        # An earlier audit saw it open before the coordinator's copy.
        ({"stamped_after_ms": None, "seen_open_ms": NOON + 10 * MINUTE}, Verdict.HANGING),
    ],
)
def test_it_must_be_known_to_have_begun_before_the_coordinators_copy(known, verdict):
    assert judged(replace(PARTITION, **known), EARLIER_COORDINATOR)[0] is verdict


def test_without_any_instant_of_the_coordinator_nothing_is_hanging():
    assert judged(PARTITION, replace(NOBODY, known_until_ms=None))[:2] == (Verdict.UNKNOWN, Reason.CAPTURE_SKEW)
