"""Transaction indexes, read from their bytes."""

import pytest

from tests.support.samples import sample
from txnlib.core.kafka.log_dir_files import INDEX_ENTRY, AbortedTxn, read_transaction_index
from txnlib.core.kafka.wire import CorruptRecordError


def written(*entries: AbortedTxn) -> bytes:
    return b"".join(INDEX_ENTRY.pack(0, *entry) for entry in entries)


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
    with pytest.raises(CorruptRecordError, match="not in the order"):
        read_transaction_index(written(AbortedTxn(1, -1, 29, 8)))
    with pytest.raises(CorruptRecordError, match="not in the order"):
        read_transaction_index(written(AbortedTxn(1, 0, 9, 8), AbortedTxn(2, 8, 30, 36), AbortedTxn(3, 8, 20, 36)))


def test_the_entries_of_a_real_file_are_known() -> None:
    assert read_transaction_index(sample("payments-0.txnindex")) == [
        AbortedTxn(4002, 3, 5, 6),
        AbortedTxn(4006, 14, 15, 6),
    ]
