"""The last stable offset of each partition, and what blocks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.frames import frame
from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import LATE_TRANSACTION_BUFFER_MS
from txnlib.core.tables.partitions import (
    UNSTABLE_OFFSETS,
    AnsweredOffset,
    BlockingTransaction,
    StablePartition,
    UnstableBatches,
    UnstableOffset,
    UnstableRange,
    partitions,
)
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES

AS_OF, MAX_TIMEOUT = 10_000_000, 900_000
PLACE = ("orders", 0)
LOG = CoverageRow(
    *PLACE,
    "raw:1",
    status="COMPLETE",
    is_judged=True,
    log_start_offset=0,
    read_from_offset=0,
    end_offset=100,
    high_watermark=90,
)
FIRST = BlockingTransaction(*PLACE, 7, 40, "billing-7", "HANGING", last_timestamp_ms=AS_OF - 1_000)


def stable(
    *logs: CoverageRow,
    unstable: int | None = 40,
    opened: Sequence[BlockingTransaction] = (FIRST,),
    answered: Sequence[AnsweredOffset] = (),
    batches: Sequence[UnstableBatches] = (),
    asked: list[UnstableRange] | None = None,
) -> list[StablePartition]:
    def answer(ranges: Sequence[UnstableRange]) -> Sequence[UnstableBatches]:
        if asked is not None:
            asked.extend(ranges)
        return batches

    first = () if unstable is None else (UnstableOffset(*PLACE, unstable),)
    return list(
        partitions(logs, first, opened, answered, answer, as_of_ms=AS_OF, transaction_max_timeout_ms=MAX_TIMEOUT)
    )


#: First offsets and markers of the spans of a partition, its high watermark (None: its log ends at 110) -> its first
#: unstable offset. Group C restates Kafka's `ProducerStateManagerTest`.
UNSTABLE = {
    "C02 an open transaction": ([(99, None)], 0, 99),
    "C03 the first of two": ([(105, None), (99, None)], 0, 99),
    "C04 decided, but its marker is not below the high watermark": ([(99, 109), (105, None)], 109, 99),
    "C06 its marker is": ([(99, 109), (105, None)], 110, 105),
    "C07 both are decided, and one marker is": ([(99, 109), (105, 112)], 110, 105),
    "C09 nothing is unstable": ([(99, 109)], 110, None),
    "a marker at the end of a log without a high watermark": ([(99, 109)], None, None),
    "a marker without a transaction": ([(None, 112)], 110, None),
}


def test_what_is_open_or_has_a_marker_that_is_not_replicated_is_unstable(spark) -> None:
    spans, copies = [], []
    for number, (found, mark, _) in enumerate(UNSTABLE.values()):
        place = {"topic": "orders", "partition": number}
        copies.append(place | {"is_judged": True, "high_watermark": mark, "end_offset": 110})
        spans += [
            place | {"producer_id": at, "first_offset": one, "marker_offset": end}
            for at, (one, end) in enumerate(found)
        ]
    tables = {
        "producer_spans": frame(spark, TABLES["producer_spans"], *spans),
        "coverage": frame(spark, TABLES["coverage"], *copies),
    }
    rows = {row["partition"]: row["first_unstable_offset"] for row in select(UNSTABLE_OFFSETS, **tables).collect()}
    assert [rows.get(number) for number in range(len(UNSTABLE))] == [expected for *_, expected in UNSTABLE.values()]


@pytest.mark.parametrize(
    ("unstable", "change", "expected"),
    [
        pytest.param(None, {}, 90, id="nothing is open: the high watermark"),
        pytest.param(40, {}, 40, id="the first unstable offset"),
        pytest.param(95, {}, 90, id="never above the high watermark"),
        pytest.param(40, {"log_start_offset": 50}, 50, id="never below the log start"),
        pytest.param(None, {"high_watermark": None}, 100, id="without a checkpoint, the end"),
        pytest.param(None, {"high_watermark": None, "end_offset": None}, 0, id="an empty log without a checkpoint"),
    ],
)
def test_consumers_stop_at_the_last_stable_offset(
    unstable: int | None, change: dict[str, int | None], expected: int
) -> None:
    log = replace(LOG, **change)  # type: ignore[arg-type]
    (row,) = stable(log, unstable=unstable)
    assert row.last_stable_offset == expected
    assert row.lag_offsets == row.high_watermark - expected
    assert row.is_high_watermark_assumed == (log.high_watermark is None)


def test_the_transaction_with_the_lowest_start_blocks_and_the_second_blocks_next() -> None:
    later = replace(FIRST, producer_id=1, start_offset=50, transactional_id=None, verdict="OPEN")
    elsewhere = replace(FIRST, partition=1, start_offset=1)
    (row,) = stable(LOG, opened=[replace(later, start_offset=60), later, elsewhere, FIRST])
    assert (row.blocking_producer_id, row.blocking_transactional_id, row.blocking_verdict) == (
        7,
        "billing-7",
        "HANGING",
    )
    assert (row.next_blocking_offset, row.next_blocking_producer_id, row.next_blocking_transactional_id) == (
        50,
        1,
        None,
    )


def test_of_one_start_the_lower_producer_id_blocks_first() -> None:
    (row,) = stable(LOG, opened=[FIRST, replace(FIRST, producer_id=3)])
    assert (row.blocking_producer_id, row.next_blocking_producer_id) == (3, 7)


def test_nothing_blocks_where_nothing_is_open() -> None:
    (row,) = stable(LOG, unstable=None, opened=())
    assert (row.blocking_producer_id, row.blocking_verdict, row.next_blocking_offset, row.is_late) == (
        None,
        None,
        None,
        False,
    )


def test_what_only_the_leader_knows_is_open_blocks_without_a_producer() -> None:
    (row,) = stable(LOG, answered=[AnsweredOffset(*PLACE, 30)], opened=[replace(FIRST, last_timestamp_ms=1)])
    assert (row.last_stable_offset, row.blocking_verdict) == (30, "UNKNOWN")
    assert (row.blocking_producer_id, row.blocking_transactional_id, row.is_late) == (None, None, False)
    (row,) = stable(LOG, answered=[AnsweredOffset(*PLACE, 60)])
    assert row.last_stable_offset == 40, "the lower of both"


@pytest.mark.parametrize(
    ("last_timestamp_ms", "is_late"),
    [
        (AS_OF - MAX_TIMEOUT - LATE_TRANSACTION_BUFFER_MS, False),
        (AS_OF - MAX_TIMEOUT - LATE_TRANSACTION_BUFFER_MS - 1, True),
        (0, False),
        (None, False),
        (1 << 62, False),
    ],
)
def test_a_partition_is_late_by_the_blocking_transaction_only(last_timestamp_ms: int | None, is_late: bool) -> None:
    old = replace(FIRST, producer_id=1, start_offset=50, last_timestamp_ms=1)
    (row,) = stable(LOG, opened=[replace(FIRST, last_timestamp_ms=last_timestamp_ms), old])
    assert row.is_late is is_late


def test_batches_are_asked_for_where_consumers_are_behind() -> None:
    asked: list[UnstableRange] = []
    found = UnstableBatches(*PLACE, lag_bytes=512, stable_ms=AS_OF - 7)
    (row,) = stable(LOG, batches=[found], asked=asked)
    assert asked == [UnstableRange(*PLACE, "raw:1", 40, 90)]
    assert (row.lag_bytes, row.lag_ms) == (512, 7)
    (row,) = stable(LOG, batches=[replace(found, stable_ms=AS_OF + 5)])
    assert row.lag_ms == 0, "a client's clock may be ahead"
    (row,) = stable(LOG)
    assert (row.lag_bytes, row.lag_ms) == (0, None)


def test_where_nobody_is_behind_no_batch_is_asked_for() -> None:
    asked: list[UnstableRange] = []
    (row,) = stable(LOG, unstable=None, asked=asked)
    assert (asked, row.lag_bytes, row.lag_ms) == ([], 0, None)


def test_bytes_below_a_snapshot_are_not_known() -> None:
    asked: list[UnstableRange] = []
    (row,) = stable(replace(LOG, read_from_offset=60), asked=asked)
    assert (asked, row.lag_bytes) == ([], None)
    (row,) = stable(replace(LOG, read_from_offset=60), unstable=60, asked=asked)
    assert (len(asked), row.lag_bytes) == (1, 0)
    (row,) = stable(replace(LOG, read_from_offset=60, log_start_offset=60), asked=asked)
    assert (len(asked), row.lag_bytes) == (2, 0), "the log itself begins there"
    (row,) = stable(replace(LOG, read_from_offset=60, log_start_offset=60, high_watermark=50), asked=asked)
    assert (len(asked), row.lag_bytes) == (2, 0), "the checkpoint is older than the log start"


@pytest.mark.parametrize(
    ("change", "is_shown"),
    [
        ({}, False),
        ({"high_watermark": 0}, True),
        ({"is_nothing_open": True, "high_watermark": 90}, True),
        ({"is_nothing_open": True}, False),
        ({"high_watermark": 90}, False),
        ({"high_watermark": 0, "status": "PARTIAL"}, False),
    ],
)
def test_a_partition_without_a_copy_has_a_row_only_if_all_of_it_is_told(
    change: dict[str, int | str], is_shown: bool
) -> None:
    missing = replace(LOG, source=None, status="MISSING", is_judged=False, high_watermark=None, end_offset=None)
    rows = stable(replace(missing, **change), unstable=None, opened=())  # type: ignore[arg-type]
    assert [row.end_offset for row in rows] == [change.get("high_watermark")] * is_shown
