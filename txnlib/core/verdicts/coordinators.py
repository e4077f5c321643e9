"""The partitions of `__transaction_state`: what their copies prove together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from txnlib.core.cluster_metadata import Election, elections_of
from txnlib.core.copies import LOG_END, UNOPENED, CoverageRow, End, Role, highest, is_above, lowest
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import (
    CLOCKS_DIFFER_MS,
    HIGH_WATERMARKS_NOTED_EVERY_MS,
    TRANSACTION_STATE_TOPIC,
    UNKNOWN_CLOCKS_DIFFER_MS,
    is_ahead,
)
from txnlib.core.verdicts.in_sync import TooFewInSync
from txnlib.core.verdicts.whose_clock import newest_leader_epoch


@dataclass(frozen=True, kw_only=True)
class PartitionFacts:
    """What the tables of the cluster show about a partition."""

    copies: tuple[CoverageRow, ...] = ()
    elections: tuple[Election, ...] = ()
    #: Names of findings of severity ERROR or CRITICAL about the partition.
    alarms: tuple[str, ...] = ()
    #: Why no coordinator can write there; None: it can, or that is not known.
    too_few_in_sync: TooFewInSync | None = None

    @cached_property
    def captured(self) -> list[CoverageRow]:
        return [copy for copy in self.copies if copy.status != "MISSING"]

    @cached_property
    def judged(self) -> CoverageRow:
        """The judged copy; if there is none, a copy that shows nothing."""
        return next((copy for copy in self.copies if copy.is_judged), CoverageRow())

    @cached_property
    def born_ms(self) -> int | None:
        """When the partition was made, by the controller's clock; None if the metadata log does not show it."""
        ours = elections_of(self.judged.topic_id, self.elections)
        return highest(each.at_ms for each in ours if each.is_first and each.offset is not None)


@dataclass(frozen=True, kw_only=True)
class CoordinatorLog:
    """What compaction left of the log of a partition of `__transaction_state`."""

    partition: int = -1
    newest_coordinator_epoch: int | None = None
    last_offset: int | None = None
    last_ms: int | None = None
    #: Offset of the newest record directly after a hole: from there on, no record is missing. None: no record is
    #: missing at all.
    hole_offset: int | None = None
    hole_ms: int | None = None
    #: The leader epoch of that record.
    hole_epoch: int | None = None
    #: The newest transaction version of a client in its records.
    highest_transaction_version: int | None = None
    #: The newest coordinator epoch in any marker of the producer ids that its transactional ids have or had.
    newest_marker_epoch: int | None = None
    #: The newest coordinator epoch of a marker that no decision explains, if no record has this epoch although none is
    #: missing around it.
    lacked_epoch: int | None = None
    #: The time of the last record before the missing epochs: nothing before it is lost.
    lacked_since_ms: int | None = None
    #: The place of a COMMIT marker, of such a producer id, that no decision in the log explains.
    lost_commit: str | None = None
    lost_commit_ms: int | None = None
    #: The time of the newest surviving record from before the lost decision.
    lost_commit_since_ms: int | None = None
    #: An id whose newest record a console consumer printed, `id in PrepareCommit`: the log has only older ones of it.
    lost_printed: str | None = None
    #: The producer ids in records that a newer leader truncated, and whether one of these records is a decision.
    truncated_ids: tuple[int, ...] | None = None
    truncates_decisions: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBefore:
    """How far earlier audits read the log of a coordinator partition in copies of one topic id and newest leader epoch,
    below the high watermark: those records were committed."""

    partition: int
    topic_id: str | None = None
    leader_epoch: int
    end_offset: int


