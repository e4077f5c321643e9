"""Shell completion: a script made from the parser. Only the names of runs, topics and ids are looked up at a Tab."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Final

import shtab

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.commands import parser
from txnlib.ask.own_command import PROGRAM

#: Option or argument -> the names that complete it, as `txn-audit names` calls them.
_COMPLETED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("runs",),
    "runs": ("runs",),
    "topic": ("topics",),
    "id": ("ids",),
    "transactional_id": ("ids",),
    "where": ("topics", "ids"),
}
#: Commands that take an id and no tables to look it up in.
_WITHOUT_TABLES: Final = ("locate",)
# Shell -> a function that prints the names that fit. It reads the tables that the command line names, and is silent
# where there are none. Each name is printed, never evaluated: clients choose ids.
_FUNCTIONS: Final[Mapping[str, str]] = {
    "bash": (
        """
{function}() {{
  local at name tables=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    [[ ${{COMP_WORDS[at]}} != --tables ]] || tables=(--tables "${{COMP_WORDS[at + 1]/#\\~/$HOME}}")
  done
  "${{COMP_WORDS[0]/#\\~/$HOME}}" names {kinds} ${{tables[@]+"${{tables[@]}}"}} 2>/dev/null | while IFS= read -r name; do
    [[ $name != "$1"* ]] || printf '%s\\n' "$name"
  done
}}"""
    ),
    "zsh": (
        """
{function}() {{
  local at=${{words[(i)--tables]}}
  local -a tables found
  (( at < ${{#words}} )) && tables=(--tables "${{words[at + 1]/#\\~/$HOME}}")
  found=(${{(f)"$({program} names {kinds} $tables 2>/dev/null)"}})
  compadd -a found
}}"""
    ),
    "fish": (
        """
function {function}
  set -l typed (commandline -opc)
  set -l at (contains -i -- --tables $typed); and set -l tables --tables $typed[(math $at + 1)]
  {program} names {kinds} $tables 2>/dev/null
end"""
    ),
}


def answer(options: Namespace) -> CommandOutput:
    """The script for one shell. `--format` does not apply, because the script is not a table."""
    whole_parser = parser()
    for command, action in _actions(whole_parser):
        if action.dest == "tables":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.dest in _COMPLETED_BY and command not in _WITHOUT_TABLES:
            kinds = _COMPLETED_BY[action.dest]
            function = f"_txn_audit_{'_'.join(kinds)}"
            functions = {
                shell: text.format(function=function, kinds=" ".join(kinds), program=PROGRAM)
                for shell, text in _FUNCTIONS.items()
            }
            # A function of each shell that looks names up, and its call.
            called = {"bash": function, "zsh": function, "fish": f"({function})", "preamble": functions}
            action.complete = called  # type: ignore[attr-defined]
    script = shtab.complete(whole_parser, shell=options.shell)
    return CommandOutput(
        ("shell", "script"), [{"shell": options.shell, "script": script}], page=lambda _: f"{script.rstrip()}\n"
    )


def _actions(of: ArgumentParser, command: str = "") -> Iterator[tuple[str, Action]]:
    """The options of all commands, each with the name of its command."""
    for action in of._actions:
        yield command, action
        if isinstance(action.choices, dict):
            for name, added in action.choices.items():
                yield from _actions(added, name)
