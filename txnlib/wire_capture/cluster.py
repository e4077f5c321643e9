"""What brokers say about partitions, settings and transactions."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from txnlib.core.display import counted, some_of
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, is_topic_name
from txnlib.core.rows import grouped
from txnlib.errors import UnreadableInputError
from txnlib.wire_capture.client import REFUSED, Client, MovedError, check, reading

#: `ListOffsetsRequest`: the newest offset, and the log start.
LATEST: Final = -1
EARLIEST: Final = -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_LEADER: Final = -1
#: Kafka: `ConfigResource.Type`.
_BROKER_RESOURCE: Final = 4
#: The settings of brokers that an audit uses or prints.
SETTINGS: Final = (
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
    "producer.id.expiration.ms",
    "transaction.state.log.num.partitions",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "transaction.partition.verification.enable",
    "transaction.two.phase.commit.enable",
    "log.message.timestamp.type",
    "inter.broker.protocol.version",
)
#: Far above what one cluster of Kafka has. A capture connects to each broker, and has a folder for each partition.
_MOST_BROKERS: Final = 1_000
_MOST_PARTITIONS: Final = 1_000_000
#: Most brokers to name in a sentence.
_NAMED: Final = 5
#: Partitions in one request.
_AT_ONCE: Final = 500
_NOBODYS_ID: Final = "txnlib-capture"
#: Bits of the operations that a topic's answer says are allowed. Kafka: `AclOperation`.
READ, DESCRIBE = 3, 8


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A partition, as the metadata of the cluster describes it."""

    topic: str
    partition: int
    leader: int = field(compare=False)
    leader_epoch: int = field(compare=False)
    replicas: tuple[int, ...] = field(compare=False)
    in_sync: tuple[int, ...] = field(compare=False)
    topic_id: str = field(compare=False)
    #: Whether this user may read its records; None if the broker does not say.
    is_readable: bool | None = field(compare=False)

    @property
    def folder(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def topic_uuid(self) -> UUID | None:
        """The topic's id as requests have it; None for brokers without ids."""
        return UUID(bytes=base64.urlsafe_b64decode(f"{self.topic_id}==")) if self.topic_id else None

    @property
    def is_coordinator(self) -> bool:
        return self.topic == TRANSACTION_STATE_TOPIC


@dataclass(frozen=True, slots=True)
class Metadata:
    """The cluster, and the topics that this user may not see although it named them."""

    cluster_id: str | None
    brokers: tuple[int, ...]
    partitions: tuple[Partition, ...]
    refused: tuple[str, ...]


def metadata(client: Client, topics: Sequence[str] | None = None, broker: int | None = None) -> Metadata:
    """The partitions of these topics, or of all that this user may see, by a broker or any. Creates no topic.

    Names become folders: one that Kafka forbids is an UnreadableInputError, and numbers that Kafka does not have are a
    damaged answer.
    """
    from kafka.protocol.metadata import MetadataRequest

    topic = MetadataRequest.MetadataRequestTopic
    version = min(client.version_of(MetadataRequest), 12)
    asked = None if topics is None else [topic(name=name) for name in topics]
    request = MetadataRequest(
        topics=asked,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=version >= 8,
        max_version=version,
    )
    refused: list[str] = []
    found: list[Partition] = []
    with reading("metadata"):
        answer, asked_one = client.ask_any(request) if broker is None else (client.ask(request, broker), broker)
        for of_topic in answer.topics:
            _check_name(of_topic.name, asked_one)
            if topics is not None and of_topic.name not in topics:
                continue
            if of_topic.error_code in REFUSED:
                refused.append(of_topic.name)
                continue
            allowed, own_id = set(of_topic.authorized_operations or ()), of_topic.topic_id
            # As Kafka prints it; empty for brokers that have none.
            printed_id = base64.urlsafe_b64encode(own_id.bytes).rstrip(b"=").decode() if own_id and own_id.int else ""
            found += [
                Partition(
                    of_topic.name,
                    each.partition_index,
                    each.leader_id,
                    each.leader_epoch,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                    printed_id,
                    READ in {int(operation) for operation in allowed} if allowed else None,
                )
                for each in of_topic.partitions
            ]
        brokers = tuple(each.node_id for each in answer.brokers)
        _check_count(len(brokers), _MOST_BROKERS, "brokers", asked_one)
        _check_count(len(found), _MOST_PARTITIONS, "partitions", asked_one)
        _check_numbers(brokers, found)
        return Metadata(answer.cluster_id, brokers, tuple(sorted(found)), tuple(refused))


def _check_name(topic: str | None, broker: int) -> None:
    if not is_topic_name(topic):
        raise UnreadableInputError(
            f"broker {broker}",
            f"it names a topic {topic!r}, and Kafka forbids that name",
            "No broker of Kafka does that: check who answers at its address",
        )


def _check_count(count: int, most: int, what: str, broker: int) -> None:
    """Raises UnreadableInputError for a cluster that a capture would never end with."""
    if count > most:
        raise UnreadableInputError(
            f"broker {broker}",
            f"it names {count:,} {what}, and a capture takes {most:,} at most",
            "No cluster of Kafka has so many: check who answers at its address",
        )


def lost_text(brokers: Iterable[int]) -> str:
    """What is said of brokers that are not asked any more."""
    names = [str(broker) for broker in sorted(brokers)]
    return (
        f"{counted(len(names), 'broker')} had a second to answer, because others had not answered for minutes:"
        f" {some_of(names, _NAMED)}. Check the network from here to the addresses that brokers name"
        " (advertised.listeners), then call it again"
    )


def _check_numbers(brokers: Sequence[int], partitions: Sequence[Partition]) -> None:
    """Raises ValueError for numbers that would name the wrong folder."""
    if min([*brokers, *(each.partition for each in partitions)], default=0) < 0:
        raise ValueError("negative numbers of brokers or partitions")
    if any(each.leader < NO_LEADER for each in partitions):
        raise ValueError("negative numbers of leaders")
    if len(set(partitions)) < len(partitions):
        raise ValueError("a partition twice")


def offsets(
    client: Client, partitions: Sequence[Partition], timestamp: int, isolation: int = READ_UNCOMMITTED
) -> dict[Partition, int]:
    """An offset of each partition, from its leader: LATEST, EARLIEST, or the first record at or after `timestamp` in
    epoch ms.

    LATEST is the high watermark for READ_UNCOMMITTED, the last stable offset for READ_COMMITTED. Partitions whose
    leader moved or is silent, or that this user may not describe, are missing in the answer. -1: there is no such
    record.
    """
    from kafka.protocol.consumer import ListOffsetsRequest

    topic, part = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    found: dict[Partition, int] = {}
    for leader, some in _by_leader(partitions):
        topics = [
            topic(
                name=name,
                partitions=[
                    part(partition_index=p.partition, current_leader_epoch=-1, timestamp=timestamp) for p in of_topic
                ],
            )
            for name, of_topic in _by_topic(some)
        ]
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=topics, min_version=2, max_version=6
        )
        said = _of_partitions(client, request, leader)
        found |= {each: said[each.folder].offset for each in some if each.folder in said}
    return found


