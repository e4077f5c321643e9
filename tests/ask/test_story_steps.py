"""The order of a story, of which only one log has brokers' times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.ask.story_steps import ExplainedPlace, Stamps, StoryStep, story_steps

PLACE = ExplainedPlace("pay", 0, 7, start_offset=27)
HERE = {"topic": "pay", "partition": 0}
ELSEWHERE = {"topic": "orders", "partition": 2}


def data(first: int, last: int, ms: int, **more: Any) -> dict[str, Any]:
    row = {"base_offset": first, "last_offset": last, "records_count": last - first + 1, "producer_epoch": 0}
    row |= {"base_sequence": first, "last_sequence": last, "is_transactional": True, "is_control": False, "control_type": None}
    return row | {"coordinator_epoch": None, "timestamp_type": "CREATE_TIME", "max_timestamp_ms": ms} | more


def marker(offset: int, ms: int, kind: str | None = "ABORT") -> dict[str, Any]:
    return data(offset, offset, ms, is_control=True, control_type=kind, coordinator_epoch=0, base_sequence=None)


def record(
    offset: int, ms: int | None, state: str | None, *partitions: dict[str, Any], number: int = 1, **more: Any
) -> dict[str, Any]:
    row = {"transactional_id": "batch-7", "coordinator_partition": 3, "offset": offset, "timestamp_ms": ms, "state": state}
    row |= {"is_tombstone": state is None, "transaction_number": number, "producer_id": 7, "producer_epoch": 0}
    return row | {"partitions": list(partitions), "left_out": 0} | more


def offsets(steps: list[StoryStep]) -> list[str]:
    """p24 for the partition's log, c3 for the coordinator's."""
    return [
        f"{'p' if step.log == 'pay-0' else 'c'}{step.first_offset}"
        + (f"-{step.last_offset}" if step.first_offset != step.last_offset else "")
        for step in steps
    ]


#: The sketch's story: a client's clock that runs early, and a late write with an old time.
BATCHES = [data(24, 24, 90), data(25, 25, 95), marker(26, 141), data(27, 27, 92)]
STAMPS = Stamps([20, 26, 30], [50, 141, 900])
RECORDS = [
    record(1, 101, "Ongoing", HERE),
    record(2, 105, "Ongoing", ELSEWHERE, HERE),
    record(3, 127, "PrepareAbort", ELSEWHERE, HERE),
    record(4, 150, "CompleteAbort"),
]


def test_a_late_write_stands_behind_the_end_of_its_transaction():
    steps = story_steps(PLACE, BATCHES, STAMPS, RECORDS)
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
    assert [step.is_open for step in steps] == [False] * 6 + [True]


def test_what_has_no_broker_time_stands_between_those_that_have():
    steps = {step.first_offset: step for step in story_steps(PLACE, BATCHES, STAMPS, []) if step.log == "pay-0"}
    assert (steps[24].after_ms, steps[24].before_ms) == (50, 141)
    assert (steps[26].after_ms, steps[26].before_ms) == (141, 141)
    assert (steps[27].after_ms, steps[27].before_ms) == (141, 900)


def test_a_log_append_time_is_a_brokers():
    batch = data(27, 28, 200, timestamp_type="LOG_APPEND_TIME")
    (step,) = story_steps(PLACE, [batch], Stamps([1, 99], [1, 999]), [])
    assert (step.after_ms, step.before_ms, step.record) == (200, 200, "2 records, epoch 0, sequence 27–28")


def test_what_nothing_is_known_of_is_said_to_be_unknown():
    (step,) = story_steps(PLACE, [data(27, 27, 5)], Stamps(), [])
    assert (step.after_ms, step.before_ms) == (None, None)


def test_times_beyond_the_stretch_that_was_read_count():
    (step,) = story_steps(PLACE, [data(27, 27, 5)], Stamps([], [], before=3, after=8), [])
    assert (step.after_ms, step.before_ms) == (3, 8)


def test_only_neighbours_in_the_story_are_folded():
    """Between the two stands a record of the coordinator; the others differ in epoch, or in kind."""
    batches = [
        data(27, 28, 100),
        data(29, 29, 120),
        data(30, 30, 121, producer_epoch=1),
        data(31, 31, 122, producer_epoch=1),
        data(32, 32, 123, producer_epoch=1, is_transactional=False),
    ]
    steps = story_steps(PLACE, batches, Stamps(), [record(5, 110, "Empty")])
    assert offsets(steps) == ["p27-28", "c5", "p29", "p30-31", "p32"]
    assert steps[3].record == "2 records, epoch 1, sequence 30–31"
    assert steps[4].record == "1 record, epoch 1, sequence 32, not transactional"


def test_a_marker_stands_between_its_decision_and_its_completion_though_clocks_disagree():
    """The leader's clock runs 30 ms ahead of the coordinator's, or as far behind."""
    for skew in (-30, 30):
        steps = story_steps(PLACE, [data(24, 24, 100), marker(26, 130 + skew)], Stamps([26], [130 + skew]), RECORDS)
        assert offsets(steps)[-3:] == ["c3", "p26", "c4"], skew


def test_a_decision_long_before_a_marker_is_not_its_own():
    steps = story_steps(PLACE, [marker(26, 60_000)], Stamps([26], [60_000]), RECORDS)
    assert offsets(steps) == ["c1", "c2", "c3", "c4", "p26"]


def test_what_its_coordinator_expects_stands_behind_the_record_that_added_the_partition():
    """Clients stamp a record when it is sent, before the partition is added."""
    steps = story_steps(
        PLACE, [data(27, 27, 95)], Stamps([20], [50]), [record(1, 100, "Ongoing", ELSEWHERE), record(2, 105, "Ongoing", HERE)]
    )
    assert offsets(steps) == ["c1", "c2", "p27"]


def test_what_a_marker_ended_stands_before_the_decision():
    """The client's clock runs ahead, though not so far that the marker refutes it."""
    steps = story_steps(PLACE, [data(24, 24, 135), marker(26, 141)], Stamps([20, 26], [50, 141]), RECORDS)
    assert offsets(steps) == ["c1", "c2", "p24", "c3", "p26", "c4"]


