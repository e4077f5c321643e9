"""`txn-audit`: queries over the tables of an audit, without a JVM.

Exit codes: 0 answered; 1 failed; 2 bad usage, or no tables that can be read.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from txnlib.cli.commands import COMMANDS, PROGRAM, Reads, parser
from txnlib.errors import TxnlibError
from txnlib.report.text import printable

if TYPE_CHECKING:
    from txnlib.cli.output import Answer


def answer_of(command: str) -> Callable[..., Answer]:
    """The function that answers a command; its module, and what that needs, is imported only now."""
    module, _, function = COMMANDS[command].answer.partition(":")
    found: Callable[..., Answer] = getattr(import_module(f"txnlib.cli.{module}"), function)
    return found


def answer_to(options: Namespace) -> Answer:
    """The answer to a command line that was parsed. Raises TxnlibError."""
    return answer_of(options.command)(*_handed(COMMANDS[options.command].reads, options), options)


def _handed(reads: Reads, options: Namespace) -> tuple[Any, ...]:
    if reads is Reads.NOTHING:
        return ()
    from txnlib.answers.tables import open_run, open_tables  # a tenth of a second, which the others need not wait for

    tables = open_tables(options.tables)
    return (tables,) if reads is Reads.TABLES else (open_run(tables, run_id=options.run, as_of=options.as_of),)


def main(argv: Sequence[str] | None = None) -> int:
    """Answers one command. Returns the exit code; what goes wrong is said on stderr."""
    try:
        options = parser().parse_args(argv)
        answer = answer_to(options)
        text = answer.text(options.format, is_terminal=sys.stdout.isatty())
    except SystemExit as asked:  # argparse, after --help or bad usage
        return int(asked.code or 0)
    except TxnlibError as error:
        return _say(str(error), 2)
    except Exception as error:  # the last line of defence: a failure must say so and exit with 1
        return _say(f"failed: {type(error).__name__}: {error}", 1)
    for note in answer.notes:
        _say(note, 0)
    return _print(text)


def _print(text: str) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # ids may hold what the terminal's encoding does not
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {printable(text)}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
