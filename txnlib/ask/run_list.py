"""The runs in the tables."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.delta_rows import Tables, chosen_runs
from txnlib.ask.rows import Row, in_transactions

RUN: Final = ("run_id", "status", "as_of", "verdicts", "cluster", "started_at", "finished_at", "version", "input")


def listed_runs(tables: Tables, *, run_id: str | None = None, as_of: str | None = None) -> list[Row]:
    """The runs in the tables, newest first. Columns: RUN. Raises UsageError if none has this id or instant."""
    return [{**row, "verdicts": _verdicts(row)} for row in chosen_runs(tables, run_id=run_id, as_of=as_of)]


def _verdicts(row: Row) -> str:
    counts = in_transactions(json.loads(row["counts"] or "{}"))
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def answer_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    rows = listed_runs(tables, run_id=options.run, as_of=options.as_of)
    return CommandOutput(RUN, rows, shown=RUN[:4])
