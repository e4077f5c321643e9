"""Windows that resume, against windows over the whole log."""

import random

from pyspark.sql import functions as F

from tests.spark.producers.test_producer_spans import coverage, folded, snapshots
from tests.spark.producers.test_producer_windows import build
from tests.support.frames import assert_same, record_batches
from tests.support.log_notation import T
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.schema.rows_of_runs import OF_LOG
from txnlib.incremental.resumed_spans import APPENDED, not_ended_before, resumed_spans
from txnlib.spark.producers.partition_transactions import partition_transactions
from txnlib.spark.producers.producer_spans import SUSPECTS_KEPT, producer_spans
from txnlib.spark.schemas import TABLES


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


def still_counted(name, rows, appended):
    """The rows of the earlier run that belong to the log, in appended partitions."""
    of_log = rows.alias("stored").where(OF_LOG[name].of_log.rows)
    return of_log.join(appended, on=["topic", "partition"], how="left_semi").select(*TABLES[name].names)


def resume(spark, logs, cuts, states, offsets, firsts, log_starts):
    """The spans of the earlier run, of the resumed run, and of the whole log; and the appended partitions.

    `log_starts`: log -> its log start, where records were deleted after the earlier run.
    """
    seeds, known = snapshots(spark, states, offsets), coverage(spark, firsts, log_starts)
    whole = frayed(record_batches(spark, {("orders", number): log for number, log in logs.items()}))
    appended = spark.createDataFrame([("orders", number, "raw:1", at) for number, at in cuts.items()], APPENDED)
    before = whole.join(appended, on=["topic", "partition", "source"], how="left").where(
        "appended_from is null or base_offset < appended_from"
    )
    earlier = producer_spans(before.select(whole.columns), seeds, coverage(spark, firsts))
    earlier = spark.createDataFrame(earlier.collect(), TABLES["producer_spans"])
    new = resumed_spans(whole, whole, seeds, known, earlier, appended)
    resumed = spark.createDataFrame(
        still_counted("producer_spans", earlier, appended).unionByName(new).collect(), TABLES["producer_spans"]
    )
    expected = spark.createDataFrame(producer_spans(whole, seeds, known).collect(), TABLES["producer_spans"])
    return earlier, resumed, expected, appended


def steps(chance):
    """Of a log, as `test_producer_windows.build` takes them."""
    kinds, hows = "TTTDDCCAAL", ["next", "next", "next", "zero", "jump", "repeat", "none", "wrap"]
    epochs, later = [0, 0, 0, 1, 1, 2], [0, 1, 1_000, 90_000_000, -50_000]
    ranges = (kinds, [1, 2, 3], epochs, hows, [0, 1, 2], later, range(5))
    return [tuple(map(chance.choice, ranges)) for _ in range(chance.randint(5, 45))]


#: Log in which every batch is suspect -> where it is cut.
MANY_SUSPECTS = {90: SUSPECTS_KEPT // 2, 91: SUSPECTS_KEPT + 20}


def test_windows_that_resume_give_the_rows_of_windows_over_the_whole_log(spark):
    """Each second log begins at a snapshot, or before one. One in five is not resumed, and is judged from its
    beginning.

    Of some, a part was deleted since, so that the broker forgot what was open there.
    """
    chance = random.Random(1)
    built, cuts, states, offsets, firsts, log_starts = {}, {}, {}, {}, {}, {}
    for number in range(80):
        log = build(steps(chance))
        begin, seeded, cut = sorted(chance.randrange(len(log)) for _ in range(3))
        begin = begin if number % 2 else 0
        if begin == cut:
            continue
        built[number], firsts[number] = log[begin:], log[begin].base_offset if begin else 0
        if begin:
            offsets[number], states[number] = log[seeded].base_offset, folded(log[:seeded])
        elif number % 3 == 0:  # the broker has started since, and its snapshot knows nothing of what was deleted
            deleted = chance.randrange(seeded + 1)
            log_starts[number], offsets[number] = log[deleted].base_offset, log[seeded].base_offset
            states[number] = folded(log[deleted:seeded]) or {99: ProducerState(producer_epoch=0)}
        if number % 5:
            cuts[number] = log[cut].base_offset
    many = [T(1, 0, 7 * number, at=number) for number in range(2 * SUSPECTS_KEPT)]
    for number, cut in MANY_SUSPECTS.items():
        built[number], cuts[number], firsts[number] = many, cut, 0
    earlier, resumed, whole, appended = resume(spark, built, cuts, states, offsets, firsts, log_starts)
    assert_same(resumed, whole)

    ended = still_counted("partition_transactions", partition_transactions(earlier), appended)
    transactions = ended.unionByName(partition_transactions(not_ended_before(resumed, appended)))
    assert_same(transactions, partition_transactions(whole))
