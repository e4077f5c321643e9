"""The encoders of the tests against bytes of real brokers.

Only then do round trips prove anything about the readers.
"""

import gzip
import struct
from typing import Any

import pytest

from tests.support.crc32c import crc32c
from tests.support.log_bytes import (
    encode_batch,
    encode_legacy,
    encode_marker,
    encode_snapshot,
    encode_transaction_index,
    encode_transaction_log_batch,
)
from tests.support.log_notation import rec
from tests.support.samples import START, sample
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.record_batch import ControlType, Record


def written(state: str, *partitions: str, ts: int, **fields: object) -> bytes:
    """One record of a producer 1, epoch 0 in a batch of its own, without a leader's epoch in the CRC."""
    given = {"id": "kafka-txn-0", "version": 0} | fields
    pid = given.pop("pid", 1)
    return encode_transaction_log_batch([rec(state, pid, 0, list(partitions), **given)], ts=ts)


UPDATE, START_OF_TXN = 1742739549435, 1742739702876

#: bytes, CRC and size of batches that real brokers wrote.
FROM_BROKERS = {
    "v0 Empty": (written("E", update=UPDATE, ts=1742739549438), 3663501755, 120),
    "v0 Ongoing, one partition": (
        written("O", "output-topic-0", update=START_OF_TXN, start_timestamp_ms=START_OF_TXN, ts=START_OF_TXN),
        563111626,
        143,
    ),
    "v0 Ongoing, two topics in the order of adding": (
        written(
            "O",
            "output-topic-0",
            "__consumer_offsets-12",
            update=1742739702882,
            start_timestamp_ms=START_OF_TXN,
            ts=1742739702882,
        ),
        1296972565,
        172,
    ),
    "v0 CompleteCommit": (
        written("CC", update=1742739703142, start_timestamp_ms=START_OF_TXN, ts=1742739703240),
        4205821491,
        120,
    ),
    "v1 Empty with tag 0": (
        written("E", pid=0, version=1, previous_producer_id=0, update=1781778768194, ts=1781778768196),
        326836132,
        129,
    ),
    "COMMIT of coordinator epoch 4": (encode_marker(0, 0, ControlType.COMMIT, 4, ts=1632840911601), 4234329125, 78),
    "COMMIT": (encode_marker(1, 0, ControlType.COMMIT, 0, ts=1742739703213), 1231080676, 78),
    "ABORT of a raised epoch": (encode_marker(1, 1, ControlType.ABORT, 0, ts=1681907428939), 3624580406, 78),
    "ABORT": (encode_marker(5, 0, ControlType.ABORT, 0, ts=1661650185562), 2431180806, 78),
    "idempotent data": (
        encode_batch([Record(0, 1742735936663, b"24910", b"kafka")], producer_id=0, producer_epoch=0, base_sequence=0),
        825983240,
        78,
    ),
}


@pytest.mark.parametrize("name", FROM_BROKERS)
def test_an_encoded_batch_has_the_crc_and_size_that_a_broker_gave_it(name: str) -> None:
    encoded, crc, size = FROM_BROKERS[name]
    assert (struct.unpack_from(">I", encoded, 17)[0], len(encoded)) == (crc, size)


def test_crc32c_has_the_check_value_of_its_definition() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def record(offset: int, ms: int, key: str | None, value: str | None) -> Record:
    return Record(offset, START + ms, key and key.encode(), value and value.encode())


def by(pid: int, epoch: int, sequence: int, *, leader_epoch: int = 4, is_transactional: bool = True) -> dict[str, Any]:
    return {
        "producer_id": pid,
        "producer_epoch": epoch,
        "base_sequence": sequence,
        "leader_epoch": leader_epoch,
        "is_transactional": is_transactional,
    }


GZIPPED = bytes.fromhex(
    "1f8b0800000000000203f361606060c936b449c40b187c18989858b28d082b636161c93626a40c00f051abc475000000"
)
DELETE_HORIZON = START + 86_401_700

