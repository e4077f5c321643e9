"""Rows that an incremental run carries over, and those it makes."""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from txnlib.delta.carried_rows import Grown, Held, Readable
from txnlib.incremental.appended_partitions import GROWN, grown_partitions
from txnlib.incremental.earlier_run import frame_of
from txnlib.incremental.resumed_segments import mark_continued, torn_segments
from txnlib.incremental.resumed_spans import continued_spans, mark_closed, mark_ended, not_ended_before
from txnlib.pipeline.run import Run
from txnlib.spark.capture_source import read_capture
from txnlib.spark.producers.partition_transactions import partition_transactions
from txnlib.spark.schemas import TOPIC_PARTITION

#: Fewest bytes of known segments for which resuming the windows pays. Below this, running them over all batches takes no longer
#: than finding out where to resume.
WORTH_GOING_ON: Final = 64 << 20


def batches_on(run: Run) -> Grown | None:
    """`record_batches`: the batches of known segments, and those appended since."""
    if run.earlier is None or run.capture is None or not run.capture.resumed:
        return None
    continued = frame_of(run.spark, run.capture)
    held = Held(run.earlier, partial(mark_continued, continued=continued), _not_whole(run.earlier, continued))
    return Grown(read_capture(run.spark, run.capture, "record_batches"), held)


def _not_whole(earlier: Readable, continued: DataFrame) -> frozenset[tuple[str, int]]:
    """Topics and partitions with segments of the earlier run that cannot be resumed after their last batch."""
    found = torn_segments(earlier.read("segments"), continued).select(*TOPIC_PARTITION).distinct().collect()
    return frozenset((row["topic"], row["partition"]) for row in found)


def learn_grown(run: Run) -> None:
    """Finds the partitions that have only grown since the earlier run, if resuming pays."""
    if run.earlier is None or run.capture is None or run.capture.size - run.capture.size_to_read < WORTH_GOING_ON:
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
    run.grown = tuple((row["topic"], row["partition"], row["source"], row["grows_at"]) for row in found.collect())


def spans_on(run: Run) -> Grown | None:
    """`producer_spans`: the closed spans of partitions that have only grown, and the spans of new batches."""
    if run.earlier is None or run.capture is None or not run.grown:
        return None
    grown = run.spark.createDataFrame(run.grown, GROWN)
    # In all other partitions every batch is new, unless the run resumed some of their segments.
    grew = _grew(run)
    are_new = all((each.topic, each.partition) in grew for each in run.capture.resumed)
    new = run.tables.read_own("record_batches")
    made = continued_spans(
        new if are_new else run.tables.read("record_batches"),
        new,
        run.tables.read("producer_snapshots"),
        run.tables.read("coverage"),
        run.earlier.read("producer_spans"),
        grown,
    )
    return Grown(made, Held(run.earlier, partial(mark_closed, grown=grown), _not_grown(run), told_of={"is_newest": "false"}))


def transactions_on(run: Run) -> Grown | None:
    """`partition_transactions`: those that had already ended in partitions that have only grown, and the others."""
    if run.earlier is None or not run.grown:
        return None
    grown = run.spark.createDataFrame(run.grown, GROWN)
    made = partition_transactions(not_ended_before(run.tables.read_own("producer_spans"), grown))
    held = Held(run.earlier, partial(mark_ended, grown=grown), _not_grown(run), without_null=("marker_offset",))
    return Grown(made, held)


def _not_grown(run: Run) -> frozenset[tuple[str, int]]:
    """Topics and partitions of the earlier run that have changed other than by growing."""
    assert run.earlier is not None
    known = run.earlier.read("coverage").select(*TOPIC_PARTITION).distinct().collect()
    return frozenset((row["topic"], row["partition"]) for row in known) - _grew(run)


def _grew(run: Run) -> frozenset[tuple[str, int]]:
    return frozenset((topic, partition) for topic, partition, *_ in run.grown)
