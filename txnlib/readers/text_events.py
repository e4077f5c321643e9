"""Text of Kafka's tools as events: what a text is, its lines, the blocks that can be read at once, and the place of
each.

Parsed as CSV, a block of batch lines that continue the chain gives the same result a dozen times as fast. The line
reader (`core.text.dump_reader`) decides whether a block may be read this way, and reads everything else: also deep
dumps, because records are free text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import HEADER
from txnlib.core.text.batch_chain import BatchChain
from txnlib.core.text.console import ECHO_LABEL, read_console_text
from txnlib.core.text.dump_lines import (
    CODECS,
    NOT_PRINTED,
    NUMBERS,
    TIMESTAMP_TYPES,
    WORDS,
    DumpedBatch,
    DumpedFile,
    is_believable,
    is_of_old_tool,
    read_batch_line,
    read_file_line,
    read_record_line,
)
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.events import ConsoleRecord, Dumped, FileEnd, FileStart, Unreadable, UnreadableReason
from txnlib.core.text.lines import BYTE_ORDER_MARK, Lines, TextLines

_NAMED_BY_PARTITION: Final = re.compile(re.escape(TRANSACTION_STATE_TOPIC) + r"-(\d{1,9})(?!\d)")


def looks_like_dump(head: bytes) -> bool:
    """Whether the first kilobytes of a file contain dump text, possibly after other text.

    A segment can contain such text in its payloads, but all of Kafka's binary files start with a zero byte.
    """
    if head.startswith(b"\0"):
        return False
    readers = read_file_line, read_batch_line, read_record_line, is_of_old_tool
    return any(read(line) for line in head.removeprefix(BYTE_ORDER_MARK).splitlines() for read in readers)


def find_console_record(head: bytes) -> int | None:
    """The position of the first record in the beginning of a file; None if it is no console consumer text.

    A record of an id with line feeds counts, although it is ambiguous. Tombstones count only if all other text is
    chatter, because `::NULL` occurs in other texts, too.
    """
    if head.startswith(b"\0"):
        return None
    first_tombstone = None
    for printed in read_console_text(TextLines((head,))):
        if type(printed) is ConsoleRecord:
            if printed.entry is not None or head[printed.position : printed.position + 1] == b"{":
                return printed.position
            first_tombstone = printed.position if first_tombstone is None else first_tombstone
        elif type(printed) is Unreadable and printed.reason is not UnreadableReason.CUT_LINE:
            if (
                printed.reason is UnreadableReason.AMBIGUOUS_RECORD
                and head.find(ECHO_LABEL, printed.position, printed.end) >= 0
            ):
                return printed.position
            first_tombstone = None
            break
    return first_tombstone


def partition_in_name(path: str) -> int | None:
    """The partition of `__transaction_state` in a file's name, as with `--partition`; None if there is none."""
    match = _NAMED_BY_PARTITION.match(PurePath(path).name)
    return int(match[1]) if match else None


# ---- Blocks of batch lines


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
    if (
        not block.startswith(START)
        or not block.endswith(b"\n")
        or b"\r" in block
        or any(x in block for x in _HEXADECIMAL)
    ):
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
            csv.ParseOptions(
                delimiter=" ", quote_char=False, double_quote=False, escape_char=False, ignore_empty_lines=False
            ),
            csv.ConvertOptions(
                column_types=types, true_values=["true"], false_values=["false"], null_values=[], check_utf8=False
            ),
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
    return DumpedBatch._make(
        [*numbers, *words[:4], np.full(table.num_rows, TIMESTAMP_TYPES[stamp]), words[4], none, none]
    )


def _coded(column: pa.ChunkedArray, codes: dict[str, int]) -> Any:
    """The number of each word. Raises KeyError for an unknown word."""
    parts = [
        np.array([codes[word] for word in chunk.dictionary.to_pylist()], dtype=np.int64)[chunk.indices.to_numpy()]
        for chunk in column.chunks
    ]
    return np.concatenate(parts)


def _is_sound(columns: Any, next_position: int, last_offset: int) -> bool:
    """Whether the numbers can belong to batches, and all batches continue the chain. The line reader checks ranges by
    `struct`."""
    for name, (least, most) in _RANGES.items():
        column = getattr(columns, name)
        if column.min() < least or column.max() > most:
            return False
    base, last, position = columns.base_offset, columns.last_offset, columns.position
    is_next = position[0] == next_position and base[0] > last_offset and (position[1:] == columns.end[:-1]).all()
    return bool(is_next and (base[1:] > last[:-1]).all() and (is_believable(columns) & (columns.is_valid != 0)).all())


