"""The fields of a batch: header, records, markers, sequences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_bytes import encode_marker, encode_records, read_records, varint
from tests.support.log_notation import TS, D, N
from tests.support.samples import START, sample
from txnlib.core.kafka import record_batch
from txnlib.core.kafka.record_batch import (
    CRC_STARTS_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    ControlType,
    EndTxnMarker,
    Record,
    RecordBatch,
    increment_sequence,
    read_end_txn_marker,
)
from txnlib.core.kafka.wire import CorruptRecordError

HIGHEST = 2147483647


def test_the_header_of_a_real_batch_is_read_field_by_field() -> None:
    fields = (0, 97, 4, 2, 3214904723, 0x10, 1, START, START + 3, 4001, 3, 0, 2)
    assert HEADER.unpack_from(sample("payments-0.log")) == fields
    assert (HEADER.size, LOG_OVERHEAD + 97) == (61, 109)


def test_length_magic_and_crc_stand_where_kafka_has_them() -> None:
    batch = encode_marker(1, 0, ControlType.COMMIT, 0)
    assert int.from_bytes(batch[8:LOG_OVERHEAD]) == len(batch) - LOG_OVERHEAD
    assert batch[MAGIC_POSITION] == 2
    assert int.from_bytes(batch[CRC_STARTS_AT - 4 : CRC_STARTS_AT]) == HEADER.unpack_from(batch)[4]


def test_attributes_are_the_bits_of_kafka() -> None:
    flags = {name: value for name, value in vars(record_batch).items() if name.endswith(("_FLAG", "_MASK"))}
    assert flags == {
        "COMPRESSION_MASK": 0b0000_0111,
        "TIMESTAMP_TYPE_FLAG": 0b0000_1000,
        "TRANSACTIONAL_FLAG": 0b0001_0000,
        "CONTROL_FLAG": 0b0010_0000,
        "DELETE_HORIZON_FLAG": 0b0100_0000,
    }
    assert [c.name for c in sorted(record_batch.CompressionType)] == ["NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"]
    assert [c.value for c in record_batch.CompressionType] == [0, 1, 2, 3, 4]
    assert [(t.name, t.value) for t in record_batch.TimestampType] == [("CREATE_TIME", 0), ("LOG_APPEND_TIME", 1)]


contents = st.none() | st.binary(max_size=80)
records = st.lists(
    st.builds(Record, st.integers(100, 100 + HIGHEST), st.integers(TS - 2**40, TS + 2**40), contents, contents),
    max_size=5,
)
headers = st.lists(st.tuples(st.text(max_size=5), contents), max_size=3)


@given(records, headers)
def test_what_is_written_is_read_and_headers_are_passed_over(written, headers):
    body = encode_records(written, 100, TS, {record.offset: headers for record in written})
    assert read_records(body, len(written), 100, TS) == written


def test_a_broker_s_time_counts_for_every_record() -> None:
    body = encode_records([Record(0, TS, b"a", None), Record(1, TS + 5, b"b", None)], 0, TS)
    assert read_records(body, 2, 0, TS, log_append_time=TS + 9) == [
        Record(0, TS + 9, b"a", None),
        Record(1, TS + 9, b"b", None),
    ]


def test_a_delete_horizon_stands_in_for_the_base_of_timestamps() -> None:
    horizon = TS + 86_400_000
    batch = encode_marker(1, 0, ControlType.COMMIT, 8, at=13, ts=TS, delete_horizon=horizon)
    base_timestamp = HEADER.unpack_from(batch)[7]
    assert base_timestamp == horizon
    assert read_records(batch[HEADER.size :], 1, 13, base_timestamp)[0].timestamp == TS


WRITTEN = [Record(7, TS, b"key", b"value"), Record(9, TS + 300, None, b""), Record(10, TS - 1, b"", None)]
BODY = encode_records(WRITTEN, 7, TS, {7: [("trace", b"abc"), ("span", None)]})


@pytest.mark.parametrize("count", [-1, 0, 1, 2, 4, HIGHEST])
def test_another_count_than_the_body_holds_is_corrupt(count: int) -> None:
    with pytest.raises(CorruptRecordError):
        read_records(BODY, count, 7, TS)


def body(length: int, *fields: bytes) -> bytes:
    return varint(length) + b"".join(fields)


NULL, EMPTY = varint(-1), varint(0)
#: what is broken -> the record, what the error says.
BROKEN_RECORDS = {
    "length one too short": (
        body(5, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY),
        "byte 1: record promises 5 bytes and holds 6",
    ),
    "length one too long": (
        body(7, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY, b"\0"),
        "byte 1: record promises 7 bytes and holds 6",
    ),
    "length beyond the batch": (
        body(7, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY),
        "byte 0: record of 7 bytes reaches past the end of its batch",
    ),
    "negative length": (
        body(-1, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY),
        "byte 0: record of -1 bytes reaches past the end of its batch",
    ),
    "no length": (body(0, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY), "byte 1: record promises 0 bytes and holds 6"),
    "bytes behind it": (
        body(6, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY, b"\0\0"),
        "byte 7: 2 bytes are left after 1 records",
    ),
    "key of a length below null": (
        body(6, b"\0", EMPTY, EMPTY, varint(-2), NULL, EMPTY),
        "byte 5: -2 bytes are promised, 2 are there",
    ),
    "header without a key": (
        body(8, b"\0", EMPTY, EMPTY, NULL, NULL, varint(1), NULL, NULL),
        "byte 8: header without a key",
    ),
    "fewer headers than none": (
        body(6, b"\0", EMPTY, EMPTY, NULL, NULL, varint(-1)),
        "byte 7: -1 headers are promised",
    ),
}


def test_the_smallest_record_is_read() -> None:
    assert read_records(body(6, b"\0", EMPTY, EMPTY, NULL, NULL, EMPTY), 1, 7, TS) == [Record(7, TS, None, None)]


@pytest.mark.parametrize("name", BROKEN_RECORDS)
def test_a_record_that_breaks_its_promise_is_corrupt(name: str) -> None:
    record, problem = BROKEN_RECORDS[name]
    with pytest.raises(CorruptRecordError) as error:
        read_records(record, 1, 7, TS)
    assert str(error.value) == problem


def marker_of(**fields: object) -> EndTxnMarker | None:
    given = {"pid": 1, "epoch": 0, "control_type": ControlType.COMMIT, "coordinator_epoch": 4} | fields
    batch = encode_marker(**given)
    return read_end_txn_marker(read_records(batch[HEADER.size :], 1, 0, TS)[0])


@pytest.mark.parametrize("control_type", list(ControlType))
@pytest.mark.parametrize("coordinator_epoch", [-1, 0, HIGHEST])
def test_a_marker_has_a_type_and_a_coordinator_epoch(control_type: ControlType, coordinator_epoch: int) -> None:
    found = marker_of(control_type=control_type, coordinator_epoch=coordinator_epoch)
    assert found == EndTxnMarker(control_type, None if coordinator_epoch == -1 else coordinator_epoch)
    assert (ControlType.ABORT, ControlType.COMMIT) == (0, 1)


def test_a_later_version_of_a_marker_is_read_by_its_prefix() -> None:
    later = {"key_version": 1, "value_version": 7, "more_key": b"\1\2", "more_value": b"\3"}
    assert marker_of(**later) == EndTxnMarker(ControlType.COMMIT, 4)


@pytest.mark.parametrize("control_type", [-1, 2, 3, 4, 5, 6, 7, 32767])
def test_other_control_types_are_no_markers(control_type: int) -> None:
    assert marker_of(control_type=control_type) is None


KEY, VALUE = bytes.fromhex("00000001"), bytes.fromhex("000000000004")
BROKEN_MARKERS = [
    (None, VALUE),
    (KEY, None),
    *((KEY[:n], VALUE) for n in range(4)),
    *((KEY, VALUE[:n]) for n in range(6)),
]


@pytest.mark.parametrize(("key", "value"), BROKEN_MARKERS)
def test_a_marker_cut_anywhere_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecordError):
        read_end_txn_marker(Record(0, TS, key, value))


#: sequence, how many records later, sequence then.
SEQUENCES = [(0, 0, 0), (0, 1, 1), (HIGHEST - 1, 1, HIGHEST), (HIGHEST, 1, 0), (HIGHEST, 2, 1), (2147483637, 20, 9)]


@pytest.mark.parametrize(("sequence", "distance", "later"), SEQUENCES)
def test_sequence_0_follows_the_highest(sequence: int, distance: int, later: int) -> None:
    assert increment_sequence(sequence, distance) == later
    assert increment_sequence(later, -distance) == sequence


@given(st.integers(0, HIGHEST), st.integers(0, HIGHEST))
def test_a_sequence_goes_forth_and_back(sequence: int, distance: int) -> None:
    later = increment_sequence(sequence, distance)
    assert 0 <= later <= HIGHEST
    assert increment_sequence(later, -distance) == sequence


def test_a_batch_has_no_producer_and_no_marker_unless_said_otherwise() -> None:
    assert RecordBatch(base_offset=3, last_offset=3) == N(
        at=3,
        ts=None,
        is_transactional=False,
        is_control=False,
        marker=None,
        records_count=1,
        partition_leader_epoch=None,
        timestamp_type=record_batch.TimestampType.CREATE_TIME,
    )


def test_the_last_sequence_follows_from_the_header() -> None:
    assert D(1, 0, 2147483637, at=2000, to=2020, records_count=3).last_sequence == 9
    assert D(1, 0, None, at=2000, to=2020).last_sequence is None
    assert N(at=0, to=9).last_sequence is None


@pytest.mark.parametrize(
    ("magic", "expected"), [(2, (0x11121314, 21, True)), (1, (0x0C0D0E0F, 16, False)), (0, (0x0C0D0E0F, 16, False))]
)
def test_a_batch_has_its_crc_behind_its_magic_an_old_message_before_it(
    magic: int, expected: tuple[int, int, bool]
) -> None:
    header = bytes([*range(16), magic, *range(17, 21)])
    assert record_batch.stored_crc(header) == expected


INT64 = 2**63
#: Offset and time of a record in a batch from offset 3 to 7 -> what of it is impossible.
UNSTORABLE = [
    (3, 0, None),
    (7, 0, None),
    (2, 0, "offset 2 lies outside of its batch, 3 to 7"),
    (8, 0, "offset 8 lies outside of its batch, 3 to 7"),
    (5, INT64 - 1, None),
    (5, -INT64, None),
    (5, INT64, f"offset 5, its time {INT64} is no int64"),
    (5, -INT64 - 1, f"offset 5, its time {-INT64 - 1} is no int64"),
]


@pytest.mark.parametrize(("offset", "timestamp", "expected"), UNSTORABLE)
def test_a_record_lies_in_its_batch_and_in_int64(offset: int, timestamp: int, expected: str | None) -> None:
    record = record_batch.Record(offset, timestamp, None, None)
    assert record_batch.unstorable(record, 3, 7) == expected
