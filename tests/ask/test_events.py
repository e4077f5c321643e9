"""Events from both logs: their order, what each shows, and the last stable offset after each."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.ask.events import Event, courses, in_order, record_events
from txnlib.ask.partition_events import gone_batch, span_events, story_events
from txnlib.ask.story import added_once

PLACE = {"topic": "pay", "partition": 0, "producer_id": 7, "start_offset": 27, "verdict": "HANGING"}
HERE = {"topic": "pay", "partition": 0}
ELSEWHERE = {"topic": "orders", "partition": 2}


def data(first: int, last: int, ms: int, **more: Any) -> dict[str, Any]:
    row = {"base_offset": first, "last_offset": last, "records_count": last - first + 1, "producer_epoch": 0}
    row |= {
        "base_sequence": first,
        "last_sequence": last,
        "is_transactional": True,
        "is_control": False,
        "control_type": None,
    }
    return row | {"coordinator_epoch": None, "timestamp_type": "CREATE_TIME", "max_timestamp_ms": ms} | more


def marker(offset: int, ms: int, kind: str | None = "ABORT") -> dict[str, Any]:
    return data(offset, offset, ms, is_control=True, control_type=kind, coordinator_epoch=0, base_sequence=None)


def record(
    offset: int, ms: int | None, state: str | None, *partitions: dict[str, Any], number: int = 1, **more: Any
) -> dict[str, Any]:
    row = {
        "transactional_id": "batch-7",
        "coordinator_partition": 3,
        "offset": offset,
        "timestamp_ms": ms,
        "state": state,
    }
    row |= {"is_tombstone": state is None, "transaction_number": number, "producer_id": 7, "producer_epoch": 0}
    return row | {"partitions": list(partitions), "left_out": 0} | more


def offsets(steps: list[Event]) -> list[str]:
    """p24 for the partition's log, c3 for the coordinator's."""
    return [
        f"{'p' if step.log == 'pay-0' else 'c'}{step.offset}"
        + (f"-{step.last_offset}" if step.offset != step.last_offset else "")
        for step in steps
    ]


#: The sketch's story: a client's clock that runs early, and a late write with an old time.
BATCHES = [data(24, 24, 90), data(25, 25, 95), marker(26, 141), data(27, 27, 92)]
STAMPS = [(20, 50), (26, 141), (30, 900)]
OWN = {26: ("batch-7", 1)}
RECORDS = [
    record(1, 101, "Ongoing", HERE),
    record(2, 105, "Ongoing", ELSEWHERE, HERE),
    record(3, 127, "PrepareAbort", ELSEWHERE, HERE),
    record(4, 150, "CompleteAbort"),
]


def test_a_late_write_stands_behind_the_end_of_its_transaction():
    steps = story_events(PLACE, BATCHES, STAMPS, RECORDS, (), OWN)
    assert offsets(steps) == ["c1", "p24-25", "c2", "c3", "p26", "c4", "p27"]
    assert [step.state_after for step in steps] == [
        "open",
        "open from 24",
        "open",
        "decided: ABORT",
        "closed",
        "finished: ABORT",
        "open from 27",
    ]
    assert [step.mark for step in steps] == [""] * 6 + ["HANGING"]


def test_what_has_no_broker_time_stands_between_those_that_have():
    steps = {step.offset: step for step in story_events(PLACE, BATCHES, STAMPS, []) if step.log == "pay-0"}
    assert (steps[24].after_ms, steps[24].before_ms) == (50, 141)
    assert (steps[26].after_ms, steps[26].before_ms) == (141, 141)
    assert (steps[27].after_ms, steps[27].before_ms) == (141, 900)


def test_a_log_append_time_is_a_brokers():
    batch = data(27, 28, 200, timestamp_type="LOG_APPEND_TIME")
    (step,) = story_events(PLACE, [batch], [(1, 1), (99, 999)], [])
    assert (step.after_ms, step.before_ms, step.record) == (200, 200, "2 records, epoch 0, sequence 27–28")


@pytest.mark.parametrize("rest", [[], [data(29, 30, 150), data(31, 31, 160)]])
def test_a_transaction_whose_first_batch_is_gone_is_open_from_there(rest):
    gone = gone_batch({**PLACE, "producer_epoch": 0})
    steps = story_events(PLACE, [*BATCHES[:3], gone, *rest], STAMPS, RECORDS, (), OWN)
    assert [(step.mark, step.state_after) for step in steps[6:]] == [("HANGING", "open from 27")] * (2 if rest else 1)
    assert (steps[6].record, steps[6].after_ms, steps[6].before_ms) == ("first batch, which is gone", 141, 900)
    assert not rest or (steps[7].last_offset, steps[7].record) == (31, "3 records, epoch 0, sequence 29–31")


def test_what_nothing_is_known_of_is_said_to_be_unknown():
    (step,) = story_events(PLACE, [data(27, 27, 5)], [], [])
    assert (step.after_ms, step.before_ms) == (None, None)


def test_times_beyond_the_stretch_that_was_read_count():
    (step,) = story_events(PLACE, [data(27, 27, 5)], [(-1, 3), (28, 8)], [])
    assert (step.after_ms, step.before_ms) == (3, 8)


NOBODY = {"transactional_id": None, "transaction_number": None}


def test_a_span_without_records_says_that_its_first_batch_is_gone():
    row = {"first_offset": 5, "last_offset": None, "records": 0, "batches": 0, "producer_id": 7, "producer_epoch": 0}
    row |= {
        "first_timestamp_ms": None,
        "is_broker_clock": False,
        "marker_offset": None,
        "marker_ms": None,
        "marker_type": None,
    }
    (event,) = span_events("pay-0", [row | NOBODY], verdicts={5: "HANGING"})
    assert (event.detail, event.mark) == ("its first batch is gone", "HANGING")


def test_only_neighbours_in_the_story_are_folded():
    """Between the two stands a record of the coordinator; the others differ in epoch, or in kind."""
    batches = [
        data(27, 28, 100),
        data(29, 29, 120),
        data(30, 30, 121, producer_epoch=1),
        data(31, 31, 122, producer_epoch=1),
        data(32, 32, 123, producer_epoch=1, is_transactional=False),
    ]
    steps = story_events(PLACE, batches, [], [record(5, 110, "Empty")])
    assert offsets(steps) == ["p27-28", "c5", "p29", "p30-31", "p32"]
    assert steps[3].record == "2 records, epoch 1, sequence 30–31"
    assert steps[4].record == "1 record, epoch 1, sequence 32, not transactional"


def test_a_marker_stands_between_its_decision_and_its_completion_though_clocks_disagree():
    """The leader's clock runs 30 ms ahead of the coordinator's, or as far behind."""
    for skew in (-30, 30):
        steps = story_events(PLACE, [data(24, 24, 100), marker(26, 130 + skew)], [(26, 130 + skew)], RECORDS, (), OWN)
        assert offsets(steps)[-3:] == ["c3", "p26", "c4"], skew


@pytest.mark.parametrize(
    ("matches", "first"), [({26: ("batch-7", 1)}, "c1"), ({}, "p26"), ({26: ("batch-7", 2)}, "p26")]
)
def test_a_marker_follows_the_decision_that_the_audit_matched_and_no_other(matches, first):
    """By the leader's clock it was written long before."""
    steps = story_events(PLACE, [marker(26, 3)], [(26, 3)], RECORDS, (), matches)
    assert offsets(steps)[0] == first