@dataclass(frozen=True, kw_only=True)
class CoordinatorPartition(PartitionFacts, CoordinatorLog):
    """A partition of `__transaction_state`: its copies, what they prove together, and what compaction left of its log.

    Kafka: `TransactionStateManager.loadTransactionMetadata` reads the whole log. Source:
    docs/rules/abort.md#no-coordinator-left.
    """

    read_before: tuple[ReadBefore, ...] = ()
    #: Broker -> the newest stamp in any of its copies: it lived until then.
    lived_ms: Mapping[str | None, int] = field(default_factory=dict)

    @cached_property
    def best(self) -> CoverageRow | None:
        """The copy that reaches furthest for certain; None if nothing was captured."""
        return max(
            self.captured,
            key=lambda copy: (bool(copy.is_current), copy.ends == End.WHOLE, copy.is_judged, copy.end_offset or 0),
            default=None,
        )

    @property
    def has_leader(self) -> bool | None:
        """Whether the partition has a leader; None if that is not known for certain."""
        return None if self.best is None else self.best.has_leader

    @cached_property
    def known_until_ms(self) -> int | None:
        """The instant up to which the copies show everything."""
        return highest(copy.known_until_ms for copy in self.captured if copy.is_decoded)

    @cached_property
    def newest_captured_at_ms(self) -> int | None:
        """When the newest copy that shows absence was taken."""
        return highest(copy.captured_at_ms for copy in self.captured if copy.shows_absence)

    @cached_property
    def is_instant_assumed(self) -> bool:
        return all(copy.is_instant_assumed is not False for copy in self.captured)

    @cached_property
    def damaged_offset(self) -> int | None:
        """The offset below which records are lost in every copy; None if none are.

        A copy makes up for a damaged one only if it contains the damaged offsets itself, undamaged and not truncated
        below them.
        """
        copies = self.captured
        ends = {copy.damage_ends_at for copy in copies}
        return highest(
            end for end in ends if end is not None and not any(_contains(copy, end, copies) for copy in copies)
        )

    @cached_property
    def shows_absence(self) -> bool:
        """Whether an id without a record in the copies has none in the log."""
        return self.damaged_offset is None and any(copy.shows_absence for copy in self.captured)

    @cached_property
    def newest_leader_epoch(self) -> int | None:
        """The newest leader epoch that records, checkpoints or elections show."""
        return highest((self.newest_coordinator_epoch, newest_leader_epoch(self.copies, self.elections)))

    @cached_property
    def lost_committed(self) -> str | None:
        """The committed records that an earlier audit read, and that a newer leader has since replaced, in words; None
        if all are there, or compacted. Kafka: `LeaderEpochFileCache.endOffsetFor`."""
        begun = [each for copy in self.captured for each in copy.leader_epochs or ()]
        for read in self.read_before:
            if None not in (read.topic_id, self.judged.topic_id) and read.topic_id != self.judged.topic_id:
                continue
            newer = [each for each in begun if each.leader_epoch > read.leader_epoch]
            first = min(newer, key=lambda each: each.from_offset, default=None)
            if first is not None and first.from_offset < read.end_offset:
                return (
                    f"an earlier audit read it up to offset {read.end_offset - 1}, below the high watermark, and leader"
                    f" epoch {first.leader_epoch} begins at offset {first.from_offset}"
                )
        return None

    @cached_property
    def lost_led(self) -> str | None:
        """A leader epoch that a checkpoint of another copy has and the log lacks, in words: what its leader wrote is
        lost. None if there is none. Kafka: `LeaderEpochFileCache.assign`."""
        begun = self.judged.leader_epochs or ()
        known = {each.leader_epoch for each in begun}
        for each in self.judged.copies_beside or ():
            if each.leader_epoch is None or each.from_offset is None or each.leader_epoch in known:
                continue
            newer = [one.from_offset for one in begun if one.leader_epoch > each.leader_epoch]
            if newer and each.from_offset < min(newer):
                return (
                    f"a checkpoint of broker {each.broker} has leader epoch {each.leader_epoch} from offset"
                    f" {each.from_offset} on, which the log does not have"
                )
        return None

    @cached_property
    def lost_tail(self) -> str | None:
        """The copy with records that a newer leader truncated although they may have been committed, in words. None if
        there is none, or if the metadata log shows the elections.

        A broker notes high watermarks only from time to time. So records above the noted one were certainly not
        committed only if the broker lived longer than that after them. Kafka:
        `ReplicaManager.checkpointHighWatermarks`.
        """
        ours = elections_of(self.judged.topic_id, self.elections)
        if any(each.offset is not None and not each.is_first for each in ours):
            return None
        for copy in self.captured:
            begun, stamp = copy.truncated_from, clock_ms(copy.newest_stamp_ms)
            if begun is None:
                continue
            is_above_mark = copy.high_watermark is not None and begun >= copy.high_watermark
            lived = self.lived_ms.get(copy.broker)
            if is_above_mark and stamp is not None and is_above(lived, stamp + HIGH_WATERMARKS_NOTED_EVERY_MS):
                continue
            return f"broker {copy.broker} wrote records from offset {begun} on, which a newer leader truncated"
        return None

    @cached_property
    def hole_end(self) -> int | None:
        """The offset below which records of the log are missing; None if none are. They may be the newest ones, too."""
        end = highest(end for copy in self.copies for end in (copy.survives_until, copy.high_watermark))
        last = -1 if self.last_offset is None else self.last_offset
        return end if end is not None and end > last + 1 else self.hole_offset

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """The evidence that decisions are lost, about whatever producer id."""
        return tuple(_losses_of(self))


class Loss(NamedTuple):
    """Evidence that decisions are lost. `since_ms`: the time of a record before all of them; None if not known.
    `until_offset`: the offset of a record after all of them."""

    why: str
    since_ms: int | None = None
    until_offset: int = LOG_END


def _losses_of(log: CoordinatorPartition) -> Iterator[Loss]:
    if is_ahead(log.newest_marker_epoch, log.newest_leader_epoch):
        yield Loss("a marker of another id has a newer coordinator epoch than all of its records", log.last_ms)
    if log.lacked_epoch:
        why = f"a marker that no decision explains has coordinator epoch {log.lacked_epoch}"
        yield Loss(f"{why}, which its log lacks", log.lacked_since_ms)
    # A log that was copied later than the marker was written would have its decision.
    if log.lost_commit and is_above(log.known_until_ms, UNKNOWN_CLOCKS_DIFFER_MS + (log.lost_commit_ms or 0)):
        yield Loss(f"no decision explains the COMMIT marker at {log.lost_commit}", log.lost_commit_since_ms)
    if log.lost_printed:
        yield Loss(f"a console consumer printed {log.lost_printed}, and its log has only older records of the id")
    for why in filter(None, (log.lost_committed, log.lost_led)):
        yield Loss(why)
    if log.truncates_decisions and log.lost_tail is not None:
        yield Loss(log.lost_tail)


