"""The width of text: that of the terminal, within limits."""

from __future__ import annotations

import shutil
from typing import Final

#: Largest width, and that of text in a pipe or a file.
WIDTH: Final = 132
#: Smallest width. A narrower terminal wraps lines itself.
NARROWEST: Final = 60


def columns(*, is_terminal: bool) -> int:
    """The width of text: that of the terminal, within limits; fixed if piped."""
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 40)).columns)) if is_terminal else WIDTH
