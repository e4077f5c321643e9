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

    def follows(self, batch: DumpedBatch, position: int, lines: Lines) -> bool:
        """Whether the batch line at this position in the text is genuine: it continues the chain, or takes it up again.

        Where contents are printed, a line must be on the longest chain through the lines behind it.
        """
        if self.has_text:
            return self._is_on_longest_chain(batch, position, lines)
        return self.continues(batch) or (self._is_ahead(batch) and self._is_believable_restart(batch, lines))

    def _is_ahead(self, batch: DumpedBatch) -> bool:
        return batch.position >= self.floor[0] and batch.base_offset > self.floor[1]

    def _is_believable_restart(self, batch: DumpedBatch, lines: Lines) -> bool:
        """Whether a line further on is whole, as the next line of a batch or record tells: digits may be missing in it."""
        after = Chain(DumpedFile())
        after.append(batch)
        with closing(lines.ahead()) as ahead:
            for _position, line in ahead:
                if line.startswith(b"| offset: ") and after.holds(offset_of(line)):
                    return True
                if line.startswith((b"baseOffset: ", b"offset: ")) and (other := read_batch_line(line)):
                    return not self.continues(other) and other.position >= after.next_position
                if line.startswith(b"Dumping "):
                    break
        return True

    def _is_on_longest_chain(self, batch: DumpedBatch, position: int, lines: Lines) -> bool:
        if position >= self.judged_until:
            self._judge(batch, position, lines)
        return position in self.genuine

    def _judge(self, batch: DumpedBatch, position: int, lines: Lines) -> None:
        """Finds the genuine ones among the next lines that look like batch lines.

        Those that a payload holds may form a chain, too, and may even start where a genuine line is expected; but it ends
        with the payload, and the genuine chain goes on. A gap costs more than a short chain of forged lines gains.
        """
        found = [(position, batch, self._has_own_record(batch, lines))]
        with closing(lines.ahead()) as ahead:
            for place, line in ahead:
                if line.startswith((b"baseOffset: ", b"offset: ")) and (other := read_batch_line(line)):
                    found.append((place, other, False))
                    if len(found) == _BATCHES_AHEAD:
                        break
        # (score, end position, last offset, how many lines back the chain goes on; none: from here)
        chains: list[tuple[float, int, int, int | None]] = []
        for place, (_, other, has_own_record) in enumerate(found):
            before = [(0.0, self.next_position, self.last_offset, None), *((*chain[:3], i) for i, chain in enumerate(chains))]
            best: tuple[float, int | None] = (float("-inf"), None)
            for score, end, last_offset, index in before:
                if last_offset < other.base_offset and end <= other.position:
                    gap = 0.0 if end == other.position else _COST_OF_A_GAP - has_own_record
                    skipped = 0.0 if last_offset + 1 == other.base_offset else _COST_OF_MISSING_OFFSETS
                    best = max(best, (score + 1 - gap - skipped, index), key=lambda chain: chain[0])
            chains.append((best[0], other.position + other.size, other.last_offset, best[1]))
            del place
        self.genuine = set()
        index = max(range(len(chains)), key=lambda i: chains[i][0])
        step: int | None = index if chains[index][0] > 0 else None
        while step is not None:
            self.genuine.add(found[step][0])
            step = chains[step][3]
        # What stands near the end of the view has little behind it yet that could refute it.
        self.judged_until = found[-1][0] + 1 if len(found) < _BATCHES_AHEAD else found[_BATCHES_JUDGED][0]

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
