"""The partitions without their marker: what became of the records, and which facts each repair follows from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.reports.marker_repairs import (
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
from txnlib.core.rows import TransactionKey

DECIDED, COMPLETED = 1_000, 2_000
MISSING = LackingPartition("id-1", 3, 1, 4004, "orders", 0, "COMMIT", DECIDED, "MISSING", None, None, "OPEN")
OF = DecidedTransaction(
    "id-1", 3, 1, producer_epoch=6, decided_epoch=7, transaction_version=None, cluster_transaction_version=2, completed_ms=COMPLETED
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
        return [of] if TransactionKey("id-1", 3, 1) in keys else []

    def spans_of(records: Sequence[RecordsOfProducer]) -> Sequence[SpanOfProducer]:
        return spans

    def copies(markers: Sequence[DueMarker]) -> Sequence[FoundMarker]:
        assert list(markers) == [DUE] * len(lacking)
        return found

    def newest(coordinators: Sequence[CoordinatorKey]) -> Sequence[CoordinatorEpoch]:
        assert list(coordinators) == [CoordinatorKey(3)] * bool(lacking)
        return epochs

    return list(marker_repairs(lacking, coverage, decided, spans_of, copies, newest, as_of_ms=9_000, kafka_version="3.9.1"))


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
    old, older = CopyWithMarker("2", "raw:2", 33), CopyWithMarker("1", "raw:1", 33)
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
