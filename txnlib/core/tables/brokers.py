"""`brokers`: the values of each broker's own metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.copies import CoverageRow, highest_of
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import OnPartition
from txnlib.core.schema import row_class


@dataclass(frozen=True, slots=True)
class LatePartition(OnPartition):
    """A row of `partitions`."""

    is_late: bool


@dataclass(frozen=True, slots=True)
class CoordinatedId:
    """A row of `transactional_ids`."""

    coordinator_partition: int
    state: str
    transaction_start_ms: int | None


BrokerMetrics: Final = row_class("brokers")


def brokers(
    coverage: Sequence[CoverageRow],
    partitions: Sequence[LatePartition],
    transactional_ids: Sequence[CoordinatedId],
    *,
    as_of_ms: int,
) -> Iterator[Any]:
    """A row for each broker with a copy.

    Kafka: the gauge `PartitionsWithLateTransactionsCount` of ReplicaManager, over the partitions that the broker leads,
    and KIP-939's `active-transaction-open-time-max` over its coordinators (Ongoing only; prepared transactions are
    decided).
    """
    # A broker may have several copies of a partition: coordinators before and after the others, or a text as well.
    held: dict[str, dict[tuple[str, int], list[CoverageRow]]] = defaultdict(lambda: defaultdict(list))
    for copy in coverage:
        if copy.broker is not None and copy.status != "MISSING":
            held[copy.broker][copy.topic, copy.partition].append(copy)
    late = {(each.topic, each.partition) for each in partitions if each.is_late}
    open_ms = highest_of(
        ((TRANSACTION_STATE_TOPIC, each.coordinator_partition), max(as_of_ms - each.transaction_start_ms, 0))
        for each in transactional_ids
        if each.state == TransactionState.ONGOING.kafka_name and each.transaction_start_ms is not None
    )
    for broker, copies in held.items():
        led = {place for place, each in copies.items() if any(map(_leads, each))}
        yield BrokerMetrics(
            as_of_ms=as_of_ms,
            broker=broker,
            is_leadership_assumed=any(copy.is_leader is None for each in copies.values() for copy in each),
            replicas=len(copies),
            partitions_led=len(led),
            partitions_with_late_transactions=len(led & late),
            coordinators_led=sum(topic == TRANSACTION_STATE_TOPIC for topic, _partition in led),
            active_transaction_open_time_max_ms=max(
                (open_ms[place] for place in led if place in open_ms), default=None
            ),
        )


def _leads(copy: CoverageRow) -> bool:
    """Whether the copy's broker leads the partition. Where leaders are not noted, the judged copy counts as the
    leader's."""
    return copy.is_judged if copy.is_leader is None else copy.is_leader
