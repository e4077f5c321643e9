"""How does a shell learn the commands and options? By a script made once from the parser; nothing runs at each Tab."""

from __future__ import annotations

from argparse import Namespace

import shtab

from txnlib.cli.commands import parser
from txnlib.cli.output import Answer


def completion(options: Namespace) -> Answer:
    """The script for one shell, in whatever form was asked for: it is no table."""
    script = shtab.complete(parser(), shell=options.shell)
    return Answer(("shell", "script"), [{"shell": options.shell, "script": script}], page=lambda _: f"{script.rstrip()}\n")
