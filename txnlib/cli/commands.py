"""The commands of `txn-audit` with their options, as a table. Implementations are imported when used."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from txnlib import __version__
from txnlib.cli.output import FORMS
from txnlib.report.grid import TABLE

PROGRAM: Final = "txn-audit"
_ABOUT: Final = "What does an audit say? Reads its Delta tables, without a JVM, and prints the part that was asked for."
EXIT_CODES: Final = "Exit codes: 0 answered; 1 failed; 2 bad usage, or no tables that can be read."


class Reads(Enum):
    """What a command is handed besides its options."""

    NOTHING = "no tables"
    TABLES = "the tables of all runs"
    RUN = "one run"


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it answers, and the function that does, as `module:function` of `txnlib.cli`."""

    about: str
    answer: str
    reads: Reads = Reads.RUN
    options: Mapping[str, dict[str, Any]] = field(default_factory=dict)


_TOPIC: Final = {"required": True, "help": "topic of the partition"}
_PARTITION: Final = {"required": True, "type": int, "help": "its number"}

COMMANDS: Final[Mapping[str, Command]] = {
    "report": Command(
        "the report of an audit again: what is wrong, why, and what to do",
        "report:report",
        options={"--html": {"metavar": "FILE", "help": "write it as a page, too"}},
    ),
    "explain": Command(
        "the story of one open transaction from both sides, and the verdict on it",
        "explain:explain",
        options={
            "topic": {"help": "topic of the partition"},
            "partition": {"type": int, "help": "its number"},
            "start_offset": {"type": int, "help": "first offset of the open transaction"},
        },
    ),
    "timeline": Command(
        "what happened on a partition, or to a transactional id, in the order of time",
        "timeline:timeline",
        options={
            "where": {
                "nargs": "+",
                "metavar": "TOPIC PARTITION | TRANSACTIONAL_ID",
                "help": "a topic and the number of a partition, or one transactional id",
            },
            "--last": {"type": int, "default": 10, "metavar": "N", "help": "ended transactions to show, the newest (default: 10)"},
        },
    ),
    "diff": Command(
        "what is new, what ended and what is judged otherwise between two runs of a cluster",
        "diff:diff",
        Reads.TABLES,
        {
            "runs": {
                "nargs": "*",
                "metavar": "RUN",
                "help": "two runs, the earlier first (default: the newest and the one before it)",
            },
        },
    ),
    "list": Command(
        "every transactional id that has not expired",
        "transactions:list_transactions",
        options={
            "--duration-filter": {
                "type": int,
                "metavar": "MS",
                "help": "only what has been running for longer, at the run's instant; below 0: all",
            },
            "--transactional-id-pattern": {
                "metavar": "RE",
                "help": "only ids that an RE2 expression matches as a whole",
            },
        },
    ),
    "describe": Command(
        "one transactional id",
        "transactions:describe",
        options={"--transactional-id": {"required": True, "metavar": "ID", "help": "the transactional id"}},
    ),
    "describe-producers": Command(
        "what a partition knows of its producers",
        "transactions:describe_producers",
        options={"--topic": _TOPIC, "--partition": _PARTITION},
    ),
    "find-hanging": Command(
        "what the live find-hanging prints, at the run's instant",
        "transactions:find_hanging_transactions",
        options={
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
    "find-late": Command(
        "transactions that have outlived their time, though their coordinator expects them", "overviews:find_late"
    ),
    "abort-plan": Command("what to do about each open transaction, in order, with what to look at", "abort_plan:abort_plan"),
    "coverage": Command("what was captured of each partition, and which copy is judged", "overviews:coverage"),
    "collect-plan": Command("what else to copy, from which broker, and why", "collect_plan:collect_plan"),
    "runs": Command("every run under the folder, newest first", "overviews:list_runs", Reads.TABLES),
    "locate": Command(
        "which partition of __transaction_state holds an id, and what to copy; needs no tables",
        "locate:locate",
        Reads.NOTHING,
        {
            "--transactional-id": {
                "required": True,
                "action": "append",
                "metavar": "ID",
                "help": "the transactional id; may be given again",
            },
            "--partitions": {
                "type": int,
                "default": 50,
                "metavar": "N",
                "help": "partitions of __transaction_state: transaction.state.log.num.partitions (default: 50)",
            },
        },
    ),
    "completion": Command(
        "a script that completes commands and options in a shell; needs no tables",
        "completion:completion",
        Reads.NOTHING,
        {"shell": {"choices": ("bash", "zsh", "fish"), "help": "the shell"}},
    ),
}


def parser() -> ArgumentParser:
    """The parser of all commands; every command that reads tables has `--tables`, `--run` and `--as-of`."""
    whole = ArgumentParser(prog=PROGRAM, description=_ABOUT, epilog=EXIT_CODES)
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    shared = {reads: [_shared(reads)] for reads in Reads}
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        sentence = f"{command.about[0].upper()}{command.about[1:]}."
        added = commands.add_parser(
            name, parents=shared[command.reads], help=command.about, description=sentence, epilog=EXIT_CODES, allow_abbrev=False
        )
        for option, how in command.options.items():
            added.add_argument(option, **how)
    return whole


def _shared(reads: Reads) -> ArgumentParser:
    shared = ArgumentParser(add_help=False)
    shared.add_argument(
        "--format", choices=FORMS, default=TABLE, help="kafka: exactly as kafka-transactions.sh prints it (default: table)"
    )
    if reads is not Reads.NOTHING:
        shared.add_argument(
            "--tables", default="out", metavar="PATH", help="the audit's --output, a folder or a URI (default: out)"
        )
        shared.add_argument("--run", metavar="RUN_ID", help="the run to read (default: the newest)")
        shared.add_argument("--as-of", metavar="INSTANT", help="the run of that instant: ISO-8601 or epoch ms")
    return shared
