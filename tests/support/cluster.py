"""A small cluster, event by event, and whole or partial captures of it.

Times are milliseconds after `NOON` by a true clock. Each log keeps its entries in the order of time; a copy is what a
broker's disk held at an instant, less what a test takes away. Everything is written as real brokers write it
(`log_bytes`).
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tests.support.log_bytes import encode_batch, encode_marker, encode_transaction_log_batch
from tests.support.metadata_log import MetadataLog
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.record_batch import ControlType, Record, TimestampType
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME
from txnlib.core.rows import TopicPartition

NOON = 1_710_000_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
COORDINATORS = 50
#: Of a cluster of many schedules. Where it is a multiple of the other number, an id is of the same partition in both.
MANY_COORDINATORS = 150
TXN = "__transaction_state"
#: How Kafka ends the name of a folder that takes the place of the partition's, once it has caught up.
FUTURE = ".3b1c7c6b5d3a4b0aa0b1deadbeef0123-future"
#: The same of a folder that its broker finds, and that the cluster has assigned to others.
STRAY = ".3b1c7c6b5d3a4b0aa0b1deadbeef0123-stray"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One batch of a log, with the true time of its append."""

    at: int
    offset: int = -1
    leader_epoch: int = 0
    #: Of a data log.
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    stamp: int = 0
    marker: str | None = None
    #: Its record was cleaned: the bare header of the batch is left.
    is_emptied: bool = False
    coordinator_epoch: int = 0
    is_transactional: bool = True
    is_broker_clock: bool = False
    payload: int = 5
    #: Key and value of the record, if they matter.
    content: tuple[bytes, bytes] | None = None
    #: Of a coordinator's log; None in `value` is a tombstone.
    key: str | None = None
    value: TransactionLogEntry | None = None

    def encode(self) -> bytes:
        envelope = {"leader_epoch": self.leader_epoch}
        if self.key is not None:
            written = self.key if self.value is None else self.value
            return encode_transaction_log_batch([written], at=self.offset, ts=NOON + self.stamp, **envelope)
        if self.is_emptied:
            return encode_batch(
                [], base_offset=self.offset, last_offset=self.offset, base_timestamp=NOON + self.stamp,
                max_timestamp=NOON + self.stamp, producer_id=self.producer_id, producer_epoch=self.producer_epoch,
                is_transactional=True, is_control=self.marker is not None, **envelope,
            )  # fmt: skip
        if self.marker is not None:
            kind = ControlType[self.marker]
            place = {"at": self.offset, "ts": NOON + self.stamp}
            return encode_marker(
                self.producer_id, self.producer_epoch, kind, self.coordinator_epoch, **place, **envelope
            )
        key, value = self.content or (b"key", b"v" * self.payload)
        return encode_batch(
            [Record(self.offset, NOON + self.stamp, key, value)],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.sequence,
            is_transactional=self.is_transactional,
            timestamp_type=TimestampType.LOG_APPEND_TIME if self.is_broker_clock else TimestampType.CREATE_TIME,
            **envelope,
        )


Place = tuple[str, int]
Keep = Callable[[Entry], bool]


@dataclass
class Copy:
    """A copy of one partition from one broker: what its disk held at an instant, less what is taken away."""

    broker: int
    #: The disk's last instant: later entries never reached it.
    until: int
    #: When the file was copied, which may be long after.
    taken: int | None = None
    keep: Keep = lambda entry: True
    #: Entries that only this disk has: written by a leader that an election deposed.
    own: tuple[Entry, ...] = ()
    #: Offset of its first segment: what is below was deleted.
    log_start: int = 0
    #: Done to the bytes of the segment.
    damage: Callable[[bytes], bytes] = lambda content: content
    #: High watermark in the broker's checkpoint; None: where the disk ends.
    high_watermark: int | None = None
    #: Folder within the broker's, as `first`.
    folder: str = ""
    #: Of a coordinator's log: up to this instant only the newest record of each id is left.
    is_compacted_until: int | None = None
    topic_id: str | None = None
    #: Lines of its leader-epoch-checkpoint: epoch and start offset. None: there is no such file.
    leader_epochs: tuple[tuple[int, int], ...] | None = None
    #: Files of producer snapshots, by the offset in their name.
    snapshots: Mapping[int, bytes] = field(default_factory=dict)
    #: Files of transaction indices, in the same way.
    transaction_indices: Mapping[int, bytes] = field(default_factory=dict)
    #: Whether the broker's checkpoint names the partition.
    is_checkpointed: bool = True
    #: Whether the log itself was captured, or only what lies beside it.
    has_log: bool = True
    #: Of the partition's folder: a copy that is moved to another disk is not the current one yet.
    is_future: bool = False
    #: Of the partition's folder: the cluster moved the replica to another broker while this one was away.
    is_stray: bool = False


