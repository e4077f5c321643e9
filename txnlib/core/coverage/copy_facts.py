"""One copy by itself: what its files show of it, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from txnlib.core.copies import ENDS_SHORT, UNOPENED, End, highest, is_above, lowest
from txnlib.core.coverage.captured_files import Checkpoints, Extent, broker_of, out_of_use
from txnlib.core.coverage.leaders import NotedPartition
from txnlib.core.coverage.truncated_tails import EpochsOfCopy
from txnlib.core.display import counted
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC

_WHOLE_TAILS: Final = ("CLEAN", "ZEROS")


class CopyFacts:
    """What is known of one copy."""

    def __init__(
        self,
        source: str,
        extent: Extent,
        checkpoints: Checkpoints,
        epochs: EpochsOfCopy,
        noted: NotedPartition,
        captured_at_ms: int | None,
        noted_high_watermark: int | None,
        newest_snapshot: int | None,
        is_checkpoint_older: bool,
    ) -> None:
        self.source, self.broker, self.is_coordinator = (
            source,
            broker_of(source),
            noted.topic == TRANSACTION_STATE_TOPIC,
        )
        #: For a coordinator: the offset of a gap that nothing shows to be the log cleaner's. The cleaner removes
        #: nothing from its checkpoint on, but may have gone on since the checkpoint was copied. Kafka:
        #: `LogCleanerManager`.
        gap, cleaned = extent.named_gap, checkpoints.cleaner_offset
        is_cleaned = gap is None or (cleaned is not None and gap <= cleaned)
        self.segment_gap_offset = gap if self.is_coordinator and not is_cleaned else None
        self.lacks_segment = self.segment_gap_offset is not None and cleaned is not None and not is_checkpoint_older
        if self.lacks_segment:
            extent = replace(extent, damaged_offset=highest((extent.damaged_offset, extent.named_gap)))
        self.extent, self.checkpoints, self.epochs = extent, checkpoints, epochs
        self.out_of_use = out_of_use(source)
        self.captured_at_ms = captured_at_ms
        #: Highest high watermark in any checkpoint, or answered by the leader, not later than this copy was taken.
        self.noted_high_watermark = noted_high_watermark
        #: The offset after the last batch that was not truncated.
        self.survives_until = epochs.survives_until if epochs.truncated else extent.end_offset
        #: Whether the copy begins above its log start because the capture chose so. Then its first segment is not the
        #: log's.
        self.is_scoped = noted.is_scoped(extent.read_from_offset)
        # The checkpoint lists a partition only if its log start is above its first segment.
        first_offset = highest((checkpoints.log_start_offset, extent.read_from_offset))
        self.log_start_offset = noted.log_start_offset if self.is_scoped else first_offset
        self._shown_from = highest((newest_snapshot, noted.answered_stable_offset))
        # A text of nothing but first lines is whole where a high watermark confirms that the log is empty.
        is_empty = extent.tail == "EMPTY_OR_CUT" and noted_high_watermark is not None
        self.tail = "CLEAN" if is_empty and noted_high_watermark == self.survives_until else extent.tail

    @property
    def hidden_below(self) -> int | None:
        """The offset at which the read part of the copy begins, if nothing shows what was open there: no snapshot at or
        above it, and no answer of the leader. Else None.

        Always None for a coordinator partition, in which nothing is open.
        """
        since, start = self.extent.read_from_offset, self.log_start_offset
        begins_at = since if is_above(since, start) else lowest((start, self.extent.first_offset))
        is_shown = self.is_coordinator or not begins_at or (self._shown_from or 0) >= begins_at
        return None if is_shown else begins_at

    @property
    def has_damage(self) -> bool:
        """Whether something that was opened could not be read."""
        return self.extent.harm > len(self.extent.unopened) or self.tail == "CORRUPT" or self.lacks_segment

    @property
    def is_damaged(self) -> bool:
        """Whether something that was captured could not be read, or was not opened."""
        return self.has_damage or self.extent.harm > 0 or self.tail == UNOPENED

    @property
    def reach(self) -> tuple[int, int]:
        """How far the copy reaches: its newest leader epoch, then its end."""
        epoch = self.epochs.leader_epoch
        return -1 if epoch is None else epoch, self.survives_until or 0

    @property
    def ends_whole(self) -> bool:
        """Whether the copy was read to its end, after a complete batch."""
        return self.tail in _WHOLE_TAILS

    @property
    def end(self) -> End:
        if self.tail in ENDS_SHORT or self.is_below_high_watermark or self.is_below_own_checkpoints:
            return End.SHORT
        return End.WHOLE if self.ends_whole and not self.extent.is_printed else End.TORN

    @property
    def is_below_high_watermark(self) -> bool:
        return is_above(self.noted_high_watermark, self.survives_until)

    @property
    def is_below_own_checkpoints(self) -> bool:
        return is_above(highest((self.epochs.reached_offset, self.checkpoints.recovery_point)), self.survives_until)


def begin_by_choice(copy: CopyFacts) -> str | None:
    """Why a copy lacks a part of the log on purpose, in words: its broker does not use it, or the capture left that
    part out. None if neither is so."""
    if copy.out_of_use is not None:
        return copy.out_of_use
    if not copy.is_scoped:
        return None
    since = copy.extent.read_from_offset
    return f"fetched from offset {since} on, by scope; the log begins at {copy.log_start_offset}"


def problems_of(copy: CopyFacts) -> Iterator[str]:
    """What the copy lacks, in words."""
    extent, is_coordinator = copy.extent, copy.is_coordinator
    begins_at = highest((copy.log_start_offset, extent.read_from_offset))
    # Compaction leaves holes everywhere below its progress; a hole only between segments is a missing segment.
    has_gap = extent.boundary_gap is not None and extent.last_gap_offset is None
    is_closed = copy.tail == UNOPENED and extent.first_offset is None
    problems = {
        f"{counted(len(extent.unopened), 'file')} not opened: {', '.join(dict.fromkeys(extent.unopened))}": (
            bool(extent.unopened)
        ),
        "damaged stretches": extent.harm > len(extent.unopened),
        "unbelievable end": copy.tail == "CORRUPT",
        "ends inside a batch": copy.tail == "TORN",
        "read only up to contents without a known end (print it again without --print-data-log)": (
            copy.tail == "UNMEASURED"
        ),
        "empty, or cut after the first lines of its text": copy.tail == "EMPTY_OR_CUT",
        "ends below the high watermark": (copy.is_below_high_watermark and copy.out_of_use is None and not is_closed),
        "ends below what its own checkpoints note": copy.is_below_own_checkpoints,
        "a newer leader truncated some of its batches": bool(copy.epochs.truncated),
        "offsets missing between segments": copy.lacks_segment or (has_gap and not is_coordinator),
        "its first segments are missing": is_coordinator and is_above(begins_at, 0),
        "markers or coordinator records not printed": extent.is_decoded is False and not is_closed,
        "a console consumer's text, which does not tell where it began": extent.is_printed,
    }
    return (text for text, applies in problems.items() if applies)
