"""Files of a dump: where each begins and ends.

Reading ends where any further line may be a part of contents or header keys.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from txnlib.core.kafka.record_batch import CompressionType
from txnlib.core.text.contents import least_size
from txnlib.core.text.dump_chain import DumpChain
from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, is_ticket, read_batch_line, read_file_line
from txnlib.core.text.lines import HARMLESS_AT_THE_END, TextLines, UnreadableReason
from txnlib.core.text.printed import Dumped, FileEnd, FileStart, Unreadable, sample_of

#: Beginnings of lines of the tool.
STARTS: Final = (b"Dumping ", b"baseOffset: ", b"| offset: ")
#: Far above the size of a record, whose header keys may imitate as many bytes of lines.
_MOST_HIDDEN: Final = 4 << 20
#: An invalid byte is printed as three bytes.
_BYTES_PRINTED: Final = 3
#: Maximum number of consecutive ranges to keep separate. Further ones are merged whatever their reason.
_MOST_RANGES: Final = 256
#: The first lines of a file that show whether its records are a coordinator's.
_LOOKED_AT: Final = 8
_COORDINATORS: Final = re.compile(
    rb"^\s*\| (offset: .* headerKeys: \[\] )?key: (transaction_metadata::|\{\"type\":\"0\")"
)
#: Maximum number of `Dumping` lines to name behind contents without a known end.
_MOST_NAMED: Final = 16


class Output:
    """Events that were read but not yielded yet."""

    def __init__(self) -> None:
        self.values: list[Dumped] = []
        #: A batch whose record line may add its marker, and the unreadable ranges since the last genuine line.
        self.pending: DumpedBatch | None = None
        self.ranges: list[Unreadable] = []

    def unreadable(self, position: int, length: int, reason: UnreadableReason, text: bytes = b"") -> None:
        """Adds an unreadable range, or extends the last one of the same reason to its end."""
        last = self.ranges[-1] if self.ranges else None
        if last is not None and length and (last.reason is reason or len(self.ranges) == _MOST_RANGES):
            self.ranges[-1] = last._replace(length=position + length - last.position)
        else:
            self.ranges.append(Unreadable(position, length, reason, sample_of(text)))

    def missing(self, position: int) -> None:
        """Notes that genuine lines are missing here, unless an unreadable range already shows it."""
        if all(unreadable.reason is UnreadableReason.NOT_DUMP_TEXT for unreadable in self.ranges):
            self.unreadable(position, 0, UnreadableReason.OUT_OF_CHAIN)

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


class HeaderKeys(NamedTuple):
    """Header keys of a record. No size of them is printed, so they may go on over the next lines and imitate them.

    `end`: the position after the line with the keys. `reach`: the keys end before this position. `chain`: the chain at
    that line. `number`: number of events before it.
    """

    end: int
    reach: int
    chain: DumpChain
    number: int


class FileReader:
    """Reads the first lines of each file. A `DumpReader` reads the others.

    `topic`: that of files whose path does not contain it. Only `__transaction_state` has coordinator records.
    """

    def __init__(self, lines: TextLines, topic: str | None) -> None:
        self.lines, self.topic, self.out = lines, topic, Output()
        self.chain: DumpChain | None = None
        #: The header keys that may still hide lines; those after which a new file began; and the number of events that
        #: were yielded.
        self.header_keys: deque[HeaderKeys] = deque()
        self._before_files: deque[HeaderKeys] = deque()
        self.yielded = 0
        #: `is_lost`: the contents of the current line have no known end.
        self.prints_contents = self.is_stopped = self.is_lost = False
        #: Whether the current line has its end. Tools end every line.
        self.is_whole = True

    def take_events(self) -> list[Dumped]:
        """The events since the last call. It holds back those that header keys may have imitated."""
        waiting = self.header_keys
        for each in (waiting, self._before_files):
            while each and self.lines.position - each[0].end > _MOST_HIDDEN:
                each.popleft()
        count = waiting[0].number - self.yielded if waiting else len(self.out.values)
        taken, self.out.values = self.out.values[:count], self.out.values[count:]
        self.yielded += len(taken)
        return taken

    def note_header_keys(self, chain: DumpChain) -> None:
        """Notes that the current record has header keys, which are no longer than its batch."""
        batch, end = chain.batch, self.lines.position
        is_bounded = batch is not None and batch.compression_type == CompressionType.NONE and self.lines.form is None
        reach = _BYTES_PRINTED * batch.size if batch is not None and is_bounded else _MOST_HIDDEN
        self.header_keys.append(HeaderKeys(end, end + reach, replace(chain), self.yielded + len(self.out.values)))

    def unreadable(self, position: int, text: bytes, reason: UnreadableReason) -> None:
        """Adds the lines from a position up to the current one."""
        self.out.unreadable(position, self.lines.position - position, reason, text)

    def start_file(self, position: int, file: DumpedFile, *, next_position: int = 0) -> DumpChain:
        self.end_file(position)
        if self.header_keys:
            self._before_files.append(self.header_keys[-1])
        self.chain = DumpChain.of(file, self.topic, next_position)
        self.out.values.append(FileStart(position, file))
        return self.chain

    def end_file(self, position: int, *, is_last: bool = False) -> None:
        """Releases all remaining events of a file and its end.

        `is_last`: no `Dumping` line follows, which the tool prints only after it has read the file before.
        """
        chain, is_corrupt = self.chain, self.out.is_corrupt
        self.out.settle()
        if chain is not None:
            tail = chain.tail(is_last=is_last, is_corrupt=is_corrupt)
            self.out.values.append(FileEnd(position, tail, chain.is_decoded))

    def read_file(self, position: int, text: bytes) -> bool:
        file = read_file_line(text)
        if file is not None and is_ticket(f"{file.topic}-{file.partition}") and self._prints_coordinators():
            file = file._replace(topic=None, partition=None)
        if file is None:
            return False
        is_elsewhere = self.chain is not None and file.folder != self.chain.file.folder
        hiding = next((keys for keys in self.header_keys if position < keys.reach), None)
        if is_elsewhere and hiding is not None:
            # A part of the header keys would become records of another partition.
            self.lines.give_back([(position, text + b"\n")])
            self._end_with(hiding)
        else:
            self.start_file(position, file)
        return True

    def _prints_coordinators(self) -> bool:
        """Whether the next lines show that the file has coordinator records. The lines are still to be read."""
        ahead = [line for _ in range(_LOOKED_AT) if (line := self.lines.next()) is not None]
        self.lines.give_back(ahead)
        return any(_COORDINATORS.search(line) for _position, line in ahead)

    def read_starting_offset(self, position: int, text: bytes) -> bool:
        """Reads `Log starting offset: N`, which the tool prints once per log, before any batch: N is the number in its
        name."""
        chain = self.chain
        if chain is None:
            return False
        if not chain.start_at():
            # The `Dumping` line of another file is lost: what follows does not belong to the file before.
            chain = self.start_file(position, DumpedFile())
            chain.start_at()
            self.out.unreadable(position, 0, UnreadableReason.OUT_OF_CHAIN, text)
        if chain.file.base_offset is not None and text.rpartition(b" ")[2] != b"%d" % chain.file.base_offset:
            # A digit is wrong here or in the `Dumping` line.
            self.unreadable(position, text, UnreadableReason.BROKEN_LINE)
        return True

    def end_text(self) -> None:
        """Ends the last file."""
        problem, end = self.lines.problem, self.lines.position
        if problem is not None:
            self.out.unreadable(end, 0, problem)
            if self.chain is not None:
                self.chain.is_unmeasured = False
        self.end_file(end, is_last=True)

    def is_hidden(self, is_next: Callable[[DumpChain], bool], *, continues_file: bool) -> bool:
        """Whether a line continues the chain before some header keys, so that the keys may have imitated all lines
        since.

        Then the lines since do not count, and reading ends. `continues_file`: the line continues the current file, too.
        """
        kept = self._before_files if continues_file else self.header_keys
        found = next((keys for keys in reversed(kept) if is_next(keys.chain)), None)
        if found is None:
            return False
        self._end_with(found)
        return True

    def _end_with(self, keys: HeaderKeys) -> None:
        """Ends reading at the line with these header keys: later lines do not count."""
        self.out.ranges.clear()
        self.out.pending = None
        del self.out.values[keys.number - self.yielded :]
        self.chain = keys.chain
        self.stop(keys.end, b"", UnreadableReason.HEADER_KEYS)

    def stop(self, position: int, text: bytes, reason: UnreadableReason, contents: bytes | None = None) -> None:
        """Leaves out contents without a known end: any further line may be a part of them.

        Goes on at a line that cannot be a part of them, because the batch has fewer bytes than the lines before it.
        Without such a line, ends reading, and names the files that are not read. `contents`: the part of the current
        line that may belong to them; None: never go on, because they may be another batch's.
        """
        self.is_lost = True
        bound = None if contents is None or self.chain is None else self.chain.contents_bound
        room, named = (bound or 0) - least_size(contents or b""), dict[bytes, int]()
        for other_position, line in self.lines:
            room -= least_size(line)
            if line.startswith(STARTS) and reason is UnreadableReason.CUT_LINE:
                reason = UnreadableReason.SIZE_MISMATCH
            file = read_file_line(line) if line.startswith(b"Dumping ") else None
            # Behind the line of another file, batches are not of this one.
            may_go_on = bound is not None and room < 0 and (file is not None or not named)
            if may_go_on and self._goes_on(line, file):
                self.lines.give_back([(other_position, line)])
                break
            if file is not None and len(named) < _MOST_NAMED:
                named.setdefault(line, other_position)
        else:
            self.is_stopped = True
        self.unreadable(position, text, reason)
        for line, other_position in named.items():
            self.out.unreadable(other_position, 0, UnreadableReason.FILE_NOT_READ, line)
        if self.chain is None:
            return
        if not self.is_stopped:
            self.chain.give_up_records()
        elif reason is UnreadableReason.CUT_LINE:
            self.chain.is_torn = True
        else:
            self.chain.is_unmeasured = True

    def _goes_on(self, line: bytes, file: DumpedFile | None) -> bool:
        """Whether reading can go on at a line that is no part of contents: it begins a file, or a later batch."""
        if file is not None:
            return True
        batch = read_batch_line(line) if line.startswith(b"baseOffset: ") else None
        return batch is not None and self.chain is not None and self.chain.may_be_followed_by(batch)
