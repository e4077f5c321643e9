"""Producer snapshots are read as they were written. B39 restates Kafka's `ProducerStateManagerTest`."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crc32c import crc32c
from tests.support.log_bytes import encode_snapshot
from tests.support.samples import sample
from txnlib.core.kafka.log_dir_files import CRC_STARTS_AT, read_producer_snapshot, stored_crc
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
