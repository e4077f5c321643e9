"""Each condition of a safe abort, alone (DESIGN.md 5.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.test_doubt import COMMITTED
from tests.core.test_verdict import AT_ONE, COMPLETE, MARKED, MINUTE, NOBODY, NOON, ONGOING, PARTITION, PREPARED
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.copies import End, Role
from txnlib.core.verdicts.evidence import Crc, Evidence, Owner
from txnlib.core.verdicts.remedy import remedy
from txnlib.core.verdicts.safety import CONDITIONS, NEVER_WITHOUT, Condition
from txnlib.core.verdicts.verdict import judge

ONE = AT_ONE.as_of_ms
C = Condition


def cure(partition, coordinator, thresholds=AT_ONE, version="3.9.1"):
    evidence = Evidence(partition, coordinator)
    return remedy(evidence, judge(evidence, thresholds, version), thresholds, version)


#: What is changed on the partition's side, on the coordinator's -> the condition that fails, and what is said.
UNSAFE = [
    ({"stamped_after_ms": None}, {}, C.AGE_IS_PROVEN, "no broker's clock proves its age"),
    ({"stamped_after_ms": ONE - 15 * MINUTE}, {}, C.AGE_IS_PROVEN, "only 15 min of its age"),
    ({"role": Role.OTHER}, {}, C.COPIES_ARE_CURRENT, "copy its leader's"),
    ({"end": End.TORN}, {}, C.COPIES_ARE_CURRENT, "copy its leader's"),
    ({}, {"role": Role.OTHER}, C.COPIES_ARE_CURRENT, "a coordinator partition is not known to be current"),
    ({}, {"end": End.TORN}, C.COPIES_ARE_CURRENT, "a coordinator partition is not known to be current"),
    ({}, {"damaged_offset": 5}, C.COPIES_ARE_CURRENT, "is damaged below offset 5"),
    ({}, {"count_basis": CountBasis.DEFAULT}, C.COORDINATORS_ARE_COUNTED, "give --coordinator-partitions"),
    ({}, {"count_basis": CountBasis.ASSUMED}, C.COORDINATORS_ARE_COUNTED, "give --coordinator-partitions"),
    ({"is_start_exact": False}, {}, C.START_IS_EXACT, "its true start offset is not known"),
    ({"is_start_committed": False}, {}, C.START_IS_COMMITTED, "at or above the high watermark"),
    ({"is_start_committed": None}, {}, C.START_IS_COMMITTED, "replication-offset-checkpoint"),
    ({"crc": Crc.NOT_CHECKED}, {}, C.CRC_IS_VALID, "audit the raw segments"),
    ({"has_leader": False}, {}, C.PARTITION_HAS_A_LEADER, "has no leader"),
    ({"has_leader": None}, {}, C.PARTITION_HAS_A_LEADER, "to capture.json"),
    ({}, {"commit_due": COMMITTED}, C.NO_COMMIT_IS_DUE, "producer id 132, producer epoch 5, coordinator epoch 19"),
    ({}, {"commit_due": replace(COMMITTED, is_marked=None)}, C.NO_COMMIT_IS_DUE, "compaction removed the records"),
    ({"sibling_commit_ms": NOON + MINUTE}, {}, C.NO_COMMIT_IS_DUE, "committed on another partition"),
    ({"alarms": ("COPIES_DISAGREE",)}, {}, C.NO_ERROR_IS_FOUND, "COPIES_DISAGREE"),
]


@pytest.mark.parametrize(("partition", "coordinator", "condition", "said"), UNSAFE)
def test_each_condition_alone_makes_an_abort_unsafe(partition, coordinator, condition, said):
    found = cure(replace(PARTITION, **partition), replace(NOBODY, **coordinator))
    assert not found.safe_to_abort
    assert [check.condition for check in found.safety if not check.holds] == [condition]
    assert said in found.do_not_abort_because
    is_wrong = condition in NEVER_WITHOUT and partition.get("crc") is not Crc.NOT_CHECKED
    assert (found.abort_command is None) == is_wrong


#: Conditions by DESIGN.md 5.4, in order of precedence -> words that only its meaning has.
IN_ORDER = {
    "VERDICT_IS_HANGING": "older than the timeout",
    "AGE_IS_PROVEN": "brokers' clocks prove",
    "COPIES_ARE_CURRENT": "are current and whole",
    "COORDINATORS_ARE_COUNTED": "number of coordinator partitions",
    "START_IS_EXACT": "first batch is known",
    "START_IS_COMMITTED": "below the high watermark",
    "CRC_IS_VALID": "the CRC of every batch",
    "PARTITION_HAS_A_LEADER": "has a leader",
    "NO_COMMIT_IS_DUE": "a COMMIT was decided",
    "NO_COORDINATOR_HOLDS_IT": "transactional id may still end it",
    "NO_ERROR_IS_FOUND": "ERROR or CRITICAL",
}


def test_conditions_are_in_order_of_precedence_and_told_in_their_own_words():
    assert [condition.value for condition in CONDITIONS] == list(IN_ORDER)
    for condition, meaning in CONDITIONS.items():
        assert [name for name, words in IN_ORDER.items() if words in meaning] == [condition.value]


def test_every_condition_is_asked_in_order_and_holds_for_a_safe_abort():
    found = cure(PARTITION, NOBODY)
    assert [check.condition.value for check in found.safety] == list(IN_ORDER)
    assert found.safe_to_abort
    assert {condition for _, _, condition, _ in UNSAFE} | {C.VERDICT_IS_HANGING, C.NO_COORDINATOR_HOLDS_IT} == set(Condition)


#: What an id may still do to a partition that it does not list -> what is said.
HELD = [
    (PARTITION, replace(ONGOING, producer_epoch=3), "stop the application"),
    (MARKED, PREPARED, "PrepareCommit"),
    (PARTITION, replace(PREPARED, owner=Owner.ROTATED), "PrepareCommit"),
    (PARTITION, replace(ONGOING, is_listed=False), "now in another transaction"),
    (PARTITION, replace(COMPLETE, owner=Owner.NEXT), "now in another transaction"),
    (PARTITION, replace(ONGOING, is_listed=False, transaction_timeout_ms=-1), "two-phase commit"),
]


@pytest.mark.parametrize(("partition", "coordinator", "said"), HELD)
def test_what_an_id_may_still_end_or_commit_is_not_aborted(partition, coordinator, said):
    found = cure(partition, coordinator)
    assert (found.safe_to_abort, found.abort_command) == (False, None)
    assert said in found.do_not_abort_because


def test_the_first_that_fails_is_named_first_and_what_makes_it_wrong_is_never_hidden():
    found = cure(replace(PARTITION, role=Role.OTHER, stamped_after_ms=None), replace(NOBODY, commit_due=COMMITTED))
    first, *rest = found.do_not_abort_because.split("; ")
    assert "no broker's clock" in first
    assert "a COMMIT marker is due here" in rest[0]


def test_an_abort_whose_marker_was_lost_is_what_an_abort_repairs():
    aborted = replace(COMPLETE, decision=replace(COMMITTED, type="ABORT"))
    assert cure(PARTITION, aborted).safe_to_abort


# A decision whose last record alone is left.

CLEANED = replace(COMMITTED, is_marked=None, lists_partition=False)


@pytest.mark.parametrize(
    ("partition", "decision", "is_safe"),
    [
        ({}, {}, False),
        ({"stamped_before_ms": NOON + 1_001}, {}, False),  # a broker's clock may be a second off
        ({"stamped_before_ms": NOON + 1_002}, {}, True),
        ({}, {"transaction_version": 2}, True),  # its records would carry an older epoch
        ({"producer_epoch": 4}, {"transaction_version": 2}, False),
        ({}, {"transaction_version": 1}, False),
    ],
)
def test_what_is_younger_than_a_commit_was_not_committed_by_it(partition, decision, is_safe):
    found = cure(replace(PARTITION, **partition), replace(COMPLETE, commit_due=replace(CLEANED, **decision)))
    assert found.safe_to_abort is is_safe


# Time alone.


def test_not_yet_safe_says_from_when_on():
    half = replace(PARTITION, stamped_after_ms=ONE - 10 * MINUTE)
    found = cure(half, NOBODY)
    assert found.safe_from_ms == ONE + 5 * MINUTE + 1
    assert "safe from 2024-03-09T17:05:01Z on" in found.do_not_abort_because
    assert not cure(half, NOBODY, replace(AT_ONE, as_of_ms=ONE)).safe_to_abort
    later = replace(half, known_until_ms=found.safe_from_ms), replace(NOBODY, known_until_ms=found.safe_from_ms)
    assert cure(*later, replace(AT_ONE, as_of_ms=found.safe_from_ms)).safe_to_abort


def test_this_audit_proves_the_age_for_the_next():
    unproven = cure(replace(PARTITION, stamped_after_ms=None), NOBODY)
    assert unproven.safe_from_ms == ONE + 15 * MINUTE + 1
    seen = replace(PARTITION, stamped_after_ms=None, first_seen_ms=ONE - 16 * MINUTE)
    assert cure(seen, NOBODY).safe_to_abort


def test_where_time_settles_nothing_no_instant_is_promised():
    assert cure(replace(PARTITION, stamped_after_ms=None, has_leader=None), NOBODY).safe_from_ms is None
    assert cure(PARTITION, ONGOING).safe_from_ms is None


def test_a_suspect_may_be_aborted_once_it_is_old_enough():
    young = replace(PARTITION, last_timestamp_ms=ONE - MINUTE)
    assert cure(young, NOBODY).safe_from_ms is not None


@pytest.mark.parametrize(("coordinator", "is_met"), [(NOBODY, False), (COMPLETE, True)])
def test_missing_coordinators_matter_only_to_a_producer_id_without_an_owner(coordinator, is_met):
    found = cure(PARTITION, replace(coordinator, missing_partitions=(7,)))
    (check,) = [check for check in found.safety if check.condition is C.COPIES_ARE_CURRENT]
    assert (check.holds, "coordinator partitions are missing" in check.says) == (is_met, not is_met)


@pytest.mark.parametrize(("state", "has_command"), [("PREPARE_ABORT", True), ("PREPARE_COMMIT", False)])
def test_a_refused_marker_is_written_by_hand_only_if_it_aborts(state, has_command):
    found = cure(replace(PARTITION, producer_epoch=6), replace(PREPARED, state=TransactionState[state]))
    assert not found.safe_to_abort
    assert (found.abort_command is not None) == has_command
