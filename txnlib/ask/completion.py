"""Shell completion: a script made from the parser."""

from __future__ import annotations

from argparse import Namespace

import shtab

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.commands import parser


def answer(options: Namespace) -> CommandOutput:
    """The script for one shell. `--format` does not apply, because the script is not a table."""
    whole = parser()
    (commands,) = (action.choices for action in whole._actions if isinstance(action.choices, dict))
    for action in (action for command in commands.values() for action in command._actions if action.dest == "tables"):
        action.complete = shtab.DIRECTORY
    script = shtab.complete(whole, shell=options.shell)
    return CommandOutput(
        ("shell", "script"), [{"shell": options.shell, "script": script}], page=lambda _: f"{script.rstrip()}\n"
    )
