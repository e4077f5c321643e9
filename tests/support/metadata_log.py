"""A cluster's metadata log, record by record, as a controller writes it.

Times are milliseconds after an epoch that the caller gives. A topic's id is derived from its name and its number.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field

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
REGISTER_BROKER = (0, 0)
NO_TAGS = b"\0"


def _text(value: str) -> bytes:
    return uvarint(len(value.encode()) + 1) + value.encode()


def _ids(numbers: Iterable[int]) -> bytes:
    listed = list(numbers)
    return uvarint(len(listed) + 1) + struct.pack(f">{len(listed)}i", *listed)


@dataclass
class MetadataLog:
    """Records by their instants. `epoch_ms`: the instant that times are counted from."""

    epoch_ms: int
    #: Name of a living topic -> its id, as text.
    topic_ids: dict[str, str] = field(default_factory=dict)
    _records: list[tuple[int, bytes]] = field(default_factory=list)
    _raw: dict[str, bytes] = field(default_factory=dict)
    _created: int = 0

    def _add(self, at: int, kind: tuple[int, int], content: bytes) -> None:
        number, version = kind
        self._records.append((at, uvarint(1) + uvarint(number) + uvarint(version) + content))

    def broker(self, number: int, at: int) -> None:
        content = struct.pack(">i16sq", number, bytes(16), number) + uvarint(1) + uvarint(1) + uvarint(0) + b"\0"
        self._add(at, REGISTER_BROKER, content + NO_TAGS)

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

    def elect(self, name: str, leader: int, at: int, *, partition: int = 0, isr: tuple[int, ...] | None = None) -> None:
        """Another leader, or the same one again; -1 is none. Each raises the leader epoch. `isr`: if it changes."""
        tags = [] if isr is None else [(0, _ids(isr))]
        tags.append((1, struct.pack(">i", leader)))
        written = uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(of)) + of for tag, of in tags)
        self._add(at, PARTITION_CHANGE, struct.pack(">i", partition) + self._raw[name] + written)

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
