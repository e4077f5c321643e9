"""The output of the commands that Kafka's own tool has: `list`, `describe`, `describe-producers` and `find-hanging`."""

from __future__ import annotations

from typing import Final

from txnlib.queries.hanging_search import HangingSearch
from txnlib.queries.producers import Producers
from txnlib.queries.rows import Row
from txnlib.queries.transactional_ids import TransactionalIds
from txnlib.render import kafka_table
from txnlib.render.command_output import CommandOutput

LIST: Final = (
    "transactional_id",
    "coordinator",
    "coordinator_partition",
    "producer_id",
    "producer_epoch",
    "state",
    "partitions",
)
DESCRIBE: Final = (
    "coordinator",
    "transactional_id",
    "coordinator_partition",
    "producer_id",
    "producer_epoch",
    "state",
    "transaction_timeout_ms",
    "transaction_start",
    "duration_ms",
    "partitions",
)
DESCRIBE_PRODUCERS: Final = (
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "last_sequence",
    "last_timestamp",
    "current_transaction_start_offset",
)
FIND_HANGING: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "last_timestamp",
    "duration_minutes",
    "transactional_id",
    "verdict",
    "reason",
)
#: Position of a row whose first record is unknown.
_LAST: Final = 1 << 62


def list_output(ids: TransactionalIds) -> CommandOutput:
    """`list`. A note counts the ids that pass a filter by duration without a known start."""
    in_order = sorted(ids.rows, key=lambda row: ids.first_offsets.get(row["transactional_id"], _LAST))
    notes = []
    if ids.without_start:
        notes.append(f"{ids.without_start} of these have no known start, and pass every --duration-filter, as on a broker")
    return CommandOutput(LIST, ids.rows, kafka=lambda: kafka_table.list_table(in_order), notes=notes)


def describe_output(row: Row, as_of_ms: int) -> CommandOutput:
    """`describe`: one transactional id."""
    return CommandOutput(DESCRIBE, [row], kafka=lambda: kafka_table.describe_table(row, as_of_ms))


def describe_producers_output(producers: Producers) -> CommandOutput:
    """`describe-producers`."""
    in_order = sorted(producers.rows, key=lambda row: producers.first_offsets.get(row["producer_id"], _LAST))
    return CommandOutput(DESCRIBE_PRODUCERS, producers.rows, kafka=lambda: kafka_table.describe_producers_table(in_order))


def find_hanging_output(search: HangingSearch) -> CommandOutput:
    """`find-hanging`. Notes name a searched broker without copies, and the number of undecided transactions."""
    notes = []
    broker = search.scope.broker_id
    if broker is not None and broker not in search.brokers:
        notes.append(f"no copy of broker {broker} was audited, only of {sorted(search.brokers)}")
    if search.undecided:
        missing = "coordinator partitions are missing (txn-audit coverage)"
        notes.append(f"{search.undecided} open transactions cannot be decided: {missing}")
    return CommandOutput(
        FIND_HANGING,
        search.hanging,
        kafka=lambda: kafka_table.find_hanging_table(
            search.hanging, search.as_of_ms, producers=search.producers, candidates=search.candidates
        ),
        notes=notes,
    )
