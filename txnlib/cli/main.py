"""`txn-audit`: what does an audit say? Reads its Delta tables, without a JVM, and prints the part that was asked for.

Exit codes: 0 answered; 1 failed; 2 bad usage, or no tables that can be read.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from txnlib.cli import abort_plan, explain, overviews, transactions
from txnlib.cli.output import KAFKA, Answer
from txnlib.cli.tables import Run, open_run, open_tables
from txnlib.errors import TxnlibError
from txnlib.report.grid import CSV, JSON, TABLE
from txnlib.report.text import printable

#: command -> what answers it, and its options.
COMMANDS: Final[Mapping[str, tuple[Callable[[Run, Namespace], Answer], Mapping[str, dict[str, Any]]]]] = {
    "explain": (
        explain.explain,
        {
            "topic": {"help": "topic of the partition"},
            "partition": {"type": int, "help": "its number"},
            "start_offset": {"type": int, "help": "first offset of the open transaction"},
        },
    ),
    "list": (transactions.list_transactions, {}),
    "describe": (
        transactions.describe,
        {"--transactional-id": {"required": True, "metavar": "ID", "help": "the transactional id"}},
    ),
    "describe-producers": (
        transactions.describe_producers,
        {
            "--topic": {"required": True, "help": "topic of the partition"},
            "--partition": {"required": True, "type": int, "help": "its number"},
        },
    ),
    "find-hanging": (
        transactions.find_hanging_transactions,
        {
            "--topic": {"help": "topic to search"},
            "--partition": {"type": int, "help": "one partition of it"},
            "--broker-id": {"type": int, "metavar": "B", "help": "search the partitions of which there is a copy of this broker"},
            "--max-transaction-timeout": {
                "type": int,
                "metavar": "MINUTES",
                "help": "leave out what was written to in the last MINUTES (default: as in the audit)",
            },
        },
    ),
    "find-late": (overviews.find_late, {}),
    "abort-plan": (abort_plan.abort_plan, {}),
    "coverage": (overviews.coverage, {}),
}
RUNS: Final = "runs"


def parser() -> ArgumentParser:
    shared = ArgumentParser(add_help=False)
    shared.add_argument("--tables", default="out", metavar="PATH", help="the audit's --output, a folder or a URI (default: out)")
    shared.add_argument("--run", metavar="RUN_ID", help="the run to read (default: the newest)")
    shared.add_argument("--as-of", metavar="INSTANT", help="the run of that instant: ISO-8601 or epoch ms")
    forms = (TABLE, JSON, CSV, KAFKA)
    shared.add_argument("--format", choices=forms, default=TABLE, help="kafka: exactly as kafka-transactions.sh prints it")
    whole = ArgumentParser(
        prog="txn-audit", description=(__doc__ or "").partition("\n")[0], epilog=(__doc__ or "").split("\n\n")[-1]
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (answer, options) in COMMANDS.items():
        about = (answer.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, parents=[shared], help=about, description=about, allow_abbrev=False)
        for option, how in options.items():
            command.add_argument(option, **how)
    commands.add_parser(RUNS, parents=[shared], help=overviews.list_runs.__doc__, allow_abbrev=False)
    return whole


def answer_to(options: Namespace) -> Answer:
    tables = open_tables(options.tables)
    if options.command == RUNS:
        return overviews.list_runs(tables)
    run = open_run(tables, run_id=options.run, as_of=options.as_of)
    return COMMANDS[options.command][0](run, options)


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
    sys.stderr.write(f"txn-audit: {printable(text)}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
