"""Files of a capture and their kinds. Names and first bytes decide; no log is read here.

Raw files are recognised by Kafka's names (`<topic>-<partition>/<20 digits>.log`, also with `.gz`), text files by their
content, whatever their name: people dump segments into files of the same name. All other files are listed as unknown,
so that the audit can report what it did not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from txnlib.core.coverage.captured_files import is_broker_id, names_of
from txnlib.core.kafka.constants import (
    CLUSTER_METADATA_TOPIC,
    GROUP_METADATA_TOPIC,
    MAX_INT32,
    MAX_INT64,
    NO_OFFSET,
    TRANSACTION_STATE_TOPIC,
)
from txnlib.core.kafka.log_dir_files import number
from txnlib.errors import UnreadableInputError, UsageError
from txnlib.readers.capture_notes import CAPTURE_JSON, CaptureNotes, merge_notes, read_capture_notes
from txnlib.readers.fingerprints import ReadSegment
from txnlib.readers.log_directories import (
    LONGEST_NAME,
    META_PROPERTIES,
    PARTITION_FOLDER,
    Identities,
    current_name,
    end_of_source,
    is_partition_folder,
    partition_of_text,
    topic_partition_of,
)
from txnlib.readers.other_files import (
    ARCHIVE,
    LET_IT,
    MISSING_SEGMENT,
    MOST_NAMED,
    TOO_LARGE,
    what_it_looks_like,
    why_not_read,
)
from txnlib.readers.storage import files
from txnlib.readers.storage.local_files import MAY_NOT, FolderEntry, shown
from txnlib.readers.storage.packed_text import READ_ERRORS, without_compression
from txnlib.readers.text_events import find_console_record, head_of, looks_like_dump, partition_in_name

#: Topics whose batches are read whole, because their records are decoded.
READ_WHOLE: Final = frozenset({TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC, CLUSTER_METADATA_TOPIC})


class FileKind(StrEnum):
    SEGMENT = "segment"
    DUMP = "dump"
    #: Records of `__transaction_state`, as printed by a console consumer.
    CONSOLE = "console"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    TRANSACTION_INDEX = "transaction_index"
    CHECKPOINT = "checkpoint"
    #: A snapshot of `__cluster_metadata`; `offset` is the one before which it shows the state.
    METADATA_SNAPSHOT = "metadata_snapshot"
    #: Listed but never opened: not a regular file, a link out of the input, or a name that no broker uses.
    REFUSED = "refused"
    #: What brokers answered when the capture was taken over the wire.
    LIVE_PRODUCERS = "live_producers"
    LIVE_TRANSACTIONS = "live_transactions"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One file to read. `path` is a path or URI. `source` identifies the copy: raw or text, and its log directory."""

    path: str
    kind: FileKind
    source: str
    size: int
    topic: str | None = None
    partition: int | None = None
    #: The number in the file's name: base offset of a segment, offset of a snapshot; NO_OFFSET for a REFUSED file
    #: without a number.
    offset: int = 0
    #: The number of the part that this audit reads of the file; and what earlier audits have read of it, the longest
    #: first (`fingerprints.py`).
    part: int | None = None
    earlier: tuple[ReadSegment, ...] = ()
    #: For a REFUSED file, why it is not opened; for an UNKNOWN one, what it looks like, if its beginning shows that.
    problem: str = ""
    #: Whether the file was reached through a link: only then may it be one when it is opened. And whether the link
    #: leads out of the input: then no sample of its content is kept.
    is_linked: bool = False
    is_outside: bool = False

    @property
    def extent(self) -> int:
        """Number of bytes to read, if the file still begins with what an earlier audit has read."""
        return self.size - max((each.position for each in self.earlier if each.position <= self.size), default=0)


@dataclass(frozen=True, slots=True)
class Capture:
    """The files of a capture, before any of their content is read."""

    files: tuple[CaptureFile, ...]
    notes: CaptureNotes
    inputs: tuple[str, ...]
    #: Id of the cluster, by log directories or notes; None if none says it.
    cluster_id: str | None = None
    #: What is wrong with the names of folders of log directories, in words.
    misnamed: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Total size of all files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def size_to_read(self) -> int:
        """Total size, in bytes, of what no earlier audit has read, if none of the rest was written again."""
        return sum(file.extent for file in self.files)

    def of_kind(self, *kinds: FileKind) -> tuple[CaptureFile, ...]:
        """The files of any of these kinds."""
        return tuple(file for file in self.files if file.kind in kinds)


