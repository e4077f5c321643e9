"""What brokers answered against what their logs show."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.support.frames import frame
from tests.support.rules import found_by, selected
from txnlib.core.findings.live_answer_findings import (
    DESCRIBED_IDS,
    LOGGED_TRANSACTIONS,
    TOLD_TRANSACTIONS,
    UNEXPLAINED_OFFSETS,
    DescribedId,
    DescribedTransaction,
    LoggedTransaction,
    ToldSpan,
    ToldTransaction,
    of_described,
    of_logged,
    of_told,
)
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.spark.schemas import TABLES

PLACE = {"topic": "orders", "partition": 0}
BEGIN, END, MARK = 5, 100, 50
COPY = PLACE | {"is_judged": True, "status": "COMPLETE", "tail": "CLEAN", "first_offset": BEGIN, "end_offset": END}
STABLE = COPY | {"answered_stable_offset": 34, "answered_high_watermark": 50}
#: Producer -> its transactions in the log (first offset, last offset, marker, epoch, whether the start is exact), what
#: the leader answered (start, epoch; None: it does not know the producer), and offsets of the findings. The log reaches
#: from BEGIN to END; when the leader was asked, its high watermark was MARK.
PRODUCERS = {
    "they agree": ([(10, 15, None, 3, True)], (10, 3), []),
    "the leader does not know the producer": ([(10, 15, None, 3, True)], None, [10]),
    "nothing is open for the leader": ([(10, 15, None, 3, True)], (None, 3), [10]),
    "it has ended since": ([(10, 15, 60, 3, True)], (10, 3), []),
    "it ended right at the high watermark": ([(10, 15, MARK, 3, True)], (10, 3), []),
    "the log has nothing there": ([], (10, 3), [10]),
    "it begins behind the copy": ([], (200, 3), []),
    "it began after the answer": ([(60, 65, None, 3, True)], None, []),
    "epochs differ": ([(10, 15, None, 3, True)], (10, 4), [10]),
    "epochs differ after newer batches": ([(10, 55, None, 3, True)], (10, 4), []),
    "starts differ": ([(10, 15, None, 3, True)], (12, 3), [10, 12]),
    "the start in the log is not exact": ([(10, 15, None, 3, False)], None, []),
    "it had ended by then": ([(10, 15, 40, 3, True)], (10, 3), [10]),
    "it began before the log, which the answer shows": ([(2, None, None, 3, True)], (2, 3), []),
    "it began before the log and ended since": ([(2, None, 60, 3, True)], (2, 3), []),
    "it began before the log and had ended": ([(2, None, 40, 3, True)], (2, 3), [2]),
    "it began before the log, in which it is missing": ([], (2, 3), [2]),
    "the same, but a marker ended it since": ([(None, None, 60, 3, True)], (2, 3), []),
}


def told(name: str) -> list[tuple[int | None, str | None]]:
    transactions, live, _ = PRODUCERS[name]
    start, epoch = live or (None, None)
    described = (DescribedTransaction(epoch, start),) if live else ()
    spans = tuple(ToldSpan(first, marker) for first, _, marker, _, _ in transactions)
    is_told = start is not None and start < END
    asked = [ToldTransaction("orders", 0, 7, start, MARK, BEGIN, spans)] if is_told else []
    logged = [
        LoggedTransaction("orders", 0, 7, first, epoch, last, MARK, described)
        for first, last, marker, epoch, is_exact in transactions
        if first is not None and marker is None and is_exact
    ]
    found = [*of_told(asked), *of_logged(logged)]
    assert {each.name for each in found} <= {"LIVE_ANSWER_DISAGREES"}
    return sorted((each.offset, each.evidence) for each in found)


@pytest.mark.parametrize("name", PRODUCERS)
def test_leaders_and_logs_that_disagree(name: str) -> None:
    assert [offset for offset, _ in told(name)] == PRODUCERS[name][2]


def test_the_evidence_about_a_producer_says_both() -> None:
    ((_, only_in_log),) = told("the leader does not know the producer")
    assert (
        only_in_log
        == "the log: open since offset 10, producer epoch 3; the leader: no open transaction of the producer"
    )
    ((_, only_live),) = told("the log has nothing there")
    assert only_live == "the leader: open since offset 10; the log: no transaction of the producer was open there"
    ((_, differs),) = told("epochs differ")
    assert differs.endswith("producer epoch 3; the leader: open since offset 10, producer epoch 4")


#: What differs in the copy and in the span -> whether the log is compared with the answer.
LOGGED = {
    "it is open": ({}, {}, True),
    "the copy is damaged": ({"damaged_offset": 7}, {}, False),
    "its end is damaged": ({"tail": "CORRUPT"}, {}, False),
    "the copy is not judged": ({"is_judged": False}, {}, False),
    "another partition": ({"partition": 1}, {}, False),
    "its start is not exact": ({}, {"is_start_exact": False}, False),
    "it has ended": ({}, {"marker_offset": 40}, False),
    "a later span is the newest": ({}, {"is_newest": False}, False),
}


@pytest.mark.both
@pytest.mark.parametrize("name", LOGGED)
def test_only_what_is_open_in_a_sound_judged_copy_is_compared(spark, name):
    copy, changed, is_compared = LOGGED[name]
    state = {"producer_epoch": 3, "last_offset": 15, "current_txn_first_offset": 10}
    span = PLACE | {"producer_id": 7, "first_offset": 10, "is_start_exact": True, "is_newest": True, "state": state}
    live = [
        PLACE | {"high_watermark": MARK, "producer_id": 7, "producer_epoch": 4, "current_transaction_start_offset": 12},
        PLACE | {"high_watermark": MARK, "producer_id": 8, "current_transaction_start_offset": 20},
    ]
    found = selected(
        LOGGED_TRANSACTIONS,
        live_producers=frame(spark, TABLES["live_producers"], *live),
        producer_spans=frame(spark, TABLES["producer_spans"], span | changed),
        coverage=frame(spark, TABLES["coverage"], COPY | copy),
    )
    expected = LoggedTransaction("orders", 0, 7, 10, 3, 15, MARK, (DescribedTransaction(4, 12),))
    assert found == ([expected] if is_compared else [])


#: First offset and marker of a span of a producer whose transaction was open from 10, or from 2, by its leader's
#: answer.
SPANS = list(product([None, 2, 10, 12], [None, 40, 50, 60]))


@pytest.mark.both
@pytest.mark.parametrize("start", [2, 10])
def test_spans_that_are_cleared_are_no_transaction_that_a_leader_called_open(spark, start):
    live = [
        PLACE | {"high_watermark": MARK, "producer_id": number, "current_transaction_start_offset": start}
        for number in range(len(SPANS))
    ]
    spans = [
        PLACE | {"producer_id": number, "first_offset": first, "marker_offset": marker}
        for number, (first, marker) in enumerate(SPANS)
    ]
    every = [
        ToldTransaction("orders", 0, number, start, MARK, BEGIN, (ToldSpan(*span),))
        for number, span in enumerate(SPANS)
    ]
    kept = selected(
        TOLD_TRANSACTIONS,
        live_producers=frame(spark, TABLES["live_producers"], *live),
        producer_spans=frame(spark, TABLES["producer_spans"], *spans),
        coverage=frame(spark, TABLES["coverage"], COPY),
    )
    assert set(of_told(kept)) == set(of_told(every))
    assert 0 < sum(len(each.spans) for each in kept) < len(every)


#: What is told, and of the copy -> whether a transaction is asked for that the log does not have.
ASKED = {
    "it is not in the log": ({}, {}, True),
    "the copy is damaged": ({}, {"damaged_offset": 7}, False),
    "its end is damaged": ({}, {"tail": "CORRUPT"}, False),
    "the copy is not judged": ({}, {"is_judged": False}, False),
    "another partition": ({}, {"partition": 1}, False),
    "behind the copy": ({"current_transaction_start_offset": END}, {}, False),
    "nothing is open": ({"current_transaction_start_offset": None}, {}, False),
}


@pytest.mark.parametrize("name", ASKED)
def test_only_what_a_sound_judged_copy_would_have_is_asked_for(spark, name):
    live, copy, is_asked = ASKED[name]
    told = PLACE | {"high_watermark": MARK, "producer_id": 7, "current_transaction_start_offset": 10} | live
    tables = {
        "live_producers": frame(spark, TABLES["live_producers"], told),
        "coverage": frame(spark, TABLES["coverage"], COPY | copy),
    }
    expected = [ToldTransaction("orders", 0, 7, 10, MARK, BEGIN)] if is_asked else []
    assert selected(TOLD_TRANSACTIONS, **tables) == expected


#: First offset and marker of a transaction in the log, whether its start is exact, the leader's last stable offset, and
#: whether the transaction explains it.
STABLE_OFFSETS = {
    "nothing is in the log": (None, 34, False),
    "it is open": ((34, None, True), 34, True),
    "it has ended": ((34, 60, True), 34, True),
    "it began later": ((40, None, True), 34, False),
    "it had ended": ((10, 20, True), 34, False),
    "it began before the log, and the leader raised its answer": ((2, None, True), 5, True),
    "only its marker is in the log": ((None, 60, True), 34, True),
    "its start is hidden": ((40, None, False), 34, True),
    "data outside of transactions": ((None, None, True), 34, False),
}


def test_a_last_stable_offset_is_explained_by_a_transaction_that_was_open_there(spark):
    copies, spans = [], []
    for number, (span, stable, _) in enumerate(STABLE_OFFSETS.values()):
        copies.append(STABLE | {"partition": number, "answered_stable_offset": stable})
        if span is not None:
            first, marker, is_exact = span
            place = {"topic": "orders", "partition": number, "producer_id": 7, "is_start_exact": is_exact}
            spans.append(place | {"first_offset": first, "marker_offset": marker})
    found = found_by(
        UNEXPLAINED_OFFSETS,
        coverage=frame(spark, TABLES["coverage"], *copies),
        producer_spans=frame(spark, TABLES["producer_spans"], *spans),
    )
    expected = [number for number, (*_, is_explained) in enumerate(STABLE_OFFSETS.values()) if not is_explained]
    assert sorted(each.partition for each in found) == expected


@pytest.mark.parametrize(
    ("copy", "log"),
    [
        ({}, "no transaction that was open there"),
        ({"answered_stable_offset": 50}, None),
        ({"answered_high_watermark": None}, None),
        ({"is_judged": False}, None),
        ({"is_judged": False, "status": "MISSING"}, "not captured"),
        ({"is_judged": False, "status": "MISSING", "is_gone": True}, None),
    ],
)
def test_a_last_stable_offset_that_nothing_explains(spark, copy: dict[str, object], log: str | None) -> None:
    found = found_by(UNEXPLAINED_OFFSETS, coverage=frame(spark, TABLES["coverage"], STABLE | copy))
    says = f"the leader: last stable offset 34, high watermark 50; the log: {log}"
    assert [(each.offset, each.evidence) for each in found] == ([(34, says)] if log else [])


#: Transactional id -> state, producer id, epoch and offset of its last record, the coordinator's answer, whether it is
#: a finding.
IDS = {
    "they agree": (("Ongoing", 7, 3, 10), ("Ongoing", 7, 3), False),
    "states differ": (("Ongoing", 7, 3, 10), ("CompleteAbort", 7, 3), True),
    "epochs differ": (("Ongoing", 7, 3, 10), ("Ongoing", 7, 4), True),
    "producer ids differ": (("Ongoing", 7, 3, 10), ("Ongoing", 8, 3), True),
    "expired in the log": ((None, 7, 3, 10), ("Empty", 7, 3), True),
    "changed since": (("CompleteCommit", 7, 3, MARK), ("Ongoing", 7, 3), False),
    "fenced in memory only": (("Ongoing", 7, 3, 10), ("PrepareEpochFence", 7, 4), False),
    "no state was told": (("Ongoing", 7, 3, 10), (None, 7, 4), False),
    "only the coordinator has it": (None, ("Empty", 7, 0), False),
}


def described(name: str, log_end: int | None = MARK) -> dict[str, tuple[int | None, str | None]]:
    record, (state, producer_id, epoch), _ = IDS[name]
    live = DescribedId(name, 0, producer_id, epoch, state, log_end)
    if record is not None:
        of_log, own_id, own_epoch, offset = record
        live = replace(
            live, offset=offset, producer_id=own_id, producer_epoch=own_epoch, state=of_log, producer_ids=(own_id,)
        )
    return {each.name: (each.offset, each.evidence) for each in of_described([live])}


@pytest.mark.parametrize("name", IDS)
def test_coordinators_and_logs_that_disagree(name: str) -> None:
    record, _, is_found = IDS[name]
    found = described(name).get("LIVE_ANSWER_DISAGREES")
    assert (found and found[0]) == (record[3] if is_found and record else None)


def test_of_a_coordinator_without_a_sound_copy_nothing_is_said() -> None:
    assert not any("LIVE_ANSWER_DISAGREES" in described(name, None) for name in IDS)


def test_an_owner_that_no_record_names_is_found() -> None:
    found = [name for name in IDS if "LIVE_OWNER_UNKNOWN" in described(name)]
    assert found == ["producer ids differ", "only the coordinator has it"]


def test_the_evidence_about_an_id_says_both() -> None:
    assert described("expired in the log")["LIVE_ANSWER_DISAGREES"][1] == (
        "the log: no state, producer id 7, producer epoch 3; the coordinator: Empty, producer id 7, producer epoch 3"
    )
    assert described("only the coordinator has it")["LIVE_OWNER_UNKNOWN"][1] == (
        "the log: no record of the id with this producer id; the coordinator: Empty, producer epoch 0"
    )


@pytest.mark.parametrize(("copy", "log_end"), [({}, 50), ({"damaged_offset": 7}, None), ({"partition": 4}, None)])
def test_of_an_id_that_was_asked_for_the_last_record_and_all_producer_ids_count(spark, copy, log_end):
    place = {"transactional_id": "pay", "coordinator_partition": 3, "is_tombstone": False, "producer_epoch": 1}
    records = [
        place | {"offset": 5, "producer_id": 7, "state": "Empty"},
        place | {"offset": 9, "producer_id": 8, "state": "Ongoing"},
        place | {"offset": 9, "producer_id": 8, "state": "Ongoing", "transactional_id": "not asked"},
    ]
    live = {"coordinator_partition": 3, "producer_id": 8, "producer_epoch": 1, "state": "Ongoing", "log_end_offset": 50}
    sound = {"topic": TRANSACTION_STATE_TOPIC, "partition": 3, "is_judged": True, "tail": "CLEAN"}
    found, unknown = sorted(
        selected(
            DESCRIBED_IDS,
            live_transactions=frame(
                spark, TABLES["live_transactions"], *({"transactional_id": id_} | live for id_ in ("pay", "unknown"))
            ),
            coordinator_states=frame(spark, TABLES["coordinator_states"], *records),
            coverage=frame(spark, TABLES["coverage"], sound | copy),
        ),
        key=lambda each: each.transactional_id,
    )
    assert (found.transactional_id, found.state, found.producer_id, found.offset) == ("pay", "Ongoing", 8, 9)
    assert (sorted(found.producer_ids), found.log_end_offset) == ([7, 8], log_end)
    assert (unknown.offset, unknown.producer_ids) == (None, ())
