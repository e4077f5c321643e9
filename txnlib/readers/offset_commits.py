"""Offset commits in one batch of `__consumer_offsets`. Undecodable records are listed separately."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from txnlib.core.kafka.offset_commit import OffsetCommit, OffsetCommitKey, read_offset_commit_key, read_offset_commit_value
from txnlib.core.kafka.record_batch import HEADER, TRANSACTIONAL_FLAG, Record
from txnlib.core.kafka.wire import CorruptRecordError
from txnlib.readers.decoded_records import UnreadableRecord, iter_batch_records

#: Prefix of every problem of a commit. No verdict depends on a commit.
UNDECODABLE_COMMIT = "UNDECODABLE_COMMIT"


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One commit; `commit` is None for a tombstone: the group has no committed offset any more."""

    offset: int
    key: OffsetCommitKey
    commit: OffsetCommit | None


def iter_commits(batch: bytes) -> Iterator[CommitEntry | str]:
    """Yields the commits of one complete batch of `__consumer_offsets`, and a problem as a string for each undecodable record.

    Records other than offset commits are skipped.
    """
    try:
        for record in iter_batch_records(batch):
            if isinstance(record, UnreadableRecord):
                yield f"{UNDECODABLE_COMMIT}: {record.problem}"
                continue
            try:
                commit = _commit(record)
            except CorruptRecordError as error:
                yield f"{UNDECODABLE_COMMIT}: offset {record.offset}, {error.problem}"
            else:
                if commit is not None:
                    yield commit
    except CorruptRecordError as error:
        yield f"{UNDECODABLE_COMMIT}: {error.problem}"


def _commit(record: Record) -> CommitEntry | None:
    key = read_offset_commit_key(record.key or b"")
    if key is None:
        return None
    return CommitEntry(record.offset, key, None if record.value is None else read_offset_commit_value(record.value))


def producer_of(batch: bytes) -> int | None:
    """The producer id of a transactional batch; None for any other batch, whose commits take effect as soon as they are written."""
    _offset, _length, _epoch, _magic, _crc, attributes, _delta, _base, _newest, producer_id, *_rest = HEADER.unpack_from(batch)
    return producer_id if attributes & TRANSACTIONAL_FLAG and producer_id >= 0 else None


def commit_rows(where: Mapping[str, Any], batch: bytes) -> Iterator[dict[str, Any]]:
    """The rows of `committed_offsets` from one complete batch, each with the columns of `where`."""
    producer_id = producer_of(batch)
    for entry in iter_commits(batch):
        if not isinstance(entry, str):
            yield {**where, "producer_id": producer_id, "offset": entry.offset, **_key_row(entry.key), **_commit_row(entry.commit)}


def _key_row(key: OffsetCommitKey) -> dict[str, Any]:
    return {"group_id": key.group_id, "committed_topic": key.topic, "committed_partition": key.partition}


def _commit_row(commit: OffsetCommit | None) -> dict[str, Any]:
    if commit is None:
        return {"is_tombstone": True}
    return {
        "is_tombstone": False,
        "committed_offset": commit.offset,
        "commit_timestamp_ms": commit.commit_timestamp_ms,
    }
