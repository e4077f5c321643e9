"""The order of events, and the last stable offset after each."""

from __future__ import annotations

import random
from typing import Any

import pytest

from txnlib.ask.timeline_events import Event, coordinator_events, decisions, in_order, partition_events, started, touching

P0 = {"topic": "orders", "partition": 0}
P1 = {"topic": "orders", "partition": 1}


def span(first: int | None, marker: int | None, **more: Any) -> dict[str, Any]:
    """A transaction of producer 7; its marker is written at the millisecond of its offset."""
    known = {"producer_id": 7, "producer_epoch": 0, "first_offset": first, "last_offset": first, "marker_offset": marker}
    clocks = {"marker_ms": marker, "first_timestamp_ms": first, "is_broker_clock": False}
    return {**known, **clocks, "marker_type": None if marker is None else "COMMIT", "marker_epoch": 0, **more}


def record(
    offset: int, at: int | None, state: str | None, number: int | None = 1, partitions: Any = (P0,), **more: Any
) -> dict[str, Any]:
    row = {"transactional_id": "pay", "coordinator_partition": 3, "offset": offset, "timestamp_ms": at, "state": state}
    rest = {"is_tombstone": state is None, "transaction_number": number, "producer_id": 7, "producer_epoch": 0}
    return {**row, **rest, "partitions": list(partitions), **more}


def seen(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.event, event.offset) for event in events]


def test_the_last_stable_offset_is_the_lowest_that_is_open_else_the_end():
    spans = [span(10, 40), span(20, 30, producer_id=8), span(50, None)]
    events = partition_events("orders-0", spans, {}, {}, 0)
    assert [(event.offset, event.last_stable_offset) for event in events] == [(10, 10), (20, 10), (30, 10), (40, 41), (50, 50)]


@pytest.mark.parametrize("seed", range(20))
def test_the_last_stable_offset_is_that_of_a_replay_of_the_log(seed):
    """An oracle that walks the offsets one by one, over random overlapping transactions."""
    chance = random.Random(seed)
    offsets = iter(sorted(chance.sample(range(1_000), 60)))
    log: dict[int, tuple[str, int]] = {}
    opened: dict[int, int] = {}
    spans = []
    for offset in offsets:
        producer = chance.randrange(5)
        if producer in opened:
            spans.append(span(opened.pop(producer), offset, producer_id=producer))
        else:
            opened[producer] = offset
    spans += [span(first, None, producer_id=producer) for producer, first in opened.items()]
    chance.shuffle(spans)
    for row in spans:
        log[row["first_offset"]] = ("open", row["first_offset"])
        if row["marker_offset"] is not None:
            log[row["marker_offset"]] = ("close", row["first_offset"])
    alive: list[int] = []
    expected = []
    for offset in sorted(log):
        kind, first = log[offset]
        alive = [*alive, first] if kind == "open" else [each for each in alive if each != first]
        expected.append((offset, min(alive) if alive else offset + 1))
    events = partition_events("orders-0", spans, {}, {}, 0)
    assert [(event.offset, event.last_stable_offset) for event in events] == expected


def test_below_what_is_at_hand_no_last_stable_offset_is_told():
    events = partition_events("orders-0", [span(10, 20), span(30, 40)], {}, {}, 20)
    assert [event.last_stable_offset for event in events] == [None, 21, 30, 41]


@pytest.mark.parametrize("claimed", [0, 5, 25, 10**15, None])
def test_a_log_keeps_its_order_whatever_clients_claim(claimed):
    spans = [span(10, 20), span(21, 30, first_timestamp_ms=claimed), span(31, None, first_timestamp_ms=claimed)]
    events = partition_events("orders-0", spans, {}, {}, 0)
    assert [event.offset for event in in_order(events)] == [10, 20, 21, 30, 31]


def test_a_decision_stands_before_its_marker_and_the_end_behind_it():
    """All in one millisecond, as happens: only what each means tells the order."""
    records = [record(1, 5, "Ongoing"), record(2, 20, "PrepareCommit"), record(3, 20, "CompleteCommit", partitions=())]
    told = in_order(partition_events("orders-0", [span(10, 20)], {}, {10: 5}, 0), coordinator_events(records))
    assert seen(told) == [("Ongoing", 1), ("begins", 10), ("PrepareCommit", 2), ("COMMIT marker", 20), ("CompleteCommit", 3)]


def test_data_never_stands_before_its_coordinator_opened_it():
    records = [record(1, 50, "Ongoing")]
    assert seen(in_order(partition_events("orders-0", [span(10, None)], {}, {10: 50}, 0), coordinator_events(records))) == [
        ("Ongoing", 1),
        ("begins", 10),
    ]


def test_only_transactions_of_the_partition_are_told_and_ongoing_once():
    records = [
        record(1, 1, "Ongoing", 1, (P1,)),
        record(2, 2, "Ongoing", 1, (P0, P1)),
        record(3, 3, "Ongoing", 1, (P0, P1)),
        record(4, 4, "PrepareCommit", 1, (P0, P1)),
        record(5, 5, "CompleteCommit", 1, ()),
        record(6, 6, "Ongoing", 2, (P1,)),
        record(7, 7, "CompleteAbort", 2, ()),
    ]
    assert [row["offset"] for row in touching(records, "orders", 0)] == [2, 4, 5]


def test_a_marker_belongs_to_the_decision_before_it_and_data_behind_it_to_none():
    """The second span is what a late produce request leaves: its coordinator holds nothing that it could belong to."""
    records = [record(1, 5, "Ongoing"), record(2, 18, "PrepareAbort"), record(3, 22, "CompleteAbort", partitions=())]
    spans = [span(10, 20, marker_type="ABORT"), span(21, None)]
    assert started(spans, {7: "pay"}, records) == {10: 5}
    assert decisions(spans[:1], {7: "pay"}, records) == {("pay", 1)}
    assert decisions([span(1, 4)], {7: "pay"}, records) == set(), "decided before any decision that is known"


def test_records_without_a_time_are_left_out_and_expiry_is_told():
    events = coordinator_events([record(1, None, "Ongoing"), record(2, 9, None, None, ())])
    assert seen(events) == [("expires", 2)]
