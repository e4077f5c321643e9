"""Free text of a dump: how far it goes, where it may end, and which files may begin in it.

Keys, payloads and header keys are printed unescaped, line feeds included. Their sizes are printed, too. So contents can be
measured, unless the console has replaced characters or a decoder has printed other text (docs/rules/formats.md#imitated-lines).
"""

from __future__ import annotations

from typing import Final

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
#: Maximum number of lines of a transactional id. Ids have at most 32767 bytes; more line feeds are not worth the search.
_LINES_OF_AN_ID: Final = 64
#: Far above the size of a record that any broker accepts.
_LARGEST_RECORD: Final = 1 << 28
#: Maximum number of bytes of lines to keep until they can be given back; each line counts with an overhead.
_ROOM: Final = 1 << 26
#: Limit of the bytes searched without success, and its increase per byte of text. Otherwise many wrong sizes take quadratic time.
_IN_VAIN: Final = 1 << 26
_IN_VAIN_PER_BYTE: Final = 4
_COST_OF_A_LINE: Final = 128


def pass_over(lines: Lines, contents: bytes, size: int) -> tuple[int, list[Line]] | None:
    """Takes the further lines of contents. Returns their number of bytes, and the `Dumping` lines among them.

    Returns None and takes no lines if the size does not match. In a dump whose line ends were converted, each line has one byte
    more.
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

    Returns None and takes no lines if there is no such record. Tries the size of the key first (-1: not printed), then the last
    payload.
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
        if decoded is not None and (joined.endswith(b"\n") or decoded.entry is None or decoded.entry.version is not None):
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
        self, position: int, line: bytes = b"", size: int | None = None, *, is_list: bool = False, is_damage: bool = False
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
