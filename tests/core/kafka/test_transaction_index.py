"""Transaction indexes against a fold of the log. Rows L30 and L33."""

from __future__ import annotations

import pytest

from tests.support.log_notation import A, C, N, T
from tests.support.partition_state import PartitionState
from tests.support.samples import sample
from txnlib.core.kafka.broker_files import INDEX_ENTRY, AbortedTxn, read_transaction_index
from txnlib.core.kafka.wire import CorruptRecordError

WORKED_EXAMPLE = [
    T(1, 0, 0, 4, at=0), N(at=5, to=7), T(2, 0, 0, 1, at=8), T(1, 0, 5, 8, at=10), T(3, 0, 0, 2, at=14), N(at=17, to=18),
    T(1, 0, 9, 18, at=19), A(1, 0, at=29), T(2, 0, 2, 7, at=30), T(4, 0, 0, 2, at=36), N(at=39, to=48), T(3, 0, 3, 11, at=49),
    C(3, 0, at=58), T(4, 0, 3, 10, at=59), T(2, 0, 8, 14, at=67), A(2, 0, at=74), N(at=75, to=84), T(4, 0, 11, 14, at=85),
    C(4, 0, at=89),
]  # fmt: skip


def written(*entries: AbortedTxn) -> bytes:
    return b"".join(INDEX_ENTRY.pack(0, *entry) for entry in entries)


@pytest.mark.parametrize("row", ["L30", "L33"])
def test_L30_L33_the_fold_derives_what_the_index_holds(row: str) -> None:
    state = PartitionState().append_all(WORKED_EXAMPLE)
    derived = [
        AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, lso)
        for txn, lso in zip(state.completed, state.completed_last_stable_offsets, strict=True)
        if txn.is_aborted
    ]
    index = [AbortedTxn(1, 0, 29, 8), AbortedTxn(2, 8, 74, 36)]
    assert derived == index
    assert read_transaction_index(written(*index)) == index


def test_a_file_cut_at_any_byte_keeps_its_whole_entries() -> None:
    content = written(AbortedTxn(1, 0, 29, 8), AbortedTxn(2, 8, 74, 36))
    for cut in range(len(content) + 1):
        assert len(read_transaction_index(content[:cut])) == cut // INDEX_ENTRY.size


def test_what_is_no_index_is_refused_with_its_position() -> None:
    with pytest.raises(CorruptRecordError, match="version 1 "):
        read_transaction_index(INDEX_ENTRY.pack(1, 1, 0, 1, 2))
    with pytest.raises(CorruptRecordError, match="not in the order"):
        read_transaction_index(written(AbortedTxn(1, 0, 29, 8), AbortedTxn(2, 8, 29, 36)))
    with pytest.raises(CorruptRecordError, match="not in the order"):
        read_transaction_index(written(AbortedTxn(1, 30, 29, 8)))


def test_the_entries_of_a_real_file_are_known() -> None:
    assert read_transaction_index(sample("payments-0.txnindex")) == [
        AbortedTxn(4002, 3, 5, 6),
        AbortedTxn(4006, 14, 15, 6),
    ]
