"""Output files that are either complete or absent. Their folder is checked before any work begins."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from txnlib.errors import UsageError


def check_whole_file(path: str) -> None:
    """Raises UsageError unless a file can be written at this path. Leaves nothing behind."""
    if "://" in path:
        raise UsageError(f"{path}: a report is written to a local file, not to a store")
    file = Path(path).resolve()
    if file.is_dir():
        raise UsageError(f"{path}: is a folder; name a file")
    if file.exists() and not file.is_file():
        raise UsageError(f"{path}: is not a regular file")
    folder = next(parent for parent in file.parents if parent.exists())
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def write_whole_file(path: str, text: str) -> None:
    """Writes the file atomically: a reader sees either the old content or the new, never a part."""
    file = Path(path).resolve()  # writes to the target of a link
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
