"""Files of a dump: which `Dumping` lines are genuine, where each file ends, and what waits until then.

A payload may imitate such a line, and a damaged one may be lost or name another folder.
"""

from __future__ import annotations

from contextlib import closing
from itertools import chain as joined
from typing import Final

from txnlib.core.text.batch_chain import BatchChain, FileLine, State
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, read_file_line
from txnlib.core.text.events import (
    HARMLESS_AT_THE_END,
    Dumped,
    DumpTail,
    FileEnd,
    FileStart,
    Unreadable,
    UnreadableReason,
    sample_of,
)
from txnlib.core.text.free_text import BATCHES_AHEAD
from txnlib.core.text.lines import Line, Lines

#: Maximum number of different `Dumping` lines in payloads to report per file.
_NOTED_IN_A_FILE: Final = 16
#: Maximum number of consecutive ranges to keep separate. Further ones are merged whatever their reason.
_MOST_RANGES: Final = 256


class Output:
    """Events that were read but not yielded yet. Counts every byte as read, as payload, or as unreadable."""

    def __init__(self) -> None:
        self.values: list[Dumped] = []
        #: A batch whose record line may add its marker, and the unreadable ranges since the last genuine line.
        self.pending: DumpedBatch | None = None
        self.ranges: list[Unreadable] = []
        #: Current position in the text.
        self.end = 0
        #: Number of bytes that were read, that are payload, and that are in unreadable ranges.
        self.read = self.payload = self.quarantined = 0
        #: The first two numbers at the end of the last range.
        self._before = (0, 0)

    def unreadable(self, position: int, text: bytes, reason: UnreadableReason, length: int | None = None) -> None:
        """Adds an unreadable range of `length` bytes (None: up to the current position), or extends the last range to
        its end."""
        length = self.end - position if length is None else length
        last = self.ranges[-1] if self.ranges else None
        if last is not None and (last.reason is reason or len(self.ranges) == _MOST_RANGES):
            between = position - last.position - last.length
            self.ranges[-1] = last._replace(length=last.length + between + length)
            self.read, self.payload = self._before
            self.quarantined += between + length
        else:
            self.ranges.append(Unreadable(position, length, reason, sample_of(text)))
            self.quarantined += length
        self._before = self.read, self.payload

    def missing(self, position: int) -> None:
        """Notes that genuine lines are missing here, unless an unreadable range already shows it."""
        if all(unreadable.reason is UnreadableReason.NOT_DUMP_TEXT for unreadable in self.ranges):
            self.note(position, UnreadableReason.OUT_OF_CHAIN)

    def note(self, position: int, reason: UnreadableReason, text: bytes = b"") -> None:
        """Adds an empty range."""
        self.ranges.append(Unreadable(position, 0, reason, sample_of(text)))
        self._before = self.read, self.payload

    def settle(self) -> None:
        """Releases the waiting events."""
        if self.pending is not None:
            self.values.append(self.pending)
            self.pending = None
        if self.ranges:
            self.values += self.ranges
            self.ranges.clear()

    @property
    def is_corrupt(self) -> bool:
        """Whether nothing believable follows what is unreadable."""
        return any(unreadable.reason not in HARMLESS_AT_THE_END for unreadable in self.ranges)


