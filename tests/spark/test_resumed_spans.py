"""Windows that resume, against windows over the whole log."""

from __future__ import annotations

import random

from pyspark.sql import functions as F

from tests.spark.test_producer_spans import coverage, folded, snapshots
from tests.spark.test_producer_windows import build
from tests.support.batches import T
from tests.support.frames import assert_same, record_batches
from txnlib.incremental.appended_partitions import GROWN
from txnlib.incremental.resumed_spans import continued_spans, mark_closed, mark_ended, not_ended_before
from txnlib.spark.producers.partition_transactions import partition_transactions
from txnlib.spark.producers.producer_spans import SUSPECTS_KEPT, producer_spans
from txnlib.spark.schemas import PARTITION_TRANSACTIONS, PRODUCER_SPANS


def frayed(batches):
    """Batches as logs may hold them, too: without a time, an epoch or a readable marker, or stamped by the broker."""

    def now_and_then(column, every, value=None):
        chance = F.pmod(F.hash("base_offset", "producer_id", F.lit(column)), F.lit(every))
        return F.when(chance != 0, F.col(column)).otherwise(value)

    return batches.withColumns(
        {
            "max_timestamp_ms": now_and_then("max_timestamp_ms", 7),
            "producer_epoch": now_and_then("producer_epoch", 11),
            "coordinator_epoch": now_and_then("coordinator_epoch", 9),
            "control_type": now_and_then("control_type", 9),
            "records_count": now_and_then("records_count", 9),
            "timestamp_type": now_and_then("timestamp_type", 3, F.lit("LOG_APPEND_TIME")),
        }
    )


def gone_on(spark, logs, cuts, states, offsets, firsts):
    """What the run before told, what is made tonight, the whole log's: spans and transactions, each as rows."""
    seeds, known = snapshots(spark, states, offsets), coverage(spark, firsts)
    whole = frayed(record_batches(spark, {("orders", number): log for number, log in logs.items()}))
    grown = spark.createDataFrame([("orders", number, "raw:1", at) for number, at in cuts.items()], GROWN)
    before = whole.join(grown, on=["topic", "partition", "source"], how="left").where("grows_at is null or base_offset < grows_at")
    earlier = producer_spans(before.select(whole.columns), seeds, known)
    earlier = spark.createDataFrame(earlier.collect(), PRODUCER_SPANS)
    made = continued_spans(whole, whole, seeds, known, earlier, grown)
    held = mark_closed(earlier, grown).where("holds").select(*PRODUCER_SPANS.names)
    tonight = spark.createDataFrame(held.unionByName(made).collect(), PRODUCER_SPANS)
    return earlier, tonight, producer_spans(whole, seeds, known), grown


def steps(chance):
    """Of a log, as `test_producer_windows.build` takes them."""
    kinds, hows = "TTTDDCCAAL", ["next", "next", "next", "zero", "jump", "repeat", "none", "wrap"]
    epochs, later = [0, 0, 0, 1, 1, 2], [0, 1, 1_000, 90_000_000, -50_000]
    ranges = (kinds, [1, 2, 3], epochs, hows, [0, 1, 2], later, range(5))
    return [tuple(map(chance.choice, ranges)) for _ in range(chance.randint(5, 45))]


def test_windows_that_go_on_tell_what_windows_over_the_whole_log_tell(spark):
    """Each second log begins at a snapshot, or before one; one in five did not only grow, and begins anew."""
    chance = random.Random(1)
    built, cuts, states, offsets, firsts = {}, {}, {}, {}, {}
    for number in range(80):
        log = build(steps(chance))
        begin, seeded, cut = sorted(chance.randrange(len(log)) for _ in range(3))
        begin = begin if number % 2 else 0
        if begin == cut:
            continue
        built[number], firsts[number] = log[begin:], log[begin].base_offset if begin else 0
        if begin:
            offsets[number], states[number] = log[seeded].base_offset, folded(log[:seeded])
        if number % 5:
            cuts[number] = log[cut].base_offset
    earlier, tonight, whole, grown = gone_on(spark, built, cuts, states, offsets, firsts)
    assert_same(tonight, whole)

    ended = mark_ended(partition_transactions(earlier), grown).where("holds").select(*PARTITION_TRANSACTIONS.names)
    told = ended.unionByName(partition_transactions(not_ended_before(tonight, grown)))
    assert_same(told, partition_transactions(whole))


def test_a_producer_gone_mad_is_counted_on(spark):
    log = [T(1, 0, 7 * number, at=number) for number in range(2 * SUSPECTS_KEPT)]
    cuts = {0: SUSPECTS_KEPT // 2, 1: SUSPECTS_KEPT + 20}
    _, tonight, whole, _ = gone_on(spark, {0: log, 1: log}, cuts, {}, {}, {0: 0, 1: 0})
    assert_same(tonight, whole)
