"""`txn-audit capture`: the logs of a cluster, over the wire."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Final

from txnlib.core.instants import parse_instant
from txnlib.errors import UsageError
from txnlib.render.command_output import CommandOutput
from txnlib.wire_capture.capture import ALL, Wanted, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.client_properties import client_config, read_properties
from txnlib.wire_capture.pace import Progress
from txnlib.wire_capture.taken import Taken

COLUMNS: Final = ("topic", "partition", "leader", "captured", "from_offset", "end_offset", "bytes", "detail")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def capture(options: Namespace) -> CommandOutput:
    """What became of each partition. Exit code 1 if a partition is missing or not whole."""
    if options.since is not None and options.scope != ALL:
        raise UsageError("--since needs --scope all: the scope open fetches from the earliest open transaction on")
    if options.topics is not None:
        try:
            re.compile(options.topics)
        except re.error as error:
            raise UsageError(f"--topics {options.topics}: is not a regular expression: {error}") from error
    properties = {} if options.command_config is None else read_properties(options.command_config)
    wanted = Wanted(
        Path(options.output),
        topics=options.topics,
        scope=options.scope,
        since_ms=None if options.since is None else parse_instant(options.since, "--since"),
        limit_rate=None if options.limit_rate is None else _rate(options.limit_rate),
        cluster=options.cluster,
    )
    config = client_config(properties, options.command_config or "")
    try:
        with Client(options.bootstrap_server, config) as client:
            captured = take_capture(client, wanted, Progress())
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"stopped. What was fetched stays in {options.output}: call it again to go on") from error
    problems = [each for each in captured.taken if each.problem is not None]
    missing = sum(not each.is_lasting for each in problems)
    notes = [f"capture: {options.output}. Audit it: ./spark-submit.sh audit --input {options.output} --output OUT"]
    if missing:
        notes.insert(0, f"{missing} partitions are not whole: call it again to go on with what is missing")
    if len(problems) > missing:
        notes.insert(0, f"{len(problems) - missing} partitions cannot be captured as things are: the column detail says why")
    exit_code = 1 if problems or captured.is_without_coordinators else 0
    return CommandOutput(COLUMNS, [_row(each) for each in captured.taken], notes=notes, exit_code=exit_code)


def _rate(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,9})([KMG]?)", text)
    if match is None:
        raise UsageError(f"--limit-rate {text}: expected a number of bytes, or one with K, M or G")
    return int(match[1]) * _UNITS[match[2]]


def _row(taken: Taken) -> dict[str, object]:
    captured = "NO" if taken.problem is not None else ("YES" if taken.captured_at_ms is not None else "NOTHING_OPEN")
    values = (
        taken.partition.topic,
        taken.partition.partition,
        taken.partition.leader,
        captured,
        taken.fetched_from,
        taken.end_offset,
        taken.bytes,
        "; ".join(filter(None, (taken.problem, *taken.notes))),
    )
    return dict(zip(COLUMNS, values, strict=True))
