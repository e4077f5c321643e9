"""Free text of a dump without exact sizes: where it may end, and which files may begin in it."""

from __future__ import annotations

from enum import Enum
from typing import Final

from txnlib.core.text.dump_lines import NOT_PRINTED, DumpedBatch


class FileLine(Enum):
    """The kinds of a line `Dumping <path>`."""

    GENUINE = "GENUINE"
    #: The chain continues after it.
    PAYLOAD = "PAYLOAD"
    #: The chain continues only after another `Dumping` line, where a file with like batches may have lost its first ones.
    LIKELY_PAYLOAD = "LIKELY_PAYLOAD"
    #: A payload may be open here, and nothing shows that the line is not part of it.
    DOUBTFUL = "DOUBTFUL"


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

    def __init__(self, position: int, size: int | None = None, *, is_list: bool = False, is_damage: bool = False) -> None:
        self.position, self.size, self.is_list, self.is_damage = position, size, is_list, is_damage
        self._printed = self._missing = self._replaced = 0
        self._line_end = 0
        self._is_closed = False
        self.first_line = b""

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
            self._ends[batch.position + batch.size] = batch.last_offset
        return is_other
