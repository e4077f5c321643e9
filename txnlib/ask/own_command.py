"""Commands of this project, to be pasted in any folder.

A module of its own, for what opens tables and reads words of commands, and must print nothing.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PROGRAM: Final = "txn-audit"
#: The program that audits: of a clone, else of the wheel.
_SCRIPT: Final = Path(__file__).parents[2] / "spark-submit.sh"


def program(name: str = PROGRAM) -> str:
    """What calls a program of this environment from anywhere: its path; its name if it is not installed."""
    beside = Path(sys.executable).absolute().with_name(name)
    return shlex.quote(str(beside)) if beside.exists() else name


def anywhere(path: str) -> str:
    """A path, or the URI of one, that means the same in every folder."""
    return path if ":" in path.partition("/")[0] else str(Path(path).absolute())


def own_command(tables: str, command: str, places: Sequence[str] = (), *, called: str | None = None) -> str:
    """A command of txn-audit about these tables. `called`: what calls it, if not `program`.

    Raises ValueError for a place that cannot be written on a command line (`kafka_commands.refusal`); such tables are
    left out.
    """
    from txnlib.core.kafka_commands import option, refusal, with_places  # takes longer to load than some answers

    root = anywhere(tables)
    options = "" if refusal(root) else option("--tables", root)
    return with_places(f"{called or program()} {command}", places, options)


def audit_command(capture: str) -> str:
    """The command that audits a capture; OUT is to be replaced."""
    audit = f"{shlex.quote(str(_SCRIPT))} audit" if _SCRIPT.exists() else program("txnlib-audit")
    return f"{audit} --input {shlex.quote(anywhere(capture))} --output OUT"
