"""Kafka's primitive types, read from their start to their end."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_bytes import uvarint, varint
from txnlib.core.kafka import wire
from txnlib.core.kafka.wire import UNKNOWN_TAGS, CorruptRecordError, Field, Message, optional

Reader = Callable[[bytes, int], tuple[Any, int]]
read_string = wire.sized(wire.read_int16, wire.read_text)
read_compact_string = wire.sized(wire.read_compact_length, wire.read_text)

#: reader -> (value, its bytes) from both ends of its range, and what is easily read wrongly.
EXAMPLES: list[tuple[Reader, Any, str]] = [
    (wire.read_int8, 0, "00"),
    (wire.read_int8, -1, "ff"),
    (wire.read_int8, 127, "7f"),
    (wire.read_int8, -128, "80"),
    (wire.read_int16, 258, "0102"),
    (wire.read_int16, -2, "fffe"),
    (wire.read_int32, 16909060, "01020304"),
    (wire.read_int32, -2147483648, "80000000"),
    (wire.read_int64, 72623859790382856, "0102030405060708"),
    (wire.read_int64, -1, "ffffffffffffffff"),
    (wire.read_unsigned_varint, 0, "00"),
    (wire.read_unsigned_varint, 127, "7f"),
    (wire.read_unsigned_varint, 128, "8001"),
    (wire.read_unsigned_varint, 300, "ac02"),
    (wire.read_unsigned_varint, 4294967295, "ffffffff0f"),
    (wire.read_varint, 0, "00"),
    (wire.read_varint, -1, "01"),
    (wire.read_varint, 1, "02"),
    (wire.read_varint, 63, "7e"),
    (wire.read_varint, -64, "7f"),
    (wire.read_varint, 64, "8001"),
    (wire.read_varint, 2147483647, "feffffff0f"),
    (wire.read_varint, -2147483648, "ffffffff0f"),
    (wire.read_varlong, -1, "01"),
    (wire.read_varlong, -86400000, "ffefb252"),
    (wire.read_varlong, 9223372036854775807, "feffffffffffffffff01"),
    (wire.read_varlong, -9223372036854775808, "ffffffffffffffffff01"),
    (read_string, "", "0000"),
    (read_string, "tx-😀", "0007 74782d f09f9880"),
    (read_compact_string, "", "01"),
    (read_compact_string, "payments", "09 7061796d656e7473"),
]
IDS = [f"{reader.__name__} {value}" for reader, value, _ in EXAMPLES]
as_bytes = bytes.fromhex


@pytest.mark.parametrize(("read", "value", "text"), EXAMPLES, ids=IDS)
def test_a_value_is_read_from_its_offset_to_its_end(read: Reader, value: object, text: str) -> None:
    encoded = as_bytes(text)
    assert read(b"\xaa\xaa" + encoded + b"\xaa", 2) == (value, 2 + len(encoded))


@pytest.mark.parametrize(("read", "value", "text"), EXAMPLES, ids=IDS)
def test_a_value_cut_anywhere_is_corrupt(read: Reader, value: object, text: str) -> None:
    encoded = as_bytes(text)
    for end in range(len(encoded)):
        with pytest.raises(CorruptRecordError):
            read(b"\xaa\xaa" + encoded[:end], 2)


#: reader -> bytes that are no value of its type.
NO_VALUES: list[tuple[Reader, str, str]] = [
    (wire.read_unsigned_varint, "ffffffffff00", "longer than 5 bytes"),
    (wire.read_varint, "808080808000", "longer than 5 bytes"),
    (wire.read_varlong, "8080808080808080808000", "longer than 10 bytes"),
    (read_string, "ffff", "-1 bytes are promised"),  # null, where none is allowed
    (read_compact_string, "00", "-1 bytes are promised"),
    (read_string, "0002 c328", "not UTF-8"),
    (read_string, "0002 fffe", "not UTF-8"),
]


@pytest.mark.parametrize(("read", "text", "problem"), NO_VALUES)
def test_bytes_that_are_no_value_are_corrupt(read: Reader, text: str, problem: str) -> None:
    with pytest.raises(CorruptRecordError, match=problem):
        read(as_bytes(text), 0)


@pytest.mark.parametrize("read", [wire.read_int8, wire.read_int16, wire.read_int32, wire.read_int64])
def test_nothing_is_read_before_the_beginning(read: Reader) -> None:
    with pytest.raises(CorruptRecordError):
        read(bytes(20), -9)


def test_raw_bytes_are_as_many_as_promised() -> None:
    assert wire.read_bytes(b"abcdef", 2, 3) == (b"cde", 5)
    assert wire.read_bytes(b"abcdef", 6, 0) == (b"", 6)
    for length in (-1, 5):
        with pytest.raises(CorruptRecordError, match=f"{length} bytes are promised, 4 are there"):
            wire.read_bytes(b"abcdef", 2, length)


def test_the_error_tells_where_the_text_is_broken() -> None:
    with pytest.raises(CorruptRecordError) as error:
        read_string(as_bytes("aaaa 0003 61 c328"), 2)
    assert (error.value.position, error.value.problem) == (5, "text is not UTF-8")
    assert str(error.value) == "byte 5: text is not UTF-8"


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints_are_read_as_written(value: int) -> None:
    assert wire.read_unsigned_varint(uvarint(value), 0) == (value, len(uvarint(value)))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "00"), (127, "7f"), (128, "8001"), (129, "8101"), (255, "ff01"), (300, "ac02"), (4294967295, "ffffffff0f")],
)
def test_unsigned_varints_are_written_as_they_are_read(value: int, text: str) -> None:
    assert wire.write_unsigned_varint(value) == as_bytes(text)


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_are_read_as_written(value: int) -> None:
    assert wire.read_varint(varint(value), 0) == (value, len(varint(value)))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_and_int64_are_read_as_written(value: int) -> None:
    assert wire.read_varlong(varint(value), 0) == (value, len(varint(value)))
    assert wire.read_int64(struct.pack(">q", value), 0) == (value, 8)


@pytest.mark.parametrize(("number", "value"), [(-(2**63), None), (-1, None), (0, 0), (2**63 - 1, 2**63 - 1)])
def test_a_negative_number_means_none(number: int, value: int | None) -> None:
    assert optional(number) == value


MESSAGE = Message(
    "0-2",
    "2+",
    Field("always", "int8"),
    Field("once", "string", "1", nullable="1"),
    Field("until", "[]int16", "0-1"),
    Field("since", "[]Pair", "1+", nullable="2+", fields=(Field("name", "string"), Field("later", "int8", "2+"))),
    Field("tagged", "int8", "2+", tag=3),
)
#: Version, bytes -> the fields.
VERSIONS: list[tuple[int, str, dict[str, Any]]] = [
    (0, "05 00000000", {"always": 5, "until": []}),
    (1, "05 ffff 00000001 0102 00000000", {"always": 5, "once": None, "until": [258], "since": []}),
    (1, "05 0001 61 00000000 00000001 0001 62", {"always": 5, "once": "a", "until": [], "since": [{"name": "b"}]}),
    (2, "05 00 00", {"always": 5, "since": None}),
    (2, "05 02 02 62 07 00 01 03 01 09", {"always": 5, "since": [{"name": "b", "later": 7}], "tagged": 9}),
]


@pytest.mark.parametrize(("version", "text", "fields"), VERSIONS)
def test_a_table_says_what_is_in_each_version(version: int, text: str, fields: dict[str, Any]) -> None:
    assert MESSAGE.read(version, as_bytes("aa" + text), 1) == fields
    assert MESSAGE.write(version, fields) == as_bytes(text)
    assert MESSAGE.read_json(version, fields | {"other": 1}) == fields
    for name in fields.keys() - {"tagged"}:
        assert MESSAGE.read_json(version, {other: value for other, value in fields.items() if other != name}) is None


@pytest.mark.parametrize("until", [[70_000], ["1"], [True], [None], "1", {}, 1])
def test_a_printed_list_has_elements_of_its_type(until: object) -> None:
    assert MESSAGE.read_json(0, {"always": 5, "until": [1, -1]}) == {"always": 5, "until": [1, -1]}
    assert MESSAGE.read_json(0, {"always": 5, "until": until}) is None


@pytest.mark.parametrize(("version", "text"), [(0, "00 ffffffff"), (1, "05 ffff ffffffff ffffffff"), (2, "00 00 00")])
def test_a_field_that_no_table_has_is_written_as_nothing(version: int, text: str) -> None:
    """A newer version may have fields that no table stores. Its records are still printed, with a size."""
    assert MESSAGE.write(version, {"always": 5} if version == 1 else {}) == as_bytes(text)


@pytest.mark.parametrize(
    ("text", "problem"), [("05 ffff ffffffff 00000000", "byte 7"), ("05 ffff 00000000 ffffffff", "byte 11")]
)
def test_a_list_is_null_only_where_the_table_says_so(text: str, problem: str) -> None:
    with pytest.raises(CorruptRecordError, match=f"{problem}: a list that may not be null is null"):
        MESSAGE.read(1, as_bytes(text), 0)


def test_a_tag_that_does_not_fit_is_corrupt_or_unknown() -> None:
    lenient = Message("0", "0+", Field("tagged", "int8", tag=3), is_lenient=True)
    assert lenient.read(0, as_bytes("02 03 02 0909 04 00"), 0) == {UNKNOWN_TAGS: [3, 4]}
    assert lenient.read(0, as_bytes("01 03 00"), 0) == {UNKNOWN_TAGS: [3]}
    assert lenient.read(0, as_bytes("01 ffffffff07 00"), 0) == {UNKNOWN_TAGS: [2147483647]}
    with pytest.raises(CorruptRecordError, match="tag 2147483648 is no int32"):
        lenient.read(0, as_bytes("01 8080808008 00"), 0)
    for text in ("05 00 01 03 02 0909", "05 00 01 03 00"):
        with pytest.raises(CorruptRecordError):
            MESSAGE.read(2, as_bytes(text), 0)
    assert MESSAGE.read(2, as_bytes("05 00 01 04 00"), 0) == {"always": 5, "since": None, UNKNOWN_TAGS: [4]}
