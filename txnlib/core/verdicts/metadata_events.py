"""Events of the metadata log since a transaction began."""

from __future__ import annotations

from collections.abc import Callable

from txnlib.core.cluster_metadata import Election, FencedBroker, LoweredFeature
from txnlib.core.display import instant
from txnlib.core.finding import Alarm
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import (
    CLOCKS_DIFFER_MS,
    CLUSTER_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TRANSACTION_VERSION,
)
from txnlib.core.verdicts.case import Case

Event = Election | FencedBroker | LoweredFeature


def since_ms(case: Case) -> int | None:
    """When the transaction was decided, else when it began, in epoch ms; None if unknown."""
    decided = [each.of.dated_ms for each in (case.commit_due, case.decision) if each is not None]
    is_current = case.claim.is_active and case.is_listed
    begun = (
        case.claim.start_ms if is_current else None,
        case.stamped_before_ms,
        case.first_timestamp_ms,
    )
    return next((ms for ms in map(clock_ms, (*decided, *begun)) if ms is not None), None)


def events(case: Case) -> dict[str, Event | None]:
    """Name of an event -> the first record of the metadata log that shows it, since the transaction was decided or
    began."""
    since = since_ms(case)

    def is_since(event: Event) -> bool:
        """Whether an event is not older than that. Events that only a snapshot shows have no time."""
        return since is not None and event.at_ms is not None and event.at_ms >= since - CLOCKS_DIFFER_MS

    elections, led = list(filter(is_since, case.place.elections)), case.coordinator.elections
    is_created_again = len({each.topic_id for each in case.place.elections}) > 1
    return {
        # The new leader may lack the newest records.
        "unclean_election": next((each for each in elections if each.is_unclean), None),
        "topic_created": next((each for each in reversed(elections) if is_created_again and each.is_first), None),
        # A period in which the partition had no leader; it may have begun before.
        "leaderless": next(
            (
                each
                for each in case.place.elections
                if each.leader is None and (since is None or each.until_ms is None or each.until_ms >= since)
            ),
            None,
        ),
        # The broker led the coordinator's partition when it was fenced, or lost the leadership just before.
        "fenced_coordinator": next(
            (each for each in case.facts.fenced if is_since(each) and any(_leads(one, each) for one in led)), None
        ),
        "lowered_feature": next(filter(is_since, case.facts.lowered), None),
        # Only a snapshot shows the election, and not when it was.
        "undated_unclean_election": next(
            (each for each in case.place.elections if each.is_unclean and each.at_ms is None), None
        ),
        "coordinator_unclean": next((each for each in led if is_since(each) and each.is_unclean), None),
        "coordinator_leaderless": led[-1] if led else None,
    }


def is_after_completion(event: Event, case: Case) -> bool:
    """Whether an election is later than the completion of the decision, as far as the clocks of a cluster show.

    Then every leader had acknowledged its marker before.
    """
    decided = case.commit_due or case.decision
    completed = None if decided is None else clock_ms(decided.of.completed_ms)
    return completed is not None and event.at_ms is not None and event.at_ms > completed + CLOCKS_DIFFER_MS


def is_leaderless(case: Case) -> bool:
    """Whether the metadata log shows that the partition has no leader now, and nothing newer says otherwise."""
    elections = case.place.elections
    return case.copy.has_leader is False and bool(elections) and elections[-1].leader is None


def is_coordinator_leaderless(case: Case) -> bool:
    """Whether the metadata log shows that the coordinator's partition has no leader now, and nothing newer says
    otherwise."""
    elections = case.coordinator.elections
    return case.coordinator.has_leader is False and bool(elections) and elections[-1].leader is None


def _leads(election: Election, fenced: FencedBroker) -> bool:
    if election.leader != fenced.broker or fenced.at_ms is None:
        return False
    begun = election.at_ms is None or election.at_ms <= fenced.at_ms
    return begun and (election.until_ms is None or fenced.at_ms <= election.until_ms + CLOCKS_DIFFER_MS)


def shown(case: Case) -> dict[str, str]:
    """Name of an event -> its record in words; empty if there is none. Used in the texts of causes."""
    number = case.claim.coordinator_partition
    of_id = "the coordinator's partition" if number is None else f"{TRANSACTION_STATE_TOPIC}-{number}"
    said = {}
    for name, event in events(case).items():
        place = of_id if name.startswith("coordinator_") else f"{case.span.topic}-{case.span.partition}"
        if event is None:
            said[name] = ""
        elif name == "topic_created":
            said[name] = f"{_place(event)}topic {case.span.topic} was created again"
        elif isinstance(event, FencedBroker):
            said[name] = f"{_place(event)}broker {event.broker}, which led {of_id}, was fenced"
        elif isinstance(event, LoweredFeature):
            said[name] = f"{_place(event)}{TRANSACTION_VERSION} was lowered from {event.level_before} to {event.level}"
        elif event.leader is None:
            said[name] = f"{_place(event)}{place} has no leader"
        else:
            how = " without being in sync" if event.is_unclean else ""
            leads = f"became the leader of {place}{how} (leader epoch {event.leader_epoch})"
            said[name] = f"{_place(event)}broker {event.leader} {leads}"
    return said


def _place(event: Event) -> str:
    """Where and when the metadata log shows an event, as the beginning of a sentence."""
    if event.offset is None:
        return f"a snapshot of {CLUSTER_METADATA_TOPIC}: "
    return f"offset {event.offset} of {CLUSTER_METADATA_TOPIC}, {instant(event.at_ms)}: "


# ---- Markers that are missing, and events that explain it


def lacks_marker(case: Case) -> bool:
    """Whether its coordinator decided a transaction with this partition, and the marker is missing here."""
    decision = case.decision
    if decision is not None and decision.is_marked is False and decision.lists_partition:
        return True
    return case.commit_due is not None or Alarm.MARKER_MISSING in case.alarms


def has_event(name: str) -> Callable[[Case], bool]:
    """Whether the metadata log shows an event of `events`."""
    return lambda case: events(case)[name] is not None


def lost_by(name: str, *, is_proven: bool) -> Callable[[Case], bool]:
    """Whether the marker is missing, and an event explains that.

    `is_proven`: the event is later than the completion, so every leader had acknowledged the marker before.
    """

    def applies(case: Case) -> bool:
        event = events(case)[name]
        return lacks_marker(case) and event is not None and is_after_completion(event, case) is is_proven

    return applies


def may_be_lost_by_election(case: Case) -> bool:
    found = events(case)
    return lacks_marker(case) and found["unclean_election"] is None and found["undated_unclean_election"] is not None


def is_dropped_without_leader(case: Case) -> bool:
    """Whether the partition had no leader at some time between the decision and its completion."""
    none = events(case)["leaderless"]
    decided = case.commit_due or case.decision
    completed = None if decided is None else decided.of.completed_ms
    if not lacks_marker(case) or none is None or completed is None:
        return False
    return none.at_ms is None or none.at_ms <= completed
