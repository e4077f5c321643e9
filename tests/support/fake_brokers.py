"""Brokers in memory that answer the requests of a capture."""

import io
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from tests.support.log_bytes import encode_batch, to_bytes
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import Record, RecordBatch
from txnlib.wire_capture.capture import CaptureRequest, take_capture
from txnlib.wire_capture.client import MovedError, StoppedError
from txnlib.wire_capture.partition_copy import Progress, Taken

LATEST, EARLIEST = -1, -2
NOT_LEADER, FENCED_EPOCH, OUT_OF_RANGE, REFUSED = 6, 74, 1, 29
NO_SUCH_ID, REFUSED_ID, UNKNOWN_ID = 105, 53, 100
ALLOWED = (3, 8)


def batch(base: int, count: int = 2, *, epoch: int = 0, at_ms: int = 1_000, size: int = 10) -> bytes:
    """A batch of `count` records without a transaction."""
    records = [Record(base + each, at_ms, b"k", b"v" * size) for each in range(count)]
    return encode_batch(records, base_offset=base, max_timestamp=at_ms, base_timestamp=at_ms, leader_epoch=epoch)


@dataclass
class Log:
    """One partition: its leader, and batches as (first offset, last offset, epoch, timestamp, bytes)."""

    leader: int = 1
    epoch: int = 0
    start: int = 0
    last_stable: int | None = None
    batches: list[tuple[int, int, int, int, bytes]] = field(default_factory=list)
    producers: list[Any] = field(default_factory=list)
    is_readable: bool = True

    def append(self, count: int = 2, *, at_ms: int = 1_000, size: int = 10) -> None:
        """Appends a batch of the leader's epoch."""
        base = self.end
        content = batch(base, count, epoch=self.epoch, at_ms=at_ms, size=size)
        self.batches.append((base, base + count - 1, self.epoch, at_ms, content))

    def put(self, *batches: RecordBatch) -> None:
        """Appends batches of the notation."""
        for each in batches:
            assert each.max_timestamp is not None
            self.batches.append((each.base_offset, each.last_offset, self.epoch, each.max_timestamp, to_bytes(each)))

    def delete_before(self, offset: int) -> None:
        """Moves the log start, as DeleteRecords does; the last stable offset is never below it."""
        self.start = offset
        if self.last_stable is not None:
            self.last_stable = max(self.last_stable, offset)

    @property
    def end(self) -> int:
        """The high watermark."""
        return self.batches[-1][1] + 1 if self.batches else self.start

    def content(self, begin: int = 0) -> bytes:
        """The batches that contain `begin` or follow it."""
        return b"".join(each[4] for each in self.batches if each[1] >= begin)

    def diverging(self, epoch: int) -> int:
        """Where the epochs up to this one end."""
        return max((each[1] + 1 for each in self.batches if each[2] <= epoch), default=self.start)


