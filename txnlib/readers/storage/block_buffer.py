"""A file that can be sliced like bytes. Ranges are fetched in blocks when they are read.

Object stores charge a round trip per request, so at least one block is fetched at a time, and two if the file is read
from front to back. A fixed number of bytes is kept in memory, whatever the size of the file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, overload

#: Bytes per request: large enough that the transfer outweighs the round trip, small enough to skip large batches.
BLOCK_BYTES: Final = 4 << 20
#: Maximum number of bytes in memory per open file.
HELD_BYTES: Final = 32 << 20

#: (position, count) -> exactly that many bytes.
ReadAt = Callable[[int, int], bytes]


class BlockBuffer:
    """A file of `size` bytes that can be indexed and sliced like bytes. Raises what `read_at` raises."""

    __slots__ = ("_ahead", "_block_bytes", "_blocks", "_limit", "_newest", "_read_at", "size", "span")

    def __init__(
        self,
        read_at: ReadAt,
        size: int,
        block_bytes: int = BLOCK_BYTES,
        held_bytes: int = HELD_BYTES,
        *,
        ahead: int = 1,
    ) -> None:
        self.size = size
        #: Number of bytes that one pass may cover so that the next pass over them finds them in memory. This is half of
        #: the bytes in memory; the other half is for a batch that extends past the end, and for blocks fetched ahead.
        self.span = max(held_bytes // 2, 1)
        self._read_at = read_at
        #: Number of extra blocks to fetch when the file is read from front to back.
        self._ahead = ahead
        self._block_bytes = block_bytes
        self._limit = max(held_bytes // block_bytes, 2)
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        #: The block fetched last. If the next fetch is the following block, the file is read from front to back.
        self._newest = -2

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> bytes: ...
    def __getitem__(self, key: int | slice) -> int | bytes:
        if isinstance(key, slice):
            start, stop, step = key.indices(self.size)
            return self._slice(start, stop) if step == 1 else self._slice(0, self.size)[key]
        position = key + self.size if key < 0 else key
        if not 0 <= position < self.size:
            raise IndexError(key)
        return self._block(position // self._block_bytes)[position % self._block_bytes]

    def block_at(self, position: int) -> tuple[bytes, int]:
        """The block that contains the byte at a position, and the position of the block's first byte."""
        number = position // self._block_bytes
        return self._block(number), number * self._block_bytes

    def cut(self, size: int) -> None:
        """Reduces the size of the file. The bytes after it are not read again."""
        self.size = min(size, self.size)

    def forget(self, position: int) -> None:
        """Removes the blocks before a position from memory."""
        for number in [number for number in self._blocks if (number + 1) * self._block_bytes <= position]:
            del self._blocks[number]

    def _slice(self, start: int, stop: int) -> bytes:
        if start >= stop:
            return b""
        size = self._block_bytes
        first, last = start // size, (stop - 1) // size
        if first == last:
            return self._block(first)[start - first * size : stop - first * size]
        pieces = [self._block(number) for number in range(first, last + 1)]
        pieces[0] = pieces[0][start - first * size :]
        pieces[-1] = pieces[-1][: stop - last * size]
        return b"".join(pieces)

    def _block(self, number: int) -> bytes:
        held = self._blocks.get(number)
        if held is None:
            return self._fetch(number)
        self._blocks.move_to_end(number)
        return held

    def _fetch(self, number: int) -> bytes:
        """The block, fetched together with the next ones if the previous fetch was of the block before."""
        size = self._block_bytes
        count = 1 + self._ahead if number == self._newest + 1 and number + 1 not in self._blocks else 1
        start = number * size
        content = self._read_at(start, min(count * size, self.size - start))
        for at in range(0, len(content), size):
            self._blocks[number + at // size] = content[at : at + size]
            self._newest = number + at // size
        while len(self._blocks) > self._limit:
            self._blocks.popitem(last=False)
        return self._blocks[number]


#: The bytes of a file. Both slice to bytes; functions that need contiguous memory (`unpack_from`, `frombuffer`)
#: distinguish them in `header_columns`.
Buffer = bytes | BlockBuffer
