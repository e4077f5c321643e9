"""Lost markers, and records that are older than their transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.support.frames import frame
from tests.support.rules import selected
from txnlib.core.findings.transaction_findings import (
    UNMARKED_PARTITIONS,
    EarlyWrite,
    UnmarkedPartition,
    of_early_writes,
    of_unmarked,
)
from txnlib.spark.schemas import TABLES

TS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("outcome", "word", "severity"), [("ABORT", "Abort", "WARNING"), ("COMMIT", "Commit", "CRITICAL")]
)
def test_a_lost_abort_marker_is_less_severe_because_an_abort_by_hand_repairs_that(
    outcome: str, word: str, severity: str
) -> None:
    (row,) = of_unmarked([UnmarkedPartition("orders", 0, 7, "pay", 4, outcome, TS)])
    assert (row.transaction_number, row.severity, row.evidence) == (
        4,
        severity,
        f"Complete{word} at 2023-11-14 22:13:20.000Z, no marker",
    )


EARLY = EarlyWrite(
    "orders",
    0,
    7,
    "pay",
    4,
    12,
    first_timestamp_ms=TS - 5,
    is_broker_clock=False,
    stamp_ms=TS - 1,
    began_ms=TS + 100,
    start_ms=TS,
)


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, "22:13:19.999Z"),
        ({"stamp_ms": TS}, None),
        ({"stamp_ms": None}, None),
        ({"is_broker_clock": True}, "22:13:19.995Z"),
        ({"is_broker_clock": True, "first_timestamp_ms": 0}, None),
        ({"is_broker_clock": None}, "22:13:19.999Z"),
    ],
)
def test_only_a_brokers_clock_proves_that_records_are_older_than_their_transaction(
    changed: dict[str, object], shown: str | None
) -> None:
    says = f"written before 2023-11-14 {shown} by the broker's clock; the transaction began at 2023-11-14 22:13:20.100Z"
    assert [row.evidence for row in of_early_writes([replace(EARLY, **changed)])] == ([says] if shown else [])


@pytest.mark.parametrize(("minutes", "is_lost"), [(0, True), (10, False), (-10, True)])
def test_a_copy_that_is_older_than_the_end_lacks_no_marker(spark, minutes, is_lost):
    """A coordinator whose clock is ten minutes behind, as measured, completed it after the partition was copied."""
    listed = {"topic": "orders", "partition": 0, "is_followed": False, "clock_offset_ms": minutes * 60_000}
    listed |= {"clocks_differ_ms": 1_000}
    fields = TABLES["transactions"]["markers"].dataType.elementType.names
    transaction = {"transactional_id": "pay", "coordinator_partition": 3, "transaction_number": 1, "producer_id": 7}
    transaction |= {"start": at(-30), "completed": at(-13), "markers": [tuple(listed.get(name) for name in fields)]}
    older = {"topic": "orders", "partition": 0, "producer_id": 8, "marker_offset": 5, "marker_ms": TS - 90 * 60_000}
    copy = {"topic": "orders", "partition": 0, "is_judged": True, "is_decoded": True, "known_until": at(-5)}
    copy |= {"log_start_offset": 0, "read_from_offset": 0}
    found = selected(
        UNMARKED_PARTITIONS,
        transactions=frame(spark, TABLES["transactions"], transaction),
        producer_spans=frame(spark, TABLES["producer_spans"], older),
        coverage=frame(spark, TABLES["coverage"], copy),
    )
    assert len(found) == is_lost


def at(minutes: int) -> datetime:
    return datetime.fromtimestamp(TS / 1000 + 60 * minutes, UTC)
