"""`abort_plan`: the steps that end the open transactions, in order.

Also the checks of a script that carries them out.

`core.verdicts.abort_plan` has the content of a step.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core import kafka_commands
from txnlib.core.kafka.constants import is_topic_name
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import IdKey, row_of
from txnlib.core.schema import row_class
from txnlib.core.verdicts.abort_plan import (
    IN_TIME,
    NO_ACTION,
    OF_WHOLE_TRANSACTION,
    Action,
    OpenTransaction,
    Plan,
    WholeTransaction,
    needs_somebody,
    plan,
)

PlannedStep: Final = row_class("abort_plan")


#: The transactions of ids that hold some partition, as `WholeTransaction`.
WHOLE_TRANSACTIONS: Final = """
SELECT /*+ BROADCAST(ids) */ transactional_id, coordinator_partition, transaction_number,
  count_if(outcome = 'OPEN') AS held_partitions, sum(records) FILTER (WHERE outcome = 'OPEN') AS held_records,
  count_if(outcome = 'COMMIT') AS committed_partitions, count_if(outcome = 'ABORT') AS aborted_partitions,
  collect_list(struct(topic, partition, producer_id)) FILTER (WHERE outcome = 'OPEN') AS held
FROM {transaction_outcomes} LEFT SEMI JOIN {asked} AS ids USING (transactional_id)
WHERE transaction_number IS NOT NULL
GROUP BY transactional_id, coordinator_partition, transaction_number
HAVING count_if(outcome = 'OPEN') > 0
"""


@dataclass(frozen=True, slots=True)
class _PlanCandidate:
    """An open transaction that somebody must end, and its plan."""

    of: OpenTransaction
    plan: Plan

    @property
    def is_holder(self) -> bool:
        return self.of.holds is not False

    @property
    def not_before_ms(self) -> int | None:
        """The instant until which the step has to wait, if only time is missing."""
        return self.of.safe_from_ms if self.plan.action in IN_TIME else None

    @property
    def step(self) -> tuple[object, ...]:
        """What one step ends: a coordinator ends a transaction on all its partitions at once."""
        place = (
            () if self.plan.action in OF_WHOLE_TRANSACTION else (self.of.topic, self.of.partition, self.of.start_offset)
        )
        return (self.plan.action, self.of.transactional_id, self.of.producer_id, *place)

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts the transactions of a step: first what determines the last stable offset of a partition, and blocks
        most."""
        blocks = self.of.blocked_offsets is None, -(self.of.blocked_offsets or 0)
        return not self.is_holder, blocks, self.of.topic, self.of.partition, self.of.start_offset

    @property
    def order_in_plan(self) -> tuple[object, ...]:
        """Sorts the steps: what frees a partition comes first, now or at its instant; then what waits behind others;
        then what nobody can do anything about."""
        is_waiting, blocks, *_ = self.order
        of, action, instant = self.of, self.plan.action, self.not_before_ms
        is_useless = action in NO_ACTION or (action is Action.WAIT and instant is None)
        stage = "time" if action in IN_TIME else "copies" if action is Action.CAPTURE_MORE else "now"
        first = is_useless, is_waiting, ("now", "time", "copies").index(stage), instant is None, instant or 0, action
        return *first, blocks, of.blocks_since_ms or 0, of.topic, of.partition, of.producer_id, of.start_offset


def abort_plan(
    open_transactions: Sequence[OpenTransaction],
    whole_transactions: Callable[[Sequence[IdKey]], Sequence[WholeTransaction]],
    *,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
    kafka_version: str | None,
) -> Iterator[Any]:
    """A row for each step; steps that unblock consumers come first.

    A step that the coordinator takes for all partitions of a transaction at once is one row.
    """
    needy = [
        each
        for each in open_transactions
        if needs_somebody(
            each.verdict,
            each.reason,
            each.transaction_start_ms,
            each.blocks_since_ms,
            as_of_ms,
            transaction_max_timeout_ms,
        )
    ]
    ids = sorted({each.transactional_id for each in needy if each.transactional_id is not None})
    ordered = sorted(
        whole_transactions(list(map(IdKey, ids))),
        key=lambda whole: (whole.transaction_number, whole.coordinator_partition),
    )
    # Transactional id, partition and producer id -> the newest transaction that holds the partition.
    wholes: dict[tuple[str | None, str, int, int], WholeTransaction] = {
        (whole.transactional_id, at.topic, at.partition, at.producer_id): whole
        for whole in ordered
        for at in whole.held
    }
    steps: dict[tuple[object, ...], list[_PlanCandidate]] = defaultdict(list)
    for each in needy:
        planned = plan(
            each, kafka_version, wholes.get((each.transactional_id, each.topic, each.partition, each.producer_id))
        )
        if planned is not None:
            candidate = _PlanCandidate(each, planned)
            steps[candidate.step].append(candidate)
    firsts = [(min(members, key=lambda each: each.order), members) for members in steps.values()]
    for number, (first, members) in enumerate(sorted(firsts, key=lambda step: step[0].order_in_plan), 1):
        places = {f"{each.of.topic}-{each.of.partition} offset {each.of.start_offset}" for each in members}
        yield row_of(
            PlannedStep,
            first.of,
            first.plan,
            as_of_ms=as_of_ms,
            number=number,
            action=first.plan.action.name,
            is_holder=first.is_holder,
            places=tuple(sorted(places)),
            not_before_ms=first.not_before_ms,
        )


