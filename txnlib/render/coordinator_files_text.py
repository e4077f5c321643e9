"""The files of coordinator partitions as text: what to copy, and from which broker."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.queries.coordinator_files import CHECKPOINTS, COLUMNS, FILES, coordinator_files
from txnlib.queries.rows import Row
from txnlib.render.command_output import CommandOutput


def coordinator_files_output(rows: Sequence[Row]) -> CommandOutput:
    """One row per transactional id, then what to copy."""
    tail = _what_to_copy(sorted({row["coordinator_partition"] for row in rows}))
    return CommandOutput(COLUMNS, rows, shown=COLUMNS[:3], tail=tail)


def _what_to_copy(partitions: list[int]) -> str:
    folders = ", ".join(f"{TRANSACTION_STATE_TOPIC}-{partition}/" for partition in partitions)
    lines = [
        "",
        f"copy     {' '.join(FILES)} of {folders}",
        f"         and {' '.join(CHECKPOINTS)} from the root of the log directory",
        "from     the leader of the partition, else any broker that has the folder; a broker that is down has it still on its disk",
        f"leader   kafka-topics.sh --bootstrap-server $BOOTSTRAP --describe --topic {TRANSACTION_STATE_TOPIC}",
        "or       scripts/capture.sh --output CAPTURE --log-dirs DIRS --step coordinators     # there: all that it has",
    ]
    return "".join(f"{line}\n" for line in lines)


def locate(options: Namespace) -> CommandOutput:
    """The coordinator partition of each id, its folder, and the files to copy. Raises UsageError if there are no partitions."""
    return coordinator_files_output(coordinator_files(options.transactional_id, options.partitions))
