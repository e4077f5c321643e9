"""The end of each transaction that the earlier run warned of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.frames import assert_rows, frame
from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.rows import OfProducer, ProducerId
from txnlib.core.tables.ended_transactions import (
    DECIDED_MARKERS,
    FIRST_MARKERS,
    SENTENCES,
    EarlierTransaction,
    EndedTransaction,
    FirstMarker,
    ManualMarker,
    MarkerKey,
    OpenedTransaction,
    OwnedId,
    WarnedTransaction,
    ended_transactions,
    warned_of,
)
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES

#: producer id -> how it ended since
STORIES = {
    1: "DECIDED",
    2: "BY_HAND",
    3: "LOG_START_MOVED",
    4: "GONE",
    5: "NOT_CAPTURED",
    6: "NOT_CAPTURED",  # the copy ends before it
    7: "SPLIT",
    8: "MARKED",
    9: "BY_HAND",  # no coordinator knew its producer id
    10: "TOPIC_GONE",
    11: "BY_HAND",  # its coordinator has written nothing since
    12: "MARKED",  # nor has this one, but it is not known until then
    13: "NOT_CAPTURED",  # the copy has a hole behind it
    14: "MARKED",  # a text of a console does not show what is not in it
}
STILL_OPEN, SEEN_FROM_ANOTHER_BEGINNING, OPEN_AGAIN, NEVER_WARNED_OF = 21, 22, 23, 24
#: Two-phase commits: prepared just now, for too long by its coordinator, and by its partition.
IN_TIME, FORGOTTEN, SINCE = 31, 32, 33
#: producer id -> type and offset of its marker
MARKERS = {
    1: ("COMMIT", 201),
    **{number: ("ABORT", 200 + number) for number in (2, 7, 8, 9, 11, 12, 14, STILL_OPEN, OPEN_AGAIN)},
}
STARTS = {3: 5, 6: 300}
PLACES = {5: 7, 10: 8, 13: 9}
MARKED_MS, NIGHT, LIMIT = 1_000_000, 50_000_000, 900_000
#: producer id -> its coordinator, and how long before the marker its last record was written. Coordinator 1 is known
#: longer.
COORDINATORS = {
    8: (1, CLOCKS_DIFFER_MS),
    11: (1, CLOCKS_DIFFER_MS + 1),
    12: (2, CLOCKS_DIFFER_MS + 1),
    14: (3, CLOCKS_DIFFER_MS + 1),
}


def opened(producer_id: int, verdict: str = "HANGING") -> EarlierTransaction:
    return EarlierTransaction(
        run_id="night-2",
        as_of_ms=NIGHT,
        topic="orders",
        partition=PLACES.get(producer_id, 0),
        producer_id=producer_id,
        start_offset=STARTS.get(producer_id, 100 + producer_id),
        transactional_id=None,
        verdict=verdict,
        reason="PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR" if producer_id == 9 else "WRITTEN_AFTER_MARKER",
        transaction_start_ms=None,
        blocks_since_ms=None,
    )


COPY = CoverageRow(
    "orders", 0, "raw:1", status="COMPLETE", is_judged=True, is_decoded=True, tail="CLEAN", log_start_offset=50,
    read_from_offset=50, end_offset=300,
)  # fmt: skip
GONE = replace(COPY, partition=8, status="MISSING", is_judged=False, is_gone=True)
BROKEN = replace(COPY, partition=9, gap_offset=200)
KNOWN_MS = MARKED_MS + CLOCKS_DIFFER_MS
COORDINATOR = replace(
    COPY,
    topic=TRANSACTION_STATE_TOPIC,
    partition=1,
    log_start_offset=0,
    read_from_offset=0,
    known_until_ms=KNOWN_MS + 1,
)
COVERAGE = (
    *(COPY, GONE, BROKEN, COORDINATOR),
    replace(COORDINATOR, partition=2, known_until_ms=KNOWN_MS),
    replace(COORDINATOR, partition=3, source="console:1"),
)


def told(
    *warned: EarlierTransaction,
    ended_then: Sequence[WarnedTransaction] = (),
    coverage: Sequence[CoverageRow] = COVERAGE,
) -> dict[int, EndedTransaction]:
    now = [
        OpenedTransaction("orders", 0, STILL_OPEN, 100 + STILL_OPEN),
        OpenedTransaction("orders", 0, SEEN_FROM_ANOTHER_BEGINNING, 130),
        OpenedTransaction("orders", 0, OPEN_AGAIN, 250),
    ]
    names = {2: "MARKER_WITHOUT_DECISION", 7: "SPLIT_OUTCOME"}

    def opened_by(producers: Sequence[OfProducer]) -> Sequence[OpenedTransaction]:
        return [each for each in now if OfProducer(each.topic, each.partition, each.producer_id) in producers]

    def first(places: Sequence[OpenedTransaction]) -> Sequence[FirstMarker]:
        of = {each.producer_id: each for each in places}
        return [
            FirstMarker("orders", of[p].partition, p, of[p].start_offset, offset, kind, MARKED_MS)
            for p, (kind, offset) in MARKERS.items()
            if p in of
        ]

    def decided(markers: Sequence[MarkerKey]) -> Sequence[MarkerKey]:
        return [each for each in markers if each == MarkerKey("orders", 0, 1, 201)]

    def owners(producer_ids: Sequence[ProducerId]) -> Sequence[OwnedId]:
        current = [OwnedId(p, number, "CURRENT", MARKED_MS - ms) for p, (number, ms) in COORDINATORS.items()]
        return [each for each in current if ProducerId(each.producer_id) in producer_ids] + [
            OwnedId(11, 1, "ROTATED", MARKED_MS)
        ]

    found = list(
        ended_transactions(
            warned,
            ended_then,
            coverage,
            [ManualMarker(name, "orders", 0, p, MARKERS[p][1]) for p, name in names.items()],
            opened_by,
            first,
            decided,
            owners,
            as_of_ms=0,
            transaction_max_timeout_ms=LIMIT,
        )
    )
    assert len(found) == len({row.producer_id for row in found})
    return {row.producer_id: row for row in found}


ALL = [opened(number) for number in (*STORIES, STILL_OPEN, SEEN_FROM_ANOTHER_BEGINNING, OPEN_AGAIN)]


def test_every_end_is_told_apart() -> None:
    assert {producer_id: row.how for producer_id, row in told(*ALL).items()} == {**STORIES, OPEN_AGAIN: "MARKED"}


def test_an_abort_that_took_effect_is_confirmed_with_its_marker() -> None:
    rows = told(*ALL)
    assert (rows[2].outcome, rows[2].marker_offset, rows[2].ended_at_ms) == ("ABORT", 202, MARKED_MS)
    assert (rows[2].run_id_then, rows[2].last_seen_ms) == ("night-2", NIGHT)
    assert rows[2].says == "ended by hand: ABORT marker at offset 202, which no coordinator decided"
    assert rows[1].says == "ended by its coordinator's COMMIT marker at offset 201"


def test_a_marker_whose_type_was_not_printed_is_a_marker() -> None:
    marker = FirstMarker("orders", 0, 1, 101, 201, None, MARKED_MS)
    assert marker.says == "marker at offset 201"


def test_every_end_has_a_sentence_of_its_own() -> None:
    assert set(SENTENCES) == set(STORIES.values())
    assert len(set(SENTENCES.values())) == len(SENTENCES)


def test_where_no_copy_is_left_nothing_was_captured() -> None:
    assert {row.how for row in told(opened(3), opened(4), coverage=()).values()} == {"NOT_CAPTURED"}


def test_of_nothing_warned_nothing_ended() -> None:
    assert told() == {}
    assert told(opened(4, "OPEN")) == {}


@pytest.mark.parametrize("how", ["NOT_CAPTURED", "GONE"])
def test_a_run_warns_of_all_that_need_somebody_and_of_what_it_could_not_look_at(how: str) -> None:
    prepared = replace(
        opened(IN_TIME, "OPEN"), run_id="night-3", reason="TWO_PHASE_COMMIT", transaction_start_ms=NIGHT - LIMIT
    )
    unseen = WarnedTransaction("orders", 7, 5, 105, None, "HANGING", "WRITTEN_AFTER_MARKER", "night-1", NIGHT - 1, how)
    now = [
        replace(opened(STILL_OPEN), run_id="night-3"),
        opened(NEVER_WARNED_OF, "OPEN"),
        prepared,
        replace(prepared, producer_id=FORGOTTEN, transaction_start_ms=NIGHT - LIMIT - 1),
        replace(prepared, producer_id=SINCE, transaction_start_ms=None, blocks_since_ms=1),
    ]
    warned = list(warned_of(now, [unseen], transaction_max_timeout_ms=LIMIT))
    newly = dict.fromkeys([STILL_OPEN, FORGOTTEN, SINCE], ("night-3", NIGHT))
    earlier = {5: ("night-1", NIGHT - 1)} if how == "NOT_CAPTURED" else {}
    assert {each.producer_id: (each.run_id_then, each.last_seen_ms) for each in warned} == newly | earlier


def test_what_could_not_be_looked_at_is_told_again_with_the_run_that_saw_it() -> None:
    unseen = WarnedTransaction(
        "orders", 7, 5, 105, None, "HANGING", "WRITTEN_AFTER_MARKER", "night-1", NIGHT - 1, "NOT_CAPTURED"
    )
    (row,) = told(ended_then=[unseen]).values()
    assert (row.how, row.run_id_then, row.last_seen_ms) == ("NOT_CAPTURED", "night-1", NIGHT - 1)


# What is asked of the logs.

SPAN = {"topic": "orders", "partition": 0, "producer_id": 1}


def test_the_first_marker_after_the_start_ended_a_transaction(spark):
    spans = [
        # The transaction may have begun where nothing was read: only its marker counts.
        SPAN | {"first_offset": 102, "marker_offset": 201, "marker_type": "COMMIT", "marker_ms": 7},
        SPAN | {"first_offset": 90, "marker_offset": 95, "marker_type": "ABORT", "marker_ms": 4},
        SPAN | {"first_offset": 250, "marker_offset": 260, "marker_type": "ABORT", "marker_ms": 9},
        SPAN | {"first_offset": 300},
        SPAN | {"producer_id": 2, "marker_offset": 150, "marker_type": "ABORT"},
    ]
    opened = local_rows(
        spark,
        [("orders", 0, 1, 101), ("orders", 0, 1, 300), ("orders", 1, 1, 5)],
        "topic string, partition long, producer_id long, start_offset long",
    )
    found = select(FIRST_MARKERS, asked=opened, producer_spans=frame(spark, TABLES["producer_spans"], *spans))
    assert_rows(found, [("orders", 0, 1, 101, 201, "COMMIT", 7)])


def test_a_marker_that_a_decision_explains_is_decided(spark):
    fields = TABLES["transactions"]["markers"].dataType.elementType
    marked = [
        tuple((SPAN | {"marker_offset": offset}).get(field.name) for field in fields) for offset in (201, 95, None)
    ]
    transactions = frame(spark, TABLES["transactions"], {"producer_id": 1, "markers": marked}, {"producer_id": 2})
    markers = local_rows(
        spark,
        [("orders", 0, 1, 201), ("orders", 0, 1, 202), ("orders", 0, 2, 95)],
        "topic string, partition long, producer_id long, marker_offset long",
    )
    assert_rows(select(DECIDED_MARKERS, asked=markers, transactions=transactions), [("orders", 0, 1, 201)])
