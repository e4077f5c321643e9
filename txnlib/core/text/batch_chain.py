"""Chain of batch positions in a dumped file. After a break, reading resumes where a chain of lines is proven.

A genuine batch line has the position at which the previous batch ends, and a higher offset. A genuine record line belongs to the
batch line above it (docs/rules/formats.md#imitated-lines).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Final, NamedTuple

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.text.dump_lines import NOT_PRINTED, DumpedBatch, DumpedFile, read_batch_line
from txnlib.core.text.free_text import FileLine, OpenText, OtherChains

#: The position of a line in the text, and the line with its line end.
Line = tuple[int, bytes]

#: Limits of the look-ahead: number of lines, and their total size in bytes.
_LINES_AHEAD: Final = 200_000
_BYTES_AHEAD: Final = 1 << 26
#: If this many lines that look like batches form one chain, with none left over between them, the first is genuine.
BATCHES_AHEAD: Final = 32
#: Otherwise, the number of lines to judge together, so that the lines after a shorter imitation outweigh it; and how many of them
#: to settle.
_BATCHES_TOGETHER: Final = 2 * BATCHES_AHEAD
_BATCHES_SETTLED: Final = BATCHES_AHEAD

#: Score of a chain for each line, and penalty for missing lines or offsets: two forged lines further on gain nothing, and three
#: genuine lines outweigh damage.
_GAIN: Final = 1.0
_COST_OF_A_GAP: Final = 2.5
_COST_OF_MISSING_OFFSETS: Final = 0.25
_GAIN_BY_OWN_RECORD: Final = 2.0
#: Number of recent batches of a chain to remember, so that a single damaged line does not hide that another file has the same
#: batches.
_RECENT: Final = 4


class Lines:
    """Lines with look-ahead."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        #: Lines that were looked at but not read yet.
        self.held: deque[Line] = deque()
        #: Number of bytes of lines searched for the end of contents without success.
        self.in_vain = 0

    def next(self) -> Line | None:
        """The next line; None at the end of the text."""
        return self.held.popleft() if self.held else next(self._lines, None)

    def give_back(self, lines: list[Line]) -> None:
        """Puts lines back in front, in order."""
        self.held.extendleft(reversed(lines))

    def ahead(self) -> Generator[Line, None, None]:
        """Iterates over the next lines without reading them. Close it when done."""
        seen: list[Line] = []
        size = 0
        try:
            while len(seen) < _LINES_AHEAD and size < _BYTES_AHEAD and (line := self.next()) is not None:
                seen.append(line)
                size += len(line[1])
                yield line
        finally:
            self.give_back(seen)


class _BatchCandidate(NamedTuple):
    """A line that looks like a batch: its position in the text, and the number of `Dumping` lines since the first candidate."""

    position: int
    batch: DumpedBatch
    files: int


class _Link(NamedTuple):
    """The end of a chain of lines: its next position, its last offset and its score.

    `before`: the index of the line before its last one; None: there is none. `files`: the number of `Dumping` lines before it.
    """

    end: int
    last_offset: int
    score: float
    before: int | None
    files: int


class ChainedBatches(NamedTuple):
    """Valid batches that continue a chain. `last`: the last batch, as its batch line shows it."""

    last: DumpedBatch
    has_records: bool
    has_untyped_markers: bool


