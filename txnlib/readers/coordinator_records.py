"""What do the records of one coordinator batch say, and what in them could not be understood?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from txnlib.core.record_batch import HEADER
from txnlib.core.sentinels import NO_PARTITION_LEADER_EPOCH, TRANSACTION_STATE_TOPIC
from txnlib.core.transaction_log import (
    TransactionLogEntry,
    UnknownVersionError,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.wire import CorruptRecordError
from txnlib.readers import columns
from txnlib.readers.records import read_batch_records


@dataclass(frozen=True, slots=True)
class CoordinatorEntry:
    """One record of `__transaction_state`; `entry` is None for a tombstone."""

    offset: int
    timestamp: int
    transactional_id: str
    entry: TransactionLogEntry | None


@dataclass(slots=True)
class Entries:
    """What one batch holds: entries, and one reason for each record that holds none."""

    entries: list[CoordinatorEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_entries(batch: bytes) -> Entries:
    """The entries of one whole batch of `__transaction_state`.

    A record whose key is of another version is skipped, as by Kafka's loader; one whose value is of another version, or
    broken, is named in `problems`: Kafka stops loading there, and nothing may be guessed of it.
    """
    found = Entries()
    try:
        records = read_batch_records(batch)
    except CorruptRecordError as error:
        found.problems.append(f"UNDECODABLE_RECORDS: {error.problem}")
        return found
    for record in records:
        if record.key is None:
            found.problems.append(f"NULL_KEY: record {record.offset} has no key")
            continue
        try:
            transactional_id = read_transaction_log_key(record.key)
        except UnknownVersionError as error:
            found.problems.append(f"UNKNOWN_KEY_VERSION: version {error.version} at offset {record.offset}")
            continue
        except CorruptRecordError as error:
            found.problems.append(f"UNDECODABLE_KEY: offset {record.offset}, {error.problem}")
            continue
        try:
            entry = None if record.value is None else read_transaction_log_value(transactional_id, record.value)
        except UnknownVersionError as error:
            found.problems.append(f"UNKNOWN_VALUE_VERSION: version {error.version} at offset {record.offset}")
            continue
        except CorruptRecordError as error:
            found.problems.append(f"UNDECODABLE_VALUE: offset {record.offset}, {error.problem}")
            continue
        found.entries.append(CoordinatorEntry(record.offset, record.timestamp, transactional_id, entry))
    return found


def _present(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def entry_row(entry: TransactionLogEntry | None) -> dict[str, Any]:
    """The columns of `transaction_log` that come from the value; a tombstone has none."""
    if entry is None:
        return {"is_tombstone": True}
    partitions = entry.transaction_partitions
    return {
        "is_tombstone": False,
        "value_version": entry.version,
        "producer_id": _present(entry.producer_id),
        "previous_producer_id": _present(entry.previous_producer_id),
        "next_producer_id": _present(entry.next_producer_id),
        "producer_epoch": _present(entry.producer_epoch),
        "next_producer_epoch": _present(entry.next_producer_epoch),
        "last_producer_epoch": _present(entry.last_producer_epoch),
        "transaction_timeout_ms": entry.transaction_timeout_ms,
        "state": entry.transaction_state.kafka_name,
        # A set: bytes and texts list it in different orders.
        "partitions": None if partitions is None else [{"topic": p.topic, "partition": p.partition} for p in sorted(partitions)],
        "last_update_ms": _present(entry.last_update_timestamp_ms),
        "start_ms": _present(entry.start_timestamp_ms),
        "client_transaction_version": entry.client_transaction_version if entry.version else None,
        "unknown_tags": list(entry.unknown_tags),
    }


class EntryRows:
    """Collects rows of `transaction_log` until they fill an Arrow batch."""

    def __init__(self, partition: int, source: str, path: str) -> None:
        self._where = {"topic": TRANSACTION_STATE_TOPIC, "partition": partition, "source": source, "path": path}
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, position: int, batch: bytes) -> None:
        """Adds the entries of one whole batch."""
        leader_epoch = HEADER.unpack_from(batch)[2]
        epoch = None if leader_epoch == NO_PARTITION_LEADER_EPOCH else leader_epoch
        for entry in read_entries(batch).entries:
            self._rows.append(
                {
                    **self._where,
                    "position": position,
                    "offset": entry.offset,
                    "timestamp_ms": entry.timestamp,
                    "coordinator_epoch": epoch,
                    "transactional_id": entry.transactional_id,
                    **entry_row(entry.entry),
                }
            )

    def take(self) -> pa.RecordBatch:
        """The rows so far as one Arrow batch; empties the collection."""
        rows, self._rows = self._rows, []
        return pa.RecordBatch.from_pylist(rows, schema=columns.TRANSACTION_LOG)
