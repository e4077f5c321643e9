"""Which rows does an incremental run hold of the one it goes on from, and which does it make? None: all of them anew."""

from __future__ import annotations

from functools import partial

from txnlib.delta.held import Grown, Held
from txnlib.spark.capture_source import read_capture
from txnlib.spark.continued_segments import mark_continued
from txnlib.spark.continued_spans import continued_spans, mark_closed, mark_ended, not_ended_before
from txnlib.spark.grown_partitions import GROWN, grown_partitions
from txnlib.spark.partition_transactions import partition_transactions
from txnlib.stages.continuing import frame_of
from txnlib.stages.run import Run


def batches_on(run: Run) -> Grown | None:
    """`record_batches`: those of known segments, and those behind them."""
    if run.earlier is None or run.capture is None or not run.capture.continued:
        return None
    mark = partial(mark_continued, continued=frame_of(run.spark, run.capture))
    return Grown(read_capture(run.spark, run.capture, "record_batches"), Held(run.earlier, mark))


def learn_grown(run: Run) -> None:
    """Settles which partitions only grew since the earlier run."""
    if run.earlier is None or run.capture is None or not run.capture.continued:
        return
    read, read_before = run.tables.read, run.earlier.read
    found = grown_partitions(
        read("segments"),
        read("coverage"),
        read("producer_snapshots"),
        read_before("segments"),
        read_before("coverage"),
        read_before("producer_snapshots"),
        frame_of(run.spark, run.capture),
    )
    run.grown = tuple(map(tuple, found.collect()))


def spans_on(run: Run) -> Grown | None:
    """`producer_spans`: the closed spans of partitions that only grew, and what the windows make of new batches."""
    if run.earlier is None or run.capture is None or not run.grown:
        return None
    grown = run.spark.createDataFrame(run.grown, GROWN)
    # Of other partitions all batches are new, unless the run read on in some of their segments.
    grew = {(topic, partition) for topic, partition, *_ in run.grown}
    are_new = all((each.topic, each.partition) in grew for each in run.capture.continued)
    new = run.tables.read_own("record_batches")
    made = continued_spans(
        new if are_new else run.tables.read("record_batches"),
        new,
        run.tables.read("producer_snapshots"),
        run.tables.read("coverage"),
        run.earlier.read("producer_spans"),
        grown,
    )
    return Grown(made, Held(run.earlier, partial(mark_closed, grown=grown)))


def transactions_on(run: Run) -> Grown | None:
    """`partition_transactions`: those that had ended in partitions that only grew, and the others."""
    if run.earlier is None or not run.grown:
        return None
    grown = run.spark.createDataFrame(run.grown, GROWN)
    made = partition_transactions(not_ended_before(run.tables.read_own("producer_spans"), grown))
    return Grown(made, Held(run.earlier, partial(mark_ended, grown=grown)))