_SEGMENT: Final = re.compile(r"([0-9]{20})\.log(?:\.gz)?")
_SNAPSHOT: Final = re.compile(r"([0-9]{20})\.snapshot")
_TRANSACTION_INDEX: Final = re.compile(r"([0-9]{20})\.txnindex")
_METADATA_SNAPSHOT: Final = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")
#: Indexes of a segment. A broker makes them after it, and deletes them with it.
_INDEX: Final = re.compile(r"([0-9]{20})\.(?:index|timeindex|txnindex)")
_METADATA_FOLDER: Final = f"{CLUSTER_METADATA_TOPIC}-0"
_NUMBERED: Final = {
    _SEGMENT: FileKind.SEGMENT,
    _SNAPSHOT: FileKind.PRODUCER_SNAPSHOT,
    _TRANSACTION_INDEX: FileKind.TRANSACTION_INDEX,
    _METADATA_SNAPSHOT: FileKind.METADATA_SNAPSHOT,
}
#: A text in the folder of its partition is named like the segment.
_NAMED_LIKE_SEGMENT: Final = re.compile(r"[0-9]{20}\.log\b.*")
LEADER_EPOCH: Final = "leader_epoch"
TOPIC_ID: Final = "topic_id"
CLEANER_OFFSET: Final = "cleaner_offset"
#: The checkpoints of one partition, which are in its folder.
_OF_PARTITION: Final = ("leader-epoch-checkpoint", "partition.metadata")
CHECKPOINTS: Final = {
    "replication-offset-checkpoint": "high_watermark",
    "recovery-point-offset-checkpoint": "recovery_point",
    "log-start-offset-checkpoint": "log_start_offset",
    "cleaner-offset-checkpoint": CLEANER_OFFSET,
    "leader-epoch-checkpoint": LEADER_EPOCH,
    "partition.metadata": TOPIC_ID,
}
#: What brokers answered when `txn-audit capture` asked them.
LIVE_ANSWERS: Final = {
    "describe-producers.jsonl": FileKind.LIVE_PRODUCERS,
    "describe-transactions.jsonl": FileKind.LIVE_TRANSACTIONS,
}
#: Files that contain nothing an audit needs.
_SILENT_NAMES: Final = frozenset({CAPTURE_JSON, META_PROPERTIES, ".lock", ".kafka_cleanshutdown", "quorum-state"})
_SILENT_ENDINGS: Final = (
    ".index",
    ".timeindex",
    ".deleted",
    ".swap",
    ".cleaned",
    ".checkpoint",
    ".tmp",
    ".err",
    ".capture",  # state of scripts/capture.sh for its next call
    ".tierstate",  # what Confluent Server notes of tiered segments
)
_SEGMENT_NAME: Final = re.compile(r"([0-9]{20})\.log(?:\.(?:gz|bz2|xz|zst|lz4|zip|7z))?")
_ARCHIVES: Final = (".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz", ".zip", ".7z")
#: Number of files after which listing reports progress again: some seconds on a slow disk.
REPORTED_FILES: Final = 25_000


