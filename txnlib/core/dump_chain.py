"""Which lines of a dumped file follow from those before them? The chain of positions, and how it is taken up again.

A genuine batch line stands at the position where the batch before it ends, and has a higher offset; a genuine record
line belongs to the batch line above it (formats.md 1.10).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Final

from txnlib.core.dump_lines import NOT_PRINTED, DumpedBatch, DumpedFile, read_batch_line
from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC

#: A line of text with its line end, and its position in the text.
Line = tuple[int, bytes]

#: How far a line may be checked against those behind it: lines, their bytes, and batch lines that fit nothing.
_LINES_AHEAD: Final = 20_000
_BYTES_AHEAD: Final = 1 << 26
_STRAYS_AHEAD: Final = 8


class Lines:
    """Lines that can be looked at before they are read."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        self._held: deque[Line] = deque()

    def next(self) -> Line | None:
        return self._held.popleft() if self._held else next(self._lines, None)

    def give_back(self, lines: list[Line]) -> None:
        self._held.extendleft(reversed(lines))

    def ahead(self) -> Generator[Line, None, None]:
        """The next lines, which stay to be read. Close it when done."""
        seen: list[Line] = []
        size = 0
        try:
            while len(seen) < _LINES_AHEAD and size < _BYTES_AHEAD and (line := self.next()) is not None:
                seen.append(line)
                size += len(line[1])
                yield line
        finally:
            self.give_back(seen)


class Chain:
    """Where the dump of one file stands."""

    def __init__(self, file: DumpedFile, topic: str | None = None) -> None:
        self.kind = file.kind
        topic = file.topic or topic
        self.may_hold_coordinator_records = topic in (None, TRANSACTION_STATE_TOPIC)
        self.is_coordinator = topic == TRANSACTION_STATE_TOPIC
        self.next_position, self.last_offset = 0, NOT_PRINTED
        #: Where the chain stood before it was last taken up again: should that prove wrong, it is taken up from there.
        self.floor = (0, NOT_PRINTED)
        self.batch: DumpedBatch | None = None
        self.records, self.record_offset = 0, NOT_PRINTED
        #: Free text was printed in this file; and since the last batch line, where it could not be measured.
        self.has_text = self.has_open_text = False
        self.is_deep = self.is_torn = self.is_ended_early = False
        self.has_records = self.has_decoded_records = self.has_untyped_markers = False

    def continues(self, batch: DumpedBatch) -> bool:
        return batch.position == self.next_position and batch.base_offset > self.last_offset

    def holds(self, offset: int) -> bool:
        """Whether the next record of the current batch may have this offset."""
        batch = self.batch
        if batch is None or not self.record_offset < offset <= batch.last_offset:
            return False
        return self.records < batch.records_count or batch.records_count == NOT_PRINTED

    def append(self, batch: DumpedBatch) -> None:
        """Goes on behind a batch line. Of a batch that fails its CRC only the size is believed, as the tool does."""
        if self.continues(batch):
            self.floor = (batch.position, self.last_offset)
        self.next_position = batch.position + batch.size
        # The line of a compressed set of formats 0 and 1 does not tell its first offset.
        self.record_offset = batch.base_offset - 1 if batch.magic >= 2 else self.last_offset
        self.batch, self.records, self.has_open_text = batch, 0, False
        # What seemed to be the end was not.
        self.is_torn = self.is_ended_early = False
        if batch.is_valid:
            self.last_offset = batch.last_offset
            self.has_records |= batch.records_count != 0

    def follows(self, batch: DumpedBatch, lines: Lines) -> bool:
        """Whether a batch line is genuine: it continues the chain, or takes it up again further on.

        Where free text is around, a line must be proved by those behind it. A line that continues the chain is refuted
        by another one that does, too, before one that follows from it; a line further on needs a batch line that
        follows from it, or its own record line, before one that continues the chain as it stands.
        """
        if self.continues(batch):
            return not self.has_open_text or self._is_proved(batch, lines, is_likely=True)
        is_ahead = batch.position >= self.floor[0] and batch.base_offset > self.floor[1]
        return is_ahead and self._is_proved(batch, lines, is_likely=not self.has_text)

    def _is_proved(self, batch: DumpedBatch, lines: Lines, *, is_likely: bool) -> bool:
        after = Chain(DumpedFile())
        after.append(batch)
        has_record, strays = batch.records_count == 0, 0
        with closing(lines.ahead()) as ahead:
            for _position, line in ahead:
                if line.startswith(b"| offset: "):
                    has_record |= after.holds(offset_of(line))
                    if has_record and not self.has_open_text:
                        return True
                elif line.startswith((b"baseOffset: ", b"offset: ")) and (other := read_batch_line(line)):
                    if after.continues(other):
                        return True
                    if self.continues(other):
                        return False
                    if not self.has_text:
                        return has_record or other.position >= after.next_position
                    strays += 1
                if strays == _STRAYS_AHEAD or (line.startswith(b"Dumping ") and not self.has_open_text):
                    break
        return is_likely or has_record

    def is_ended_by(self, file: DumpedFile, lines: Lines) -> bool:
        """Whether a `Dumping` line is genuine: none in free text is, if the chain goes on behind it."""
        if not self.has_open_text:
            return True
        is_first = True
        with closing(lines.ahead()) as ahead:
            for _position, line in ahead:
                if (
                    is_first
                    and file.kind == "log"
                    and not line.startswith((b"Log starting offset: ", b"Starting offset: "))
                ):
                    return False
                is_first = False
                batch = read_batch_line(line) if line.startswith(b"baseOffset: ") else None
                if batch and self.continues(batch) and batch.base_offset == self.last_offset + 1:
                    return False
        return True

    @property
    def lacks_records(self) -> bool:
        """Whether records of the current batch were not printed, in a dump that prints records."""
        if not self.is_deep or self.batch is None or not self.batch.is_valid or self.has_open_text:
            return False
        return self.records < self.batch.records_count

    @property
    def is_decoded(self) -> bool:
        """Whether marker types and coordinator records were printed, wherever there were any to print."""
        if self.is_coordinator and self.has_records and not self.has_decoded_records:
            return False
        return self.is_deep or not self.has_untyped_markers


def offset_of(line: bytes) -> int:
    """The offset in a line `| offset: …`; NOT_PRINTED if there is none."""
    try:
        return int(line[len(b"| offset: ") : line.find(b" ", len(b"| offset: "))])
    except ValueError:
        return NOT_PRINTED
