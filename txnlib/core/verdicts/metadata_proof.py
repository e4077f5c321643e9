"""What the metadata log proves where some of its records are lost.

A record that is absent may be among those that are lost, and a newer one may follow the newest that is there. What each conclusion
rests on is one table, and what damage does to that is another.
Source: docs/rules/copies.md#damage-to-the-newest-records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Basis(StrEnum):
    """What a conclusion rests on."""

    #: A record that is there: no other record can undo that.
    PRESENCE = "PRESENCE"
    #: That no newer record follows the one that is there.
    NEWEST = "NEWEST"
    #: That there is no such record at all.
    ABSENCE = "ABSENCE"


class Conclusion(StrEnum):
    """What an audit concludes from the metadata log."""

    LEADER = "LEADER"
    LEADER_NOT_NAMED = "LEADER_NOT_NAMED"
    NOTED_LEADER_CONTRADICTED = "NOTED_LEADER_CONTRADICTED"
    CLEAN_ELECTIONS = "CLEAN_ELECTIONS"
    UNCLEAN_ELECTION = "UNCLEAN_ELECTION"
    BROKER_FENCED = "BROKER_FENCED"
    TOPIC_REMOVED = "TOPIC_REMOVED"
    TOPIC_UNKNOWN = "TOPIC_UNKNOWN"
    COORDINATOR_COUNT = "COORDINATOR_COUNT"
    SETTING = "SETTING"
    SETTING_NEVER_SET = "SETTING_NEVER_SET"
    NOTED_SETTING_CONTRADICTED = "NOTED_SETTING_CONTRADICTED"
    FEATURE_LEVEL = "FEATURE_LEVEL"
    FEATURE_NEVER_SET = "FEATURE_NEVER_SET"
    PRODUCER_IDS_GIVEN = "PRODUCER_IDS_GIVEN"
    PRODUCER_ID_NEVER_GIVEN = "PRODUCER_ID_NEVER_GIVEN"


#: Conclusion -> what it rests on.
RESTS_ON: Final[Mapping[Conclusion, Basis]] = {
    Conclusion.LEADER: Basis.NEWEST,
    Conclusion.LEADER_NOT_NAMED: Basis.ABSENCE,
    Conclusion.NOTED_LEADER_CONTRADICTED: Basis.NEWEST,
    Conclusion.CLEAN_ELECTIONS: Basis.NEWEST,
    Conclusion.UNCLEAN_ELECTION: Basis.PRESENCE,
    Conclusion.BROKER_FENCED: Basis.PRESENCE,
    Conclusion.TOPIC_REMOVED: Basis.PRESENCE,
    Conclusion.TOPIC_UNKNOWN: Basis.ABSENCE,
    Conclusion.COORDINATOR_COUNT: Basis.ABSENCE,
    Conclusion.SETTING: Basis.NEWEST,
    Conclusion.SETTING_NEVER_SET: Basis.ABSENCE,
    Conclusion.NOTED_SETTING_CONTRADICTED: Basis.NEWEST,
    Conclusion.FEATURE_LEVEL: Basis.NEWEST,
    Conclusion.FEATURE_NEVER_SET: Basis.ABSENCE,
    Conclusion.PRODUCER_IDS_GIVEN: Basis.PRESENCE,
    Conclusion.PRODUCER_ID_NEVER_GIVEN: Basis.ABSENCE,
}


@dataclass(frozen=True, slots=True)
class MetadataExtent:
    """What is there of the metadata log.

    `has_begin`: its unbroken run begins with a snapshot or at offset 0. `has_end`: no copy shows that newer records are lost.
    """

    has_begin: bool
    has_end: bool


#: (what a conclusion rests on, has_begin, has_end) -> whether it holds.
HOLDS: Final[Mapping[tuple[Basis, bool, bool], bool]] = {
    (Basis.PRESENCE, True, True): True,
    (Basis.PRESENCE, True, False): True,
    (Basis.PRESENCE, False, True): True,
    (Basis.PRESENCE, False, False): True,
    (Basis.NEWEST, True, True): True,
    (Basis.NEWEST, True, False): False,
    (Basis.NEWEST, False, True): True,
    (Basis.NEWEST, False, False): False,
    (Basis.ABSENCE, True, True): True,
    (Basis.ABSENCE, True, False): False,
    (Basis.ABSENCE, False, True): False,
    (Basis.ABSENCE, False, False): False,
}


def holds(conclusion: Conclusion, extent: MetadataExtent | None) -> bool:
    """Whether a conclusion holds. None: no metadata log was captured, so nothing in one is lost, and nothing is concluded."""
    return extent is None or HOLDS[RESTS_ON[conclusion], extent.has_begin, extent.has_end]
