"""Kafka's own tools: their commands, quoted, with permissions, and what they print.

Kafka: `TransactionsCommand`; KIP-664, and for forceTerminateTransaction KIP-939. `kafka-transactions.sh` queries
brokers, so a command requires a version of the brokers, of the tool, or both.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import BOOTSTRAP
from txnlib.core.instants import long_difference
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC, is_confluent, is_from
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.errors import UsageError

#: Characters that `printf`, or the quotes around its argument, may read as something else than themselves.
_SPECIAL: Final = frozenset("\\%'-!")


def word(text: str) -> str:
    """The word for a text. Raises ValueError if it cannot be written on a command line (`refusal`)."""
    why = refusal(text)
    if why is not None:
        raise ValueError(why)
    if text.isprintable():
        return shlex.quote(text)
    return f"\"$(printf '{''.join(map(_escaped, text))}')\""


def option(name: str, value: str) -> str:
    """An option with its value, as words. Raises ValueError as `word` does."""
    return f"{name}{'=' if value.startswith('-') else ' '}{word(value)}"


def with_places(command: str, places: Sequence[str], options: str) -> str:
    """A command with positional arguments and options. Options come first if an argument looks like one. Raises as
    `word` does."""
    words = " ".join(map(word, places))
    is_odd = any(place.startswith("-") for place in places)
    return " ".join(filter(None, (command, options, "--", words) if is_odd else (command, words, options)))


def refusal(text: str) -> str | None:
    """Why a text cannot be written on a command line; None if it can."""
    if "\0" in text:
        return "it holds a NUL character, at which an argument ends"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "it holds half a surrogate pair, which UTF-8 cannot write"
    if text.endswith("\n"):
        return "it holds a line feed at its end, which a shell takes away"
    return None


def _escaped(character: str) -> str:
    if character.isprintable() and character not in _SPECIAL:
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())


# ---- Commands of Kafka's tools


_TOOL: Final = f"kafka-transactions.sh {BOOTSTRAP}"
#: First version of brokers that describe producers and transactions, so a start offset identifies a transaction
#: (KIP-664).
_DESCRIBES_PRODUCERS: Final = (3, 0)
#: First version of the tool with forceTerminateTransaction (KIP-939). It works with all brokers: it is
#: `Admin.fenceProducers`.
_FORCES_TERMINATION: Final = (4, 1)

#: Command -> the permissions that it needs.
ACLS: Final[Mapping[str, str]] = {
    "abort": "ClusterAction on the cluster, or Alter on it (newer brokers)",
    "describe-producers": "Read on the topic",
    "describe": "Describe on the transactional id",
    "find-hanging": "Read on the topic, Describe on transactional ids",
    "forceTerminateTransaction": "Write on the transactional id",
    "kafka-leader-election.sh": "Alter on the cluster",
}


def permissions(commands: Iterable[str]) -> list[str]:
    """What these commands need, once for each kind of command."""
    given = list(commands)
    return [
        f"{name} needs {needs}"
        for name, needs in ACLS.items()
        if any(f"{BOOTSTRAP} {name} " in each or each.startswith(name.removesuffix(".sh")) for each in given)
    ]


#: The name of a tool, at the beginning of a command.
_ENDING: Final = re.compile(r"^(kafka-[a-z-]+)\.sh ")


def named(command: str, kafka_version: str | None) -> str:
    """The command with the name that its tool has in that version: those of Confluent Platform have no `.sh`."""
    return _ENDING.sub(r"\1 ", command) if is_confluent(kafka_version) else command


def cannot_name(topic: str, transactional_id: str | None = None) -> str | None:
    """Why a command cannot contain a topic or an id; None if it can. The functions below raise ValueError for such a
    name."""
    for what, name in (("topic", topic), ("transactional id", transactional_id)):
        why = None if name is None else refusal(name)
        if why is not None:
            return f"no command line can carry its {what}: {why}; use Kafka's Admin API"
    return None


def abort(topic: str, partition: int, start_offset: int) -> str:
    """Aborts the open transaction that begins at an offset. The tool looks up its producer. Brokers 3.0 and newer."""
    return f"{_TOOL} abort {option('--topic', topic)} --partition {partition} --start-offset {start_offset}"


def abort_on_old_brokers(
    topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int | None
) -> str:
    """As `abort`, for brokers that cannot describe producers. An unknown coordinator epoch is 0, as in the tool."""
    epoch = 0 if coordinator_epoch is None or coordinator_epoch < 0 else coordinator_epoch
    return (
        f"{_TOOL} abort {option('--topic', topic)} --partition {partition} --producer-id {producer_id} "
        f"--producer-epoch {producer_epoch} --coordinator-epoch {epoch}"
    )


def knows_describe_producers(kafka_version: str | None) -> bool:
    """Whether brokers of a version describe producers; True if the version is unknown."""
    return is_from(_DESCRIBES_PRODUCERS, kafka_version) is not False


def is_version_known(kafka_version: str | None) -> bool:
    """Whether the version shows which form of a command the brokers understand."""
    return is_from(_DESCRIBES_PRODUCERS, kafka_version) is not None


def knows_force_terminate(kafka_version: str | None) -> bool | None:
    """Whether the tool of a version has forceTerminateTransaction; None if the version is unknown."""
    return is_from(_FORCES_TERMINATION, kafka_version)


def tool_version() -> str:
    """Prints the version of the tool."""
    return "kafka-transactions.sh --version"


def describe_producers(topic: str, partition: int) -> str:
    """Prints the producers of a partition, each with the start offset of its open transaction. Brokers 3.0 and
    newer."""
    return f"{_TOOL} describe-producers {option('--topic', topic)} --partition {partition}"


def describe(transactional_id: str) -> str:
    """Prints the state of a transactional id at its coordinator. Brokers 3.0 and newer."""
    return f"{_TOOL} describe {option('--transactional-id', transactional_id)}"


def find_hanging(topic: str, partition: int) -> str:
    """Prints the hanging transactions of one partition. Brokers 3.0 and newer."""
    return f"{_TOOL} find-hanging {option('--topic', topic)} --partition {partition}"


def force_terminate(transactional_id: str) -> str:
    """Makes the coordinator abort the open transaction of a transactional id. Tool 4.1 or newer, any brokers."""
    return f"{_TOOL} forceTerminateTransaction {option('--transactionalId', transactional_id)}"


def describe_coordinators() -> str:
    """Prints the leader of every coordinator partition."""
    return f"kafka-topics.sh {BOOTSTRAP} --describe --topic {TRANSACTION_STATE_TOPIC}"


def move_coordinator(coordinator_partition: int) -> str:
    """Makes the preferred replica the leader of a coordinator partition. The new leader loads the log and resends its
    markers."""
    return (
        f"kafka-leader-election.sh {BOOTSTRAP} --election-type PREFERRED --topic {TRANSACTION_STATE_TOPIC} "
        f"--partition {coordinator_partition}"
    )


# ---- The rows of `find-hanging`, as its code selects them

# Kafka: `TransactionsCommand.FindHangingTransactionsCommand`. Where KIP-664 and the code differ, this is the code: it
# compares neither epochs nor states, and measures age from the last write.


MS_PER_MINUTE: Final = 60_000


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What `find-hanging` searches: a topic, one of its partitions, the replicas on a broker, a combination, or
    everything."""

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
        """A named partition is always searched; else every partition with a replica on the broker, not only those it
        leads."""
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


def is_printed(
    *, is_candidate: bool, is_id_known: bool, is_partition_listed: bool, are_coordinators_complete: bool
) -> bool | None:
    """Whether the live tool prints the row; None if a missing coordinator partition could change its answer.

    The live tool does not decide on partial information either: it fails while a coordinator is loading.
    """
    if not is_candidate:
        return False
    if not is_id_known and not are_coordinators_complete:
        return None
    return not (is_id_known and is_partition_listed)


# ---- What they must print


def producer_row(producer_id: int, start_offset: int | None) -> str:
    """The row of a producer that `describe-producers` must print, in words; None: with nothing open."""
    return f"producer {producer_id} with CurrentTransactionStartOffset {start_offset}"


def nothing_of(topic: str, partition: int, producer_id: int) -> str:
    """What a coordinator must show before an abort by hand, in words: that it will not end the transaction."""
    return (
        f"no {topic}-{partition} among TopicPartitions, and no {TransactionState.PREPARE_COMMIT.kafka_name} of producer"
        f" {producer_id}"
    )


def hanging_row(producer_id: int, start_offset: int) -> str:
    """The row of an open transaction that the live tool finds, in words."""
    return f"a row of producer {producer_id} with StartOffset {start_offset}"
