"""Laws of producer states over random logs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_notation import TS, A, C, D, N, T
from txnlib.core.finding import Finding
from txnlib.core.kafka.producer_state import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER,
    Appended,
    AppendOrigin,
    CompletedTxn,
    ProducerState,
    append,
    append_origin,
    has_late_transaction,
)
from txnlib.core.kafka.record_batch import EndTxnMarker, RecordBatch

DAY = 86_400_000

KNOWN = ProducerState(
    producer_epoch=5, last_sequence=7, last_offset=41, offset_delta=1, coordinator_epoch=3,
    current_txn_first_offset=None, last_timestamp=TS,
)  # fmt: skip
OPEN = replace(KNOWN, current_txn_first_offset=40)


@pytest.mark.parametrize("before", [UNKNOWN_PRODUCER, KNOWN, OPEN])
@pytest.mark.parametrize(
    "batch",
    [
        N(at=50, to=59),
        N(at=50, is_transactional=True),
        C(5, 5, at=50, marker=None, records_count=0),  # emptied by compaction
        C(5, 5, at=50, marker=None),  # a control record that does not concern producers
    ],
)
def test_batches_without_producer_or_marker_change_nothing(before: ProducerState, batch: RecordBatch) -> None:
    assert append(before, batch) == Appended(before)


#: A group coordinator writes offset commits without sequences; nothing can be out of order then.
@pytest.mark.parametrize("epoch", [5, 6])
def test_a_batch_without_a_sequence_is_never_out_of_order(epoch: int) -> None:
    expected = replace(KNOWN, producer_epoch=epoch, last_sequence=None, last_offset=52, offset_delta=2)
    assert append(KNOWN, T(1, epoch, None, at=50, to=52)) == Appended(replace(expected, current_txn_first_offset=50))


def test_a_stale_batch_without_a_sequence_is_stale() -> None:
    assert append(KNOWN, T(1, 4, None, at=50)).findings == (INVALID_PRODUCER_EPOCH,)


#: A group coordinator also writes offset commits that all begin at sequence 0 (Kafka 4.1.1).
@pytest.mark.parametrize(("epoch", "sequence"), [(5, 0), (5, 7), (5, 99), (6, 99)])
def test_sequences_of_a_group_coordinator_are_not_checked(epoch: int, sequence: int) -> None:
    batch = T(1, epoch, sequence, at=50)
    assert append(KNOWN, batch, origin=AppendOrigin.COORDINATOR).findings == ()
    assert append(KNOWN, batch).findings == (OUT_OF_ORDER_SEQUENCE_NUMBER,)


def test_epochs_of_a_group_coordinator_are_checked() -> None:
    stale = append(KNOWN, T(1, 4, 0, at=50), origin=AppendOrigin.COORDINATOR)
    assert stale.findings == (INVALID_PRODUCER_EPOCH,)


@pytest.mark.parametrize("topic", ["orders", "__transaction_state", "__consumer_offsets_2", ""])
def test_only_the_group_coordinator_writes_to_its_topic(topic: str) -> None:
    assert append_origin(topic) is AppendOrigin.CLIENT
    assert append_origin("__consumer_offsets") is AppendOrigin.COORDINATOR


def test_a_batch_can_be_out_of_order_and_non_transactional_at_once() -> None:
    expected = (OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE)
    assert append(OPEN, D(1, 5, 3, at=50)).findings == expected


def test_a_marker_that_a_text_dump_does_not_print_ends_a_transaction_in_an_unknown_way() -> None:
    unprinted = C(1, 5, at=50, marker=EndTxnMarker(None, None))
    assert append(OPEN, unprinted) == Appended(
        replace(OPEN, current_txn_first_offset=None), (), CompletedTxn(1, 40, 50, is_aborted=None)
    )


#: What a leader refuses from a producer it knows, and accepts from one it has forgotten.
REFUSED = [
    D(1, 4, 8, at=50),
    D(1, 5, 99, at=50),
    D(1, 6, 99, at=50),
    T(1, 5, 6, at=50),
    C(1, 4, 3, at=50),
    A(1, 5, 2, at=50),
]


@pytest.mark.parametrize("batch", REFUSED)
def test_a_silent_day_makes_anything_acceptable_again(batch: RecordBatch) -> None:
    def findings(before: ProducerState, silence: int) -> tuple[Finding, ...]:
        return append(before, replace(batch, max_timestamp=TS + silence)).findings

    assert findings(KNOWN, silence=DAY) == ()
    assert findings(KNOWN, silence=DAY - 1) != ()
    assert findings(OPEN, silence=DAY) != ()  # a producer with an open transaction is never forgotten


@pytest.mark.parametrize("batch", [T(1, 6, 0, at=50), D(1, 5, 8, at=50), A(1, 5, 2, at=50), A(1, 6, None, at=50)])
def test_a_forgotten_producer_begins_anew(batch: RecordBatch) -> None:
    late = replace(batch, max_timestamp=TS + DAY)
    assert append(KNOWN, late) == append(UNKNOWN_PRODUCER, late)
    assert append(OPEN, late) != append(UNKNOWN_PRODUCER, late)


def test_the_expiry_is_a_setting_of_the_broker() -> None:
    late = D(1, 4, 0, at=50, ts=TS + 1000)
    assert append(KNOWN, late, producer_id_expiration_ms=1000).findings == ()
    assert append(KNOWN, late, producer_id_expiration_ms=1001).findings == (INVALID_PRODUCER_EPOCH,)


#: The last write of the oldest open transaction -> whether a broker counts its partition as late: five minutes beyond
#: the timeout (Kafka: `ProducerStateManager.hasLateTransaction`).
LATE = [(None, False), (-1, False), (0, False), (1, True), (TS - 600_001, True), (TS - 600_000, False), (TS, False)]


@pytest.mark.parametrize(("last_timestamp", "is_late"), LATE)
def test_a_transaction_is_late_by_its_last_write(last_timestamp: int | None, is_late: bool) -> None:
    assert has_late_transaction(last_timestamp, TS, 300_000) is is_late


epochs = st.integers(0, 3)
sequences = st.sampled_from([None, 0, 1, 2, 7, 2147483646, 2147483647])
data = st.builds(
    lambda epoch, sequence, span, is_transactional, ts: (
        lambda at: D(1, epoch, sequence, at=at, to=at + span, is_transactional=is_transactional, ts=TS + ts)
    ),
    epochs,
    sequences,
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([-5, 0, 5, 2 * DAY]),
)
markers = st.builds(
    lambda write, epoch, cE, ts: lambda at: write(1, epoch, cE, at=at, ts=TS + ts),
    st.sampled_from([A, C]),
    epochs,
    st.sampled_from([None, 0, 1, 2, 3]),
    st.integers(0, 9),
)


@st.composite
def logs(draw: st.DrawFn) -> list[RecordBatch]:
    """One producer's batches at ascending offsets, with or without gaps, in any order of epochs and sequences."""
    log: list[RecordBatch] = []
    end = 0
    for place in draw(st.lists(st.one_of(data, markers), max_size=12)):
        log.append(place(end + draw(st.integers(0, 2))))
        end = log[-1].last_offset + 1
    return log


