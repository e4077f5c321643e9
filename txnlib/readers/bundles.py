"""The files of a capture in bundles, each for one task or process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.readers.capture import READ_WHOLE, CaptureFile, FileKind

#: Number of bytes of small files per task: enough to be worth a task, and few enough to spread.
TASK_BYTES: Final = 32 << 20
#: In a large capture, a task reads more, because every Python task has a startup cost.
MOST_TASK_BYTES: Final = 256 << 20
#: A segment whose records are not decoded costs at most 1/4 of the time per byte of any other file.
HEADERS_ONLY: Final = 4
#: Number of small files per task, because opening each file takes time. In a large capture, a task reads more of them,
#: too.
TASK_FILES: Final = 256
MOST_TASK_FILES: Final = 2_048


def bundle(files: Sequence[CaptureFile], tasks: int) -> list[list[CaptureFile]]:
    """The files in lists of about equal work, in order: `tasks` lists, or fewer if these would be too small.

    If there are several lists, no list mixes topics that every audit reads in full with others.
    """
    works = [
        file.extent if file.kind is not FileKind.SEGMENT or file.topic in READ_WHOLE else file.extent // HEADERS_ONLY
        for file in files
    ]
    whole = max(sum(works), 1)
    count = -(-whole // min(max(TASK_BYTES, whole // tasks), MOST_TASK_BYTES))
    most_files = min(max(TASK_FILES, len(files) // tasks), MOST_TASK_FILES)
    bundles: list[list[CaptureFile]] = []
    done, last = 0, (-1, False)
    for file, work in zip(files, works, strict=True):
        kind = ((2 * done + work) * count // (2 * whole), count > 1 and file.topic in READ_WHOLE)
        if kind != last or len(bundles[-1]) == most_files:
            bundles.append([])
        bundles[-1].append(file)
        done, last = done + work, kind
    return bundles
