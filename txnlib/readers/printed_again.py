"""The same dump twice in a text counts once.

People paste or append it. Only what is equal in every field is left out, so that two states of a file, or two files
of one path, remain visible.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from txnlib.core.text.dump_lines import DumpedBatch, DumpedFile, DumpedSnapshotEntry
from txnlib.core.text.lines import UnreadableReason
from txnlib.core.text.printed import Dumped, DumpedRecord, FileEnd, FileStart, Unreadable

#: Most batches, records and producers of one text to remember, 16 bytes each. Beyond them, what is printed again counts
#: twice in the tables, as it does in two texts.
_MOST_REMEMBERED: Final = 1 << 20
_BITS: Final = (1 << 63) - 1


Printed = DumpedBatch | DumpedRecord | DumpedSnapshotEntry


class Again(NamedTuple):
    """A batch, record or producer that the text has already printed for the same file."""

    value: Printed


class _Known:
    """What was printed of one kind, in the order of offsets or producer ids, as a dump has it."""

    def __init__(self) -> None:
        self.keys, self.prints = array("q"), array("q")

    def remember(self, key: int, fingerprint: int) -> int:
        """Remembers a key that is above all others; returns 1, or 0 if it is not."""
        if self.keys and key <= self.keys[-1]:
            return 0
        self.keys.append(key)
        self.prints.append(fingerprint)
        return 1

    def has(self, key: int, fingerprint: int) -> bool:
        index = bisect_left(self.keys, key)
        return index < len(self.keys) and self.keys[index] == key and self.prints[index] == fingerprint


_Kinds = dict[type, _Known]


class PrintedFiles:
    """The files of a text, by the path in their `Dumping` line. All without such a line count as one file."""

    def __init__(self) -> None:
        self._files: dict[DumpedFile, _Kinds] = {}
        self._current: _Kinds = {}
        self._remembered = 0
        self._begin = self._repeated = 0
        self._has_batches = False

    def mark(self, event: Dumped) -> Iterator[Dumped | Again]:
        """The event; as `Again` if the text has printed it before. The end of a log with repeated events comes after a
        note about them."""
        kind = type(event)
        if kind is FileStart:
            self._start(event)  # type: ignore[arg-type]
        elif kind is FileEnd and self._repeated and self._has_batches:
            said = f"{self._repeated:,} batches, records or producers"
            yield Unreadable(self._begin, 0, UnreadableReason.PRINTED_AGAIN, said)
        elif kind in (DumpedBatch, DumpedRecord, DumpedSnapshotEntry):
            yield self._marked(event)  # type: ignore[arg-type]
            return
        yield event

    def _start(self, start: FileStart) -> None:
        self._current = self._files.setdefault(start.file, {})
        self._begin, self._repeated, self._has_batches = start.position, 0, start.file.has_batches

    def _marked(self, value: Printed) -> Printed | Again:
        if isinstance(value, DumpedBatch):
            key, fingerprint = value.base_offset, hash(value)
        elif isinstance(value, DumpedRecord):
            key, fingerprint = value.offset, hash(repr(value))
        else:
            key, fingerprint = value.producer_id, hash(value)
        fingerprint &= _BITS
        known = self._current.setdefault(type(value), _Known())
        if known.has(key, fingerprint):
            self._repeated += 1
            return Again(value)
        if self._remembered < _MOST_REMEMBERED:
            self._remembered += known.remember(key, fingerprint)
        return value
