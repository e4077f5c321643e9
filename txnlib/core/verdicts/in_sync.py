"""Partitions with too few replicas in sync, where nothing is written.

Kafka: `Partition.appendRecordsToLeader` throws NotEnoughReplicasException, which coordinators retry for ever
(`TransactionStateManager.appendTransactionToLog`, `TransactionMarkerRequestCompletionHandler.onComplete`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.cluster_metadata import ClusterSetting, PartitionAssignment
from txnlib.core.display import counted, instant
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC

_SETTING: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFewInSync:
    """A partition that refuses every write of a coordinator, as the metadata log shows it."""

    topic: str
    partition: int
    minimum: int
    in_sync: tuple[int, ...]
    away: tuple[int, ...]
    #: Since when, by the controller's clock, and where the log says so; None: only a snapshot shows it.
    since_ms: int | None
    since_offset: int | None

    @property
    def says(self) -> str:
        where = f"a snapshot of {CLUSTER_METADATA_TOPIC}"
        if self.since_offset is not None:
            where = f"offset {self.since_offset} of {CLUSTER_METADATA_TOPIC}, {instant(self.since_ms)}"
        few = counted(len(self.in_sync), "replica")
        return (
            f"{where}: {self.topic}-{self.partition} has {few} in sync, {_SETTING} is {self.minimum}, and"
            f" {_brokers(self.away)} {'is' if len(self.away) == 1 else 'are'} not in sync"
        )

    @property
    def remedy(self) -> str:
        """What helps."""
        return (
            f"bring {_brokers(self.away)} back, until {self.minimum} replicas of {self.topic}-{self.partition} are in"
            f" sync; or lower {_SETTING} of {self.topic}, knowing that what only {_brokers(self.in_sync)} has may then"
            " be lost"
        )


def too_few_in_sync(states: Sequence[PartitionAssignment], minimums: Mapping[str | None, int]) -> TooFewInSync | None:
    """Whether a partition has too few replicas in sync now. `states`: in order. `minimums`: topic -> its setting; None:
    that of the brokers."""
    now = states[-1] if states else None
    if now is None or not now.is_current or now.isr is None or now.leader is None:
        return None
    minimum = minimums.get(now.topic, minimums.get(None))
    if minimum is None or len(now.isr) >= minimum:
        return None
    since = now
    for each in reversed(states):
        if each.isr is None or len(each.isr) >= minimum:
            break
        since = each
    return TooFewInSync(
        topic=now.topic,
        partition=now.partition,
        minimum=minimum,
        in_sync=tuple(now.isr),
        away=tuple(each for each in now.replicas or () if each not in now.isr),
        since_ms=since.since_ms,
        since_offset=since.since_offset,
    )


def minimums(settings: Iterable[ClusterSetting]) -> dict[str | None, int]:
    """Topic -> its `min.insync.replicas`, as far as dynamic settings show it; None: the default of all brokers."""
    now = [each for each in settings if each.name == _SETTING and each.is_current and (each.value or "").isdecimal()]
    of_brokers = [each for each in now if each.scope == "BROKER" and each.scope_name is None]
    of_topics = [each for each in now if each.scope == "TOPIC"]
    return {each.scope_name: int(each.value or 0) for each in (*of_brokers, *of_topics)}


def _brokers(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"brokers {', '.join(others)} and {last}" if others else f"broker {last}"
