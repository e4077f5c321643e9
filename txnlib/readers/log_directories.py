"""What log directories say: the names of partitions' folders, and `meta.properties`, which names cluster and broker.

Source: docs/rules/formats.md#names-of-folders-and-files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from txnlib.core.coverage.captured_files import OUT_OF_USE, broker_of, is_broker_id
from txnlib.core.display import printable
from txnlib.core.kafka.constants import MAX_INT32
from txnlib.core.kafka.log_dir_files import number, read_meta_properties
from txnlib.core.text.dump_lines import is_ticket
from txnlib.errors import UsageError
from txnlib.readers.capture_notes import CaptureNotes
from txnlib.readers.storage import files
from txnlib.readers.storage.packed_text import READ_ERRORS

META_PROPERTIES: Final = "meta.properties"
#: Size limit, in bytes. Brokers write less than 200.
_MOST_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Identities:
    """What the files of a capture say of their clusters and brokers."""

    #: Id of a cluster -> the first file that says it.
    _clusters: dict[str, str] = field(default_factory=dict)
    #: Folder whose name is not the number of its broker -> the broker that its `meta.properties` names. The folder may
    #: have a host's name; or another broker's number, because a disk moved, or somebody copied it there.
    _owners: dict[str, str] = field(default_factory=dict)

    def read(self, path: str, folder: str) -> str | None:
        """Reads the `meta.properties` of a folder of the input. Returns why that was not possible; None if it was."""
        try:
            said = read_meta_properties(files.read_all(path, _MOST_BYTES))
        except READ_ERRORS as error:
            return f"CANNOT_OPEN: {getattr(error, 'strerror', None) or error}"
        self.note(path, said.cluster_id)
        named, owner = _named(folder), said.broker_id
        if named and owner is not None and not (is_broker_id(named) and int(named) == int(owner)):
            self._owners[folder] = owner
        return None

    def note(self, path: str, cluster_id: str | None) -> None:
        """Notes the cluster that a file names, if it names one."""
        if cluster_id is not None:
            self._clusters.setdefault(cluster_id, path)

    def cluster_id(self) -> str | None:
        """The id of the cluster of all copies; None if no file says it. Raises UsageError for several."""
        if len(self._clusters) > 1:
            named = "; ".join(f"{printable(cluster_id)}: {path}" for cluster_id, path in self._clusters.items())
            raise UsageError(f"the inputs belong to different clusters ({named}): audit one at a time")
        return next(iter(self._clusters), None)

    @property
    def misnamed(self) -> tuple[str, ...]:
        """What is wrong with the names of folders, in words."""
        says = f"by its {META_PROPERTIES}, it is of broker"
        return tuple(
            f"folder {name}: {says} {owner}" for name, owner in self._owners.items() if is_broker_id(_named(name))
        )

    def renamed(self, notes: CaptureNotes) -> CaptureNotes:
        """The notes of capture.json. Where they name a broker by its folder, they also name it by its number."""
        owners: dict[str, set[str]] = {}
        for folder, owner in self._owners.items():
            owners.setdefault(_named(folder) or "", set()).add(owner)
        numbers = {name: each.pop() for name, each in owners.items() if not is_broker_id(name) and len(each) == 1}
        instants = dict(notes.captured_at_ms)
        for noted, ms in notes.captured_at_ms.items():
            named, slash, folder = noted.partition("/")
            instants.setdefault(f"{numbers.get(named, named)}{slash}{folder}", ms)
        changed: CaptureNotes = notes.model_copy(update={"captured_at_ms": instants})
        return changed

    def source_of(self, source: str) -> str:
        """The source of a copy. If the name of its folder is not the number of its broker, the number stands in
        front."""
        how, _, folder = source.partition(":")
        used = folder
        for end in OUT_OF_USE:
            used = used.removesuffix(end)
        owner = self._owners.get(used.removesuffix("/first"))
        return source if owner is None else f"{how}:{owner}/{folder}"


def _named(folder: str) -> str | None:
    """The broker that a folder's path alone names; None if it names none."""
    return broker_of(f"raw:{folder}")


PARTITION_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]+)")
#: Kafka is deleting `-delete` folders; a `-future` folder is a second copy in the making; a `-stray` one was left over
#: after a reassignment.
_MOVED_FOLDER: Final = re.compile(r"(?P<folder>.*)\.[0-9a-f]{32}-(?P<why>delete|stray|future)")
#: The folder of a text of Strimzi's log dump tool, below one that has the name of the topic.
_STRIMZI_FOLDER: Final = re.compile(r"kafka-[0-9]+-(?:disk-[0-9]+-)?(.+)")
#: In the name of a moved folder, Kafka cuts the topic so that it is no longer than this.
LONGEST_NAME: Final = 255


def current_name(folder: str) -> str | None:
    """The name of a folder without Kafka's suffix for one in the making or left over; None for a folder that Kafka is
    deleting."""
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