#: Every kind of batch, in the order of the sample.
PAYMENTS = [
    encode_batch([record(0, 0, "order-1", '{"amt":10}'), record(1, 3, "order-2", '{"amt":20}')], **by(4001, 3, 0)),
    encode_marker(4001, 3, ControlType.COMMIT, 7, at=2, ts=START + 120, leader_epoch=4),
    encode_batch(
        [record(3, 500, "order-3", '{"amt":30}'), record(4, 501, "order-1", None)],
        headers={3: [("trace", b"abc"), ("span", None)]},
        **by(4002, 0, 0),
    ),
    encode_marker(4002, 0, ControlType.ABORT, 7, at=5, ts=START + 900, leader_epoch=4),
    encode_batch([record(6, 1000, "order-4", '{"amt":40}')], **by(4003, 5, 12)),
    encode_batch(
        [record(7, 1100, None, None), record(8, 1101, None, None), record(9, 1102, None, None)],
        codec=1,
        body=GZIPPED,
        **by(4004, 0, 0, is_transactional=False),
    ),
    encode_batch([record(10, 1500, None, "plain")], timestamp_type=1, leader_epoch=5),
    encode_batch([], base_offset=11, last_offset=12, max_timestamp=START + 1600, **by(4005, 1, 20, leader_epoch=5)),
    encode_marker(
        4005, 1, ControlType.COMMIT, 8, at=13, ts=START + 1700, leader_epoch=5, delete_horizon=DELETE_HORIZON
    ),
    encode_batch([record(14, 1800, "order-5", '{"amt":50}')], **by(4006, 9, 0, leader_epoch=5)),
    encode_marker(4006, 10, ControlType.ABORT, 8, at=15, ts=START + 62_000, leader_epoch=5),
]
UNFINISHED_BYTES = 40


@pytest.mark.parametrize("index", range(len(PAYMENTS)))
def test_a_batch_of_the_sample_segment_is_reproduced_bit_for_bit(index: int) -> None:
    position = sum(map(len, PAYMENTS[:index]))
    assert sample("payments-0.log")[position : position + len(PAYMENTS[index])] == PAYMENTS[index]


def test_the_sample_segment_ends_in_an_unfinished_batch() -> None:
    assert len(sample("payments-0.log")) - sum(map(len, PAYMENTS)) == UNFINISHED_BYTES


def test_entries_of_magic_0_and_1_and_a_wrapper_are_reproduced_bit_for_bit() -> None:
    gzipped = bytes.fromhex(
        "1f8b08000000000002036360800309d97ea9df8c4006639fb6441417889108222aa0f2202909dd49edcc7035dc20461288a804002cecbd2a48000000"
    )
    expected = (
        encode_legacy(0, b"k0", b"v0")
        + encode_legacy(1, None, b"v1", magic=1, ts=START)
        + encode_legacy(3, None, gzipped, magic=1, ts=START + 11, attributes=1)
    )
    assert sample("legacy-0.log") == expected


def test_the_entries_inside_a_wrapper_are_reproduced_bit_for_bit() -> None:
    """Inside a wrapper of magic 1 offsets count from 0."""
    inner = encode_legacy(0, b"a", b"x", magic=1, ts=START + 10) + encode_legacy(1, b"b", b"y", magic=1, ts=START + 11)
    assert gzip.decompress(sample("legacy-0.log")[-60:]) == inner


def test_a_producer_snapshot_is_reproduced_bit_for_bit() -> None:
    producers = {
        4001: ProducerState(3, 1, 1, 1, 7, None, START + 120),
        4002: ProducerState(0, 1, 4, 1, 7, None, START + 900),
        4003: ProducerState(5, 12, 6, 0, None, 6, START + 1000),
        4004: ProducerState(0, 2, 9, 2, None, None, START + 1102),
        4005: ProducerState(1, 21, 12, 1, 8, None, START + 1700),
        4006: ProducerState(10, None, None, 0, 8, None, START + 62_000),
    }
    assert encode_snapshot(producers) == sample("payments-0.snapshot")


def test_a_transaction_index_is_reproduced_bit_for_bit() -> None:
    assert encode_transaction_index([(4002, 3, 5, 6), (4006, 14, 15, 6)]) == sample("payments-0.txnindex")
