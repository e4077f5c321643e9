"""Types of Kafka's messages: how their bytes are read, and what their JSON is.

Kafka: `org.apache.kafka.common.protocol.types`, flexible versions (KIP-482).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.kafka.wire import (
    CorruptRecordError,
    read_bytes,
    read_compact_string,
    read_int8,
    read_int16,
    read_int32,
    read_int64,
    read_tagged_fields,
    read_unsigned_varint,
)


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
