"""The records that a verdict rests on, in words."""

from __future__ import annotations

import pytest

from tests.core.verdicts.test_verdict import COMPLETE, MARKED, NOBODY, ONGOING, PARTITION
from tests.support.cases import case, replace
from txnlib.core.verdicts.evidence_records import evidence_records

MARKER = "endTxnMarker: COMMIT producerEpoch: 5 coordinatorEpoch: 19"
START = "producerId: 132 producerEpoch: 5 isTransactional: true"


def told(partition, coordinator):
    return [(r.topic, r.partition, r.offset, r.record, r.says) for r in evidence_records(case(partition, coordinator))]


def test_the_marker_the_start_and_the_last_record_of_the_id_are_told_in_order():
    assert told(MARKED, ONGOING) == [
        ("foo", 5, 29000, MARKER, "the producer's last marker in this partition"),
        ("foo", 5, 29384, START, "the transaction begins here"),
        (
            "__transaction_state",
            3,
            77,
            "transactionalId=bar state=Ongoing producerEpoch:5",
            "the last record of its transactional id lists this partition",
        ),
    ]


def test_what_is_not_there_is_not_told():
    assert told(PARTITION, NOBODY) == [("foo", 5, 29384, START, "the transaction begins here")]
    assert len(told(PARTITION, replace(COMPLETE, coordinator_partition=None))) == 1


@pytest.mark.parametrize(
    ("on_partition", "at_coordinator", "words"),
    [
        ({"marker_type": None}, {}, "endTxnMarker: not printed producerEpoch: 5"),
        ({"marker_coordinator_epoch": None}, {}, "coordinatorEpoch: none"),
        ({"is_start_exact": False}, {}, "the first batch captured; it may begin earlier"),
        ({}, {"state": None, "producer_epoch": None}, "transactionalId=bar <DELETE> producerEpoch:none"),
        ({}, {}, "does not list this partition"),
    ],
)
def test_what_is_not_known_is_said(on_partition, at_coordinator, words):
    records = told(replace(MARKED, **on_partition), replace(COMPLETE, **at_coordinator))
    assert words in " | ".join(f"{record} {says}" for *_, record, says in records)
