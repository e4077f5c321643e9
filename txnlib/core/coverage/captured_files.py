"""What the files of each copy show: its source, its checkpoints, and its segments. Kafka: `CheckpointFile`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from txnlib.core.copies import UNOPENED, highest, is_above, is_harmful, lowest
from txnlib.core.coverage.unread import why_not_opened
from txnlib.core.instants import clock_ms

# ---- The names in the source of a copy: `raw:1/first` was read from segments in the folder `1/first` of the input


Place = tuple[str, int]
CopyKey = tuple[str, int, str]

#: How the source of a copy ends that its broker does not use (`raw:1/-future`) -> what such a copy is.
OUT_OF_USE: Final[Mapping[str, str]] = {
    "/-future": "a second copy in the making, on another disk",
    "/-stray": "left over after a reassignment",
}
_NUMBER: Final = re.compile("[0-9]+")
_NO_NAMES: Final = (".", "..", "", *(end.removeprefix("/") for end in OUT_OF_USE))


def names_of(source: str) -> list[str]:
    """The names of folders in a source."""
    return [name for name in source.partition(":")[2].replace(":", "/").split("/") if name not in _NO_NAMES]


def broker_of(source: str) -> str | None:
    """The broker that a source was copied from; None if its folder has no name.

    The first number in the folder's path, because `1/2` is the second log directory of broker 1; else the last name in
    it.
    """
    names = names_of(source)
    return next(filter(is_broker_id, names), names[-1] if names else None)


def is_broker_id(name: str | None) -> bool:
    """Whether a name is the id of a broker, and not a name that somebody gave to a folder."""
    return name is not None and _NUMBER.fullmatch(name) is not None


def out_of_use(source: str) -> str | None:
    """Why a broker does not use a copy, in words; None if it does. A copy in the making lags behind the one in use, on
    another disk.

    Kafka: `ReplicaAlterLogDirsThread`, `LogManager.handleStrayReplicas`.
    """
    return next((why for end, why in OUT_OF_USE.items() if source.endswith(end)), None)


def place_in(source: str) -> str:
    """The last two names in a source: `1/first` for the coordinators that were copied from broker 1 before the
    partitions."""
    return "/".join(source.replace(":", "/").split("/")[-2:])


# ---- Checkpoint files of each log directory


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """A row of `checkpoints`."""

    topic: str | None
    partition: int | None
    source: str
    name: str
    value: int | None
    start_offset: int | None
    topic_id: str | None


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints about one copy. If files differ, the highest value counts."""

    high_watermark: int | None = None
    log_start_offset: int | None = None
    recovery_point: int | None = None
    #: Up to where the log cleaner has compacted the copy; 0 if its file does not list it.
    cleaner_offset: int | None = None
    topic_id: str | None = None
    #: Leader epochs, each with its first offset; None if the file does not show it.
    leader_epochs: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def highest_epoch(self) -> int | None:
        return highest(epoch for epoch, _ in self.leader_epochs)

    def add(self, entry: CheckpointEntry) -> None:
        if entry.name in ("high_watermark", "log_start_offset", "recovery_point", "cleaner_offset"):
            setattr(self, entry.name, highest((getattr(self, entry.name), entry.value)))
        elif entry.name == "topic_id" and entry.topic_id is not None:
            self.topic_id = max(self.topic_id or "", entry.topic_id)
        elif entry.name == "leader_epoch" and entry.value is not None:
            self.leader_epochs.append((entry.value, entry.start_offset))


def of_copies(checkpoints: Iterable[CheckpointEntry]) -> dict[CopyKey, Checkpoints]:
    """The checkpoints about each copy. A broker also notes partitions whose segments were not captured."""
    found: dict[CopyKey, Checkpoints] = defaultdict(Checkpoints)
    with_cleaner = set()
    for entry in checkpoints:
        if entry.topic is not None and entry.partition is not None:
            found[entry.topic, entry.partition, entry.source].add(entry)
        if entry.name == "cleaner_offset":
            with_cleaner.add(entry.source)
    for (_, _, source), noted in found.items():
        if noted.cleaner_offset is None and source in with_cleaner:
            noted.cleaner_offset = 0
    return dict(found)


