"""What do the records of one batch of `__consumer_offsets` say about where groups stand, and what could not be understood?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from txnlib.core.committed_offset import OffsetCommit, OffsetCommitKey, read_offset_commit_key, read_offset_commit_value
from txnlib.core.record_batch import HEADER, TRANSACTIONAL_FLAG
from txnlib.core.sentinels import GROUP_METADATA_TOPIC
from txnlib.core.wire import CorruptRecordError
from txnlib.readers import columns
from txnlib.readers.records import read_batch_records

#: Begins every problem of a commit: none of them takes anything from what a verdict rests on.
UNDECODABLE_COMMIT = "UNDECODABLE_COMMIT"


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One commit; `commit` is None for a tombstone: the group stands nowhere any more."""

    offset: int
    key: OffsetCommitKey
    commit: OffsetCommit | None


@dataclass(slots=True)
class Commits:
    """What one batch holds: commits, and one reason for each record that could not be understood."""

    entries: list[CommitEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_commits(batch: bytes) -> Commits:
    """The commits of one whole batch of `__consumer_offsets`; records of other kinds are skipped."""
    found = Commits()
    try:
        records = read_batch_records(batch)
    except CorruptRecordError as error:
        found.problems.append(f"{UNDECODABLE_COMMIT}: {error.problem}")
        return found
    for record in records:
        try:
            key = read_offset_commit_key(record.key or b"")
            if key is not None:
                commit = None if record.value is None else read_offset_commit_value(record.value)
                found.entries.append(CommitEntry(record.offset, key, commit))
        except CorruptRecordError as error:
            found.problems.append(f"{UNDECODABLE_COMMIT}: offset {record.offset}, {error.problem}")
    return found


def producer_of(batch: bytes) -> int | None:
    """The producer whose transaction a batch belongs to; None for one that counts as soon as it is written."""
    _offset, _length, _epoch, _magic, _crc, attributes, _delta, _base, _newest, producer_id, *_rest = HEADER.unpack_from(batch)
    return producer_id if attributes & TRANSACTIONAL_FLAG and producer_id >= 0 else None


class CommitRows:
    """Collects rows of `committed_offsets` until they fill an Arrow batch."""

    def __init__(self, partition: int, source: str, path: str) -> None:
        self._where = {"topic": GROUP_METADATA_TOPIC, "partition": partition, "source": source, "path": path}
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, position: int, batch: bytes) -> None:
        """Adds the commits of one whole batch."""
        where = {**self._where, "position": position, "producer_id": producer_of(batch)}
        for entry in read_commits(batch).entries:
            self._rows.append({**where, "offset": entry.offset, **_key_row(entry.key), **_commit_row(entry.commit)})

    def take(self) -> pa.RecordBatch:
        """The rows so far as one Arrow batch; empties the collection."""
        rows, self._rows = self._rows, []
        return pa.RecordBatch.from_pylist(rows, schema=columns.COMMITTED_OFFSETS)


def _key_row(key: OffsetCommitKey) -> dict[str, Any]:
    return {"group_id": key.group_id, "committed_topic": key.topic, "committed_partition": key.partition}


def _commit_row(commit: OffsetCommit | None) -> dict[str, Any]:
    if commit is None:
        return {"is_tombstone": True}
    return {
        "is_tombstone": False,
        "committed_offset": None if commit.offset < 0 else commit.offset,
        "commit_timestamp_ms": None if commit.commit_timestamp_ms < 0 else commit.commit_timestamp_ms,
    }