@dataclass(frozen=True)
class Coordinators:
    """The captured partitions of `__transaction_state` that may know a producer id: those of the ids that have or had
    it; without an owner, all. `logs`: in the order of their numbers."""

    logs: tuple[CoordinatorPartition, ...] = ()

    @cached_property
    def newest_leader_epoch(self) -> int | None:
        return highest(each.newest_leader_epoch for each in self.logs)

    @cached_property
    def losing(self) -> tuple[CoordinatorPartition, ...]:
        """The partitions that may have lost decisions."""
        return tuple(each for each in self.logs if each.losses or each.truncated_ids)

    @cached_property
    def is_instant_assumed(self) -> bool:
        """Whether, for at least one of them, nothing notes when it was copied."""
        of_captured = [each.is_instant_assumed for each in self.logs if each.captured]
        return not of_captured or any(of_captured)

    @cached_property
    def earliest_captured_at_ms(self) -> int | None:
        """The earliest instant at which one of them was copied; None if one is not known. Later writes may be in a
        transaction that this copy does not show."""
        captures = [each.best.captured_at_ms if each.best else None for each in self.logs]
        return None if None in captures else lowest(captures)

    @cached_property
    def uncertain_copies(self) -> tuple[str, ...]:
        """Why the copies do not prove for certain that a record is absent, in words; empty if they do."""
        if not self.logs:
            return ("no partition of __transaction_state was captured",)
        return tuple(text for each in self.logs for text in uncertainties(each))

    @cached_property
    def unclean_elections(self) -> tuple[Election, ...]:
        """The elections of these partitions that may have lost records."""
        return tuple(one for each in self.logs for one in each.elections if one.may_lose)

    @cached_property
    def is_leader_hidden(self) -> bool:
        """Whether, for at least one of them, the record that names its leader may be lost in the metadata log."""
        return any(each.best and each.best.is_leader_hidden for each in self.logs)

    @cached_property
    def born_ms(self) -> int | None:
        """When the newest of these partitions was made, by the controller's clock; None if not known."""
        return highest(each.born_ms for each in self.logs)


def _contains(copy: CoverageRow, end: int, copies: Iterable[CoverageRow]) -> bool:
    """Whether a copy is whole up to an offset. LOG_END: up to all that any copy or checkpoint shows of the log."""
    if not copy.shows_absence or copy.survives_until is None:
        return False
    if end < LOG_END:
        return copy.survives_until >= end
    mark = highest(mark for each in copies for mark in (each.noted_high_watermark, each.high_watermark))
    reached = highest(each.end_offset for each in copies)
    return mark is not None and bool(copy.is_current) and copy.survives_until >= max(mark, reached or 0)


def uncertainties(coordinator: CoordinatorPartition) -> list[str]:
    """Why a coordinator partition is not known for certain, in words; empty if its copy is current, whole, and of a
    certain leader."""
    name, best, damaged = (
        f"{TRANSACTION_STATE_TOPIC}-{coordinator.partition}",
        coordinator.best,
        coordinator.damaged_offset,
    )
    if best is None:
        return [f"{name} was not captured"]
    if best.tail == UNOPENED:
        return [f"files of {name} could not be opened: quarantine says which, and why"]
    if not best.has_leader:
        return [f"the leader of {name} is not known for certain: note it in capture.json, or copy the metadata log"]
    if best.role != Role.LEADER or not best.is_current:
        return [f"the copy of {name} is not known to be current: copy its leader's (broker {best.leader})"]
    if damaged is not None:
        return [
            f"{name} is damaged{' at its end' if damaged >= LOG_END else f' below offset {damaged}'}: copy another"
            " replica of it"
        ]
    if best.segment_gap_offset is not None:
        lacks = f"may lack a segment before offset {best.segment_gap_offset}"
        return [f"the copy of {name} {lacks}: copy the cleaner-offset-checkpoint of broker {best.leader} after it"]
    if not best.begins_at_start:
        return [f"the copy of {name} lacks its first segments: copy the whole folder"]
    if not coordinator.shows_absence:
        return [f"the copy of {name} does not show all of its records: copy the raw segments"]
    if best.high_watermark is None:
        return [
            f"the end of the copy of {name} is not confirmed: copy the replication-offset-checkpoint of broker"
            f" {best.leader}"
        ]
    printed = highest(copy.newest_stamp_ms for copy in coordinator.captured if copy.is_console_text)
    if printed is not None and is_above(printed - CLOCKS_DIFFER_MS, best.captured_at_ms):
        return [f"console text shows records of {name} that are newer than its copy: copy it again"]
    return []
