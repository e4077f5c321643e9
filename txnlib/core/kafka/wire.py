"""Kafka's primitive types, and messages as tables of fields. Every reader is `(buffer, offset) -> (value, next offset)`.

Kafka: `ByteUtils`, `org.apache.kafka.common.protocol.types.Type`.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1
MAX_INT32: Final = 2**31 - 1
MAX_INT16: Final = 2**15 - 1

_INT8: Final = struct.Struct(">b")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")


class CorruptRecordError(Exception):
    """Corrupt bytes. Readers turn this error into a row of `quarantine`."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(position, problem)
        self.position, self.problem = position, problem

    def __str__(self) -> str:
        return f"byte {self.position}: {self.problem}"


def optional(value: int) -> int | None:
    """A number of which Kafka writes -1 (any number below 0, if damaged) for "none", as None.

    Decoders call this, so that all other code sees None only.
    """
    return None if value < 0 else value


def on_disk(value: int | None) -> int:
    """The reverse of `optional`: the number that Kafka writes or prints."""
    return -1 if value is None else value


def _fixed(layout: struct.Struct, name: str) -> Callable[[bytes, int], tuple[int, int]]:
    def read(buffer: bytes, offset: int) -> tuple[int, int]:
        end = offset + layout.size
        if offset < 0 or end > len(buffer):
            raise CorruptRecordError(offset, f"{name} reaches past the end")
        return layout.unpack_from(buffer, offset)[0], end

    return read


read_int8 = _fixed(_INT8, "int8")
read_int16 = _fixed(_INT16, "int16")
read_int32 = _fixed(_INT32, "int32")
read_int64 = _fixed(_INT64, "int64")


def read_unsigned_varint(buffer: bytes, offset: int, max_bytes: int = 5) -> tuple[int, int]:
    """LEB128, low group first."""
    value = shift = 0
    for position in range(offset, offset + max_bytes):
        if position >= len(buffer):
            raise CorruptRecordError(offset, "varint reaches past the end")
        group = buffer[position]
        value |= (group & 0x7F) << shift
        if group < 0x80:
            return value, position + 1
        shift += 7
    raise CorruptRecordError(offset, f"varint is longer than {max_bytes} bytes")


def read_varint(buffer: bytes, offset: int) -> tuple[int, int]:
    """Zig-zag LEB128 of an int32."""
    value, end = read_unsigned_varint(buffer, offset)
    return (value >> 1) ^ -(value & 1), end


def read_varlong(buffer: bytes, offset: int) -> tuple[int, int]:
    """Zig-zag LEB128 of an int64."""
    value, end = read_unsigned_varint(buffer, offset, max_bytes=10)
    return (value >> 1) ^ -(value & 1), end


def read_bytes(buffer: bytes, offset: int, length: int) -> tuple[bytes, int]:
    """`length` raw bytes."""
    end = offset + length
    if length < 0 or end > len(buffer):
        raise CorruptRecordError(offset, f"{length} bytes are promised, {len(buffer) - offset} are there")
    return bytes(buffer[offset:end]), end


def read_text(buffer: bytes, offset: int, length: int) -> tuple[str, int]:
    """`length` bytes of UTF-8."""
    raw, end = read_bytes(buffer, offset, length)
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise CorruptRecordError(offset + error.start, "text is not UTF-8") from error


def read_string(buffer: bytes, offset: int) -> tuple[str, int]:
    """STRING: int16 length, then UTF-8."""
    length, offset = read_int16(buffer, offset)
    return read_text(buffer, offset, length)


def read_compact_string(buffer: bytes, offset: int) -> tuple[str, int]:
    """COMPACT_STRING: unsigned varint of length + 1, then UTF-8."""
    length_plus_one, offset = read_unsigned_varint(buffer, offset)
    return read_text(buffer, offset, length_plus_one - 1)


