"""The two examples of KIP-939: their records, ids and markers."""

from itertools import pairwise

import pytest

from tests.support.cases import Given, case, replace
from tests.support.log_notation import judged, rec
from txnlib.core.finding import Finding
from txnlib.core.kafka.odd_coordinator_records import ILLEGAL_TRANSITION, SuspectStep, oddities
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.verdicts.dossier import Owner
from txnlib.core.verdicts.reason import is_decision_marker

MAX = 32767
FOREVER = {"transaction_timeout_ms": 2147483647}
IN_DOUBT = {"next_producer_id": 73, **FOREVER}

#: example -> its records, from row 1 of its table on; rows without a record are left out.
EXAMPLES = {
    "A: one overflow, an ordinary transaction": [
        rec("E", 42, MAX - 1),
        rec("O", 42, MAX - 1, {"a-0"}),
        rec("PC", 42, MAX, {"a-0"}, next_producer_id=85, next_producer_epoch=0),
        rec("CC", 85, 0, previous_producer_id=42),
    ],
    "B: two-phase commit, two overflows": [
        rec("E", 42, MAX - 1, **FOREVER),
        rec("O", 42, MAX - 1, {"a-0"}, **FOREVER),
        rec("O", 42, MAX - 1, {"a-0"}, next_producer_epoch=0, **IN_DOUBT),
        rec("O", 42, MAX - 1, {"a-0"}, next_producer_epoch=1, **IN_DOUBT),
        rec("O", 42, MAX - 1, {"a-0"}, next_producer_epoch=2, **IN_DOUBT),
        rec("O", 42, MAX - 1, {"a-0"}, next_producer_epoch=MAX, **IN_DOUBT),
        rec("PC", 42, MAX, {"a-0"}, previous_producer_id=73, next_producer_id=85, next_producer_epoch=0, **FOREVER),
        rec("CC", 85, 0, previous_producer_id=73, **FOREVER),
    ],
    "of the pull request: a kept transaction whose client is at a later epoch": [
        rec("O", 42, 100, {"a-0"}, **FOREVER),
        rec("O", 42, 100, {"a-0"}, next_producer_id=42, next_producer_epoch=101, **FOREVER),
        rec("PC", 42, 101, {"a-0"}, next_producer_id=42, next_producer_epoch=102, **FOREVER),
        rec("CC", 42, 102, **FOREVER),
    ],
}
A_, B_, _ = EXAMPLES.values()


def found(before: TransactionLogEntry, after: TransactionLogEntry) -> list[tuple[Finding, str]]:
    return list(oddities(SuspectStep(judged(before), judged(after), True)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_M07_nothing_is_odd_about_an_example_of_KIP_939(name: str) -> None:
    assert [found(*step) for step in pairwise(EXAMPLES[name])] == [[]] * (len(EXAMPLES[name]) - 1)


@pytest.mark.parametrize(
    ("record", "expected"), [(A_[-1], {85, 42}), (B_[-1], {85, 73}), (B_[2], {42, 73}), (rec("O", 7, 0), {7})]
)
def test_M07_a_record_names_every_producer_id_of_its_id(record: TransactionLogEntry, expected: set[int]) -> None:
    assert record.producer_ids == expected


DECIDED = Given(
    owner=Owner.CURRENT, state=B_[-2].transaction_state, producer_epoch=MAX, record_coordinator_epoch=7, is_listed=True
)
MARKED = Given(
    topic="a", partition=0, producer_id=42, producer_epoch=MAX - 1, coordinator_epoch=7, start_offset=0,
    last_timestamp_ms=None, marker_offset=1, marker_type="COMMIT", marker_epoch=MAX, marker_coordinator_epoch=7,
)  # fmt: skip


@pytest.mark.parametrize(
    ("marker", "is_decision"), [({}, True), ({"marker_epoch": 0}, False), ({"marker_type": "ABORT"}, False)]
)
def test_M07_only_the_marker_at_MAX_is_the_decision(marker: dict[str, object], is_decision: bool) -> None:
    assert is_decision_marker(case(replace(MARKED, **marker), DECIDED)) is is_decision


def test_M07_a_complete_with_a_producer_id_that_was_not_announced_is_odd() -> None:
    assert found(B_[-2], replace(B_[-1], producer_id=73)) == [
        (ILLEGAL_TRANSITION, "producer id 42 to 73"),
    ]
