"""The files of the coordinator partition of a transactional id. Needs no tables."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.episode import wrapped
from txnlib.ask.grid import command_lines
from txnlib.ask.rows import Row
from txnlib.core.display import BOOTSTRAP
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.errors import UsageError

#: Files in the folder of a partition. Index files are not read.
FILES: Final = ("*.log", "*.snapshot", "leader-epoch-checkpoint")
#: Files in the root of the log directory.
CHECKPOINTS: Final = ("replication-offset-checkpoint", "log-start-offset-checkpoint")
_wrapped: Final = partial(wrapped, room=9)
COLUMNS: Final = ("transactional_id", "coordinator_partition", "folder", "files")


def coordinator_files(transactional_ids: Iterable[str], partitions: int) -> list[Row]:
    """The coordinator partition of each id, its folder, and the files to copy. Columns: COLUMNS.

    `partitions`: number of partitions of __transaction_state. Raises UsageError if there are none.
    """
    if partitions < 1:
        raise UsageError(f"--partitions {partitions}: expected 1 or more (transaction.state.log.num.partitions)")
    rows = []
    for name in transactional_ids:
        partition = partition_for(name, partitions)
        folder = f"{TRANSACTION_STATE_TOPIC}-{partition}"
        files = [*(f"{folder}/{file}" for file in FILES), *CHECKPOINTS]
        rows.append({"transactional_id": name, "coordinator_partition": partition, "folder": folder, "files": files})
    return rows


# ---- The files of coordinator partitions as text: what to copy, and from which broker


def coordinator_files_output(rows: Sequence[Row]) -> CommandOutput:
    """One row per transactional id, then what to copy."""
    tail = partial(_what_to_copy, sorted({row["coordinator_partition"] for row in rows}))
    return CommandOutput(COLUMNS, rows, shown=COLUMNS[:3], tail=tail)


def _what_to_copy(partitions: list[int], width: int) -> str:
    folders = ", ".join(f"{TRANSACTION_STATE_TOPIC}-{partition}/" for partition in partitions)
    lines = [
        "",
        *_wrapped(
            width,
            "copy",
            f"{' '.join(FILES)} of {folders} and {' '.join(CHECKPOINTS)} from the root of the log directory",
        ),
        *_wrapped(
            width, "from", "the leader of the partition, else any broker that has the folder, on its disk if it is down"
        ),
        *command_lines(
            f"  leader   kafka-topics.sh {BOOTSTRAP} --describe --topic {TRANSACTION_STATE_TOPIC}", width, 11
        ),
        (
            "  or       scripts/capture.sh --output CAPTURE --log-dirs DIRS --step coordinators     # there: all that"
            " it has"
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


def answer(options: Namespace) -> CommandOutput:
    """The coordinator partition of each id, its folder, and the files to copy. Raises UsageError without ids or
    partitions."""
    ids = [*options.ids, *options.transactional_id]
    if not ids:
        raise UsageError("locate needs a transactional id")
    return coordinator_files_output(coordinator_files(ids, options.partitions))
