"""The place of a batch among its coordinator's records. The protocol decides where clocks cannot.

A partition is added to a transaction before it is written to. A transaction is decided before it is marked, and marked before it
is finished. The type and time of a marker show which decision it carries out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES
from txnlib.queries.rows import Row

_ACTIVE: Final = frozenset(state.kafka_name for state in ACTIVE_STATES)
COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)
_PREPARED: Final = frozenset(state.kafka_name for state in PREPARED_STATES)
EVER: Final = 1 << 62

#: Sort key of a step: ms by a broker's clock, then a rank.
Key = tuple[int, int]
DECISION, BEFORE_IT, BATCH, COMPLETION = 0, -1, 1, 2


@dataclass(frozen=True, slots=True)
class ExplainedPlace:
    """The transaction to explain."""

    topic: str
    partition: int
    producer_id: int
    start_offset: int


def limits(place: ExplainedPlace, batches: Sequence[Row], records: Sequence[Row]) -> list[tuple[Key, Key]]:
    """The smallest and the largest possible key of each batch of a producer, by offset."""
    keys: list[tuple[Key, Key]] = []
    marker: Row | None = None
    for batch in reversed(batches):
        if batch["is_control"]:
            marker = batch
            keys.append(_around_marker(place, batch, records))
        else:
            keys.append(_around_data(place, marker, records))
    return keys[::-1]


def _decision_of(place: ExplainedPlace, marker: Row, records: Sequence[Row]) -> Row | None:
    """The Prepare record of a marker: the newest before it whose transaction was not finished yet."""
    at, kind = clock_ms(marker["max_timestamp_ms"]), marker["control_type"]
    if at is None:
        return None
    prepared = [
        record
        for record in records
        if record["state"] in _PREPARED
        and record["timestamp_ms"] is not None
        and record["timestamp_ms"] <= at + CLOCKS_DIFFER_MS
        and record["producer_id"] == place.producer_id
        and (kind is None or record["state"] == f"Prepare{kind.capitalize()}")
        and lists(record, place)
    ]
    newest = max(prepared, key=lambda record: int(record["timestamp_ms"]), default=None)
    return None if newest is None or _finished_ms(newest, records) < at - CLOCKS_DIFFER_MS else newest


def _finished_ms(decision: Row, records: Sequence[Row]) -> int:
    """When the transaction was finished, if the records show it."""
    ends = [
        record["timestamp_ms"]
        for record in records
        if record["state"] in COMPLETE
        and record["transaction_number"] == decision["transaction_number"]
        and record["timestamp_ms"] is not None
    ]
    return min(ends, default=EVER)


def _around_marker(place: ExplainedPlace, marker: Row, records: Sequence[Row]) -> tuple[Key, Key]:
    decision = _decision_of(place, marker, records)
    if decision is None:
        return (-EVER, 0), (EVER, 0)
    return (decision["timestamp_ms"], BATCH), (_finished_ms(decision, records), BATCH)


def _around_data(place: ExplainedPlace, marker: Row | None, records: Sequence[Row]) -> tuple[Key, Key]:
    decision = _last(records) if marker is None else _decision_of(place, marker, records)
    if decision is None or decision["state"] not in _ACTIVE or not lists(decision, place):
        return (-EVER, 0), (EVER, 0)
    added = [
        record["timestamp_ms"]
        for record in records
        if record["state"] == "Ongoing"
        and record["transaction_number"] == decision["transaction_number"]
        and record["timestamp_ms"] is not None
        and lists(record, place)
    ]
    lowest = (min(added), BATCH) if added else (-EVER, 0)
    is_decided = decision["state"] in _PREPARED and decision["timestamp_ms"] is not None
    return lowest, (decision["timestamp_ms"], BEFORE_IT) if is_decided else (EVER, 0)


def _last(records: Sequence[Row]) -> Row | None:
    return records[-1] if records else None


def lists(record: Row, place: ExplainedPlace) -> bool:
    """Whether a coordinator record lists the partition."""
    return any(p["topic"] == place.topic and p["partition"] == place.partition for p in record["partitions"] or ())
