"""Steps between two records of an id. Group E restates Kafka's `TransactionMetadataTest`, M its coordinator."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.support.log_notation import TS, judged, rec
from txnlib.core.kafka.odd_coordinator_records import (
    COORDINATOR_EPOCH_WENT_BACK,
    EPOCH_BEYOND_EXHAUSTION,
    ILLEGAL_TRANSITION,
    SuspectStep,
    oddities,
)
from txnlib.core.kafka.transaction_log import TransactionLogEntry

P, Q = 40, 9893
T1, A = {"topic1-0"}, {"a-0"}
BACK = TS - 1


def step(
    before: TransactionLogEntry | None, after: TransactionLogEntry | None, *, is_consecutive: bool = True
) -> list[str]:
    """What no coordinator does in the step between two records of one leader."""
    found = list(oddities(SuspectStep(judged(before), judged(after), is_consecutive)))
    assert {finding for finding, _ in found} <= {ILLEGAL_TRANSITION}
    return [says for _, says in found]


def history(*records: TransactionLogEntry | None) -> list[list[str]]:
    """The same of all steps of an id from its first record on."""
    first = [says for _, says in oddities(SuspectStep(None, judged(records[0]), True))]
    return [first, *(step(before, after) for before, after in pairwise(records))]


#: id -> history in which nothing is odd.
LEGAL_HISTORIES = {
    "E01 a new id begins at epoch 0": [rec("E", P, 0)],
    "E05 an exhausted id moves to a new producer id, though the clock went back": [
        rec("E", P, 1, update=TS),
        rec("E", P + 1, 0, update=BACK),
    ],
    "E06 a transaction begins while the clock goes back": [
        rec("E", P, 1, update=TS),
        rec("O", P, 1, T1, update=BACK, start_timestamp_ms=TS - 1),
    ],
    "E07 partitions are added while the clock goes back": [
        rec("E", P, 1, update=TS),
        rec("O", P, 1, T1, update=BACK, start_timestamp_ms=TS - 1),
        rec("O", P, 1, {"topic1-0", "topic2-0"}, update=TS - 2, start_timestamp_ms=TS - 1),
    ],
    "E08 a commit while the clock goes back": [rec("E", P, 1), rec("O", P, 1, T1), rec("PC", P, 1, T1, update=BACK)],
    "E10 a commit of transactions v1": [
        rec("E", P, 1),
        rec("O", P, 1, T1),
        rec("PC", P, 1, T1),
        rec("CC", P, 1, update=BACK),
    ],
    "E11 an abort by the client": [
        rec("E", P, 1),
        rec("O", P, 1, T1),
        rec("PA", P, 1, T1),
        rec("CA", P, 1, update=BACK),
    ],
    "E12 a fence at the last epoch": [
        rec("E", P, 32766),
        rec("O", P, 32766, T1),
        rec("PA", P, 32767, T1),
        rec("CA", P, 32767),
        rec("E", Q, 0),
    ],
    "E15 transactions v2 raise the epoch at every end": [
        rec("E", P, 10),
        rec("O", P, 10, T1),
        rec("PC", P, 11, T1),
        rec("CC", P, 11),
    ],
    "E16 the epoch overflows at the end of a transaction": [
        rec("E", P, 32766),
        rec("O", P, 32766, T1),
        rec("PC", P, 32767, T1, next_producer_id=Q),
        rec("CC", Q, 0, previous_producer_id=P),
    ],
    "E16 the same before 4.3, which does not write the next producer id": [
        rec("E", P, 32766),
        rec("O", P, 32766, T1),
        rec("PC", P, 32767, T1),
        rec("CC", Q, 0),
    ],
    "E18 a new id begins at epoch 0, whatever epoch its client expects": [rec("E", P, 0), rec("O", P, 0, A)],
    "E20 a retried initialisation leaves the epoch": [rec("E", P, 735), rec("E", P, 735)],
    "M02 a commit of transactions v2 and the next transaction": [
        rec("E", P, 3),
        rec("O", P, 3, A),
        rec("PC", P, 4, A),
        rec("CC", P, 4),
        rec("O", P, 4, {"b-0"}, start_timestamp_ms=TS + 1),
    ],
    "M08 a timeout at the last epoch": [
        rec("E", P, 32766),
        rec("O", P, 32766, A),
        rec("PA", P, 32767, A, next_producer_id=Q),
        rec("CA", Q, 0),
    ],
    "null and no partitions are the same set": [rec("O", P, 3, transaction_partitions=None), rec("PC", P, 3)],
}


@pytest.mark.parametrize("name", LEGAL_HISTORIES)
def test_nothing_is_odd_about_what_a_coordinator_does(name: str) -> None:
    records = LEGAL_HISTORIES[name]
    assert history(*records) == [[]] * len(records)


def test_M13_compaction_explains_what_would_be_illegal() -> None:
    prepared, completed, later = rec("PC", P, 3, A), rec("CC", P, 9), rec("PC", P, 9, A)
    assert step(prepared, completed, is_consecutive=False) == step(completed, later, is_consecutive=False) == []
    assert step(completed, later) == [STEP]


AB = {"a-0", "b-0"}
ONGOING, PREPARED, COMPLETED = rec("O", P, 3, AB), rec("PC", P, 3, AB), rec("CC", P, 3)
EMPTY, ABORTED = rec("E", P, 3), rec("CA", P, 3)
EXHAUSTED = replace(PREPARED, producer_epoch=32767)
STEP, OTHER_ID, EPOCH_BACK = (
    "no coordinator takes this step", f"producer id {P} to {Q}", "producer epoch 3 to 2",
)  # fmt: skip

#: id and reason -> records before and after, what is odd about the step.
ODD_STEPS = {
    "E17 rotated while Ongoing": (ONGOING, replace(ONGOING, producer_id=Q), [OTHER_ID]),
    "E17 rotated at Prepare": (ONGOING, replace(PREPARED, producer_id=Q), [OTHER_ID]),
    "E17 rotated at Complete": (PREPARED, rec("CC", Q, 0), [OTHER_ID]),
    "exhausted, but above epoch 0": (EXHAUSTED, rec("CC", Q, 1), [OTHER_ID]),
    "not yet exhausted": (replace(PREPARED, producer_epoch=32766), rec("CC", Q, 0), [OTHER_ID]),
    "not the announced one": (replace(EXHAUSTED, next_producer_id=Q + 1), rec("CC", Q, 0), [OTHER_ID]),
    "the announced one": (replace(EXHAUSTED, next_producer_id=Q), rec("CC", Q, 0), []),
    "E17 rotated while prepared is no retry": (PREPARED, replace(PREPARED, producer_id=Q), [OTHER_ID]),
    "a retried Complete of another producer id": (COMPLETED, rec("CC", Q, 3), [OTHER_ID]),
    "a transaction begins with another producer id": (EMPTY, rec("O", Q, 3, AB), [OTHER_ID]),
    "an abort of nothing keeps the producer id": (EMPTY, rec("PA", Q, 4), [OTHER_ID]),
    "the epoch goes back": (ONGOING, replace(PREPARED, producer_epoch=2), [EPOCH_BACK]),
    "a Complete takes no epoch back": (PREPARED, rec("CC", P, 2), [EPOCH_BACK]),
    "an Empty takes no epoch back": (COMPLETED, rec("E", P, 2), [EPOCH_BACK]),
    "an illegal step to an older epoch": (COMPLETED, rec("PC", P, 2, AB), [f"{STEP}, {EPOCH_BACK}"]),
}


@pytest.mark.parametrize("name", ODD_STEPS)
def test_a_step_to_a_value_that_no_coordinator_writes_is_a_finding(name: str) -> None:
    before, after, expected = ODD_STEPS[name]
    assert step(before, after) == expected


def test_over_a_hole_only_an_epoch_that_went_back_is_odd() -> None:
    for before, after, expected in ODD_STEPS.values():
        went_back = [EPOCH_BACK] if any(EPOCH_BACK in says for says in expected) else []
        assert step(before, after, is_consecutive=False) == went_back


#: An illegal step, and whether an append that timed out explains it (docs/rules/transactions.md#phantom-appends).
TAKEN_BACK = [
    (PREPARED, ONGOING, True),
    (PREPARED, rec("PA", P, 4, AB), True),  # a commit timed out, then the transaction did
    (rec("PA", P, 3, A), rec("PC", P, 3, A), True),
    (PREPARED, replace(ONGOING, producer_id=Q), False),
    (PREPARED, replace(ONGOING, start_timestamp_ms=TS + 1), False),  # not the same transaction
    (PREPARED, rec("E", P, 4), False),
    (PREPARED, rec("E", Q, 0), False),
    (rec("PA", P, 3, AB), rec("E", Q, 0), False),
    (PREPARED, rec("CA", P, 3), False),
    (PREPARED, rec("CA", Q, 0), False),  # an illegal step is not judged further
    (COMPLETED, PREPARED, False),
    (ONGOING, COMPLETED, False),
    (PREPARED, None, False),
    (ONGOING, rec("E", P, 3), True),  # its first append timed out; the client began anew
    (ONGOING, rec("E", P, 4), True),
    (ONGOING, rec("E", Q, 0), False),
    (replace(ONGOING, producer_epoch=32766), rec("E", Q, 0), True),  # anew, with a new producer id
    (ONGOING, None, True),  # its first append timed out; the client died, and the id expired
    (None, ONGOING, True),  # the tombstone timed out; the id goes on
    (None, rec("PA", P, 4), True),
    (None, PREPARED, False),
    (None, COMPLETED, False),
    (rec("PA", P, 4), rec("O", P, 4, AB, start_timestamp_ms=TS + 9), True),  # the abort of an empty transaction
    (rec("PA", P, 4), rec("E", P, 4), True),
    (rec("PA", P, 4), None, True),
]


@pytest.mark.parametrize(("before", "after", "is_explained"), TAKEN_BACK)
def test_an_illegal_step_is_no_finding_where_an_append_that_timed_out_explains_it(before, after, is_explained):
    assert step(before, after) == ([] if is_explained else [STEP])


NEXT_ID = rec("E", Q, 0)
#: A record that was taken back, what follows at an older epoch or with the previous producer id, what is odd.
GOES_ON = {
    "an initialisation, and the old client goes on": (rec("E", P, 4), ONGOING, []),
    "... and aborts nothing": (rec("E", P, 4), rec("PA", P, 4), []),
    "... and is two epochs old": (rec("E", P, 5), ONGOING, ["producer epoch 5 to 3"]),
    "... at the end of epochs": (NEXT_ID, rec("O", P, 32766, AB), []),
    "... and was not at the end of its epochs": (NEXT_ID, ONGOING, [f"producer id {Q} to {P}"]),
    "a commit of transactions v2, and its transaction goes on": (rec("PC", P, 4, AB), ONGOING, []),
    "... two epochs back": (rec("PC", P, 5, AB), ONGOING, ["producer epoch 5 to 3"]),
    "a timeout, and the client's abort": (rec("PA", P, 4, AB), rec("PA", P, 3, AB), []),
}


@pytest.mark.parametrize("name", GOES_ON)
def test_a_client_goes_on_where_its_coordinator_took_a_step_back(name: str) -> None:
    before, after, expected = GOES_ON[name]
    assert step(before, after) == expected


@pytest.mark.parametrize("record", [PREPARED, rec("PA", P, 3, A), COMPLETED, rec("CA", P, 3)])
def test_F26_a_record_written_twice_is_a_retry(record: TransactionLogEntry) -> None:
    assert step(record, record) == step(record, replace(record, last_update_timestamp_ms=TS + 5)) == []


@pytest.mark.parametrize("last", [EMPTY, COMPLETED, ABORTED, None])
def test_F13_an_id_expires_and_begins_again_with_another_producer_id(last: TransactionLogEntry | None) -> None:
    assert [step(last, None), step(None, rec("E", Q, 0))] == [[], []]


#: What a step may change without being illegal: an excess of an epoch, a timeout, a start, partitions.
HARMLESS = [
    (ONGOING, rec("PA", P, 5, AB)),  # M05, the double bump of 4.0.0
    (ONGOING, rec("O", P, 3, A)),  # M12, an append of another partition timed out
    (ONGOING, replace(PREPARED, transaction_timeout_ms=1)),
    (PREPARED, rec("CC", P, 3, start_timestamp_ms=None)),
    (EMPTY, rec("PA", P, 4, start_timestamp_ms=TS)),  # M09, an abort of nothing
]


@pytest.mark.parametrize(("before", "after"), HARMLESS)
def test_a_change_that_nobody_acts_on_is_no_finding(before: TransactionLogEntry, after: TransactionLogEntry) -> None:
    assert step(before, after) == []


#: id and reason -> a record that is odd by itself.
ODD_RECORDS = {
    "E03 handed out at the last epoch": (rec("E", P, 32767), [EPOCH_BEYOND_EXHAUSTION]),
    "E13 Ongoing at an epoch that cannot be fenced": (rec("O", P, 32767, A), [EPOCH_BEYOND_EXHAUSTION]),
    "a state of the memory": (rec("DEAD", P, 3), [ILLEGAL_TRANSITION]),
    "the other one": (rec("FENCE", P, 3), [ILLEGAL_TRANSITION]),
    "the highest epoch a client may hold": (rec("O", P, 32766), []),
    "the epoch of a marker at exhaustion": (rec("PA", P, 32767), []),
    "E25 Complete without a start": (rec("CC", P, 3, start_timestamp_ms=None), []),
}


@pytest.mark.parametrize("name", ODD_RECORDS)
def test_a_record_can_be_odd_by_itself(name: str) -> None:
    record, findings = ODD_RECORDS[name]
    assert [finding for finding, _ in oddities(SuspectStep(None, judged(record), False))] == findings


@pytest.mark.parametrize("is_consecutive", [False, True])
@pytest.mark.parametrize(("before", "after", "went_back"), [(3, 3, False), (3, 4, False), (4, 3, True)])
def test_leader_epochs_never_decrease_in_a_log(before: int, after: int, went_back: bool, is_consecutive: bool) -> None:
    seen = list(oddities(SuspectStep(judged(ONGOING, before), judged(ONGOING, after), is_consecutive)))
    assert seen == ([(COORDINATOR_EPOCH_WENT_BACK, "coordinator epoch 4 to 3")] if went_back else [])
