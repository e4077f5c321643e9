"""Values that a step must keep (docs/rules/transactions.md#values-that-a-step-keeps).

An append that timed out explains some of the changes.
"""

from dataclasses import replace

import pytest

from tests.support.log_notation import TS, rec
from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.coordinator import STEP_CHECKS, CoordinatorRecord, Transition, transition
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import STEPS, Step, TransactionState

P, Q = 40, 9893
EMPTY, AB = rec("E", P, 3), {"a-0", "b-0"}
ONGOING, COMMITTED, ABORTED = rec("O", P, 3, AB, update=TS + 5), rec("CC", P, 3), rec("CA", P, 3)
PREPARED = rec("PC", P, 3, AB, update=TS + 9)
EXHAUSTED = replace(PREPARED, producer_epoch=32767)
NOTHING_ABORTED = rec("PA", P, 4, update=TS + 5, start_timestamp_ms=TS + 5)

PHANTOM, EPOCH, BACK = (
    Finding.SUSPICIOUS_PHANTOM_APPEND,
    Finding.UNEXPECTED_PRODUCER_EPOCH,
    Finding.PRODUCER_EPOCH_WENT_BACK,
)
START, TIMEOUT, ID = Finding.START_TIMESTAMP_CHANGED, Finding.TIMEOUT_CHANGED, Finding.PRODUCER_ID_CHANGED


def findings(
    before: TransactionLogEntry, after: TransactionLogEntry | None, *, is_consecutive: bool = True
) -> list[Finding]:
    seen = transition(CoordinatorRecord(before, 3), CoordinatorRecord(after, 3), is_consecutive=is_consecutive)
    return list(seen.findings)


#: state before -> the epochs that an Empty, an Ongoing, a Prepare and a Complete may have after epoch 3 of one producer
#: id.
EPOCHS = [
    (EMPTY, "E", {3, 4}), (COMMITTED, "E", {3, 4}), (ABORTED, "E", {3, 4}), (EMPTY, "O", {3}), (COMMITTED, "O", {3}),
    (ABORTED, "O", {3}), (ONGOING, "O", {3}), (ONGOING, "PC", {3, 4}), (ONGOING, "PA", {3, 4}), (EMPTY, "PA", {4}),
    (COMMITTED, "PA", {4}), (ABORTED, "PA", {4}), (PREPARED, "PC", {3}), (PREPARED, "CC", {3}), (COMMITTED, "CC", {3}),
    (ABORTED, "CA", {3}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "state", "allowed"), EPOCHS)
def test_an_epoch_rises_only_where_the_coordinator_raises_it(
    before: TransactionLogEntry, state: str, allowed: set[int]
) -> None:
    partitions = () if state in ("E", "CC", "CA") else before.transaction_partitions or (AB if state == "O" else ())
    names = [str(partition) for partition in partitions]
    quiet = {epoch for epoch in range(8) if findings(before, rec(state, P, epoch, names, update=TS + 9)) == []}
    assert quiet == allowed


@pytest.mark.parametrize("before", [EMPTY, COMMITTED, ABORTED])
@pytest.mark.parametrize(("epoch", "expected"), [(0, []), (1, [EPOCH]), (3, [EPOCH])])
def test_a_new_producer_id_begins_at_epoch_0(before: TransactionLogEntry, epoch: int, expected: list[Finding]) -> None:
    assert findings(before, rec("E", Q, epoch)) == expected


#: reason -> records before and after, what is odd.
ODD_STEPS = {
    "a transaction begins with another producer id": (EMPTY, rec("O", Q, 3, AB), [ID]),
    "a transaction begins with another timeout": (COMMITTED, rec("O", P, 3, AB, transaction_timeout_ms=1), [TIMEOUT]),
    "an initialisation may bring another timeout": (COMMITTED, rec("E", P, 4, transaction_timeout_ms=1), []),
    "an abort of nothing has no partitions": (EMPTY, rec("PA", P, 4, AB), [Finding.PARTITIONS_CHANGED]),
    "an abort of nothing keeps the producer id": (EMPTY, replace(NOTHING_ABORTED, producer_id=Q), [ID]),
    "an abort of nothing keeps the timeout": (COMMITTED, replace(NOTHING_ABORTED, transaction_timeout_ms=1), [TIMEOUT]),
    "start while Ongoing": (ONGOING, replace(ONGOING, start_timestamp_ms=TS + 1), [START]),
    "start at Prepare": (ONGOING, replace(PREPARED, start_timestamp_ms=TS + 1), [START]),
    "start at a retried Prepare": (PREPARED, replace(PREPARED, start_timestamp_ms=TS + 1), [START]),
    "start at Complete": (PREPARED, rec("CC", P, 3, start_timestamp_ms=TS + 1), [START]),
    "start at a retried Complete": (COMMITTED, rec("CC", P, 3, start_timestamp_ms=TS + 1), [START]),
    "a start that the text does not print": (ONGOING, replace(PREPARED, start_timestamp_ms=None, version=None), []),
    "a retried Complete of another producer id": (COMMITTED, rec("CC", Q, 3), [ID]),
    "a retried Complete with another timeout": (COMMITTED, rec("CC", P, 3, transaction_timeout_ms=1), [TIMEOUT]),
    "the announced producer id above epoch 0": (replace(EXHAUSTED, next_producer_id=Q), rec("CC", Q, 1), [EPOCH]),
    "the announced producer id at epoch 0": (replace(EXHAUSTED, next_producer_id=Q), rec("CC", Q, 0), []),
    "an epoch gap of three at Prepare": (ONGOING, rec("PA", P, 6, AB), [EPOCH]),
}


