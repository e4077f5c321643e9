"""The state of a segment's reader between two batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ReaderState:
    """The position, and the last offset and leader epoch of the batch before it.

    `last_offset` and `leader_epoch` are None before the first batch; `leader_epoch` is -1 if the batch has none.
    """

    position: int
    last_offset: int | None
    leader_epoch: int | None = None


AT_START: Final = ReaderState(0, None)
