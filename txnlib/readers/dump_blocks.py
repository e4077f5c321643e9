"""Block reading of shallow dumps: blocks of batch lines only, all of which continue the chain.

Parsed as CSV, such a block gives the same result a dozen times as fast. The line reader (`core.text.dump_reader`) decides whether a
block may be read this way, and reads everything else: also deep dumps, because records are free text.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.core.kafka.record_batch import HEADER
from txnlib.core.text.dump_lines import (
    BOOLEANS,
    CODECS,
    FAR,
    NOT_PRINTED,
    NUMBERS,
    TIMESTAMP_TYPES,
    WORDS,
    DumpedBatch,
    read_batch_line,
)

START: Final = b"baseOffset: "
_INT32: Final = (-(1 << 31), (1 << 31) - 1)
_INT16: Final = (-(1 << 15), (1 << 15) - 1)
_UINT32: Final = (0, (1 << 32) - 1)
#: Fields with fewer than eight bytes on disk, and their ranges.
_RANGES: Final = {
    "records_count": _INT32,
    "base_sequence": _INT32,
    "last_sequence": _INT32,
    "producer_epoch": _INT16,
    "partition_leader_epoch": _INT32,
    "size": (HEADER.size, _INT32[1]),
    "magic": (2, 2),
    "crc": _UINT32,
}
#: Words -> their numbers in `DumpedBatch`.
_BOOLEAN_WORDS: Final = {word.decode(): int(value) for word, value in BOOLEANS.items()}
_CODEC_WORDS: Final = {word.decode(): value for word, value in CODECS.items()}
#: Only Arrow reads `0x1f` as a number. No label and no codec contains the letter x, and searching for it is fast.
_HEXADECIMAL: Final = (b"x", b"X")


def field_of(columns: Any, name: str) -> Any:
    """One field of all batches, as a column."""
    return columns[:, DumpedBatch._fields.index(name)]


class BatchBlock(NamedTuple):
    """The batches of a block as a matrix of `DumpedBatch` fields, and the number of bytes of their lines."""

    columns: Any
    size: int

    @property
    def last(self) -> DumpedBatch:
        """The last batch."""
        return DumpedBatch._make(map(int, self.columns[-1]))

    @property
    def has_records(self) -> bool:
        """Whether a batch has records."""
        return bool((field_of(self.columns, "records_count") != 0).any())

    @property
    def has_markers(self) -> bool:
        """Whether a batch is a marker."""
        count, is_control = field_of(self.columns, "records_count"), field_of(self.columns, "is_control") != 0
        return bool((is_control & (field_of(self.columns, "producer_id") >= 0) & (count != 0)).any())


def read_plain_batches(block: bytes, next_position: int, last_offset: int) -> BatchBlock | None:
    """The batches of complete lines; None if the block contains any other line.

    Control batches at the end are left out, because their record lines may follow.
    """
    columns = read_batch_lines(block, next_position, last_offset)
    if columns is None:
        return None
    size = len(block)
    control = field_of(columns, "is_control")
    count = len(columns)
    while count and control[count - 1]:
        count -= 1
        size = block.rindex(b"\n", 0, size - 1) + 1 if count else 0
    return BatchBlock(columns[:count], size) if count else None


def read_batch_lines(block: bytes, next_position: int, last_offset: int) -> Any:
    """The batches of lines as a matrix of `DumpedBatch` fields, one row per line.

    None if a line is not a batch line, has other labels than the first line, or does not continue the chain.
    """
    if not block.startswith(START) or not block.endswith(b"\n") or b"\r" in block:
        return None
    if any(letter in block for letter in _HEXADECIMAL):
        return None
    first = block[: block.index(b"\n") + 1]
    if read_batch_line(first) is None:
        return None
    columns = _parsed(block, first.split()[0::2])
    if columns is None or not _is_believable(columns) or not _is_chained(columns, next_position, last_offset):
        return None
    return columns


def _parsed(block: bytes, labels: list[bytes]) -> Any:
    """The fields of all lines; None if a line has other labels."""
    word = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, pa.DataType] = {}
    for index, label in enumerate(labels):
        types[f"label {index}"] = word
        types[f"value {index}"] = word if label in WORDS else pa.int64()
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=list(types)),
            csv.ParseOptions(delimiter=" ", quote_char=False, double_quote=False, escape_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False, check_utf8=False),
        )
        return _fields(table, labels)
    except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError, UnicodeDecodeError):
        return None


def _fields(table: pa.Table, labels: list[bytes]) -> Any:
    """A column for each field of `DumpedBatch`. Raises KeyError for an unknown label or word."""
    for index, label in enumerate(labels):
        if _words(table[f"label {index}"]) != {label.decode()}:
            raise KeyError(label)
    places = {label: f"value {index}" for index, label in enumerate(labels)}
    (stamp,) = places.keys() & TIMESTAMP_TYPES.keys()
    places[b"timestamp"] = places[stamp]
    count = table.num_rows
    optional = np.full(count, NOT_PRINTED)
    numbers = [table[places[label]].to_numpy() for label in NUMBERS]
    transactional, control, horizon, codec, valid = WORDS
    words = [
        _coded(table[places[transactional]], _BOOLEAN_WORDS),
        _coded(table[places[control]], _BOOLEAN_WORDS),
        _horizons(table[places[horizon]]) if horizon in places else optional,
        _coded(table[places[codec]], _CODEC_WORDS),
        np.full(count, TIMESTAMP_TYPES[stamp]),
        _coded(table[places[valid]], _BOOLEAN_WORDS),
        optional,
        optional,
    ]
    return np.column_stack([*numbers, *words]).astype(np.int64)


def _words(column: pa.ChunkedArray) -> set[str]:
    return {word for chunk in column.chunks for word in chunk.dictionary.to_pylist()}


def _coded(column: pa.ChunkedArray, codes: dict[str, int]) -> Any:
    """The number of each word. Raises KeyError for an unknown word."""
    parts = [
        np.array([codes[word] for word in chunk.dictionary.to_pylist()], dtype=np.int64)[chunk.indices.to_numpy()]
        for chunk in column.chunks
    ]
    return np.concatenate(parts)


def _horizons(column: pa.ChunkedArray) -> Any:
    if _words(column) != {"OptionalLong.empty"}:
        raise KeyError  # rare: left to the line reader
    return np.full(len(column), NOT_PRINTED)


def _is_believable(columns: Any) -> bool:
    """`core.text.dump_lines.is_believable` for all rows at once, and the range checks that the line reader does by `struct`."""
    for name, (least, most) in _RANGES.items():
        column = field_of(columns, name)
        if column.min() < least or column.max() > most:
            return False
    base, last, position = (field_of(columns, name) for name in ("base_offset", "last_offset", "position"))
    sequence, delta = field_of(columns, "base_sequence"), last - base
    is_sequence_right = field_of(columns, "last_sequence") == (sequence + delta) & MAX_SEQUENCE
    fits = (sequence < 0) | ((field_of(columns, "is_control") == 0) & is_sequence_right)
    is_one = (base >= 0) & (last >= base) & (last < FAR) & (field_of(columns, "records_count") <= delta + 1)
    return bool((fits & is_one & (position >= 0) & (position < FAR) & (field_of(columns, "is_valid") != 0)).all())


def _is_chained(columns: Any, next_position: int, last_offset: int) -> bool:
    base, last, position, size = (field_of(columns, name) for name in ("base_offset", "last_offset", "position", "size"))
    if position[0] != next_position or base[0] <= last_offset:
        return False
    return bool((position[1:] == position[:-1] + size[:-1]).all() and (base[1:] > last[:-1]).all())
