"""The runs in the tables, and the names that they hold. The completion scripts ask for these."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterable
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.delta_rows import Tables, chosen_runs, open_run
from txnlib.ask.rows import in_transactions

RUN: Final = ("run_id", "status", "as_of", "verdicts", "cluster", "started_at", "finished_at", "version", "input")
#: A shell would split or expand any other character. Ids come from clients, so a shell is never given one that it could
#: run.
_PLAIN: Final = re.compile(r"[\w.:/@%+=,-]+", re.ASCII)


def answer_runs(tables: Tables, options: Namespace) -> CommandOutput:
    """All runs in the tables, newest first; with `--run` or `--as-of`, only those."""
    rows = chosen_runs(tables, run_id=options.run, as_of=options.as_of)
    for row in rows:
        counts = in_transactions(json.loads(row["counts"] or "{}"))
        row["verdicts"] = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return CommandOutput(RUN, rows, shown=RUN[:4])


def answer_names(tables: Tables, options: Namespace) -> CommandOutput:
    """The names of the asked kinds, sorted, one to a line; a table shows all, and a completion only those that are
    plain words."""
    found = sorted({name for kind in options.kinds for name in _of_kind(tables, kind, options)})
    rows = [{"name": name} for name in found]
    return CommandOutput(
        ("name",), rows, page=lambda _: "".join(f"{name}\n" for name in found if _PLAIN.fullmatch(name))
    )


def _of_kind(tables: Tables, kind: str, options: Namespace) -> Iterable[str]:
    if kind == "runs":
        return (row["run_id"] for row in chosen_runs(tables, run_id=options.run, as_of=options.as_of))
    run = open_run(tables, run_id=options.run, as_of=options.as_of)
    if kind == "topics":
        return (row["topic"] for row in run.rows("coverage", ["topic"]))
    return (row["transactional_id"] for row in run.rows("transactional_ids", ["transactional_id"]))
