"""The candidates of the live tool: `kafka-transactions.sh find-hanging`, as its code selects them.

Kafka: `TransactionsCommand.FindHangingTransactionsCommand`. Where KIP-664 and the code differ, this is the code: it
compares neither epochs nor states, and measures age from the last write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from txnlib.core.instants import long_difference
from txnlib.errors import UsageError

MS_PER_MINUTE: Final = 60_000
DEFAULT_MAX_TRANSACTION_TIMEOUT_MINUTES: Final = 15


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What `find-hanging` searches: a topic, one of its partitions, the replicas on a broker, a combination, or everything."""

    topic: str | None = None
    partition: int | None = None
    broker_id: int | None = None

    def __post_init__(self) -> None:
        if self.partition is not None and self.topic is None:
            raise UsageError("--partition needs --topic")

    def check(self) -> None:
        """Raises UsageError for a scope that the live tool does not take: it searches no whole cluster."""
        if self.topic is None and self.broker_id is None:
            raise UsageError("find-hanging --format kafka needs --topic or --broker-id, as the tool does")

    def covers(self, topic: str, partition: int, replicas: frozenset[int]) -> bool:
        """A named partition is always searched; else every partition with a replica on the broker, not only those it leads."""
        if self.topic is not None and topic != self.topic:
            return False
        if self.partition is not None:
            return partition == self.partition
        return self.broker_id is None or self.broker_id in replicas


def is_candidate(last_timestamp: int | None, as_of_ms: int, max_transaction_timeout_ms: int) -> bool:
    """Whether the time since the last write of an open transaction is strictly above the timeout.

    True for a missing timestamp. For out-of-range times, the difference wraps around, as in the tool.
    """
    return last_timestamp is None or long_difference(as_of_ms, last_timestamp) > max_transaction_timeout_ms


def duration_minutes(last_timestamp: int, as_of_ms: int) -> int:
    """The tool's `Duration(min)`: whole minutes since the last write, truncated as Java's TimeUnit does."""
    silence = long_difference(as_of_ms, last_timestamp)
    minutes = abs(silence) // MS_PER_MINUTE
    return minutes if silence >= 0 else -minutes


#: (an id has this producer id now, it can be described, it lists the partition) -> hanging.
DECISIONS: Final[Mapping[tuple[bool, bool, bool], bool]] = {
    (False, False, False): True,
    (True, False, False): True,
    (True, True, False): True,
    (True, True, True): False,
}


def find_hanging(
    *, is_candidate: bool, is_id_known: bool, is_partition_listed: bool, are_coordinators_complete: bool
) -> bool | None:
    """Whether the live tool prints the row; None if a missing coordinator partition could change its answer.

    The live tool does not decide on partial information either: it fails while a coordinator is loading.
    """
    if not is_candidate:
        return False
    if not is_id_known and not are_coordinators_complete:
        return None
    return DECISIONS[is_id_known, is_id_known, is_id_known and is_partition_listed]
