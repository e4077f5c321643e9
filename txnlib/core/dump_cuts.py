"""Places to cut a dump into parts. Each part is read separately, from the state that its cut notes.

Between the last record of a batch and the next batch line, with nothing open, the only state of a reader is its chain. So text
can be read from the middle if the chain there is known. Otherwise it is guessed from the surrounding lines. The guess is accepted
only if the reader of the previous part arrives there with the same chain. If it does not, for instance because a payload imitated
the lines, the guess and everything read from it is discarded.

What cannot be guessed is whose file it is and how it began; nothing depends on that but names and `FileEnd.is_decoded`, and
the reader of what stands before will know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.dump_chain import Chain
from txnlib.core.dump_lines import DumpedBatch, DumpedFile, read_batch_line
from txnlib.core.dump_output import Dumped, DumpedBatches, FileStart, Unreadable
from txnlib.core.dump_text import DumpReader

#: Number of batches to read before a guess, so that the chain has seen whatever is usual in the text.
_BATCHES: Final = 24
#: Approximate number of bytes to read as a block before a guess.
_BLOCK: Final = 65_536


class Undecided(Exception):
    """The meaning of a line depends on state that was not guessed."""


class _GuessedChain(Chain):
    """A chain that does not know its first batch, and says so where that is asked for."""

    @classmethod
    def of(cls, chain: Chain) -> _GuessedChain:
        guessed = cls(DumpedFile())
        guessed.__dict__.update(chain.__dict__, has_untyped_markers=False, has_records=False, has_decoded_records=False)
        return guessed

    def is_left_by(self, batch: DumpedBatch) -> bool:
        if batch.position == 0 and not self.may_be_in_text:
            raise Undecided
        return False

    @property
    def expects_decoded(self) -> bool:
        if self.is_coordinator and not self.has_decoded_records:
            raise Undecided
        return self.is_coordinator


@dataclass(frozen=True, slots=True)
class DumpStart:
    """What is known at a place in a dump: the chain, the file, and the first log directory of the text.

    `file` None: it began before what was read.
    """

    position: int
    chain: Chain
    file: FileStart | None
    first_directory: str | None

    def resume(self, reader: DumpReader) -> None:
        """Puts a reader, whose lines begin here, where the one before it stopped."""
        reader.chain, reader.out.end = _copy(self.chain), self.position

    def behind(self, before: DumpStart | None) -> DumpStart:
        """The same with what only the reader of what stands before knows."""
        if before is None:
            return self
        first_directory = self.first_directory if before.first_directory is None else before.first_directory
        if self.file is not None:
            return DumpStart(self.position, self.chain, self.file, first_directory)
        chain, known = _copy(self.chain), before.chain
        chain.first = known.first
        chain.has_untyped_markers |= known.has_untyped_markers
        chain.has_records |= known.has_records
        chain.has_decoded_records |= known.has_decoded_records
        return DumpStart(self.position, chain, before.file, first_directory)


def _copy(chain: Chain) -> Chain:
    copied = Chain(DumpedFile())
    copied.__dict__.update(chain.__dict__)
    return copied


class DumpWalk:
    """A reader on its way through a dump, from its beginning or from a guess on; what it reads is not kept."""

    def __init__(self, reader: DumpReader) -> None:
        self._reader = reader
        self._file: FileStart | None = None
        self._first_directory: str | None = None
        self._has_stretch = False

    @property
    def position(self) -> int:
        return self._reader.out.end

    def go_to(self, stop: int) -> bool:
        """Reads up to a line, or to the end. Raises Undecided. False at the end of the text."""
        for value in self._reader.read_to(stop):
            self._note(value)
        return self.position >= stop

    def _note(self, value: Dumped) -> None:
        # The batch behind a stretch tells where the stretch ends.
        self._has_stretch = type(value) is Unreadable or (self._has_stretch and type(value) not in (DumpedBatch, DumpedBatches))
        if type(value) is FileStart:
            self._file = value
            if self._first_directory is None and value.file.topic is not None and not value.file.is_deleted:
                self._first_directory = value.file.log_directory

    def guess(self, end: int) -> bool:
        """Reads on to the first line before which the text can be cut, and forgets how it came there.

        False if there is none before `end`. Raises Undecided.
        """
        reader = self._reader
        batches, last = 0, None
        while (line := reader.lines.next()) is not None and line[0] < end:
            reader.lines.give_back([line])
            if batches >= _BATCHES and reader.chain is not None:
                if self._is_cut(read_batch_line(line[1]), reader.chain):
                    reader.chain = _GuessedChain.of(reader.chain)
                    self._file = self._first_directory = None
                    return True
                if self._passes_block(reader.chain, min(end, line[0] + _BLOCK)):
                    continue
            for value in reader.read_to(line[0] + 1):
                self._note(value)
            if reader.chain is not None and reader.chain.batch is not last:
                batches, last = batches + 1, reader.chain.batch
        return False

    def _is_cut(self, batch: DumpedBatch | None, chain: Chain) -> bool:
        return batch is not None and chain.continues(batch) and self.key is not None

    def _passes_block(self, chain: Chain, stop: int) -> bool:
        """Reads on behind open text as a block: lines that are judged one by one are so in groups, and a guess has others."""
        reader = self._reader
        block = reader.pass_plain(reader.take_plain, stop) if chain.has_open_text and reader.take_plain is not None else None
        if block is None:
            return False
        for value in (*reader.out.values, block):
            self._note(value)
        reader.out.values.clear()
        return True

    @property
    def start(self) -> DumpStart | None:
        """What is known here; None where the text cannot be cut."""
        chain = self._reader.chain
        if chain is None or self.key is None:
            return None
        return DumpStart(self.position, _copy(chain), self._file, self._first_directory)

    @property
    def key(self) -> tuple[Any, ...] | None:
        """All that decides what is read from here on; None where more than the chain does."""
        chain, out = self._reader.chain, self._reader.out
        if chain is None or chain.batch is None or chain.kind != "log" or self._has_stretch:
            return None
        batch = chain.batch
        if not batch.is_valid or batch.is_control or batch.last_offset != chain.last_offset:
            return None
        if out.pending is not None or out.stretches or chain.is_judging(out.end):
            return None
        if chain.has_doubt or chain.is_torn or chain.is_ended_early or not chain.is_text_usual:
            return None
        return (
            out.end,
            batch,
            (chain.next_position, chain.last_offset, chain.floor),
            (chain.records, chain.record_offset),
            (chain.has_text, chain.has_open_text, chain.is_deep, chain.is_bare),
            (chain.may_hold_coordinator_records, chain.is_coordinator, chain.noted),
        )


def walk_from_guess(reader: DumpReader, file: DumpedFile, end: int, *, has_text: bool = False) -> DumpWalk | None:
    """A walk of a reader whose lines begin somewhere in a text, at where it can be cut; None if that is nowhere before `end`.

    `file`: one that is dumped in the text, as far as is known; `has_text`: whether free text was printed in it.
    """
    while (line := reader.lines.next()) is not None and line[0] < end:
        batch = read_batch_line(line[1])
        if batch is not None and batch.is_valid and not batch.is_control:
            reader.lines.give_back([line])
            chain = reader.chain = _GuessedChain(file, reader.topic)
            chain.next_position, chain.last_offset, chain.has_text = batch.position, batch.base_offset - 1, has_text
            reader.out.end = line[0]
            walk = DumpWalk(reader)
            return walk if _has_guess(walk, end) else None
    return None


def _has_guess(walk: DumpWalk, end: int) -> bool:
    try:
        return walk.guess(end)
    except Undecided:
        return False
