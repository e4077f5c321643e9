"""The abort plan as a Bash script, with checks around each step."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.ask.queries import Row, ms
from txnlib.core import kafka_commands
from txnlib.core.display import not_before, printable
from txnlib.core.kafka.constants import is_topic_name
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.plan_step import Action


def waits_until(row: Row) -> list[str]:
    """The comment before a command that has to wait until an instant; empty if the command need not wait."""
    return [] if row["not_before"] is None else [f"# not before {not_before(ms(row['not_before']) or 0)}"]


def places_of(row: Row) -> str:
    return ", ".join(row["places"] or [f"{row['topic']}-{row['partition']} offset {row['start_offset']}"])


def when(row: Row) -> str:
    """The label of a command: "do" if it may be run now, "then" if something speaks against an abort now."""
    return "do" if row["do_not_abort_because"] is None else "then"


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


# ---- The script


#: The head of a script that runs nothing.
_NOTHING: Final = r"""#!/usr/bin/env bash
# `txnlib` planned no step for a script in {run}, as of {as_of}.
"""
_HEAD: Final = r"""#!/usr/bin/env bash
# Ends open transactions, as `txnlib` planned it in {run}, as of {as_of}.
# Read it, audit again if that is not recent, then: BOOTSTRAP=broker:9092 bash SCRIPT
# Before each step it checks that nothing has changed since. It stops at the first surprise; what it did until then
# stays done.
# Steps that need a person are comments. COMMAND_CONFIG names a file of client settings, if brokers want any; TOOLS the
# folder of Kafka's tools, if they are not in PATH. Those of Confluent Platform have no .sh, and are found as well.

# shellcheck disable=SC2086  # an address has no spaces
set -euo pipefail
: "${{BOOTSTRAP:?set BOOTSTRAP to the address of a broker, such as broker:9092}}"

unset JMX_PORT KAFKA_JMX_OPTS  # set for the broker in a container; its tools would use the same port
PATH="${{TOOLS:+$TOOLS:}}$PATH"
tool="$(type -P kafka-transactions.sh || type -P kafka-transactions)" || {{
  printf 'STOPPED  neither kafka-transactions.sh nor kafka-transactions is in PATH; set TOOLS to its folder\n' >&2
  exit 1
}}

kafka-transactions.sh() {{
  "$tool" ${{COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"}} "$@"
}}

# step NUMBER TITLE: a step begins.
number=0 doing=""
step() {{
  number="$1" doing="$2"
  printf 'step     %s of {steps}: %s\n' "$number" "$doing" >&2
}}

# present|absent COLUMNS CONDITION EXPECTED COMMAND...: runs a command that prints a table, and checks whether a row
# meets an awk condition, which is EXPECTED in words.
# A table without these columns, or without rows, is a surprise, too.
present() {{ check yes "$@"; }}
absent() {{ check no "$@"; }}
check() {{
  local wanted="$1" columns="$2" condition="$3" expected="$4" printed found
  shift 4
  printf 'check    %s\n' "$*" >&2
  printed="$("$@")" || surprise "the command failed: $*" "$printed" "$expected"
  found="$(awk -F '\t' -v columns="$columns" '
    function value(name) {{ return cells[column[name]] }}
    function lists(names, name) {{ return index("," names ",", "," name ",") > 0 }}
    {{ for (i = 1; i <= NF; i++) {{ cells[i] = $i; gsub(/^ +| +$/, "", cells[i]) }} }}
    NR == 1 {{
      for (i = 1; i <= NF; i++) column[cells[i]] = i
      count = split(columns, wanted, " ")
      for (i = 1; i <= count; i++) if (!(wanted[i] in column)) strange = 1
      next
    }}
    '"$condition"' {{ found = 1 }}
    END {{ print (strange || NR < 2) ? "unknown" : found ? "yes" : "no" }}' <<<"$printed")"
  [[ "$found" == "$wanted" ]] || surprise "not as planned: $*" "$printed" "$expected"
}}
surprise() {{
  printf 'STOPPED  at step %s of {steps} (%s), %s\nexpected %s\nprinted\n%s\n' "$number" "$doing" "$1" "$3" "$2" >&2
  printf 'done     %s of {steps} steps, which stay done. Audit again before you go on.\n' "$((number - 1))" >&2
  exit 1
}}
run() {{
  printf 'run      %s\n' "$*" >&2
  "$@" || surprise "the command failed: $*" "" "no error; whether it had an effect, describe-producers shows"
}}
"""


def abort_plan_script(rows: Sequence[Row], run_id: str, as_of: str) -> str:
    """A Bash script. `as_of`: the instant of the audit, as text."""
    runs = [row["number"] for row in rows if obstacle(row) is None]
    head = (_HEAD if runs else _NOTHING).format(run=printable(run_id), as_of=as_of, steps=len(runs))
    place = {number: at for at, number in enumerate(runs, 1)}
    steps = "".join(_step(row, place.get(row["number"], 0)) for row in rows)
    needed = kafka_commands.permissions(line for line in steps.splitlines() if not line.startswith("#"))
    end = f"done     {len(runs)} of {len(runs)} steps" if runs else "nothing to do"
    return f"{head}{_comment(needed)}{steps}\nprintf '{end}\\n' >&2\n"


def _step(row: Row, number: int) -> str:
    title = f"{row['number']}. {row['action']} {places_of(row)}, producer {row['producer_id']}"
    problem = obstacle(row)
    if problem is not None:
        steps = [step["command"] for step in row["before"] or ()]
        known = [
            *(f"before   {each}" for each in steps),
            *waits_until(row),
            *([f"{when(row):<8} {row['command']}"] if row["command"] else []),
        ]
        return _comment([f"{title}: {problem}", *known, *(f"note     {note}" for note in row["notes"] or ())])
    # From its columns, not the stored text: a table that somebody edited must not run anything else.
    command = kafka_commands.abort(row["topic"], row["partition"], row["start_offset"])
    begin = f"step {number} {shlex.quote(printable(title))}"
    lines = [begin, *map(_condition, before(row)), f"run {command}", *map(_condition, after(row))]
    return _comment([title, *(f"note     {note}" for note in row["notes"] or ())]) + "".join(
        f"{line}\n" for line in lines
    )


def _condition(condition: Condition) -> str:
    check = "present" if condition.is_present else "absent"
    said = (" ".join(condition.columns), condition.row, condition.says)
    words = [check, *map(shlex.quote, said), condition.command]
    return " \\\n  ".join(words)


def _comment(lines: Sequence[str]) -> str:
    return "".join(["\n", *(f"# {printable(line).removeprefix('# ')}\n" for line in lines)]) if lines else ""
