"""The proof that a copy of a log gives: up to when it is known, and whether it is whole.

A copy proves what it contains. It proves the *absence* of records only up to an instant (`known_until_ms`). All
verdicts use this module for that. Source: docs/rules/copies.md#current-copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Final, TypeVar

Key = TypeVar("Key")

#: The leader of a partition without one.
NO_LEADER: Final = "-1"
#: Above every offset: where damage at the end of a log ends.
LOG_END: Final = 1 << 62

#: How the reasons of unreadable ranges begin that contain nothing a verdict could use.
HARMLESS_REASONS: Final = ("UNKNOWN_KEY_VERSION", "UNDECODABLE_COMMIT", "NOT_DUMP_TEXT", "LINE_FORM", "PRINTED_AGAIN")

#: Tail of a copy whose newest file was not opened.
UNOPENED: Final = "UNOPENED"
#: Tails of a copy of which more was captured than could be read.
ENDS_SHORT: Final = ("CORRUPT", "UNMEASURED", UNOPENED)


def is_harmful(reason: str) -> bool:
    """Whether an unreadable range may have contained something that the audit needs."""
    return not reason.startswith(HARMLESS_REASONS)


class Role(StrEnum):
    """The role of a copy among the copies of its partition."""

    #: Its broker leads the partition, according to capture.json or the cluster's metadata log.
    LEADER = "LEADER"
    #: The partition has no leader, and this copy has all that was committed: it was in sync last, or all replicas were
    #: captured.
    LAST_LEADER = "LAST_LEADER"
    #: The leader, or the broker of this copy, is unknown, and no other copy or checkpoint reaches further.
    FURTHEST = "FURTHEST"
    #: The copy of a follower or a dead broker, or one that another copy or checkpoint exceeds.
    OTHER = "OTHER"


class LeaderBasis(StrEnum):
    """How the leader of a partition is known."""

    CAPTURE_JSON = "CAPTURE_JSON"
    #: By the cluster's metadata log, which reaches the instant at which it was copied.
    METADATA_LOG = "METADATA_LOG"
    #: By the cluster's metadata log, but nothing shows that it was still growing when it was copied.
    METADATA_LOG_UNCONFIRMED = "METADATA_LOG_UNCONFIRMED"
    #: The metadata log ended long before it was copied: its broker was dead or cut off, and leaders may have changed
    #: since.
    METADATA_LOG_STALE = "METADATA_LOG_STALE"
    #: Records of the metadata log that may name another leader are lost.
    METADATA_LOG_DAMAGED = "METADATA_LOG_DAMAGED"


#: The bases that prove that a partition has a leader.
PROVES_LEADER: Final = frozenset({LeaderBasis.CAPTURE_JSON, LeaderBasis.METADATA_LOG})
#: How long before its copy the newest record of a metadata log may be, in ms, by whether the log has NoOpRecords. An
#: idle controller writes one every half second (`metadata.max.idle.interval.ms`). Without them: two session timeouts,
#: after which a controller would have fenced a dead broker (`broker.session.timeout.ms`).
CONFIRMED_WITHIN_MS: Final[Mapping[bool, int]] = {True: 5_000, False: 18_000}
#: From which lag on a log with NoOpRecords had ended before it was copied, in ms.
STALE_AFTER_MS: Final = 10_000


def leader_basis(lag_ms: int | None, *, has_no_ops: bool, newer_ms: int | None) -> LeaderBasis:
    """The basis of leaders from a metadata log whose newest record is `lag_ms` older than its copy; None: not known.

    Silence proves something only where the controller writes NoOpRecords, and only if all brokers were silent:
    `newer_ms` is by how much the newest broker-stamped record in any copy is younger than the metadata log (None: there
    is no such record). If it is younger, the instant of the copy was noted too late.
    """
    if lag_ms is None:
        return LeaderBasis.METADATA_LOG_UNCONFIRMED
    if lag_ms <= CONFIRMED_WITHIN_MS[has_no_ops]:
        return LeaderBasis.METADATA_LOG
    is_silent = newer_ms is None or newer_ms <= CONFIRMED_WITHIN_MS[True]
    if has_no_ops and is_silent and lag_ms > STALE_AFTER_MS:
        return LeaderBasis.METADATA_LOG_STALE
    return LeaderBasis.METADATA_LOG_UNCONFIRMED


class End(StrEnum):
    """How a copy ends."""

    #: After a complete batch, at or above the highest high watermark in any captured checkpoint.
    WHOLE = "WHOLE"
    #: Inside a batch, as the copy of a busy log may, but not below that high watermark.
    TORN = "TORN"
    #: Below that high watermark, or in bytes that cannot be read: records are missing.
    SHORT = "SHORT"


#: The meaning of a role, for readers of a report.
ROLES: Final[Mapping[Role, str]] = {
    Role.LEADER: "the leader's copy",
    Role.LAST_LEADER: "the last leader's copy of a partition without a leader",
    Role.FURTHEST: "the copy that reaches furthest; the leader, or the broker of this copy, is not known",
    Role.OTHER: "not the leader's copy, or another copy or checkpoint reaches beyond it",
}


def lowest(values: Iterable[int | None]) -> int | None:
    """The lowest value that is not None; None if there is none."""
    return min((value for value in values if value is not None), default=None)


def highest(values: Iterable[int | None]) -> int | None:
    """The highest value that is not None; None if there is none."""
    return max((value for value in values if value is not None), default=None)


def highest_of(pairs: Iterable[tuple[Key, int | None]]) -> dict[Key, int]:
    """Each key with the highest of its values that are not None."""
    found: dict[Key, int] = {}
    for key, value in pairs:
        if value is not None:
            found[key] = max(found.get(key, value), value)
    return found


def is_above(value: int | None, other: int | None) -> bool:
    """Whether both are known, and the first is above the other."""
    return value is not None and other is not None and value > other


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedEpoch:
    """A leader epoch, and the first offset that a newer leader truncated."""

    leader_epoch: int | None
    from_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEpoch:
    """A leader epoch, and the first offset that a checkpoint or a batch of it shows."""

    leader_epoch: int
    from_offset: int


@dataclass(frozen=True, slots=True)
class CopyBeside:
    """A copy of which only files beside its log were captured: producer snapshots, or a leader-epoch-checkpoint."""

    source: str
    broker: str | None = None
    #: The newest leader epoch in its checkpoint, and where that begins: its log reached there.
    leader_epoch: int | None = None
    from_offset: int | None = None
    #: The first offset of any newer leader epoch, in any other copy: what its log had from there on was truncated.
    overtaken_from: int | None = None


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A row of `coverage`: a copy of a partition; MISSING: a partition without one."""

    topic: str = ""
    partition: int = 0
    source: str | None = None
    _: KW_ONLY
    broker: str | None = None
    is_judged: bool = False
    leader: str | None = None
    leader_basis: LeaderBasis | None = None
    noted_leader: str | None = None
    assigned_leader: str | None = None
    in_sync: tuple[str, ...] | None = None
    is_leader: bool | None = None
    topic_id: str | None = None
    is_deleted: bool | None = None
    checkpoint_leader_epoch: int | None = None
    leader_epoch: int | None = None
    leader_epochs: tuple[LeaderEpoch, ...] | None = None
    role: Role | None = None
    is_current: bool | None = None
    truncated: tuple[TruncatedEpoch, ...] | None = None
    copies_beside: tuple[CopyBeside, ...] | None = None
    first_offset: int | None = None
    end_offset: int | None = None
    survives_until: int | None = None
    log_start_offset: int | None = None
    read_from_offset: int | None = None
    hidden_below: int | None = None
    high_watermark: int | None = None
    noted_high_watermark: int | None = None
    ends: End | None = None
    checkpointed_at_ms: int | None = None
    captured_at_ms: int | None = None
    newest_stamp_ms: int | None = None
    known_until_ms: int | None = None
    is_instant_assumed: bool | None = None
    bytes: int | None = None
    batches: int | None = None
    unreadable_bytes: int | None = None
    gap_offset: int | None = None
    segment_gap_offset: int | None = None
    overlap_offset: int | None = None
    damaged_offset: int | None = None
    tail: str | None = None
    is_decoded: bool | None = None
    status: str = "MISSING"
    detail: str | None = None
    is_gone: bool | None = None
    answered_at_ms: int | None = None
    answered_stable_offset: int | None = None
    answered_high_watermark: int | None = None
    is_nothing_open: bool | None = None

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def truncated_from(self) -> int | None:
        """The lowest offset that a newer leader truncated."""
        return min((each.from_offset for each in self.truncated or ()), default=None)

    @property
    def is_other(self) -> bool:
        """Whether the copy is not known to have all that its partition had."""
        return self.role in (None, Role.OTHER)

    @property
    def led_by(self) -> str | None:
        """The broker that leads the partition, or led it when that was last known; None if not known, or if it has no
        leader."""
        return None if self.leader == NO_LEADER else self.leader

    @property
    def is_leader_hidden(self) -> bool:
        """Whether the record that names its leader, or removes its topic, may be lost in the metadata log."""
        return self.leader_basis == LeaderBasis.METADATA_LOG_DAMAGED

    @property
    def high_watermark_or_end(self) -> int:
        """The high watermark; the end, if it is not known."""
        return (self.end_offset or 0) if self.high_watermark is None else self.high_watermark

    def has_read(self, offset: int) -> bool:
        """Whether the batches from an offset on were read: those before a snapshot were not."""
        return max(self.log_start_offset or 0, offset) >= (self.read_from_offset or 0)

    @property
    def begins_at_start(self) -> bool:
        """Whether the first segment is there. A compacted log keeps its name, so a copy that begins later lacks
        segments."""
        return max(self.log_start_offset or 0, self.read_from_offset or 0) == 0

    @property
    def damage_ends_at(self) -> int | None:
        """The offset below which the copy is damaged; None if it is not."""
        if self.tail in ENDS_SHORT or (self.status == "DAMAGED" and self.damaged_offset is None):
            return LOG_END
        return self.damaged_offset

    @property
    def is_console_text(self) -> bool:
        return (self.source or "").startswith("console:")

    @property
    def shows_absence(self) -> bool:
        """Whether the copy of a coordinator partition by itself proves which ids have no record in it.

        It is not known where console text began, nor whether a text of nothing but first lines was cut.
        """
        is_unclear = self.status == "MISSING" or self.is_console_text or self.tail == "EMPTY_OR_CUT"
        return bool(self.is_decoded) and not is_unclear and self.begins_at_start and self.damage_ends_at is None

    @property
    def has_leader(self) -> bool | None:
        """Whether the partition has a leader; None if that is not known for certain, or capture.json and the metadata
        log name different ones."""
        is_agreed = self.assigned_leader in (None, self.leader)
        is_certain = self.leader_basis in PROVES_LEADER and self.leader is not None and is_agreed
        return self.leader != NO_LEADER if is_certain else None


