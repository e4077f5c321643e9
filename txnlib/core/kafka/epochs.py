"""The order of two epochs, either of which may be unknown."""

from __future__ import annotations


def is_ahead(epoch: int | None, of: int | None) -> bool:
    """Whether the first epoch is known to be the higher one."""
    return epoch is not None and of is not None and epoch > of
