"""Findings about the producers of partitions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from tests.support.frames import frame
from tests.support.rules import selected
from txnlib.core.cluster_metadata import ProducerIdBlock
from txnlib.core.findings.metadata_findings import SINCE_THEN, highest_producer_id
from txnlib.core.findings.producer_findings import (
    ODD_PRODUCERS,
    SUSPECTS_KEPT,
    CorruptBatch,
    NewestSpan,
    OddProducer,
    StoredBatch,
    Suspect,
    of_corrupt_batches,
    of_producers,
)
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.readers.typed_rows import arrow_rows
from txnlib.spark.core_rows import odd_rows, rows_by_core, rows_of
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES

TS = 1_700_000_000_000
NANOSECONDS = TS * 10**6
VALUES = {
    "as_of_ms": TS,
    "clock_tolerance_ms": 1_000,
    "producer_id_expiration_ms": 86_400_000,
    "whole_metadata_ms": None,
    "highest": None,
}
STATE = ProducerState(producer_epoch=3, last_sequence=4, last_offset=14, current_txn_first_offset=10, last_timestamp=TS)
OPEN = NewestSpan(
    10,
    14,
    is_start_exact=True,
    marker_offset=None,
    marker_ms=None,
    first_timestamp_ms=TS,
    is_broker_clock=None,
    state=STATE,
)
ENDED = replace(OPEN, marker_offset=15, marker_ms=TS, state=replace(STATE, current_txn_first_offset=None))
BATCH = StoredBatch(15, 16, 2, 5, TS, is_transactional=True, is_marker=False, control_type=None, coordinator_epoch=None)


def found(newest: NewestSpan | None = None, *suspects: Suspect, count: int | None = None, **values: int | None):
    producer = OddProducer("orders", 0, 7, suspects, count, newest)
    return [(row.name, row.offset, row.evidence) for row in of_producers([producer], **VALUES | values)]


def test_each_finding_of_a_suspect_batch_shows_it_and_the_state_before_it() -> None:
    ((name, offset, evidence),) = found(None, Suspect(STATE, BATCH))
    assert (name, offset) == ("INVALID_PRODUCER_EPOCH", 15)
    assert (
        evidence == "batch"
        ' {"base_offset":15,"last_offset":16,"producer_epoch":2,"base_sequence":5,"max_timestamp_ms":1700000000000,'
        '"is_transactional":true,"is_marker":false} after'
        ' {"producer_epoch":3,"last_sequence":4,"last_offset":14,"offset_delta":0,'
        '"current_txn_first_offset":10,"last_timestamp":1700000000000}'
    )


def test_a_suspect_batch_without_a_finding_has_no_row() -> None:
    assert found(None, Suspect(STATE, replace(BATCH, producer_epoch=3))) == []


def test_a_marker_of_a_deposed_coordinator_is_judged_as_a_marker() -> None:
    marker = replace(BATCH, producer_epoch=3, is_marker=True, control_type="ABORT", coordinator_epoch=1)
    ((name, *_),) = found(None, Suspect(replace(STATE, coordinator_epoch=2), marker))
    assert name == "TRANSACTION_COORDINATOR_FENCED"


@pytest.mark.parametrize(
    ("count", "more"),
    [(None, ""), (SUSPECTS_KEPT, ""), (SUSPECTS_KEPT + 3, "; and 3 more batches of the same producer")],
)
def test_suspect_batches_that_are_not_stored_are_counted(count: int | None, more: str) -> None:
    ((*_, evidence),) = found(None, Suspect(STATE, BATCH), count=count)
    assert evidence.endswith("}" + more)


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (OPEN, []),
        (replace(OPEN, state=replace(STATE, last_timestamp=TS + 1_000)), []),
        (
            replace(OPEN, state=replace(STATE, last_timestamp=TS + 1_001)),
            [("TIMESTAMP_IN_FUTURE", 14, "last write stamped 1700000001001 ms")],
        ),
        (replace(ENDED, state=replace(STATE, last_timestamp=TS + 1_001, current_txn_first_offset=None)), []),
        (
            replace(OPEN, state=replace(STATE, last_timestamp=NANOSECONDS)),
            [("INVALID_TIMESTAMP", 14, f"last write stamped {NANOSECONDS} ms")],
        ),
        (replace(OPEN, first_timestamp_ms=-1), [("INVALID_TIMESTAMP", 14, "first write stamped -1 ms")]),
        (replace(ENDED, first_timestamp_ms=-1), []),
        (
            replace(ENDED, last_offset=None, state=ProducerState(last_timestamp=0)),
            [("INVALID_TIMESTAMP", 15, "last write stamped 0 ms")],
        ),
        (replace(OPEN, state=replace(STATE, last_timestamp=None), first_timestamp_ms=None), []),
    ],
)
def test_times_of_the_newest_span(newest: NewestSpan, expected: list[tuple[str, int, str]]) -> None:
    assert found(newest) == expected


@pytest.mark.parametrize(
    ("newest", "highest", "is_found"),
    [
        (ENDED, 6, True),  # its marker has a broker's time
        (ENDED, 7, False),
        (replace(ENDED, marker_ms=TS + 1), 6, False),
        (replace(OPEN, is_broker_clock=True), 6, True),
        (OPEN, 6, False),  # a client's time proves nothing
        (OPEN, 6 - SINCE_THEN, True),
    ],
)
def test_a_producer_id_beyond_all_blocks(newest: NewestSpan, highest: int, is_found: bool) -> None:
    rows = found(newest, whole_metadata_ms=TS, highest=highest)
    says = f"the last producer id that the cluster handed out is {highest}"
    assert rows == ([("PRODUCER_ID_NEVER_ALLOCATED", 10, says)] if is_found else [])


def test_the_highest_producer_id_is_known_with_the_whole_metadata_log() -> None:
    blocks = [ProducerIdBlock(first_producer_id=0, last_producer_id=last) for last in (1999, 999)]
    assert highest_producer_id(blocks, TS) == 1999
    assert highest_producer_id([], TS) == -1
    assert highest_producer_id(blocks, None) is None


def test_a_corrupt_batch_is_found_at_its_position() -> None:
    (row,) = of_corrupt_batches([CorruptBatch("orders", 0, "a/b.log", 61, 120, 3, 7)])
    assert (row.name, row.offset, row.producer_id, row.evidence) == (
        "CORRUPT_MESSAGE",
        3,
        7,
        "a/b.log at byte 61: 120 bytes",
    )


# What is selected: no less than has a finding.

PLACE = {"topic": "orders", "partition": 0}
TIMES = (TS, TS + 1, NANOSECONDS, 0, None)
CLEARS = VALUES | {"clock_tolerance_ms": 0, "producer_id_expiration_ms": 1, "whole_metadata_ms": TS, "highest": 40}


def newest_spans():
    kinds = product([None, 10], [None, 20], TIMES, TIMES, [True, False], [True, False, None])
    for producer_id, (first, marker, last_ms, first_ms, is_open, is_exact) in enumerate(kinds):
        state = ProducerState(3, 4, 14, 0, None, 10 if is_open else None, last_ms)
        yield producer_id, NewestSpan(first, 14, is_exact, marker, TS, first_ms, None, state)


def span_row(producer_id, span):
    fields = {name: getattr(span, name) for name in NewestSpan.__dataclass_fields__ if name != "state"}
    state = tuple(getattr(span.state, name) for name in ProducerState.__dataclass_fields__)
    return PLACE | fields | {"producer_id": producer_id, "span": 0, "state": state, "is_newest": True}


@pytest.mark.both
def test_newest_spans_that_are_cleared_have_no_finding(spark):
    every = [OddProducer("orders", 0, producer_id, (), None, span) for producer_id, span in newest_spans()]
    spans = frame(spark, TABLES["producer_spans"], *[span_row(*each) for each in newest_spans()])
    kept = selected(ODD_PRODUCERS, CLEARS, producer_spans=spans)
    expected = set(of_producers(every, **CLEARS))
    assert len(expected) > 100
    assert set(of_producers(kept, **CLEARS)) == expected
    assert len(kept) < len(every)


def test_all_suspects_of_a_producer_come_together_with_their_number(spark):
    batch = (15, 16, 2, 5, TS, True, False, None, None)
    suspects = [
        PLACE | {"producer_id": 7, "suspect": ((3, 4, 14, 0, None, 10, TS), (15 + number, *batch[1:]))}
        for number in range(3)
    ]
    newest = PLACE | {
        "producer_id": 7, "state": (3, 4, 14, 0, None, None, TS), "suspects_count": SUSPECTS_KEPT + 2,
        "is_newest": True,
    }  # fmt: skip
    (kept,) = selected(ODD_PRODUCERS, CLEARS, producer_spans=frame(spark, TABLES["producer_spans"], *suspects, newest))
    assert sorted(suspect.batch.base_offset for suspect in kept.suspects) == [15, 16, 17]
    assert (kept.suspects_count, kept.newest) == (SUSPECTS_KEPT + 2, None)


def test_the_core_judges_each_row_of_a_selection(spark):
    spans = frame(spark, TABLES["producer_spans"], *[span_row(*each) for each in newest_spans()])
    odd, judge = odd_rows(ODD_PRODUCERS, {"producer_spans": spans}, CLEARS), partial(of_producers, **CLEARS)
    found = arrow_of(rows_by_core("findings", odd, OddProducer, judge))
    expected = arrow_rows("findings", judge(rows_of(odd, OddProducer)))
    assert found.num_rows > 100
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
