"""The replay of whole logs. Group L restates Kafka's `UnifiedLogTest`, `LogLoaderTest`."""

import pytest

from tests.support.log_notation import TS, A, C, D, N, T
from tests.support.partition_state import PartitionState
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


L04 = [
    T(1, 0, 0, 4, at=0),
    N(at=5, to=7),
    T(2, 0, 0, 1, at=8),
    T(1, 0, 5, 8, at=10),
    N(at=14, to=15),
    T(1, 0, 9, 18, at=16),
]
L05 = [*L04, C(1, 0, at=26)]
L07 = [N(at=0, to=2), T(17, 10, 0, 1, at=3)]
L17 = [T(137, 5, 0, 2, at=0), A(137, 5, at=3)]
L27 = [T(137, 5, 0, 2, at=0), T(137, 5, 3, at=3), C(137, 5, at=4)]
L28 = [T(137, 5, 0, 2, at=0), N(at=3, to=5), T(983, 5, 0, 2, at=6), A(137, 5, at=9)]
L39 = [T(1, 0, 0, 4, at=0), N(at=5, to=7), T(1, 0, 5, 9, at=8)]
L42 = [T(137, 5, 0, 2, at=0), T(137, 5, 3, 5, at=3), A(137, 5, at=6)]

#: id, log, high watermark, log start -> last stable offset.
LAST_STABLE = [
    pytest.param(L04, 26, 0, 0, id="L04"),
    pytest.param(L05, 26, 0, 0, id="L05 the marker is not replicated"),
    pytest.param(L05, 27, 0, 8, id="L05 the marker is replicated"),
    pytest.param(L07, 5, 0, 3, id="L07"),
    pytest.param([], 0, 0, 0, id="L07 truncated"),
    pytest.param([], 2, 1, 2, id="L08 truncated fully at 2, the log starts at 1"),
    pytest.param(L17, 4, 0, 4, id="L17"),
    pytest.param(L27[:1], 3, 0, 0, id="L27 one batch"),
    pytest.param(L27[:2], 4, 0, 0, id="L27 two batches"),
    pytest.param(L27, 4, 0, 0, id="L27 the marker is not replicated"),
    pytest.param(L27, 5, 0, 5, id="L27 the marker is replicated"),
    pytest.param(L28, 9, 0, 0, id="L28 the marker is not replicated"),
    pytest.param(L28, 10, 0, 6, id="L28 the marker is replicated"),
    pytest.param(L39, 13, 0, 0, id="L39"),
    pytest.param(L39, 13, 5, 5, id="L39 the log starts inside"),
    pytest.param(L39, 13, 8, 8, id="L40 the log starts behind the first segment"),
    pytest.param(L42, 6, 0, 0, id="L42 the marker is not replicated"),
    pytest.param(L42, 7, 0, 7, id="L42 the marker is replicated"),
]


@pytest.mark.parametrize(("log", "high_watermark", "log_start", "expected"), LAST_STABLE)
def test_a_log_is_stable_below_what_is_undecided_or_not_replicated(log, high_watermark, log_start, expected):
    assert replay(*log).last_stable_offset(high_watermark, log_start) == expected


L30 = [
    *[
        T(1, 0, 0, 4, at=0),
        N(at=5, to=7),
        T(2, 0, 0, 1, at=8),
        T(1, 0, 5, 8, at=10),
        T(3, 0, 0, 2, at=14),
        N(at=17, to=18),
    ],
    *[
        T(1, 0, 9, 18, at=19),
        A(1, 0, at=29),
        T(2, 0, 2, 7, at=30),
        T(4, 0, 0, 2, at=36),
        N(at=39, to=48),
        T(3, 0, 3, 11, at=49),
    ],
    *[
        C(3, 0, at=58),
        T(4, 0, 3, 10, at=59),
        T(2, 0, 8, 14, at=67),
        A(2, 0, at=74),
        N(at=75, to=84),
        T(4, 0, 11, 14, at=85),
    ],
    C(4, 0, at=89),
]


def test_L30_L33_the_aborted_index_is_that_of_kafka_s_own_example() -> None:
    state = replay(*L30)
    assert aborted_from(state) == [(1, 0, 29, 8), (2, 8, 74, 36)]
    assert (state.findings, state.end_offset) == ([], 90)


@pytest.mark.parametrize(("high_watermark", "unstable"), [(30, 8), (75, 36), (90, None)])
def test_L31_the_example_becomes_stable_step_by_step(high_watermark: int, unstable: int | None) -> None:
    below = [batch for batch in L30 if batch.last_offset < high_watermark]
    assert replay(*below).first_unstable_offset(high_watermark) == unstable


def aborted_from(state: PartitionState) -> list[tuple[int, int, int, int]]:
    ended = zip(state.completed, state.completed_last_stable_offsets, strict=True)
    return [(txn.producer_id, txn.first_offset, txn.last_offset, stable) for txn, stable in ended if txn.is_aborted]


@pytest.mark.parametrize("rolled_at", range(1, len(L30)))
def test_L13_L34_the_last_segment_and_its_snapshot_recover_what_the_whole_log_shows(rolled_at: int) -> None:
    whole, before = replay(*L30), replay(*L30[:rolled_at])
    recovered = PartitionState(producers=dict(before.producers)).append_all(L30[rolled_at:])
    assert recovered.producers == whole.producers
    assert aborted_from(before) + aborted_from(recovered) == aborted_from(whole) == [(1, 0, 29, 8), (2, 8, 74, 36)]


def test_L49_a_reader_of_committed_records_never_sees_aborted_ones() -> None:
    """At every high watermark: what is below the last stable offset was decided, and the index lists all of it."""
    log = [batch for n in range(0, 20, 2) for batch in (T(1, 0, n // 2, at=n), A(1, 0, at=n + 1))]
    for length in range(1, len(log) + 1):
        state = replay(*log[:length])
        for high_watermark in range(length + 1):
            stable = state.last_stable_offset(high_watermark)
            skipped = {offset for _, first, last, _ in aborted_from(state) for offset in range(first, last + 1)}
            assert set(range(stable)) <= skipped
            assert stable == high_watermark - high_watermark % 2
