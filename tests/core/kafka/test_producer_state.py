"""The effect of one batch on a producer.

Group B restates Kafka's `ProducerStateManagerTest`, group L its `UnifiedLogTest`.
"""

import pytest

from tests.support.log_bytes import encode_snapshot, encode_transaction_index
from tests.support.log_notation import TS, A, C, D, N, T
from tests.support.partition_state import PartitionState
from tests.support.samples import START, sample
from txnlib.core.kafka.producer_state import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    UNKNOWN_PRODUCER,
    Appended,
    CompletedTxn,
    ProducerState,
    append,
)
from txnlib.core.kafka.record_batch import RecordBatch

STALE_EPOCH = (INVALID_PRODUCER_EPOCH,)
OUT_OF_ORDER = (OUT_OF_ORDER_SEQUENCE_NUMBER,)
COORDINATOR_FENCED = (TRANSACTION_COORDINATOR_FENCED,)
HIGHEST = 2147483647


def after(*batches: RecordBatch, start: ProducerState = UNKNOWN_PRODUCER) -> ProducerState:
    """The state after batches that show nothing odd."""
    for batch in batches:
        appended = append(start, batch)
        assert appended.findings == (), batch
        start = appended.after
    return start


def state(
    epoch: int | None,
    sequence: int | None = None,
    offset: int | None = None,
    delta: int = 0,
    cE: int | None = None,
    txn: int | None = None,
    ts: int | None = TS,
) -> ProducerState:
    return ProducerState(epoch, sequence, offset, delta, cE, txn, ts)


def test_an_unknown_producer_has_the_start_values_of_kafka() -> None:
    assert state(None, None, None, 0, None, None, None) == UNKNOWN_PRODUCER
    assert not UNKNOWN_PRODUCER.is_known


