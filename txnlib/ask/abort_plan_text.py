"""The plan of an audit: what to do about each open transaction, and what to check before and after."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Final

from txnlib.ask.command_output import SCRIPT, CommandOutput
from txnlib.ask.grid import command_lines, folded, plain
from txnlib.ask.queries import Row, StoredRun, ms
from txnlib.ask.subject import equal
from txnlib.ask.words import counted_as, named
from txnlib.core import kafka_commands
from txnlib.core.display import BOOTSTRAP, instant, not_before, printable, told
from txnlib.core.rows import grouped
from txnlib.core.schema import shown
from txnlib.core.tables.plan_in_order import Condition, after, before, obstacle

#: Columns with lists.
CHECKS: Final = ("before", "after", "notes", "places")


def abort_plan(
    run: StoredRun,
    *,
    topic: str | None = None,
    action: str | None = None,
    verdict: str | None = None,
    limit: int | None = None,
) -> list[Row]:
    """The rows of abort_plan, in order, with this topic, action and verdict. Columns: the view `abort-plan`, and
    CHECKS."""
    where = [*counted_as(verdict), *equal(topic=topic, action=action)]
    columns = (*shown("abort-plan"), *CHECKS)
    return [named(row) for row in run.rows("abort_plan", columns, where, order='"number"', limit=limit)]


# ---- The plan of an audit as text: a table of the actions, then the steps of each


def abort_plan_output(rows: Sequence[Row], run_id: str, as_of: str) -> CommandOutput:
    """One row per action. CSV has no lists, so only people, scripts and JSON get the checks."""
    flat = [{name: value for name, value in row.items() if name not in CHECKS} for row in rows]
    script = partial(abort_plan_script, rows, run_id, as_of)
    return CommandOutput(
        shown("abort-plan"),
        flat,
        shown=shown("abort-plan", is_wide=False),
        kept=shown("abort-plan", is_wide=False),
        tail=partial(_text, rows),
        whole=lambda: plain(rows),
        others={SCRIPT: script},
    )


def _text(rows: Sequence[Row], width: int) -> str:
    """The steps of all rows in their order; those that need no command, and for the same reason, where the first one
    stands. At last the permissions that all of them need."""
    groups = grouped(rows, lambda row: (row["action"], row["reason"]) if row["command"] is None else row["number"])
    lines = [line for each in groups.values() for line in _group(each, width)]
    needed = permissions_of(rows)
    if needed:
        lines += ["", "PERMISSIONS", *(line for each in needed for line in folded(f"   {each}", width))]
    return "".join(f"{line}\n" for line in lines)


def permissions_of(rows: Sequence[Row]) -> list[str]:
    """What the commands of a plan need, each said once."""
    checks = (step["command"] for row in rows for step in (*(row["before"] or ()), *(row["after"] or ())))
    return kafka_commands.permissions([*filter(None, (row["command"] for row in rows)), *checks])


def waits_until(row: Row) -> list[str]:
    """The line that stands in front of a command that has to wait."""
    return [] if row["not_before"] is None else [f"# not before {not_before(ms(row['not_before']) or 0)}"]


def _group(rows: Sequence[Row], width: int) -> list[str]:
    """Rows that are alike: what they say is said once."""
    if len(rows) == 1:
        return _steps(rows[0], width)
    lines = ["", f"{rows[0]['action']}  {len(rows)} steps: {rows[0]['reason']}"]
    said: dict[str, list[int]] = {}
    for row in rows:
        effect = "" if row["effect"] is None else f": {row['effect']}"
        title = f"   {row['number']}. {_where(row)}, producer {row['producer_id']}{effect}"
        lines += folded(printable(title), width)
        for note in dict.fromkeys((row["do_not_abort_because"], *(row["notes"] or ()))):
            if note is not None:
                said.setdefault(note, []).append(row["number"])
    of = {
        note: "" if len(numbers) == len(rows) else f"{', '.join(map(str, numbers))}: " for note, numbers in said.items()
    }
    return lines + [line for note in said for line in _said("note", f"{of[note]}{note}", width)]


def _where(row: Row) -> str:
    return ", ".join(row["places"] or [f"{row['topic']}-{row['partition']} offset {row['start_offset']}"])


def _steps(row: Row, width: int) -> list[str]:
    title = f"{row['number']}. {row['action']}  {_where(row)}, producer {row['producer_id']}"
    because, old = row["do_not_abort_because"], row["command_for_old_brokers"]
    said = [
        ("no abort now, because", because),
        *(each for step in row["before"] or () for each in _checked("before", step)),
        *_command(row),
        ("or", None if old is None else f"{old}   (brokers before 3.0)"),
        ("effect", row["effect"]),
        *(each for step in row["after"] or () for each in _checked("after", step)),
        *(("note", note) for note in row["notes"] or () if note != because),
    ]
    of_labels = [line for label, text in said if text is not None for line in _said(label, text, width)]
    return ["", *folded(printable(title), width), *of_labels]


def _command(row: Row) -> list[tuple[str, str]]:
    """The command, with the line that it waits for before it; none if there is no command."""
    lines = [] if row["command"] is None else [*waits_until(row), row["command"]]
    return list(zip([_when(row), *[""] * len(lines)], lines, strict=False))


def _when(row: Row) -> str:
    """The label of a command: it must wait for what speaks against an abort now."""
    return "do" if row["do_not_abort_because"] is None else "then"


def _checked(when: str, step: Row) -> list[tuple[str, str]]:
    return [(when, step["command"]), ("", f"must show: {step['must_print']}")]


def _said(label: str, text: str, width: int) -> list[str]:
    """A command behind its label, or a sentence, wrapped between words."""
    if BOOTSTRAP in text:
        return command_lines(printable(f"   {label:<7} {text}"), width, 11)
    return folded(told(f"   {label:<7} {text}"), width, 11)


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The action for each open transaction: commands in order, their expected output, and reasons against running
    them."""
    rows = abort_plan(run, topic=options.topic, action=options.action, verdict=options.verdict, limit=options.limit)
    return abort_plan_output(rows, run.run_id, instant(run.as_of_ms))


# ---- The plan of an audit as a script


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
    title = f"{row['number']}. {row['action']} {_where(row)}, producer {row['producer_id']}"
    problem = obstacle(row)
    if problem is not None:
        steps = [step["command"] for step in row["before"] or ()]
        known = [
            *(f"before   {each}" for each in steps),
            *waits_until(row),
            *([f"{_when(row):<8} {row['command']}"] if row["command"] else []),
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
