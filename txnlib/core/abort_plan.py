"""What to do about each open transaction, in which order, and what must be seen before and after? A verdict to steps.

Only a hanging transaction is ended by a marker by hand. What a coordinator holds is ended by that coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from txnlib.core import commands
from txnlib.core.verdict import Reason, Verdict


class Action(IntEnum):
    """What to do, in the order in which it is done."""

    ABORT = 0
    #: Hanging, but something speaks against aborting it now.
    ABORT_LATER = 1
    END_AT_COORDINATOR = 2
    #: The same where Kafka has no command for it: by the owner's own recovery.
    RECOVER_APPLICATION = 3
    REVIVE_COORDINATOR = 4
    #: Young: audit again.
    WAIT = 5
    CAPTURE_MORE = 6


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and what it must print."""

    command: str
    must_print: str


@dataclass(frozen=True, slots=True)
class Plan:
    action: Action
    command: str | None
    command_for_old_brokers: str | None
    before: tuple[Step, ...]
    after: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """The fields of an open transaction that a plan needs."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    transactional_id: str | None
    verdict: str
    reason: str
    safe_to_abort: bool


ACTIONS: Final[Mapping[Verdict, Action | None]] = {
    Verdict.HANGING: Action.ABORT,
    Verdict.SUSPECT: Action.WAIT,
    Verdict.STUCK: Action.REVIVE_COORDINATOR,
    Verdict.LATE: Action.END_AT_COORDINATOR,
    Verdict.OPEN: None,
    Verdict.UNKNOWN: Action.CAPTURE_MORE,
}


def action_for(transaction: OpenTransaction) -> Action | None:
    """What to do; None for what is in progress. A two-phase commit is ended by its owner or at its coordinator."""
    if transaction.reason == Reason.TWO_PHASE_COMMIT:
        return Action.END_AT_COORDINATOR
    action = ACTIONS[Verdict(transaction.verdict)]
    return Action.ABORT_LATER if action is Action.ABORT and not transaction.safe_to_abort else action


def plan(transaction: OpenTransaction, kafka_version: str | None = None) -> Plan | None:
    """The steps for one open transaction, on brokers of a version if that is known; None for what is in progress."""
    action = action_for(transaction)
    if action is None:
        return None
    if action in (Action.ABORT, Action.ABORT_LATER):
        return _abort(transaction, action)
    if action is Action.END_AT_COORDINATOR and transaction.transactional_id is not None:
        return _end_at_coordinator(transaction, transaction.transactional_id, kafka_version)
    return Plan(action, None, None, (), ())


def _abort(transaction: OpenTransaction, action: Action) -> Plan:
    topic, partition, producer_id = transaction.topic, transaction.partition, transaction.producer_id
    producers = commands.describe_producers(topic, partition)
    before = [Step(producers, f"producer {producer_id} with CurrentTransactionStartOffset {transaction.start_offset}")]
    if transaction.transactional_id is not None:
        shown = commands.describe(transaction.transactional_id)
        before.append(Step(shown, f"no {topic}-{partition} among TopicPartitions, and no PrepareCommit of producer {producer_id}"))
    after = (
        Step(producers, f"producer {producer_id} with CurrentTransactionStartOffset None"),
        Step(commands.find_hanging(topic, partition), f"no row of producer {producer_id}"),
    )
    old = commands.abort_on_old_brokers(topic, partition, producer_id, transaction.producer_epoch, transaction.coordinator_epoch)
    return Plan(action, commands.abort(topic, partition, transaction.start_offset), old, tuple(before), after)


def _end_at_coordinator(transaction: OpenTransaction, transactional_id: str, kafka_version: str | None) -> Plan:
    shown = commands.describe(transactional_id)
    ongoing = f"TransactionState Ongoing, producer {transaction.producer_id}"
    ended = "TransactionState CompleteAbort or Empty"
    has_command = commands.knows_force_terminate(kafka_version)
    if has_command is False:
        # Its commit is as good an end: the owner decides.
        after = Step(shown, f"{ended}, CompleteCommit, or a later transaction")
        return Plan(Action.RECOVER_APPLICATION, None, None, (Step(shown, ongoing),), (after,))
    before = [Step(shown, f"{ongoing}; and its owner says that it is given up")]
    if has_command is None:
        before.insert(0, Step(commands.tool_version(), "4.1 or newer; else its application's own recovery ends it"))
    return Plan(Action.END_AT_COORDINATOR, commands.force_terminate(transactional_id), None, tuple(before), (Step(shown, ended),))