def list_capture(
    inputs: Iterable[str], *, follow_links: bool = False, say: Callable[[str], object] = lambda text: None
) -> Capture:
    """The files of all inputs, sorted by path, and the operator's notes. `say` is called with each line of progress.

    A file of the input that links also lead to is listed once: under its own name, or under the link's name if only
    that one is a Kafka name. Files outside the input are REFUSED, unless `follow_links`.

    Raises UnreadableInputError if an input does not exist or contains nothing to read, UsageError for inputs that this
    version cannot open or that belong to different clusters, ConfigError for a broken capture.json.
    """
    roots = [_root(given) for given in inputs]
    bases = {
        root: PurePosixPath(root).parent if len(roots) > 1 or is_file else PurePosixPath(root)
        for root, is_file in roots
    }
    found = _Found()
    notes: list[CaptureNotes] = []
    identities = Identities()
    #: Path of a segment that has an index -> its root.
    indexed: dict[str, str] = {}
    #: Folder of segments -> whether they are text.
    printed: dict[str, bool] = {}
    listed = files.list_files([root for root, _ in roots], follow_links=follow_links, enters_link=is_partition_folder)
    for count, entry in enumerate(listed, 1):
        if count % REPORTED_FILES == 0:
            say(f"listed {count:,} files")
        if found.has(entry):
            continue
        if entry.problem in (None, MAY_NOT) and PurePosixPath(entry.path).name == CAPTURE_JSON:
            notes.append(read_capture_notes(entry.path))
            identities.note(entry.path, notes[-1].cluster_id)
        if entry.problem is None and PurePosixPath(entry.path).name == META_PROPERTIES:
            folder = _source("raw", PurePosixPath(entry.path).parent, bases[entry.root]).partition(":")[2]
            entry = entry._replace(problem=identities.read(entry.path, folder))
        found.add(entry, _classify(entry, bases[entry.root], printed))
        folder, _, name = entry.path.rpartition("/")
        match = _INDEX.fullmatch(name)
        # A segment that is reached through a link may be listed under its own name.
        if match is not None and not entry.is_linked and is_partition_folder(PurePosixPath(folder).name):
            indexed[f"{folder}/{match[1]}.log"] = entry.root
    for path in sorted(indexed.keys() - {file.path for file in found.files}):
        lost = FolderEntry(indexed[path], path, 0)
        found.add(lost, _refused(lost, bases[lost.root], MISSING_SEGMENT))
    for path in [file.path for file in found.files if file.problem == MAY_NOT][:MOST_NAMED]:
        say(f"Permission denied: {path}")
    if not any(file.kind in (FileKind.SEGMENT, FileKind.DUMP, FileKind.CONSOLE) for file in found.files):
        reasons = ((file.path, file.problem or (None if file.kind is FileKind.UNKNOWN else "")) for file in found.files)
        raise UnreadableInputError(
            ", ".join(root for root, _ in roots),
            f"no Kafka log among its {len(found.files)} files{why_not_read(reasons)}",
            "Expected <topic>-<partition>/<20 digits>.log, or text printed by kafka-dump-log.sh or, of "
            f"{TRANSACTION_STATE_TOPIC}, by kafka-console-consumer.sh",
        )
    merged, cluster_id = identities.renamed(merge_notes(notes)), identities.cluster_id()
    check_brokers(found.files, merged)
    listed_files = (replace(file, source=identities.source_of(file.source)) for file in found.files)
    return Capture(
        tuple(sorted(listed_files, key=lambda file: file.path)),
        merged,
        tuple(root for root, _ in roots),
        cluster_id,
        identities.misnamed,
    )


