"""Findings about the producers of partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txnlib.core.cluster_metadata import ProducerIdBlock
from txnlib.core.findings.abandoned_id_findings import (
    FEW,
    MANY_PRODUCER_IDS,
    MANY_TRANSACTIONAL_IDS,
    AbandonedIds,
    AbandonedProducers,
    of_abandoned_ids,
    of_abandoned_producers,
)
from txnlib.core.findings.metadata_findings import SINCE_THEN, highest_producer_id
from txnlib.core.findings.producer_findings import (
    SUSPECTS_KEPT,
    CorruptBatch,
    NewestSpan,
    OddProducer,
    ProducerChecks,
    StoredBatch,
    Suspect,
    of_corrupt_batches,
    of_producers,
)
from txnlib.core.kafka.producer_state import ProducerState

TS = 1_700_000_000_000
NANOSECONDS = TS * 10**6
CHECKS = ProducerChecks(as_of_ms=TS, clock_tolerance_ms=1_000, producer_id_expiration_ms=86_400_000)
STATE = ProducerState(producer_epoch=3, last_sequence=4, last_offset=14, current_txn_first_offset=10, last_timestamp=TS)
OPEN = NewestSpan(
    10,
    14,
    is_start_exact=True,
    marker_offset=None,
    marker_ms=None,
    first_timestamp_ms=TS,
    is_broker_clock=None,
    state=STATE,
)
ENDED = replace(OPEN, marker_offset=15, marker_ms=TS, state=replace(STATE, current_txn_first_offset=None))
BATCH = StoredBatch(15, 16, 2, 5, TS, is_transactional=True, is_marker=False, control_type=None, coordinator_epoch=None)


def found(
    newest: NewestSpan | None = None, *suspects: Suspect, count: int | None = None, checks: ProducerChecks = CHECKS
):
    producer = OddProducer("orders", 0, 7, suspects, count, newest)
    return [(row.name, row.offset, row.evidence) for row in of_producers([producer], checks)]


def test_each_finding_of_a_suspect_batch_shows_it_and_the_state_before_it() -> None:
    ((name, offset, evidence),) = found(None, Suspect(STATE, BATCH))
    assert (name, offset) == ("INVALID_PRODUCER_EPOCH", 15)
    assert (
        evidence == "batch"
        ' {"base_offset":15,"last_offset":16,"producer_epoch":2,"base_sequence":5,"max_timestamp_ms":1700000000000,'
        '"is_transactional":true,"is_marker":false} after'
        ' {"producer_epoch":3,"last_sequence":4,"last_offset":14,"offset_delta":0,'
        '"current_txn_first_offset":10,"last_timestamp":1700000000000}'
    )


def test_a_suspect_batch_without_a_finding_has_no_row() -> None:
    assert found(None, Suspect(STATE, replace(BATCH, producer_epoch=3))) == []


def test_a_marker_of_a_deposed_coordinator_is_judged_as_a_marker() -> None:
    marker = replace(BATCH, producer_epoch=3, is_marker=True, control_type="ABORT", coordinator_epoch=1)
    ((name, *_),) = found(None, Suspect(replace(STATE, coordinator_epoch=2), marker))
    assert name == "TRANSACTION_COORDINATOR_FENCED"


@pytest.mark.parametrize(
    ("count", "more"),
    [(None, ""), (SUSPECTS_KEPT, ""), (SUSPECTS_KEPT + 3, "; and 3 more batches of the same producer")],
)
def test_suspect_batches_that_are_not_stored_are_counted(count: int | None, more: str) -> None:
    ((*_, evidence),) = found(None, Suspect(STATE, BATCH), count=count)
    assert evidence.endswith("}" + more)


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (OPEN, []),
        (replace(OPEN, state=replace(STATE, last_timestamp=TS + 1_000)), []),
        (
            replace(OPEN, state=replace(STATE, last_timestamp=TS + 1_001)),
            [("TIMESTAMP_IN_FUTURE", 14, "last write stamped 1700000001001 ms")],
        ),
        (replace(ENDED, state=replace(STATE, last_timestamp=TS + 1_001, current_txn_first_offset=None)), []),
        (
            replace(OPEN, state=replace(STATE, last_timestamp=NANOSECONDS)),
            [("INVALID_TIMESTAMP", 14, f"last write stamped {NANOSECONDS} ms")],
        ),
        (replace(OPEN, first_timestamp_ms=-1), [("INVALID_TIMESTAMP", 14, "first write stamped -1 ms")]),
        (replace(ENDED, first_timestamp_ms=-1), []),
        (
            replace(ENDED, last_offset=None, state=ProducerState(last_timestamp=0)),
            [("INVALID_TIMESTAMP", 15, "last write stamped 0 ms")],
        ),
        (replace(OPEN, state=replace(STATE, last_timestamp=None), first_timestamp_ms=None), []),
    ],
)
def test_times_of_the_newest_span(newest: NewestSpan, expected: list[tuple[str, int, str]]) -> None:
    assert found(newest) == expected


@pytest.mark.parametrize(
    ("newest", "highest", "is_found"),
    [
        (ENDED, 6, True),  # its marker has a broker's time
        (ENDED, 7, False),
        (replace(ENDED, marker_ms=TS + 1), 6, False),
        (replace(OPEN, is_broker_clock=True), 6, True),
        (OPEN, 6, False),  # a client's time proves nothing
        (OPEN, 6 - SINCE_THEN, True),
    ],
)
def test_a_producer_id_beyond_all_blocks(newest: NewestSpan, highest: int, is_found: bool) -> None:
    rows = found(newest, checks=replace(CHECKS, whole_metadata_ms=TS, highest=highest))
    says = f"the last producer id that the cluster handed out is {highest}"
    assert rows == ([("PRODUCER_ID_NEVER_ALLOCATED", 10, says)] if is_found else [])


def test_the_highest_producer_id_is_known_with_the_whole_metadata_log() -> None:
    blocks = [ProducerIdBlock(first_producer_id=0, last_producer_id=last) for last in (1999, 999)]
    assert highest_producer_id(blocks, TS) == 1999
    assert highest_producer_id([], TS) == -1
    assert highest_producer_id(blocks, None) is None


def test_a_corrupt_batch_is_found_at_its_position() -> None:
    (row,) = of_corrupt_batches([CorruptBatch("orders", 0, "a/b.log", 61, 120, 3, 7)])
    assert (row.name, row.offset, row.producer_id, row.evidence) == (
        "CORRUPT_MESSAGE",
        3,
        7,
        "a/b.log at byte 61: 120 bytes",
    )


@pytest.mark.parametrize("divisor", [1, FEW])
def test_abandoned_ids_are_a_warning_from_many_on_and_nothing_while_few(divisor: int) -> None:
    severity = ["WARNING"] if divisor == 1 else ["INFO"]
    ids = AbandonedIds("pay", MANY_TRANSACTIONAL_IDS // divisor, TS, TS + 1_500, 3, 9, "pay-1")
    producers = AbandonedProducers("orders", 0, MANY_PRODUCER_IDS // divisor, TS, TS + 1_500, 7, 9)
    assert [row.severity for row in of_abandoned_ids([ids])] == severity
    assert [row.severity for row in of_abandoned_producers([producers])] == severity
    fewer = ["INFO"] if divisor == 1 else []
    assert [row.severity for row in of_abandoned_ids([replace(ids, count=ids.count - 1)])] == fewer
    assert [row.severity for row in of_abandoned_producers([replace(producers, count=producers.count - 1)])] == fewer


def test_the_evidence_of_abandoned_ids_counts_them() -> None:
    (ids,) = of_abandoned_ids([AbandonedIds("pay", 100, TS, TS + 1_500, 3, 9, "pay-1")])
    assert (
        ids.evidence
        == "100 transactional ids of application pay, each initialised once and used for at most one transaction, "
        "from 2023-11-14 22:13:20.000Z to 2023-11-14 22:13:21.500Z"
    )
    assert (ids.topic, ids.partition, ids.offset, ids.transactional_id) == ("__transaction_state", 3, 9, "pay-1")
    (producers,) = of_abandoned_producers([AbandonedProducers("orders", 0, 1_000, TS, TS, 7, 9)])
    assert (
        producers.evidence
        == "1000 producer ids with one batch each, by their clients' clocks from 2023-11-14 22:13:20.000Z to 2023-11-14"
        " 22:13:20.000Z"
    )
