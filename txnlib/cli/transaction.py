"""`txn-audit transaction`: one transaction on all of its partitions."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries.rows import StoredRun
from txnlib.queries.whole_transaction import whole_transaction
from txnlib.render.command_output import CommandOutput
from txnlib.render.whole_transaction_text import whole_transaction_output


def transaction(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transaction with all its partitions. Raises UsageError if no captured log has it."""
    return whole_transaction_output(whole_transaction(run, options.id, options.number))