class FileReader:
    """Reads the first lines of each file. A `DumpReader` reads the others.

    `topic`: that of files whose path does not contain it. Only `__transaction_state` has coordinator records.
    `looks_ahead`: whether it reads lines ahead for another reader, and so trusts no file in doubt.
    """

    def __init__(self, lines: Lines, topic: str | None, *, looks_ahead: bool = False) -> None:
        self.lines, self.topic, self.looks_ahead = lines, topic, looks_ahead
        self.out = Output()
        #: The chain of the current file, and that of the file before.
        self.chain: BatchChain | None = None
        self.before: BatchChain | None = None
        #: The end of the last `Dumping` line, and the log directories of files that are not in doubt.
        self._file_line_end = -1
        self._log_directories: set[str] = set()
        #: `Dumping` lines in payloads of the file that were reported.
        self._noted: set[bytes] = set()

    @property
    def state(self) -> State:
        """What may come next."""
        return State.OUTSIDE if self.chain is None else self.chain.state

    def read_line(self) -> bool:
        """Reads the next line; False at the end of the text."""
        raise NotImplementedError

    def read_other(self, position: int, line: bytes) -> None:
        """Reads a line that is not genuine."""
        raise NotImplementedError

    def end_text(self) -> None:
        """Ends the last file."""
        self.close_text(self.out.end)
        if self.lines.problem is not None:
            self.out.note(self.out.end, self.lines.problem)
        self.end_file(self.out.end, is_last=True)

    def take_events(self) -> list[Dumped]:
        """Returns the events since the last call."""
        taken, self.out.values = self.out.values, []
        return taken

    def start_file(
        self, position: int, file: DumpedFile, *, next_position: int = 0, doubted: BatchChain | None = None
    ) -> BatchChain:
        self.end_file(position)
        self.before, self.chain = self.chain, BatchChain(file, self.topic, next_position=next_position, doubted=doubted)
        self._noted = set()
        self.out.values.append(FileStart(position, file))
        return self.chain

    def end_file(self, position: int, *, is_last: bool = False) -> None:
        """Releases all remaining events of a file and its end.

        `is_last`: no `Dumping` line follows, which the tool prints only after it has read the file before.
        """
        chain, out = self.chain, self.out
        if chain is not None and chain.has_doubt:
            out.missing(position)
        is_corrupt = out.is_corrupt
        out.settle()
        if chain is not None:
            out.values.append(FileEnd(position, chain.tail(is_last=is_last, is_corrupt=is_corrupt), chain.is_decoded))

    def close_text(self, position: int) -> None:
        """Ends free text before a genuine line. If its size does not match, the text is unreadable instead of
        payload."""
        text = None if self.chain is None else self.chain.open
        if text is None or self.chain is None or not text.is_unfinished:
            return
        self.chain.end_text()
        if position > text.position:
            self.out.payload -= position - text.position
            self.out.unreadable(
                text.position, text.first_line, UnreadableReason.SIZE_MISMATCH, position - text.position
            )

    def read_file(self, position: int, line: bytes) -> bool:
        file, chain = read_file_line(line), self.chain
        self._file_line_end = self.out.end
        if file is None:
            return False
        verdict = FileLine.GENUINE if chain is None else self.judge_file(position, line, file, chain)
        if chain is not None and verdict is FileLine.GENUINE and chain.is_followed_by(file):
            # Whichever of the two names is wrong, the other lacks a segment: neither is fed with it, and both are
            # lowered.
            verdict = FileLine.DOUBTFUL
        if chain is None or verdict is FileLine.GENUINE:
            self.close_text(position)
            self.start_file(position, file)
            self._log_directories.add(file.log_directory)
        elif verdict is FileLine.DOUBTFUL:
            self.doubt_file(position, line, file, chain)
        else:
            if verdict is FileLine.LIKELY_PAYLOAD:
                self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
            self.note_payload([(position, line)])
            self.read_other(position, line)
        return True

    def read_file_in_doubt(self, position: int, line: bytes) -> bool:
        """Trusts a `Dumping` line after one in doubt if the open text has ended by its size, or if a sound file begins
        there."""
        file, doubted = read_file_line(line), None if self.chain is None else self.chain.doubted
        self._file_line_end = self.out.end
        if file is None or doubted is None:
            self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
        elif self.judge_file(position, line, file, doubted) is FileLine.GENUINE:
            self.start_file(position, file)
            self._log_directories.add(file.log_directory)
        else:
            self.start_file(position, file, doubted=doubted)
            self.doubt(position, line)
        return True

    def doubt_file(self, position: int, line: bytes, file: DumpedFile, chain: BatchChain) -> None:
        """Starts a file that may be part of a payload: its batches are not yielded, and the file before it may
        continue."""
        self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
        self.start_file(position, file, doubted=chain)
        self.doubt(position, line)

    def doubt(self, position: int, line: bytes) -> None:
        """Reads a line of a file in doubt."""
        self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
        if self.chain is not None and self.chain.doubted is not None and self.chain.doubted.open is not None:
            self.chain.doubted.open.add(line)

    def judge_file(self, position: int, line: bytes, file: DumpedFile, before: BatchChain) -> FileLine:
        """Whether a `Dumping` line after another file is genuine. Where its text may be open, its chain counts
        first."""
        is_ended = before.is_whole(is_cut=bool(self.out.ranges)) or self.looks_ahead
        if not before.may_be_in_text and is_ended:
            return FileLine.GENUINE
        if not before.has_text and before.open is None and self.is_sound_file(position, line, file):
            return FileLine.GENUINE
        verdict = before.judge_file(file, position, self.lines)
        if verdict is FileLine.DOUBTFUL and self.is_sound_file(position, line, file):
            if not self.out.ranges:
                # The file before is lowered in any case: no damage explains why its last text does not end here.
                self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
            return FileLine.GENUINE
        return verdict

    def is_sound_file(self, position: int, line: bytes, file: DumpedFile) -> bool:
        """Whether the file that begins with a `Dumping` line in doubt is sound up to the next one, or for 32 batches.

        Of payloads, only one that imitates a whole file of a known log directory looks like that. And only the last
        record of the file before can hide it: after any other, that file's own chain goes on.
        """
        if self.looks_ahead or (self._log_directories and file.log_directory not in self._log_directories):
            return False
        with closing(self.lines.ahead()) as ahead:
            reader = type(self)(Lines(joined([(position, line)], ahead)), self.topic, looks_ahead=True)
            batches = 0
            while reader.read_line():
                for event in reader.take_events():
                    if type(event) is FileEnd:
                        return event.tail is DumpTail.CLEAN
                    if type(event) is Unreadable and event.length:
                        return False
                    batches += type(event) is DumpedBatch
                if reader.out.ranges:
                    return False
                if batches == BATCHES_AHEAD:
                    return True
            reader.end_text()
        return not any(type(event) is Unreadable for event in reader.take_events())

    def note_payload(self, file_lines: list[Line]) -> None:
        for position, line in file_lines:
            if line not in self._noted and len(self._noted) < _NOTED_IN_A_FILE and read_file_line(line) is not None:
                self._noted.add(line)
                self.out.values.append(
                    Unreadable(position, 0, UnreadableReason.DUMPING_LINE_IN_PAYLOAD, sample_of(line))
                )

    def read_starting_offset(self, position: int, line: bytes) -> bool:
        """Reads `Log starting offset: N`, which the tool prints once per log, before any batch: N is the number in its
        name."""
        chain = self.chain
        if chain is None or chain.may_be_in_text:
            if chain is not None and position != self._file_line_end:
                # A payload, or all that is left of the beginning of another file.
                self.out.note(position, UnreadableReason.OUT_OF_CHAIN, line)
            return False
        if not chain.start_at():
            # The `Dumping` line of another file is lost: what follows does not belong to the file before.
            chain = self.start_file(position, DumpedFile())
            chain.start_at()
            self.out.note(position, UnreadableReason.OUT_OF_CHAIN, line)
        number = line.rpartition(b" ")[2].strip()
        if chain.file.base_offset is not None and number != b"%d" % chain.file.base_offset:
            # A digit is wrong here or in the `Dumping` line.
            self.out.unreadable(position, line, UnreadableReason.BROKEN_LINE)
        return True
