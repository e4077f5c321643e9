"""Makes one large cluster of a small real one: every topic, producer and transactional id, N times.

The first copy is the capture as it is. In the others, topics have new names, producer ids are shifted, and
transactional ids have a suffix with which Kafka's hash leads them to the same coordinator partition: so every
coordinator keeps the leader epochs that its markers name. Offsets and times of data stay; the coordinators' logs hold
the copies of a batch one behind the other, so their offsets are N times as large. All CRCs that were right are right
again.

Not multiplied are indexes and partition.metadata, which an audit does not read, and what is no log at all.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import google_crc32c
from encode import batch, encode_record, transaction_log_key, transaction_log_value

from txnlib.core.kafka import log_dir_files
from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.record_batch import CONTROL_FLAG, CRC_STARTS_AT, HEADER, LOG_OVERHEAD, MAGIC_POSITION
from txnlib.core.kafka.transaction_log import TransactionLogEntry, read_transaction_log_key, read_transaction_log_value
from txnlib.core.rows import TopicPartition
from txnlib.readers.capture import CHECKPOINTS, topic_partition_of
from txnlib.readers.capture_notes import CAPTURE_JSON
from txnlib.readers.decoded_records import iter_batch_records

PRODUCER_ID_POSITION = 43
#: Places among the fields of `HEADER`.
CRC, PRODUCER_ID = 4, 9


def multiply(capture: Path, target: Path, times: int) -> None:
    """Writes to a new folder what `capture`, raw copies of log directories, would be as `times` clusters in one."""
    target.mkdir(parents=True)
    copies = Copies(capture, times)
    for path in sorted(path for path in capture.rglob("*") if path.is_file()):
        place = target / path.relative_to(capture).parent
        topic, partition = topic_partition_of(path.parent.name)
        if path.name == CAPTURE_JSON:
            place.mkdir(parents=True, exist_ok=True)
            (place / path.name).write_text(json.dumps(copies.notes(json.loads(path.read_text())), indent=1))
        elif topic is None or partition is None:
            if path.name in CHECKPOINTS:
                place.mkdir(parents=True, exist_ok=True)
                (place / path.name).write_text(copies.checkpoint(path.read_text()))
        elif topic == TRANSACTION_STATE_TOPIC:
            copies.write_coordinator(path, place, partition)
        else:
            for number in range(times):
                copies.write_data(path, place.parent, TopicPartition(topic, partition), number)


class Copies:
    """What the names and numbers of a capture are called in its copies."""

    def __init__(self, capture: Path, times: int) -> None:
        self.times = times
        folders = {path.name for path in capture.rglob("*") if path.is_dir()}
        known = [topic_partition_of(name) for name in folders]
        self.group_partitions = max((p or 0 for topic, p in known if topic == GROUP_METADATA_TOPIC), default=0) + 1
        self.coordinators = max((p or 0 for topic, p in known if topic == TRANSACTION_STATE_TOPIC), default=0) + 1
        notes = capture / CAPTURE_JSON
        if notes.exists():
            self.coordinators = json.loads(notes.read_text()).get("coordinator_partitions") or self.coordinators
        newest = max((producer for path in capture.rglob("*.log") for producer in _producers_in(path)), default=0)
        self.shift = 10 ** len(str(newest))

    def producer(self, producer: int | None, number: int) -> int | None:
        return producer if producer is None or producer < 0 else producer + number * self.shift

    def place(self, place: TopicPartition, number: int) -> TopicPartition:
        """Kafka's own topic keeps its name, which means something, and gets more partitions."""
        if number == 0 or place.topic == TRANSACTION_STATE_TOPIC:
            return place
        if place.topic == GROUP_METADATA_TOPIC:
            return TopicPartition(place.topic, place.partition + number * self.group_partitions)
        return TopicPartition(f"{place.topic}.x{number}", place.partition)

    def transactional_id(self, transactional_id: str, number: int, partition: int) -> str:
        """The id with the first suffix that leads to its own coordinator."""
        if number == 0:
            return transactional_id
        names = (f"{transactional_id}.x{number}.{attempt}" for attempt in count())
        return next(name for name in names if partition_for(name, self.coordinators) == partition)

    def entry(self, entry: TransactionLogEntry, number: int, partition: int) -> TransactionLogEntry:
        if entry.unknown_tags:
            raise SystemExit(f"{entry.transactional_id}: tags {entry.unknown_tags} would be lost")
        listed = entry.transaction_partitions
        return replace(
            entry,
            transactional_id=self.transactional_id(entry.transactional_id, number, partition),
            producer_id=self.producer(entry.producer_id, number),
            previous_producer_id=self.producer(entry.previous_producer_id, number),
            next_producer_id=self.producer(entry.next_producer_id, number),
            transaction_partitions=None if listed is None else tuple(self.place(place, number) for place in listed),
        )

    # ---- Files

    def write_data(self, path: Path, log_dir: Path, place: TopicPartition, number: int) -> None:
        folder = log_dir / str(self.place(place, number))
        content = path.read_bytes()
        if path.suffix == ".log":
            content = b"".join(self._data_batch(raw, number) for raw in _batches(content))
        elif path.suffix == ".snapshot":
            content = self._snapshot(content, number)
        elif path.suffix == ".txnindex":
            content = self._transaction_index(content, number)
        elif path.name not in CHECKPOINTS:
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_bytes(content)

    def _data_batch(self, raw: bytes, number: int) -> bytes:
        if not _is_v2(raw):
            return raw
        fields = list(HEADER.unpack_from(raw))
        is_right = fields[CRC] == google_crc32c.value(raw[CRC_STARTS_AT:])
        fields[PRODUCER_ID] = self.producer(fields[PRODUCER_ID], number)
        shifted = HEADER.pack(*fields) + raw[HEADER.size :]
        if is_right:
            fields[CRC] = google_crc32c.value(shifted[CRC_STARTS_AT:])
        return HEADER.pack(*fields) + raw[HEADER.size :]

    def _snapshot(self, content: bytes, number: int) -> bytes:
        entry, start = log_dir_files.SNAPSHOT_ENTRY, log_dir_files.SNAPSHOT_HEADER.size
        version, _crc, entries = log_dir_files.SNAPSHOT_HEADER.unpack_from(content)
        covered = struct.pack(">i", entries)
        for producer, *state in entry.iter_unpack(content[start:]):
            covered += entry.pack(self.producer(producer, number), *state)
        return struct.pack(">hI", version, google_crc32c.value(covered)) + covered

    def _transaction_index(self, content: bytes, number: int) -> bytes:
        entry = log_dir_files.INDEX_ENTRY
        whole = content[: len(content) - len(content) % entry.size]
        shifted = (
            entry.pack(version, self.producer(pid, number), *rest) for version, pid, *rest in entry.iter_unpack(whole)
        )
        return b"".join(shifted)

    def write_coordinator(self, path: Path, folder: Path, partition: int) -> None:
        name, content = path.name, path.read_bytes()
        if path.suffix in (".log", ".snapshot"):
            name = f"{int(path.stem) * self.times:020d}{path.suffix}"
        if path.suffix == ".log":
            content = b"".join(self._coordinator_batches(raw, partition) for raw in _batches(content))
        elif name == "leader-epoch-checkpoint":
            content = self._leader_epochs(content.decode()).encode()
        elif path.suffix != ".snapshot":
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    def _coordinator_batches(self, raw: bytes, partition: int) -> bytes:
        if not _is_v2(raw):
            return raw
        base, _length, leader, _magic, crc, attributes, delta, time, newest, pid, epoch, sequence, records = (
            HEADER.unpack_from(raw)
        )
        if crc != google_crc32c.value(raw[CRC_STARTS_AT:]) or attributes & CONTROL_FLAG:
            raise SystemExit(
                f"offset {base} of {TRANSACTION_STATE_TOPIC}-{partition}: only sound batches of coordinators are copied"
            )
        out = b""
        for number in range(self.times):
            body = b""
            for record in iter_batch_records(raw):
                assert record.key is not None
                name = read_transaction_log_key(record.key)
                key = transaction_log_key(self.transactional_id(name, number, partition))
                value = None
                if record.value is not None:
                    value = transaction_log_value(
                        self.entry(read_transaction_log_value(name, record.value), number, partition)
                    )
                body += encode_record(record.offset - base, record.timestamp - time, key, value)
            offset = base * self.times + number * (delta + 1)
            told = {"newest": newest, "epoch": epoch, "leader_epoch": leader}
            out += batch(offset, delta, attributes & ~0x07, time, pid, sequence, records, body, **told)
        return out

    def checkpoint(self, text: str) -> str:
        """A broker's checkpoint of offsets by partition."""
        told = []
        for topic, partition, offset in map(str.split, filter(None, text.splitlines()[2:])):
            is_coordinator = topic == TRANSACTION_STATE_TOPIC
            for number in range(1 if is_coordinator else self.times):
                place = self.place(TopicPartition(topic, int(partition)), number)
                told.append(f"{place.topic} {place.partition} {int(offset) * (self.times if is_coordinator else 1)}")
        return "".join(f"{line}\n" for line in ["0", str(len(told)), *told])

    def _leader_epochs(self, text: str) -> str:
        head, lines = text.splitlines()[:2], text.splitlines()[2:]
        told = [f"{epoch} {int(offset) * self.times}" for epoch, offset in map(str.split, filter(None, lines))]
        return "".join(f"{line}\n" for line in head + told)

    def notes(self, notes: dict[str, object]) -> dict[str, object]:
        """capture.json: what it says of a folder, it says of the copies."""
        told = dict(notes)
        for name in ("captured_at_ms", "partitions"):
            by_folder = told.get(name)
            if isinstance(by_folder, dict):
                told[name] = {copy: value for key, value in by_folder.items() for copy in self._folders(key)}
        return told

    def _folders(self, key: str) -> list[str]:
        """`<folder>` or `<broker>/<folder>` in all copies."""
        broker, slash, folder = key.rpartition("/")
        topic, partition = topic_partition_of(folder)
        if topic is None or partition is None:
            return [key]
        places = (self.place(TopicPartition(topic, partition), number) for number in range(self.times))
        return list(dict.fromkeys(f"{broker}{slash}{place}" for place in places))


def _batches(content: bytes) -> Iterator[bytes]:
    """The batches of a segment as bytes, and last what is no batch."""
    position = 0
    while position + HEADER.size <= len(content):
        (length,) = struct.unpack_from(">i", content, position + 8)
        end = position + length + LOG_OVERHEAD
        if length <= 0 or end > len(content):
            break
        yield content[position:end]
        position = end
    yield content[position:]


def _is_v2(raw: bytes) -> bool:
    return len(raw) >= HEADER.size and raw[MAGIC_POSITION] == 2


def _producers_in(path: Path) -> Iterator[int]:
    for raw in _batches(path.read_bytes()):
        if _is_v2(raw):
            yield struct.unpack_from(">q", raw, PRODUCER_ID_POSITION)[0]
            if path.parent.name.startswith(TRANSACTION_STATE_TOPIC):
                for record in iter_batch_records(raw):
                    if record.value is not None:
                        yield struct.unpack_from(">q", record.value, 2)[0]
