"""The replay of whole logs. Group L restates Kafka's `UnifiedLogTest`, `LogLoaderTest`."""

import pytest

from tests.support.log_bytes import encode_snapshot, encode_transaction_index
from tests.support.log_notation import TS, A, C, D, N, T
from tests.support.partition_state import PartitionState
from tests.support.samples import START, sample
from txnlib.core.kafka.producer_state import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    ProducerState,
)
from txnlib.core.kafka.record_batch import RecordBatch


def replay(*batches: RecordBatch) -> PartitionState:
    return PartitionState().append_all(batches)


L01 = [T(1, 5, 0, 4, at=0)]
L02 = [*L01, C(1, 5, 15, at=5)]
L03 = [*L02, D(2, 5, 0, 2, at=6)]

#: id -> log, producers after it.
PRODUCERS = {
    "L01": (L01, {1: ProducerState(5, 4, 4, 4, None, 0, TS)}),
    "L02": (L02, {1: ProducerState(5, 4, 4, 4, 15, None, TS)}),
    "L03": (L03, {1: ProducerState(5, 4, 4, 4, 15, None, TS), 2: ProducerState(5, 2, 8, 2, None, None, TS)}),
    "L09 two of four records are cleaned away": (
        [D(1, 0, 0, 3, at=23, records_count=2)],
        {1: ProducerState(0, 3, 26, 3, None, None, TS)},
    ),
    "L10 an emptied batch": ([D(1, 0, 0, 1, at=23, records_count=0)], {1: ProducerState(0, 1, 24, 1, None, None, TS)}),
    "L10 one of a transaction": (
        [T(1, 0, 0, 3, at=23, records_count=0)],
        {1: ProducerState(0, 3, 26, 3, None, 23, TS)},
    ),
    "L15 the segment in which the log starts is replayed whole": (
        [D(1, 0, 0, at=0), D(2, 0, 0, at=1)],
        {1: ProducerState(0, 0, 0, 0, None, None, TS), 2: ProducerState(0, 0, 1, 0, None, None, TS)},
    ),
    "L12 truncated after its first batch": ([D(1, 0, 0, at=0)], {1: ProducerState(0, 0, 0, 0, None, None, TS)}),
    "L24": (
        [D(pid, 0, 0, at=pid - 1) for pid in (1, 2, 3, 4)],
        {pid: ProducerState(0, 0, pid - 1, 0, None, None, TS) for pid in (1, 2, 3, 4)},
    ),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_a_log_leaves_its_producers(name: str) -> None:
    log, producers = PRODUCERS[name]
    assert replay(*log).producers == producers


#: id -> log, what is odd about it by base offset.
FINDINGS = {
    "L19 a repetition was answered, and not written": ([D(1, 0, 0, 5, at=0), D(1, 0, 6, 8, at=6)], []),
    "L19 a repetition was written": (
        [D(1, 0, 0, 5, at=0), D(1, 0, 6, 8, at=6), D(1, 0, 6, 8, at=9)],
        [(9, OUT_OF_ORDER_SEQUENCE_NUMBER)],
    ),
    "L20 a repeated tail": (
        [D(1, 0, 0, 5, at=0), D(1, 0, 6, 8, at=6), D(1, 0, 7, 8, at=9)],
        [(9, OUT_OF_ORDER_SEQUENCE_NUMBER)],
    ),
    "L21 a repetition of one of the last five was written": (
        [*[D(1, 0, n, at=n) for n in range(7)], D(1, 0, 2, at=7)],
        [(7, OUT_OF_ORDER_SEQUENCE_NUMBER)],
    ),
    "L21 a repetition of an older one was written": (
        [*[D(1, 0, n, at=n) for n in range(7)], D(1, 0, 1, at=7)],
        [(7, OUT_OF_ORDER_SEQUENCE_NUMBER)],
    ),
    "L23 two producers, one of which repeats itself": (
        [D(1, 0, 0, at=0), D(2, 0, 0, at=1), D(1, 0, 1, at=2), D(2, 0, 1, at=3), D(1, 0, 1, at=4)],
        [(4, OUT_OF_ORDER_SEQUENCE_NUMBER)],
    ),
    "L25 an old epoch": ([D(1, 1, 0, at=0), D(1, 0, 0, at=1)], [(1, INVALID_PRODUCER_EPOCH)]),
    "L37 a zombie coordinator": (
        [T(1, 0, 0, 9, at=0), C(1, 0, 0, at=10), A(1, 0, 2, at=11), A(1, 0, 2, at=12), A(1, 0, 1, at=13)],
        [(13, TRANSACTION_COORDINATOR_FENCED)],
    ),
    "L38 a stale end of nothing": ([A(1, 5, 1, at=0), A(1, 4, 1, at=1)], [(1, INVALID_PRODUCER_EPOCH)]),
    "L48 a first batch above sequence 0": ([T(23, 1, 3, at=0)], []),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_log_shows_what_a_leader_would_have_refused(name: str) -> None:
    log, findings = FINDINGS[name]
    assert replay(*log).findings == findings


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
