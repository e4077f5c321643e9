"""Steps between two records of an id. Group E restates Kafka's `TransactionMetadataTest`, M its coordinator."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.support.log_notation import TS, rec
from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.coordinator import CoordinatorRecord, Transition, transition
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import STEPS, Step

P, Q = 40, 9893
T1, A = {"topic1-0"}, {"a-0"}
BACK = TS - 1

LEGAL = Transition(Step.LEGAL, ())


def step(before: TransactionLogEntry | None, after: TransactionLogEntry | None) -> Transition:
    """The step between two consecutive records of one leader."""
    return transition(CoordinatorRecord(before, 3), CoordinatorRecord(after, 3), is_consecutive=True)


def history(*records: TransactionLogEntry) -> list[Transition]:
    """All steps of an id from its first record on."""
    steps = [transition(None, CoordinatorRecord(records[0], 3), is_consecutive=True)]
    return steps + [step(before, after) for before, after in pairwise(records)]


def legal(count: int) -> list[Transition]:
    return [Transition(None, ())] + [LEGAL] * (count - 1)


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
    assert history(*records) == legal(len(records))


def test_M09_an_abort_of_nothing_is_a_step_of_transactions_v2() -> None:
    steps = history(rec("E", P, 3), rec("PA", P, 4), rec("CA", P, 4))
    assert steps == [Transition(None, ()), Transition(Step.TRANSACTIONS_V2, ()), LEGAL]


def test_M12_an_append_that_timed_out_looks_like_a_phantom() -> None:
    steps = history(rec("E", P, 3), rec("O", P, 3, A), rec("O", P, 3, {"b-0"}), rec("PC", P, 3, {"b-0"}))
    assert steps[2] == Transition(Step.LEGAL, (Finding.SUSPICIOUS_PHANTOM_APPEND,))
    assert [*steps[:2], *steps[3:]] == legal(3)


def test_M13_compaction_explains_what_would_be_illegal() -> None:
    prepared, completed = CoordinatorRecord(rec("PC", P, 3, A), 3), CoordinatorRecord(rec("CC", P, 9), 3)
    later = CoordinatorRecord(rec("PC", P, 9, A), 3)
    assert transition(prepared, completed, is_consecutive=False) == Transition(None, ())
    assert transition(completed, later, is_consecutive=False) == Transition(None, ())
    assert transition(completed, later, is_consecutive=True).step is Step.ILLEGAL


AB = {"a-0", "b-0"}
ONGOING, PREPARED, COMPLETED = rec("O", P, 3, AB), rec("PC", P, 3, AB), rec("CC", P, 3)
EXHAUSTED = replace(PREPARED, producer_epoch=32767)

#: id and reason -> records before and after, what is odd about the step.
ODD_STEPS = {
    "E17 rotated while Ongoing": (ONGOING, replace(ONGOING, producer_id=Q), [Finding.PRODUCER_ID_CHANGED]),
    "E17 rotated at Prepare": (ONGOING, replace(PREPARED, producer_id=Q), [Finding.PRODUCER_ID_CHANGED]),
    "E17 rotated at Complete": (PREPARED, rec("CC", Q, 0), [Finding.PRODUCER_ID_CHANGED]),
    "exhausted, but above epoch 0": (EXHAUSTED, rec("CC", Q, 1), [Finding.PRODUCER_ID_CHANGED]),
    "not yet exhausted": (replace(PREPARED, producer_epoch=32766), rec("CC", Q, 0), [Finding.PRODUCER_ID_CHANGED]),
    "not the announced one": (
        replace(EXHAUSTED, next_producer_id=Q + 1),
        rec("CC", Q, 0),
        [Finding.PRODUCER_ID_CHANGED],
    ),
    "E25 shrinks: phantom first": (ONGOING, rec("O", P, 3, A), [Finding.SUSPICIOUS_PHANTOM_APPEND]),
    "E25 one more at Prepare": (rec("O", P, 3, A), PREPARED, [Finding.PARTITIONS_CHANGED]),
    "E25 one less at Prepare: phantom first": (ONGOING, rec("PC", P, 3, A), [Finding.SUSPICIOUS_PHANTOM_APPEND]),
    "E25 another one at Prepare": (ONGOING, rec("PC", P, 3, {"c-0"}), [Finding.PARTITIONS_CHANGED]),
    "E25 timeout while Ongoing": (ONGOING, replace(ONGOING, transaction_timeout_ms=1), [Finding.TIMEOUT_CHANGED]),
    "E25 timeout at Prepare": (ONGOING, replace(PREPARED, transaction_timeout_ms=1), [Finding.TIMEOUT_CHANGED]),
    "E25 timeout at Complete": (PREPARED, replace(COMPLETED, transaction_timeout_ms=1), [Finding.TIMEOUT_CHANGED]),
    "M05 double bump of 4.0.0": (ONGOING, rec("PA", P, 5, AB), [Finding.EPOCH_DOUBLE_BUMP]),
    "no double bump of another id": (ONGOING, rec("PA", Q, 5, AB), [Finding.PRODUCER_ID_CHANGED]),
    "the epoch goes back": (ONGOING, replace(PREPARED, producer_epoch=2), [Finding.PRODUCER_EPOCH_WENT_BACK]),
    "E17 rotated while prepared is no retry": (
        PREPARED,
        replace(PREPARED, producer_id=Q),
        [Finding.PRODUCER_ID_CHANGED],
    ),
    "a Prepare of another timeout is no retry": (
        PREPARED,
        replace(PREPARED, transaction_timeout_ms=1),
        [Finding.TIMEOUT_CHANGED],
    ),
    "a Prepare of another set is no retry": (PREPARED, rec("PC", P, 3, A), [Finding.PARTITIONS_CHANGED]),
    "two things at once": (
        ONGOING,
        replace(PREPARED, producer_id=Q, transaction_timeout_ms=1),
        [Finding.PRODUCER_ID_CHANGED, Finding.TIMEOUT_CHANGED],
    ),
}


@pytest.mark.parametrize("name", ODD_STEPS)
def test_a_step_to_a_value_that_no_coordinator_writes_is_a_finding(name: str) -> None:
    before, after, findings = ODD_STEPS[name]
    assert step(before, after) == Transition(STEPS[before.transaction_state, after.transaction_state], tuple(findings))


#: A step, and whether it differs from the last one in a way that only a phantom explains.
PHANTOMS = [
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
    (ONGOING, None, False),  # an Ongoing id never expires, whatever was taken back in memory
    (None, ONGOING, False),
]


@pytest.mark.parametrize(("before", "after", "is_phantom"), PHANTOMS)
def test_an_illegal_step_is_called_a_phantom_where_one_explains_it(before, after, is_phantom):
    finding = Finding.SUSPICIOUS_PHANTOM_APPEND if is_phantom else Finding.ILLEGAL_TRANSITION
    assert step(before, after) == Transition(Step.ILLEGAL, (finding,))


@pytest.mark.parametrize("record", [PREPARED, rec("PA", P, 3, A), COMPLETED, rec("CA", P, 3)])
def test_F26_a_record_written_twice_is_a_retry(record: TransactionLogEntry) -> None:
    later = replace(record, last_update_timestamp_ms=TS + 5)
    assert step(record, record) == step(record, later) == Transition(Step.RETRY, ())


@pytest.mark.parametrize("last", [rec("E", P, 3), COMPLETED, rec("CA", P, 3), None])
def test_F13_an_id_expires_and_begins_again_with_another_producer_id(last: TransactionLogEntry | None) -> None:
    assert [step(last, None), step(None, rec("E", Q, 0))] == [LEGAL, LEGAL]
