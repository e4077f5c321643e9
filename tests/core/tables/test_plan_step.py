"""The steps for each verdict; a marker by hand only for HANGING."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from txnlib.core.kafka_commands import (
    abort,
    abort_on_old_brokers,
    describe,
    knows_describe_producers,
    knows_force_terminate,
    permissions,
    tool_version,
)
from txnlib.core.verdicts.plan_step import (
    ACTIONS,
    ACTIONS_BY_REASON,
    IN_TIME,
    NO_ACTION,
    OF_WHOLE_TRANSACTION,
    Action,
    OpenTransaction,
    WholeTransaction,
    effect,
    plan,
)
from txnlib.core.verdicts.reason import Reason, Verdict

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
    abort_command=abort("payments", 0, 9173),
    coordinator_partition=3,
    coordinator_state="CompleteAbort",
    records=12,
)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_commands_have_the_names_of_their_version(verdict):
    row = replace(HANGING, verdict=verdict.value, coordinator_state="PrepareCommit", transactional_id="kafka-x.sh y")
    plans = [plan(row, version) for version in ("3.5.1", "7.5.0-ccs")]
    if plans == [None, None]:
        return
    apache, confluent = map(commands_of, plans)
    assert confluent == [command.replace(".sh ", " ", 1) for command in apache]
    assert not any(command.split()[0].endswith(".sh") for command in confluent)


def commands_of(found) -> list[str]:
    steps = [each.command for each in (*found.before, *found.after)]
    return [each for each in (found.command, found.command_for_old_brokers, *steps) if each is not None]


#: Verdict -> action, if its reason has none of its own.
BY_VERDICT = {
    "HANGING": "ABORT",
    "SUSPECT": "WAIT",
    "STUCK": "REVIVE_COORDINATOR",
    "LATE": "END_AT_COORDINATOR",
    "OPEN": None,
    "UNKNOWN": "CAPTURE_MORE",
}
BY_REASON = {"TWO_PHASE_COMMIT": "END_AT_COORDINATOR", "TIMEOUT_NOT_PASSED": "CHECK_TIMESTAMPS"}
#: Actions in the order in which they are done. w: ends one on all its partitions, in one step; t: time makes it
#: possible; n: nobody can do anything.
ORDER = """
ABORT               -
ABORT_AS_DECIDED    -
RESTORE_REPLICAS    w
END_AT_COORDINATOR  w
REVIVE_COORDINATOR  w
ABORT_LATER         t
WAIT                t
CAPTURE_MORE        -
DO_NOT_ABORT        n
CHECK_TIMESTAMPS    wn
"""


def test_every_verdict_has_its_action():
    assert {verdict.value: None if action is None else action.name for verdict, action in ACTIONS.items()} == BY_VERDICT
    assert {reason.value: action.name for reason, action in ACTIONS_BY_REASON.items()} == BY_REASON
    assert set(BY_VERDICT) == {verdict.value for verdict in Verdict}


def test_actions_are_done_in_order():
    rows = [line.split() for line in ORDER.strip().splitlines()]
    assert [action.name for action in sorted(Action)] == [name for name, _ in rows]
    for actions, mark in ((IN_TIME, "t"), (NO_ACTION, "n"), (OF_WHOLE_TRANSACTION, "w")):
        assert {action.name for action in actions} == {name for name, marks in rows if mark in marks}


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("is_safe", [True, False])
def test_only_a_hanging_one_gets_a_marker_by_hand(verdict, is_safe):
    command = HANGING.abort_command if verdict is Verdict.HANGING else None
    row = replace(
        HANGING, verdict=verdict.value, reason=Reason.EXPECTED.value, safe_to_abort=is_safe, abort_command=command
    )
    found = plan(row)
    has_abort = found is not None and found.command is not None and " abort " in found.command
    assert has_abort == (verdict is Verdict.HANGING)
    assert (found is None) == (verdict is Verdict.OPEN)


def test_what_is_not_safe_is_for_later():
    assert plan(HANGING).action is Action.ABORT
    assert plan(replace(HANGING, safe_to_abort=False)).action is Action.ABORT_LATER


def test_where_a_marker_by_hand_would_be_wrong_the_plan_has_no_command():
    found = plan(
        replace(HANGING, safe_to_abort=False, abort_command=None, do_not_abort_because="a COMMIT marker is due here")
    )
    assert (found.action, found.command, found.command_for_old_brokers) == (Action.DO_NOT_ABORT, None, None)
    assert found.notes == ("a COMMIT marker is due here",)


@pytest.mark.parametrize("version", [None, "2.8.2", "3.9.1"])
def test_the_plan_and_the_row_have_one_command(version):
    assert plan(HANGING, version).command == HANGING.abort_command


def test_an_abort_says_what_it_drops_and_what_it_needs():
    found = plan(replace(HANGING, committed_siblings=("orders-1", "orders-2")))
    assert (
        found.effect
        == "drops 12 records here, from offset 9173 on; 2 other partitions stay committed: orders-1, orders-2"
    )
    needs = permissions([found.command, *(each.command for each in found.before)])
    assert [each.partition(" needs ")[0] for each in needs] == [
        "abort",
        "describe-producers",
        "describe",
        "find-hanging",
    ]
    assert "ClusterAction" in needs[0]


@pytest.mark.parametrize(
    ("records", "words"),
    [(None, "an unknown number of records"), (0, "0 records"), (1, "1 record here"), (2, "2 records here")],
)
def test_an_abort_counts_what_it_drops(records, words):
    assert words in plan(replace(HANGING, records=records)).effect


STAYS = "; 1 other partition stays committed; 1 other partition stays aborted"
#: Action -> what its step does to a transaction of 30 records on 3 partitions, of which this one has 12, and 2 more are
#: ended.
EFFECTS_BY_HAND = {
    Action.ABORT: "drops 12 records here, from offset 9173 on",
    Action.ABORT_LATER: "drops 12 records here, from offset 9173 on",
    Action.ABORT_AS_DECIDED: f"drops 12 records here, from offset 9173 on, as its coordinator decided{STAYS}",
    Action.END_AT_COORDINATOR: f"drops 30 records on 3 partitions{STAYS}",
    Action.REVIVE_COORDINATOR: f"commits 30 records on 3 partitions{STAYS}",
    Action.DO_NOT_ABORT: f"an abort would drop 12 records here, from offset 9173 on{STAYS}",
    Action.RESTORE_REPLICAS: None,
    Action.CHECK_TIMESTAMPS: None,
    Action.WAIT: None,
    Action.CAPTURE_MORE: None,
}


@pytest.mark.parametrize("action", Action)
def test_every_action_says_what_it_ends(action):
    whole = WholeTransaction(
        "pay", 3, 1, held_partitions=3, held_records=30, committed_partitions=1, aborted_partitions=1, held=()
    )
    assert effect(replace(HANGING, coordinator_state="PrepareCommit"), action, whole) == EFFECTS_BY_HAND[action]


def test_a_decided_abort_is_carried_out_and_not_committed():
    assert effect(replace(HANGING, coordinator_state="PrepareAbort"), Action.REVIVE_COORDINATOR).startswith(
        "drops 12 records here"
    )


#: Prepare state of a marker that the partition refuses -> what to do.
REFUSED = [("PrepareAbort", Action.ABORT_AS_DECIDED, "abort"), ("PrepareCommit", Action.DO_NOT_ABORT, None)]


@pytest.mark.parametrize(("state", "action", "command"), REFUSED)
def test_a_refused_abort_is_written_by_hand_and_a_refused_commit_never(state, action, command):
    row = replace(HANGING, verdict="STUCK", reason="MARKER_REFUSED", coordinator_state=state, safe_to_abort=False)
    row = replace(row, abort_command=HANGING.abort_command if command else None)
    found = plan(row, "3.9.1")
    assert found.action is action
    assert found.command == row.abort_command
    if command is None:
        assert "type COMMIT, producer id 12345" in found.notes[-1]
        sender = "only its coordinator, or a WriteTxnMarkers request of your own, can send it"
        assert found.notes[-1].endswith(f"coordinator epoch of 76 or higher; {sender}")
        unknown = plan(replace(row, coordinator_epoch=None), "3.9.1")
        assert unknown.notes[-1].endswith(f"coordinator epoch of 0 or higher; {sender}")


def test_an_overdue_marker_is_sent_again_by_a_new_leader_of_the_coordinator_partition():
    row = replace(
        HANGING, verdict="STUCK", reason="MARKER_OVERDUE", coordinator_state="PrepareCommit", abort_command=None
    )
    found = plan(row, "3.9.1")
    assert found.action is Action.REVIVE_COORDINATOR
    assert found.command.endswith("--topic __transaction_state --partition 3")
    assert found.command.startswith("kafka-leader-election.sh")
    assert "in that broker's log" in found.notes[0]


def test_an_epoch_out_of_reach_is_ended_in_the_order_that_works():
    row = replace(
        HANGING, reason="EPOCH_AHEAD_OF_COORDINATOR", safe_to_abort=False, abort_command=None, do_not_abort_because="x"
    )
    notes = plan(row, "3.9.1").notes
    assert [note[:2] for note in notes] == ["x", "1.", "2.", "3."]
    assert "stop the application" in notes[1]
    assert not any("kafka-transactions" in note for note in notes), "an action with an abort is no DO_NOT_ABORT"


def test_a_transaction_in_time_by_its_coordinator_is_not_terminated():
    row = replace(HANGING, verdict="LATE", reason="TIMEOUT_NOT_PASSED", safe_to_abort=False, abort_command=None)
    found = plan(row, "4.1.1")
    assert (found.action, found.command) == (Action.CHECK_TIMESTAMPS, None)
    assert not any("forceTerminate" in text for text in (*found.notes, *(step.command for step in found.before)))


def test_A17_the_start_offset_is_looked_up_first_and_gone_afterwards():
    found = plan(HANGING)
    assert found.command.endswith("abort --topic payments --partition 0 --start-offset 9173")
    assert [(step.command.split()[3], step.must_print) for step in found.before] == [
        ("describe-producers", "producer 12345 with CurrentTransactionStartOffset 9173"),
        ("describe", "no payments-0 among TopicPartitions, and no PrepareCommit of producer 12345"),
        ("find-hanging", "a row of producer 12345 with StartOffset 9173"),
    ]
    assert [step.must_print for step in found.after] == [
        "producer 12345 with CurrentTransactionStartOffset None",
        "no row of producer 12345",
    ]


@pytest.mark.parametrize(("is_found", "said"), [(None, "a row of"), (True, "a row of"), (False, "no row of")])
def test_the_live_tool_is_asked_before_every_abort(is_found, said):
    last = plan(replace(HANGING, kafka_find_hanging=is_found)).before[-1]
    assert "find-hanging --topic payments --partition 0" in last.command
    assert last.must_print.startswith(said)


def test_the_live_tool_does_not_find_what_its_coordinator_decided():
    refused = replace(HANGING, verdict="STUCK", reason=Reason.MARKER_REFUSED.value, coordinator_state="PrepareAbort")
    found = plan(refused)
    assert found.action is Action.ABORT_AS_DECIDED
    assert not [step for step in found.before if "find-hanging" in step.command]


@pytest.mark.parametrize(("known", "sent"), [(29, 29), (-1, 0), (None, 0)])
def test_A18_old_brokers_are_told_the_producer_and_an_unknown_coordinator_epoch_is_0(known, sent):
    assert abort_on_old_brokers("foo", 5, 12345, 15, known).endswith(
        f"abort --topic foo --partition 5 --producer-id 12345 --producer-epoch 15 --coordinator-epoch {sent}"
    )
    assert plan(replace(HANGING, coordinator_epoch=known)).command_for_old_brokers.endswith(
        f"--coordinator-epoch {sent}"
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.7.2", False),
        ("2.8.2", False),
        ("3.0.0", True),
        ("4.1.1", True),
        ("0.11.0.3", False),
        (None, True),
        ("trunk", True),
    ],
)
def test_brokers_describe_producers_from_3_0_on(version, expected):
    assert knows_describe_producers(version) is expected


def test_a_transaction_without_an_id_cannot_be_ended_at_a_coordinator():
    found = plan(replace(HANGING, verdict=Verdict.LATE, abort_command=None, safe_to_abort=False, transactional_id=None))
    assert (found.action, found.command, found.before) == (Action.END_AT_COORDINATOR, None, ())


@pytest.mark.parametrize(("version", "expected"), [("4.0.2", False), ("4.1.0", True), ("4.10", True), (None, None)])
def test_force_terminate_exists_from_4_1_on(version, expected):
    assert knows_force_terminate(version) is expected


@pytest.mark.parametrize(("verdict", "reason"), [("LATE", Reason.OVERDUE), ("OPEN", Reason.TWO_PHASE_COMMIT)])
@pytest.mark.parametrize(
    ("version", "checks"),
    [
        ("4.0.1", [tool_version(), describe("i")]),
        ("4.1.1", [describe("i")]),
        (None, [tool_version(), describe("i")]),
        ("trunk", [tool_version(), describe("i")]),
    ],
)
def test_terminating_needs_a_tool_of_4_1_and_any_brokers(verdict, reason, version, checks):
    held = replace(
        HANGING, transactional_id="i", verdict=verdict, reason=reason.value, safe_to_abort=False, abort_command=None
    )
    found = plan(held, version)
    assert (found.action, found.command_for_old_brokers) == (Action.END_AT_COORDINATOR, None)
    assert [step.command for step in found.before] == checks
    assert len(checks) == 1 or found.before[0].must_print.startswith("4.1 or newer")
    assert shlex.split(found.command)[3:] == ["forceTerminateTransaction", "--transactionalId", "i"]