def read_tagged_fields(buffer: bytes, offset: int) -> tuple[list[tuple[int, bytes]], int]:
    """TAG_BUFFER: (tag, content) of each field, in the order written. Unknown fields are skipped by their size.

    A tag is an int32 in Kafka, so a number above 2147483647 is not a tag.
    """
    count, offset = read_unsigned_varint(buffer, offset)
    fields: list[tuple[int, bytes]] = []
    for _ in range(count):
        start = offset
        tag, offset = read_unsigned_varint(buffer, offset)
        if tag > MAX_INT32:
            raise CorruptRecordError(start, f"tag {tag} is no int32")
        size, offset = read_unsigned_varint(buffer, offset)
        content, offset = read_bytes(buffer, offset, size)
        fields.append((tag, content))
    return fields, offset


# ---- Types of Kafka's messages: how their bytes are read, and what their JSON is


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of Kafka's messages: how its bytes are read, and what its JSON looks like."""

    read: Callable[[bytes, int], tuple[Any, int]]
    is_json: Callable[[Any], bool]


def is_int(bits: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def is_text(value: Any) -> bool:
    """Whether a value of JSON is text that can be stored: a lone surrogate is not."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_list_of_int32(value: Any) -> bool:
    return type(value) is list and all(map(is_int(32), value))


def _read_bool(buffer: bytes, offset: int) -> tuple[bool, int]:
    value, end = read_int8(buffer, offset)
    return value != 0, end


def _read_uuid(buffer: bytes, offset: int) -> tuple[str, int]:
    """A UUID as Kafka prints it. Kafka: `Uuid.toString`."""
    raw, end = read_bytes(buffer, offset, 16)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), end


def _read_nullable_string(buffer: bytes, offset: int) -> tuple[str | None, int]:
    length_plus_one, end = read_unsigned_varint(buffer, offset)
    return (None, end) if length_plus_one == 0 else read_compact_string(buffer, offset)


def _list_of(read: Callable[[bytes, int], tuple[Any, int]]) -> Callable[[bytes, int], tuple[list[Any] | None, int]]:
    def read_list(buffer: bytes, offset: int) -> tuple[list[Any] | None, int]:
        count_plus_one, offset = read_unsigned_varint(buffer, offset)
        if count_plus_one == 0:
            return None, offset
        if count_plus_one - 1 > len(buffer):
            raise CorruptRecordError(offset, f"a list of {count_plus_one - 1} elements")
        values = []
        for _ in range(count_plus_one - 1):
            value, offset = read(buffer, offset)
            values.append(value)
        return values, offset

    return read_list


def _read_broker_endpoint(buffer: bytes, offset: int) -> tuple[None, int]:
    _name, offset = read_compact_string(buffer, offset)
    _host, offset = read_compact_string(buffer, offset)
    _port, offset = read_int16(buffer, offset)
    _protocol, offset = read_int16(buffer, offset)
    _tagged, offset = read_tagged_fields(buffer, offset)
    return None, offset


def _read_broker_feature(buffer: bytes, offset: int) -> tuple[None, int]:
    _name, offset = read_compact_string(buffer, offset)
    _lowest, offset = read_int16(buffer, offset)
    _highest, offset = read_int16(buffer, offset)
    _tagged, offset = read_tagged_fields(buffer, offset)
    return None, offset


_UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")
INT8: Final = FieldType(read_int8, is_int(8))
INT16: Final = FieldType(read_int16, is_int(16))
INT32: Final = FieldType(read_int32, is_int(32))
INT64: Final = FieldType(read_int64, is_int(64))
BOOL: Final = FieldType(_read_bool, lambda value: type(value) is bool)
TEXT: Final = FieldType(read_compact_string, lambda value: is_text(value))
NULLABLE_TEXT: Final = FieldType(_read_nullable_string, lambda value: value is None or is_text(value))
UUID: Final = FieldType(_read_uuid, lambda value: type(value) is str and _UUID_TEXT.fullmatch(value) is not None)
BROKER_IDS: Final = FieldType(_list_of(read_int32), lambda value: value is None or _is_list_of_int32(value))
#: Lists that are only passed over.
UUIDS: Final = FieldType(_list_of(_read_uuid), lambda value: value is None or type(value) is list)
ENDPOINTS: Final = FieldType(_list_of(_read_broker_endpoint), lambda value: type(value) is list)
FEATURES: Final = FieldType(_list_of(_read_broker_feature), lambda value: type(value) is list)