def test_what_its_coordinator_expects_stands_behind_the_record_that_added_the_partition():
    """Clients stamp a record when it is sent, before the partition is added."""
    steps = story_events(
        PLACE,
        [data(27, 27, 95)],
        [(20, 50)],
        [record(1, 100, "Ongoing", ELSEWHERE), record(2, 105, "Ongoing", HERE)],
        matches={27: ("batch-7", 1)},
    )
    assert offsets(steps) == ["c1", "c2", "p27"]


def test_what_a_marker_ended_stands_before_the_decision():
    """The client's clock runs ahead, though not so far that the marker refutes it."""
    steps = story_events(PLACE, [data(24, 24, 135), marker(26, 141)], [(20, 50), (26, 141)], RECORDS, (), OWN)
    assert offsets(steps) == ["c1", "c2", "p24", "c3", "p26", "c4"]


def test_records_of_a_console_have_an_order_and_no_time():
    records = [
        record(-4, None, "Ongoing", HERE),
        record(-3, None, "PrepareAbort", HERE),
        record(-2, 150, "CompleteAbort"),
    ]
    steps = story_events(PLACE, BATCHES, STAMPS, records)
    assert [o for o in offsets(steps) if o.startswith("c")] == ["c-4", "c-3", "c-2"]


def test_records_left_out_are_counted_where_they_would_stand():
    steps = story_events(PLACE, [], [], [record(1, 100, "Ongoing", HERE), record(900, 200, None, left_out=41)])
    assert [step.record for step in steps] == [
        "batch-7 Ongoing {pay-0}",
        "… 41 records of batch-7 left out",
        "batch-7 tombstone",
    ]
    assert steps[-1].state_after == "expired"