class _Found:
    """The files found so far, each under one name."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], CaptureFile] = {}
        #: Identities of files whose name shows their kind; and identities of the other files -> their key among the
        #: files.
        self._named: set[tuple[int, int]] = set()
        self._unnamed: dict[tuple[int, int], tuple[str, str]] = {}

    @property
    def files(self) -> Collection[CaptureFile]:
        return self._files.values()

    def has(self, entry: FolderEntry) -> bool:
        """Whether this is a link to a file that is already listed under a better name."""
        return entry.is_linked and entry.identity in self._named

    def add(self, entry: FolderEntry, file: CaptureFile | None) -> None:
        if file is None:
            return
        key = (entry.root, entry.path)
        if entry.is_linked or entry.path == entry.root:
            file = replace(file, is_linked=True, is_outside=entry.is_outside)
        if entry.identity is not None:
            other = self._unnamed.get(entry.identity) if entry.is_linked else None
            if file.kind is not FileKind.UNKNOWN:
                self._named.add(entry.identity)
                if other is not None:
                    self._files.pop(other, None)
            elif other is not None:
                return
            else:
                self._unnamed[entry.identity] = key
        self._files[key] = file


def _root(given: str) -> tuple[str, bool]:
    """An input as an absolute path or URI, and whether it is a single file."""
    root = files.locate(given)
    try:
        return root, files.is_file(root)
    except PermissionError as error:
        raise UnreadableInputError(shown(given), "Permission denied", LET_IT) from error
    except UnreadableInputError as error:
        raise UnreadableInputError(shown(given), error.problem, error.remedy) from error


def _classify(entry: FolderEntry, base: PurePosixPath, printed: dict[str, bool]) -> CaptureFile | None:
    """The file with its kind; None for Kafka's own files that an audit does not need.

    `printed`: folder of segments -> whether they are text. Filled by the first segment of each.
    """
    path, size = entry.path, entry.size
    name, folder = PurePosixPath(path).name, PurePosixPath(path).parent
    is_metadata_snapshot = folder.name == _METADATA_FOLDER and _METADATA_SNAPSHOT.fullmatch(name) is not None
    is_silent = name in _SILENT_NAMES or (name.endswith(_SILENT_ENDINGS) and not is_metadata_snapshot)
    # A folder that may not be listed has whatever in it.
    is_needed = not is_silent or name == META_PROPERTIES or entry.identity is None
    if entry.problem is not None and (is_needed or entry.problem != MAY_NOT):
        return _refused(entry, base, entry.problem)
    if is_silent:
        return None
    if name.endswith(_ARCHIVES):
        return _refused(entry, base, ARCHIVE)
    if name in LIVE_ANSWERS:
        return CaptureFile(path, LIVE_ANSWERS[name], _source("raw", folder, base), size)
    if name in CHECKPOINTS:
        return _checkpoint(entry, base)
    for pattern, kind in _NUMBERED.items():
        if match := pattern.fullmatch(name):
            return _numbered(entry, base, printed, kind, int(match[1]))
    return _of_text(entry, base)


def _numbered(
    entry: FolderEntry, base: PurePosixPath, printed: dict[str, bool], kind: FileKind, number: int
) -> CaptureFile | None:
    """A file with the name of one of a partition's; None if Kafka is deleting its folder."""
    folder = PurePosixPath(entry.path).parent
    named = current_name(folder.name)
    if named is None:
        return None
    if named != folder.name and len(folder.name) >= LONGEST_NAME:
        return _refused(entry, base, "NAME_MAY_BE_CUT: the name of its folder is too long to tell its topic")
    if kind is FileKind.SEGMENT and (other := _other_than_segment(entry, base, printed)) is not None:
        return other
    topic, partition = topic_partition_of(named)
    if topic is not None and number > MAX_INT64:
        return _refused(entry, base, f"NAME_OUT_OF_RANGE: {number} is above those that Kafka has (int64)")
    if topic is not None:
        return CaptureFile(entry.path, kind, _source_of_copy(folder, base), entry.size, topic, partition, number)
    if PARTITION_FOLDER.fullmatch(named):
        problem = "NAME_OUT_OF_RANGE: the number of its folder is above those that Kafka has (int32)"
        return _refused(entry, base, problem)
    return _of_text(entry, base)


def _other_than_segment(entry: FolderEntry, base: PurePosixPath, printed: dict[str, bool]) -> CaptureFile | None:
    """A file with the name of a segment that is text, or cannot be a segment; None if it may be one."""
    if _is_printed(entry, str(PurePosixPath(entry.path).parent), printed):
        return _of_text(entry, base)
    return _refused(entry, base, TOO_LARGE) if entry.size > MAX_INT32 else None


def _is_printed(entry: FolderEntry, folder: str, printed: dict[str, bool]) -> bool:
    """Whether the segments of a folder are text, by the first of them. In a store, each file costs a request."""
    if folder not in printed and entry.size:
        try:
            is_binary = files.read_range(entry.path, 0, 1) == b"\0"
        except READ_ERRORS:
            return False
        printed[folder] = not is_binary and _kind_of_text(head_of(entry.path)) is not None
    return printed.get(folder, False)


