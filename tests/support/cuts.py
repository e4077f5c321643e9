"""Places at which a text is cut."""

import re

import pytest

#: In CI, some places of a text; all of them are slow.
STRIDES = pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])


def cuts(text: bytes, stride: int) -> list[int]:
    """Places at a distance, and all around the ends of lines."""
    near = {match.end() + distance for match in re.finditer(rb"\n", text) for distance in range(-3, 4)}
    return sorted(cut for cut in near | {*range(0, len(text), stride)} if cut < len(text))
