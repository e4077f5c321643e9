"""Names of partitions' folders. Source: docs/rules/formats.md#names-of-folders-and-files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from txnlib.core.kafka.broker_files import number
from txnlib.core.kafka.constants import MAX_INT32
from txnlib.core.text.dump_lines import is_ticket

PARTITION_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]+)")
#: Kafka is deleting `-delete` folders; a `-future` folder is a second copy in the making; a `-stray` one was left over
#: after a reassignment.
_MOVED_FOLDER: Final = re.compile(r"(?P<folder>.*)\.[0-9a-f]{32}-(?P<why>delete|stray|future)")
#: The folder of a text of Strimzi's log dump tool, below one that has the name of the topic.
_STRIMZI_FOLDER: Final = re.compile(r"kafka-[0-9]+-(?:disk-[0-9]+-)?(.+)")
#: In the name of a moved folder, Kafka cuts the topic so that it is no longer than this.
LONGEST_NAME: Final = 255


def current_name(folder: str) -> str | None:
    """The name that a folder has, or will have, or had before it was left over; None for one that Kafka is deleting."""
    moved = _MOVED_FOLDER.fullmatch(folder)
    if moved is None:
        return folder
    return None if moved["why"] == "delete" else moved["folder"]


def end_of_source(folder: str) -> str:
    """What the source of a copy in a folder ends with (`OUT_OF_USE`); empty if its broker uses it."""
    moved = _MOVED_FOLDER.fullmatch(folder)
    return "" if moved is None else f"/-{moved['why']}"


def topic_partition_of(folder: str) -> tuple[str | None, int | None]:
    """Topic and partition in the name of a partition folder, split at the last hyphen; (None, None) for any other
    name."""
    match = PARTITION_FOLDER.fullmatch(folder)
    partition = None if match is None else number(match["partition"].encode(), MAX_INT32)
    return (match["topic"], partition) if match is not None and partition is not None else (None, None)


def is_partition_folder(name: str) -> bool:
    """Whether a folder has the name of a partition's."""
    return topic_partition_of(name)[0] is not None


def partition_of_text(folder: PurePosixPath) -> tuple[str | None, int | None]:
    """The partition that the folder of a text names; (None, None) if it names a ticket, or nothing."""
    if is_ticket(folder.name):
        return None, None
    found = _STRIMZI_FOLDER.fullmatch(folder.name)
    of_strimzi = topic_partition_of(found[1]) if found else (None, None)
    return of_strimzi if of_strimzi[0] == folder.parent.name else topic_partition_of(folder.name)
