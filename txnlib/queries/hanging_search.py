"""The rows that `find-hanging` would have printed, with any timeout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.find_hanging import MS_PER_MINUTE, SearchScope, duration_minutes, find_hanging, is_candidate
from txnlib.queries.collect_plan import READ, shows_absence
from txnlib.queries.producers import last_write_ms
from txnlib.queries.rows import Row, StoredRun
from txnlib.queries.transactional_ids import broker_id, rows_of_ids

TopicPartition = tuple[str, int]

_COLUMNS: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "last_timestamp",
    "last_timestamp_ms",
    "transactional_id",
    "verdict",
    "reason",
    "kafka_find_hanging",
)


@dataclass(frozen=True, slots=True)
class HangingSearch:
    """The hanging transactions of the searched partitions, and what else decides the order in which Kafka prints them."""

    scope: SearchScope
    as_of_ms: int
    #: Rows of open_transactions that the tool would print, each with its duration in minutes.
    hanging: Sequence[Row]
    #: Number of transactions that cannot be decided, because coordinator partitions are missing.
    undecided: int
    #: Brokers from which copies were captured.
    brokers: Collection[int]
    #: Searched partition -> number of its producers, for Kafka's order.
    producers: Mapping[TopicPartition, int]
    #: Number of producers with a transaction that is older than the timeout.
    candidates: int


def hanging_search(
    run: StoredRun, scope: SearchScope, timeout_minutes: int | None = None, *, with_order: bool = False
) -> HangingSearch:
    """The search of `find-hanging` over the captured copies; `with_order`: also what decides Kafka's order.

    `timeout_minutes`: default is the timeout of the audit.
    """
    audited_ms = int(run.settings["max_transaction_timeout_ms"])
    timeout_ms = audited_ms if timeout_minutes is None else timeout_minutes * MS_PER_MINUTE
    replicas = _replicas(run)
    searched = [place for place, brokers in replicas.items() if scope.covers(*place, brokers)]
    opened = [
        {**row, "last_timestamp_ms": last_write_ms(row)}
        for row in run.rows("open_transactions", _COLUMNS, order='"topic", "partition", "start_offset"')
        if scope.covers(row["topic"], row["partition"], replicas.get((row["topic"], row["partition"]), frozenset()))
    ]
    decisions = _decisions(run, opened, timeout_ms, audited_ms)
    producers = run.grouped("producer_states", ("topic", "partition"), "count(*)") if with_order else {}
    return HangingSearch(
        scope,
        run.as_of_ms,
        [_with_duration(row, run.as_of_ms) for row, hangs in zip(opened, decisions, strict=True) if hangs],
        undecided=decisions.count(None),
        brokers=frozenset().union(*replicas.values()),
        producers={place: producers.get(place, 0) for place in searched},
        candidates=len({row["producer_id"] for row in opened if is_candidate(row["last_timestamp_ms"], run.as_of_ms, timeout_ms)}),
    )


def _with_duration(row: Row, as_of_ms: int) -> Row:
    has_time = row["last_timestamp"] is not None
    return {**row, "duration_minutes": duration_minutes(row["last_timestamp_ms"], as_of_ms) if has_time else None}


def _replicas(run: StoredRun) -> dict[TopicPartition, frozenset[int]]:
    """The brokers from which a copy of each partition was captured."""
    replicas: dict[TopicPartition, frozenset[int]] = {}
    for row in run.rows("coverage", ("topic", "partition", "broker"), [("status", "<>", "MISSING")]):
        place, broker = (row["topic"], row["partition"]), broker_id(row["broker"])
        replicas[place] = replicas.get(place, frozenset()) | ({broker} if broker is not None else set())
    return replicas


def _decisions(run: StoredRun, opened: Sequence[Row], timeout_ms: int, audited_ms: int) -> list[bool | None]:
    """The decision of the audit if it has one; for transactions too young for the audit, the steps of the tool over the tables."""
    if timeout_ms >= audited_ms:
        return [row["kafka_find_hanging"] and is_candidate(row["last_timestamp_ms"], run.as_of_ms, timeout_ms) for row in opened]
    producer_ids = {row["producer_id"] for row in opened}
    owners = rows_of_ids(run, ("producer_id", "IN", producer_ids)) if opened else []
    listed = {row["producer_id"]: row["partitions"] for row in owners}
    are_complete = _are_coordinators_complete(run)
    return [
        row["kafka_find_hanging"]
        if is_candidate(row["last_timestamp_ms"], run.as_of_ms, audited_ms)
        else find_hanging(
            is_candidate=is_candidate(row["last_timestamp_ms"], run.as_of_ms, timeout_ms),
            is_id_known=row["producer_id"] in listed,
            is_partition_listed={"topic": row["topic"], "partition": row["partition"]} in listed.get(row["producer_id"], []),
            are_coordinators_complete=are_complete,
        )
        for row in opened
    ]


def _are_coordinators_complete(run: StoredRun) -> bool:
    """Whether every coordinator partition has a copy that proves which ids it does not contain."""
    copies: dict[int, list[Row]] = {}
    for row in run.rows("coverage", ("partition", *READ), [("topic", "=", TRANSACTION_STATE_TOPIC)]):
        copies.setdefault(row["partition"], []).append(row)
    return bool(copies) and all(map(shows_absence, copies.values()))
