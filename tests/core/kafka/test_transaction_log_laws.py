"""The bytes that are a record of `__transaction_state`, and no others."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_bytes import encode_transaction_log_key, encode_transaction_log_value, tag_section
from tests.support.log_notation import rec
from txnlib.core.kafka.transaction_log import (
    KEY,
    VALUE,
    TransactionLogEntry,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.kafka.wire import CorruptRecordError
from txnlib.core.rows import TopicPartition

int32 = st.integers(-(2**31), 2**31 - 1)
some16, some64 = (st.none() | st.integers(0, 2**bits - 1) for bits in (15, 63))
names = st.text(st.characters(codec="utf-8"), max_size=20)
partitions = st.none() | st.lists(st.builds(TopicPartition, names, int32), max_size=5).map(tuple)
fields = {
    "transactional_id": names, "producer_id": some64, "producer_epoch": some16, "transaction_timeout_ms": int32,
    "transaction_state": st.sampled_from(TransactionState), "transaction_partitions": partitions,
    "last_update_timestamp_ms": some64, "start_timestamp_ms": some64,
}  # fmt: skip
tagged = {
    "previous_producer_id": some64, "next_producer_id": some64, "client_transaction_version": st.integers(0, 2**15 - 1),
    "next_producer_epoch": some16, "last_producer_epoch": some16,
}  # fmt: skip
entries = st.builds(TransactionLogEntry, version=st.just(0), **fields) | st.builds(
    TransactionLogEntry, version=st.just(1), **fields, **tagged
)


@given(entries)
def test_what_is_written_is_read(entry: TransactionLogEntry) -> None:
    key, value = encode_transaction_log_key(entry.transactional_id), encode_transaction_log_value(entry)
    assert read_transaction_log_value(read_transaction_log_key(key), value) == entry
    assert KEY.write(0, KEY.read(0, key, 2)) == key[2:]
    assert VALUE.write(entry.version, VALUE.read(entry.version, value, 2)) == value[2:]


@pytest.mark.parametrize("name", tagged)
def test_a_tag_has_the_number_of_kafka_s_code(name: str) -> None:
    """KIP-939 draws nextProducerEpoch as tag 2, which is clientTransactionVersion in the code."""
    numbers = {
        "previous_producer_id": (0, ">q"),
        "next_producer_id": (1, ">q"),
        "client_transaction_version": (2, ">h"),
        "next_producer_epoch": (3, ">h"),
        "last_producer_epoch": (4, ">h"),
    }
    tag, layout = numbers[name]
    written = encode_transaction_log_value(rec("O", 1, 0), {tag: struct.pack(layout, 77)})
    assert read_transaction_log_value("bar", written) == rec("O", 1, 0, **{name: 77})


ENTRY = rec("O", 4001, 3, {"a-0", "a-7", "b-1"}, next_producer_id=9, client_transaction_version=2)


@pytest.mark.parametrize(
    ("tags", "unknown"),
    [
        ({5: b""}, (5,)),
        ({5: b"\x01\x02", 300: bytes(200)}, (5, 300)),  # both numbers of two bytes
        ({4: bytes(4)}, (4,)),  # a field whose type changed
    ],
)
def test_unknown_tags_are_skipped_by_their_size(tags: dict[int, bytes], unknown: tuple[int, ...]) -> None:
    written = encode_transaction_log_value(ENTRY, more_tags=tags)
    fields = {"next_producer_id": 9, "client_transaction_version": 2, "unknown_tags": unknown}
    assert read_transaction_log_value("bar", written) == rec("O", 4001, 3, {"a-0", "a-7", "b-1"}, **fields)


def test_tags_of_a_topic_are_not_those_of_the_value() -> None:
    written = encode_transaction_log_value(ENTRY, topic_tags={0: bytes(8), 7: b"x"})
    assert read_transaction_log_value("bar", written) == ENTRY


STATUS_AT = 16


@pytest.mark.parametrize(("code", "is_known"), [(-1, False), *((code, True) for code in range(8)), (8, False)])
def test_a_state_code_that_kafka_does_not_know_is_corrupt(code: int, is_known: bool) -> None:
    value = bytearray(encode_transaction_log_value(rec("E", 4001, 3, version=0)))
    struct.pack_into(">b", value, STATUS_AT, code)
    if is_known:
        assert read_transaction_log_value("bar", bytes(value)).transaction_state.value == code
    else:
        with pytest.raises(CorruptRecordError, match=f"byte {STATUS_AT}: transaction status {code} is not known"):
            read_transaction_log_value("bar", bytes(value))


#: Only the list of topics may be null; a list of partitions may not.
NULL_LISTS = {
    "v0": struct.pack(">hqhib", 0, 1, 0, 0, 1) + struct.pack(">ih1sI", 1, 1, b"a", 0xFFFFFFFF) + bytes(16),
    "v1": struct.pack(">hqhib", 1, 1, 0, 0, 1) + b"\x02\x02a\x00" + tag_section({}) + bytes(16) + tag_section({}),
}


@pytest.mark.parametrize("name", NULL_LISTS)
def test_a_topic_without_a_list_of_partitions_is_corrupt(name: str) -> None:
    with pytest.raises(CorruptRecordError):
        read_transaction_log_value("bar", NULL_LISTS[name])


#: No broker writes a topic without partitions, but the layout allows it.
EMPTY_LISTS = {
    "v0": struct.pack(">hqhib", 0, 1, 0, 0, 1) + struct.pack(">ih1si", 1, 1, b"a", 0) + bytes(16),
    "v1": struct.pack(">hqhib", 1, 1, 0, 0, 1) + b"\x02\x02a\x01" + tag_section({}) + bytes(16) + tag_section({}),
}


@pytest.mark.parametrize("name", EMPTY_LISTS)
def test_a_topic_with_an_empty_list_has_no_partitions(name: str) -> None:
    assert read_transaction_log_value("bar", EMPTY_LISTS[name]).transaction_partitions == ()
