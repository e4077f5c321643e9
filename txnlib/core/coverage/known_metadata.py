"""The end of the captured metadata log: how far it reaches, and what it proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.copies import CONFIRMED_WITHIN_MS, LeaderBasis, highest, leader_basis, lowest
from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.core.coverage.captured_files import CapturedFile
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC


class Conclusion(StrEnum):
    """A kind of conclusion from the metadata log; `holds` says whether it may be drawn."""

    LEADER = "LEADER"
    LEADER_NOT_NAMED = "LEADER_NOT_NAMED"
    CLEAN_ELECTIONS = "CLEAN_ELECTIONS"
    TOPIC_UNKNOWN = "TOPIC_UNKNOWN"
    COORDINATOR_COUNT = "COORDINATOR_COUNT"
    SETTING = "SETTING"
    SETTING_NEVER_SET = "SETTING_NEVER_SET"
    NOTED_SETTING_CONTRADICTED = "NOTED_SETTING_CONTRADICTED"
    FEATURE_LEVEL = "FEATURE_LEVEL"
    FEATURE_NEVER_SET = "FEATURE_NEVER_SET"


#: Conclusions from the absence of a record. All others are from a record that no newer record replaces.
_FROM_ABSENCE: Final = frozenset(
    {
        Conclusion.LEADER_NOT_NAMED,
        Conclusion.TOPIC_UNKNOWN,
        Conclusion.COORDINATOR_COUNT,
        Conclusion.SETTING_NEVER_SET,
        Conclusion.FEATURE_NEVER_SET,
    }
)


@dataclass(frozen=True, slots=True)
class MetadataExtent:
    """Which ends of the metadata log are there.

    `has_begin`: its unbroken run of records begins with a snapshot or at offset 0. `has_end`: no copy shows that newer
    records are lost.
    """

    has_begin: bool
    has_end: bool


def holds(conclusion: Conclusion, extent: MetadataExtent | None) -> bool:
    """Whether a conclusion from the metadata log may be drawn. True without a metadata log (None): then nothing of it
    is lost, and nobody concludes anything."""
    return extent is None or (extent.has_end and (extent.has_begin or conclusion not in _FROM_ABSENCE))


# ---- How far the metadata log is known


@dataclass(frozen=True, slots=True)
class MetadataReach:
    """What the records of `metadata_log` show together: those that count, and `end`, the last offset in any copy."""

    #: The newest time.
    known_ms: int | None = None
    last_offset: int | None = None
    #: Whether the controller writes NoOpRecords.
    has_no_ops: bool | None = None
    #: Whether the records that count begin with a snapshot or at offset 0.
    is_complete: bool | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class KnownMetadata:
    """The settings of a run that say what its metadata log proves. None: not known."""

    metadata_basis: LeaderBasis
    has_metadata_end: bool
    metadata_known_ms: int | None = None
    metadata_reach_ms: int | None = None
    is_metadata_complete: bool | None = None
    is_metadata_whole: bool | None = None


def known_metadata(
    log: MetadataReach,
    segments: Sequence[CapturedFile],
    instants: CaptureInstants,
) -> KnownMetadata | None:
    """What is known of the metadata log; None if it is empty."""
    copies = [each for each in segments if each.topic == CLUSTER_METADATA_TOPIC]
    last_offset = -1 if log.known_ms is None or log.last_offset is None else log.last_offset
    reaching = [each for each in copies if (each.end_offset or 0) > last_offset]
    # Unreadable ranges after which nothing can be read. A dead broker's copy may have some, but not at the end of the
    # log that counts.
    ends = [unread for each in reaching for unread in each.unreadable or () if unread.next_offset is None]
    is_torn = any(unread.is_cut for unread in ends)
    is_lost = any(not unread.is_cut for unread in ends)
    is_beyond = log.end is not None and log.end > last_offset
    is_undecoded = any(each.end_offset is not None and each.end_offset > last_offset + 1 for each in copies)
    has_end = not (is_beyond or is_undecoded or is_lost)
    if log.known_ms is None:
        return None if has_end else KnownMetadata(LeaderBasis.METADATA_LOG_DAMAGED, has_metadata_end=False)
    has_no_ops, is_complete = bool(log.has_no_ops), bool(log.is_complete)
    # The earliest instant counts: a later copy may be a dead broker's.
    captured_ms = lowest(
        instants.of_copy(each.source, CLUSTER_METADATA_TOPIC, 0)
        for each in copies
        if each.end_offset is not None and each.end_offset > last_offset
    )
    others = [each.newest_broker_ms for each in segments if each.topic not in (None, CLUSTER_METADATA_TOPIC)]
    stamped_ms = highest(map(clock_ms, others))
    basis = leader_basis(
        None if captured_ms is None else captured_ms - log.known_ms,
        has_no_ops=has_no_ops,
        newer_ms=None if stamped_ms is None else stamped_ms - log.known_ms,
    )
    if not holds(Conclusion.LEADER, MetadataExtent(has_begin=is_complete, has_end=has_end)):
        basis = LeaderBasis.METADATA_LOG_DAMAGED
    reach_ms = log.known_ms + CONFIRMED_WITHIN_MS[has_no_ops]
    is_last = all(instant <= reach_ms for instant in instants.of_folders.values())
    return KnownMetadata(basis, has_end, log.known_ms, reach_ms, is_complete, is_last and has_end and not is_torn)