class BatchChain:
    """The state of reading the dump of one file."""

    def __init__(self, file: DumpedFile, topic: str | None = None) -> None:
        self.kind, self.base_offset, self.folder = file.kind, file.base_offset, file.folder
        #: Whether the line `Log starting offset: N` was read.
        self.has_starting_offset = False
        topic = file.topic or topic
        self.may_hold_coordinator_records = topic in (None, TRANSACTION_STATE_TOPIC)
        self.is_coordinator = topic == TRANSACTION_STATE_TOPIC
        #: Only the metadata log has snapshots of batches; that of a new cluster, `bootstrap.checkpoint`, is outside its folder.
        self.holds_metadata = topic == CLUSTER_METADATA_TOPIC or file.kind == "checkpoint"
        self.next_position, self.last_offset = 0, NOT_PRINTED
        #: Lowest position and offset for a batch that replaces the current one, if the last resumption proves wrong.
        self.floor = (0, NOT_PRINTED)
        self.first: DumpedBatch | None = None
        self.batch: DumpedBatch | None = None
        self.records, self.record_offset = 0, NOT_PRINTED
        #: Whether free text was printed in this file; and whether there is any since the last batch line that could not be
        #: measured.
        self.has_text = self.has_open_text = False
        #: The open text, if known; and chains of other files that began in it.
        self.open: OpenText | None = None
        self._others, self._has_twin = OtherChains(), False
        #: Positions and offsets of the most recent batches.
        self._recent: tuple[tuple[int, int], ...] = ()
        #: The chain in whose open text this file begins, if it does: the file may be a payload of that chain.
        self.doubted: BatchChain | None = None
        #: Whether record lines are printed with metadata, or without (`--skip-record-metadata`).
        self.is_deep = self.is_bare = False
        #: Later batch lines were taken for payload, and no genuine one has followed since.
        self.has_doubt = False
        self.is_torn = self.is_ended_early = False
        #: `Dumping` lines in payloads that were reported.
        self.noted: frozenset[bytes] = frozenset()
        self.has_records = self.has_decoded_records = self.has_untyped_markers = False
        #: There was a batch whose records were not printed.
        self.has_unprinted_records = False
        #: Positions in the text: of genuine batch lines, of the end of the lines judged so far, and of the line where the file
        #: continues.
        self._genuine: set[int] = set()
        self._judged_until = self._goes_on_at = 0

    def continues(self, batch: DumpedBatch) -> bool:
        """Whether a batch starts where the previous one ends, with a higher offset."""
        return batch.position == self.next_position and batch.base_offset > self.last_offset

    def holds(self, offset: int) -> bool:
        """Whether this may be the offset of the next record of the current batch."""
        batch = self.batch
        if batch is None or not self.record_offset < offset <= batch.last_offset:
            return False
        return self.records < batch.records_count or batch.records_count == NOT_PRINTED

    def append(self, batch: DumpedBatch) -> None:
        """Continues the chain after a batch line. For a batch that fails its CRC, only the size counts, as in the tool."""
        if self.continues(batch):
            self.floor = (
                batch.position + 1,
                max(batch.last_offset, self.last_offset) if batch.is_valid else self.last_offset,
            )
        if self.batch is not None and self.batch.is_valid and not self.is_bare and not self.records:
            self.has_unprinted_records |= self.batch.records_count > 0
        self.next_position = batch.position + batch.size
        # The line of a compressed set of formats 0 and 1 does not show its first offset.
        self.record_offset = batch.base_offset - 1 if batch.magic >= 2 else self.last_offset
        self.first = self.first or batch
        self.batch, self.records = batch, 0
        self._recent = (*self._recent[1 - _RECENT :], (batch.position, batch.base_offset))
        self.close_text()
        # What seemed to be the end of the file was not.
        self.is_ended_early = self.has_doubt = False
        if batch.is_valid:
            self.last_offset = batch.last_offset
            self.has_records |= batch.records_count != 0

    @property
    def is_plain(self) -> bool:
        """Whether no record lines are printed and nothing is in doubt, so that the next batches may be read as a block."""
        batch = self.batch
        if self.kind != "log" or batch is None or not batch.is_valid or self.is_bare or self.has_doubt or self.is_torn:
            return False
        return not self.is_deep and not self.has_text

    def append_all(self, batches: ChainedBatches) -> None:
        """Continues the chain after batches that continue it."""
        last = batches.last
        self.next_position, self.last_offset = last.position, last.base_offset - 1
        self.append(last)
        self.has_records |= batches.has_records
        self.has_untyped_markers |= batches.has_untyped_markers

    def open_text(self, text: OpenText | None = None) -> None:
        """Notes that free text of unknown extent follows this line."""
        self.has_text = self.has_open_text = True
        self.open = text

    def add_text(self, line: bytes) -> None:
        """Adds a line to the open text."""
        if self.open is not None:
            self.open.add(line)

    def close_text(self) -> None:
        """Notes that the open text has ended."""
        self.has_open_text, self.open = False, None
        if self._others or self._has_twin:
            self._others, self._has_twin = OtherChains(), False

    def pass_batch(self, batch: DumpedBatch) -> None:
        """Notes a batch line that is not part of this chain: another file may have begun there."""
        if self.has_open_text and batch != self.first:
            self._others.add(batch)
            # Only after the beginning of another file: a payload may quote batches from before it.
            self._has_twin |= bool(self._others) and self._is_of_twin(batch)

    def _is_of_twin(self, batch: DumpedBatch) -> bool:
        """Whether a batch has position and offset of a recent batch: partitions that are written together are alike."""
        return batch.position > 0 and (batch.position, batch.base_offset) in self._recent

    def is_rivalled_at(self, batch: DumpedBatch) -> bool:
        """Whether a batch line also continues a chain that began at position 0 since this chain's last batch line."""
        return batch.position > 0 and (self._has_twin or self._others.hold(batch))

    def follows(self, batch: DumpedBatch, position: int, lines: Lines) -> bool:
        """Whether the batch line at this position in the text is genuine: it continues the chain or resumes it.

        If contents are printed, it must be on the best chain through the lines after it.
        """
        if not self.has_text:
            return self.continues(batch) or (self._is_ahead(batch) and self._is_whole(batch, lines))
        if position >= self._judged_until:
            self._judge(batch, position, lines)
        is_genuine = position in self._genuine
        self.has_doubt |= not is_genuine and self._is_ahead(batch)
        return is_genuine

    @property
    def expects_decoded(self) -> bool:
        """Whether contents other than a coordinator record mean damage, because other records were decoded."""
        return self.is_coordinator and self.has_decoded_records

    def is_left_by(self, batch: DumpedBatch) -> bool:
        """Whether a batch line that does not follow is the first of another file whose `Dumping` line is lost."""
        return batch.position == 0 and batch != self.first and not self.may_be_in_text

    def _is_ahead(self, batch: DumpedBatch) -> bool:
        return batch.position >= self.floor[0] and batch.base_offset > self.floor[1]

    def _is_whole(self, batch: DumpedBatch, lines: Lines) -> bool:
        """Whether the numbers in a later batch line are complete, as far as the next batch or record line shows."""
        after = BatchChain(DumpedFile())
        after.append(batch)
        with closing(lines.ahead()) as ahead:
            for _position, line in ahead:
                if line.startswith(b"| offset: ") and after.holds(offset_of(line)):
                    return True
                if _looks_like_batch(line) and (other := read_batch_line(line)):
                    return not self.continues(other) and other.position >= after.next_position
                if line.startswith(b"Dumping "):
                    break
        return True

    def _judge(self, batch: DumpedBatch, position: int, lines: Lines) -> None:
        """Finds the genuine lines among the next lines that look like batches.

        Lines in a payload may form a chain, too, and may even start where a genuine line is expected. But their chain ends with the
        payload, and the genuine chain continues. So if all lines form one chain for long enough, that chain is genuine. If all
        contents were measured so far, no payload is open. Then a gap can only be damage, and a record line after the batch line is
        sufficient proof.
        """
        candidates, has_own_record, files = [_BatchCandidate(position, batch, 0)], False, 0
        after = BatchChain(DumpedFile())
        after.append(batch)
        with closing(lines.ahead()) as ahead:
            for other_position, line in ahead:
                if line.startswith(b"| offset: ") and len(candidates) == 1 and not self.has_open_text:
                    has_own_record |= after.holds(offset_of(line))
                elif line.startswith(b"Dumping "):
                    files += 1
                elif _looks_like_batch(line) and (other := read_batch_line(line)):
                    candidates.append(_BatchCandidate(other_position, other, files))
                    if len(candidates) == _BATCHES_TOGETHER:
                        break
        straight = _straight(candidates)
        if self.continues(batch) and straight[0] >= BATCHES_AHEAD:
            settled = straight[0] - BATCHES_AHEAD + 1
            self._genuine = {candidate.position for candidate in candidates[:settled]}
            self._judged_until = candidates[settled].position
            return
        roots = [
            _Link(self.next_position, self.last_offset, 0, None, 0),
            _Link(*self.floor, -_COST_OF_A_GAP, None, 0),
        ]
        links = _links(candidates, roots, _GAIN_BY_OWN_RECORD if has_own_record else 0)
        last = max(range(len(links)), key=lambda index: links[index].score)
        self._genuine = set()
        if links[last].score <= 0:
            # Each of the other lines may be proven by its own record line.
            self._judged_until = position + 1
            return
        step: int | None = last
        while step is not None:
            self._genuine.add(candidates[step].position)
            step = links[step].before
        # Restart scoring at the first unbroken run, so the result does not depend on where reading started.
        settled = _BATCHES_SETTLED if len(candidates) == _BATCHES_TOGETHER else len(candidates)
        settled = next((index for index in range(1, settled) if straight[index] >= BATCHES_AHEAD), settled)
        self._judged_until = candidates[settled].position if settled < len(candidates) else candidates[-1].position + 1

    def is_whole(self, *, is_cut: bool) -> bool:
        """Whether all records are printed, if any are. `is_cut`: damage directly before explains missing records."""
        return self.batch is not self.first or self.batch is None if not self.is_deep else is_cut or not self._lacks_record

    def judge_file(self, file: DumpedFile, position: int, lines: Lines) -> FileLine:
        """Whether a `Dumping` line that may be in a text is genuine. It is payload if the chain continues after it.

        Batches that continue the chain of the file that begins here prove nothing, even if they also continue this chain:
        partitions that are written together have the same positions and offsets.
        """
        if position < self._goes_on_at:
            return FileLine.PAYLOAD
        end, last_offset = self.next_position, self.last_offset
        others, has_twin = OtherChains(), False
        is_first = is_straight = has_header = True
        going_on = files = straight = 0
        with closing(lines.ahead()) as ahead:
            for other_position, line in ahead:
                if is_first and file.kind == "log":
                    is_straight = has_header = line.startswith((b"Log starting offset: ", b"Starting offset: "))
                is_first = False
                files += line.startswith(b"Dumping ")
                is_straight &= not files
                if not _looks_like_batch(line) or (batch := read_batch_line(line)) is None:
                    continue
                is_own = batch.position == end and batch.base_offset > last_offset
                is_other = others.add(batch)
                is_straight &= is_other and not is_own
                straight += is_straight
                if is_straight and straight == BATCHES_AHEAD:
                    return FileLine.GENUINE
                has_twin |= self._is_of_twin(batch)
                if is_own and not is_other and not has_twin:
                    # In another file, one batch may match by chance, but hardly two, nor one with the next offset.
                    going_on += 2 if batch.base_offset == last_offset + 1 else 1
                    if going_on >= 2:
                        self._goes_on_at = other_position
                        return FileLine.LIKELY_PAYLOAD if files else FileLine.PAYLOAD
                if is_own:
                    end, last_offset = batch.position + batch.size, batch.last_offset
        return FileLine.GENUINE if self.may_end and has_header else FileLine.DOUBTFUL

    @property
    def may_end(self) -> bool:
        """Whether the file may end here: all records are printed, and the text of the last one may end."""
        return not (self.is_deep and self._lacks_record) and not self._lacks_text and (self.open is None or self.open.may_end)

    @property
    def may_be_in_text(self) -> bool:
        """Whether the next line may be free text: a text is open, or records are missing whose contents would be printed."""
        return self.has_open_text or self._lacks_text

    @property
    def _lacks_text(self) -> bool:
        return self.has_text and self._lacks_record

    @property
    def _lacks_record(self) -> bool:
        if self.batch is None or not self.batch.is_valid or (self.is_bare and self.batch.is_control):
            # Without metadata, the record of a control batch is an empty line.
            return False
        return self.records < self.batch.records_count

    @property
    def lacks_records(self) -> bool:
        """Whether records of the current batch are missing, in a dump that prints records."""
        if not self.is_deep or self.batch is None or not self.batch.is_valid or self.has_open_text:
            return False
        return self.records < self.batch.records_count

    @property
    def is_decoded(self) -> bool:
        """Whether all marker types and coordinator records were printed."""
        if self.is_coordinator and self.has_records and not self.has_decoded_records:
            return False
        return self.is_deep or not self.has_untyped_markers


