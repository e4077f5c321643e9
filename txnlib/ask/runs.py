"""The runs in the tables."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.delta_rows import Tables, chosen_runs
from txnlib.ask.rows import transactions_of

RUN: Final = ("run_id", "status", "as_of", "verdicts", "cluster", "started_at", "finished_at", "version", "input")


def answer_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    rows = chosen_runs(tables, run_id=options.run, as_of=options.as_of)
    for row in rows:
        counts = transactions_of(json.loads(row["counts"] or "{}"))
        row["verdicts"] = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return CommandOutput(RUN, rows, shown=RUN[:4])
