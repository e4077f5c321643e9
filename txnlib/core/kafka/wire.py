"""Kafka's primitive types, and messages as tables of fields. Every reader is `(buffer, offset) -> (value, next
offset)`.

Kafka: `ByteUtils`, `org.apache.kafka.common.protocol.types.Type`, and the JSON definitions from which it generates its
messages.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

from txnlib.core.kafka.constants import MAX_INT16, MAX_INT32

Reader = Callable[[bytes, int], tuple[Any, int]]
#: Types of one size -> their codes of `struct`.
_CODES: Final = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}


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


def _fixed(name: str) -> Callable[[bytes, int], tuple[int, int]]:
    layout = struct.Struct(f">{_CODES[name]}")
    size, unpack = layout.size, layout.unpack_from

    def read(buffer: bytes, offset: int) -> tuple[int, int]:
        end = offset + size
        if offset < 0 or end > len(buffer):
            raise CorruptRecordError(offset, f"{name} reaches past the end")
        return unpack(buffer, offset)[0], end

    return read


_FIXED: Final = {name: _fixed(name) for name in _CODES}
read_int8, read_int16, read_int32, read_int64 = (_FIXED[f"int{bits}"] for bits in (8, 16, 32, 64))


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


def read_compact_length(buffer: bytes, offset: int) -> tuple[int, int]:
    """An unsigned varint of length + 1: -1 for null."""
    length_plus_one, end = read_unsigned_varint(buffer, offset)
    return length_plus_one - 1, end


def sized(
    read_length: Reader, read_content: Callable[[bytes, int, int], tuple[Any, int]], *, is_nullable: bool = False
) -> Reader:
    """The reader of a length, then of a content that has it: STRING, COMPACT_STRING, ARRAY, COMPACT_ARRAY."""

    def read(buffer: bytes, offset: int) -> tuple[Any, int]:
        length, start = read_length(buffer, offset)
        return (None, start) if length < 0 and is_nullable else read_content(buffer, start, length)

    return read


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


# ---- Messages


@dataclass(frozen=True, slots=True)
class Field:
    """A field, by the name that Kafka's tools print in JSON.

    `type`: a key of `_CODES`, `uuid`, `string`, or `raw string` if it need not be UTF-8; any name of a structure that
    has `fields`. `[]` before it makes a list. `versions` and `nullable` are `2+`, `0-3`, `1` or `none`. A field with a
    `tag` is a tagged field.
    """

    name: str
    type: str
    versions: str = "0+"
    nullable: str = "none"
    tag: int | None = None
    fields: tuple[Field, ...] = ()


class Message:
    """A table of fields, with a reader for each version.

    `versions`, `flexible`: Kafka's `validVersions` and `flexibleVersions`. `end`: what an error calls the content after
    which bytes are left. A tagged field whose size does not fit its type is corrupt; with `is_lenient`, it counts as
    unknown.
    """

    def __init__(
        self, versions: str, flexible: str, *fields: Field, end: str = "the value", is_lenient: bool = False
    ) -> None:
        self.versions, self._flexible, self._fields, self._end = _range(versions), _range(flexible), fields, end
        self._readers = {each: _structure(fields, each, each in self._flexible, is_lenient) for each in self.versions}

    def read(self, version: int, buffer: bytes, offset: int) -> dict[str, Any]:
        """The fields of one of `versions`, by name, from an offset to the end. Tagged fields that are not written are
        absent.

        The numbers of unknown tags are under UNKNOWN_TAGS, if there are any. Raises CorruptRecordError, also if bytes
        are left.
        """
        fields, end = self._readers[version](buffer, offset)
        if end != len(buffer):
            raise CorruptRecordError(end, f"bytes are left after {self._end}")
        return fields

    def read_json(self, version: int, data: Any) -> dict[str, Any] | None:
        """The fields by name, from JSON that Kafka's tools printed, of any version. None if a field is missing, or has
        a value that cannot be on disk."""
        return _read_json(self._fields, version, data)

    def write(self, version: int, fields: Mapping[str, Any]) -> bytes:
        """The bytes of a message in a version, as `read` reads them. Numbers, strings and lists can be written.

        A missing field is written as 0 or null: no table stores fields that only a newer version has.
        """
        return _write(self._fields, version, version in self._flexible, fields)


#: Kafka: `Message.unknownTaggedFields`.
UNKNOWN_TAGS: Final = "_unknownTaggedFields"


@lru_cache
def _range(versions: str) -> range:
    if versions == "none":
        return range(0)
    first, _, last = versions.rstrip("+").partition("-")
    return range(int(first), 1 + (MAX_INT16 if versions.endswith("+") else int(last or first)))


def _read_uuid(buffer: bytes, offset: int) -> tuple[str, int]:
    """A UUID as Kafka prints it. Kafka: `Uuid.toString`."""
    raw, end = read_bytes(buffer, offset, 16)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), end


def _read_elements(read: Reader, buffer: bytes, offset: int, count: int) -> tuple[list[Any], int]:
    if count < 0:
        raise CorruptRecordError(offset, "a list that may not be null is null")
    values = []
    for _ in range(count):
        value, offset = read(buffer, offset)
        values.append(value)
    return values, offset


#: Types with a length before them -> what reads their content.
_SIZED: Final = {"string": read_text, "raw string": read_bytes}
_UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")


def _structure(
    fields: Sequence[Field], version: int, is_flexible: bool, is_lenient: bool
) -> Callable[[bytes, int], tuple[dict[str, Any], int]]:
    def reader_of(field: Field) -> Reader:
        kind, is_nullable = field.type.removeprefix("[]"), version in _range(field.nullable)
        read: Reader
        if field.fields:
            read = _structure(field.fields, version, is_flexible, is_lenient)
        elif kind in _SIZED:
            read = sized(read_compact_length if is_flexible else read_int16, _SIZED[kind], is_nullable=is_nullable)
        else:
            read = _read_uuid if kind == "uuid" else _FIXED[kind]
        if kind == field.type:
            return read
        return sized(
            read_compact_length if is_flexible else read_int32, partial(_read_elements, read), is_nullable=is_nullable
        )

    present = [field for field in fields if version in _range(field.versions)]
    plain = tuple((field.name, reader_of(field)) for field in present if field.tag is None)
    tagged = {field.tag: (field.name, reader_of(field)) for field in present if field.tag is not None}
    skipped = (KeyError, CorruptRecordError) if is_lenient else (KeyError,)

    def read_structure(buffer: bytes, offset: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        for name, read in plain:
            values[name], offset = read(buffer, offset)
        if not is_flexible:
            return values, offset
        contents, offset = read_tagged_fields(buffer, offset)
        for tag, content in contents:
            try:
                name, read = tagged[tag]
                value, size = read(content, 0)
                if size != len(content):
                    raise CorruptRecordError(offset, f"bytes are left in tagged field {tag}")
                values[name] = value
            except skipped:
                values.setdefault(UNKNOWN_TAGS, []).append(tag)
        return values, offset

    return read_structure


def _read_json(fields: Sequence[Field], version: int, data: Any) -> dict[str, Any] | None:
    if type(data) is not dict:
        return None
    present = [
        field for field in fields if version in _range(field.versions) and (field.tag is None or field.name in data)
    ]
    is_whole = all(field.name in data and _is_json(field, version, data[field.name]) for field in present)
    return {field.name: data[field.name] for field in present} if is_whole else None


def _is_json(field: Field, version: int, value: Any) -> bool:
    if value is None:
        return version in _range(field.nullable)
    if field.type.startswith("[]"):
        element = replace(field, type=field.type.removeprefix("[]"), nullable="none")
        return type(value) is list and all(_is_json(element, version, each) for each in value)
    if field.fields:
        return _read_json(field.fields, version, value) is not None
    if field.type in _SIZED:
        return is_text(value)
    if field.type == "uuid":
        return type(value) is str and _UUID_TEXT.fullmatch(value) is not None
    try:
        struct.pack(_CODES[field.type], value)
    except struct.error:
        return False
    return type(value) is (bool if field.type == "bool" else int)


def is_text(value: Any) -> bool:
    """Whether a value of JSON is text that can be stored: a lone surrogate is not."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_unsigned_varint(value: int) -> bytes:
    """The reverse of `read_unsigned_varint`."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _write(fields: Sequence[Field], version: int, is_flexible: bool, values: Mapping[str, Any]) -> bytes:
    def written(field: Field, kind: str, value: Any) -> bytes:
        if kind in _CODES:
            return struct.pack(f">{_CODES[kind]}", value or 0)
        if kind.startswith("[]"):
            content = b"".join(written(field, kind.removeprefix("[]"), each) for each in value or ())
            return size(4, -1 if value is None else len(value)) + content
        if field.fields:
            return _write(field.fields, version, is_flexible, value)
        content = (value or "").encode()
        return size(2, -1 if value is None else len(content)) + content

    def size(width: int, length: int) -> bytes:
        return write_unsigned_varint(length + 1) if is_flexible else (length % 256**width).to_bytes(width, "big")

    present = [
        field for field in fields if version in _range(field.versions) and (field.tag is None or field.name in values)
    ]
    plain = b"".join(written(field, field.type, values.get(field.name)) for field in present if field.tag is None)
    if not is_flexible:
        return plain
    tagged = sorted(
        (field.tag, written(field, field.type, values[field.name])) for field in present if field.tag is not None
    )
    contents = [write_unsigned_varint(tag) + write_unsigned_varint(len(content)) + content for tag, content in tagged]
    return plain + write_unsigned_varint(len(contents)) + b"".join(contents)