@dataclass
class Cluster:
    """Logs of data partitions and of coordinators, and the copies that a capture has of them."""

    logs: dict[Place, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    copies: dict[Place, list[Copy]] = field(default_factory=dict)
    leaders: dict[Place, int | None] = field(default_factory=dict)
    #: Clock of the leader of a data partition, less the true one.
    skews: dict[Place, int] = field(default_factory=dict)
    #: High watermarks in checkpoints of brokers whose copies are not in the capture.
    noted: list[tuple[int, Place, int]] = field(default_factory=list)
    #: Further instants that capture.json notes: `1/replication-offset-checkpoint`.
    instants: dict[str, int] = field(default_factory=dict)
    #: What capture.json notes of a partition, besides its leader and replicas.
    answers: dict[Place, dict[str, object]] = field(default_factory=dict)
    #: The cluster's metadata log, if it was captured: it replaces the notes of leaders.
    metadata: MetadataLog | None = None
    coordinators: int = COORDINATORS
    _sequences: dict[tuple[Place, int, int], int] = field(default_factory=dict)

    # ---- What happens

    def write(self, place: Place, producer_id: int, epoch: int, at: int, **changes: object) -> None:
        """A batch of one record."""
        key = (place, producer_id, epoch)
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + 1
        entry = Entry(at=at, producer_id=producer_id, producer_epoch=epoch, sequence=sequence, stamp=at)
        self.logs[place].append(replace(entry, **changes))

    def mark(self, place: Place, producer_id: int, epoch: int, kind: str, at: int, **changes: object) -> None:
        """A marker, stamped by the clock of the partition's leader."""
        stamp = at + self.skews.get(place, 0)
        entry = Entry(at=at, producer_id=producer_id, producer_epoch=epoch, marker=kind, stamp=stamp)
        self.logs[place].append(replace(entry, **changes))

    def note(
        self,
        id_: str,
        state: str | None,
        producer_id: int,
        epoch: int,
        places: Iterable[Place],
        at: int,
        **more: object,
    ) -> None:
        """A record of the id's coordinator; no state is a tombstone."""
        place = (TXN, partition_for(id_, self.coordinators))
        value = None
        start = more.pop("start", at)
        envelope = {name: more.pop(name) for name in ("leader_epoch", "stamp") if name in more}
        if state is not None:
            is_empty = state == "Empty"
            changed_at = NOON + at
            if state.startswith("Complete"):
                changed_at = self._acknowledged(place, id_, otherwise=changed_at)
            listed = None if is_empty else tuple(sorted(TopicPartition(*each) for each in places))
            fields: dict[str, object] = {
                "transaction_timeout_ms": 60_000,
                "last_update_timestamp_ms": changed_at,
                "start_timestamp_ms": None if is_empty else NOON + start,
                "version": 0,
            }
            value = TransactionLogEntry(
                transactional_id=id_, producer_id=producer_id, producer_epoch=epoch,
                transaction_state=BY_KAFKA_NAME[state], transaction_partitions=listed, **fields | more,
            )  # fmt: skip
        self.logs[place].append(Entry(**{"at": at, "key": id_, "value": value, "stamp": at, **envelope}))

    def _acknowledged(self, place: Place, id_: str, otherwise: int) -> int:
        """When the coordinator had its newest Prepare record, before it sent any marker: a completion's last update."""
        noted = [e.value for e in self.logs[place] if e.key == id_ and e.value is not None]
        newest = noted[-1] if noted else None
        if newest is None or not newest.transaction_state.kafka_name.startswith("Prepare"):
            return otherwise
        return newest.last_update_timestamp_ms + 1

    def begin(self, id_: str, producer_id: int, epoch: int, places: Iterable[Place], at: int, **more: object) -> None:
        """Ongoing, and a batch on each partition."""
        places = tuple(places)
        self.note(id_, "Ongoing", producer_id, epoch, places, at, start=at, **more)
        for place in places:
            self.write(place, producer_id, epoch, at + 5)

    def end(
        self,
        id_: str,
        producer_id: int,
        epoch: int,
        places: Iterable[Place],
        at: int,
        kind: str = "COMMIT",
        *,
        start: int,
        lost: Iterable[Place] = (),
        takes: int = 20,
        marker_epoch: int | None = None,
        complete: bool = True,
        **more: object,
    ) -> None:
        """The decision, its markers, but for those that are lost, and the completion."""
        places, lost = tuple(places), set(lost)
        name = kind.capitalize()
        decided = epoch if marker_epoch is None else marker_epoch
        self.note(id_, f"Prepare{name}", producer_id, decided, places, at, start=start, **more)
        for place in places:
            if place not in lost:
                self.mark(place, producer_id, decided, kind, at + takes // 2)
        if complete:
            self.note(id_, f"Complete{name}", producer_id, decided, (), at + takes, start=start, **more)

    def transaction(
        self,
        id_: str,
        producer_id: int,
        epoch: int,
        places: Iterable[Place],
        at: int,
        kind: str = "COMMIT",
        **more: object,
    ) -> None:
        """A whole transaction that takes a second."""
        places = tuple(places)
        self.begin(id_, producer_id, epoch, places, at)
        self.end(id_, producer_id, epoch, places, at + SECOND, kind, start=at, **more)

    def beat(self, place: Place, times: Iterable[int], producer_id: int) -> None:
        """Transactions of another producer, whose markers show a broker's clock."""
        for at in times:
            self.transaction(f"beat-{place[0]}-{place[1]}", producer_id, 0, [place], at)

    # ---- What is captured

    def capture(self, folder: Path, at: int, *, notes: Mapping[str, object] | None = None) -> Path:
        """Writes what the copies hold; a partition without any was copied from its leader, broker 1, at that
        instant."""
        for entries in self.logs.values():
            entries.sort(key=lambda entry: entry.at)
            entries[:] = [replace(entry, offset=offset) for offset, entry in enumerate(entries)]
        marks: dict[int, list[str]] = defaultdict(list)
        instants = {"default": NOON + at}
        for number in range(self.coordinators):
            self.logs.setdefault((TXN, number), [])
        for place, entries in self.logs.items():
            for copy in self.copies.get(place, [Copy(1, at)]):
                held = [e for e in entries if e.at <= copy.until and e.offset >= copy.log_start and copy.keep(e)]
                if copy.is_compacted_until is not None:
                    newest = {e.key: e.offset for e in held}
                    held = [e for e in held if e.at > copy.is_compacted_until or newest[e.key] == e.offset]
                written = sorted([*held, *copy.own], key=lambda e: e.offset)
                name = f"{place[0]}-{place[1]}"
                name += FUTURE if copy.is_future else STRAY if copy.is_stray else ""
                inside = folder / str(copy.broker) / copy.folder / name
                inside.mkdir(parents=True)
                self._write_log(inside, copy, written)
                self._write_beside(inside, copy, place)
                whole = max((e.offset + 1 for e in entries if e.at <= copy.until), default=0)
                mark = whole if copy.high_watermark is None else copy.high_watermark
                is_current = not copy.is_future and not copy.is_stray
                if not copy.folder and is_current and copy.is_checkpointed:
                    marks[copy.broker].append(f"{place[0]} {place[1]} {mark}")
                if copy.taken is not None:
                    instants["/".join(filter(None, [str(copy.broker), copy.folder, name]))] = NOON + copy.taken
        for broker, (topic, partition), mark in self.noted:
            marks[broker].append(f"{topic} {partition} {mark}")
        for broker, lines in marks.items():
            text = "\n".join(["0", str(len(lines)), *lines, ""])
            (folder / str(broker)).mkdir(parents=True, exist_ok=True)
            (folder / str(broker) / "replication-offset-checkpoint").write_text(text)
        partitions = {
            f"{t}-{p}": {
                "leader": self.leaders.get((t, p), 1),
                "replicas": sorted({c.broker for c in self.copies.get((t, p), [Copy(1, at)])}),
                **self.answers.get((t, p), {}),
            }
            for t, p in self.logs
            if self.leaders.get((t, p), 1) is not None
        }
        if self.metadata is not None:
            partitions = {}
            self._write_metadata(folder / "1" / "__cluster_metadata-0", self.metadata.encode(until=at))
        told = {
            "cluster": "small", "kafka_version": "3.9.1", "captured_at_ms": instants,
            "coordinator_partitions": self.coordinators, "partitions": partitions,
        }  # fmt: skip
        told |= dict(notes or {})
        if told["captured_at_ms"] is not None:
            told["captured_at_ms"] = instants | {key: NOON + ms for key, ms in self.instants.items()}
        (folder / "capture.json").write_text(
            json.dumps({key: value for key, value in told.items() if value is not None})
        )
        return folder

    def _write_log(self, inside: Path, copy: Copy, written: Iterable[Entry]) -> None:
        if copy.has_log:
            content = copy.damage(b"".join(entry.encode() for entry in written))
            (inside / f"{copy.log_start:020}.log").write_bytes(content)

    def _write_metadata(self, inside: Path, content: bytes) -> None:
        inside.mkdir()
        (inside / f"{0:020}.log").write_bytes(content)

    def _write_beside(self, inside: Path, copy: Copy, place: Place) -> None:
        """What lies beside the segment in its folder."""
        topic_id = copy.topic_id or (self.metadata and self.metadata.topic_ids.get(place[0]))
        if topic_id:
            (inside / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
        for offset, snapshot in copy.snapshots.items():
            (inside / f"{offset:020}.snapshot").write_bytes(snapshot)
        for offset, index in copy.transaction_indices.items():
            (inside / f"{offset:020}.txnindex").write_bytes(index)
        if copy.leader_epochs is not None:
            lines = "".join(f"{epoch} {start}\n" for epoch, start in copy.leader_epochs)
            (inside / "leader-epoch-checkpoint").write_text(f"0\n{len(copy.leader_epochs)}\n{lines}")


@cache
def id_in(coordinator_partition: int, stem: str) -> str:
    """An id that a coordinator partition owns."""
    return next(
        f"{stem}-{n}" for n in range(10_000) if partition_for(f"{stem}-{n}", MANY_COORDINATORS) == coordinator_partition
    )
