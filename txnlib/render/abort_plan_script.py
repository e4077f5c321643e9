"""The plan of an audit as a script.

It checks before each step, and stops at the first surprise.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from txnlib.core.display import printable
from txnlib.core.verdicts import kafka_commands
from txnlib.core.verdicts.abort_script import Condition, after, before, obstacle
from txnlib.queries.rows import Row

_HEAD: Final = r"""#!/usr/bin/env bash
# Ends open transactions, as `txnlib` planned it in {run}, as of {as_of}.
# Read it, audit again if that is not recent, then: BOOTSTRAP=broker:9092 bash SCRIPT
# Before each step it checks that nothing has changed since. It stops at the first surprise; what it did until then stays done.
# Steps that need a person are comments. COMMAND_CONFIG names a file of client settings, if brokers want any.

# shellcheck disable=SC2086  # an address has no spaces
set -euo pipefail
: "${{BOOTSTRAP:?set BOOTSTRAP to the address of a broker, such as broker:9092}}"

kafka-transactions.sh() {{ command kafka-transactions.sh ${{COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"}} "$@"; }}

# present|absent COLUMNS CONDITION COMMAND...: runs a command that prints a table, and checks whether a row meets an awk condition.
# A table without these columns, or without rows, is a surprise, too.
present() {{ check yes "$@"; }}
absent() {{ check no "$@"; }}
check() {{
  local wanted="$1" columns="$2" condition="$3" printed found
  shift 3
  printf 'check    %s\n' "$*" >&2
  printed="$("$@")" || surprise "the command failed" "$printed"
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
  [[ "$found" == "$wanted" ]] || surprise "not as planned" "$printed"
}}
surprise() {{
  printf 'STOPPED  %s; it printed:\n%s\n' "$1" "$2" >&2
  exit 1
}}
run() {{
  printf 'run      %s\n' "$*" >&2
  "$@"
}}
"""


def abort_plan_script(rows: Sequence[Row], run_id: str, as_of: str) -> str:
    """A Bash script. `as_of`: the instant of the audit, as text."""
    head = _HEAD.format(run=printable(run_id), as_of=as_of)
    return head + "".join(map(_step, rows)) + "\nprintf 'done\\n' >&2\n"


def _step(row: Row) -> str:
    where = ", ".join(row["places"] or [f"{row['topic']}-{row['partition']} offset {row['start_offset']}"])
    title = f"{row['number']}. {row['action']} {where}, producer {row['producer_id']}"
    problem = obstacle(row)
    if problem is not None:
        steps = [step["command"] for step in row["before"] or ()]
        known = [*(f"before   {each}" for each in steps), *([f"do       {row['command']}"] if row["command"] else [])]
        return _comment([f"{title}: {problem}", *known, *(f"note     {note}" for note in row["notes"] or ())])
    # From its columns, not the stored text: a table that somebody edited must not run anything else.
    command = kafka_commands.abort(row["topic"], row["partition"], row["start_offset"])
    lines = [*map(_condition, before(row)), f"run {command}", *map(_condition, after(row))]
    return _comment([title, *(f"note     {note}" for note in row["notes"] or ())]) + "".join(f"{line}\n" for line in lines)


def _condition(condition: Condition) -> str:
    check = "present" if condition.is_present else "absent"
    words = [check, shlex.quote(" ".join(condition.columns)), shlex.quote(condition.row), condition.command]
    return " \\\n  ".join(words)


def _comment(lines: Sequence[str]) -> str:
    return "\n" + "".join(f"# {printable(line)}\n" for line in lines)