# ---- Segments


#: Kinds of the rows of `segments` for segments: raw files and dumps.
RAW: Final = "raw"
TEXT: Final = "text"
#: Kind of the rows of `segments` for records of one coordinator partition that a console consumer printed.
PRINTED: Final = "printed"
#: How the reasons begin for the end of a copy whose log or dump was still being written, or cannot be read further.
CUT_REASONS: Final = ("INCOMPLETE_BATCH", "CUT_LINE", "SIZE_MISMATCH", "HEADER_KEYS", "FILE_NOT_READ")
#: Reason of text between the lines of a tool: nothing is unreadable there.
PROSE: Final = "NOT_DUMP_TEXT"


@dataclass(frozen=True, slots=True)
class UnreadableBytes:
    """A range in a file that could not be read."""

    position: int
    length: int
    reason: str
    sample: str | None
    next_offset: int | None

    @property
    def is_cut(self) -> bool:
        return self.reason.startswith(CUT_REASONS)

    @property
    def why_not_opened(self) -> str | None:
        """Why the file was not opened, in words; None if it was."""
        return why_not_opened(self.reason)


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A row of `segments`."""

    topic: str | None
    partition: int | None
    source: str
    path: str
    kind: str
    segment_base_offset: int | None
    first_offset: int | None
    end_offset: int | None
    last_gap_offset: int | None
    bytes: int | None
    batches: int | None
    tail: str | None
    is_decoded: bool | None
    newest_broker_ms: int | None
    unreadable: tuple[UnreadableBytes, ...] | None

    @property
    def copy(self) -> CopyKey | None:
        """The copy that the file belongs to; None if it is in no partition's folder."""
        return None if self.topic is None or self.partition is None else (self.topic, self.partition, self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What was read of a copy. An offset or number is None if no file shows it."""

    first_offset: int | None
    end_offset: int | None
    #: Base offset of the first segment.
    read_from_offset: int | None
    bytes: int | None
    batches: int | None
    unreadable_bytes: int
    #: Number of unreadable ranges that may have contained something. The end of a log that was still being written does
    #: not count.
    harm: int
    #: Why files of it were not opened, in words, one for each. They are among `harm`, and are no damage.
    unopened: tuple[str, ...] = ()
    damaged_offset: int | None
    #: Highest base offset that does not follow the batch before it: within a segment, and at the beginning of one.
    last_gap_offset: int | None
    boundary_gap: int | None
    #: Highest base offset in the name of a segment that is above the end of the segment before: the log cleaner removed
    #: that end, or a segment is missing.
    named_gap: int | None
    overlap_offset: int | None
    tail: str | None
    is_decoded: bool | None
    is_printed: bool
    newest_broker_ms: int | None

    @property
    def gap_offset(self) -> int | None:
        return highest((self.last_gap_offset, self.boundary_gap))


def extents(segments: Iterable[CapturedFile]) -> dict[CopyKey, Extent]:
    """What was read of each copy."""
    of_copies: dict[CopyKey, dict[int | None, list[CapturedFile]]] = defaultdict(lambda: defaultdict(list))
    for file in segments:
        if file.copy is not None and file.kind in (RAW, TEXT, PRINTED):
            of_copies[file.copy][file.segment_base_offset].append(file)
    return {
        copy: _extent([_Segment(base, files) for base, files in by_base.items()]) for copy, by_base in of_copies.items()
    }


class _Segment:
    """A segment. A dump may print it twice, and a log directory may have it twice: the longer one counts."""

    def __init__(self, base_offset: int | None, files: Sequence[CapturedFile]) -> None:
        self.base_offset = base_offset
        self.first_offset = lowest(file.first_offset for file in files)
        self.end_offset = highest(file.end_offset for file in files)
        self.last_gap_offset = highest(file.last_gap_offset for file in files)
        self.bytes = highest(file.bytes for file in files)
        self.batches = highest(file.batches for file in files)
        self.tail = max(files, key=lambda file: -1 if file.end_offset is None else file.end_offset).tail
        self.is_decoded = _all(file.is_decoded for file in files)
        self.newest_broker_ms = highest(clock_ms(file.newest_broker_ms) for file in files)
        self.unreadable = [each for file in files for each in file.unreadable or ()]
        self.is_twice = sum(file.kind == RAW for file in files) > 1 or len(_texts(files)) > 1
        self.is_printed = any(file.kind == PRINTED for file in files)
        #: The first offset; None for printed records, whose offsets only give an order.
        self.begins = base_offset if self.first_offset is None else self.first_offset
        #: The base offset; of a text that does not name it, the first offset, because what was before that may be lost.
        self.named = self.begins if base_offset is None else base_offset
        #: The offset after the last batch; of an empty segment, its base offset.
        self.ends = base_offset if self.end_offset is None else self.end_offset


def _texts(files: Iterable[CapturedFile]) -> set[str]:
    """The different texts among files: two may be of different logs, and one may print a part twice."""
    return {file.path for file in files if file.kind == TEXT}


def _all(flags: Iterable[bool | None]) -> bool | None:
    """Whether all known flags are set; None if none is known."""
    known = [flag for flag in flags if flag is not None]
    return all(known) if known else None


def _extent(segments: Sequence[_Segment]) -> Extent:
    in_order = sorted(segments, key=lambda segment: -1 if segment.base_offset is None else segment.base_offset)
    gaps, named_gaps, overlaps, damages = [], [], [], []
    harm, end_before, highest_end = 0, None, None
    for segment, following in zip(in_order, [*in_order[1:], None], strict=True):
        begins = segment.begins
        if begins is not None:
            if end_before is not None and begins > end_before:
                gaps.append(begins)
                named_gaps.append(segment.base_offset if is_above(segment.base_offset, end_before) else None)
            if segment.is_twice or (highest_end is not None and begins < highest_end):
                overlaps.append(begins)
        begins_after = None if following is None else following.begins
        for each in segment.unreadable:
            if is_harmful(each.reason):
                harm += following is not None or not each.is_cut
                damages.append(begins_after if each.next_offset is None else each.next_offset)
        # A broker trims a preallocated segment when it rolls it. Kafka: `LogSegment.onBecomeInactiveSegment`.
        if following is not None and segment.tail == "ZEROS":
            harm += 1
            damages.append(begins_after)
        if segment.ends is not None:
            end_before, highest_end = segment.ends, highest((highest_end, segment.ends))
    newest = in_order[-1]
    unopened = [each.why_not_opened for segment in in_order for each in segment.unreadable]
    is_newest_closed = any(each.why_not_opened for each in newest.unreadable)
    return Extent(
        first_offset=lowest(segment.first_offset for segment in in_order),
        end_offset=highest(each.base_offset if each.end_offset is None else each.end_offset for each in in_order),
        read_from_offset=lowest(segment.named for segment in in_order),
        bytes=_sum(segment.bytes for segment in in_order),
        batches=_sum(segment.batches for segment in in_order),
        unreadable_bytes=sum(
            each.length for segment in in_order for each in segment.unreadable if each.reason != PROSE
        ),
        harm=harm,
        unopened=tuple(filter(None, unopened)),
        damaged_offset=highest(damages),
        last_gap_offset=highest(segment.last_gap_offset for segment in in_order),
        boundary_gap=highest(gaps),
        named_gap=highest(named_gaps),
        overlap_offset=lowest(overlaps),
        tail=UNOPENED if is_newest_closed else None if newest.base_offset is None else newest.tail,
        is_decoded=_all(segment.is_decoded for segment in in_order),
        is_printed=any(segment.is_printed for segment in in_order),
        newest_broker_ms=highest(segment.newest_broker_ms for segment in in_order),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