def test_of_many_partitions_the_one_in_question_is_named():
    many = [{"topic": "wide", "partition": number} for number in range(100)]
    (step,) = story_events(PLACE, [], [], [record(1, 1, "Ongoing", *many, HERE)])
    assert step.record == "batch-7 Ongoing {pay-0, wide-0, wide-1, wide-2, wide-3, wide-4, … 95 more}"


def test_another_producer_id_of_the_transactional_id_is_named():
    (step,) = story_events(PLACE, [], [], [record(1, 1, "Ongoing", HERE, producer_id=8)])
    assert step.record == "batch-7 Ongoing {pay-0}, producer 8"


@pytest.mark.parametrize("name", ["a\nHANGING", "a\x1b[2J"])
def test_an_id_cannot_forge_a_line_of_the_story(name):
    steps = story_events(PLACE, [], [], [record(1, 1, "Ongoing", HERE, transactional_id=name, left_out=3)])
    assert all(step.record.isprintable() for step in steps)


TIMES = st.integers(0, 50)
STATES = st.sampled_from(["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", None])


@given(
    st.lists(st.tuples(st.sampled_from(["data", "ABORT", "COMMIT"]), TIMES), max_size=12),
    st.lists(st.tuples(STATES, st.one_of(st.none(), TIMES), st.booleans()), max_size=12),
)
def test_each_log_keeps_its_own_order_and_nothing_is_lost(batches, records):
    """Whatever clocks say: by folding, offsets are joined but none is dropped, told twice, or told out of order."""
    rows = [
        data(20 + i, 20 + i, ms) if kind == "data" else marker(20 + i, ms, kind) for i, (kind, ms) in enumerate(batches)
    ]
    stamped = [row for row in rows if row["is_control"]]
    stamps = [(row["base_offset"], row["max_timestamp_ms"]) for row in stamped]
    log = [record(i, ms, state, *([HERE] if here else [])) for i, (state, ms, here) in enumerate(records)]
    steps = story_events(PLACE, rows, stamps, log)
    told = [n for step in steps if step.log == "pay-0" for n in range(step.offset or 0, (step.last_offset or 0) + 1)]
    assert told == [row["base_offset"] for row in rows]
    assert [step.offset for step in steps if step.log != "pay-0"] == [row["offset"] for row in log]


KEYS = st.tuples(TIMES, st.integers(-1, 2), TIMES)


@given(st.lists(st.tuples(st.sampled_from(["pay-0", "orders-2", "__transaction_state-3"]), KEYS), max_size=20))
def test_every_log_keeps_its_order_whatever_its_clock_does(told):
    events = [Event(log=log, offset=offset, key=key) for offset, (log, key) in enumerate(told)]
    placed = in_order(events)
    assert [event.key for event in placed] == sorted(event.key for event in placed)
    for log in {event.log for event in events}:
        assert [event.offset for event in placed if event.log == log] == [
            event.offset for event in events if event.log == log
        ]


