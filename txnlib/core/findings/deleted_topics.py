"""Findings about transactions that still list a partition of a deleted topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.kafka.transaction_log import TopicPartition

#: A record that is this much older than the checkpoints was written when they would have listed the partition: brokers write them
#: every five seconds (`replica.high.watermark.checkpoint.interval.ms`), and clocks may differ.
CHECKPOINTED_WITHIN_MS: Final = 60_000
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class GoneCopy:
    """A row of `coverage`: whether checkpoints prove that the topic is deleted."""

    topic: str
    partition: int
    is_gone: bool | None
    checkpointed_at_ms: int | None


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """A row of `partition_assignments`."""

    topic: str
    partition: int
    topic_id: str | None
    is_current: bool | None
    until_ms: int | None


def deleted_partitions(
    coverage: Sequence[GoneCopy], partition_assignments: Sequence[TopicAssignment]
) -> dict[tuple[str, int], int]:
    """The partitions of deleted topics, each with the instant, in epoch ms, before which it existed."""
    gone = [
        (copy.topic, copy.partition, copy.checkpointed_at_ms - CHECKPOINTED_WITHIN_MS)
        for copy in coverage
        if copy.is_gone and copy.checkpointed_at_ms is not None
    ]
    # A topic that was created again has other partitions, even if they have the same names.
    states: dict[tuple[str, int, str | None], list[TopicAssignment]] = defaultdict(list)
    for each in partition_assignments:
        states[each.topic, each.partition, each.topic_id].append(each)
    for (topic, partition, _), of_topic in states.items():
        until = [each.until_ms for each in of_topic if each.until_ms is not None]
        if until and not any(each.is_current for each in of_topic):
            gone.append((topic, partition, max(until) - CLOCKS_DIFFER_MS))
    latest: dict[tuple[str, int], int] = {}
    for topic, partition, ms in gone:
        latest[topic, partition] = max(latest.get((topic, partition), ms), ms)
    return latest


def listed_deleted(
    state: str, partitions: Sequence[TopicPartition], record_ms: int | None, deleted: Mapping[tuple[str, int], int]
) -> str | None:
    """Which partitions of deleted topics the last record of an id with a transaction lists; None if there are none.

    Kafka: `KafkaApis.handleAddPartitionsToTxn` rejects a partition that does not exist, so it existed when it was added;
    `TransactionMarkerChannelManager` drops it when the transaction ends.
    """
    written_ms = clock_ms(record_ms)
    if written_ms is None:
        return None
    names = sorted({str(each) for each in partitions if written_ms < deleted.get((each.topic, each.partition), 0)})
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{state} with {', '.join(names[:_SHOWN])}{more}" if names else None