# ---- Events and their places


Event = Dumped | BatchBlock


class DumpPlace(NamedTuple):
    """The copy to which a dumped file belongs. `topic` and `partition` are None if they are unknown."""

    topic: str | None
    partition: int | None
    source: str
    file: DumpedFile

    @property
    def is_known(self) -> bool:
        return self.topic is not None and self.partition is not None

    def columns(self, path: str) -> dict[str, Any]:
        """The columns that say where a row is from. `path`: that of the text."""
        return {"topic": self.topic, "partition": self.partition, "source": self.source, "path": path}


#: An event of the text with its place; None for text outside any file.
Located = tuple[DumpPlace | None, Event]
#: Number of bytes to read line by line before trying a block again.
_ONE_BY_ONE: Final = 4_096
_MOST_ONE_BY_ONE: Final = 16 << 20


class DumpStream:
    """The events of the lines, in order, each read once. Lines of `TextLines` are read in blocks where possible.

    `topic` is the topic of files whose path does not contain it.
    """

    def __init__(self, lines: Lines, topic: str | None) -> None:
        self.reader, self._text = DumpReader(lines, topic), lines if isinstance(lines, TextLines) else None
        #: Where to try a block, and how many bytes to read line by line if that fails: more and more.
        self._next_try, self._one_by_one = 0, _ONE_BY_ONE

    def __iter__(self) -> Iterator[Event]:
        reader, text = self.reader, self._text
        while True:
            chain = reader.chain
            if (
                text is not None
                and chain is not None
                and chain.is_plain
                and (block := self._take_block(text, chain)) is not None
            ):
                reader.skip_batches(
                    block.last, block.size, has_records=block.has_records, has_untyped_markers=block.has_markers
                )
                yield from reader.take_events()
                yield block
            elif (
                text is not None
                and not (text.of_piece or text.held)
                and reader.skips_empty
                and (count := text.skip_empty())
            ):
                reader.skip(count)
            elif not reader.read_line():
                break
            elif reader.out.values:
                yield from reader.take_events()
        reader.end_text()
        yield from reader.take_events()

    def _take_block(self, lines: TextLines, chain: BatchChain) -> BatchBlock | None:
        """Takes the next lines as a block; None if not all are batch lines that continue the chain."""
        position = lines.position
        if position < self._next_try or not lines.begins_with(START):
            return None
        text = lines.take_block()
        block = None if text is None else read_plain_batches(text, chain.next_position, chain.last_offset)
        if text is not None:
            size = 0 if block is None else block.size
            lines.end_block(text[size:], position + size)
        if block is None:
            self._next_try, self._one_by_one = position + self._one_by_one, min(2 * self._one_by_one, _MOST_ONE_BY_ONE)
        else:
            self._one_by_one = _ONE_BY_ONE
        return block


def read_located(lines: Lines, source: str, topic_partition: tuple[str, int] | None) -> Iterator[Located]:
    """Yields the events of the text. `topic_partition` applies to files whose path does not contain it.

    Folders that Kafka is deleting are left out. The first log directory belongs to the source itself; further ones
    become sources of their own, named `<source>:<log directory>`.
    """
    topic, partition = topic_partition or (None, None)
    place: DumpPlace | None = None
    last: DumpPlace | None = None
    first_directory: str | None = None
    for value in DumpStream(lines, topic):
        if type(value) is FileStart:
            file = value.file
            if (
                file.path is None
                and last is not None
                and last.file.topic is not None
                and last[:2] != (topic, partition)
            ):
                # The line with the partition of these batches is lost, and the name of the text belongs to other files.
                place = DumpPlace(None, None, source, file)
            elif file.topic is None or file.is_deleted:
                place = DumpPlace(topic, partition, source, file)
            else:
                first_directory = file.log_directory if first_directory is None else first_directory
                own = source if file.log_directory == first_directory else f"{source}:{file.log_directory}"
                place = DumpPlace(file.topic, file.partition, own, file)
            last = place
        if place is None or not place.file.is_deleted:
            yield place, value
        if type(value) is FileEnd:
            place = None