OPEN = [D(1, 0, 0, at=9), T(1, 0, 1, 5, at=16), T(1, 0, 6, 10, at=26)]
FENCED = [T(1, 0, 0, at=0), T(1, 0, 1, at=1), A(1, 1, 0, at=2)]
#: id and law -> batches of which none is odd, and the state after them.
IN_ORDER = {
    "B01 sequences of one epoch follow each other": ([D(1, 0, 0, at=0), D(1, 0, 1, at=1)], state(0, 1, 1)),
    "B05 a marker may be the first sight of a producer": ([C(1, 2, 0, at=27)], state(2, cE=0)),
    "B08 the epoch of a first marker starts at sequence 0": (
        [C(1, 2, 0, at=27), D(1, 2, 0, at=28)],
        state(2, 0, 28, cE=0),
    ),
    "B09 sequence 0 follows the highest one": ([D(1, 15, HIGHEST, at=735), D(1, 15, 0, at=1235)], state(15, 0, 1235)),
    "B10 sequences wrap inside one batch": ([D(1, 0, 2147483637, 9, at=2000)], state(0, 9, 2020, delta=20)),
    "B12 the first sight of a producer may have any sequence": ([D(1, 5, 16, at=735)], state(5, 16, 735)),
    "B27 a producer that is not in the snapshot starts anew": ([D(1, 0, 2, at=2)], state(0, 2, 2)),
    "B13 a marker of a new epoch forgets the batches": ([D(1, 0, 0, 7, at=0), A(1, 1, 0, at=8)], state(1, cE=0)),
    "B14 data of the epoch of the marker follow it": (
        [D(1, 0, 0, at=0), A(1, 1, 0, at=1), D(1, 1, 0, at=2)],
        state(1, 0, 2, cE=0),
    ),
    "B15 a transactional batch opens a transaction at its base offset": (
        [T(1, 0, 0, at=992342)],
        state(0, 0, 992342, txn=992342),
    ),
    "B16 later batches belong to the transaction that is open": (OPEN, state(0, 10, 30, delta=4, txn=16)),
    "B17 a marker of the same epoch keeps the batches": ([*OPEN, C(1, 0, 15, at=40)], state(0, 10, 30, delta=4, cE=15)),
    "B21 after a marker of a new epoch sequence 0 is due": ([*FENCED, T(1, 1, 0, at=3)], state(1, 0, 3, cE=0, txn=3)),
    "B35 several markers of one end, the last of a newer coordinator": (
        [T(1, 5, 0, at=99), C(1, 5, 1, at=100), C(1, 5, 1, at=101), C(1, 5, 2, at=102)],
        state(5, 0, 99, cE=2),
    ),
    "L09 two of four records are cleaned away": ([D(1, 0, 0, 3, at=23, records_count=2)], state(0, 3, 26, delta=3)),
    "L10 an emptied batch of a transaction": (
        [T(1, 0, 0, 3, at=23, records_count=0)],
        state(0, 3, 26, delta=3, txn=23),
    ),
    "B47 nothing known, sequence above 0": ([T(1, 1, 4, at=9)], state(1, 4, 9, txn=9)),
    "B47 higher epoch, sequence 0: it stays the same transaction": (
        [T(1, 0, 0, at=5), T(1, 1, 0, at=9)],
        state(1, 0, 9, txn=5),
    ),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_producer_is_known_by_its_last_batch_and_marker(name: str) -> None:
    batches, expected = IN_ORDER[name]
    assert after(*batches) == expected


B01 = IN_ORDER["B01 sequences of one epoch follow each other"][1]
B35 = IN_ORDER["B35 several markers of one end, the last of a newer coordinator"][1]
#: id -> state, a batch that its leader would have refused, the state after it, and what is odd. What is in the log
#: counts.
ODD = {
    "B02 a repeated sequence": (B01, D(1, 0, 1, at=2), state(0, 1, 2), OUT_OF_ORDER),
    "B03 a skipped sequence": (B01, D(1, 0, 5, at=2), state(0, 5, 2), OUT_OF_ORDER),
    "B04 an old epoch": (after(D(1, 1, 0, at=3), start=B01), D(1, 0, 0, at=4), state(0, 0, 4), STALE_EPOCH),
    "B06 an epoch older than a marker's": (
        after(C(1, 2, 0, at=27)),
        D(1, 0, 0, at=28),
        state(0, 0, 28, cE=0),
        STALE_EPOCH,
    ),
    "B19 the old sequence after a marker of a new epoch": (
        after(*FENCED),
        T(1, 1, 2, at=3),
        state(1, 2, 3, cE=0, txn=3),
        OUT_OF_ORDER,
    ),
    "B22 other data in a transaction": (
        after(T(1, 0, 0, at=0)),
        D(1, 0, 1, at=1),
        state(0, 1, 1, txn=0),
        (INVALID_TXN_STATE,),
    ),
    "B29 a gap of sequences": (after(D(1, 0, 0, at=0)), D(1, 0, 3, at=1), state(0, 3, 1), OUT_OF_ORDER),
    "L21 a repetition of one of the last five": (
        after(*(D(1, 0, n, at=n) for n in range(7))),
        D(1, 0, 2, at=7),
        state(0, 2, 7),
        OUT_OF_ORDER,
    ),
    "B36 a marker of an older coordinator": (B35, C(1, 5, 1, at=103), state(5, 0, 99, cE=1), COORDINATOR_FENCED),
    # What a log reader sees of it; whether the client speaks transactions v2 does not stand in a log.
    "B47 higher epoch, sequence above 0": (
        after(T(1, 0, 0, at=0)),
        T(1, 1, 4, at=9),
        state(1, 4, 9, txn=0),
        OUT_OF_ORDER,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_no_leader_appends_is_odd_and_becomes_the_state(name: str) -> None:
    before, batch, expected, findings = ODD[name]
    assert append(before, batch) == Appended(expected, findings)


def test_B17_a_marker_of_the_same_epoch_ends_the_transaction() -> None:
    assert append(after(*OPEN), C(1, 0, 15, at=40)).completed == CompletedTxn(1, 16, 40, is_aborted=False)


#: What the partition knew of coordinator epochs before -> what an abort by hand carries: that epoch, or 0 for none.
ABORTS_BY_HAND = [([C(1, 5, 29, at=1)], 29), ([], 0)]


@pytest.mark.parametrize(("known", "coordinator_epoch"), ABORTS_BY_HAND)
def test_A18_an_abort_by_hand_looks_like_a_marker_of_the_last_known_coordinator(known, coordinator_epoch):
    aborted = append(after(*known, T(1, 5, 0, at=2)), A(1, 5, coordinator_epoch, at=3))
    assert aborted == Appended(state(5, 0, 2, cE=coordinator_epoch), completed=CompletedTxn(1, 2, 3, is_aborted=True))
    assert append(aborted.after, C(1, 5, 30, at=4)).findings == ()  # the coordinator was not told, and writes its own


def test_A18_an_abort_with_epoch_0_is_fenced_where_a_coordinator_is_known() -> None:
    assert append(after(C(1, 5, 29, at=1), T(1, 5, 0, at=2)), A(1, 5, 0, at=3)).findings == COORDINATOR_FENCED


def test_F06_a_decision_that_is_loaded_again_writes_its_markers_again() -> None:
    """To every partition of the set, whether it has one already or not."""
    prepared = after(T(1, 5, 0, at=2))
    marked_again = append(append(prepared, C(1, 5, 3, at=3)).after, C(1, 5, 4, at=4))
    assert marked_again == Appended(state(5, 0, 2, cE=4))
    assert append(prepared, C(1, 5, 4, at=3)) == Appended(
        marked_again.after, completed=CompletedTxn(1, 2, 3, is_aborted=False)
    )


def test_markers_are_judged_by_producer_epoch_and_by_coordinator_epoch_apart() -> None:
    before = after(T(1, 3, 0, at=0), C(1, 3, 7, at=1))
    for marker, findings in [
        (C(1, 3, 7, at=2), ()),  # a retry
        (C(1, 4, 8, at=2), ()),
        (C(1, 2, 7, at=2), STALE_EPOCH),
        (C(1, 3, 6, at=2), COORDINATOR_FENCED),
        (C(1, 2, 6, at=2), STALE_EPOCH + COORDINATOR_FENCED),
        (C(1, 3, None, at=2), ()),  # not printed, or -1: KIP-664 speaks of it, no tool of Kafka sends it
    ]:
        assert append(before, marker).findings == findings, marker


def test_an_odd_marker_still_ends_what_is_open() -> None:
    """KAFKA-9144: such logs exist, and recovery applies the marker as it lies there."""
    opened = after(C(1, 5, 9, at=1), T(1, 5, 0, at=2))
    completed = CompletedTxn(1, 2, 3, is_aborted=True)
    assert append(opened, A(1, 4, 8, at=3)) == Appended(state(4, cE=8), STALE_EPOCH + COORDINATOR_FENCED, completed)


def test_the_sample_segment_leaves_the_state_that_its_snapshot_and_index_hold() -> None:
    """Both files were encoded on their own: they know nothing of this code."""

    def at(ms: int) -> int:
        return START + ms

    log = [
        T(4001, 3, 0, 1, at=0, ts=at(3)),
        C(4001, 3, 7, at=2, ts=at(120)),
        T(4002, 0, 0, 1, at=3, ts=at(501)),
        A(4002, 0, 7, at=5, ts=at(900)),
        T(4003, 5, 12, at=6, ts=at(1000)),
        D(4004, 0, 0, 2, at=7, ts=at(1102)),
        N(at=10, ts=at(1500)),
        T(4005, 1, 20, 21, at=11, ts=at(1600), records_count=0),
        C(4005, 1, 8, at=13, ts=at(1700)),
        T(4006, 9, 0, at=14, ts=at(1800)),
        A(4006, 10, 8, at=15, ts=at(62_000)),
    ]
    state = PartitionState().append_all(log)

    index = [
        (txn.producer_id, txn.first_offset, txn.last_offset, stable)
        for txn, stable in zip(state.completed, state.completed_last_stable_offsets, strict=True)
        if txn.is_aborted
    ]
    assert encode_snapshot(state.producers) == sample("payments-0.snapshot")
    assert encode_transaction_index(index) == sample("payments-0.txnindex")
    assert (state.findings, state.end_offset, state.open_transactions) == ([], 16, {6: 4003})
