"""The last stable offset of a partition. Groups B and C restate Kafka's `ProducerStateManagerTest`."""

import pytest

from tests.support.log_bytes import encode_snapshot, encode_transaction_index
from tests.support.log_notation import TS, A, C, D, N, T
from tests.support.partition_state import PartitionState
from tests.support.samples import START, sample
from txnlib.core.kafka.producer_state import CompletedTxn, ProducerState, last_stable_offset
from txnlib.core.kafka.record_batch import RecordBatch

DAY = 86_400_000


def replay(*batches: RecordBatch, snapshot: dict[int, ProducerState] | None = None) -> PartitionState:
    return PartitionState(producers=dict(snapshot or {})).append_all(batches)


def test_B31_an_expired_producer_goes_on_with_any_sequence() -> None:
    state = replay(D(1, 5, 0, at=1))
    state.expire(TS + DAY + 1)
    assert state.producers == {}
    state.append(D(1, 5, 1, at=2, ts=TS + DAY + 1))
    assert state == PartitionState({1: ProducerState(5, 1, 2, 0, None, None, TS + DAY + 1)}, end_offset=3)


def test_B32_a_producer_with_an_open_transaction_does_not_expire() -> None:
    state = replay(T(1, 5, 0, at=99))
    before = dict(state.producers)
    state.expire(TS + DAY + 1)
    state.expire(TS + DAY + 1)
    assert state.producers == before
    assert state.first_undecided_offset == 99


C01 = [T(1, 5, 0, at=99), T(2, 5, 0, at=105), C(1, 5, at=109), A(2, 5, at=112)]
P1, P2, P3 = 992342, 992342 + 25, 992342 + 57
C11 = [T(1, 0, 0, at=P1), T(2, 0, 0, at=P2), T(3, 0, 0, at=P3), C(1, 0, at=P3 + 15)]
C12 = [*C11, C(3, 0, at=P3 + 35)]
C14 = [T(1, 0, 0, 4, at=16)]
C15 = [*C14, C(1, 0, at=21), C(1, 0, at=22), A(1, 0, at=23), T(1, 0, 5, 8, at=24), A(1, 0, at=28), A(1, 0, at=29)]
C15.append(T(1, 0, 9, 10, at=30))

#: id and law -> log, high watermark, first undecided offset, first unstable offset.
UNSTABLE = {
    "C01": ([], 0, None, None),
    "C02": (C01[:1], 0, 99, 99),
    "C03": (C01[:2], 0, 99, 99),
    "C04 decided, but the marker is not below the high watermark": (C01[:3], 109, 105, 99),
    "C06": (C01[:3], 110, 105, 105),
    "C07": (C01, 110, None, 105),
    "C11 the marker is not replicated": (C11, P3 + 15, P2, P1),
    "C11 and then it is": (C11, P3 + 16, P2, P2),
    "C12 a later transaction completes without moving it": (C12, P3 + 36, P2, P2),
    "C14 an open transaction is unstable from its first offset": (C14, 21, 16, 16),
    "C16 only the last one, once the others are replicated": (C15, 32, 30, 30),
}


@pytest.mark.parametrize("name", UNSTABLE)
def test_what_is_open_or_has_a_marker_that_is_not_replicated_is_unstable(name: str) -> None:
    log, high_watermark, undecided, unstable = UNSTABLE[name]
    state = replay(*log)
    assert (state.first_undecided_offset, state.first_unstable_offset(high_watermark)) == (undecided, unstable)


def test_C09_nothing_is_unstable_after_a_reload_below_a_replicated_marker() -> None:
    reloaded = replay(C(1, 5, at=105), snapshot=replay(T(1, 5, 0, at=99)).producers)
    assert reloaded.completed == [CompletedTxn(1, 99, 105, is_aborted=False)]
    assert reloaded.first_unstable_offset(106) is None


#: id and law -> log, its completed transactions as producer, first and last offset, whether aborted, and last stable
#: offset.
COMPLETED = {
    "C11 the lowest one still open is recorded": (C11, [(1, P1, P3 + 15, False, P2)]),
    "C12 the same for a later one": (C12, [(1, P1, P3 + 15, False, P2), (3, P3, P3 + 35, False, P2)]),
    "C15 markers without data complete nothing": (C15, [(1, 16, 21, False, 22), (1, 24, 28, True, 29)]),
}


@pytest.mark.parametrize("name", COMPLETED)
def test_a_completed_transaction_has_its_offsets_and_the_last_stable_one(name: str) -> None:
    log, expected = COMPLETED[name]
    state = replay(*log)
    found = zip(state.completed, state.completed_last_stable_offsets, strict=True)
    assert [
        (txn.producer_id, txn.first_offset, txn.last_offset, txn.is_aborted, stable) for txn, stable in found
    ] == expected
    assert state.findings == []


def test_the_sample_segment_leaves_the_state_that_its_snapshot_and_index_hold() -> None:
    """Both files were encoded on their own: they know nothing of this code."""

    def at(ms: int) -> int:
        return START + ms

    state = replay(
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
    )

    index = [
        (txn.producer_id, txn.first_offset, txn.last_offset, stable)
        for txn, stable in zip(state.completed, state.completed_last_stable_offsets, strict=True)
        if txn.is_aborted
    ]
    assert encode_snapshot(state.producers) == sample("payments-0.snapshot")
    assert encode_transaction_index(index) == sample("payments-0.txnindex")
    assert (state.findings, state.end_offset, state.open_transactions) == ([], 16, {6: 4003})


def test_open_transactions_stand_in_the_order_of_their_first_offsets() -> None:
    opened = replay(T(7, 0, 0, at=0), T(9, 0, 0, at=4), C(7, 0, at=5), T(7, 0, 1, at=6)).open_transactions
    assert list(opened.items()) == [(4, 9), (6, 7)]


#: (first unstable offset, high watermark, log start) -> last stable offset, with the reason.
LAST_STABLE = [
    (None, 26, 0, 26),  # nothing open: everything replicated is stable
    (8, 27, 0, 8),
    (30, 26, 0, 26),  # never above the high watermark
    (26, 26, 0, 26),
    (3, 26, 5, 5),  # never below the log start
]


@pytest.mark.parametrize(("unstable", "high_watermark", "log_start", "expected"), LAST_STABLE)
def test_the_last_stable_offset_lies_between_log_start_and_high_watermark(
    unstable, high_watermark, log_start, expected
):
    assert last_stable_offset(unstable, high_watermark, log_start) == expected
