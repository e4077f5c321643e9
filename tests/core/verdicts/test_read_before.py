"""Committed records that earlier audits read, and tonight's log lacks."""

from __future__ import annotations

import pytest

from txnlib.core.cluster_metadata import Election
from txnlib.core.copies import CoverageRow, LeaderEpoch, TruncatedEpoch
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.coordinators import CoordinatorPartition, ReadBefore


def lost(read, *epochs, topic_id="a", read_topic_id="a"):
    """What is lost of a log that was read in leader epoch 3 up to an offset. `epochs`: each with its first offset."""
    begun = tuple(LeaderEpoch(leader_epoch=epoch, from_offset=at) for epoch, at in epochs)
    copy = CoverageRow(
        TRANSACTION_STATE_TOPIC, 0, "b1", is_judged=True, topic_id=topic_id, leader_epochs=begun, status="COMPLETE"
    )
    before = ReadBefore(partition=0, topic_id=read_topic_id, leader_epoch=3, end_offset=read)
    return CoordinatorPartition(copies=(copy,), read_before=(before,)).lost_committed


@pytest.mark.parametrize(
    ("read", "epochs", "is_lost"),
    [
        (100, [(3, 0)], False),
        (100, [(3, 0), (4, 100)], False),
        (100, [(3, 0), (4, 99)], True),
        (100, [(3, 0), (5, 99), (6, 120)], True),
        (100, [(3, 0), (4, 120)], False),
        (100, [(1, 0), (2, 50)], False),  # an older copy: it has no newer epoch
        (100, [], False),
    ],
)
def test_a_newer_leader_wrote_others_in_place_of_committed_records(read, epochs, is_lost):
    assert (lost(read, *epochs) is not None) == is_lost


def test_it_says_what_was_read_and_where_the_newer_leader_began():
    assert lost(100, (3, 0), (5, 60), (4, 80)) == (
        "an earlier audit read it up to offset 99, below the high watermark, and leader epoch 5 begins at offset 60"
    )


@pytest.mark.parametrize(("now", "then", "is_lost"), [("a", "b", False), (None, "b", True), ("a", None, True)])
def test_another_topic_of_that_name_lost_nothing(now, then, is_lost):
    assert (lost(100, (4, 50), topic_id=now, read_topic_id=then) is not None) == is_lost


STAMP_MS = 1_710_000_000_000
CUT = {
    "truncated": (TruncatedEpoch(leader_epoch=3, from_offset=40),),
    "newest_stamp_ms": STAMP_MS,
    "high_watermark": 40,
}
#: Changes of a copy whose tail a newer leader truncated, until when its broker lived, elections of the metadata log ->
#: whether the tail may have been committed. A broker notes high watermarks every five seconds.
TAILS = [
    ({}, STAMP_MS + 5_001, (), False),
    ({}, STAMP_MS + 5_000, (), True),
    ({}, None, (), True),
    ({"high_watermark": 41}, STAMP_MS + 5_001, (), True),
    ({"high_watermark": None}, STAMP_MS + 5_001, (), True),
    ({"newest_stamp_ms": None}, STAMP_MS + 5_001, (), True),
    ({"truncated": ()}, None, (), False),
    ({"high_watermark": 41}, None, (Election(offset=1, at_ms=1, leader=1, leader_epoch=1),), False),
    ({"high_watermark": 41}, None, (Election(offset=1, at_ms=1, leader=1, leader_epoch=1, is_first=True),), True),
    ({"high_watermark": 41}, None, (Election(offset=None, at_ms=1, leader=1, leader_epoch=1),), True),
]


@pytest.mark.parametrize(("changes", "lived_ms", "elections", "is_lost"), TAILS)
def test_a_tail_that_was_truncated_may_have_been_committed(changes, lived_ms, elections, is_lost):
    copy = CoverageRow(TRANSACTION_STATE_TOPIC, 0, "b1", broker="1", status="COMPLETE", **{**CUT, **changes})
    whole = CoverageRow(TRANSACTION_STATE_TOPIC, 0, "b2", broker="2", status="COMPLETE", is_judged=True)
    lived = {} if lived_ms is None else {"1": lived_ms}
    log = CoordinatorPartition(copies=(whole, copy), lived_ms=lived, elections=elections)
    said = "broker 1 wrote records from offset 40 on, which a newer leader truncated" if is_lost else None
    assert log.lost_tail == said
    of_decisions = CoordinatorPartition(
        copies=(whole, copy), lived_ms=lived, elections=elections, truncates_decisions=True
    )
    assert [each.why for each in of_decisions.losses] == ([said] if is_lost else [])
    assert not log.losses
