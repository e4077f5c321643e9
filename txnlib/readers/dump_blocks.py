"""Block reading of shallow dumps: blocks of batch lines only, all of which continue the chain.

Parsed as CSV, such a block gives the same result a dozen times as fast. The line reader (`core.text.dump_reader`) decides whether a
block may be read this way, and reads everything else: also deep dumps, because records are free text.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from txnlib.core.kafka.record_batch import HEADER
from txnlib.core.text.dump_lines import (
    CODECS,
    NOT_PRINTED,
    NUMBERS,
    TIMESTAMP_TYPES,
    WORDS,
    DumpedBatch,
    is_believable,
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
#: Label -> its words, and their numbers in `DumpedBatch`. A delete horizon is rare: it is left to the line reader.
_CODED: Final = {
    b"deleteHorizonMs:": {"OptionalLong.empty": NOT_PRINTED},
    b"compresscodec:": {word.decode(): value for word, value in CODECS.items()},
}
#: Only Arrow reads `0x1f` as a number. No label and no codec contains the letter x, and searching for it is fast.
_HEXADECIMAL: Final = (b"x", b"X")


class BatchBlock(NamedTuple):
    """The batches of a block as a `DumpedBatch` of columns, and the number of bytes of their lines."""

    columns: Any
    size: int

    @property
    def last(self) -> DumpedBatch:
        """The last batch."""
        return DumpedBatch._make(int(column[-1]) for column in self.columns)

    @property
    def has_records(self) -> bool:
        """Whether a batch has records."""
        return bool((self.columns.records_count != 0).any())

    @property
    def has_markers(self) -> bool:
        """Whether a batch is a marker."""
        columns = self.columns
        return bool(((columns.is_control != 0) & (columns.producer_id >= 0) & (columns.records_count != 0)).any())


def read_plain_batches(block: bytes, next_position: int, last_offset: int) -> BatchBlock | None:
    """The batches of complete lines that continue the chain; None if the block contains any other line.

    Control batches at the end are left out, because their record lines may follow.
    """
    if not block.startswith(START) or not block.endswith(b"\n") or b"\r" in block or any(x in block for x in _HEXADECIMAL):
        return None
    first = block[: block.index(b"\n") + 1]
    columns = None if read_batch_line(first) is None else _parsed(block, first.split()[0::2])
    if columns is None or not _is_sound(columns, next_position, last_offset):
        return None
    size, count = len(block), len(columns.is_control)
    while count and columns.is_control[count - 1]:
        count -= 1
        size = block.rindex(b"\n", 0, size - 1) + 1 if count else 0
    return BatchBlock(DumpedBatch._make(column[:count] for column in columns), size) if count else None


def _parsed(block: bytes, labels: list[bytes]) -> Any:
    """The fields of all lines as a `DumpedBatch` of columns; None if a line has other labels or an unknown word."""
    word = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, pa.DataType] = {}
    for index, label in enumerate(labels):
        types[f"label {index}"] = word
        types[f"value {index}"] = word if label in _CODED else pa.bool_() if label in WORDS else pa.int64()
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=list(types)),
            csv.ParseOptions(delimiter=" ", quote_char=False, double_quote=False, escape_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, true_values=["true"], false_values=["false"], null_values=[], check_utf8=False),
        )
        return _fields(table, labels)
    except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError, UnicodeDecodeError):
        return None


def _fields(table: pa.Table, labels: list[bytes]) -> Any:
    """A column for each field of `DumpedBatch`. Raises KeyError for an unknown label or word."""
    for index, label in enumerate(labels):
        _coded(table[f"label {index}"], {label.decode(): 0})
    columns = {label: table[f"value {index}"] for index, label in enumerate(labels)}
    (stamp,) = columns.keys() & TIMESTAMP_TYPES.keys()
    columns[b"timestamp"] = columns[stamp]
    none = np.full(table.num_rows, NOT_PRINTED)
    coded = {label: _coded(columns[label], codes) if label in columns else none for label, codes in _CODED.items()}
    words = [coded[label] if label in coded else columns[label].to_numpy().astype(np.int64) for label in WORDS]
    numbers = [columns[label].to_numpy() for label in NUMBERS]
    return DumpedBatch._make([*numbers, *words[:4], np.full(table.num_rows, TIMESTAMP_TYPES[stamp]), words[4], none, none])


def _coded(column: pa.ChunkedArray, codes: dict[str, int]) -> Any:
    """The number of each word. Raises KeyError for an unknown word."""
    parts = [
        np.array([codes[word] for word in chunk.dictionary.to_pylist()], dtype=np.int64)[chunk.indices.to_numpy()]
        for chunk in column.chunks
    ]
    return np.concatenate(parts)


def _is_sound(columns: Any, next_position: int, last_offset: int) -> bool:
    """Whether the numbers can belong to batches, and all batches continue the chain. The line reader checks ranges by `struct`."""
    for name, (least, most) in _RANGES.items():
        column = getattr(columns, name)
        if column.min() < least or column.max() > most:
            return False
    base, last, position = columns.base_offset, columns.last_offset, columns.position
    is_next = position[0] == next_position and base[0] > last_offset and (position[1:] == columns.end[:-1]).all()
    return bool(is_next and (base[1:] > last[:-1]).all() and (is_believable(columns) & (columns.is_valid != 0)).all())
