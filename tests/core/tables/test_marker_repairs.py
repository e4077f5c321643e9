"""The partitions without their marker: what became of the records, and which facts each repair follows from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.rows import TransactionKey
from txnlib.core.tables.marker_repairs import (
    CoordinatorEpoch,
    CoordinatorKey,
    CopyWithMarker,
    DecidedTransaction,
    DueMarker,
    FoundMarker,
    LackingPartition,
    MarkerRepair,
    RecordsOfProducer,
    SpanOfProducer,
    marker_repairs,
)

DECIDED, COMPLETED = 1_000, 2_000
MISSING = LackingPartition("id-1", 3, 1, 4004, "orders", 0, "COMMIT", DECIDED, "MISSING", None, None, "OPEN")
OF = DecidedTransaction(
    "id-1",
    3,
    1,
    producer_epoch=6,
    decided_epoch=7,
    transaction_version=None,
    cluster_transaction_version=2,
    completed_ms=COMPLETED,
)
NEWEST = SpanOfProducer(
    "orders", 0, 4004, 90, DECIDED - 10, None, None, None, is_last=True, seen_epoch=7, seen_coordinator_epoch=11
)
LATER = replace(NEWEST, marker_offset=95, marker_type="ABORT", ended_ms=DECIDED + 1, is_last=False, seen_epoch=None)
DUE = DueMarker("orders", 0, 4004, 7, "COMMIT", DECIDED)


def repairs(
    *lacking: LackingPartition,
    of: DecidedTransaction = OF,
    spans: Sequence[SpanOfProducer] = (),
    found: Sequence[FoundMarker] = (),
    epochs: Sequence[CoordinatorEpoch] = (),
    coverage: Sequence[CoverageRow] = (),
) -> list[MarkerRepair]:
    def decided(keys: Sequence[TransactionKey]) -> Sequence[DecidedTransaction]:
        return [replace(of, transaction_number=key.transaction_number) for key in keys]

    def spans_of(records: Sequence[RecordsOfProducer]) -> Sequence[SpanOfProducer]:
        return spans

    def copies(markers: Sequence[DueMarker]) -> Sequence[FoundMarker]:
        assert markers == [
            replace(DUE, partition=each.partition, control_type=each.decided_outcome) for each in lacking
        ]
        return found

    def newest(coordinators: Sequence[CoordinatorKey]) -> Sequence[CoordinatorEpoch]:
        assert list(coordinators) == [CoordinatorKey(3)] * bool(lacking)
        return epochs

    return list(
        marker_repairs(lacking, coverage, decided, spans_of, copies, newest, as_of_ms=9_000, kafka_version="3.9.1")
    )


def test_nothing_is_lacking_in_most_audits() -> None:
    assert repairs() == []


def test_records_that_are_still_open() -> None:
    (row,) = repairs(replace(MISSING, first_offset=90), spans=[NEWEST])
    assert (row.fate, row.first_offset, row.ended_at_offset) == ("OPEN", 90, None)
    assert (row.marker_epoch, row.transaction_version, row.seen_epoch, row.seen_coordinator_epoch) == (7, 2, 7, 11)


def test_records_that_a_later_marker_ended() -> None:
    later = replace(LATER, marker_offset=99, marker_type="COMMIT")
    (row,) = repairs(MISSING, spans=[later, LATER, replace(LATER, marker_offset=1, first_offset=None), NEWEST])
    assert (row.fate, row.first_offset, row.ended_at_offset) == ("ABORT", 90, 95)
    (row,) = repairs(MISSING, spans=[replace(LATER, marker_type=None)])
    assert (row.fate, row.ended_at_offset) == ("NONE", 95), "its type was not printed"


@pytest.mark.parametrize(
    ("change", "completed_ms", "is_of_it"),
    [
        ({"ended_ms": DECIDED}, COMPLETED, False),
        ({"ended_ms": None}, COMPLETED, False),
        ({"began_ms": COMPLETED}, COMPLETED, True),
        ({"began_ms": COMPLETED + 1}, COMPLETED, False),
        ({"began_ms": None}, COMPLETED, False),
        ({"began_ms": DECIDED}, None, True),
        ({"began_ms": DECIDED + 1}, None, False),
    ],
)
def test_only_records_from_before_that_were_ended_after_the_decision_are_its_records(
    change: dict[str, int | None], completed_ms: int | None, is_of_it: bool
) -> None:
    (row,) = repairs(MISSING, of=replace(OF, completed_ms=completed_ms), spans=[replace(LATER, **change)])  # type: ignore[arg-type]
    assert row.fate == ("ABORT" if is_of_it else "NONE")


ABORTED = replace(MISSING, transaction_number=2, decided_outcome="ABORT", first_offset=90)


def test_open_records_of_two_decisions_get_no_marker() -> None:
    mine = replace(MISSING, first_offset=90)
    requests = [(row.decided_outcome, row.request is None) for row in repairs(mine, ABORTED, spans=[NEWEST])]
    assert requests == [("COMMIT", True), ("ABORT", True)]
    same = replace(ABORTED, decided_outcome="COMMIT")
    assert [row.request is None for row in repairs(mine, same, spans=[NEWEST])] == [False, False]
    elsewhere = replace(ABORTED, partition=1)
    (row, _) = repairs(mine, replace(elsewhere, partition=1), spans=[NEWEST])
    assert row.request is not None
    contradicting = replace(ABORTED, marker="CONTRADICTING", marker_offset=95, outcome="COMMIT")
    assert repairs(mine, contradicting, spans=[NEWEST])[0].request is not None


def test_a_transaction_without_records_gets_no_marker_while_its_producer_has_others_open() -> None:
    (row,) = repairs(MISSING, spans=[NEWEST])
    assert (row.fate, row.request) == ("NONE", None)
    assert "from offset 90 on" in row.tool
    (row,) = repairs(MISSING, spans=[replace(NEWEST, first_offset=None)])
    assert row.request is not None


#: Epochs of a span (first batch, marker), transaction version -> whether it may be of a transaction that was decided
#: with epoch 7.
@pytest.mark.parametrize(
    ("first", "marker", "version", "may_be_of_it"),
    [
        (None, None, None, True),
        (7, 7, None, True),
        (8, 8, None, False),
        (6, 6, None, True),
        (5, 6, None, True),
        (5, 5, None, False),
        (6, 7, 2, True),
        (7, 8, 2, False),
        (5, 6, 2, False),
        (5, 8, 2, True),
    ],
)
def test_records_of_other_epochs_are_of_another_transaction(
    first: int | None, marker: int | None, version: int | None, may_be_of_it: bool
) -> None:
    later = replace(LATER, first_epoch=first, marker_epoch=marker)
    (row,) = repairs(MISSING, of=replace(OF, transaction_version=version), spans=[later])
    assert row.fate == ("ABORT" if may_be_of_it else "NONE")


def test_records_that_another_marker_ended_against_the_decision() -> None:
    contradicting = replace(MISSING, marker="CONTRADICTING", marker_offset=71, first_offset=70, outcome="ABORT")
    (row,) = repairs(contradicting)
    assert (row.fate, row.first_offset, row.ended_at_offset, row.request) == ("ABORT", 70, 71, None)
    (row,) = repairs(replace(contradicting, outcome=None))
    assert row.fate == "NONE", "the type of that marker was not printed"


def test_a_partition_that_does_not_know_the_producer_has_seen_no_epoch() -> None:
    (row,) = repairs(MISSING, spans=[LATER])
    assert (row.seen_epoch, row.seen_coordinator_epoch) == (None, None)


def test_the_epoch_of_the_transaction_is_due_where_its_decision_has_none() -> None:
    of = replace(OF, decided_epoch=None, producer_epoch=7, transaction_version=1)
    (row,) = repairs(MISSING, of=of)
    assert (row.marker_epoch, row.transaction_version) == (7, 1)


def test_copies_that_have_the_marker_are_named_once() -> None:
    old, older = CopyWithMarker("raw:2", 33), CopyWithMarker("raw:1", 33)
    other = FoundMarker(replace(DUE, partition=1), old)
    (row,) = repairs(MISSING, found=[FoundMarker(DUE, old), FoundMarker(DUE, older), FoundMarker(DUE, old), other])
    assert row.copies == (older, old)
    (row,) = repairs(MISSING, found=[other])
    assert row.copies is None


def test_the_newest_coordinator_epoch_of_records_and_copies_counts() -> None:
    copies = [
        CoverageRow(TRANSACTION_STATE_TOPIC, 3, leader_epoch=6),
        CoverageRow("orders", 3, leader_epoch=99),
        CoverageRow(TRANSACTION_STATE_TOPIC, 3, leader_epoch=None),
    ]
    assert [row.coordinator_epoch for row in repairs(MISSING, epochs=[CoordinatorEpoch(3, 4)], coverage=copies)] == [6]
    assert [row.coordinator_epoch for row in repairs(MISSING, epochs=[CoordinatorEpoch(3, 8)], coverage=copies)] == [8]
    assert [row.coordinator_epoch for row in repairs(MISSING)] == [None]
