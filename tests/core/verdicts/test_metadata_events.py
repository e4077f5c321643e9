"""What the metadata log shows since a transaction was decided or began: which events, and in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_case import case_of
from tests.support.dossier_samples import (
    BEFORE_MS,
    CLAIM,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FACTS,
    FOO,
    LOST,
    NOON,
    ORPHAN,
)
from txnlib.core.cluster_metadata import Election, FencedBroker, LoweredFeature, ProducerIdBlock
from txnlib.core.verdicts.evidence_records import evidence_records
from txnlib.core.verdicts.metadata_events import (
    events,
    is_after_completion,
    is_coordinator_leaderless,
    is_leaderless,
    shown,
    since_ms,
)

#: The decision of the sample, by its coordinator's clock. Others may differ by a second.
SINCE_MS = DECISION.said_ms
LED = Election(offset=7, at_ms=NOON, leader=2, leader_epoch=4)
UNCLEAN = replace(LED, is_unclean=True)
NONE = replace(LED, leader=None)
FENCED = FencedBroker(offset=8, at_ms=NOON, broker=2)
LOWERED = LoweredFeature(offset=9, at_ms=NOON, level_before=2, level=1)


def found(*elections, led=(), fenced=(), lowered=(), dossier=DOSSIER, **span):
    coordinator = replace(COORDINATOR, elections=led)
    facts = replace(FACTS, coordinators=(coordinator,), fenced=fenced, lowered=lowered)
    return case_of(dossier, facts, {"elections": elections}, **span)


def names(case):
    return {name for name, event in events(case).items() if event is not None}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ({"state": "Ongoing", "partitions": (FOO,)}, NOON - 7),
        ({"state": "Ongoing"}, BEFORE_MS),
        ({"state": "CompleteCommit", "partitions": (FOO,)}, BEFORE_MS),
        ({"state": "Ongoing", "partitions": (FOO,), "start_ms": None}, BEFORE_MS),
    ],
)
def test_without_a_decision_it_began_as_its_coordinator_says_else_behind_a_stamp(claim, expected):
    claims = (replace(CLAIM, **{"start_ms": NOON - 7, **claim}),)
    assert since_ms(case_of(replace(DOSSIER, decisions=(), claims=claims))) == expected


def test_a_commit_that_is_due_comes_first():
    assert since_ms(case_of(replace(DOSSIER, decisions=(DECISION, LOST)))) == LOST.said_ms
    assert since_ms(case_of(ORPHAN, stamps=())) == NOON
    assert since_ms(case_of(ORPHAN, stamps=(), first_timestamp_ms=None, last_timestamp_ms=None)) is None


#: Elections of the partition -> the events that they show.
OF_PARTITION = [
    ((LED,), set()),
    ((replace(UNCLEAN, at_ms=SINCE_MS - 1_000),), {"unclean_election"}),
    ((replace(UNCLEAN, at_ms=SINCE_MS - 1_001),), set()),
    ((replace(UNCLEAN, at_ms=None),), {"undated_unclean_election"}),
    ((replace(LED, at_ms=None),), set()),
    ((NONE,), {"leaderless"}),
    ((replace(NONE, until_ms=SINCE_MS),), {"leaderless"}),
    ((replace(NONE, until_ms=SINCE_MS - 1),), set()),
    ((replace(LED, until_ms=SINCE_MS),), set()),
    ((replace(LED, is_first=True),), set()),
    ((replace(LED, topic_id="BBBB", at_ms=1), replace(LED, topic_id="AAAA", is_first=True)), {"topic_created"}),
    ((replace(LED, topic_id="BBBB", at_ms=1), replace(LED, topic_id="AAAA")), set()),
]


@pytest.mark.parametrize(("elections", "expected"), OF_PARTITION)
def test_elections_since_then_explain_it(elections, expected):
    assert names(found(*elections)) == expected


def test_of_what_began_nobody_knows_when_any_time_without_a_leader_counts():
    nothing = {"stamps": (), "first_timestamp_ms": None, "last_timestamp_ms": None}
    assert names(found(replace(NONE, until_ms=1), UNCLEAN, dossier=ORPHAN, **nothing)) == {"leaderless"}


#: Changes of the coordinator's election, of the record that fenced its broker -> whether it led when it was fenced.
LEADS = [
    ({}, {}, True),
    ({"at_ms": NOON + 1}, {}, False),
    ({"at_ms": None}, {}, True),
    ({"until_ms": NOON}, {}, True),
    ({"until_ms": NOON - 1_000}, {}, True),
    ({"until_ms": NOON - 1_001}, {}, False),
    ({"at_ms": NOON + 1, "until_ms": NOON + 2}, {}, False),
    ({}, {"broker": 3}, False),
    ({}, {"at_ms": None}, False),
    ({"at_ms": 1}, {"at_ms": SINCE_MS - 1_000}, True),
    ({"at_ms": 1}, {"at_ms": SINCE_MS - 1_001}, False),
]


@pytest.mark.parametrize(("election", "fenced", "expected"), LEADS)
def test_a_coordinator_was_fenced_while_it_led(election, fenced, expected):
    case = found(led=(replace(LED, **election),), fenced=(replace(FENCED, **fenced),))
    assert ("fenced_coordinator" in names(case)) is expected


def test_the_newest_election_of_the_coordinator_shows_whether_it_leads():
    case = found(led=(replace(NONE, leader_epoch=3), LED))
    assert events(case)["coordinator_leaderless"] == LED
    assert events(found(led=(UNCLEAN, LED)))["coordinator_unclean"] == UNCLEAN
    assert events(found(led=(replace(UNCLEAN, at_ms=1), LED)))["coordinator_unclean"] is None


@pytest.mark.parametrize(
    ("elections", "leader", "expected"),
    [
        ((LED, NONE), "-1", True),
        ((NONE, LED), "-1", False),
        ((), "-1", False),
        ((LED, NONE), "1", False),
        ((LED, NONE), None, False),
    ],
)
def test_a_partition_has_no_leader_by_its_newest_election_and_by_nothing_newer(elections, leader, expected):
    copies = (replace(COPY, leader=leader, leader_basis=None if leader is None else "CAPTURE_JSON"),)
    assert is_leaderless(case_of(place={"copies": copies, "elections": elections})) is expected
    facts = replace(FACTS, coordinators=(replace(COORDINATOR, copies=copies, elections=elections),))
    assert is_coordinator_leaderless(case_of(facts=facts)) is expected


@pytest.mark.parametrize(("since_ms", "expected"), [(1_000, False), (1_001, True), (None, False)])
def test_an_election_is_later_than_a_decision_that_was_complete(since_ms, expected):
    at_ms = None if since_ms is None else DECISION.completed_ms + since_ms
    assert is_after_completion(replace(LED, at_ms=at_ms), case_of()) is expected
    assert not is_after_completion(LED, case_of(replace(DOSSIER, decisions=())))


AT = "2024-03-09T16:00:00Z: "
LEADS_NOW = "broker 2 became the leader of foo-5"
#: The case, the event -> its words.
WORDS = [
    (found(UNCLEAN), "unclean_election", f"{LEADS_NOW} without being in sync (leader epoch 4)"),
    (found(NONE), "leaderless", "foo-5 has no leader"),
    (found(led=(NONE,)), "coordinator_leaderless", "__transaction_state-3 has no leader"),
    (found(led=(LED,)), "coordinator_leaderless",
        "broker 2 became the leader of __transaction_state-3 (leader epoch 4)"),
    (found(led=(LED,), fenced=(FENCED,)), "fenced_coordinator",
        "broker 2, which led __transaction_state-3, was fenced"),
    (found(lowered=(LOWERED,)), "lowered_feature", "transaction.version was lowered from 2 to 1"),
    (found(replace(LED, topic_id="BBBB"), replace(LED, topic_id="AAAA", is_first=True)), "topic_created",
        "topic foo was created again"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "name", "words"), WORDS)
def test_an_event_is_told_with_its_place(case, name, words):
    said = shown(case)
    offset = events(case)[name].offset
    assert said[name] == f"offset {offset} of __cluster_metadata, {AT}{words}"
    assert all(not text for other, text in said.items() if other not in names(case))


def test_an_event_that_only_a_snapshot_shows_has_no_place():
    said = shown(found(replace(UNCLEAN, offset=None, at_ms=None)))["undated_unclean_election"]
    assert said.startswith(f"a snapshot of __cluster_metadata: {LEADS_NOW}")
    nobodys = replace(DOSSIER, claims=(replace(CLAIM, coordinator_partition=None),))
    assert events(found(led=(NONE,), dossier=nobodys))["coordinator_leaderless"] is None


METADATA = "__cluster_metadata"
BLOCK = ProducerIdBlock(first_producer_id=0, last_producer_id=999, broker_id=4, offset=2)
#: The case -> the records of the metadata log, each with its type.
RECORDS = [
    (found(UNCLEAN), [(7, "PARTITION_CHANGE_RECORD", f"{LEADS_NOW} without being in sync (leader epoch 4)")]),
    (found(replace(NONE, is_first=True)), [(7, "PARTITION_RECORD", "foo-5 has no leader")]),
    (found(led=(LED,), fenced=(FENCED,)), [
        (8, "brokerId=2 fenced", "broker 2, which led __transaction_state-3, was fenced")]),
    (found(lowered=(LOWERED,)), [(9, "FEATURE_LEVEL_RECORD", "transaction.version was lowered from 2 to 1")]),
    (found(replace(NONE, offset=None)), []),
    (found(replace(UNCLEAN, at_ms=None)), []),
]  # fmt: skip


def told(case):
    found = [each for each in evidence_records(case) if (each.topic, each.partition) == (METADATA, 0)]
    return [(each.offset, each.record, each.says) for each in found]


@pytest.mark.parametrize(("case", "expected"), RECORDS)
def test_records_of_the_metadata_log_are_told_with_their_type(case, expected):
    assert told(case) == expected


def test_the_block_of_its_producer_id_is_told():
    facts = replace(FACTS, blocks=(BLOCK,))
    given = (2, "PRODUCER_IDS_RECORD", "broker 4 was given producer ids 0 to 999")
    assert told(case_of(facts=facts)) == [given]
    assert told(case_of(facts=replace(FACTS, blocks=(replace(BLOCK, offset=None),)))) == []


def test_a_beginning_that_is_gone_is_said():
    copy = replace(COPY, read_from_offset=60)
    begun = evidence_records(case_of(place={"copies": (copy,)}, checks=()))[1]
    assert (begun.offset, "this record is gone" in begun.says) == (50, True)
