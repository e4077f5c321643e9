"""One partition's batches, fetched and appended to segments on disk.

Memory is bounded by one answer.
Bytes are written as they come: a Fetch response contains whole batches as they lie in the broker's segment, possibly
with one before the offset that was asked for, and possibly with a part of one at the end. Kafka: `FetchResponse`,
`DefaultRecordBatch`.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from txnlib.core.kafka.record_batch import CRC_STARTS_AT, HEADER, MAGIC_POSITION, stored_crc
from txnlib.errors import MissingExtraError
from txnlib.wire_capture.capture_folder import owned
from txnlib.wire_capture.client import OFFSET_OUT_OF_RANGE, Client, MovedError, check, reading
from txnlib.wire_capture.cluster import Partition

try:
    import google_crc32c
except ImportError as error:
    raise MissingExtraError("txn-audit capture", "google-crc32c", "capture") from error

#: Start of every batch and of every message of older formats: base offset, length after these two.
_START: Final = struct.Struct(">qi")
#: Bytes asked for at once. A larger batch is returned whole nevertheless (KIP-74).
_FETCH_BYTES: Final = 4 << 20
_LARGEST: Final = 128 << 20
#: A new segment begins beyond this size, as brokers do by default (`log.segment.bytes`).
_SEGMENT_BYTES: Final = 1 << 30
_MOST_WAIT_MS: Final = 500
_MOST_THROTTLE_SECONDS: Final = 60
#: How often in a row a broker may answer with nothing, or with bytes that are no log, before that is taken as its
#: answer.
_TRIES: Final = 3
_NO_EPOCH: Final = -1
#: The first version of Fetch requests that name topics by their ids.
_BY_ID: Final = 13


class TruncatedError(Exception):
    """The leader's log differs from what was fetched: it lost its end, or its start moved above the next offset."""


class DamagedError(Exception):
    """An answer that is no part of the log: a batch whose CRC does not match, or that ends above the high watermark."""