@pytest.mark.parametrize("name", ODD_STEPS)
def test_a_step_changes_no_value_but_its_own(name: str) -> None:
    before, after, expected = ODD_STEPS[name]
    assert findings(before, after) == expected


@pytest.mark.parametrize("start", [TS, 0])
def test_E25_an_empty_record_has_no_start(start: int) -> None:
    record = CoordinatorRecord(rec("E", P, 3, start_timestamp_ms=start))
    assert transition(None, record, is_consecutive=False) == Transition(None, (Finding.START_TIMESTAMP_IN_EMPTY,))


FIRST = rec("O", P, 3, {"a-0"})  # the first record of a transaction: its start is its own time
LATER = {"update": TS + 5, "start_timestamp_ms": TS + 5}
NEXT_ID = rec("E", Q, 0, transaction_timeout_ms=1)

#: reason -> a record that was taken back, what follows it, what is left to report
#: (docs/rules/transactions.md#phantom-appends).
TAKEN_BACK = {
    "the first Ongoing, and its retry": (FIRST, rec("O", P, 3, {"a-0"}, **LATER), [PHANTOM]),
    "... with another partition": (FIRST, rec("O", P, 3, {"b-0"}, **LATER), [PHANTOM]),
    "... and an abort of nothing": (FIRST, rec("PA", P, 4, **LATER), [PHANTOM]),
    "... but with another timeout": (
        FIRST,
        rec("O", P, 3, {"a-0"}, transaction_timeout_ms=1, **LATER),
        [TIMEOUT, PHANTOM],
    ),
    "not the first Ongoing": (ONGOING, rec("O", P, 3, AB, update=TS + 9, start_timestamp_ms=TS + 9), [START]),
    "no first Ongoing after it": (FIRST, rec("O", P, 3, AB, update=TS + 9, start_timestamp_ms=TS + 8), [START]),
    "a commit never begins a transaction": (FIRST, rec("PC", P, 3, {"a-0"}, **LATER), [START]),
    "an abort of nothing, and its retry": (
        NOTHING_ABORTED,
        rec("PA", P, 4, update=TS + 9, start_timestamp_ms=TS + 9),
        [PHANTOM],
    ),
    "... and a transaction": (NOTHING_ABORTED, rec("O", P, 3, AB, update=TS + 9, start_timestamp_ms=TS + 9), [PHANTOM]),
    "... and an initialisation": (NOTHING_ABORTED, rec("E", P, 4), [PHANTOM]),
    "... and the id expired": (NOTHING_ABORTED, None, [PHANTOM]),
    "an initialisation, and the old client goes on": (rec("E", P, 4, transaction_timeout_ms=1), FIRST, [PHANTOM]),
    "... and aborts nothing": (rec("E", P, 4), NOTHING_ABORTED, [PHANTOM]),
    "... and is two epochs old": (rec("E", P, 5), FIRST, [BACK]),
    "an initialisation at the end of epochs, and the old client goes on": (NEXT_ID, rec("O", P, 32766, AB), [PHANTOM]),
    "... and was not at the end of its epochs": (NEXT_ID, FIRST, [ID, TIMEOUT]),
    "a commit of transactions v2, and its transaction goes on": (rec("PC", P, 4, AB), ONGOING, [PHANTOM]),
    "... two epochs back": (rec("PC", P, 5, AB), ONGOING, [PHANTOM, BACK]),
    "a client's abort, and the timeout": (rec("PA", P, 3, AB), rec("PA", P, 4, AB), [PHANTOM]),
    "a client's abort, and a double bump": (rec("PA", P, 3, AB), rec("PA", P, 5, AB), [PHANTOM]),
    "a client's abort, and an epoch out of nowhere": (rec("PA", P, 3, AB), rec("PA", P, 6, AB), [EPOCH]),
    "a Complete takes no epoch back": (rec("PC", P, 4, AB), COMMITTED, [BACK]),
    "an initialisation over a gap of 2": (EMPTY, rec("E", P, 5), [PHANTOM]),
    "an initialisation over a gap of 3": (EMPTY, rec("E", P, 6), [EPOCH]),
}


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_what_an_append_that_timed_out_explains_is_called_a_phantom(name: str) -> None:
    before, after, expected = TAKEN_BACK[name]
    assert findings(before, after) == expected


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_over_a_hole_only_an_epoch_that_went_back_is_odd(name: str) -> None:
    before, after, _expected = TAKEN_BACK[name]
    went_back = (
        after is not None and after.producer_id == before.producer_id and after.producer_epoch < before.producer_epoch
    )
    assert findings(before, after, is_consecutive=False) == ([BACK] if went_back else [])


def test_every_step_between_two_values_has_its_demands() -> None:
    """No step that may be legal is left without a row, and none has two."""
    written = [state for state in TransactionState if state.name not in ("DEAD", "PREPARE_EPOCH_FENCE")]
    for before in written:
        for after in written:
            rows = [pair for pair in STEP_CHECKS if before in pair[0] and after in pair[1]]
            assert len(rows) <= 1
            assert STEPS[before, after] is Step.ILLEGAL or rows, (before, after)
