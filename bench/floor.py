"""The floor for reading a segment: mmap, a loop over the length fields, one numpy gather of the headers."""

from __future__ import annotations

import mmap
import struct

import numpy as np

LENGTH, LOG_OVERHEAD, HEADER_BYTES, BLOCK = struct.Struct(">i"), 12, 61, 65_536


def floor_of(path: str) -> int:
    """Batches of one segment, walked and gathered and nothing else."""
    count = position = 0
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        size, unpack = len(mapped), LENGTH.unpack_from
        while position < size:
            positions = []
            while position < size and len(positions) < BLOCK:
                positions.append(position)
                position += unpack(mapped, position + 8)[0] + LOG_OVERHEAD
            places = np.array(positions)
            window = np.frombuffer(
                mapped, dtype=np.uint8, count=positions[-1] + HEADER_BYTES - positions[0], offset=positions[0]
            )
            count += len(window[(places - positions[0])[:, None] + np.arange(HEADER_BYTES)])
            del window
    return count