def active_producers(client: Client, partitions: Sequence[Partition]) -> dict[Partition, list[dict[str, Any]]]:
    """The producers that each leader knows, as `kafka-transactions.sh describe-producers` prints them.

    Partitions whose leader moved, or that this user may not read, are missing in the answer. Kafka:
    `DescribeProducersResponse`.
    """
    from kafka.protocol.admin.transactions import DescribeProducersRequest

    if client.version_of(DescribeProducersRequest) < 0:
        return {}
    topic = DescribeProducersRequest.TopicRequest
    found: dict[Partition, list[dict[str, Any]]] = {}
    for leader, some in _by_leader(partitions):
        topics = [
            topic(name=name, partition_indexes=[p.partition for p in of_topic]) for name, of_topic in _by_topic(some)
        ]
        said = _of_partitions(client, DescribeProducersRequest(topics=topics), leader, is_optional=True)
        with suppress(MovedError), reading(f"producers of broker {leader}"):
            found |= {
                each: [_producer(one) for one in said[each.folder].active_producers]
                for each in some
                if each.folder in said
            }
    return found


def _of_partitions(client: Client, request: Any, leader: int, *, is_optional: bool = False) -> dict[str, Any]:
    """What a leader says of each partition, without errors; nothing if it does not answer."""
    try:
        answer = client.ask(request, leader, is_optional=is_optional)
        with reading(f"broker {leader}"):
            return {
                f"{t.name}-{p.partition_index}": p for t in answer.topics for p in t.partitions if p.error_code == 0
            }
    except MovedError:
        return {}


