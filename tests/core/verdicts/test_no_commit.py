"""Safe to abort, by its third statement: what may lose a marker, and what makes a history whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_abort_proof import CHECK, only
from tests.support.dossier_samples import (
    BEFORE_MS,
    COMPACTED,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FOO,
    LOST,
    MARKER,
    MINUTE,
    NOON,
    ORPHAN,
    SPAN,
    failing,
    judged,
)
from txnlib.core.cluster_metadata import Election
from txnlib.core.copies import TruncatedEpoch
from txnlib.core.verdicts.dossier import MOST_MARKERS, MarkerElsewhere

CHANGED = {"copy": {"leader_epoch": 4}}
#: Nothing shows that no other leader followed.
BARE = {"copy": {"checkpoint_leader_epoch": None}}

#: Retention removed all before the first batch, which has the oldest stamp that is left.
DELETED = {
    "copy": {"log_start_offset": 50, "leader_epoch": 4},
    "span": {"stamps": (replace(SPAN.stamps[0], before_ms=None),), "markers": ()},
}


@pytest.mark.parametrize(
    ("changes", "said_ms", "said"),
    [
        (DELETED, NOON - MINUTE + 50, "the part of the log that may have had its marker is deleted"),
        (DELETED, NOON + MINUTE, "the part of the log that may have had its marker is deleted"),
        (DELETED, NOON + 6 * MINUTE + 1, "a COMMIT marker is due here"),
        ({"copy": {"log_start_offset": 40}}, NOON + 1_000, "a COMMIT marker is due here"),  # a marker in front is left
        ({"copy": {"first_offset": 50, "leader_epoch": 4}, "span": DELETED["span"]}, NOON, "is deleted"),
        ({"copy": {"gap_offset": 45, "leader_epoch": 4}}, NOON + MINUTE, "is deleted"),
        ({"copy": {"gap_offset": 45}}, NOON + MINUTE + 1, "a COMMIT marker is due here"),
    ],
)
def test_a_marker_that_may_have_been_deleted_is_not_called_due(changes, said_ms, said):
    """Only a decision that is younger than all that is left before the first batch must have its marker there."""
    lost = replace(LOST, start_ms=said_ms - 1, said_ms=said_ms, prepared_ms=said_ms, completed_ms=said_ms)
    known = (lost,) if "span" in changes else (DECISION, lost)
    row = judged(dossier={"decisions": known}, **changes)
    assert "NO_COMMIT_INCLUDES_IT" in failing(row)
    assert said in row.safety[2].says
    assert any("the marker is gone" in each.cause for each in row.causes) == (said == "a COMMIT marker is due here")


def compacted(**changes):
    """Nothing is left of the decisions, so that only the leader epochs can prove it."""
    changes = {"dossier": {"decisions": ()}, "claim": {"record_offset": 95}, "coordinator": COMPACTED} | changes
    return judged(**changes)


CUT = (TruncatedEpoch(leader_epoch=3, from_offset=60),)
TAIL = replace(COPY, source="raw:2", broker="2", is_judged=False, truncated=CUT, end_offset=70)
#: Changes beside a compacted history -> what is said.
LOSS = [
    ({"copy": {"leader_epoch": 4}}, "leaders changed since"),
    (
        {"copy": {"leader_epoch": None, "checkpoint_leader_epoch": None}, "facts": {"is_metadata_confirmed": True}},
        "is not known",
    ),
    ({"copy": {"checkpoint_leader_epoch": None}}, "leader-epoch-checkpoint"),
    ({"copy": {"checkpoint_leader_epoch": 4}}, "leaders changed since"),
    ({"span": {"checks": (SPAN.checks[0], replace(CHECK, partition_leader_epoch=None))}}, "is not known"),
    ({"place": {"copies": (COPY, TAIL)}}, "truncated tail above its first batch"),
    (
        {"span": {"markers_elsewhere": (MarkerElsewhere(is_truncated=True, broker="2", offset=60, type="COMMIT"),)}},
        "COMMIT marker at offset 60",
    ),
    ({"place": {"elections": (Election(leader_epoch=4, leader=2, is_unclean=True),)}}, "unclean election"),
    ({"place": {"elections": (Election(leader_epoch=4, leader=2, topic_id="AAAA"),)}}, "leaders changed since"),
    (
        {"facts": {"transaction_version": 2}, "claim": {"record_offset": 95, "producer_epoch": 6}},
        "under transactions v2",
    ),
    (
        {
            "facts": {"transaction_version": None, "kafka_version": "4.0.0"},
            "claim": {"producer_epoch": 6, "record_offset": 95},
        },
        "under transactions v2",
    ),
    (
        {"facts": {"transaction_version": 2}, "claim": {"owner": "ROTATED", "producer_epoch": 0, "record_offset": 95}},
        "under transactions v2",
    ),
    ({"dossier": {"decisions": (LOST,)}}, "a COMMIT marker is due here"),
]


@pytest.mark.parametrize(("changes", "said"), LOSS)
def test_a_marker_may_be_lost_where_nothing_excludes_it(changes, said):
    row = compacted(**changes)
    assert "NO_COMMIT_INCLUDES_IT" in failing(row)
    assert said in row.safety[2].says


def test_an_election_may_be_lost_in_a_damaged_metadata_log() -> None:
    """The checkpoint of the copy shows every leader epoch; without one, only the metadata log does."""
    hidden = {"facts": {"hides_elections": True, "is_metadata_confirmed": True}}
    assert compacted(**hidden).safe_to_abort
    row = compacted(**BARE, **hidden)
    assert not row.safe_to_abort
    assert "an election may be among them" in row.safety[2].says


def elected(*elections: Election, version: str = "3.9.1", confirmed: bool = True):
    facts = {"is_metadata_confirmed": confirmed, "kafka_version": version, "transaction_version": 0}
    return compacted(copy={"leader_epoch": 5}, place={"elections": elections}, facts=facts)


CLEAN = (Election(offset=7, leader_epoch=4, leader=2), Election(offset=9, leader_epoch=5, leader=1))
LEADERLESS = (Election(offset=7, leader_epoch=4, leader=None), Election(offset=9, leader_epoch=5, leader=1))


def test_clean_elections_lose_nothing_if_the_metadata_log_shows_all_of_them():
    assert "every election" in elected(*CLEAN).safety[2].says
    assert elected(*CLEAN).safe_to_abort
    assert not elected(*CLEAN, confirmed=False).safe_to_abort
    assert not elected(CLEAN[1]).safe_to_abort
    assert not elected(CLEAN[0]).safe_to_abort
    assert not elected(CLEAN[0], replace(CLEAN[1], is_unclean=True)).safe_to_abort
    assert not elected(CLEAN[0], replace(CLEAN[1], offset=None)).safe_to_abort, (
        "a snapshot shows who led, not since when or how"
    )


@pytest.mark.parametrize(("version", "is_safe"), [("3.9.1", True), ("4.1.1", True), ("4.2.0", False), (None, False)])
def test_coordinators_from_4_2_on_complete_without_the_marker_of_a_leaderless_partition(version, is_safe):
    assert elected(*LEADERLESS, version=version).safe_to_abort is is_safe
    assert elected(*CLEAN, version=version).safe_to_abort


def test_a_commit_whose_partitions_are_gone_is_no_commit_of_it_where_no_marker_can_be_lost():
    """In real logs, one that was written under the same leader left its marker, so it was a commit elsewhere."""
    gone = replace(LOST, partitions=None, first_record_offset=95, last_record_offset=95, decided_epoch=None)
    assert compacted(dossier={"decisions": (gone,)}).safe_to_abort
    assert not compacted(dossier={"decisions": (gone,)}, copy={"leader_epoch": 4}).safe_to_abort


#: Leader epoch of the stamps before the first batch, the newest one, end of a commit -> whether it surely ended before
#: the batch.
FORMER = [
    (3, 3, BEFORE_MS - 1, True),
    (4, 4, BEFORE_MS - 1, True),
    (3, 4, BEFORE_MS - 1, False),
    (3, 4, BEFORE_MS - 5 * MINUTE, False),
    (3, 4, BEFORE_MS - 5 * MINUTE - 1, True),
]


@pytest.mark.parametrize(("stamped", "newest", "committed", "is_before"), FORMER)
def test_the_clock_of_a_former_leader_is_no_nearer_than_five_minutes(stamped, newest, committed, is_before):
    """Only today's leader, which is the coordinator, too, has the coordinator's clock."""
    old = replace(
        DECISION, start_ms=committed - 60, said_ms=committed - 20, prepared_ms=committed - 20, completed_ms=committed
    )
    span = {"markers": (), "stamps": (replace(SPAN.stamps[0], leader_epoch=stamped),)}
    row = judged(dossier={"decisions": (old,)}, span=span, copy={"leader_epoch": newest, "log_start_offset": 20})
    assert row.safety[2].holds is is_before


def test_a_history_of_too_many_decisions_is_not_whole():
    elsewhere = [replace(DECISION, partitions=(), last_record_offset=200 + number) for number in range(MOST_MARKERS)]
    unmarked = {"span": {"markers": ()}} | CHANGED
    assert judged(dossier={"decisions": tuple(elsewhere[1:])}, **unmarked).safety[2].holds
    row = judged(dossier={"decisions": tuple(elsewhere)}, **unmarked)
    only(row, "NO_COMMIT_INCLUDES_IT", "only the newest 200 decisions")
    assert judged(dossier={"decisions": (DECISION, *elsewhere[1:])}, **CHANGED).safety[2].holds


def test_an_id_that_expired_between_transactions_ends_nothing():
    assert judged(claim={"is_superseded": True, "state": "CompleteCommit"}).safe_to_abort


def test_under_transactions_v2_the_next_epoch_is_the_end_of_exactly_this_one():
    ended = replace(
        LOST,
        outcome="ABORT",
        state="CompleteAbort",
        decided_epoch=6,
        transaction_version=2,
        client_transaction_version=2,
    )
    cut = {
        "coordinator": COMPACTED,
        "facts": {"transaction_version": 2},
        "claim": {"producer_epoch": 6, "record_offset": 95},
    }
    assert judged(dossier={"decisions": (ended,)}, **cut).safe_to_abort
    assert not judged(dossier={"decisions": (replace(ended, decided_epoch=7),)}, **cut).safe_to_abort
    assert not judged(dossier={"decisions": (replace(ended, transaction_version=1),)}, **cut).safe_to_abort
    for client in (None, 0, 1):  # its coordinator raised the epoch to abort one of several
        assert not judged(
            dossier={"decisions": (replace(ended, client_transaction_version=client),)}, **cut
        ).safe_to_abort
    committed = replace(ended, outcome="COMMIT", state="CompleteCommit")
    assert not judged(dossier={"decisions": (committed,)}, **cut).safe_to_abort


# What makes a history whole, although compaction removed records.

WHOLE = [
    ({"coordinator": replace(COMPACTED, hole_offset=62)}, True),
    ({"coordinator": replace(COMPACTED, hole_offset=63)}, True),  # its last record, which compaction keeps
    ({"coordinator": replace(COMPACTED, hole_offset=63), "claim": {"record_offset": 95}}, False),
    (
        {"coordinator": replace(COMPACTED, hole_offset=10), "claim": {"record_offset": 95, "is_first_assigned": True}},
        True,
    ),
    (
        {"coordinator": replace(COMPACTED, hole_offset=63), "claim": {"record_offset": 95, "is_first_assigned": True}},
        False,
    ),
    ({"coordinator": replace(COMPACTED, hole_ms=NOON - MINUTE), "claim": {"record_offset": 95}}, True),
    ({"coordinator": replace(COMPACTED, hole_ms=NOON), "claim": {"record_offset": 95}}, False),
    ({"coordinator": replace(COORDINATOR, last_offset=98), "claim": {"record_offset": 95}}, False),
    ({"coordinator": replace(COORDINATOR, last_offset=None), "claim": {"record_offset": 95}}, False),
]


@pytest.mark.parametrize(("changes", "is_whole"), WHOLE)
def test_a_history_is_whole_from_a_witness_before_the_first_batch_on(changes, is_whole):
    assert judged(**changes, **BARE).safe_to_abort is is_whole


def test_a_marker_that_can_be_of_no_other_decision_is_its_own_whatever_the_clocks_say():
    far = {"copy": {"leader": "1", "leader_epoch": 4}, "coordinator_copy": {"leader": "2"}}
    early = (replace(MARKER, ms=NOON - 3 * MINUTE),)
    assert judged(span={"markers": early}, **far).safe_to_abort
    second = replace(DECISION, first_record_offset=64, last_record_offset=66, partitions=(FOO,))
    assert not judged(dossier={"decisions": (DECISION, second)}, span={"markers": early}, **far).safe_to_abort


UNCLEAN = Election(offset=9, at_ms=NOON + MINUTE, leader=2, leader_epoch=4, is_unclean=True)
#: When a coordinator partition had an unclean election -> whether a COMMIT of the open records may be lost.
COORDINATOR_ELECTIONS = [
    (UNCLEAN, True),
    (replace(UNCLEAN, at_ms=BEFORE_MS), True),
    (replace(UNCLEAN, at_ms=BEFORE_MS - 5 * MINUTE), True),
    (replace(UNCLEAN, at_ms=BEFORE_MS - 5 * MINUTE - 1), False),
    (replace(UNCLEAN, at_ms=None), True),
    (replace(UNCLEAN, at_ms=NOON - 10 * MINUTE), False),
    (replace(UNCLEAN, is_unclean=False), False),
]


@pytest.mark.parametrize("dossier", [DOSSIER, ORPHAN])
@pytest.mark.parametrize(("election", "is_lost"), COORDINATOR_ELECTIONS)
def test_an_unclean_election_of_a_coordinator_may_have_lost_a_commit(election, is_lost, dossier):
    """Neither the history nor a missing marker shows what was decided."""
    row = judged(dossier=dossier, coordinator={"elections": (election,)})
    assert row.safe_to_abort is not is_lost
    if is_lost:
        only(row, "NO_COMMIT_INCLUDES_IT", "an unclean election of a partition of __transaction_state")


@pytest.mark.parametrize("ms", [MARKER.ms, LOST.said_ms - 300, None])
def test_a_marker_that_was_sent_again_is_not_of_the_next_commit(ms):
    """Its coordinator did not get the answer to the first one. Between two brokers, tolerance of clocks lets it fit
    both."""
    markers = (MARKER, replace(MARKER, offset=41, ms=ms, first_offset=None))
    apart = {"coordinator_copy": {"leader": "2"}, **CHANGED}
    row = judged(dossier={"decisions": (DECISION, LOST)}, span={"markers": markers}, **apart)
    assert "NO_COMMIT_INCLUDES_IT" in failing(row)
    # On one clock, it is a minute behind the first one, and so is the next decision. No other one fits.
    own = (MARKER, replace(MARKER, offset=41, ms=LOST.said_ms + 10, first_offset=None))
    assert judged(dossier={"decisions": (DECISION, LOST)}, span={"markers": own}, **apart).safe_to_abort


def test_a_due_marker_is_described_by_its_fields():
    row = judged(dossier={"decisions": (DECISION, LOST)})
    fields = "type COMMIT, producer id 132, producer epoch 5, coordinator epoch 19, transaction version not known"
    assert fields in row.do_not_abort_because
    seen = judged(dossier={"decisions": (DECISION, LOST)}, span={"coordinator_epoch": 99})
    assert fields.replace("coordinator epoch 19", "coordinator epoch 99") in seen.do_not_abort_because, (
        "a lower one is refused"
    )
    versioned = replace(LOST, transaction_version=1, decided_epoch=None)
    row = judged(dossier={"decisions": (DECISION, versioned)}, coordinator={"newest_coordinator_epoch": None})
    assert "producer epoch not known, coordinator epoch 19, transaction version 1" in row.do_not_abort_because


@pytest.mark.parametrize(("end", "is_safe"), [(50, True), (51, False)])
def test_a_truncated_tail_counts_from_the_first_batch_on(end, is_safe):
    assert compacted(place={"copies": (COPY, replace(TAIL, end_offset=end))}).safe_to_abort is is_safe
    # The tail of another copy that ends nowhere is below every batch.
    assert compacted(place={"copies": (COPY, replace(TAIL, end_offset=None))}).safe_to_abort


def test_elections_up_to_the_epoch_of_the_first_batch_do_not_count():
    unclean = Election(leader_epoch=3, leader=2, is_unclean=True)
    assert compacted(
        place={"elections": (unclean, Election(leader=None), Election(leader_epoch=2, leader=None))}
    ).safe_to_abort
    assert elected(unclean, *CLEAN).safe_to_abort


def test_the_witness_of_an_unchanged_leader_epoch_says_where_it_was_seen():
    kept = "leader epoch 3 of its first batch is still the newest in the log and in"
    assert compacted().safety[2].witnesses[0] == f"{kept} its checkpoint"
    bare = compacted(**BARE, facts={"is_metadata_confirmed": True})
    assert bare.safety[2].witnesses[0] == f"{kept} __cluster_metadata"
