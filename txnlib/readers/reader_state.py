"""The state of a segment's reader between two batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class ReaderState:
    """The position, and the last offset and leader epoch of the batch before it.

    `last_offset` and `leader_epoch` are None before the first batch; `leader_epoch` is -1 if the batch has none. `epoch_before`:
    the leader epoch of the batch before that one, -1 if there is none; None if it is not known, as where a part of a file begins.
    """

    position: int
    last_offset: int | None
    leader_epoch: int | None = None
    epoch_before: int | None = field(default=None, compare=False)


AT_START: Final = ReaderState(0, None)