# ---- Checks of a script before and after it ends a transaction
#
# They are conditions on what Kafka's tool prints, and say the same as `must_print` of the plan, for a program. A script
# runs only steps that leave no question to a person: all others are comments.


@dataclass(frozen=True, slots=True)
class Condition:
    """A command, and what must hold for the table that it prints.

    `row` is an awk expression over the columns of a row, by their names in `value()`. `is_present`: whether such a row
    must be there, or must not. `says`: what must be printed, in words.
    """

    command: str
    row: str
    is_present: bool
    says: str

    @property
    def columns(self) -> list[str]:
        """The columns that the condition reads."""
        return sorted(set(re.findall(r'value\("(\w+)"\)', self.row)))


def _before_abort(row: Mapping[str, Any]) -> str:
    place = f"{row['topic']}-{row['partition']}"
    decided = f'value("TransactionState") == "{TransactionState.PREPARE_COMMIT.kafka_name}" && {_of_producer(row)}'
    return f'lists(value("TopicPartitions"), "{place}") || ({decided})'


def _is_not_of_coordinator(row: Mapping[str, Any]) -> str:
    return kafka_commands.nothing_of(row["topic"], row["partition"], row["producer_id"])


def _is_decided_abort(row: Mapping[str, Any]) -> str:
    return f"{TransactionState.PREPARE_ABORT.kafka_name} of producer {row['producer_id']}"


def _before_decided_abort(row: Mapping[str, Any]) -> str:
    return f'value("TransactionState") == "{TransactionState.PREPARE_ABORT.kafka_name}" && {_of_producer(row)}'


_OfRow = Callable[[Mapping[str, Any]], str]
#: The actions that a script carries out -> the condition on the coordinator's state, whether a row must meet it, or
#: must not, and this in words. All other actions need the owner of an application, a look into a log, time, or another
#: copy.
_AT_COORDINATOR: Final[Mapping[Action, tuple[_OfRow, bool, _OfRow]]] = {
    Action.ABORT: (_before_abort, False, _is_not_of_coordinator),
    Action.ABORT_AS_DECIDED: (_before_decided_abort, True, _is_decided_abort),
}


def before(row: Mapping[str, Any]) -> list[Condition]:
    """What must hold before the command of a row of `abort_plan` is run."""
    producers = kafka_commands.describe_producers(row["topic"], row["partition"])
    is_open = f'{_of_producer(row)} && value("CurrentTransactionStartOffset") == "{row["start_offset"]}"'
    producer_id, offset = row["producer_id"], row["start_offset"]
    conditions = [Condition(producers, is_open, is_present=True, says=kafka_commands.producer_row(producer_id, offset))]
    if row["transactional_id"] is not None:
        condition, is_present, says_of = _AT_COORDINATOR[Action[row["action"]]]
        described = kafka_commands.describe(row["transactional_id"])
        conditions.append(Condition(described, condition(row), is_present, says_of(row)))
    hanging = kafka_commands.hanging_row(producer_id, offset)
    if hanging in [step["must_print"] for step in row["before"] or ()]:
        is_found = f'{_of_producer(row)} && value("StartOffset") == "{row["start_offset"]}"'
        found = kafka_commands.find_hanging(row["topic"], row["partition"])
        conditions.append(Condition(found, is_found, is_present=True, says=hanging))
    return conditions


def after(row: Mapping[str, Any]) -> list[Condition]:
    """What must hold once the command was run."""
    producers = kafka_commands.describe_producers(row["topic"], row["partition"])
    is_open = f'{_of_producer(row)} && value("CurrentTransactionStartOffset") != "None"'
    return [Condition(producers, is_open, is_present=False, says=kafka_commands.producer_row(row["producer_id"], None))]


def _of_producer(row: Mapping[str, Any]) -> str:
    return f'value("ProducerId") == "{row["producer_id"]}"'


def obstacle(row: Mapping[str, Any]) -> str | None:
    """Why a script does not carry out a row of `abort_plan`; None if it does."""
    if Action[row["action"]] not in _AT_COORDINATOR:
        return "not by a script"
    if row["command"] is None or not row["before"]:
        return "no tool checks it"
    if not is_topic_name(row["topic"]):  # conditions contain the name as it is
        return "no topic has such a name"
    return kafka_commands.cannot_name(row["topic"], row["transactional_id"])