def _producer(producer: Any) -> dict[str, Any]:
    """One producer; null where Kafka has -1."""
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": _or_null(producer.coordinator_epoch),
        "last_sequence": _or_null(producer.last_sequence),
        "last_timestamp_ms": _or_null(producer.last_timestamp),
        "current_transaction_start_offset": _or_null(producer.current_txn_start_offset),
    }


def _or_null(value: int) -> int | None:
    return None if value == -1 else int(value)


def listed_ids(client: Client, broker: int) -> list[str]:
    """The transactional ids that a broker coordinates. This user sees only those that it may describe."""
    from kafka.protocol.admin.transactions import ListTransactionsRequest

    if client.version_of(ListTransactionsRequest) < 0:
        return []
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], max_version=0)
    answer = client.ask(request, broker, is_optional=True)
    check(answer.error_code, f"transactions of broker {broker}")
    with reading(f"transactions of broker {broker}"):
        return [each.transactional_id for each in answer.transaction_states]


def hides_transactional_ids(client: Client) -> bool:
    """Whether this user may not describe every transactional id. Coordinators list only what it may, without saying so.

    Kafka: `KafkaApis.handleDescribeTransactionsRequest`, which refuses an id before it looks for it.
    """
    from kafka.protocol.admin.transactions import DescribeTransactionsRequest

    if client.version_of(DescribeTransactionsRequest) < 0:
        return False
    answer, _ = client.ask_any(DescribeTransactionsRequest(transactional_ids=[_NOBODYS_ID]), is_optional=True)
    with reading("transactional ids"):
        return any(each.error_code in REFUSED for each in answer.transaction_states)


def described_transactions(client: Client, broker: int, transactional_ids: Sequence[str]) -> list[dict[str, Any]]:
    """What a coordinator says about these ids, as `kafka-transactions.sh describe` prints it. Unknown ids are
    missing."""
    from kafka.protocol.admin.transactions import DescribeTransactionsRequest

    found: list[dict[str, Any]] = []
    for begin in range(0, len(transactional_ids), _AT_ONCE):
        request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids[begin : begin + _AT_ONCE]))
        answer = client.ask(request, broker, is_optional=True)
        with reading(f"transactions of broker {broker}"):
            found += [
                {
                    "transactional_id": each.transactional_id,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                    "state": each.transaction_state,
                    "transaction_timeout_ms": each.transaction_timeout_ms,
                    "transaction_start_ms": _or_null(each.transaction_start_time_ms),
                    "partitions": sorted(
                        f"{topic.topic}-{partition}" for topic in each.topics for partition in topic.partitions
                    ),
                }
                for each in answer.transaction_states
                if each.error_code == 0
            ]
    return found


def broker_settings(client: Client, broker: int) -> dict[str, str]:
    """The broker's own values of SETTINGS. Raises RefusedError if this user may not see them."""
    from kafka.protocol.admin.configs import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = resource(resource_type=_BROKER_RESOURCE, resource_name=str(broker), configuration_keys=list(SETTINGS))
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=False, include_documentation=False)
    answer = client.ask(request, broker, is_optional=True)
    with reading(f"settings of broker {broker}"):
        for result in answer.results:
            check(result.error_code, f"settings of broker {broker}")
        said = {each.name: each.value for result in answer.results for each in result.configs}
        return {name: said[name] for name in SETTINGS if said.get(name) is not None}


def _by_leader(partitions: Iterable[Partition]) -> list[tuple[int, list[Partition]]]:
    """Each living leader with its partitions, in requests of a limited size."""
    of_leader = grouped((each for each in partitions if each.leader != NO_LEADER), lambda each: each.leader)
    return [
        (leader, some[at : at + _AT_ONCE]) for leader, some in of_leader.items() for at in range(0, len(some), _AT_ONCE)
    ]


def _by_topic(partitions: Iterable[Partition]) -> Iterable[tuple[str, list[Partition]]]:
    return grouped(partitions, lambda each: each.topic).items()
