"""Markers by hand and markers of decisions, on both sides of each limit; and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.log_notation import TS
from txnlib.core.findings.marker_findings import (
    MARKER_OF_DEPOSED_COORDINATOR,
    MARKER_WITHOUT_DECISION,
    SPLIT_OUTCOME,
    Decision,
    Marker,
    OddMarker,
    marker_finding,
    of_markers,
)
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, UNKNOWN_CLOCKS_DIFFER_MS

SECOND = 1_000
HOUR = 3_600 * SECOND


def decision(type="COMMIT", *, at=TS, epoch=0, open_for=SECOND, takes=20, coordinator_epoch=0):
    completed = None if takes is None else at + takes
    return Decision(
        type=type,
        epoch=epoch,
        start_ms=at - open_for,
        decided_ms=at,
        completed_ms=completed,
        coordinator_epoch=coordinator_epoch,
    )


#: The first marker after complete records, which ends data.
MARKER = Marker(
    type="COMMIT", epoch=0, coordinator_epoch=0, ms=TS + 10, ends_data=True, before=None, after=None, is_first=True,
    complete_since_ms=TS - HOUR, known_until_ms=TS + HOUR,
)  # fmt: skip


def found(type="COMMIT", at=TS + 10, **changed):
    return marker_finding(replace(MARKER, type=type, ms=at, **changed))


@pytest.mark.parametrize("type", ["COMMIT", "ABORT"])
@pytest.mark.parametrize("ends_data", [True, False])
def test_the_first_marker_of_a_decision_is_its_own(type, ends_data):
    assert found(type, before=decision(type), ends_data=ends_data) is None


def test_a_marker_that_is_stamped_before_its_decision_is_the_decisions_while_clocks_may_differ():
    assert found(at=TS - CLOCKS_DIFFER_MS, after=decision()) is None
    assert found(at=TS - CLOCKS_DIFFER_MS - 1, after=decision(open_for=0)) is MARKER_WITHOUT_DECISION


def test_M10_markers_written_again_after_a_failover_are_no_harm():
    repeat = {"before": decision(), "is_first": False, "coordinator_epoch": 6}
    assert found(ends_data=False, **repeat) is found(ends_data=True, **repeat) is None


def test_M20_an_abort_by_hand_inside_a_transaction_that_commits_splits_it():
    assert found("ABORT", TS - 500, after=decision("COMMIT")) is SPLIT_OUTCOME
    before = decision("ABORT", at=TS - 60 * SECOND)
    assert found("ABORT", TS - 500, before=before, is_first=False, after=decision("COMMIT")) is SPLIT_OUTCOME


def test_an_abort_by_hand_inside_a_transaction_that_aborts_splits_nothing():
    late = decision("ABORT", at=TS + 5 * SECOND, open_for=10 * SECOND)
    assert found("ABORT", TS, after=late) is MARKER_WITHOUT_DECISION


@pytest.mark.parametrize("at", [TS, TS + 20])
def test_a_marker_against_the_decision_while_markers_are_written_splits_it(at):
    assert found("ABORT", at, before=decision("COMMIT")) is SPLIT_OUTCOME
    assert found("ABORT", TS + 21, before=decision("COMMIT")) is MARKER_WITHOUT_DECISION


def test_a_marker_against_a_pending_decision_splits_it_however_late():
    assert found("ABORT", TS + HOUR // 2, before=decision("COMMIT", takes=None)) is SPLIT_OUTCOME


def test_a_dump_that_prints_no_type_contradicts_nothing():
    assert found(None, before=decision("COMMIT")) is None
    assert found(None, TS - 500, after=decision("ABORT")) is None


# Limits.

SPLIT, STRAY = SPLIT_OUTCOME, MARKER_WITHOUT_DECISION
LONG = decision("COMMIT", at=TS, open_for=2 * HOUR, takes=2 * HOUR)
UNCOMPARED = 5 * 60 * SECOND


@pytest.mark.parametrize(("epoch", "expected"), [(3, STRAY), (4, SPLIT), (5, SPLIT), (6, STRAY)])
def test_a_marker_by_hand_has_the_decisions_epoch_or_the_one_before(epoch, expected):
    """That of the data, which under transactions v2 is one lower."""
    assert found("ABORT", TS + 10, epoch=epoch, before=decision("COMMIT", epoch=5)) is expected
    assert found("ABORT", TS - 500, epoch=epoch, after=decision("COMMIT", epoch=5)) is expected
    assert found("ABORT", TS + 10, epoch=epoch, before=decision("COMMIT", epoch=None)) is SPLIT


@pytest.mark.parametrize(("at", "expected"), [(UNCOMPARED - 1, STRAY), (UNCOMPARED, SPLIT)])
def test_a_clock_that_was_never_compared_has_its_margin(at, expected):
    assert found("ABORT", TS + at, before=LONG, clocks_differ_ms=UNCOMPARED) is expected
    late = decision("COMMIT", at=TS + HOUR // 2, open_for=HOUR // 2)
    assert found("ABORT", TS + at, after=late, clocks_differ_ms=UNCOMPARED) is expected


def test_an_epoch_that_no_coordinator_had_is_by_hand_whatever_the_clocks_say():
    unknown = {"complete_since_ms": None, "clocks_differ_ms": UNCOMPARED, "coordinator_epoch": 8}
    live = decision("COMMIT", at=TS + SECOND)
    assert found("ABORT", TS + 10, after=live, newest_coordinator_epoch=7, **unknown) is SPLIT
    assert found("ABORT", TS + 10, newest_coordinator_epoch=7, **unknown) is STRAY
    for newest in (8, None):
        assert found("ABORT", TS + 10, after=live, newest_coordinator_epoch=newest, **unknown) is None


def test_a_marker_inside_a_live_transaction_comes_after_its_start():
    live = decision("COMMIT", at=TS + HOUR // 2, open_for=HOUR // 2)
    assert found("ABORT", TS, after=live) is SPLIT
    assert found("ABORT", TS - 1, after=live) is STRAY
    # Without a complete history it may be the marker of an earlier transaction.
    assert found("ABORT", TS + CLOCKS_DIFFER_MS, after=live, complete_since_ms=None) is SPLIT
    assert found("ABORT", TS + CLOCKS_DIFFER_MS - 1, after=live, complete_since_ms=None) is None
    assert found("ABORT", TS, after=live, ends_data=False) is STRAY
    assert found("ABORT", TS, after=replace(live, start_ms=None)) is STRAY


@pytest.mark.parametrize(
    ("own", "decisions", "expected"),
    [(4, 5, True), (5, 5, False), (6, 5, False), (0, 1, True), (4, None, False), (None, 5, False)],
)
def test_only_a_lower_coordinator_epoch_is_a_deposed_coordinators(own, decisions, expected):
    finding = found(before=decision(coordinator_epoch=decisions), coordinator_epoch=own)
    assert finding is (MARKER_OF_DEPOSED_COORDINATOR if expected else None)


def test_a_marker_by_hand_after_the_end_is_before_the_next_start():
    before, end = decision("ABORT"), TS + 20 + CLOCKS_DIFFER_MS
    following = decision("ABORT", at=TS + HOUR // 2, open_for=HOUR // 4)
    start = following.start_ms - CLOCKS_DIFFER_MS
    for at, expected in {end: None, end + 1: STRAY, start - 1: STRAY, start: None}.items():
        assert found("ABORT", at, before=before, is_first=False, after=following) is expected
    assert found("ABORT", end + 1, before=before, is_first=False) is STRAY
    assert found("ABORT", start, before=before, is_first=False, after=replace(following, start_ms=None)) is STRAY
    assert found("ABORT", end + 1, before=replace(before, completed_ms=None), is_first=False) is None
    assert found("ABORT", end + 1, before=before, is_first=False, complete_since_ms=None) is None


def test_a_history_is_complete_by_more_than_the_difference_of_the_clocks():
    early = TS + 10 - CLOCKS_DIFFER_MS
    assert found("ABORT", complete_since_ms=early) is STRAY
    assert found("ABORT", complete_since_ms=early + 1) is None
    assert found("ABORT", known_until_ms=TS + 10 + CLOCKS_DIFFER_MS) is STRAY
    assert found("ABORT", known_until_ms=TS + 10 + CLOCKS_DIFFER_MS - 1) is None
    assert found("ABORT", known_until_ms=None) is None


# What is said.

DECIDED = Decision(
    transactional_id="pay", transaction_number=4, type="COMMIT", epoch=3, start_ms=TS - 5_000, decided_ms=TS,
    completed_ms=TS + 20, coordinator_epoch=None,
)  # fmt: skip
ODD = Marker(
    type="COMMIT",
    epoch=3,
    coordinator_epoch=None,
    ms=TS + 500,
    ends_data=False,
    before=DECIDED,
    after=None,
    is_first=False,
    complete_since_ms=None,
    known_until_ms=None,
)


def test_the_evidence_about_a_marker_shows_the_decisions_beside_it() -> None:
    odd = OddMarker("orders", 0, 7, "pay", None, 20, None, ODD)
    ended = replace(
        odd,
        first_offset=12,
        marker=replace(ODD, type="ABORT", ends_data=True, before=None, after=DECIDED, ms=TS - 900),
    )
    alone = replace(odd, marker=replace(ODD, epoch=9, complete_since_ms=0, known_until_ms=TS + 5_000_000))
    unexplained, split = of_markers([alone, odd, replace(odd, marker=replace(ODD, is_first=True)), ended])
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
    marker = replace(ODD, type=kind, epoch=epoch, complete_since_ms=0, known_until_ms=TS + 5_000_000)
    (row,) = of_markers([OddMarker("orders", 0, 7, "pay", None, 20, None, marker)])
    assert (row.name, row.severity) == ("MARKER_WITHOUT_DECISION", severity)


INSIDE = replace(
    ODD,
    type="ABORT",
    ms=TS + UNKNOWN_CLOCKS_DIFFER_MS + 1,
    ends_data=True,
    before=None,
    ongoing=replace(DECIDED, type="OPEN", start_ms=TS, completed_ms=None),
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
    rows = list(of_markers([OddMarker("orders", 0, 7, "pay", None, 20, 12, replace(INSIDE, **changed))]))
    assert [(row.name, row.offset) for row in rows] == [("ABORTED_WHILE_ONGOING", 20)] * is_found
    assert all(
        row.evidence.startswith("ended the records from offset 12; the transaction began at 2024-03-09 16:")
        for row in rows
    )
