"""The commands of `txn-audit` with their options, as a table. Implementations are imported when used."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from txnlib.ask.command_output import KAFKA, SCRIPT


class Reads(Enum):
    """What a command is given in addition to its options."""

    NOTHING = "no tables"
    TABLES = "the tables of all runs"
    RUN = "one run"


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its help text, and the function that answers it, as `module:function` of `txnlib`."""

    about: str
    answer: str
    reads: Reads = Reads.RUN
    options: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    #: What follows the name of the command in an example.
    example: str = ""
    #: Forms of output in addition to those of every command.
    forms: tuple[str, ...] = ()
    #: Options that every other command takes, and this one does not.
    without: tuple[str, ...] = ()


#: Headings of `--help`, in their order -> commands.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Look": ("report", "open", "find-late", "findings", "groups", "sql"),
    "Explain": ("explain", "transaction", "timeline"),
    "Act": ("abort-plan", "collect-plan", "locate", "capture"),
    "Check": ("coverage", "runs", "diff"),
    "As kafka-transactions.sh": ("list", "describe", "describe-producers", "find-hanging"),
    "In a shell": ("completion",),
}


def _constant(given: str) -> str:
    """The name of a verdict, an action, a severity or a finding, in any case."""
    return re.sub("[ -]", "_", given.upper())