def _straight(candidates: list[_BatchCandidate]) -> list[int]:
    """For each line, the length of the unbroken run that starts with it: each batch starts where the one before it ends."""
    lengths = [1] * len(candidates)
    for index in range(len(candidates) - 2, -1, -1):
        batch, after = candidates[index].batch, candidates[index + 1].batch
        if batch.position + batch.size == after.position and batch.last_offset < after.base_offset:
            lengths[index] = lengths[index + 1] + 1
    return lengths


def _links(candidates: list[_BatchCandidate], roots: list[_Link], gain_of_first: float) -> list[_Link]:
    """For each line the best chain that ends with it. `gain_of_first` lowers the first line's penalty for a gap.

    After a `Dumping` line, whether genuine or in a payload, a chain continues only with the very next offset: the next file of a
    partition may have batches at the same positions.
    """
    links: list[_Link] = []
    for _position, batch, files in candidates:
        best = _Link(batch.position + batch.size, batch.last_offset, float("-inf"), None, files)
        for index, before in enumerate([*roots, *links], -len(roots)):
            has_gap, skips = before.end < batch.position, before.last_offset + 1 < batch.base_offset
            if before.last_offset >= batch.base_offset or before.end > batch.position:
                continue
            if before.files < files and (has_gap or skips):
                continue
            score = before.score + _GAIN - (_COST_OF_MISSING_OFFSETS if skips else 0)
            if has_gap:
                score -= _COST_OF_A_GAP - (0 if links else gain_of_first)
            if score > best.score:
                best = best._replace(score=score, before=index if index >= 0 else None)
        links.append(best)
    return links


def _looks_like_batch(line: bytes) -> bool:
    return line.startswith((b"baseOffset: ", b"offset: "))


def offset_of(line: bytes) -> int:
    """The offset in a line `| offset: …`; NOT_PRINTED if there is none."""
    try:
        return int(line[len(b"| offset: ") : line.find(b" ", len(b"| offset: "))])
    except ValueError:
        return NOT_PRINTED
