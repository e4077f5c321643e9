"""A step of the abort plan, with the checks around it.

Only a hanging transaction, or one whose ABORT the partition refuses, is ended by a marker by hand. A coordinator ends
the transactions that it knows. Source: docs/rules/abort.md#checks-before-the-command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from txnlib.core import kafka_commands
from txnlib.core.display import counted
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import OfProducer
from txnlib.core.verdicts.cause import CauseName
from txnlib.core.verdicts.cause_rule import Cause
from txnlib.core.verdicts.reason import Reason, Verdict


class Action(IntEnum):
    """What to do. Of two steps that free as much, the smaller number comes first."""

    ABORT = 0
    #: The coordinator's ABORT is refused: a marker by hand agrees with it.
    ABORT_AS_DECIDED = 1
    #: Too few replicas are in sync, so no coordinator can write its end.
    RESTORE_REPLICAS = 2
    END_AT_COORDINATOR = 3
    REVIVE_COORDINATOR = 4
    #: Hanging, but not safe to abort yet: only time is missing.
    ABORT_LATER = 5
    #: Too young to judge: audit again.
    WAIT = 6
    CAPTURE_MORE = 7
    #: A marker by hand would be wrong, or nothing proves that it is right.
    DO_NOT_ABORT = 8
    #: In time according to its coordinator: check the timestamps that its producer writes.
    CHECK_TIMESTAMPS = 9


#: Actions that time makes possible, and those that somebody can never take.
IN_TIME: Final = frozenset({Action.ABORT_LATER, Action.WAIT})
NO_ACTION: Final = frozenset({Action.DO_NOT_ABORT, Action.CHECK_TIMESTAMPS})
#: Actions of a coordinator, which end a transaction on all its partitions: one step of the plan.
OF_WHOLE_TRANSACTION: Final = frozenset(
    {Action.RESTORE_REPLICAS, Action.END_AT_COORDINATOR, Action.REVIVE_COORDINATOR, Action.CHECK_TIMESTAMPS}
)

#: Actions of a coordinator that has to write to a log, and the causes that say that it cannot.
_BY_COORDINATOR: Final = frozenset({Action.END_AT_COORDINATOR, Action.REVIVE_COORDINATOR})
_NEED_REPLICAS: Final = frozenset({CauseName.TOO_FEW_IN_SYNC.value, CauseName.COORDINATOR_TOO_FEW_IN_SYNC.value})


@dataclass(frozen=True, slots=True)
class PlanCommand:
    """A command and its expected output."""

    command: str
    must_print: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps for one open transaction; `notes` are what to know before the command is run.

    `effect` is what the step ends, and what stays as it is; None if it ends nothing.
    """

    action: Action
    command: str | None = None
    command_for_old_brokers: str | None = None
    before: tuple[PlanCommand, ...] = ()
    after: tuple[PlanCommand, ...] = ()
    notes: tuple[str, ...] = ()
    effect: str | None = None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A row of `open_transactions`, with the columns that a plan needs."""

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
    #: Whether the live tool finds it; None if that is not known.
    kafka_find_hanging: bool | None = None
    abort_command: str | None = None
    do_not_abort_because: str | None = None
    coordinator_partition: int | None = None
    coordinator_state: str | None = None
    records: int | None = None
    #: Other partitions on which the producer has committed since these records began.
    committed_siblings: tuple[str, ...] | None = None
    blocked_offsets: int | None = None
    blocks_since_ms: int | None = None
    transaction_start_ms: int | None = None
    safe_from_ms: int | None = None
    #: Whether the last stable offset waits for it; None: the leader says that it waits for another one.
    holds: bool | None = True
    causes: tuple[Cause, ...] | None = None

    @property
    def needs_replicas(self) -> bool:
        """Whether its coordinator cannot write its end, by what the metadata log shows of replicas in sync."""
        return any(each.cause in _NEED_REPLICAS for each in self.causes or ())


@dataclass(frozen=True, slots=True)
class WholeTransaction:
    """A transaction of a coordinator: the partitions that it still holds, their records, and those that have their
    marker."""

    transactional_id: str
    coordinator_partition: int
    transaction_number: int
    held_partitions: int
    held_records: int | None
    committed_partitions: int
    aborted_partitions: int
    held: tuple[OfProducer, ...]


ACTIONS: Final[Mapping[Verdict, Action | None]] = {
    Verdict.HANGING: Action.ABORT,
    Verdict.SUSPECT: Action.WAIT,
    Verdict.STUCK: Action.REVIVE_COORDINATOR,
    Verdict.LATE: Action.END_AT_COORDINATOR,
    Verdict.OPEN: None,
    Verdict.UNKNOWN: Action.CAPTURE_MORE,
}
#: Reason -> action, if it differs from that of the verdict.
ACTIONS_BY_REASON: Final[Mapping[Reason, Action]] = {
    Reason.TWO_PHASE_COMMIT: Action.END_AT_COORDINATOR,
    Reason.TIMEOUT_NOT_PASSED: Action.CHECK_TIMESTAMPS,
}
#: Prepare state of a refused marker -> action.
ACTIONS_OF_REFUSED: Final[Mapping[str, Action]] = {
    TransactionState.PREPARE_ABORT.kafka_name: Action.ABORT_AS_DECIDED,
    TransactionState.PREPARE_COMMIT.kafka_name: Action.DO_NOT_ABORT,
}


def needs_somebody(
    verdict: str,
    reason: str,
    start_ms: int | None,
    blocks_since_ms: int | None,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
) -> bool:
    """Whether an open transaction needs an operator. `start_ms`: by its coordinator, if known.

    True for all that are not simply in time, and for two-phase commits older than the maximum timeout of other
    transactions.
    """
    since_ms = blocks_since_ms if start_ms is None else start_ms
    is_old = since_ms is not None and as_of_ms - since_ms > transaction_max_timeout_ms
    return verdict != Verdict.OPEN or (reason == Reason.TWO_PHASE_COMMIT and is_old)


def action_for(transaction: OpenTransaction) -> Action | None:
    """The action for a transaction; None if it is in progress. A two-phase commit is ended by its owner or at its
    coordinator."""
    if transaction.reason == Reason.MARKER_REFUSED:
        return ACTIONS_OF_REFUSED.get(transaction.coordinator_state or "", Action.DO_NOT_ABORT)
    action = ACTIONS_BY_REASON.get(Reason(transaction.reason), ACTIONS[Verdict(transaction.verdict)])
    if action in _BY_COORDINATOR and transaction.needs_replicas:
        return Action.RESTORE_REPLICAS
    if action is not Action.ABORT or transaction.safe_to_abort:
        return action
    return Action.DO_NOT_ABORT if transaction.abort_command is None else Action.ABORT_LATER


def plan(
    transaction: OpenTransaction, kafka_version: str | None = None, whole: WholeTransaction | None = None
) -> Plan | None:
    """The steps for one open transaction; None if it is in progress.

    `kafka_version`: the version of the brokers, if known. `whole`: its transaction on all partitions, if records of a
    coordinator explain it.
    """
    action = action_for(transaction)
    if action is None:
        return None
    steps = _PLANS[action]
    # An abort names only the partition.
    unnamed = kafka_commands.cannot_name(transaction.topic, None if steps is _abort else transaction.transactional_id)
    if unnamed is not None and steps is not _idle:
        because = transaction.do_not_abort_because
        planned = Plan(action, notes=tuple(dict.fromkeys([*([because] if because else []), unnamed])))
    else:
        planned = steps(transaction, action, kafka_version)
    return replace(_named(planned, kafka_version), effect=effect(transaction, action, whole))


def _named(planned: Plan, kafka_version: str | None) -> Plan:
    """The plan, whose commands have the names of this version."""

    def steps(given: tuple[PlanCommand, ...]) -> tuple[PlanCommand, ...]:
        return tuple(replace(each, command=kafka_commands.named(each.command, kafka_version)) for each in given)

    old, command = planned.command_for_old_brokers, planned.command
    return replace(
        planned,
        command=None if command is None else kafka_commands.named(command, kafka_version),
        command_for_old_brokers=None if old is None else kafka_commands.named(old, kafka_version),
        before=steps(planned.before),
        after=steps(planned.after),
    )


#: Action -> what it does to the records, in words; None if it ends nothing.
EFFECTS: Final[Mapping[Action, str | None]] = {
    Action.ABORT: "drops {here}{siblings}",
    Action.ABORT_LATER: "drops {here}{siblings}",
    Action.ABORT_AS_DECIDED: "drops {here}, as its coordinator decided{marked}",
    Action.END_AT_COORDINATOR: "drops {whole}{marked}",
    Action.REVIVE_COORDINATOR: "{ends} {whole}{marked}",
    Action.DO_NOT_ABORT: "an abort would drop {here}{siblings}{marked}",
    Action.RESTORE_REPLICAS: None,
    Action.CHECK_TIMESTAMPS: None,
    Action.WAIT: None,
    Action.CAPTURE_MORE: None,
}


def effect(transaction: OpenTransaction, action: Action, whole: WholeTransaction | None = None) -> str | None:
    """What a step ends, and what stays as it is; None if it ends nothing."""
    form = EFFECTS[action]
    if form is None:
        return None
    here = f"{_count(transaction.records, 'record')} here, from offset {transaction.start_offset} on"
    everywhere = here
    if whole is not None and whole.held_partitions > 1:
        everywhere = f"{_count(whole.held_records, 'record')} on {_count(whole.held_partitions, 'partition')}"
    others = transaction.committed_siblings or ()
    siblings = (
        f"; {_count(len(others), 'other partition')} {_stay(len(others))} committed: {', '.join(others)}"
        if others
        else ""
    )
    of_whole = {} if whole is None else {"committed": whole.committed_partitions, "aborted": whole.aborted_partitions}
    marked = "".join(
        f"; {_count(number, 'other partition')} {_stay(number)} {how}" for how, number in of_whole.items() if number
    )
    ends = "commits" if transaction.coordinator_state == TransactionState.PREPARE_COMMIT.kafka_name else "drops"
    return form.format(
        here=here,
        whole=everywhere,
        siblings=siblings,
        marked="" if siblings and action is Action.DO_NOT_ABORT else marked,
        ends=ends,
    )


def _count(number: int | None, what: str) -> str:
    return f"an unknown number of {what}s" if number is None else counted(number, what)


def _stay(number: int) -> str:
    return "stays" if number == 1 else "stay"


def _abort(transaction: OpenTransaction, action: Action, kafka_version: str | None) -> Plan:
    topic, partition, producer_id = transaction.topic, transaction.partition, transaction.producer_id
    producers = kafka_commands.describe_producers(topic, partition)
    before = [PlanCommand(producers, kafka_commands.producer_row(producer_id, transaction.start_offset))]
    unnamed = kafka_commands.cannot_name(topic, transaction.transactional_id)
    if transaction.transactional_id is not None and unnamed is None:
        shown = kafka_commands.describe(transaction.transactional_id)
        must_print = kafka_commands.nothing_of(topic, partition, producer_id)
        if action is Action.ABORT_AS_DECIDED:
            must_print = f"TransactionState PrepareAbort, producer {producer_id}"
        before.append(PlanCommand(shown, must_print))
    if action is not Action.ABORT_AS_DECIDED:
        # The live tool asks every coordinator of this moment.
        before.append(PlanCommand(kafka_commands.find_hanging(topic, partition), row_of_find_hanging(transaction)))
    after = (
        PlanCommand(producers, kafka_commands.producer_row(producer_id, None)),
        PlanCommand(kafka_commands.find_hanging(topic, partition), f"no row of producer {producer_id}"),
    )
    old = kafka_commands.abort_on_old_brokers(
        topic, partition, producer_id, transaction.producer_epoch, transaction.coordinator_epoch
    )
    has_steps = kafka_commands.knows_describe_producers(kafka_version)
    notes = []
    if unnamed is not None:
        notes.append(f"its state at the coordinator must be checked first, but {unnamed}")
    if not kafka_commands.is_version_known(kafka_version):
        notes.append(
            "brokers before 3.0 cannot look up a start offset: they need the second form of the command, and no checks"
            " exist"
        )
    if action is Action.ABORT_AS_DECIDED:
        notes.append(
            "the coordinator stays in PrepareAbort until the partition drops the state of the producer, which has"
            " nothing open then (producer.id.expiration.ms)"
        )
    return Plan(
        action,
        transaction.abort_command,
        None if kafka_commands.is_version_known(kafka_version) else old,
        tuple(before) if has_steps else (),
        after if has_steps else (),
        tuple(notes),
    )


def row_of_find_hanging(transaction: OpenTransaction) -> str:
    """What the live tool must print of a transaction before it is aborted by hand."""
    if transaction.kafka_find_hanging is False:
        return (
            f"no row of producer {transaction.producer_id}: the tool does not find it, because it compares fewer facts"
        )
    return kafka_commands.hanging_row(transaction.producer_id, transaction.start_offset)


def _end_at_coordinator(transaction: OpenTransaction, action: Action, kafka_version: str | None) -> Plan:
    if transaction.transactional_id is None:
        return Plan(action)
    shown = kafka_commands.describe(transaction.transactional_id)
    ongoing = f"TransactionState Ongoing, producer {transaction.producer_id}; and its owner says that it is given up"
    before = [PlanCommand(shown, ongoing)]
    if kafka_commands.knows_force_terminate(kafka_version) is not True:
        before.insert(
            0,
            PlanCommand(
                kafka_commands.tool_version(), "4.1 or newer; older clients have Admin.fenceProducers since 3.2"
            ),
        )
    after = (PlanCommand(shown, "TransactionState CompleteAbort or Empty"),)
    notes = ("it aborts the whole transaction, on all its partitions, and fences its producer",)
    return Plan(action, kafka_commands.force_terminate(transaction.transactional_id), None, tuple(before), after, notes)


def _revive(transaction: OpenTransaction, action: Action, kafka_version: str | None) -> Plan:
    coordinator, transactional_id = transaction.coordinator_partition, transaction.transactional_id
    if coordinator is None or transactional_id is None:
        return Plan(action)
    state = transaction.coordinator_state or "PrepareCommit or PrepareAbort"
    before = (
        PlanCommand(
            kafka_commands.describe(transactional_id), f"TransactionState {state}, producer {transaction.producer_id}"
        ),
        PlanCommand(
            kafka_commands.describe_coordinators(), f"the leader of partition {coordinator}: the broker to look at"
        ),
    )
    after = (
        PlanCommand(
            kafka_commands.describe(transactional_id), f"TransactionState {state.replace('Prepare', 'Complete')}"
        ),
    )
    notes = (
        (
            f"look in that broker's log for '{transactional_id}' with 'transaction marker', 'permanently failed' or"
            f" 'retrying', and for the leader of {transaction.topic}-{transaction.partition} being unavailable"
        ),
        (
            f"the command moves the leadership of __transaction_state-{coordinator}, so that its markers are sent"
            " again; if the preferred replica is already the leader, restart that broker, or reassign the partition"
        ),
    )
    return Plan(action, kafka_commands.move_coordinator(coordinator), None, before, after, notes)


def _do_not_abort(transaction: OpenTransaction, action: Action, kafka_version: str | None) -> Plan:
    notes = []
    if transaction.reason == Reason.MARKER_REFUSED:
        notes = [
            (
                "no Kafka tool writes a COMMIT marker: look for another replica that has it; waiting does not help,"
                " because the partition keeps the epoch of a producer as long as its transaction is open"
            ),
            (
                f"a marker would need type COMMIT, producer id {transaction.producer_id}, producer epoch"
                f" {transaction.producer_epoch} or higher (higher, if the request names transaction version 2), and a"
                f" coordinator epoch of {transaction.coordinator_epoch or 0} or higher; only its coordinator, or a"
                " WriteTxnMarkers request of your own, can send it"
            ),
        ]
    elif transaction.reason == Reason.EPOCH_AHEAD_OF_COORDINATOR:
        notes = [
            "1. stop the application, so that it does not commit",
            (
                "2. wait until its coordinator aborts the rest at its timeout; its marker is refused here, so it stays"
                " in PrepareAbort"
            ),
            "3. audit again: an abort by hand then agrees with the decision, and the plan has its command",
        ]
    because = transaction.do_not_abort_because
    return Plan(action, notes=(*([because] if because else []), *notes))


def _check_timestamps(transaction: OpenTransaction, action: Action, kafka_version: str | None) -> Plan:
    notes = (
        "check the timestamps that the producer writes: they are older than its transaction; nothing needs to be ended",
    )
    if transaction.transactional_id is None:
        return Plan(action, notes=notes)
    shown = PlanCommand(
        kafka_commands.describe(transaction.transactional_id),
        "TransactionState Ongoing, with a StartTime that is recent",
    )
    return Plan(action, before=(shown,), notes=notes)


def _idle(transaction: OpenTransaction, action: Action, kafka_version: str | None) -> Plan:
    because = transaction.do_not_abort_because
    return Plan(action, notes=(because,) if because else ())


_PLANS: Final[Mapping[Action, Callable[[OpenTransaction, Action, str | None], Plan]]] = {
    Action.ABORT: _abort,
    Action.ABORT_LATER: _abort,
    Action.ABORT_AS_DECIDED: _abort,
    Action.RESTORE_REPLICAS: _idle,
    Action.END_AT_COORDINATOR: _end_at_coordinator,
    Action.REVIVE_COORDINATOR: _revive,
    Action.DO_NOT_ABORT: _do_not_abort,
    Action.CHECK_TIMESTAMPS: _check_timestamps,
    Action.WAIT: _idle,
    Action.CAPTURE_MORE: _idle,
}