class FakeBrokers:
    """Stands in for `client.Client`.

    `before_fetch` is called before each Fetch request is answered, with their number; `on_silence` when a dead broker
    is asked. `instead` gives other answers to Fetch requests: their number and the answer to what is sent.
    """

    broker_version = "4.1"

    def __init__(self, logs: dict[tuple[str, int], Log], *, most_batches: int = 1) -> None:
        self.logs, self._most_batches = logs, most_batches
        self.silent: set[int | None] = set()
        self.lost: set[int] = set()
        self.features = {"transaction.version": 2}
        self.topic_id = 7
        self.has_topic_ids = True
        self.newest_version = 13
        self.transactional_ids_code = NO_SUCH_ID
        self.dead: set[int] = set()
        self.asked: list[str] = []
        self.before_fetch: Callable[[int], None] = lambda number: None
        self.on_silence: Callable[[], None] = lambda: None
        self.instead: Callable[[int, Any], Any] = lambda number, answer: answer
        self.stopped = threading.Event()

    def stop(self) -> None:
        """Stops everyone who asks from now on."""
        self.stopped.set()

    def pause(self, seconds: float) -> None:
        """Nobody waits."""
        if self.stopped.is_set():
            raise StoppedError

    def version_of(self, request: Any) -> int:
        """Every request is known."""
        return self.newest_version

    def id_of(self, topic: str) -> UUID:
        """The id of a topic. All change with `topic_id`. Brokers before 2.8 have none."""
        if not self.has_topic_ids:
            return UUID(int=0)
        return UUID(int=self.topic_id << 64 | zlib.crc32(topic.encode()))

    def ask_any(self, request: Any, **_: Any) -> tuple[Any, int]:
        """The answer of a broker, and who gave it."""
        return self.ask(request, None), min((log.leader for log in self.logs.values()), default=1)

    def ask(self, request: Any, broker: int | None, **_: Any) -> Any:
        """The answer of a broker, or of any, or a MovedError if it is dead."""
        self.pause(0)
        if broker in self.dead:
            self.silent.add(broker)
            self.on_silence()
            raise MovedError(f"broker {broker} does not answer")
        name = request.name.removesuffix("Request")
        self.asked.append(name)
        return getattr(self, f"_{name}")(request, broker)

    def _Metadata(self, request: Any, _: int | None) -> Any:
        wanted = None if request.topics is None else {each.name for each in request.topics}
        names = sorted({topic for topic, _ in self.logs if wanted is None or topic in wanted})
        topics = []
        for name in names:
            of, both = self._of(name), {"replica_nodes": [1, 2], "isr_nodes": [1, 2]}
            partitions = [
                SimpleNamespace(partition_index=number, leader_id=log.leader, leader_epoch=log.epoch, **both)
                for number, log in of
            ]
            may = ALLOWED if of[0][1].is_readable else ALLOWED[1:]
            known = {"name": name, "topic_id": self.id_of(name), "authorized_operations": may, "partitions": partitions}
            topics.append(SimpleNamespace(error_code=0, **known))
        living = sorted({log.leader for log in self.logs.values() if log.leader >= 0})
        brokers = [SimpleNamespace(node_id=node) for node in living]
        return SimpleNamespace(topics=topics, cluster_id="fake", brokers=brokers)

    def _of(self, topic: str) -> list[tuple[int, Log]]:
        return [(number, log) for (name, number), log in sorted(self.logs.items()) if name == topic]

    def _ListOffsets(self, request: Any, broker: int | None) -> Any:
        def offset(log: Log, timestamp: int) -> int:
            if timestamp == EARLIEST:
                return log.start
            if timestamp == LATEST:
                is_stable = request.isolation_level == 1 and log.last_stable is not None
                return log.last_stable if is_stable and log.last_stable is not None else log.end
            return next((each[0] for each in log.batches if each[3] >= timestamp), -1)

        return self._each(request, broker, lambda log, asked: {"offset": offset(log, asked.timestamp)})

    def _DescribeProducers(self, request: Any, broker: int | None) -> Any:
        def producers(name: str, number: int) -> Any:
            return SimpleNamespace(
                partition_index=number, error_code=0, active_producers=self.logs[name, number].producers
            )

        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    name=topic.name, partitions=[producers(topic.name, number) for number in topic.partition_indexes]
                )
                for topic in request.topics
            ]
        )

    def _ListTransactions(self, request: Any, broker: int | None) -> Any:
        return SimpleNamespace(error_code=0, transaction_states=[])

    def _DescribeTransactions(self, request: Any, broker: int | None) -> Any:
        states = [SimpleNamespace(error_code=self.transactional_ids_code) for _ in request.transactional_ids]
        return SimpleNamespace(transaction_states=states)

    def _DescribeConfigs(self, request: Any, broker: int | None) -> Any:
        return SimpleNamespace(results=[])

    def _Fetch(self, request: Any, broker: int | None) -> Any:
        self.before_fetch(self.asked.count("Fetch"))
        topic, asked = request.topics[0], request.topics[0].partitions[0]
        by_id = {self.id_of(name): name for name, _ in self.logs}
        name = by_id.get(topic.topic_id) if topic.topic_id and topic.topic_id.int else topic.topic
        log = self.logs[name, asked.partition] if name is not None else Log(leader=-1)
        said = SimpleNamespace(
            partition_index=asked.partition, error_code=0, high_watermark=log.end, log_start_offset=log.start,
            diverging_epoch=None, records=b"",
        )  # fmt: skip
        if name is None:
            said.error_code = UNKNOWN_ID
        elif broker != log.leader:
            said.error_code = NOT_LEADER
        elif not log.is_readable:
            said.error_code = REFUSED
        elif asked.current_leader_epoch != log.epoch:
            said.error_code = FENCED_EPOCH
        elif asked.last_fetched_epoch >= 0 and log.diverging(asked.last_fetched_epoch) < asked.fetch_offset:
            end = log.diverging(asked.last_fetched_epoch)
            said.diverging_epoch = SimpleNamespace(epoch=asked.last_fetched_epoch, end_offset=end)
        elif not log.start <= asked.fetch_offset <= log.end:
            said.error_code = OUT_OF_RANGE
        else:
            found = [each[4] for each in log.batches if each[1] >= asked.fetch_offset]
            said.records = b"".join(found[: self._most_batches])
        responses = [SimpleNamespace(topic=topic.topic, topic_id=topic.topic_id, partitions=[said])]
        answer = SimpleNamespace(error_code=0, throttle_time_ms=0, responses=responses)
        return self.instead(self.asked.count("Fetch"), answer)

    def _each(self, request: Any, broker: int | None, answer: Callable[[Log, Any], dict[str, Any]]) -> Any:
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                log = self.logs[topic.name, asked.partition_index]
                code = 0 if log.leader == broker else NOT_LEADER
                partitions.append(
                    SimpleNamespace(partition_index=asked.partition_index, error_code=code, **answer(log, asked))
                )
            topics.append(SimpleNamespace(name=topic.name, partitions=partitions))
        return SimpleNamespace(topics=topics)


def filled(count: int = 10, **given: Any) -> Log:
    """A partition with `count` batches of two records, a millisecond apart from 1000 on."""
    log = Log(**given)
    for number in range(count):
        log.append(at_ms=1_000 + number)
    return log


def brokers_with(**logs: Log) -> FakeBrokers:
    """Brokers with one coordinator partition and these topics."""
    others = {(name, 0): log for name, log in logs.items()}
    return FakeBrokers({(TRANSACTION_STATE_TOPIC, 0): filled(2), **others})


def taken_by(fake: FakeBrokers, output: Path, progress: Progress | None = None, **wanted: Any) -> dict[str, Taken]:
    """What a capture of these brokers took, by name of the partition's folder."""
    request = CaptureRequest(output, **wanted)
    captured = take_capture(fake, request, progress or Progress(io.StringIO()))  # type: ignore[arg-type]
    return {each.partition.folder: each for each in captured.taken}
