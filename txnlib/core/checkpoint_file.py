"""What do a broker's text checkpoints say? `…-offset-checkpoint` and `leader-epoch-checkpoint`, version 0.

Kafka: `CheckpointFile`; formats.md 3.12. Brokers replace the file as a whole, so a short or odd one is a bad copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

VERSION: Final = b"0"


class Checkpoint(NamedTuple):
    """The entries that are whole, and why they are not all (None: they are)."""

    entries: list[tuple[str, ...]]
    problem: str | None


def read_checkpoint(content: bytes, *, fields: int) -> Checkpoint:
    """The entries of a checkpoint file, as the words of each line; every word but the first of three is a number.

    A line without its end may have lost digits, so it is no entry. An empty file has no entries and no problem.
    """
    if not content:
        return Checkpoint([], None)
    version, *lines = content.split(b"\n")
    if version.strip() != VERSION or not lines:
        return Checkpoint([], f"version {version[:20]!r} of a checkpoint is not known")
    count, *lines = lines
    # What stands behind the last line end is a line that was cut, or nothing.
    entries = list(_entries(lines[:-1], fields)) if lines else []
    expected = int(count) if count.strip().isdigit() else None
    if expected != len(entries) or (lines and lines[-1].strip()):
        return Checkpoint(entries, f"{len(entries)} whole entries, and {count[:20]!r} are expected")
    return Checkpoint(entries, None)


def _entries(lines: list[bytes], fields: int) -> Iterator[tuple[str, ...]]:
    for line in lines:
        words = line.decode(errors="replace").split()
        if len(words) == fields and all(_is_number(word) for word in words[fields - 2 :]):
            yield tuple(words)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()
