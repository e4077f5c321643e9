"""Producer snapshots read as the state they were written from. Group B restates Kafka's `ProducerStateManagerTest`."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crc32c import crc32c
from tests.support.log_bytes import encode_snapshot
from tests.support.log_notation import TS, A, C, D, T
from tests.support.partition_state import PartitionState
from tests.support.samples import sample
from txnlib.core.kafka.log_dir_files import CRC_STARTS_AT, read_producer_snapshot, stored_crc
from txnlib.core.kafka.producer_state import TRANSACTION_COORDINATOR_FENCED, ProducerState
from txnlib.core.kafka.record_batch import RecordBatch
from txnlib.core.kafka.wire import CorruptRecordError


def restarted(*batches: RecordBatch) -> PartitionState:
    """A partition that wrote a snapshot after the batches, and begins from it."""
    content = encode_snapshot(PartitionState().append_all(batches).producers)
    return PartitionState(read_producer_snapshot(content))


def test_B24_a_finished_transaction_is_not_open_after_a_restart() -> None:
    state = restarted(T(1, 0, 0, at=0), T(1, 0, 1, at=1), A(1, 0, 0, at=2))
    assert state == PartitionState({1: ProducerState(0, 1, 1, 0, 0, None, TS)})
    assert state.append_all([T(1, 0, 2, at=3)]).findings == []


def test_B25_an_empty_transaction_leaves_the_time_of_its_marker() -> None:
    assert restarted(A(1, 0, 0, at=0, ts=TS + 7)).producers == {1: ProducerState(0, None, None, 0, 0, None, TS + 7)}


def test_B30_a_snapshot_retains_producers_below_the_log_start() -> None:
    state = restarted(D(1, 0, 0, at=0), D(2, 0, 0, at=1))
    state.expire(TS + 1)
    assert list(state.producers) == [1, 2]


def test_B37_the_coordinator_epoch_survives_a_restart() -> None:
    state = restarted(T(1, 5, 0, at=99), C(1, 5, 1, at=100))
    assert state.append_all([C(1, 5, 0, at=101)]).findings == [(101, TRANSACTION_COORDINATOR_FENCED)]


def test_an_open_transaction_goes_on_after_a_restart() -> None:
    state = restarted(T(1, 5, 0, at=99)).append_all([T(1, 5, 1, at=100), C(1, 5, 0, at=101)])
    assert [(txn.first_offset, txn.last_offset) for txn in state.completed] == [(99, 101)]


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
