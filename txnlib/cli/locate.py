"""`txn-audit locate`: the coordinator partition of a transactional id. It also says what to copy to see it."""

from __future__ import annotations

from argparse import Namespace

from txnlib.cli.output import Answer
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.errors import UsageError

#: Files in the folder of a partition. Index files are not read.
FILES = ("*.log", "*.snapshot", "leader-epoch-checkpoint")
#: Files in the root of the log directory.
CHECKPOINTS = ("replication-offset-checkpoint", "log-start-offset-checkpoint")


def locate(options: Namespace) -> Answer:
    """The coordinator partition of each id, its folder, and the files to copy. Raises UsageError if there are no partitions."""
    if options.partitions < 1:
        raise UsageError(f"--partitions {options.partitions}: expected 1 or more (transaction.state.log.num.partitions)")
    rows = []
    for name in options.transactional_id:
        partition = partition_for(name, options.partitions)
        folder = f"{TRANSACTION_STATE_TOPIC}-{partition}"
        files = [f"{folder}/{file}" for file in FILES]
        rows.append(
            {"transactional_id": name, "coordinator_partition": partition, "folder": folder, "files": [*files, *CHECKPOINTS]}
        )
    columns = ("transactional_id", "coordinator_partition", "folder", "files")
    return Answer(columns, rows, shown=columns[:3], tail=_what_to_copy(sorted({row["coordinator_partition"] for row in rows})))


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
