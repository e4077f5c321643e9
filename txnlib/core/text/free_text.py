"""Free text of a dump: how far it goes, where it may end, which files may begin in it, and which lines in it are
genuine.

Keys, payloads and header keys are printed unescaped, line feeds included. Their sizes are printed, too. So contents can
be measured, unless the console has replaced characters or a decoder has printed other text
(docs/rules/formats.md#imitated-lines).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txnlib.core.text.coordinator_text import ID_LABEL, read_transaction_log_text, shortest_text
from txnlib.core.text.dump_lines import NOT_PRINTED, DumpedBatch
from txnlib.core.text.events import TransactionLogText
from txnlib.core.text.lines import LONGEST_LINE, Line, Lines, LongLine

#: Beginnings of the lines that can follow a complete record.
_AFTER_A_RECORD: Final = (
    b"baseOffset: ",
    b"| offset: ",
    b"offset: ",
    b"Dumping ",
    b"Found ",
    b"Non-consecutive ",
    b"Mismatches ",
    b"Exception ",
)
#: Maximum number of lines of a transactional id. Ids have at most 32767 bytes; more line feeds are not worth the
#: search.
_LINES_OF_AN_ID: Final = 64
#: Far above the size of a record that any broker accepts.
_LARGEST_RECORD: Final = 1 << 28
#: Maximum number of bytes of lines to keep until they can be given back; each line counts with an overhead.
_ROOM: Final = 1 << 26
#: Limit of the bytes searched without success, and its increase per byte of text. Otherwise many wrong sizes take
#: quadratic time.
_IN_VAIN: Final = 1 << 26
_IN_VAIN_PER_BYTE: Final = 4
_COST_OF_A_LINE: Final = 128


def pass_over(lines: Lines, contents: bytes, size: int) -> tuple[int, list[Line]] | None:
    """Takes the further lines of contents. Returns their number of bytes, and the `Dumping` lines among them.

    Returns None and takes no lines if the size does not match. In a dump whose line ends were converted, each line has
    one byte more.
    """
    held: list[Line] = []
    room = _ROOM
    length, converted, line = len(contents), 0, contents
    while True:
        line_end = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0
        # A carriage return may also be the last character of a payload.
        if size in (length - line_end, length - line_end - converted, length - min(line_end, 1)):
            break
        may_go_on = line_end and room > 0 and length - line_end - converted < size < _LARGEST_RECORD
        ahead = lines.next() if may_go_on else None
        if ahead is None:
            lines.give_back(held)
            lines.in_vain += length - len(contents)
            return None
        if not held:
            room = min(room, _IN_VAIN + _IN_VAIN_PER_BYTE * ahead[0] - lines.in_vain)
        held.append(ahead)
        converted += line_end - 1
        line = ahead[1]
        length += len(line)
        room -= len(line) + _COST_OF_A_LINE
    if held and (ahead := lines.next()) is not None:
        lines.give_back([ahead])
        if not ahead[1].startswith(_AFTER_A_RECORD):
            lines.give_back(held)
            return None
    return length - len(contents), [line for line in held if line[1].startswith(b"Dumping ")]


def read_coordinator_text(lines: Lines, text: bytes, key_size: int) -> tuple[TransactionLogText, int] | None:
    """The coordinator record in a text from after `key: `, and the number of bytes of the further lines that it spans.

    Returns None and takes no lines if there is no such record. Tries the size of the key first (-1: not printed), then
    the last payload.
    """
    sizes = (key_size, None) if key_size >= 0 else (None,)
    return next((record for size in sizes if (record := _read_joined(lines, text, size)) is not None), None)


def _read_joined(lines: Lines, text: bytes, key_size: int | None) -> tuple[TransactionLogText, int] | None:
    held: list[Line] = []
    joined = text
    while True:
        body = joined.removesuffix(b"\n").removesuffix(b"\r")
        decoded = read_transaction_log_text(body, key_size)
        if decoded is None and b"\r\n" in body:
            # Converted line ends inside an id.
            decoded = read_transaction_log_text(body.replace(b"\r\n", b"\n"), key_size)
        # Without its line end, the last number of a text payload may be truncated; JSON and tombstones show their end.
        if decoded is not None and (
            joined.endswith(b"\n") or decoded.entry is None or decoded.entry.version is not None
        ):
            return decoded, len(joined) - len(text)
        is_short = key_size is None or len(body) < shortest_text(key_size)
        may_go_on = is_short and len(held) < _LINES_OF_AN_ID and text.startswith(ID_LABEL)
        ahead = lines.next() if may_go_on else None
        if ahead is not None:
            held.append(ahead)
        is_over = ahead is None or type(ahead[1]) is LongLine or len(joined) > LONGEST_LINE
        if ahead is None or is_over or (key_size is None and ahead[1].startswith(_AFTER_A_RECORD)):
            lines.give_back(held)
            return None
        joined += ahead[1]


#: A character that the console's charset lacks is printed as one byte, and has up to four.
_MISSING: Final = b"?"
_HIDDEN_BY_MISSING: Final = 3
#: An invalid byte sequence is printed as three bytes, and has at least one.
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}".encode()
_ADDED_BY_REPLACED: Final = 2
#: Maximum number of carriage returns and control characters that terminals and copying tools may drop.
_LOST: Final = 16
_BEYOND_ASCII: Final = bytes(range(0x80, 0x100))


class OpenText:
    """Free text whose end the printed sizes do not show exactly: contents, header keys, or what damage left of them.

    `size`: size of the contents in bytes as printed; None: not printed, so that they may end with any line.
    """

    def __init__(
        self,
        position: int,
        line: bytes = b"",
        size: int | None = None,
        *,
        is_list: bool = False,
        is_damage: bool = False,
    ) -> None:
        self.position, self.size, self.is_list, self.is_damage = position, size, is_list, is_damage
        self._printed = self._missing = self._replaced = 0
        self._line_end = 0
        self._is_closed = False
        self.first_line = b""
        if line:
            self.add(line)

    def add(self, line: bytes) -> None:
        """Adds a line of the text, or the rest of its first line."""
        self._line_end = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0
        self.first_line = self.first_line or line
        self._printed += len(line)
        self._missing += line.count(_MISSING)
        self._replaced += line.count(_REPLACED) + line.count(b"\r\n")
        # Charsets other than UTF-8 have fewer bytes for these.
        self._missing += len(line) - len(line.translate(None, _BEYOND_ASCII))
        self._is_closed = b"]" in line

    @property
    def may_end(self) -> bool:
        """Whether the text may have ended with the last line, according to sizes and brackets."""
        if self.is_damage:
            return False
        if self.is_list:
            return self._is_closed
        if self.size is None:
            return True
        printed = self._printed - self._line_end
        least, most = printed - _ADDED_BY_REPLACED * self._replaced, printed + _HIDDEN_BY_MISSING * self._missing
        return least - _LOST <= self.size <= most + _LOST

    @property
    def is_unfinished(self) -> bool:
        """Whether its printed size shows that it goes on."""
        return self.size is not None and not self.may_end


class OtherChains:
    """Chains of other files, each from a batch at position 0 on: the next position of each -> its last offset."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {0: NOT_PRINTED}

    def __len__(self) -> int:
        return len(self._ends) - 1

    def hold(self, batch: DumpedBatch) -> bool:
        """Whether a batch continues one of the chains."""
        return batch.base_offset > self._ends.get(batch.position, batch.base_offset)

    def add(self, batch: DumpedBatch) -> bool:
        """Adds a batch if it continues one of the chains; returns whether it does."""
        is_other = self.hold(batch)
        if is_other:
            if batch.position:
                del self._ends[batch.position]
            self._ends[batch.end] = batch.last_offset
        return is_other