def test_records_of_a_console_have_an_order_and_no_time():
    records = [record(-4, None, "Ongoing", HERE), record(-3, None, "PrepareAbort", HERE), record(-2, 150, "CompleteAbort")]
    steps = story_steps(PLACE, BATCHES, STAMPS, records)
    assert [o for o in offsets(steps) if o.startswith("c")] == ["c-4", "c-3", "c-2"]


def test_records_left_out_are_counted_where_they_would_stand():
    steps = story_steps(PLACE, [], Stamps(), [record(1, 100, "Ongoing", HERE), record(900, 200, None, left_out=41)])
    assert [step.record for step in steps] == [
        "batch-7 Ongoing {pay-0}",
        "… 41 records of batch-7 left out",
        "batch-7 tombstone",
    ]
    assert steps[-1].state_after == "expired"


def test_of_many_partitions_the_one_in_question_is_named():
    many = [{"topic": "wide", "partition": number} for number in range(100)]
    (step,) = story_steps(PLACE, [], Stamps(), [record(1, 1, "Ongoing", *many, HERE)])
    assert step.record == "batch-7 Ongoing {pay-0, wide-0, wide-1, wide-2, wide-3, wide-4, … 95 more}"


def test_another_producer_id_of_the_transactional_id_is_named():
    (step,) = story_steps(PLACE, [], Stamps(), [record(1, 1, "Ongoing", HERE, producer_id=8)])
    assert step.record == "batch-7 Ongoing {pay-0}, producer 8"


@pytest.mark.parametrize("name", ["a\nHANGING", "a\x1b[2J"])
def test_an_id_cannot_forge_a_line_of_the_story(name):
    steps = story_steps(PLACE, [], Stamps(), [record(1, 1, "Ongoing", HERE, transactional_id=name, left_out=3)])
    assert all(step.record.isprintable() for step in steps)


TIMES = st.integers(0, 50)
STATES = st.sampled_from(["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", None])


@given(
    st.lists(st.tuples(st.sampled_from(["data", "ABORT", "COMMIT"]), TIMES), max_size=12),
    st.lists(st.tuples(STATES, st.one_of(st.none(), TIMES), st.booleans()), max_size=12),
)
def test_each_log_keeps_its_own_order_and_nothing_is_lost(batches, records):
    """Whatever clocks say: by folding, offsets are joined but none is dropped, told twice, or told out of order."""
    rows = [data(20 + i, 20 + i, ms) if kind == "data" else marker(20 + i, ms, kind) for i, (kind, ms) in enumerate(batches)]
    stamped = [row for row in rows if row["is_control"]]
    stamps = Stamps([row["base_offset"] for row in stamped], [row["max_timestamp_ms"] for row in stamped])
    log = [record(i, ms, state, *([HERE] if here else [])) for i, (state, ms, here) in enumerate(records)]
    steps = story_steps(PLACE, rows, stamps, log)
    told = [n for step in steps if step.log == "pay-0" for n in range(step.first_offset or 0, (step.last_offset or 0) + 1)]
    assert told == [row["base_offset"] for row in rows]
    assert [step.first_offset for step in steps if step.log != "pay-0"] == [row["offset"] for row in log]
