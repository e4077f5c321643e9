"""How is a text of any size cut into lines of any length, without holding more than a piece of it?

A line feed may be far away: in front of a payload of 50 MB nobody needs more than what stands before it. So a line longer
than `LONGEST_LINE` is handed on as a `LongLine`. Lines that need not be looked at one by one are
handed on as blocks (`dump_plain`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, Final

from txnlib.core.dump_chain import Line
from txnlib.core.dump_lines import NOT_PRINTED, DumpedBatch
from txnlib.core.dump_output import DumpedBatches
from txnlib.core.dump_transaction_log import LONGEST_RECORD
from txnlib.core.long_line import shortened, size_of
from txnlib.readers.dump_plain import START, has_untyped_markers, read_plain_batches
from txnlib.readers.dump_plain_records import read_plain_records

CHUNK_BYTES: Final = 1 << 20
LONGEST_LINE: Final = 1 << 20
#: Stands in every coordinator record, which is worth holding as long as it may be.
_OF_COORDINATOR: Final = b"transactionalId"
#: What of a long line's end is kept: a genuine line behind a piece of another one.
_TAIL: Final = 4_096
_LINE_END: Final = 2
_NEXT_BATCH: Final = b"\n" + START
#: Bytes of lines that are read one by one before the rest is looked at as a whole again.
_ONE_BY_ONE: Final = 4_096


class TextLines:
    """The lines of a stream with their line ends, each with its position; no more than a line and a chunk is held.

    `position` is that of the stream's first byte in the text.
    """

    def __init__(self, stream: BinaryIO, chunk_size: int = CHUNK_BYTES, *, longest: int = LONGEST_LINE, position: int = 0) -> None:
        self._stream, self._longest = stream, longest
        # So that only a line that goes over the end of a chunk can be too long.
        self._chunk_size = min(chunk_size, longest)
        self._lines: Iterator[bytes] = iter(())
        #: Position of the next line; the whole lines that follow, not yet split, or a long one; what was read behind them,
        #: and the beginning of one more.
        self._position, self._block, self._long = position, b"", b""
        self._unread = b""
        self._beginning = _Beginning(longest)
        self._one_by_one = _ONE_BY_ONE

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        line = next(self._lines, None)
        while line is None:
            if not self._fill():
                raise StopIteration
            if self._long:
                line, self._long = self._long, b""
                position, self._position = self._position, self._position + size_of(line)
                return position, line
            piece, self._block = self._cut()
            # `splitlines` would also split at a lone carriage return, which a payload may hold.
            self._lines = iter(io.BytesIO(piece).readlines())
            line = next(self._lines, None)
        position, self._position = self._position, self._position + len(line)
        return position, line

    def _cut(self) -> tuple[bytes, bytes]:
        """The next lines that are read one by one, and the rest of the block, which may be plain.

        The rest begins with a batch line, as plain blocks do; each time that it proves not to be plain, more is cut off.
        """
        end = self._block.find(_NEXT_BATCH, self._one_by_one) + 1 or len(self._block)
        self._one_by_one = min(2 * self._one_by_one, self._chunk_size)
        return self._block[:end], self._block[end:]

    def take_plain(
        self, next_position: int, last_offset: int, with_records: bool = False, stop: int | None = None
    ) -> DumpedBatches | None:
        """The next lines, if they stand unread and are nothing but batch lines that go on behind the given position.

        `with_records`: each with all its record lines. `stop`: the place of a line in the text that is no more to be taken.
        """
        if self._lines.__length_hint__() or not self._fill():  # type: ignore[attr-defined]
            return None
        block = self._block if stop is None else self._block[: max(stop - self._position, 0)]
        read = read_plain_records if with_records else read_plain_batches
        taken = read(block, next_position, last_offset)
        if taken is None:
            return None
        self._one_by_one = _ONE_BY_ONE
        columns, size, record_offset = taken
        self._position += size
        self._block = self._block[size:]
        last = DumpedBatch._make(map(int, columns[-1]))
        untyped = last._replace(control_type=NOT_PRINTED, coordinator_epoch=NOT_PRINTED)  # as its line alone tells
        return DumpedBatches(columns, untyped, has_untyped_markers(columns), self._position, record_offset)

    def _fill(self) -> bool:
        """Reads on until there is a whole line, unless one is waiting; False at the end of the text."""
        while not self._block and not self._long:
            chunk, self._unread = self._unread or self._stream.read(self._chunk_size), b""
            first = chunk.find(b"\n") + 1
            if chunk and not first:
                self._beginning.add(chunk)
                continue
            if self._beginning.size + first > self._longest:
                self._beginning.add(chunk[:first])
                self._long, self._unread = self._beginning.take(), chunk[first:]
            else:
                end = chunk.rfind(b"\n") + 1
                self._block = self._beginning.take() + chunk[:end]
                self._beginning.add(chunk[end:])
            if not chunk:
                break
        return bool(self._block or self._long)


class _Beginning:
    """What was read so far of a line whose end is not in sight."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._limit = self._longest
        self._held, self._tail = bytearray(), b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._tail = (self._tail + piece[-_TAIL:])[-_TAIL:]
        self._held += piece
        if self.size > self._limit + _LINE_END:
            if self._limit == self._longest and _OF_COORDINATOR in self._held[: self._longest]:
                self._limit = max(LONGEST_RECORD, self._longest)
            del self._held[self._limit + _LINE_END :]

    def take(self) -> bytes:
        """The line, shortened if it is too long, which is then forgotten."""
        line = bytes(self._held)
        if self.size > len(line):
            line = shortened(line[: self._limit], self.size, self._tail)
        self._clear()
        return line