# ---- Genuine lines among lines that look like batches


#: If this many lines that look like batches form one chain, with none left over between them, the first is genuine.
BATCHES_AHEAD: Final = 32
#: Otherwise, the number of lines to judge together, so that the lines after a shorter imitation outweigh it; and how
#: many of them to settle.
BATCHES_TOGETHER: Final = 2 * BATCHES_AHEAD
_BATCHES_SETTLED: Final = BATCHES_AHEAD

#: Score of a chain for each line, and penalty for missing lines or offsets: two forged lines further on gain nothing,
#: and three genuine lines outweigh damage.
_GAIN: Final = 1.0
COST_OF_A_GAP: Final = 2.5
_COST_OF_MISSING_OFFSETS: Final = 0.25
_GAIN_BY_OWN_RECORD: Final = 2.0


class Candidate(NamedTuple):
    """A line that looks like a batch: its position in the text, and the number of `Dumping` lines since the first
    candidate."""

    position: int
    batch: DumpedBatch
    files: int


class Link(NamedTuple):
    """The end of a chain of lines: its next position, its last offset and its score.

    `before`: the index of the line before its last one; None: there is none. `files`: the number of `Dumping` lines
    before it.
    """

    end: int
    last_offset: int
    score: float = 0
    before: int | None = None
    files: int = 0


