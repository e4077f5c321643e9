"""`txn-audit locate`: the coordinator partition of a transactional id. Also what to copy to see it."""

from __future__ import annotations

from argparse import Namespace

from txnlib.queries.coordinator_files import coordinator_files
from txnlib.render.command_output import CommandOutput
from txnlib.render.coordinator_files_text import coordinator_files_output


def locate(options: Namespace) -> CommandOutput:
    """The coordinator partition of each id, its folder, and the files to copy. Raises UsageError if there are no partitions."""
    return coordinator_files_output(coordinator_files(options.transactional_id, options.partitions))
