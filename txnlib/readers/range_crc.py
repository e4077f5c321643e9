"""CRCs of many overlapping ranges, in one pass.

After damage, any bytes may look like a batch, of any length. So the CRC of a range is computed from the CRCs of two prefixes of the
file: the part before the range is cancelled by algebra (zlib: `crc32_combine`). Each byte is read once, plus a few more times where
ranges begin and end.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import google_crc32c

from txnlib.readers.storage.block_buffer import Buffer

#: (CRC so far, more bytes) -> CRC.
Extend = Callable[[int, bytes], int]

#: The polynomials without their highest term, in reversed bit order, as both CRCs use them.
_CRC32C: Final = 0x82F63B78
_CRC32: Final = 0xEDB88320
#: Number of bytes between two prefixes whose CRC is kept, and number of bytes to read at once.
_CELL: Final = 1_024
_READ_BYTES: Final = 1 << 20


def crc32c(buffer: Buffer, start: int, end: int) -> int:
    """The CRC-32C of [start, end), with at most a MiB in memory."""
    return _over(google_crc32c.extend, buffer, start, end)


def crc32(buffer: Buffer, start: int, end: int) -> int:
    """The CRC-32 of [start, end), as message sets before version 2 have it."""
    return _over(_extend_crc32, buffer, start, end)


def _extend_crc32(crc: int, more: bytes) -> int:
    return zlib.crc32(more, crc)


def _over(extend: Extend, buffer: Buffer, start: int, end: int, crc: int = 0) -> int:
    for at in range(start, end, _READ_BYTES):
        crc = extend(crc, buffer[at : min(at + _READ_BYTES, end)])
    return crc


class RangeCrcs:
    """The CRCs of any ranges of a file, from `origin` on."""

    def __init__(self, buffer: Buffer, origin: int, *, is_crc32c: bool) -> None:
        self._buffer, self._origin = buffer, origin
        self._extend: Extend = google_crc32c.extend if is_crc32c else _extend_crc32
        self._polynomial = _CRC32C if is_crc32c else _CRC32
        #: CRCs of the bytes from the origin to each cell.
        self._beginnings = [0]

    def crc(self, start: int, end: int) -> int:
        """The CRC of [start, end)."""
        return self._up_to(end) ^ _followed_by_zeros(self._polynomial, self._up_to(start), end - start)

    def _up_to(self, position: int) -> int:
        cell = (position - self._origin) // _CELL
        while len(self._beginnings) <= cell:
            at = self._origin + (len(self._beginnings) - 1) * _CELL
            piece = self._buffer[at : at + min(_READ_BYTES, (cell + 1 - len(self._beginnings)) * _CELL)]
            for begin in range(0, len(piece), _CELL):
                self._beginnings.append(self._extend(self._beginnings[-1], piece[begin : begin + _CELL]))
        return self._extend(self._beginnings[cell], self._buffer[self._origin + cell * _CELL : position])


def _followed_by_zeros(polynomial: int, crc: int, count: int) -> int:
    """The CRC register after `count` zero bytes: what a prefix contributes to the CRC of a longer prefix."""
    for tables in _zeros(polynomial):
        if not count:
            break
        if count & 1:
            lowest, low, high, highest = tables
            crc = lowest[crc & 0xFF] ^ low[crc >> 8 & 0xFF] ^ high[crc >> 16 & 0xFF] ^ highest[crc >> 24]
        count >>= 1
    return crc


@lru_cache(maxsize=2)
def _zeros(polynomial: int) -> list[list[list[int]]]:
    """For 1, 2, 4, … zero bytes, four tables: the effect of these zeros on each byte of a CRC."""
    one_bit = [polynomial, *(1 << bit for bit in range(31))]
    operator = _squared(_squared(_squared(one_bit)))
    tables = []
    for _ in range(40):
        tables.append([_table(operator[8 * byte : 8 * byte + 8]) for byte in range(4)])
        operator = _squared(operator)
    return tables


def _table(images: list[int]) -> list[int]:
    """The image of each value of a byte, from the images of its eight bits."""
    table = [0] * 256
    for value in range(1, 256):
        table[value] = table[value & (value - 1)] ^ images[(value & -value).bit_length() - 1]
    return table


def _squared(operator: list[int]) -> list[int]:
    """A linear map of 32 bits, applied twice."""
    return [_applied(operator, image) for image in operator]


def _applied(operator: list[int], value: int) -> int:
    result = 0
    for image in operator:
        if value & 1:
            result ^= image
        value >>= 1
    return result
