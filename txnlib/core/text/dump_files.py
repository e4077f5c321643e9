"""Files of a dump: which `Dumping` lines are genuine, and where each file ends.

A payload may imitate such a line, and a damaged one may be lost or name another folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import chain as joined
from operator import ne
from typing import Final

from txnlib.core.text import dump_events as events
from txnlib.core.text.batch_chain import BATCHES_AHEAD, BatchChain, Line, Lines
from txnlib.core.text.dump_events import FileEnd, FileStart, Output, Unreadable, sample_of
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, read_file_line
from txnlib.core.text.free_text import FileLine
from txnlib.core.text.tool_messages import DumpTail, UnreadableReason

#: Maximum number of different `Dumping` lines in payloads to report per file.
_NOTED_IN_A_FILE: Final = 16


class FileReader:
    """Reads the first lines of each file. A `DumpReader` reads the others."""

    def __init__(self, lines: Iterable[Line], topic: str | None, *, looks_ahead: bool = False) -> None:
        """`topic`: that of files whose path does not contain it. Only `__transaction_state` has coordinator records.

        `looks_ahead`: whether it reads lines ahead for another reader, and so trusts no file in doubt.
        """
        self.lines, self.topic, self.looks_ahead = Lines(lines), topic, looks_ahead
        self.out = Output()
        self.chain: BatchChain | None = None
        #: The chain of the file before.
        self.before: BatchChain | None = None
        #: The end of the last `Dumping` line, and the log directories of files that are not in doubt.
        self.file_line_end = -1
        self.log_directories: set[str] = set()

    def read_line(self) -> bool:
        """Reads the next line; False at the end of the text."""
        raise NotImplementedError

    def read_other(self, position: int, line: bytes) -> None:
        """Reads a line that is not genuine."""
        raise NotImplementedError

    def end_text(self, problem: UnreadableReason | None) -> None:
        """Ends the last file. `problem`: why the text is incomplete; None if it is complete."""
        self.close_text(self.out.end)
        if problem is not None:
            self.out.note(self.out.end, problem)
        self.out.end_file(self.chain, self.out.end, is_last=True)

    def take_events(self) -> list[events.Dumped]:
        """Returns the events since the last call."""
        taken, self.out.values = self.out.values, []
        return taken

    def read_file(self, position: int, line: bytes) -> bool:
        file, chain = read_file_line(line), self.chain
        self.file_line_end = self.out.end
        if chain is not None and chain.doubted is not None:
            return self.read_file_in_doubt(position, line, file, chain.doubted)
        if file is None:
            return False
        verdict = FileLine.GENUINE if chain is None else self.judge_file(position, line, file, chain)
        if chain is not None and verdict is FileLine.GENUINE and _goes_on(chain, file):
            # Whichever of the two names is wrong, the other lacks a segment: neither is fed with it, and both are lowered.
            verdict = FileLine.DOUBTFUL
        if chain is None or verdict is FileLine.GENUINE:
            self.close_text(position)
            self.start_file(position, file)
            self.log_directories.add(file.log_directory)
        elif verdict is FileLine.DOUBTFUL:
            self.doubt_file(position, line, file, chain)
        else:
            if verdict is FileLine.LIKELY_PAYLOAD:
                self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
            self.note_payload([(position, line)], chain)
            self.read_other(position, line)
        return True

    def read_file_in_doubt(self, position: int, line: bytes, file: DumpedFile | None, doubted: BatchChain) -> bool:
        """Trusts a `Dumping` line after one in doubt if the open text has ended by its size, or if a sound file begins there."""
        if file is None:
            self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
            return True
        is_trusted = self.judge_file(position, line, file, doubted) is FileLine.GENUINE
        chain = self.start_file(position, file)
        if is_trusted:
            self.log_directories.add(file.log_directory)
        else:
            doubted.add_text(line)
            chain.doubted = doubted
            self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)
        return True

    def judge_file(self, position: int, line: bytes, file: DumpedFile, before: BatchChain) -> FileLine:
        """Whether a `Dumping` line after another file is genuine. Where its text may be open, its chain counts first."""
        is_ended = before.is_whole(is_cut=bool(self.out.ranges)) or self.looks_ahead
        if not before.may_be_in_text and is_ended:
            return FileLine.GENUINE
        if not before.has_text and not before.has_open_text and self.is_sound_file(position, line, file):
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

        Of payloads, only one that imitates a whole file of a known log directory looks like that. And only the last record of the
        file before can hide it: after any other, that file's own chain goes on.
        """
        if self.looks_ahead or (self.log_directories and file.log_directory not in self.log_directories):
            return False
        with closing(self.lines.ahead()) as ahead:
            reader = type(self)(joined([(position, line)], ahead), self.topic, looks_ahead=True)
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
            reader.end_text(None)
        return not any(type(event) is Unreadable for event in reader.take_events())

    def doubt_file(self, position: int, line: bytes, file: DumpedFile, chain: BatchChain) -> None:
        """Starts a file that may be part of a payload: its batches are not yielded, and the file before it may continue."""
        self.out.note(position, UnreadableReason.DUMPING_LINE_IN_DOUBT, line)
        chain.add_text(line)
        self.start_file(position, file).doubted = chain
        self.out.unreadable(position, line, UnreadableReason.DUMPING_LINE_IN_DOUBT)

    def note_payload(self, file_lines: list[Line], chain: BatchChain) -> None:
        for position, line in file_lines:
            if line not in chain.noted and len(chain.noted) < _NOTED_IN_A_FILE and read_file_line(line) is not None:
                chain.noted |= {line}
                self.out.values.append(Unreadable(position, 0, UnreadableReason.DUMPING_LINE_IN_PAYLOAD, sample_of(line)))

    def read_starting_offset(self, position: int, line: bytes) -> bool:
        """Reads `Log starting offset: N`, which the tool prints once per log, before any batch: N is the number in its name."""
        file = self.chain
        if file is not None and file.may_be_in_text and position != self.file_line_end:
            # A payload, or all that is left of the beginning of another file.
            self.out.note(position, UnreadableReason.OUT_OF_CHAIN, line)
        if file is None or file.may_be_in_text:
            return False
        if file.has_starting_offset or file.batch is not None or file.kind != "log":
            # The `Dumping` line of another file is lost: what follows does not belong to the file before.
            file = self.start_file(position, DumpedFile())
            self.out.note(position, UnreadableReason.OUT_OF_CHAIN, line)
        file.has_starting_offset = True
        number = line.rpartition(b" ")[2].strip()
        if file.base_offset is not None and number != b"%d" % file.base_offset:
            # A digit is wrong here or in the `Dumping` line.
            self.out.unreadable(position, line, UnreadableReason.BROKEN_LINE)
        return True

    def close_text(self, position: int) -> None:
        """Ends free text before a genuine line. If its size does not match, the text is unreadable instead of payload."""
        text = None if self.chain is None else self.chain.open
        if text is None or self.chain is None or text.size is None or text.may_end:
            return
        start = text.position
        self.chain.open = None
        if position > start:
            self.out.payload -= position - start
            self.out.unreadable(start, text.first_line, UnreadableReason.SIZE_MISMATCH, position - start)

    def returns_to_file_before(self, batch: DumpedBatch) -> bool:
        """Whether a batch line after a gap continues the file before: the `Dumping` line between them may be of its payload."""
        return self.before is not None and self.before.has_text and self.before.continues(batch)

    def start_file(self, position: int, file: DumpedFile) -> BatchChain:
        self.out.end_file(self.chain, position)
        self.before, self.chain = self.chain, BatchChain(file, self.topic)
        self.out.values.append(FileStart(position, file))
        return self.chain


def _goes_on(chain: BatchChain, file: DumpedFile) -> bool:
    """Whether a file continues a log at its very end, but in a folder whose path differs in one letter.

    A wrong letter in a `Dumping` line moves a segment to another partition. The tool prints a partition's segments one after
    the other, and another partition hardly begins where this one ends. A copy of one segment shows no such thing: a broker
    may well have only one of two partitions with like names.
    """
    folders = chain.folder, file.folder
    is_next = chain.has_records and file.kind == chain.kind == "log" and file.base_offset == chain.last_offset + 1
    return is_next and len(folders[0]) == len(folders[1]) and sum(map(ne, *folders)) == 1
