"""Which command of Kafka's own tools does what? `kafka-transactions.sh`, with arguments that a shell may be given.

Kafka: `TransactionsCommand`; KIP-664, and for forceTerminateTransaction KIP-939.
"""

from __future__ import annotations

import shlex
from typing import Final

_TOOL: Final = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP"
#: From here on brokers describe producers, so that a start offset finds the transaction (KIP-664).
_DESCRIBES_PRODUCERS: Final = (2, 8)
#: From here on there is forceTerminateTransaction (KIP-939).
_FORCES_TERMINATION: Final = (4, 1)


def abort(topic: str, partition: int, start_offset: int) -> str:
    """Ends the open transaction that begins at an offset: the tool looks up its producer."""
    return f"{_TOOL} abort --topic {shlex.quote(topic)} --partition {partition} --start-offset {start_offset}"


def abort_on_old_brokers(topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int | None) -> str:
    """The same for brokers that cannot describe producers; an unknown coordinator epoch is 0, as the tool has it."""
    epoch = 0 if coordinator_epoch is None or coordinator_epoch < 0 else coordinator_epoch
    return (
        f"{_TOOL} abort --topic {shlex.quote(topic)} --partition {partition} --producer-id {producer_id} "
        f"--producer-epoch {producer_epoch} --coordinator-epoch {epoch}"
    )


def knows_describe_producers(kafka_version: str | None) -> bool:
    """Whether brokers of a version describe producers; True where the version is not known."""
    return _is_from(_DESCRIBES_PRODUCERS, kafka_version) is not False


def knows_force_terminate(kafka_version: str | None) -> bool | None:
    """Whether Kafka of a version has forceTerminateTransaction; None where the version is not known."""
    return _is_from(_FORCES_TERMINATION, kafka_version)


def _is_from(first: tuple[int, int], kafka_version: str | None) -> bool | None:
    numbers = [int(part) for part in (kafka_version or "").split(".")[:2] if part.isdigit()]
    return None if len(numbers) < 2 else tuple(numbers) >= first


def tool_version() -> str:
    """Prints the version of the tool."""
    return "kafka-transactions.sh --version"


def describe_producers(topic: str, partition: int) -> str:
    """Prints the producers of a partition, each with the start offset of its open transaction."""
    return f"{_TOOL} describe-producers --topic {shlex.quote(topic)} --partition {partition}"


def describe(transactional_id: str) -> str:
    """Prints what the coordinator of a transactional id holds."""
    return f"{_TOOL} describe --transactional-id {shlex.quote(transactional_id)}"


def find_hanging(topic: str, partition: int) -> str:
    """Prints what hangs in one partition."""
    return f"{_TOOL} find-hanging --topic {shlex.quote(topic)} --partition {partition}"


def force_terminate(transactional_id: str) -> str:
    """Has the coordinator abort what a transactional id has open; see `knows_force_terminate`."""
    return f"{_TOOL} forceTerminateTransaction --transactionalId {shlex.quote(transactional_id)}"
