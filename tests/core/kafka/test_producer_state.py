"""The effect of one batch on a producer. Group B of docs/scenarios.md#groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.log_notation import TS, A, C, D, T
from txnlib.core.finding_catalogue import Finding
from txnlib.core.kafka.producer_state import UNKNOWN_PRODUCER, Appended, CompletedTxn, ProducerState, append
from txnlib.core.kafka.record_batch import RecordBatch

DAY = 86_400_000

STALE_EPOCH = (Finding.INVALID_PRODUCER_EPOCH,)
OUT_OF_ORDER = (Finding.OUT_OF_ORDER_SEQUENCE_NUMBER,)
INVALID_TXN_STATE = (Finding.INVALID_TXN_STATE,)
COORDINATOR_FENCED = (Finding.TRANSACTION_COORDINATOR_FENCED,)


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


def test_B01_sequences_of_one_epoch_follow_each_other() -> None:
    assert after(D(1, 0, 0, at=0), D(1, 0, 1, at=1)) == state(0, sequence=1, offset=1)


B01 = after(D(1, 0, 0, at=0), D(1, 0, 1, at=1))


def test_B02_a_repeated_sequence_is_out_of_order() -> None:
    assert append(B01, D(1, 0, 1, at=2)) == Appended(state(0, sequence=1, offset=2), OUT_OF_ORDER)


def test_B03_a_skipped_sequence_is_out_of_order() -> None:
    assert append(B01, D(1, 0, 5, at=2)) == Appended(state(0, sequence=5, offset=2), OUT_OF_ORDER)


def test_B04_after_a_new_epoch_the_old_one_is_stale_and_becomes_the_state() -> None:
    bumped = after(D(1, 1, 0, at=3), start=B01)

    assert append(bumped, D(1, 0, 0, at=4)) == Appended(state(0, sequence=0, offset=4), STALE_EPOCH)


B05 = after(C(1, 2, 0, at=27))


def test_B05_a_marker_may_be_the_first_sight_of_a_producer() -> None:
    assert append(UNKNOWN_PRODUCER, C(1, 2, 0, at=27)) == Appended(state(2, cE=0))


def test_B06_a_marker_alone_fences_older_epochs() -> None:
    assert append(B05, D(1, 0, 0, at=28)) == Appended(state(0, sequence=0, offset=28, cE=0), STALE_EPOCH)


def test_B08_the_epoch_of_a_first_marker_starts_at_sequence_0() -> None:
    assert after(D(1, 2, 0, at=28), start=B05) == state(2, sequence=0, offset=28, cE=0)


def test_B09_sequence_0_follows_the_highest_one() -> None:
    highest = after(D(1, 15, 2147483647, at=735))

    assert (highest.first_sequence, highest.last_sequence) == (2147483647, 2147483647)
    assert after(D(1, 15, 0, at=1235), start=highest) == state(15, sequence=0, offset=1235)


def test_B10_sequences_wrap_inside_one_batch() -> None:
    wrapped = after(D(1, 0, 2147483637, 9, at=2000))

    assert wrapped == state(0, sequence=9, offset=2020, delta=20)
    assert (wrapped.first_sequence, wrapped.first_data_offset) == (2147483637, 2000)


def test_B12_the_first_sight_of_a_producer_may_have_any_sequence() -> None:
    seen = after(D(1, 5, 16, at=735))

    assert seen == state(5, sequence=16, offset=735)
    assert (seen.first_sequence, seen.first_data_offset) == (16, 735)


def test_B13_a_marker_of_a_new_epoch_forgets_the_batches() -> None:
    fenced = after(D(1, 0, 0, at=0), A(1, 1, 0, at=1))

    assert fenced == after(D(1, 0, 0, 7, at=0), A(1, 1, 0, at=8)) == state(1, cE=0)
    assert (fenced.first_sequence, fenced.first_data_offset) == (None, None)


def test_B14_data_of_the_epoch_of_the_marker_follow_it() -> None:
    assert after(D(1, 0, 0, at=0), A(1, 1, 0, at=1), D(1, 1, 0, at=2)) == state(1, sequence=0, offset=2, cE=0)


def test_B15_a_transactional_batch_opens_a_transaction_at_its_base_offset() -> None:
    assert after(T(1, 0, 0, at=992342)) == state(0, sequence=0, offset=992342, txn=992342)


B16 = after(D(1, 0, 0, at=9), T(1, 0, 1, 5, at=16), T(1, 0, 6, 10, at=26))


def test_B16_later_batches_belong_to_the_transaction_that_is_open() -> None:
    assert state(0, sequence=10, offset=30, delta=4, txn=16) == B16


def test_B17_a_marker_of_the_same_epoch_ends_the_transaction_and_keeps_the_batches() -> None:
    ended = append(B16, C(1, 0, 15, at=40))

    assert ended == Appended(state(0, sequence=10, offset=30, delta=4, cE=15), completed=CompletedTxn(1, 16, 40, is_aborted=False))
    assert (ended.after.first_sequence, ended.after.first_data_offset) == (6, 26)


B19 = after(T(1, 0, 0, at=0), T(1, 0, 1, at=1), A(1, 1, 0, at=2))


def test_B19_after_a_marker_of_a_new_epoch_the_old_sequence_does_not_go_on() -> None:
    assert append(B19, T(1, 1, 2, at=3)) == Appended(state(1, sequence=2, offset=3, cE=0, txn=3), OUT_OF_ORDER)


def test_B21_after_a_marker_of_a_new_epoch_sequence_0_is_due() -> None:
    assert after(T(1, 1, 0, at=3), start=B19) == state(1, sequence=0, offset=3, cE=0, txn=3)


def test_B22_non_transactional_data_inside_a_transaction_are_odd_and_leave_it_open() -> None:
    opened = after(T(1, 0, 0, at=0))

    assert append(opened, D(1, 0, 1, at=1)) == Appended(state(0, sequence=1, offset=1, txn=0), INVALID_TXN_STATE)


def test_B24_a_snapshot_of_a_finished_transaction_has_the_newest_batch_and_nothing_open() -> None:
    snapshot = state(0, sequence=1, offset=1, cE=0)

    assert after(T(1, 0, 0, at=0), T(1, 0, 1, at=1), A(1, 0, 0, at=2)) == snapshot
    assert after(T(1, 0, 2, at=3), start=snapshot) == state(0, sequence=2, offset=3, cE=0, txn=3)


def test_B25_a_snapshot_of_an_empty_transaction_has_the_time_of_its_marker() -> None:
    assert append(UNKNOWN_PRODUCER, A(1, 0, 0, at=0, ts=TS + 7)) == Appended(state(0, cE=0, ts=TS + 7))


def test_B29_a_gap_of_sequences_is_accepted_and_reported() -> None:
    first = after(D(1, 0, 0, at=0))

    assert append(first, D(1, 0, 3, at=1)) == Appended(state(0, sequence=3, offset=1), OUT_OF_ORDER)


B35 = after(T(1, 5, 0, at=99), C(1, 5, 1, at=100), C(1, 5, 1, at=101), C(1, 5, 2, at=102))


def test_B35_only_the_first_of_several_markers_completes_a_transaction() -> None:
    seen = after(T(1, 5, 0, at=99))
    ended, coordinator_epochs = [], []
    for marker in (C(1, 5, 1, at=100), C(1, 5, 1, at=101), C(1, 5, 2, at=102)):
        appended = append(seen, marker)
        seen = appended.after
        ended.append(appended.completed)
        coordinator_epochs.append(seen.coordinator_epoch)

    assert ended == [CompletedTxn(1, 99, 100, is_aborted=False), None, None]
    assert coordinator_epochs == [1, 1, 2]
    assert seen == B35 == state(5, sequence=0, offset=99, cE=2)


def test_B36_a_marker_of_an_older_coordinator_is_fenced_and_becomes_the_state() -> None:
    assert append(B35, C(1, 5, 1, at=103)) == Appended(state(5, sequence=0, offset=99, cE=1), COORDINATOR_FENCED)


def test_B37_a_snapshot_knows_the_coordinator_epoch() -> None:
    snapshot = state(5, sequence=0, offset=99, cE=1)

    assert append(snapshot, C(1, 5, 0, at=101)) == Appended(replace(snapshot, coordinator_epoch=0), COORDINATOR_FENCED)


#: What the partition knew of coordinator epochs before -> what an abort by hand carries: that epoch, or 0 for none.
ABORTS_BY_HAND = [([C(1, 5, 29, at=1)], 29), ([], 0)]


@pytest.mark.parametrize(("known", "coordinator_epoch"), ABORTS_BY_HAND)
def test_A18_an_abort_by_hand_looks_like_a_marker_of_the_last_known_coordinator(
    known: list[RecordBatch], coordinator_epoch: int
) -> None:
    opened = after(*known, T(1, 5, 0, at=2))
    aborted = append(opened, A(1, 5, coordinator_epoch, at=3))

    assert aborted == Appended(
        state(5, sequence=0, offset=2, cE=coordinator_epoch), completed=CompletedTxn(1, 2, 3, is_aborted=True)
    )
    assert append(aborted.after, C(1, 5, 30, at=4)).findings == ()  # the coordinator was not told, and writes its own


def test_A18_an_abort_with_epoch_0_is_fenced_where_a_coordinator_is_known() -> None:
    assert append(after(C(1, 5, 29, at=1), T(1, 5, 0, at=2)), A(1, 5, 0, at=3)).findings == COORDINATOR_FENCED


def test_F06_a_decision_that_is_loaded_again_writes_its_markers_again() -> None:
    """To every partition of the set, whether it has one already or not."""
    prepared = after(T(1, 5, 0, at=2))
    marked = append(prepared, C(1, 5, 3, at=3)).after
    marked_again = append(marked, C(1, 5, 4, at=4))

    assert marked_again == Appended(state(5, sequence=0, offset=2, cE=4))
    assert append(prepared, C(1, 5, 4, at=3)) == Appended(marked_again.after, completed=CompletedTxn(1, 2, 3, is_aborted=False))


def test_B39_the_first_batch_of_a_snapshot_entry_follows_from_its_delta() -> None:
    """Kafka's own test entry is impossible: sequence 1 and offset 2 less a delta of 3."""
    entry = state(2, sequence=1, offset=2, delta=3, cE=3, txn=100, ts=None)

    assert (entry.first_sequence, entry.first_data_offset) == (2147483646, -1)
    assert (state(12, cE=13).first_sequence, state(12, cE=13).first_data_offset) == (None, None)


#: What a log reader sees of it; whether the client speaks transactions v2 does not stand in a log.
B47 = {
    "nothing known, sequence above 0": (UNKNOWN_PRODUCER, T(1, 1, 4, at=9), ()),
    "higher epoch, sequence above 0": (after(T(1, 0, 0, at=0)), T(1, 1, 4, at=9), OUT_OF_ORDER),
    "higher epoch, sequence 0": (after(T(1, 0, 0, at=0)), T(1, 1, 0, at=9), ()),
}


@pytest.mark.parametrize("name", B47)
def test_B47_a_raised_epoch_starts_at_sequence_0(name: str) -> None:
    before, batch, findings = B47[name]

    assert append(before, batch).findings == findings


def test_a_transaction_stays_the_same_one_when_its_epoch_rises() -> None:
    assert after(T(1, 0, 0, at=5), T(1, 1, 0, at=9)) == state(1, sequence=0, offset=9, txn=5)


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

    assert append(opened, A(1, 4, 8, at=3)) == Appended(
        state(4, cE=8), STALE_EPOCH + COORDINATOR_FENCED, CompletedTxn(1, 2, 3, is_aborted=True)
    )
