"""A line that is too long for memory: its beginning, its end and its length.

Only a payload makes a line that long, and only the size of a payload matters. So a reader may pass on such a line shortened, as
long as all code that measures or splits text uses the functions of this module.
"""

from __future__ import annotations


class LongLine(bytes):
    """The first bytes of a line, and its line end; `hidden` bytes between them are left out. `tail` is its actual end."""

    hidden: int
    tail: bytes


def shortened(head: bytes, size: int, tail: bytes) -> LongLine:
    """A line of `size` bytes, reduced to `head`. `tail`, its last bytes, includes the line end."""
    line_end = b"\r\n" if tail.endswith(b"\r\n") else b"\n" if tail.endswith(b"\n") else b""
    line = LongLine(head + line_end)
    line.hidden, line.tail = size - len(line), tail
    return line


def size_of(text: bytes) -> int:
    """The size of a line, or of the rest of one, in bytes, including hidden bytes."""
    return len(text) + text.hidden if type(text) is LongLine else len(text)


def behind(text: bytes, start: int) -> bytes:
    """The rest of a line, from a position in its first bytes."""
    if type(text) is not LongLine:
        return text[start:]
    rest = LongLine(text[start:])
    rest.hidden, rest.tail = text.hidden, text.tail
    return rest


def find_last(line: bytes, word: bytes) -> tuple[int, bytes] | None:
    """The last position of a word in a line, after its first byte, and the line from there on; None if there is none."""
    if type(line) is LongLine:
        hidden = size_of(line) - len(line.tail)
        index = line.tail.rfind(word, 0 if hidden else 1)
        if index >= 0:
            return hidden + index, line.tail[index:]
    index = line.rfind(word, 1)
    return (index, behind(line, index)) if index > 0 else None
