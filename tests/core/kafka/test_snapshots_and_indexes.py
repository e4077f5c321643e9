"""Producer snapshots and transaction indexes, read from bytes. B39 restates Kafka's `ProducerStateManagerTest`."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crc32c import crc32c
from tests.support.log_bytes import encode_snapshot
from tests.support.samples import sample
from txnlib.core.kafka.log_dir_files import (
    CRC_STARTS_AT,
    INDEX_ENTRY,
    AbortedTxn,
    read_producer_snapshot,
    read_transaction_index,
    stored_crc,
)
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.wire import CorruptRecordError


def test_the_crc_is_that_of_everything_behind_it() -> None:
    content = sample("payments-0.snapshot")
    assert stored_crc(content) == crc32c(content[CRC_STARTS_AT:]) == struct.unpack_from(">I", content, 2)[0]


int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
some16, some32, some64 = (st.none() | st.integers(0, 2**bits - 1) for bits in (15, 31, 63))
states = st.builds(ProducerState, some16, some32, some64, int32, some32, some64, some64)


@given(st.dictionaries(int64, states, max_size=4))
def test_B39_any_state_survives_a_restart(producers: dict[int, ProducerState]) -> None:
    assert read_producer_snapshot(encode_snapshot(producers)) == producers


def test_a_header_cut_anywhere_has_no_crc() -> None:
    for end in range(10):
        with pytest.raises(CorruptRecordError, match=f"byte 0: a snapshot has at least 10 bytes, this one {end}"):
            stored_crc(bytes(end))


@pytest.mark.parametrize("version", [0, 2, -1])
def test_there_is_one_version_of_snapshots(version: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"byte 0: snapshot version {version} is not known"):
        read_producer_snapshot(encode_snapshot({}, version))


def test_fewer_entries_than_none_are_corrupt() -> None:
    with pytest.raises(CorruptRecordError, match="byte 6: -1 entries are promised in 10 bytes"):
        read_producer_snapshot(struct.pack(">hIi", 1, 0, -1))


# ---- Transaction indexes


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
