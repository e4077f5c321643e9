"""Shell completion: a script made from the parser, so that nothing runs at each Tab."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator

import shtab

from txnlib.cli.commands import parser
from txnlib.render.command_output import CommandOutput


def completion(options: Namespace) -> CommandOutput:
    """The script for one shell. `--format` does not apply, because the script is not a table."""
    whole_parser = parser()
    for action in _actions(whole_parser):
        if action.dest == "tables":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    script = shtab.complete(whole_parser, shell=options.shell)
    return CommandOutput(("shell", "script"), [{"shell": options.shell, "script": script}], page=lambda _: f"{script.rstrip()}\n")


def _actions(of: ArgumentParser) -> Iterator[Action]:
    """The options of all commands."""
    for action in of._actions:
        yield action
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                yield from _actions(command)
