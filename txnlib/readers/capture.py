"""Which files of a capture are what? Names and heads of files to a work list; nothing here reads a log.

Raw files are known by Kafka's names (`<topic>-<partition>/<20 digits>.log`), text by its content, whatever it is called.
What is neither is listed as such, so that the audit can say what it did not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from txnlib.core.console_text import find_console_record
from txnlib.core.sentinels import TRANSACTION_STATE_TOPIC
from txnlib.errors import UnreadableInputError, UsageError
from txnlib.readers import files
from txnlib.readers.capture_notes import CAPTURE_JSON, CaptureNotes, read_capture_notes
from txnlib.readers.console import partition_in_name
from txnlib.readers.dump import looks_like_dump
from txnlib.readers.parts import Part
from txnlib.readers.stores import may_pass
from txnlib.readers.text_files import READ_ERRORS, read_text_head, without_compression


class FileKind(StrEnum):
    SEGMENT = "segment"
    #: A segment that a producer snapshot stands for; see `start.py`.
    SKIPPED_SEGMENT = "skipped"
    DUMP = "dump"
    #: What a console consumer printed of `__transaction_state`.
    CONSOLE = "console"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    TRANSACTION_INDEX = "transaction_index"
    CHECKPOINT = "checkpoint"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One file to read, by its path or uri. `source` is the copy it belongs to: log directory under the input, raw or text."""

    path: str
    kind: FileKind
    source: str
    size: int
    topic: str | None = None
    partition: int | None = None
    #: The number in the file's name: base offset of a segment, offset of a snapshot.
    offset: int = 0
    #: Of a large file that several tasks read (`splits.py`); None: the whole file.
    part: Part | None = None

    @property
    def extent(self) -> int:
        """Bytes to be read: those of the part, if it is one."""
        if self.part is None:
            return self.size
        return (self.size if self.part.stop is None else self.part.stop) - self.part.start


@dataclass(frozen=True, slots=True)
class Continued:
    """A segment that an earlier run has read up to a position; last offset and leader epoch before it. See `landmarks.py`."""

    topic: str
    partition: int
    source: str
    segment_base_offset: int
    path: str
    position: int
    last_offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture as it lies there, before anything in it was read."""

    files: tuple[CaptureFile, ...]
    notes: CaptureNotes
    inputs: tuple[str, ...]
    #: path -> its parts, of large files that can be read in parts.
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    #: Segments of which only what is new is read; their part is among `parts`.
    continued: tuple[Continued, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def size_to_read(self) -> int:
        """The same, less what an earlier run has read."""
        return self.size - sum(segment.position for segment in self.continued)

    def of_kind(self, *kinds: FileKind) -> tuple[CaptureFile, ...]:
        return tuple(file for file in self.files if file.kind in kinds)


_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_SNAPSHOT: Final = re.compile(r"(\d{20})\.snapshot")
_TRANSACTION_INDEX: Final = re.compile(r"(\d{20})\.txnindex")
_NUMBERED: Final = {
    _SEGMENT: FileKind.SEGMENT,
    _SNAPSHOT: FileKind.PRODUCER_SNAPSHOT,
    _TRANSACTION_INDEX: FileKind.TRANSACTION_INDEX,
}
#: `-delete` and `-stray` folders are on their way out, `-future` is a second copy being made (formats.md 3.11).
_PARTITION_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_MOVED_FOLDER: Final = re.compile(r".*\.[0-9a-f]{32}-(delete|stray|future)")
LEADER_EPOCH: Final = "leader_epoch"
CHECKPOINTS: Final = {
    "replication-offset-checkpoint": "high_watermark",
    "recovery-point-offset-checkpoint": "recovery_point",
    "log-start-offset-checkpoint": "log_start_offset",
    "cleaner-offset-checkpoint": "cleaner_offset",
    "leader-epoch-checkpoint": LEADER_EPOCH,
}
#: Kafka's own files that tell an audit nothing.
_SILENT_NAMES: Final = frozenset({CAPTURE_JSON, "meta.properties", "partition.metadata", ".lock", ".kafka_cleanshutdown"})
_SILENT_ENDINGS: Final = (
    ".index",
    ".timeindex",
    ".deleted",
    ".swap",
    ".cleaned",
    ".checkpoint",
    ".tmp",
    ".err",
    ".capture",  # what scripts/capture.sh notes for its next call
)
_HEAD_BYTES: Final = 65_536


def list_capture(inputs: Iterable[str]) -> Capture:
    """The files of all inputs, sorted by path, and the operator's notes.

    Raises UnreadableInputError if an input does not exist or holds nothing to read, UsageError for inputs that this
    version cannot open or that belong to different clusters, ConfigError for a broken capture.json.
    """
    roots = [_root(given) for given in inputs]
    found: list[CaptureFile] = []
    notes: list[CaptureNotes] = []
    for root, is_file in roots:
        base = PurePosixPath(root).parent if len(roots) > 1 or is_file else PurePosixPath(root)
        for path, size in files.list_files(root):
            if PurePosixPath(path).name == CAPTURE_JSON:
                notes.append(read_capture_notes(path))
            file = _classify(path, size, base)
            if file is not None:
                found.append(file)
    if not any(file.kind in (FileKind.SEGMENT, FileKind.DUMP, FileKind.CONSOLE) for file in found):
        raise UnreadableInputError(
            ", ".join(root for root, _ in roots),
            f"no Kafka log among its {len(found)} files",
            "Expected <topic>-<partition>/<20 digits>.log, or text printed by kafka-dump-log.sh or, of "
            f"{TRANSACTION_STATE_TOPIC}, by kafka-console-consumer.sh",
        )
    return Capture(tuple(sorted(found, key=lambda file: file.path)), _merge(notes), tuple(root for root, _ in roots))


def _root(given: str) -> tuple[str, bool]:
    """An input as an absolute path or a uri, and whether it is one file."""
    root = files.locate(given)
    try:
        return root, files.is_file(root)
    except UnreadableInputError as error:
        raise UnreadableInputError(given, error.problem, error.remedy) from error


def _classify(path: str, size: int, base: PurePosixPath) -> CaptureFile | None:
    """What a file is; None for Kafka's own files that tell nothing."""
    name = PurePosixPath(path).name
    if name in _SILENT_NAMES or name.endswith(_SILENT_ENDINGS):
        return None
    folder = PurePosixPath(path).parent
    if name in CHECKPOINTS:
        log_dir = folder.parent if _PARTITION_FOLDER.fullmatch(folder.name) and name == "leader-epoch-checkpoint" else folder
        topic, partition = topic_partition_of(folder.name) if log_dir is not folder else (None, None)
        return CaptureFile(path, FileKind.CHECKPOINT, _source("raw", log_dir, base), size, topic, partition)
    for pattern, kind in _NUMBERED.items():
        match = pattern.fullmatch(name)
        if match and _MOVED_FOLDER.fullmatch(folder.name):
            return None
        topic, partition = topic_partition_of(folder.name)
        if match and topic is not None:
            source = _source("raw", folder.parent, base)
            return CaptureFile(path, kind, source, size, topic, partition, int(match[1]))
    kind_of_text = _kind_of_text(_head(path))
    if kind_of_text is FileKind.DUMP:
        topic, partition = topic_partition_of(without_compression(name).rsplit(".", 1)[0])
        return CaptureFile(path, FileKind.DUMP, _source("text", folder, base), size, topic, partition)
    if kind_of_text is FileKind.CONSOLE:
        partition = partition_in_name(name)
        return CaptureFile(path, FileKind.CONSOLE, _source("console", folder, base), size, TRANSACTION_STATE_TOPIC, partition)
    return CaptureFile(path, FileKind.UNKNOWN, _source("raw", folder, base), size)