@dataclass(slots=True)
class FetchedLog:
    """What has been fetched of a partition so far. Positions are those after the last whole batch."""

    folder: Path
    #: First offset of the first batch, next offset to fetch, leader epoch of the last batch, segment and its size.
    first_offset: int | None
    next_offset: int
    last_epoch: int = _NO_EPOCH
    segment: int | None = None
    size: int = 0
    #: Bytes of all segments, and of the last batch.
    total: int = 0
    last_size: int = 0
    #: Offsets and leader epoch of a batch in the last answer that did not fit. If the next answer has the same, it is
    #: believed.
    doubted: tuple[int, int, int] | None = None

    def append(self, records: bytes, until: int, newest_epoch: int = _NO_EPOCH) -> int:
        """Appends the whole batches that begin below `until`; returns their number of bytes.

        No CRC covers offsets and leader epochs. So they must fit the batches around them and `newest_epoch`, the
        leader's epoch, or come in two answers. Raises DamagedError at the first batch that cannot be of this log, or
        does not fit; the batches before it are appended.
        """
        begin = end = 0
        view = memoryview(records)
        while end + _START.size <= len(records):
            base, length = _START.unpack_from(records, end)
            stop = end + _START.size + length
            if base >= until or length <= 0 or stop > len(records):
                break
            last, epoch = _last_offset(records, end, base, stop)
            if not 0 <= base <= last < until or not _is_crc_valid(view[end:stop]):
                self._write(view[begin:end])
                raise DamagedError(f"the batch at offset {base}, up to {last}, is damaged")
            doubt, self.doubted = self.doubted, None
            if doubt != (base, last, epoch) and not self._fits(base, last, epoch, newest_epoch, records, stop):
                self._write(view[begin:end])
                self.doubted = base, last, epoch
                raise DamagedError(
                    f"the batch at offset {base}, up to {last}, does not fit what is before offset {self.next_offset}"
                )
            if last < self.next_offset:  # a message of an older format in a set that also contains the next offset
                self._write(view[begin:end])
                begin = stop
            else:
                if self.segment is None or self.size + (stop - begin) > _SEGMENT_BYTES:
                    self._write(view[begin:end])
                    begin = end
                    self.segment, self.size = base, 0
                if self.first_offset is None:
                    self.first_offset = base
                self.next_offset, self.last_epoch, self.last_size = last + 1, epoch, stop - end
            end = stop
        self._write(view[begin:end])
        return end

    def _fits(self, base: int, last: int, epoch: int, newest: int, records: bytes, stop: int) -> bool:
        """Whether nothing speaks against the offsets and the leader epoch of a batch, which no CRC covers."""
        if epoch != _NO_EPOCH and (last < self.next_offset or epoch < self.last_epoch or epoch > newest != _NO_EPOCH):
            return False
        # A gap means that compaction removed records, or that the offset is damaged: then the next batch has a lower
        # one.
        has_next = stop + _START.size <= len(records)
        return base <= self.next_offset or (has_next and int(_START.unpack_from(records, stop)[0]) > last)

    def _write(self, part: memoryview) -> None:
        if not part or self.segment is None:
            return
        with open(self._path(self.segment), "ab", opener=owned) as file:
            file.write(part)
        self.size += len(part)
        self.total += len(part)

    def flush(self) -> None:
        """Makes sure that the newest segment is on the disk, and nothing behind its last whole batch."""
        if self.segment is None:
            return
        with self._path(self.segment).open("r+b") as file:
            file.truncate(self.size)
            os.fsync(file.fileno())

    def cut(self) -> None:
        """Removes what was written after the note: newer segments, and the end of the noted one."""
        for path in self._segments():
            if self.segment is not None and path.name > self._path(self.segment).name:
                path.unlink()
        self.flush()

    def first_header(self) -> bytes:
        """The first bytes of the first batch: offset, size, epoch and CRC."""
        with self._path(self.first_offset or 0).open("rb") as file:
            return file.read(CRC_STARTS_AT)

    def is_as_noted(self) -> bool:
        """Whether the segments up to the noted one are there, and the last batch before the noted size ends at the next
        offset. What follows is not looked at."""
        if self.segment is None or self.first_offset is None or not 0 < self.last_size <= self.size:
            return False
        first, last = self._path(self.first_offset), self._path(self.segment)
        older = [path for path in self._segments() if path.name < last.name]
        if min([*older, last]) != first or any(path.is_symlink() or not path.is_file() for path in (*older, last)):
            return False
        if sum(path.stat().st_size for path in older) + self.size != self.total:
            return False
        with last.open("rb") as file:
            file.seek(self.size - self.last_size)
            batch = file.read(self.last_size)
        if len(batch) < self.last_size or len(batch) < CRC_STARTS_AT:
            return False
        base, length = _START.unpack_from(batch)
        is_end = _last_offset(batch, 0, base, len(batch)) == (self.next_offset - 1, self.last_epoch)
        return length + _START.size == len(batch) and is_end and _is_crc_valid(memoryview(batch))

    def _path(self, base: int) -> Path:
        return self.folder / f"{base:020d}.log"

    def _segments(self) -> list[Path]:
        return list(self.folder.glob("*.log"))


def _last_offset(records: bytes, at: int, base: int, stop: int) -> tuple[int, int]:
    """The last offset and the leader epoch of a batch. Messages of formats 0 and 1 have the former in front, and no
    epoch."""
    if stop - at >= HEADER.size and records[at + MAGIC_POSITION] >= 2:
        _base, _length, epoch, _magic, _crc, _attributes, delta, *_rest = HEADER.unpack_from(records, at)
        return base + delta, epoch
    return base, _NO_EPOCH


def _is_crc_valid(batch: memoryview) -> bool:
    """Whether the CRC of a batch or message matches. Kafka: `DefaultRecordBatch.isValid`, `LegacyRecord.isValid`."""
    magic = batch[MAGIC_POSITION] if len(batch) > MAGIC_POSITION else None
    if magic is None or magic > 2 or (magic == 2 and len(batch) < HEADER.size):
        return False
    stored, begin, is_crc32c = stored_crc(bytes(batch[:CRC_STARTS_AT]))
    covered = bytes(batch[begin:])
    return stored == (google_crc32c.value(covered) if is_crc32c else zlib.crc32(covered))


