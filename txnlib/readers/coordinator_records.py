"""Records of one coordinator batch. Records that cannot be decoded are listed separately."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from txnlib.core.kafka.record_batch import HEADER, Record
from txnlib.core.kafka.transaction_log import (
    TransactionLogEntry,
    UnknownVersionError,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.kafka.wire import CorruptRecordError, optional
from txnlib.readers.decoded_records import UnreadableRecord, iter_batch_records


@dataclass(frozen=True, slots=True)
class CoordinatorEntry:
    """One record of `__transaction_state`; `entry` is None for a tombstone."""

    offset: int
    timestamp: int
    transactional_id: str
    entry: TransactionLogEntry | None


@dataclass(slots=True)
class Entries:
    """The entries of one batch, and one problem for each record that could not be decoded."""

    entries: list[CoordinatorEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_entries(batch: bytes) -> Entries:
    """The entries of one complete batch of `__transaction_state` and its problems, as lists. See `iter_entries`."""
    decoded = Entries()
    for entry in iter_entries(batch):
        if isinstance(entry, str):
            decoded.problems.append(entry)
        else:
            decoded.entries.append(entry)
    return decoded


def iter_entries(batch: bytes) -> Iterator[CoordinatorEntry | str]:
    """Yields the entries of one complete batch of `__transaction_state`, and a problem as a string for each undecodable record.

    Kafka's loader skips a record with an unknown key version but stops at an unknown or broken value. Both are problems here, and
    no field of such a record is guessed.
    """
    try:
        for record in iter_batch_records(batch):
            yield _entry(record)
    except CorruptRecordError as error:
        yield f"UNDECODABLE_RECORDS: {error.problem}"


def _entry(record: Record | UnreadableRecord) -> CoordinatorEntry | str:
    if isinstance(record, UnreadableRecord):
        return f"UNDECODABLE_RECORD: {record.problem}"
    if record.key is None:
        return f"NULL_KEY: record {record.offset} has no key"
    try:
        transactional_id = read_transaction_log_key(record.key)
    except UnknownVersionError as error:
        return f"UNKNOWN_KEY_VERSION: version {error.version} at offset {record.offset}"
    except CorruptRecordError as error:
        return f"UNDECODABLE_KEY: offset {record.offset}, {error.problem}"
    try:
        entry = None if record.value is None else read_transaction_log_value(transactional_id, record.value)
    except UnknownVersionError as error:
        return f"UNKNOWN_VALUE_VERSION: version {error.version} at offset {record.offset}"
    except CorruptRecordError as error:
        return f"UNDECODABLE_VALUE: offset {record.offset}, {error.problem}"
    return CoordinatorEntry(record.offset, record.timestamp, transactional_id, entry)


def entry_row(entry: TransactionLogEntry | None) -> dict[str, Any]:
    """The columns of `transaction_log` that come from the record's value; a tombstone has only `is_tombstone`."""
    if entry is None:
        return {"is_tombstone": True}
    partitions = entry.transaction_partitions
    return {
        "is_tombstone": False,
        "value_version": entry.version,
        "producer_id": entry.producer_id,
        "previous_producer_id": entry.previous_producer_id,
        "next_producer_id": entry.next_producer_id,
        "producer_epoch": entry.producer_epoch,
        "next_producer_epoch": entry.next_producer_epoch,
        "last_producer_epoch": entry.last_producer_epoch,
        "transaction_timeout_ms": entry.transaction_timeout_ms,
        "state": entry.transaction_state.kafka_name,
        # A set: the log and the tools' text list it in different orders.
        "partitions": None if partitions is None else [{"topic": p.topic, "partition": p.partition} for p in sorted(partitions)],
        "last_update_ms": entry.last_update_timestamp_ms,
        "start_ms": entry.start_timestamp_ms,
        "client_transaction_version": entry.client_transaction_version if entry.version else None,
        "unknown_tags": list(entry.unknown_tags),
    }


def entry_rows(where: Mapping[str, Any], batch: bytes) -> Iterator[dict[str, Any]]:
    """The rows of `transaction_log` from one complete batch, each with the columns of `where`."""
    leader_epoch = HEADER.unpack_from(batch)[2]
    for entry in iter_entries(batch):
        if not isinstance(entry, str):
            yield {
                **where,
                "offset": entry.offset,
                "timestamp_ms": entry.timestamp,
                "coordinator_epoch": optional(leader_epoch),
                "transactional_id": entry.transactional_id,
                **entry_row(entry.entry),
            }
