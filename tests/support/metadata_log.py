"""A cluster's metadata log, record by record, as a controller writes it.

Times are milliseconds after an epoch that the caller gives. A topic's id is derived from its name and its number.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.log_bytes import encode_batch, uvarint
from txnlib.core.kafka.metadata_records import NO_OP_VALUE
from txnlib.core.kafka.record_batch import Record

#: Types of records: their numbers, and the versions that are written.
TOPIC, PARTITION, PARTITION_CHANGE, REMOVE_TOPIC, FEATURE_LEVEL, PRODUCER_IDS = (
    (2, 0),
    (3, 0),
    (5, 0),
    (9, 0),
    (12, 0),
    (15, 0),
)
REGISTER_BROKER, REGISTRATION_CHANGE = (0, 0), (17, 1)
#: Those before metadata.version 3.3, and a change that names eligible leader replicas.
FENCE_BROKER, UNFENCE_BROKER, ELIGIBLE_CHANGE = (7, 0), (8, 0), (5, 2)
#: By their tags.
REGISTRATION_FLAGS = ("fenced", "in_controlled_shutdown")
#: A change that names log directories, which later versions have.
DIRECTORIES_CHANGE = (17, 2)
NO_TAGS = b"\0"


def _text(value: str) -> bytes:
    return uvarint(len(value.encode()) + 1) + value.encode()


def _ids(numbers: Iterable[int]) -> bytes:
    listed = list(numbers)
    return uvarint(len(listed) + 1) + struct.pack(f">{len(listed)}i", *listed)


def _tags(found: Mapping[int, bytes | None]) -> bytes:
    """Those that are not None."""
    written = [(tag, content) for tag, content in found.items() if content is not None]
    return uvarint(len(written)) + b"".join(uvarint(tag) + uvarint(len(of)) + of for tag, of in written)


@dataclass
class MetadataLog:
    """Records by their instants. `epoch_ms`: the instant that times are counted from."""

    epoch_ms: int
    #: Name of a living topic -> its id, as text.
    topic_ids: dict[str, str] = field(default_factory=dict)
    _records: list[tuple[int, bytes]] = field(default_factory=list)
    _raw: dict[str, bytes] = field(default_factory=dict)
    _created: int = 0
    #: How often each broker registered.
    _registered: dict[int, int] = field(default_factory=dict)

    def _add(self, at: int, kind: tuple[int, int], content: bytes) -> None:
        number, version = kind
        self._records.append((at, uvarint(1) + uvarint(number) + uvarint(version) + content))

    def broker(self, number: int, at: int, *, is_fenced: bool = False) -> None:
        """It registers: each time as another incarnation, with another broker epoch."""
        self._registered[number] = self._registered.get(number, 0) + 1
        content = struct.pack(">iqqq", number, number, self._registered[number], self._epoch(number))
        content += uvarint(1) + uvarint(1) + uvarint(0) + struct.pack("?", is_fenced)
        self._add(at, REGISTER_BROKER, content + NO_TAGS)

    def _epoch(self, broker: int) -> int:
        return 1_000 * broker + self._registered[broker]

    def _change_registration(self, broker: int, at: int, **flags: int) -> None:
        """`fenced`, `in_controlled_shutdown`: 1 is true, -1 is false."""
        written = [None if flag not in flags else struct.pack(">b", flags[flag]) for flag in REGISTRATION_FLAGS]
        content = struct.pack(">iq", broker, self._epoch(broker))
        self._add(at, REGISTRATION_CHANGE, content + _tags(dict(enumerate(written))))

    def loses_directory(self, broker: int, at: int) -> None:
        """A disk fails; one is left."""
        content = struct.pack(">iq", broker, self._epoch(broker))
        left = uvarint(2) + f"disk of {broker}"[:16].ljust(16, "_").encode()
        self._add(at, DIRECTORIES_CHANGE, content + _tags({2: left}))

    def stop(self, broker: int, at: int, *, is_controlled: bool) -> None:
        """The broker ends: it said so before, or its heartbeats end. Then it is fenced."""
        if is_controlled:
            self._change_registration(broker, at - 1, in_controlled_shutdown=1)
        self._change_registration(broker, at, fenced=1)

    def fence(self, broker: int, at: int, *, is_over: bool = False) -> None:
        """Its heartbeats end, or come again, as controllers wrote before metadata.version 3.3."""
        content = struct.pack(">iq", broker, self._epoch(broker))
        self._add(at, UNFENCE_BROKER if is_over else FENCE_BROKER, content + NO_TAGS)

    def start(self, broker: int, at: int) -> None:
        """The broker registers again, and is unfenced."""
        self.broker(broker, at, is_fenced=True)
        self._change_registration(broker, at + 1, fenced=-1)

    def topic(
        self, name: str, partitions: int, at: int, *, leader: int = 1, replicas: tuple[int, ...] = (1, 2)
    ) -> None:
        """A topic with as many partitions, all led by one broker."""
        self._created += 1
        self._raw[name] = f"{self._created}-{name}"[:16].ljust(16, "_").encode()
        self.topic_ids[name] = urlsafe_b64encode(self._raw[name]).decode().rstrip("=")
        self._add(at, TOPIC, _text(name) + self._raw[name] + NO_TAGS)
        for number in range(partitions):
            content = (
                struct.pack(">i", number) + self._raw[name] + _ids(replicas) + _ids(replicas) + _ids(()) + _ids(())
            )
            self._add(at, PARTITION, content + struct.pack(">iii", leader, 0, 0) + NO_TAGS)

    def elect(
        self, name: str, leader: int, at: int, *, partition: int = 0, isr: tuple[int, ...] | None = None, **more: Any
    ) -> None:
        """Another leader, or the same one again; -1 is none. Each raises the leader epoch. `isr`: if it changes."""
        self.change(name, at, partition=partition, isr=isr, leader=leader, **more)

    def change(
        self,
        name: str,
        at: int,
        *,
        partition: int = 0,
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
        replicas: tuple[int, ...] | None = None,
        adding: tuple[int, ...] | None = None,
        is_recovering: bool | None = None,
        eligible: tuple[int, ...] | None = None,
        last_known: tuple[int, ...] | None = None,
    ) -> None:
        """What changes of a partition. `is_recovering`: an unclean election says so since metadata.version 3.2.
        `eligible`, `last_known`: replicas that may be elected where none is in sync, since 4.0."""
        listed = {0: isr, 2: replicas, 4: adding, 6: eligible, 7: last_known}
        tags = {tag: None if numbers is None else _ids(numbers) for tag, numbers in listed.items()}
        tags |= {
            1: None if leader is None else struct.pack(">i", leader),
            5: None if is_recovering is None else struct.pack("?", is_recovering),
        }
        in_order = dict(sorted(tags.items()))
        kind = PARTITION_CHANGE if eligible is None and last_known is None else ELIGIBLE_CHANGE
        self._add(at, kind, struct.pack(">i", partition) + self._raw[name] + _tags(in_order))

    def remove(self, name: str, at: int) -> None:
        self._add(at, REMOVE_TOPIC, self._raw.pop(name) + NO_TAGS)
        del self.topic_ids[name]

    def level(self, level: int, at: int, name: str = "transaction.version") -> None:
        self._add(at, FEATURE_LEVEL, _text(name) + struct.pack(">h", level) + NO_TAGS)

    def block(self, next_producer_id: int, at: int) -> None:
        """The controller hands out the thousand ids before this one."""
        self._add(at, PRODUCER_IDS, struct.pack(">iqq", 1, 1, next_producer_id) + NO_TAGS)

    def encode(self, until: int) -> bytes:
        """The log up to an instant, at which the controller still wrote."""
        kept = sorted((each for each in self._records if each[0] <= until), key=lambda each: each[0])
        return b"".join(
            encode_batch([Record(offset, self.epoch_ms + at, None, value)])
            for offset, (at, value) in enumerate([*kept, (until, NO_OP_VALUE)])
        )
