"""Does each verdict lead to its steps, and only a hanging one to a marker by hand?"""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from txnlib.core.abort_plan import ACTIONS, Action, OpenTransaction, plan
from txnlib.core.commands import (
    abort_on_old_brokers,
    describe,
    force_terminate,
    knows_describe_producers,
    knows_force_terminate,
    tool_version,
)
from txnlib.core.verdict import Reason, Verdict

HANGING = OpenTransaction(
    topic="payments",
    partition=0,
    producer_id=12345,
    producer_epoch=15,
    coordinator_epoch=76,
    start_offset=9173,
    transactional_id="shop's $(id)",
    verdict="HANGING",
    reason=Reason.WRITTEN_AFTER_MARKER.value,
    safe_to_abort=True,
)


def test_every_verdict_has_its_action():
    assert set(ACTIONS) == set(Verdict)


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("is_safe", [True, False])
def test_only_a_hanging_one_gets_a_marker_by_hand(verdict, is_safe):
    found = plan(replace(HANGING, verdict=verdict.value, reason=Reason.EXPECTED.value, safe_to_abort=is_safe))
    has_abort = found is not None and found.command is not None and " abort " in found.command
    assert has_abort == (verdict is Verdict.HANGING)
    assert (found is None) == (verdict is Verdict.OPEN)


def test_what_is_not_safe_is_for_later():
    assert plan(HANGING).action is Action.ABORT
    assert plan(replace(HANGING, safe_to_abort=False)).action is Action.ABORT_LATER


def test_A17_the_start_offset_is_looked_up_first_and_gone_afterwards():
    found = plan(HANGING)
    assert found.command.endswith("abort --topic payments --partition 0 --start-offset 9173")
    assert [(step.command.split()[3], step.must_print) for step in found.before] == [
        ("describe-producers", "producer 12345 with CurrentTransactionStartOffset 9173"),
        ("describe", "no payments-0 among TopicPartitions, and no PrepareCommit of producer 12345"),
    ]
    assert [step.must_print for step in found.after] == [
        "producer 12345 with CurrentTransactionStartOffset None",
        "no row of producer 12345",
    ]


@pytest.mark.parametrize(("known", "sent"), [(29, 29), (-1, 0), (None, 0)])
def test_A18_old_brokers_are_told_the_producer_and_an_unknown_coordinator_epoch_is_0(known, sent):
    assert abort_on_old_brokers("foo", 5, 12345, 15, known).endswith(
        f"abort --topic foo --partition 5 --producer-id 12345 --producer-epoch 15 --coordinator-epoch {sent}"
    )
    assert plan(replace(HANGING, coordinator_epoch=known)).command_for_old_brokers.endswith(f"--coordinator-epoch {sent}")


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.7.2", False), ("2.8.0", True), ("4.1.1", True), ("0.11.0.3", False), (None, True), ("trunk", True)],
)
def test_brokers_describe_producers_from_2_8_on(version, expected):
    assert knows_describe_producers(version) is expected


HELD = [("LATE", Reason.OVERDUE), ("OPEN", Reason.TWO_PHASE_COMMIT)]


@pytest.mark.parametrize(("verdict", "reason"), HELD)
def test_what_a_coordinator_holds_is_ended_there(verdict, reason):
    found = plan(replace(HANGING, verdict=verdict, reason=reason.value, safe_to_abort=False))
    assert found.action is Action.END_AT_COORDINATOR
    assert shlex.split(found.command)[3:] == ["forceTerminateTransaction", "--transactionalId", "shop's $(id)"]
    assert found.command_for_old_brokers is None
    assert found.before[0].must_print.startswith("4.1 or newer"), "the version is not known"


@pytest.mark.parametrize(("version", "expected"), [("4.0.2", False), ("4.1.0", True), ("4.10", True), (None, None)])
def test_force_terminate_exists_from_4_1_on(version, expected):
    assert knows_force_terminate(version) is expected


@pytest.mark.parametrize(("verdict", "reason"), HELD)
@pytest.mark.parametrize(
    ("version", "action", "checks"),
    [
        ("4.0.1", Action.RECOVER_APPLICATION, [describe("i")]),
        ("4.1.1", Action.END_AT_COORDINATOR, [describe("i")]),
        (None, Action.END_AT_COORDINATOR, [tool_version(), describe("i")]),
        ("trunk", Action.END_AT_COORDINATOR, [tool_version(), describe("i")]),
    ],
)
def test_before_4_1_an_application_recovers_itself_and_an_unknown_version_is_looked_up(verdict, reason, version, action, checks):
    held = replace(HANGING, transactional_id="i", verdict=verdict, reason=reason.value, safe_to_abort=False)
    found = plan(held, version)
    assert found.action is action
    assert [step.command for step in found.before] == checks
    assert found.command == (None if action is Action.RECOVER_APPLICATION else force_terminate("i"))
