"""`txn-audit sql`: any question about the tables."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries import sql as questions
from txnlib.queries.delta_rows import Tables
from txnlib.render.command_output import CommandOutput


def sql(tables: Tables, options: Namespace) -> CommandOutput:
    """The rows of the answer. Raises UsageError for a query that DuckDB refuses, or without DuckDB."""
    answer = questions.ask(tables, options.query)
    return CommandOutput(answer.columns, answer.rows)
