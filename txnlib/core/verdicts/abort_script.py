"""Checks of a script before and after it ends a transaction.

They are conditions on what Kafka's tool prints, and say the same as `must_print` of the plan (`abort_plan`), for a program. A
script runs only steps that leave no question to a person: all others are comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts import kafka_commands
from txnlib.core.verdicts.abort_plan import Action, hanging_row

#: Kafka: `org.apache.kafka.common.internals.Topic`. Conditions contain the name as it is.
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Condition:
    """A command, and what must hold for the table that it prints.

    `row` is an awk expression over the columns of a row, by their names in `value()`. `is_present`: whether such a row must be
    there, or must not.
    """

    command: str
    row: str
    is_present: bool

    @property
    def columns(self) -> list[str]:
        """The columns that the condition reads."""
        return sorted(set(re.findall(r'value\("(\w+)"\)', self.row)))


def _before_abort(row: Mapping[str, Any]) -> str:
    place = f"{row['topic']}-{row['partition']}"
    decided = f'value("TransactionState") == "{TransactionState.PREPARE_COMMIT.kafka_name}" && {_of_producer(row)}'
    return f'lists(value("TopicPartitions"), "{place}") || ({decided})'


def _before_decided_abort(row: Mapping[str, Any]) -> str:
    return f'value("TransactionState") == "{TransactionState.PREPARE_ABORT.kafka_name}" && {_of_producer(row)}'


#: The actions that a script carries out -> the condition on the coordinator's state, and whether a row must meet it, or must not.
#: All other actions need the owner of an application, a look into a log, time, or another copy.
_AT_COORDINATOR: Final[Mapping[Action, tuple[Callable[[Mapping[str, Any]], str], bool]]] = {
    Action.ABORT: (_before_abort, False),
    Action.ABORT_AS_DECIDED: (_before_decided_abort, True),
}


def before(row: Mapping[str, Any]) -> list[Condition]:
    """What must hold before the command of a row of `abort_plan` is run."""
    producers = kafka_commands.describe_producers(row["topic"], row["partition"])
    is_open = f'{_of_producer(row)} && value("CurrentTransactionStartOffset") == "{row["start_offset"]}"'
    conditions = [Condition(producers, is_open, is_present=True)]
    if row["transactional_id"] is not None:
        condition, is_present = _AT_COORDINATOR[Action[row["action"]]]
        conditions.append(Condition(kafka_commands.describe(row["transactional_id"]), condition(row), is_present))
    if hanging_row(row["producer_id"], row["start_offset"]) in [step["must_print"] for step in row["before"] or ()]:
        is_found = f'{_of_producer(row)} && value("StartOffset") == "{row["start_offset"]}"'
        conditions.append(Condition(kafka_commands.find_hanging(row["topic"], row["partition"]), is_found, is_present=True))
    return conditions


def after(row: Mapping[str, Any]) -> list[Condition]:
    """What must hold once the command was run."""
    producers = kafka_commands.describe_producers(row["topic"], row["partition"])
    is_open = f'{_of_producer(row)} && value("CurrentTransactionStartOffset") != "None"'
    return [Condition(producers, is_open, is_present=False)]


def _of_producer(row: Mapping[str, Any]) -> str:
    return f'value("ProducerId") == "{row["producer_id"]}"'


def obstacle(row: Mapping[str, Any]) -> str | None:
    """Why a script does not carry out a row of `abort_plan`; None if it does."""
    if Action[row["action"]] not in _AT_COORDINATOR:
        return "not by a script"
    if row["command"] is None or not row["before"]:
        return "no tool checks it"
    if _TOPIC.fullmatch(row["topic"]) is None:
        return "no topic has such a name"
    return kafka_commands.cannot_name(row["topic"], row["transactional_id"])