# ---- A timeline


P0 = {"topic": "orders", "partition": 0}
P1 = {"topic": "orders", "partition": 1}


def span(first: int | None, marker: int | None, **more: Any) -> dict[str, Any]:
    """A transaction of producer 7; its marker is written at the millisecond of its offset."""
    offsets = {"first_offset": first, "last_offset": first, "marker_offset": marker}
    known = {"producer_id": 7, "producer_epoch": 0, "transactional_id": "pay", "transaction_number": 1, **offsets}
    clocks = {"marker_ms": marker, "first_timestamp_ms": first, "is_broker_clock": False}
    return {**known, **clocks, "marker_type": None if marker is None else "COMMIT", "marker_epoch": 0, **more}


def kept(
    offset: int, at: int | None, state: str | None, number: int | None = 1, partitions: Any = (P0,), **more: Any
) -> dict[str, Any]:
    row = {"transactional_id": "pay", "coordinator_partition": 3, "offset": offset, "timestamp_ms": at, "state": state}
    rest = {"is_tombstone": state is None, "transaction_number": number, "producer_id": 7, "producer_epoch": 0}
    return {**row, **rest, "partitions": list(partitions), **more}


def seen(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.event, event.offset) for event in events]


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
    events = span_events("orders-0", spans, {}, 0)
    assert [(event.offset, event.last_stable_offset) for event in events] == expected


def test_below_what_is_at_hand_no_last_stable_offset_is_told():
    events = span_events("orders-0", [span(10, 20), span(30, 40)], {}, 20)
    assert [event.last_stable_offset for event in events] == [None, 21, 30, 41]


def test_a_decision_stands_before_its_marker_and_the_end_behind_it():
    """All in one millisecond, as happens: only what each means tells the order."""
    records = [kept(1, 5, "Ongoing"), kept(2, 20, "PrepareCommit"), kept(3, 20, "CompleteCommit", partitions=())]
    told = in_order(record_events(records), span_events("orders-0", [span(10, 20)], courses(records, P0)))
    assert seen(told) == [
        ("Ongoing", 1),
        ("begins", 10),
        ("PrepareCommit", 2),
        ("COMMIT marker", 20),
        ("CompleteCommit", 3),
    ]


def test_of_a_transaction_ongoing_is_told_once_when_the_partition_was_added():
    records = [
        kept(1, 1, "Ongoing", 1, (P1,)),
        kept(2, 2, "Ongoing", 1, (P0, P1)),
        kept(3, 3, "Ongoing", 1, (P0, P1)),
        kept(4, 4, "PrepareCommit", 1, (P0, P1)),
        kept(5, 5, "CompleteCommit", 1, ()),
        kept(6, 6, "Ongoing", 2, (P1,)),
        kept(7, 7, "CompleteAbort", 2, ()),
    ]
    assert [row["offset"] for row in added_once(records, P0)] == [2, 4, 5, 7]


def test_what_the_audit_matched_began_when_its_coordinator_opened_it_and_data_behind_it_never():
    """The second span is what a late produce request leaves: no coordinator holds anything that it could belong to."""
    records = [kept(1, 15, "Ongoing"), kept(2, 18, "PrepareAbort"), kept(3, 22, "CompleteAbort", partitions=())]
    known = courses(records, P0)

    def places(*spans: dict[str, Any]) -> list[tuple[int, int]]:
        return [event.key[:2] for event in span_events("orders-0", spans, known) if event.event == "begins"]

    assert places(span(10, 20, marker_type="ABORT"), span(21, None, **NOBODY)) == [(15, 1), (21, 1)]
    assert places(span(10, None)) == [(15, 1)]
    assert places(span(10, 20, transaction_number=2)) == [(10, 1)]


def test_expiry_is_told():
    assert seen([*record_events([kept(2, 9, None, None, ())])]) == [("expires", 2)]