def fetch(
    client: Client, partition: Partition, log: FetchedLog, until: int, *, start: int, pace: Callable[[int], None]
) -> None:
    """Appends the batches of a partition below offset `until` to `log`. Its leader said that the log starts at `start`.

    Waits as long as a quota asks for. Returns before `until` if the leader says several times that it has no more:
    compaction removed the rest. Raises TruncatedError if the leader no longer has what was fetched before, MovedError
    if it leads no longer, RefusedError, DamagedError if a batch is damaged in every answer, or OSError. What was
    appended until then stays.
    """
    if log.next_offset >= until:
        # Nothing is missing, if this is still the same log: the leader compares topic ids, leader epochs and the end.
        _next_records(client, partition, log, 1, start, until, most_wait_ms=0)
    most_bytes, empty, damaged = _FETCH_BYTES, 0, 0
    while log.next_offset < until:
        before, records = log.next_offset, _next_records(client, partition, log, most_bytes, start, until)
        if records is None:
            continue
        pace(len(records))
        try:
            log.append(records, until, partition.leader_epoch)
        except DamagedError as error:
            damaged = damaged + 1 if log.next_offset == before else 1
            if damaged == _TRIES:
                raise DamagedError(f"{partition.folder}: {error} in every answer") from error
            continue
        if log.next_offset > before:
            empty = damaged = 0
        elif not records or (len(records) >= _START.size and _START.unpack_from(records)[0] >= until):
            empty += 1
            if empty == _TRIES:
                return  # compaction removed the rest
        elif most_bytes >= _LARGEST:
            raise OSError(f"{partition.folder}: no whole batch at offset {before}")
        else:
            most_bytes *= 2


def check_first_batch(client: Client, partition: Partition, log: FetchedLog, start: int, until: int) -> None:
    """Raises TruncatedError if the first batch on the leader is not the one in `log`, and otherwise as `fetch`."""
    if log.first_offset is None:
        return
    first, records = FetchedLog(log.folder, None, log.first_offset), None
    while records is None:
        records = _next_records(client, partition, first, 1, start, until, most_wait_ms=0)
    if records[:CRC_STARTS_AT] != log.first_header():
        raise TruncatedError("its first batch is not the one that was fetched: its topic was created again, or cleaned")


def knows_topics_by_id(client: Client, partition: Partition) -> bool:
    """Whether the leader refuses each Fetch request that means another topic of this name (KIP-516; Kafka 3.1)."""
    from kafka.protocol.consumer import FetchRequest

    return partition.topic_uuid is not None and client.version_of(FetchRequest) >= _BY_ID


def _next_records(
    client: Client,
    partition: Partition,
    log: FetchedLog,
    most_bytes: int,
    start: int,
    until: int,
    most_wait_ms: int = _MOST_WAIT_MS,
) -> bytes | None:
    """What the leader has from the next offset on; None if a quota made it answer with nothing. Raises as `fetch`."""
    from kafka.protocol.consumer import FetchRequest

    topic, part = FetchRequest.FetchTopic, FetchRequest.FetchTopic.FetchPartition
    asked = part(
        partition=partition.partition,
        current_leader_epoch=partition.leader_epoch,
        fetch_offset=log.next_offset,
        # The leader compares it with its own history, so that a truncation shows (KIP-595).
        last_fetched_epoch=log.last_epoch,
        log_start_offset=-1,
        partition_max_bytes=most_bytes,
    )
    has_id = knows_topics_by_id(client, partition)
    named = {"topic_id": partition.topic_uuid} if has_id else {"topic": partition.topic}
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=most_wait_ms,
        min_bytes=1,
        max_bytes=most_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topic(**named, partitions=[asked])],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_BY_ID if has_id else _BY_ID - 1,
    )
    answer = client.ask(request, partition.leader)
    check(answer.error_code, partition.folder)
    if answer.throttle_time_ms:
        client.pause(
            min(answer.throttle_time_ms / 1000, _MOST_THROTTLE_SECONDS)
        )  # the broker does not read from this connection until then (KIP-219)
    with reading(partition.folder):
        answered = (each for of_topic in answer.responses for each in of_topic.partitions)
        said = next((each for each in answered if each.partition_index == partition.partition), None)
    if said is None:
        if answer.throttle_time_ms:
            return None
        raise MovedError(f"broker {partition.leader} answers without {partition.folder}")
    if said.error_code == OFFSET_OUT_OF_RANGE:
        raise TruncatedError(
            f"offset {log.next_offset} is out of range: the log begins at {said.log_start_offset} now, or was truncated"
        )
    check(said.error_code, partition.folder)
    diverging = getattr(said, "diverging_epoch", None)
    if diverging is not None and diverging.epoch >= 0:
        raise TruncatedError(
            f"epoch {diverging.epoch} ends at {diverging.end_offset} on the leader: offsets from there on were"
            " truncated"
        )
    # Neither ever falls. So one of two answers is damaged, or the leader is too new to know: both are asked for again.
    if said.log_start_offset < start or said.high_watermark < until:
        now = f"{said.log_start_offset} to {said.high_watermark}"
        raise MovedError(f"{partition.folder}: its leader said that the log has offsets {start} to {until}, then {now}")
    return bytes(said.records or b"")