def is_current(role: Role | None, end: End | None) -> bool:
    """Whether a copy shows everything up to the instant at which it was taken."""
    return role not in (None, Role.OTHER) and end == End.WHOLE


def known_until_ms(role: Role, end: End, captured_at_ms: int | None, newest_stamp_ms: int | None) -> int | None:
    """The instant up to which a copy shows everything, in epoch ms; None if unknown.

    Without a noted instant of capture it is assumed to be that of the newest broker-stamped record
    (docs/rules/copies.md#two-capture-instants).
    """
    if is_current(role, end) and captured_at_ms is not None:
        return captured_at_ms
    if newest_stamp_ms is None or captured_at_ms is None:
        return newest_stamp_ms
    return min(captured_at_ms, newest_stamp_ms)


# ---- Facts about copies, as SQL over `coverage`

#: Whether a copy begins above its log start, by scope.
BEGINS_BY_SCOPE: Final = "coalesce(read_from_offset > log_start_offset, FALSE)"
#: Whether a judged copy shows every marker from where it begins, and whether that is after the start of the log.
SHOWS_MARKERS: Final = "(gap_offset IS NULL AND damaged_offset IS NULL AND is_decoded)"
BEGINS_LATE: Final = f"({BEGINS_BY_SCOPE} OR log_start_offset > 0)"
#: The judged copies without damage.
IS_SOUND: Final = "is_judged AND damaged_offset IS NULL AND tail IN ('CLEAN', 'ZEROS')"
#: The copies that exist.
LIVING: Final = "source IS NOT NULL AND NOT coalesce(is_deleted, FALSE)"


def survives(leader_epoch: str, offset: str) -> str:
    """Whether a batch or record survived: no newer leader truncated it. Column: truncated."""
    return (
        f"NOT coalesce(exists(truncated, cut -> cut.leader_epoch = {leader_epoch} AND cut.from_offset <= {offset}),"
        " FALSE)"
    )