@given(logs())
def test_a_transaction_spans_from_its_first_batch_to_the_next_marker(log: list[RecordBatch]) -> None:
    opened_at, completed, expected = None, [], []
    seen = UNKNOWN_PRODUCER
    for batch in log:
        appended = append(seen, batch)
        seen = appended.after
        if appended.completed:
            completed.append((appended.completed.first_offset, appended.completed.last_offset))
        if batch.is_control and opened_at is not None:
            expected.append((opened_at, batch.base_offset))
            opened_at = None
        elif batch.is_transactional and not batch.is_control and opened_at is None:
            opened_at = batch.base_offset
        assert seen.current_txn_first_offset == opened_at
    assert completed == expected


@given(logs())
def test_every_batch_is_accepted_with_its_own_epoch_and_time(log: list[RecordBatch]) -> None:
    seen = UNKNOWN_PRODUCER
    for batch in log:
        seen = append(seen, batch).after
        assert (seen.producer_epoch, seen.last_timestamp) == (batch.producer_epoch, batch.max_timestamp)
        if batch.is_control:
            assert batch.marker.coordinator_epoch in (None, seen.coordinator_epoch)
        else:
            assert (seen.last_sequence, seen.last_offset) == (batch.last_sequence, batch.last_offset)
            assert seen.last_offset - seen.offset_delta == batch.base_offset


@given(logs())
def test_nothing_is_odd_about_the_first_batch_of_a_producer(log: list[RecordBatch]) -> None:
    for batch in log:
        assert append(UNKNOWN_PRODUCER, batch).findings == ()
