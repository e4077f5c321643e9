"""`txn-audit capture`: the logs of a cluster, over the wire."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.own_command import audit_command
from txnlib.core.display import counted
from txnlib.core.instants import parse_instant
from txnlib.errors import UsageError
from txnlib.wire_capture.capture import ALL, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client
from txnlib.wire_capture.client_properties import client_config, read_properties
from txnlib.wire_capture.partition_copy import Progress, Taken

COLUMNS: Final = ("topic", "partition", "leader", "captured", "from_offset", "end_offset", "bytes", "detail")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def answer(options: Namespace) -> CommandOutput:
    """What became of each partition. Exit code 1 if a partition is missing or not whole."""
    if options.since is not None and options.scope != ALL:
        raise UsageError("--since needs --scope all: the scope open fetches from the earliest open transaction on")
    if options.topics is not None:
        try:
            re.compile(options.topics)
        except re.error as error:
            raise UsageError(f"--topics {options.topics}: is not a regular expression: {error}") from error
    properties = {} if options.command_config is None else read_properties(options.command_config)
    wanted = CaptureRequest(
        Path(options.output),
        topics=options.topics,
        scope=options.scope,
        since_ms=None if options.since is None else parse_instant(options.since, "--since", takes_days=True),
        limit_rate=None if options.limit_rate is None else _rate(options.limit_rate),
        cluster=options.cluster,
        is_dry_run=options.dry_run,
    )
    config = client_config(properties, options.command_config or "")
    try:
        with Client(options.bootstrap_server, config) as client:
            captured = take_capture(client, wanted, Progress())
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"stopped. What was fetched stays in {options.output}: call it again to go on"
        ) from error
    problems = [each for each in captured.taken if each.problem is not None]
    exit_code = 1 if problems or captured.is_without_coordinators else 0
    notes = [
        *_remedies(problems),
        (
            _foreseen(captured.taken)
            if options.dry_run
            else f"capture: {options.output}. Audit it: {audit_command(options.output)}"
        ),
    ]
    return CommandOutput(COLUMNS, [_row(each) for each in captured.taken], notes=notes, exit_code=exit_code)


def _remedies(problems: list[Taken]) -> Iterator[str]:
    missing = sum(not each.is_lasting for each in problems)
    if len(problems) > missing:
        yield (
            f"{counted(len(problems) - missing, 'partition')} cannot be captured as things are: the column detail"
            " says why"
        )
    if missing:
        yield f"{counted(missing, 'partition')} not whole: call it again to go on with what is missing"


def _foreseen(taken: list[Taken]) -> str:
    wanted = [each for each in taken if each.problem is None and each.fetched_from is not None]
    offsets = sum((each.end_offset or 0) - (each.fetched_from or 0) for each in wanted)
    brokers = len({each.partition.leader for each in wanted})
    places = f"{counted(len(wanted), 'partition')} from {counted(brokers, 'broker')}"
    return f"dry run: a capture would fetch {counted(offsets, 'offset')} of {places}. Nothing was written"


def _rate(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,9})([KMG]?)", text)
    if match is None:
        raise UsageError(f"--limit-rate {text}: expected a number of bytes, or one with K, M or G")
    return int(match[1]) * _UNITS[match[2]]


def _row(taken: Taken) -> dict[str, object]:
    values = (
        taken.partition.topic,
        taken.partition.partition,
        taken.partition.leader,
        _captured(taken),
        taken.fetched_from,
        taken.end_offset,
        None if taken.captured_at_ms is None else taken.bytes,
        "; ".join(filter(None, (taken.problem, *taken.notes))),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _captured(taken: Taken) -> str:
    if taken.problem is not None:
        return "NO"
    if taken.captured_at_ms is not None:
        return "YES"
    return "NOTHING_OPEN" if taken.fetched_from is None else "PLANNED"
