"""Committed records that earlier audits read, and tonight's log lacks."""

from __future__ import annotations

import pytest

from txnlib.core.copies import CoverageRow, LeaderEpoch
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