def genuine_lines(
    candidates: list[Candidate], roots: tuple[Link, ...], *, has_own_record: bool
) -> tuple[set[int], int]:
    """The positions of genuine batch lines among those that look like one, and the end of the lines that are settled.

    The first of `roots` is the end of the chain before them. Lines in a payload may form a chain, too, and may even
    start where a genuine line is expected. But their chain ends with the payload, and the genuine chain continues. So
    if all lines form one chain for long enough, that chain is genuine. If all contents were measured so far, no payload
    is open. Then a gap can only be damage, and `has_own_record`, a record line after the first batch line, is
    sufficient proof.
    """
    straight = _straight(candidates)
    first, (next_position, last_offset, *_) = candidates[0], roots[0]
    if straight[0] >= BATCHES_AHEAD and first.batch.position == next_position and first.batch.base_offset > last_offset:
        settled = straight[0] - BATCHES_AHEAD + 1
        return {candidate.position for candidate in candidates[:settled]}, candidates[settled].position
    links = _links(candidates, roots, _GAIN_BY_OWN_RECORD if has_own_record else 0)
    last = max(range(len(links)), key=lambda index: links[index].score)
    if links[last].score <= 0:
        # Each of the other lines may be proven by its own record line.
        return set(), first.position + 1
    genuine: set[int] = set()
    step: int | None = last
    while step is not None:
        genuine.add(candidates[step].position)
        step = links[step].before
    # Restart scoring at the first unbroken run, so the result does not depend on where reading started.
    settled = _BATCHES_SETTLED if len(candidates) == BATCHES_TOGETHER else len(candidates)
    settled = next((index for index in range(1, settled) if straight[index] >= BATCHES_AHEAD), settled)
    return genuine, candidates[settled].position if settled < len(candidates) else candidates[-1].position + 1


def _straight(candidates: list[Candidate]) -> list[int]:
    """For each line, the length of the unbroken run that starts with it: each batch starts where the one before it
    ends."""
    lengths = [1] * len(candidates)
    for index in range(len(candidates) - 2, -1, -1):
        batch, after = candidates[index].batch, candidates[index + 1].batch
        if batch.end == after.position and batch.last_offset < after.base_offset:
            lengths[index] = lengths[index + 1] + 1
    return lengths


def _links(candidates: list[Candidate], roots: tuple[Link, ...], gain_of_first: float) -> list[Link]:
    """For each line the best chain that ends with it. `gain_of_first` lowers the first line's penalty for a gap.

    After a `Dumping` line, whether genuine or in a payload, a chain continues only with the very next offset: the next
    file of a partition may have batches at the same positions.
    """
    links: list[Link] = []
    for _position, batch, files in candidates:
        best = Link(batch.end, batch.last_offset, float("-inf"), None, files)
        for index, before in enumerate([*roots, *links], -len(roots)):
            has_gap, skips = before.end < batch.position, before.last_offset + 1 < batch.base_offset
            if before.last_offset >= batch.base_offset or before.end > batch.position:
                continue
            if before.files < files and (has_gap or skips):
                continue
            score = before.score + _GAIN - (_COST_OF_MISSING_OFFSETS if skips else 0)
            if has_gap:
                score -= COST_OF_A_GAP - (0 if links else gain_of_first)
            if score > best.score:
                best = best._replace(score=score, before=index if index >= 0 else None)
        links.append(best)
    return links
