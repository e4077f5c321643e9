"""Unended transactions that list partitions of deleted topics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow
from txnlib.core.findings.coordinator_findings import CHECKPOINTED_WITHIN_MS, deleted_partitions, listed_deleted
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.rows import TopicPartition

NOW = 1_700_000_000_000
GONE = [CoverageRow("gone", partition, is_gone=True, checkpointed_at_ms=NOW) for partition in (0, 1)]
LISTED = tuple(TopicPartition(*each) for each in [("gone", 1), ("gone", 0), ("orders", 0)])
OLD = NOW - CHECKPOINTED_WITHIN_MS - 1


@pytest.mark.parametrize(
    ("listed", "written_ms", "says"),
    [
        (LISTED, OLD, "Ongoing with gone-0, gone-1"),
        (LISTED[:1], OLD, "Ongoing with gone-1"),
        (LISTED[2:], OLD, None),
        (LISTED, OLD + 1, None),
        (LISTED, None, None),
        (LISTED, -1, None),
    ],
    ids=["several", "one", "another topic", "younger than the checkpoints", "no time", "a time that no clock shows"],
)
def test_an_unended_transaction_that_lists_it_is_found(
    listed: tuple[TopicPartition, ...], written_ms: int | None, says: str | None
) -> None:
    assert listed_deleted("Ongoing", listed, written_ms, deleted_partitions(GONE, [])) == says


def test_of_many_partitions_the_first_are_named() -> None:
    gone = {("gone", partition): NOW for partition in range(9)}
    listed = [TopicPartition("gone", partition) for partition in range(9)]
    assert (
        listed_deleted("Ongoing", listed, OLD, gone) == "Ongoing with gone-0, gone-1, gone-2, gone-3, gone-4 and 4 more"
    )


OLDER = PartitionAssignment(topic="again", topic_id="A", is_current=False, until_ms=NOW)


@pytest.mark.parametrize(
    ("assignments", "before_ms"),
    [
        ([OLDER], NOW - CLOCKS_DIFFER_MS),
        ([OLDER, replace(OLDER, topic_id="B", is_current=True, until_ms=None)], NOW - CLOCKS_DIFFER_MS),
        ([OLDER, replace(OLDER, is_current=True, until_ms=None)], None),
        ([replace(OLDER, until_ms=None)], None),
    ],
    ids=["deleted", "created again", "still there", "no time"],
)
def test_the_metadata_log_shows_up_to_when_a_topic_existed(
    assignments: list[PartitionAssignment], before_ms: int | None
) -> None:
    assert deleted_partitions([], assignments).get(("again", 0)) == before_ms


def test_the_later_proof_counts() -> None:
    by_metadata = replace(OLDER, topic="gone")
    assert deleted_partitions(GONE, [by_metadata])["gone", 0] == NOW - CLOCKS_DIFFER_MS
