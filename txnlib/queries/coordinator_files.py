"""The files of the coordinator partition of a transactional id. Needs no tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.errors import UsageError
from txnlib.queries.rows import Row

#: Files in the folder of a partition. Index files are not read.
FILES: Final = ("*.log", "*.snapshot", "leader-epoch-checkpoint")
#: Files in the root of the log directory.
CHECKPOINTS: Final = ("replication-offset-checkpoint", "log-start-offset-checkpoint")
COLUMNS: Final = ("transactional_id", "coordinator_partition", "folder", "files")


def coordinator_files(transactional_ids: Iterable[str], partitions: int) -> list[Row]:
    """The coordinator partition of each id, its folder, and the files to copy. Columns: COLUMNS.

    `partitions`: number of partitions of __transaction_state. Raises UsageError if there are none.
    """
    if partitions < 1:
        raise UsageError(f"--partitions {partitions}: expected 1 or more (transaction.state.log.num.partitions)")
    return [_row(name, partition_for(name, partitions)) for name in transactional_ids]


def _row(transactional_id: str, partition: int) -> Row:
    folder = f"{TRANSACTION_STATE_TOPIC}-{partition}"
    files = [*(f"{folder}/{file}" for file in FILES), *CHECKPOINTS]
    return {"transactional_id": transactional_id, "coordinator_partition": partition, "folder": folder, "files": files}
