"""Tables as `kafka-transactions.sh` prints them: the same columns, cells, padding and order.

Kafka: `TransactionsCommand`. Rows come as dictionaries with the columns of the tables; instants as epoch ms (`*_ms`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from txnlib.ask.queries import Row, column_names
from txnlib.core.display import printable
from txnlib.core.kafka.coordinator_partition import java_string_hash
from txnlib.core.kafka.wire import on_disk
from txnlib.core.kafka_commands import duration_minutes
from txnlib.core.rows import grouped

LIST: Final = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBE: Final = column_names(
    "CoordinatorId TransactionalId ProducerId ProducerEpoch TransactionState TransactionTimeoutMs "
    "CurrentTransactionStartTimeMs TransactionDurationMs TopicPartitions"
)
DESCRIBE_PRODUCERS: Final = column_names(
    "ProducerId ProducerEpoch LatestCoordinatorEpoch LastSequence LastTimestamp CurrentTransactionStartOffset"
)
FIND_HANGING: Final = column_names(
    "Topic Partition ProducerId ProducerEpoch CoordinatorEpoch StartOffset LastTimestamp Duration(min)"
)


def list_table(rows: Iterable[Row]) -> str:
    """`list`: by broker, then by the coordinator partitions that it leads, then in the order of the rows."""
    by_place = grouped(rows, lambda row: (on_disk(row["coordinator"]), row["coordinator_partition"]))
    cells = [
        (row["transactional_id"], on_disk(row["coordinator"]), row["producer_id"], row["state"])
        for place in sorted(by_place)
        for row in hash_order(by_place[place], lambda row: java_string_hash(row["transactional_id"]))
    ]
    return pretty_table(LIST, cells)


def describe_table(row: Row, as_of_ms: int) -> str:
    """`describe`: one transactional id. Kafka prints the duration up to its own clock; here it is up to `as_of_ms`."""
    start = row["transaction_start_ms"]
    names = hash_order(row["partitions"], lambda place: partition_hash(place["topic"], place["partition"]))
    cells = (
        on_disk(row["coordinator"]),
        row["transactional_id"],
        row["producer_id"],
        row["producer_epoch"],
        row["state"],
        row["transaction_timeout_ms"],
        "None" if start is None else start,
        "None" if start is None else as_of_ms - start,
        ",".join(f"{place['topic']}-{place['partition']}" for place in names),
    )
    return pretty_table(DESCRIBE, [cells])


def describe_producers_table(rows: Iterable[Row]) -> str:
    """`describe-producers`, of producers in the order in which the partition first saw them."""
    cells = [
        (
            row["producer_id"],
            row["producer_epoch"],
            on_disk(row["coordinator_epoch"]),
            on_disk(row["last_sequence"]),
            on_disk(row["last_timestamp_ms"]),
            "None" if row["current_transaction_start_offset"] is None else row["current_transaction_start_offset"],
        )
        for row in hash_order(rows, lambda row: long_hash(row["producer_id"]))
    ]
    return pretty_table(DESCRIBE_PRODUCERS, cells)


def find_hanging_table(
    rows: Iterable[Row], as_of_ms: int, *, producers: Mapping[tuple[str, int], int], candidates: int = 0
) -> str:
    """`find-hanging`. The tool collects open transactions from partitions, which have `producers` producers each, then
    groups them by producer into `candidates`; `rows` are the hanging ones.
    """
    by_partition = grouped(rows, lambda row: (row["topic"], row["partition"]))
    by_producer: dict[int, list[Row]] = {}
    for place in hash_order(
        by_partition, lambda place: partition_hash(*place), holds=max(len(producers), len(by_partition)), least=1
    ):
        for row in hash_order(
            by_partition[place],
            lambda row: long_hash(row["producer_id"]),
            holds=max(producers.get(place, 0), len(by_partition[place])),
        ):
            by_producer.setdefault(row["producer_id"], []).append(row)
    # The tool groups with `computeIfAbsent`, which puts a new entry at the front of a bucket and resizes one entry
    # later.
    newest_first = list(by_producer)[::-1]
    entries = max(candidates, len(by_producer)) - 1
    cells = [
        (
            row["topic"],
            row["partition"],
            row["producer_id"],
            row["producer_epoch"],
            on_disk(row["coordinator_epoch"]),
            row["start_offset"],
            on_disk(row["last_timestamp_ms"]),
            duration_minutes(on_disk(row["last_timestamp_ms"]), as_of_ms),
        )
        for producer_id in hash_order(newest_first, long_hash, holds=entries)
        for row in by_producer[producer_id]
    ]
    return pretty_table(FIND_HANGING, cells)


def pretty_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Cells padded to the widest of their column, each followed by a tab. Kafka:
    `TransactionsCommand.prettyPrintTable`."""
    table = [list(headers)]
    for row in rows:  # no character can forge a line; a tab is printed unchanged, as by the tool
        table.append(["\t".join(map(printable, str(value).split("\t"))) for value in row])
    widths = [max(_length(row[index]) for row in table) for index in range(len(headers))]
    lines = [
        "".join(cell + " " * (width - _length(cell)) + "\t" for cell, width in zip(row, widths, strict=True))
        for row in table
    ]
    return "".join(f"{line}\n" for line in lines)


def _length(cell: str) -> int:
    """Java's `String.length`: UTF-16 code units."""
    return len(cell.encode("utf-16-le", "surrogatepass")) // 2


# ---- The row order of Kafka's tool: that of the Java hash tables in which it collects rows


Item = TypeVar("Item")
_INT = 0xFFFFFFFF


def long_hash(value: int) -> int:
    """Java's `Long.hashCode`."""
    return (value ^ value >> 32) & _INT


def partition_hash(topic: str, partition: int) -> int:
    """Kafka's `TopicPartition.hashCode`."""
    return (31 * (31 + partition) + java_string_hash(topic)) & _INT


def hash_order(
    items: Iterable[Item], hash_of: Callable[[Item], int], *, holds: int | None = None, least: int = 16
) -> list[Item]:
    """The items in the iteration order of a `HashMap`; `items` are in the order of insertion.

    The map has grown from `least` buckets to its size: the number of items, or `holds` if it contained further ones.
    """
    kept = list(items)
    size = least
    while (len(kept) if holds is None else holds) > size * 3 // 4:  # Java's load factor
        size *= 2

    def bucket(item: Item) -> int:
        value = hash_of(item) & _INT
        return (value ^ value >> 16) & (size - 1)

    return sorted(kept, key=bucket)