def _of_text(entry: FolderEntry, base: PurePosixPath) -> CaptureFile:
    """A file that may contain what Kafka's tools print."""
    path, size, head = entry.path, entry.size, head_of(entry.path)
    name, folder = PurePosixPath(path).name, PurePosixPath(path).parent
    match _kind_of_text(head):
        case FileKind.DUMP:
            topic, partition = topic_partition_of(without_compression(name).rsplit(".", 1)[0])
            if topic is None and _NAMED_LIKE_SEGMENT.fullmatch(name):
                topic, partition = partition_of_text(folder)
                folder = folder if topic is None else folder.parent
            return CaptureFile(path, FileKind.DUMP, _source("text", folder, base), size, topic, partition)
        case FileKind.CONSOLE:
            where = (_source("console", folder, base), size, TRANSACTION_STATE_TOPIC, partition_in_name(name))
            return CaptureFile(path, FileKind.CONSOLE, *where)
    problem = what_it_looks_like(path, size)
    if problem and _SEGMENT_NAME.fullmatch(name) and is_partition_folder(folder.name):
        return _refused(entry, base, problem)
    return CaptureFile(path, FileKind.UNKNOWN, _source("raw", folder, base), size, problem=problem)


def _checkpoint(entry: FolderEntry, base: PurePosixPath) -> CaptureFile | None:
    """A file of CHECKPOINTS; None for the topic id of a folder that Kafka is deleting."""
    path = PurePosixPath(entry.path)
    name, folder = path.name, path.parent
    named = current_name(folder.name)
    # A broker that crashed may leave it empty.
    if name == "partition.metadata" and (not entry.size or named is None):
        return None
    if name not in _OF_PARTITION or named is None or not PARTITION_FOLDER.fullmatch(named):
        return CaptureFile(entry.path, FileKind.CHECKPOINT, _source("raw", folder, base), entry.size)
    topic, partition = topic_partition_of(named)
    return CaptureFile(entry.path, FileKind.CHECKPOINT, _source_of_copy(folder, base), entry.size, topic, partition)


def _kind_of_text(head: bytes) -> FileKind | None:
    """Dump or console, whichever is recognised first: payloads and transactional ids may imitate the other form."""
    console = find_console_record(head)
    if console is not None and not looks_like_dump(head[:console]):
        return FileKind.CONSOLE
    return FileKind.DUMP if looks_like_dump(head) else None


def _refused(entry: FolderEntry, base: PurePosixPath, problem: str) -> CaptureFile:
    """A file that is listed but not read. A segment, or a whole partition folder, gets the partition in its name."""
    path = PurePosixPath(entry.path)
    match = _SEGMENT_NAME.fullmatch(path.name)
    folder = path if match is None else path.parent
    topic, partition = topic_partition_of(folder.name)
    base_offset = None if match is None else number(match[1].encode(), MAX_INT64)
    offset = NO_OFFSET if base_offset is None else base_offset
    source = _source("raw", folder.parent if topic is not None else path.parent, base)
    return CaptureFile(entry.path, FileKind.REFUSED, source, entry.size, topic, partition, offset, problem=problem)


def _source_of_copy(folder: PurePosixPath, base: PurePosixPath) -> str:
    """The source of a copy in a partition's folder, by its log directory; one that its broker does not use has its
    own."""
    return _source("raw", folder.parent, base) + end_of_source(folder.name)


@lru_cache
def _source(how: str, folder: PurePosixPath, base: PurePosixPath) -> str:
    relative = PurePosixPath(os.path.relpath(folder, base))
    return f"{how}:{relative}"


def check_brokers(captured: Iterable[CaptureFile], notes: CaptureNotes) -> None:
    """Raises UsageError for a path with two numbers, if capture.json says that the first of them is not the broker."""
    for file in captured:
        numbers = [name for name in names_of(file.source) if is_broker_id(name)]
        noted = notes.partitions.get(f"{file.topic}-{file.partition}")
        replicas = set() if noted is None else {str(replica) for replica in noted.replicas or ()}
        if len(numbers) > 1 and replicas and numbers[0] not in replicas and replicas & set(numbers[1:]):
            other = next(number for number in numbers[1:] if number in replicas)
            raise UsageError(
                f"{file.path}: the first number in its path, {numbers[0]}, would be its broker, but by capture.json"
                f" broker {other} has {file.topic}-{file.partition}: copy each broker into a folder of its number, such"
                f" as {other}/"
            )
