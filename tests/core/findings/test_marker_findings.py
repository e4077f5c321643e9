"""Findings about markers without their decisions, and copies that differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txnlib.core.findings.copy_findings import CopiedRow, DifferingCopies, of_copies
from txnlib.core.findings.marker_findings import Decision, Marker, OddMarker, of_markers
from txnlib.core.findings.transaction_findings import EarlyWrite, UnmarkedPartition, of_early_writes, of_unmarked
from txnlib.core.findings.transaction_index_findings import IndexedAbort, UnindexedAbort, of_indexed, of_unindexed
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS

TS = 1_700_000_000_000
HOUR = 3_600_000
DECISION = Decision(
    transactional_id="pay", transaction_number=4, type="COMMIT", epoch=3, start_ms=TS - 5_000, decided_ms=TS,
    completed_ms=TS + 20, coordinator_epoch=None,
)  # fmt: skip
MARKER = Marker(
    type="COMMIT",
    epoch=3,
    coordinator_epoch=None,
    ms=TS + 500,
    ends_data=False,
    before=DECISION,
    after=None,
    is_first=False,
    complete_since_ms=None,
    known_until_ms=None,
)


def test_the_evidence_about_a_marker_shows_the_decisions_beside_it() -> None:
    odd = OddMarker("orders", 0, 7, "pay", None, 20, None, MARKER)
    ended = replace(
        odd,
        first_offset=12,
        marker=replace(MARKER, type="ABORT", ends_data=True, before=None, after=DECISION, ms=TS - 900),
    )
    alone = replace(odd, marker=replace(MARKER, epoch=9, complete_since_ms=0, known_until_ms=TS + 5_000_000))
    unexplained, split = of_markers([alone, odd, replace(odd, marker=replace(MARKER, is_first=True)), ended])
    decision = '{"transactional_id":"pay","transaction_number":4,"type":"COMMIT","epoch":3,'
    decision += f'"start_ms":{TS - 5_000},"decided_ms":{TS},"completed_ms":{TS + 20}}}'
    assert (unexplained.transaction_number, split.transaction_number) == (None, 4)
    assert (unexplained.name, unexplained.evidence) == (
        "MARKER_WITHOUT_DECISION",
        f"COMMIT marker of epoch 9 ended nothing; the decision before: {decision}",
    )
    assert (split.name, split.evidence) == (
        "SPLIT_OUTCOME",
        f"ABORT marker of epoch 3 ended the records from offset 12; the decision after: {decision}",
    )


@pytest.mark.parametrize(
    ("kind", "epoch", "severity"), [("COMMIT", 9, "ERROR"), ("ABORT", 9, "WARNING"), (None, 9, "WARNING")]
)
def test_only_an_abort_may_be_one_by_hand(kind: str | None, epoch: int, severity: str) -> None:
    marker = replace(MARKER, type=kind, epoch=epoch, complete_since_ms=0, known_until_ms=TS + 5_000_000)
    (row,) = of_markers([OddMarker("orders", 0, 7, "pay", None, 20, None, marker)])
    assert (row.name, row.severity) == ("MARKER_WITHOUT_DECISION", severity)


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


STRAY = replace(
    MARKER,
    type="ABORT",
    ms=TS + UNKNOWN_CLOCKS_DIFFER_MS + 1,
    ends_data=True,
    before=None,
    ongoing=replace(DECISION, type="OPEN", start_ms=TS, completed_ms=None),
    known_until_ms=TS + HOUR,
    clocks_differ_ms=UNKNOWN_CLOCKS_DIFFER_MS,
)
SOON = {"ms": TS + CLOCKS_DIFFER_MS + 1}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        ({}, True),
        ({"ms": TS + UNKNOWN_CLOCKS_DIFFER_MS}, False),
        ({"ms": TS + HOUR - UNKNOWN_CLOCKS_DIFFER_MS}, False),
        ({"known_until_ms": None}, False),
        ({"epoch": 2}, False),
        ({"type": "COMMIT"}, False),
        ({"ends_data": False}, False),
        ({"ongoing": None}, False),
        (SOON, False),
        (SOON | {"clocks_differ_ms": CLOCKS_DIFFER_MS}, True),
        ({"ms": TS + CLOCKS_DIFFER_MS, "clocks_differ_ms": CLOCKS_DIFFER_MS}, False),
    ],
)
def test_an_abort_inside_an_ongoing_transaction_is_found_beyond_the_difference_of_the_clocks(
    changed: dict[str, object], is_found: bool
) -> None:
    rows = list(of_markers([OddMarker("orders", 0, 7, "pay", None, 20, 12, replace(STRAY, **changed))]))
    assert [(row.name, row.offset) for row in rows] == [("ABORTED_WHILE_ONGOING", 20)] * is_found
    assert all(
        row.evidence.startswith("ended the records from offset 12; the transaction began at 2023-11-14 22:")
        for row in rows
    )


def test_the_first_three_copies_of_a_batch_are_shown() -> None:
    copies = tuple(CopiedRow(f"raw:{number}", f'{{"producer_id":{number}}}') for number in (4, 2, 3, 1))
    (one,) = of_copies([DifferingCopies("orders", 0, 5, 7, copies[:1], 1)])
    assert one.evidence == 'raw:4 {"producer_id":4}'
    (many,) = of_copies([DifferingCopies("orders", 0, 5, 7, copies, 3)])
    assert [part.partition(" ")[0] for part in many.evidence.split("; ")] == ["raw:1", "raw:2", "raw:3", "and"]
    assert many.evidence.endswith("; and 2 more offsets")


def test_aborts_on_which_log_and_index_disagree() -> None:
    (lost,) = of_unindexed([UnindexedAbort("orders", 0, 7, 20)])
    assert (lost.name, lost.offset, lost.evidence) == (
        "TRANSACTION_INDEX_DISAGREES",
        20,
        "the index has no entry with last offset 20",
    )
    (extra,) = of_indexed([IndexedAbort("orders", 0, 7, 12, 20, 21)])
    assert (extra.name, extra.offset, extra.evidence) == (lost.name, 20, "first offset 12, last offset 20, LSO 21")