def _at_least_one(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise ArgumentTypeError(f"{given}: expected a whole number from 1 on")
    return int(given)


_ONLY_TOPIC: Final = {"metavar": "TOPIC", "help": "Only this topic"}
#: Options that choose some rows of a table.
_SOME: Final[Mapping[str, dict[str, Any]]] = {
    "--topic": _ONLY_TOPIC,
    "--limit": {"type": _at_least_one, "metavar": "N", "help": "Only the first N"},
}
# The names of Verdict (and `words.LOOKS_LATE`), Action and Severity. Their modules take long to load.
_VERDICTS: Final = ("HANGING", "SUSPECT", "STUCK", "LATE", "OPEN", "UNKNOWN", "LOOKS_LATE")
_ACTIONS: Final = (
    "ABORT",
    "ABORT_AS_DECIDED",
    "RESTORE_REPLICAS",
    "END_AT_COORDINATOR",
    "REVIVE_COORDINATOR",
    "ABORT_LATER",
    "WAIT",
    "CAPTURE_MORE",
    "DO_NOT_ABORT",
    "CHECK_TIMESTAMPS",
)
_SEVERITIES: Final = ("INFO", "WARNING", "ERROR", "CRITICAL")
_OF_VERDICT: Final = "Only transactions with this verdict; LOOKS_LATE: LATE only by old timestamps of their clients"
_ONLY_VERDICT: Final = {"type": _constant, "choices": _VERDICTS, "help": _OF_VERDICT}
#: A partition as answers print it, instead of --topic and --partition.
_PARTITION: Final = {
    "nargs": "*",
    "metavar": "PARTITION",
    "help": "payments-0, payments-0@24 or payments 0: this partition",
}

COMMANDS: Final[Mapping[str, Command]] = {
    "report": Command(
        "Print the report of an audit: what is wrong, why, and what to do",
        "page.report_command:answer",
        options={
            "--topic": {"metavar": "TOPIC", "help": "Only what is open on this topic, what holds it, and what to do"},
            "--html": {"metavar": "FILE", "help": "Also write the report as an HTML page"},
            "--acknowledged": {"metavar": "FILE.toml", "help": "What is known, which moves down in the report"},
        },
        example="--html report.html",
        without=("--wide",),
    ),
    "open": Command(
        "List the open transactions with their verdicts, those that hold a partition first",
        "ask.overviews:answer_open",
        options={"--verdict": _ONLY_VERDICT, **_SOME},
        example="--verdict HANGING",
    ),
    "find-late": Command(
        "List late transactions: their coordinator still expects them, but they should have ended by now",
        "ask.overviews:answer_find_late",
    ),
    "findings": Command(
        "List what is odd in the logs, the most severe first",
        "ask.overviews:answer_findings",
        options={
            "--severity": {
                "type": _constant,
                "choices": _SEVERITIES,
                "help": "Only of this severity or a higher one (default: WARNING; INFO is all)",
            },
            "--name": {
                "type": _constant,
                "metavar": "NAME",
                "help": "Only findings of this name, such as MARKER_MISSING",
            },
            **_SOME,
        },
        example="--severity ERROR",
    ),
    "groups": Command(
        "List the consumer groups that wait for a transaction to end, those that lag most first",
        "ask.overviews:answer_groups",
        options={"--topic": _ONLY_TOPIC},
        example="--topic payments",
    ),
    "sql": Command(
        "Answer a question in SQL about the tables and views, of all runs. Needs DuckDB: pip install 'txnlib[sql]'",
        "ask.sql:answer",
        Reads.TABLES,
        {
            "query": {"metavar": "QUERY", "help": "A query; docs/tables.md describes tables and views"},
            "--limit": {"type": _at_least_one, "metavar": "N", "help": "Only the first N rows (default: 10000)"},
        },
        '"SELECT topic, partition, verdict FROM latest_open_transactions"',
        without=("--run", "--as-of"),
    ),
    "explain": Command(
        "Explain one open transaction: its records on the partition and at its coordinator, and the verdict",
        "ask.explain_command:answer",
        options={
            "where": {
                "nargs": "+",
                "metavar": "PLACE|TOPIC|ID",
                "help": "payments-0@24, payments 0 24: the transaction that begins there; payments-0: the first there;"
                " payments: what holds each partition of the topic; or a transactional id, or a producer id",
            },
        },
        example="payments-0@24",
    ),
    "transaction": Command(
        "Show one transaction on all of its partitions, with its coordinator's records: what is marked, split, missing"
        " or in doubt",
        "ask.transaction_text:answer",
        options={
            "where": {
                "nargs": "+",
                "metavar": "ID|PLACE",
                "help": (
                    "A transactional id, or a producer id; payments-0@24 or payments 0 24: the transaction that begins"
                    " there; payments-0: the first one open there"
                ),
            },
            "--number": {"type": int, "metavar": "N", "help": "Transaction N of the id (default: the newest)"},
        },
        example="payments-batch-7",
    ),
    "timeline": Command(
        "Show the history of a partition or of a transactional id, in chronological order",
        "ask.story_text:answer_timeline",
        options={
            "where": {
                "nargs": "+",
                "metavar": "PARTITION|ID",
                "help": "payments-0 or payments 0; or a transactional id, or a producer id",
            },
            "--last": {
                "type": int,
                "default": 10,
                "metavar": "N",
                "help": "Show the newest N ended transactions (default: 10)",
            },
        },
        example="payments-0 --last 5",
    ),
    "abort-plan": Command(
        "List what to do about each open transaction, in order, with the checks before and after",
        "ask.abort_plan_text:answer",
        options={
            "--action": {"type": _constant, "choices": _ACTIONS, "help": "Only steps of this action"},
            "--verdict": _ONLY_VERDICT,
            **_SOME,
        },
        example="--action ABORT --format sh",
        forms=(SCRIPT,),
    ),
    "collect-plan": Command("List what else to copy, from which broker, and why", "ask.collect_plan:answer"),
    "locate": Command(
        "Find the partition of __transaction_state of a transactional id, and what to copy",
        "ask.collect_plan:locate",
        Reads.NOTHING,
        {
            "ids": {"nargs": "*", "metavar": "ID", "help": "The transactional ids"},
            "--transactional-id": {
                "action": "append",
                "default": [],
                "metavar": "ID",
                "help": "The same, can be repeated",
            },
            "--tables": {"metavar": "PATH", "help": "The --output of an audit that knows the number of partitions"},
            "--partitions": {
                "type": int,
                "metavar": "N",
                "help": "Number of partitions of __transaction_state (default: as an audit found it, else 50)",
            },
        },
        "payments-batch-7 --partitions 5",
    ),
    "capture": Command(
        "Capture the logs of a cluster over the wire, by requests that only read, for an audit",
        "ask.capture_command:answer",
        Reads.NOTHING,
        {
            "--bootstrap-server": {
                "required": True,
                "metavar": "LIST",
                "help": "Brokers to connect to, as host:port,host:port",
            },
            "--command-config": {"metavar": "FILE", "help": "Client properties, as Kafka's own tools read them"},
            "--output": {
                "required": True,
                "metavar": "CAPTURE",
                "help": "Folder for the capture. If it has part of one, that capture is continued",
            },
            "--topics": {"metavar": "REGEX", "help": "Only topics whose whole name matches, and coordinators"},
            "--scope": {
                "choices": ("open", "all"),
                "default": "open",
                "help": (
                    "open: of each partition with an open transaction, what follows its start, and some before it; all:"
                    " whole logs (default: open)"
                ),
            },
            "--since": {
                "metavar": "INSTANT",
                "help": "With --scope all, only records from then on: ISO-8601 or epoch ms",
            },
            "--limit-rate": {"metavar": "N[K|M|G]", "help": "Fetch at most this many bytes per second"},
            "--cluster": {"metavar": "NAME", "help": "Name of the cluster (default: its id)"},
            "--dry-run": {
                "action": "store_true",
                "help": "Only say what would be fetched, how much, and what this user lacks; write nothing",
            },
        },
        "--bootstrap-server broker:9092 --output /backup/capture",
    ),
    "coverage": Command(
        "Show what was captured of each partition, and which copy is judged", "ask.overviews:answer_coverage"
    ),
    "runs": Command("List all runs in the tables, newest first", "ask.main:answer_runs", Reads.TABLES),
    "diff": Command(
        "Compare two runs of a cluster: new, ended and re-judged transactions",
        "ask.diff:answer",
        Reads.TABLES,
        {
            "runs": {
                "nargs": "*",
                "metavar": "RUN",
                "help": "Two runs, the earlier first (default: the newest run and the one before it)",
            },
        },
        example="2026-11-20T02:00:00Z 2026-11-21T02:00:00Z",
    ),
    "list": Command(
        "List every transactional id that has not expired",
        "ask.kafka_transactions:answer_list",
        options={
            "--duration-filter": {
                "type": int,
                "metavar": "MS",
                "help": "Only transactions running for longer than MS at that instant; a negative value shows all",
            },
            "--transactional-id-pattern": {
                "metavar": "RE",
                "help": "Only ids that match this RE2 expression as a whole",
            },
        },
        example="--transactional-id-pattern 'payments-.*'",
        forms=(KAFKA,),
    ),
    "describe": Command(
        "Describe one transactional id",
        "ask.kafka_transactions:answer_describe",
        options={
            "id": {"nargs": "?", "metavar": "ID", "help": "The transactional id"},
            "--transactional-id": {"metavar": "ID", "help": "The same, as kafka-transactions.sh takes it"},
        },
        example="payments-batch-7",
        forms=(KAFKA,),
        without=("--wide",),
    ),
    "describe-producers": Command(
        "Describe the producers of a partition",
        "ask.kafka_transactions:answer_describe_producers",
        options={
            "where": _PARTITION,
            "--topic": {"help": "Topic of the partition"},
            "--partition": {"type": int, "help": "Number of the partition"},
        },
        example="payments-0",
        forms=(KAFKA,),
    ),
    "find-hanging": Command(
        "Print what kafka-transactions.sh find-hanging would have printed at the instant of the run, of one broker or"
        " of all",
        "ask.kafka_transactions:answer_find_hanging",
        options={
            "where": _PARTITION,
            "--topic": {"help": "Topic to search"},
            "--partition": {"type": int, "help": "Search only this partition of the topic"},
            "--broker-id": {
                "type": int,
                "metavar": "B",
                "help": "Search the partitions of which this broker's copy was captured",
            },
            "--max-transaction-timeout": {
                "type": int,
                "metavar": "MINUTES",
                "help": (
                    "Leave out transactions written to in the last MINUTES minutes (default: the setting of the audit)"
                ),
            },
        },
        example="--topic payments",
        forms=(KAFKA,),
    ),
    "completion": Command(
        "Print a shell completion script for commands and options. Needs no tables",
        "ask.main:answer_completion",
        Reads.NOTHING,
        {"shell": {"choices": ("bash", "zsh", "fish"), "help": "Name of the shell"}},
        "bash",
        without=("--format", "--wide"),
    ),
}
