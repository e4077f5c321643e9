"""What brokers answered against what their logs show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txnlib.core.copies import CoverageRow
from txnlib.core.findings.live_answer_findings import (
    AskedId,
    LiveProducer,
    LiveTransaction,
    ToldSpan,
    answers_of,
    lost_transactions,
    of_live_transactions,
    stable_questions,
    unexplained_stable_offsets,
)
from txnlib.core.findings.producer_findings import NewestSpan, OddProducer, ProducerChecks, of_producers
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.producer_state import ProducerState

BEGIN, END, MARK = 5, 100, 50
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
COPY = CoverageRow("orders", 0, is_judged=True, status="COMPLETE", tail="CLEAN", first_offset=BEGIN, end_offset=END)
ASKED = LiveProducer("orders", 0, MARK, None, None, None)


def told(name: str, copy: CoverageRow = COPY) -> list[tuple[int | None, str | None]]:
    transactions, live, _ = PRODUCERS[name]
    answers = answers_of(
        [
            ASKED,
            *(
                [replace(ASKED, producer_id=7, producer_epoch=live[1], current_transaction_start_offset=live[0])]
                if live
                else []
            ),
        ],
        [copy],
    )
    spans = [ToldSpan("orders", 0, 7, first, marker) for first, _, marker, _, _ in transactions]
    checks = ProducerChecks(as_of_ms=1, clock_tolerance_ms=0, producer_id_expiration_ms=1, answers=answers)
    producers = [
        OddProducer("orders", 0, 7, (), None, NewestSpan(first, last, is_exact, marker, None, None, None, state))
        for first, last, marker, epoch, is_exact in transactions
        for state in [ProducerState(epoch, 4, last, 0, None, None if marker else first)]
    ]
    found = [*lost_transactions(answers, spans), *of_producers(producers, checks)]
    assert {each.name for each in found} <= {"LIVE_ANSWER_DISAGREES"}
    return sorted((each.offset, each.evidence) for each in found)


@pytest.mark.parametrize("name", PRODUCERS)
def test_leaders_and_logs_that_disagree(name: str) -> None:
    assert [offset for offset, _ in told(name)] == PRODUCERS[name][2]


@pytest.mark.parametrize(
    "changed", [{"damaged_offset": 7}, {"tail": "CORRUPT"}, {"is_judged": False}, {"partition": 1}]
)
def test_only_sound_judged_copies_of_asked_partitions_are_compared(changed: dict[str, object]) -> None:
    assert not any(told(name, replace(COPY, **changed)) for name in PRODUCERS)


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


STABLE = replace(COPY, answered_stable_offset=34, answered_high_watermark=50)


@pytest.mark.parametrize(
    ("copy", "evidence"),
    [
        (STABLE, "the leader: last stable offset 34, high watermark 50; the log: no transaction that was open there"),
        (replace(STABLE, answered_stable_offset=50), None),
        (replace(STABLE, answered_high_watermark=None), None),
        (replace(STABLE, is_judged=False), None),
        (
            replace(STABLE, is_judged=False, status="MISSING"),
            "the leader: last stable offset 34, high watermark 50; the log: not captured",
        ),
        (replace(STABLE, is_judged=False, status="MISSING", is_gone=True), None),
    ],
)
def test_a_last_stable_offset_that_nothing_explains(copy: CoverageRow, evidence: str | None) -> None:
    found = list(unexplained_stable_offsets(stable_questions([copy]), set()))
    assert [(each.offset, each.evidence) for each in found] == ([(34, evidence)] if evidence else [])
    assert not list(unexplained_stable_offsets(stable_questions([copy]), {("orders", 0)}))


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
COORDINATOR = replace(COPY, topic=TRANSACTION_STATE_TOPIC)


def described(
    name: str, copy: CoverageRow = COORDINATOR, log_end: int | None = MARK
) -> dict[str, tuple[int | None, str | None]]:
    record, (state, producer_id, epoch), _ = IDS[name]
    live = LiveTransaction(name, 0, producer_id, epoch, state, log_end)
    ids = [] if record is None else [AskedId(name, 0, record[1], record[2], record[0], record[3], (record[1],))]
    return {each.name: (each.offset, each.evidence) for each in of_live_transactions([live], ids, [copy])}


@pytest.mark.parametrize("name", IDS)
def test_coordinators_and_logs_that_disagree(name: str) -> None:
    record, _, is_found = IDS[name]
    found = described(name).get("LIVE_ANSWER_DISAGREES")
    assert (found and found[0]) == (record[3] if is_found and record else None)


@pytest.mark.parametrize("nothing", [{"copy": replace(COORDINATOR, damaged_offset=7)}, {"log_end": None}])
def test_of_a_coordinator_without_a_sound_copy_nothing_is_said(nothing: dict[str, object]) -> None:
    assert not any("LIVE_ANSWER_DISAGREES" in described(name, **nothing) for name in IDS)


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