def _kind_of_text(head: bytes) -> FileKind | None:
    """Dump or console, whichever comes first: payloads and transactional ids may imitate the other."""
    console = find_console_record(head)
    if console is not None and not looks_like_dump(head[:console]):
        return FileKind.CONSOLE
    return FileKind.DUMP if looks_like_dump(head) else None


def topic_partition_of(folder: str) -> tuple[str | None, int | None]:
    """Topic and partition in the name of a partition folder, split at the last hyphen."""
    match = _PARTITION_FOLDER.fullmatch(folder)
    return (match["topic"], int(match["partition"])) if match else (None, None)


def _source(how: str, folder: PurePosixPath, base: PurePosixPath) -> str:
    relative = PurePosixPath(os.path.relpath(folder, base))
    return f"{how}:{relative}"


def broker_of(source: str) -> str | None:
    """The broker a source came from: the last number in its folder, else the folder's own name."""
    parts = [part for part in source.partition(":")[2].replace(":", "/").split("/") if part not in (".", "..", "")]
    numbers = [part for part in parts if part.isdigit()]
    return numbers[-1] if numbers else (parts[-1] if parts else None)


def _head(path: str) -> bytes:
    """The first bytes of a file, unpacked; none of one that cannot be read, which whoever reads it whole will say."""
    try:
        return read_text_head(path, _HEAD_BYTES)
    except READ_ERRORS as error:
        if isinstance(error, OSError) and may_pass(path, error):
            raise UnreadableInputError(path, f"cannot be opened: {error}", "Run the audit again") from error
        return b""


def _merge(notes: list[CaptureNotes]) -> CaptureNotes:
    """One set of notes; inputs of one cluster may carry one each."""
    clusters = {note.cluster for note in notes if note.cluster is not None}
    if len(clusters) > 1:
        raise UsageError(f"the inputs belong to different clusters ({', '.join(sorted(clusters))}): audit one at a time")
    if not notes:
        return CaptureNotes()
    merged: dict[str, object] = {}
    for note in notes:
        for name, value in note.model_dump(exclude_unset=True).items():
            known = merged.get(name)
            merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return CaptureNotes.model_validate(merged)
