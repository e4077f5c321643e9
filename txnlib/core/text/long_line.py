"""Lines that are too long to be read, each an unreadable range. The lines around them are read as usual."""

from __future__ import annotations

from typing import Final, Self

#: Maximum size of a line in bytes, including its line end. Far above a coordinator record: on disk it may have a megabyte, and its
#: text repeats each topic for every partition.
LONGEST_LINE: Final = 1 << 24
#: Number of bytes kept of a longer line.
HEAD_BYTES: Final = 4_096


class LongLine(bytes):
    """Empty, so that no code takes it for a line of a tool. `size` and `head`: its size in bytes, and its beginning."""

    size: int
    head: bytes

    @classmethod
    def of(cls, beginning: bytes, size: int) -> Self:
        """A line of `size` bytes with this beginning."""
        line = cls()
        line.size, line.head = size, beginning[:HEAD_BYTES]
        return line


def size_of(line: bytes) -> int:
    """The size of a line in bytes."""
    return line.size if type(line) is LongLine else len(line)
