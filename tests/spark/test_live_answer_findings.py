"""What brokers answered against what their logs show."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support.frames import assert_rows, frame
from txnlib.spark.findings.live_answer_findings import live_answer_findings, unexplained_stable_offsets
from txnlib.spark.schemas import COORDINATOR_STATES, COVERAGE, LIVE_PRODUCERS, LIVE_TRANSACTIONS, PRODUCER_SPANS

BEGIN, END, MARK = 5, 100, 50
#: Producer -> its transactions in the log (first offset, last offset, marker, epoch, whether the start is exact), what the leader
#: answered (start, epoch; None: it does not know the producer), and offsets of the findings. The log reaches from BEGIN to END;
#: when the leader was asked, its high watermark was MARK.
PRODUCERS = {
    "they agree": ([(10, 15, None, 3, True)], (10, 3), []),
    "the leader does not know the producer": ([(10, 15, None, 3, True)], None, [10]),
    "nothing is open for the leader": ([(10, 15, None, 3, True)], (None, 3), [10]),
    "it has ended since": ([(10, 15, 60, 3, True)], (10, 3), []),
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
#: Transactional id -> state, producer id, epoch and offset of its last record, the coordinator's answer, whether it is a finding.
IDS = {
    "they agree": (("Ongoing", 7, 3, 10), ("Ongoing", 7, 3), False),
    "states differ": (("Ongoing", 7, 3, 10), ("CompleteAbort", 7, 3), True),
    "epochs differ": (("Ongoing", 7, 3, 10), ("Ongoing", 7, 4), True),
    "producer ids differ": (("Ongoing", 7, 3, 10), ("Ongoing", 8, 3), True),
    "expired in the log": ((None, 7, 3, 10), ("Empty", 7, 3), True),
    "changed since": (("CompleteCommit", 7, 3, MARK), ("Ongoing", 7, 3), False),
    "fenced in memory only": (("Ongoing", 7, 3, 10), ("PrepareEpochFence", 7, 4), False),
    "only the coordinator has it": (None, ("Empty", 7, 0), False),
}
WHOLE, DAMAGED, SILENT = 0, 1, 2
TOPIC = {"topic": "orders"}


def told(spark, *, damaged=None, log_end=MARK):
    """The findings of both grids. Partition DAMAGED is damaged, nobody was asked about SILENT."""
    spans, answers = [], []
    for partition in (WHOLE, DAMAGED, SILENT):
        where = TOPIC | {"partition": partition}
        answers += [where | {"high_watermark": MARK}] if partition != SILENT else []
        for number, (transactions, live, _) in enumerate(PRODUCERS.values()):
            for first, last, marker, epoch, is_exact in transactions:
                state = (epoch, 4, last, 0, None, None if marker else first, None)
                spans.append(
                    where
                    | {"producer_id": number, "span": 0, "first_offset": first, "last_offset": last, "marker_offset": marker}
                    | {"is_start_exact": is_exact, "state": state, "is_newest": True}
                )
            if live is not None and partition != SILENT:
                start, epoch = live
                row = {"producer_id": number, "producer_epoch": epoch, "current_transaction_start_offset": start}
                answers.append(where | {"high_watermark": MARK} | row)
    states, described = [], []
    for name, (record, live, _) in IDS.items():
        place = {"transactional_id": name, "coordinator_partition": 0}
        if record is not None:
            state, producer_id, epoch, offset = record
            value = {"producer_id": producer_id, "producer_epoch": epoch}
            states.append(place | value | {"offset": 5, "is_tombstone": False, "state": state or "Empty"})
            states.append(place | value | {"offset": offset, "is_tombstone": state is None, "state": state})
        state, producer_id, epoch = live
        described.append(place | {"producer_id": producer_id, "producer_epoch": epoch, "state": state, "log_end_offset": log_end})
    copies = [
        {"topic": topic, "partition": partition, "is_judged": True, "first_offset": BEGIN, "end_offset": END, "tail": "CLEAN"}
        | {"damaged_offset": 7 if partition == DAMAGED or topic == damaged else None}
        for topic, partition in [("orders", WHOLE), ("orders", DAMAGED), ("orders", SILENT), ("__transaction_state", 0)]
    ]
    return live_answer_findings(
        frame(spark, PRODUCER_SPANS, *spans),
        frame(spark, COORDINATOR_STATES, *states),
        frame(spark, LIVE_PRODUCERS, *answers),
        frame(spark, LIVE_TRANSACTIONS, *described),
        frame(spark, COVERAGE, *copies),
    )


def test_leaders_and_logs_that_disagree(spark):
    found = told(spark).where("name = 'LIVE_PRODUCER_DISAGREES'")
    expected = [(WHOLE, number, offset) for number, (*_, offsets) in enumerate(PRODUCERS.values()) for offset in offsets]
    assert_rows(found, expected, "partition", "producer_id", "offset")


#: First offset and marker of a transaction in the log, whether its start is exact, the leader's last stable offset and high
#: watermark, and whether they contradict each other.
STABLE_OFFSETS = {
    "nothing was open": (None, (50, 50), False),
    "nothing is in the log": (None, (34, 50), True),
    "it is open": ((34, None, True), (34, 50), False),
    "it has ended": ((34, 60, True), (34, 50), False),
    "it began later": ((40, None, True), (34, 50), True),
    "it had ended": ((10, 20, True), (34, 50), True),
    "it began before the log, and the leader raised its answer": ((2, None, True), (5, 50), False),
    "only its marker is in the log": ((None, 60, True), (34, 50), False),
    "its start is hidden": ((40, None, False), (34, 50), False),
    "data outside of transactions": ((None, None, True), (34, 50), True),
}


def test_a_last_stable_offset_that_nothing_explains(spark: SparkSession) -> None:
    coverage = [
        {"topic": "orders", "partition": number, "is_judged": True, "status": "COMPLETE"}
        | {"answered_stable_offset": stable, "answered_high_watermark": mark}
        for number, (_, (stable, mark), _) in enumerate(STABLE_OFFSETS.values())
    ]
    missing = {"topic": "missing", "is_judged": False, "status": "MISSING", "answered_stable_offset": 1}
    coverage += [missing | {"partition": 0, "answered_high_watermark": mark} for mark in (2,)]
    coverage += [missing | {"partition": 1, "answered_high_watermark": 1}, missing | {"partition": 2, "is_gone": True}]
    spans = [
        {"topic": "orders", "partition": number, "producer_id": 7, "first_offset": span[0], "marker_offset": span[1]}
        | {"is_start_exact": span[2]}
        for number, (span, *_) in enumerate(STABLE_OFFSETS.values())
        if span is not None
    ]
    found = unexplained_stable_offsets(frame(spark, COVERAGE, *coverage), frame(spark, PRODUCER_SPANS, *spans))
    expected = [("orders", number) for number, (*_, is_found) in enumerate(STABLE_OFFSETS.values()) if is_found]
    assert_rows(found, [*expected, ("missing", 0)], "topic", "partition")


def test_coordinators_and_logs_that_disagree(spark):
    found = told(spark).where("name = 'LIVE_STATE_DISAGREES'")
    expected = [(name, record[3]) for name, (record, _, is_found) in IDS.items() if is_found]
    assert_rows(found, expected, "transactional_id", "offset")


@pytest.mark.parametrize("nothing", [{"damaged": "__transaction_state"}, {"log_end": None}], ids=["damaged", "not fetched before"])
def test_of_a_coordinator_without_a_sound_copy_nothing_is_said(spark, nothing):
    assert told(spark, **nothing).where("name = 'LIVE_STATE_DISAGREES'").isEmpty()


def test_an_owner_that_no_record_names_is_found(spark):
    found = told(spark).where("name = 'LIVE_OWNER_UNKNOWN'")
    logged = {(name, record[1]) for name, (record, *_) in IDS.items() if record is not None}
    expected = [(name, live[1]) for name, (_, live, _) in IDS.items() if (name, live[1]) not in logged]
    assert expected
    assert_rows(found, expected, "transactional_id", "producer_id")


def test_the_evidence_says_both(spark):
    rows = {(row["offset"], row["producer_id"], row["transactional_id"]): row["evidence"] for row in told(spark).collect()}
    assert rows[10, 1, None] == "the log: open since offset 10, producer epoch 3; the leader: no open transaction of the producer"
    assert rows[10, 4, None] == "the leader: open since offset 10; the log: no transaction of the producer was open there"
    assert rows[10, 7, "expired in the log"] == (
        "the log: no state, producer id 7, producer epoch 3; the coordinator: Empty, producer id 7, producer epoch 3"
    )
