"""The commands of `txn-audit` with their options, as a table. Implementations are imported when used."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from txnlib.render.command_output import FORMS
from txnlib.render.grid import TABLE
from txnlib.version import __version__

PROGRAM: Final = "txn-audit"
_ABOUT: Final = "Query the Delta tables of an audit. Needs no JVM and no cluster."
EXIT_CODES: Final = "Exit codes: 0 answered; 1 failed; 2 bad usage, or no readable tables."


class Reads(Enum):
    """What a command is given in addition to its options."""

    NOTHING = "no tables"
    TABLES = "the tables of all runs"
    RUN = "one run"


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its help text, and the function that answers it, as `module:function` of `txnlib.cli`."""

    about: str
    answer: str
    reads: Reads = Reads.RUN
    options: Mapping[str, dict[str, Any]] = field(default_factory=dict)


_TOPIC: Final = {"required": True, "help": "Topic of the partition"}
_PARTITION: Final = {"required": True, "type": int, "help": "Number of the partition"}

COMMANDS: Final[Mapping[str, Command]] = {
    "report": Command(
        "Print the report of an audit: what is wrong, why, and what to do",
        "report:report",
        options={"--html": {"metavar": "FILE", "help": "Also write the report as an HTML page"}},
    ),
    "explain": Command(
        "Explain one open transaction: its records on the partition and at its coordinator, and the verdict",
        "explain:explain",
        options={
            "topic": {"help": "Topic of the partition"},
            "partition": {"type": int, "help": "Number of the partition"},
            "start_offset": {"type": int, "help": "First offset of the open transaction"},
        },
    ),
    "timeline": Command(
        "Show the history of a partition or of a transactional id, in chronological order",
        "timeline:timeline",
        options={
            "where": {
                "nargs": "+",
                "metavar": "TOPIC PARTITION | TRANSACTIONAL_ID",
                "help": "A topic and a partition number, or one transactional id",
            },
            "--last": {"type": int, "default": 10, "metavar": "N", "help": "Show the newest N ended transactions (default: 10)"},
        },
    ),
    "diff": Command(
        "Compare two runs of a cluster: new, ended and re-judged transactions",
        "diff:diff",
        Reads.TABLES,
        {
            "runs": {
                "nargs": "*",
                "metavar": "RUN",
                "help": "Two runs, the earlier first (default: the newest run and the one before it)",
            },
        },
    ),
    "list": Command(
        "List every transactional id that has not expired",
        "kafka_transactions:list_transactions",
        options={
            "--duration-filter": {
                "type": int,
                "metavar": "MS",
                "help": "Only transactions running for longer than MS at the instant of the run; a negative value shows all",
            },
            "--transactional-id-pattern": {
                "metavar": "RE",
                "help": "Only ids that match this RE2 expression as a whole",
            },
        },
    ),
    "describe": Command(
        "Describe one transactional id",
        "kafka_transactions:describe",
        options={"--transactional-id": {"required": True, "metavar": "ID", "help": "The transactional id"}},
    ),
    "describe-producers": Command(
        "Describe the producers of a partition",
        "kafka_transactions:describe_producers",
        options={"--topic": _TOPIC, "--partition": _PARTITION},
    ),
    "find-hanging": Command(
        "Print what kafka-transactions.sh find-hanging would have printed at the instant of the run",
        "kafka_transactions:find_hanging_transactions",
        options={
            "--topic": {"help": "Topic to search"},
            "--partition": {"type": int, "help": "Search only this partition of the topic"},
            "--broker-id": {"type": int, "metavar": "B", "help": "Search the partitions of which this broker's copy was captured"},
            "--max-transaction-timeout": {
                "type": int,
                "metavar": "MINUTES",
                "help": "Leave out transactions written to in the last MINUTES minutes (default: the setting of the audit)",
            },
        },
    ),
    "find-late": Command(
        "List late transactions: their coordinator still expects them, but they should have ended by now", "overviews:find_late"
    ),
    "abort-plan": Command(
        "List what to do about each open transaction, in order, with the checks before and after", "abort_plan:abort_plan"
    ),
    "coverage": Command("Show what was captured of each partition, and which copy is judged", "overviews:coverage"),
    "collect-plan": Command("List what else to copy, from which broker, and why", "collect_plan:collect_plan"),
    "runs": Command("List all runs in the tables, newest first", "overviews:list_runs", Reads.TABLES),
    "locate": Command(
        "Find the partition of __transaction_state of a transactional id, and what to copy. Needs no tables",
        "locate:locate",
        Reads.NOTHING,
        {
            "--transactional-id": {
                "required": True,
                "action": "append",
                "metavar": "ID",
                "help": "The transactional id. Can be given more than once",
            },
            "--partitions": {
                "type": int,
                "default": 50,
                "metavar": "N",
                "help": "Number of partitions of __transaction_state: transaction.state.log.num.partitions (default: 50)",
            },
        },
    ),
    "completion": Command(
        "Print a shell completion script for commands and options. Needs no tables",
        "completion:completion",
        Reads.NOTHING,
        {"shell": {"choices": ("bash", "zsh", "fish"), "help": "Name of the shell"}},
    ),
}


def parser() -> ArgumentParser:
    """The parser of all commands. Every command that reads tables takes `--tables`, `--run` and `--as-of`."""
    whole = ArgumentParser(prog=PROGRAM, description=_ABOUT, epilog=EXIT_CODES)
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    shared = {reads: [_shared(reads)] for reads in Reads}
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name,
            parents=shared[command.reads],
            help=command.about,
            description=f"{command.about}.",
            epilog=EXIT_CODES,
            allow_abbrev=False,
        )
        for option, how in command.options.items():
            added.add_argument(option, **how)
    return whole


def _shared(reads: Reads) -> ArgumentParser:
    shared = ArgumentParser(add_help=False)
    shared.add_argument(
        "--format",
        choices=FORMS,
        default=TABLE,
        help="Output format; kafka is exactly what kafka-transactions.sh prints (default: table)",
    )
    if reads is not Reads.NOTHING:
        shared.add_argument(
            "--tables", default="out", metavar="PATH", help="The --output of the audit, a folder or a URI (default: out)"
        )
        shared.add_argument("--run", metavar="RUN_ID", help="Run to read (default: the newest)")
        shared.add_argument("--as-of", metavar="INSTANT", help="Read the run of this instant: ISO-8601 or epoch ms")
    return shared
