"""Batches that contradict the next segment or the checkpoints of their copy."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import functions as F

from tests.support.frames import assert_rows, noted_leaders, partition_notes
from txnlib.readers import arrow_schemas
from txnlib.spark.coverage.contradicted_batches import (
    EPOCH,
    GAP,
    OVERLAP,
    UNLISTED_EPOCH,
    contradicted_batches,
    epochs_of_segments,
)
from txnlib.spark.coverage.coverage import coverage
from txnlib.spark.coverage.quarantine import quarantine

#: Segments by base offset, each a list of (base offset, leader epoch); highest epoch and high watermark of the checkpoints; whether
#: a stretch was unreadable -> base offset of the contradicted batch, and why.
GRID = {
    "epochs rise": ({0: [(0, 3), (1, 3)], 2: [(2, 4), (3, 4)]}, 4, 4, False, None),
    "one epoch per batch": ({0: [(0, 1), (1, 2)], 2: [(2, 3)]}, 3, 3, False, None),
    "no checkpoints": ({0: [(0, 3), (1, 9)]}, None, None, False, None),
    "raised at the end of a segment": ({0: [(0, 3), (1, 9)], 2: [(2, 3), (3, 3)]}, 3, 4, False, (1, EPOCH)),
    "raised where an epoch ends": (
        {0: [(0, 3), (1, 9)], 2: [(2, 4), (3, 4)]},
        None,
        None,
        False,
        (1, EPOCH),
    ),
    "raised, alone in the first segment": ({0: [(0, 9)], 1: [(1, 4), (2, 4)]}, None, None, False, (0, EPOCH)),
    "lowered at the beginning of a segment": ({0: [(0, 3), (1, 3)], 2: [(2, 1), (3, 3)]}, 3, 4, False, (2, EPOCH)),
    "lowered, the last of all": ({0: [(0, 3), (1, 3)], 2: [(2, 1)]}, 3, 4, False, (2, EPOCH)),
    "a leader that knew less wrote on": ({0: [(0, 7), (1, 7)], 2: [(2, 3), (3, 3)]}, 7, 4, False, None),
    "the last epoch is not listed": ({0: [(0, 3), (1, 3), (2, 9)]}, 3, 3, False, (2, UNLISTED_EPOCH)),
    "several batches of an epoch that is not listed yet": ({0: [(0, 3), (1, 9), (2, 9)]}, 3, 3, False, None),
    "no leader epoch at all": ({0: [(0, None), (1, None)]}, 3, 2, False, None),
    "raised beyond the next segment": ({0: [(0, 3), (700, 3)], 2: [(2, 3), (3, 3)]}, 3, 4, False, (700, OVERLAP)),
    "cleaned segments, and one that the cleaner merged": ({0: [(0, 3), (2, 3), (3, 3)], 2: [(2, 3), (3, 3)]}, 3, 4, False, None),
    "a gap before the last of all": ({0: [(0, 3), (1, 3)], 2: [(2, 3), (900, 3)]}, 3, 3, False, (900, GAP)),
    "a gap before the last of all, and nothing noted": ({0: [(0, 3), (900, 3)]}, None, None, False, (900, GAP)),
    "a gap that the high watermark shows": ({0: [(0, 3), (900, 3)]}, 3, 901, False, None),
    "a gap before the last of a cleaned segment": ({0: [(0, 3), (90, 3)], 200: [(200, 3), (201, 3)]}, 3, 100, False, None),
    "a gap between segments": ({0: [(0, 3), (1, 3)], 200: [(200, 3)]}, 3, 2, False, None),
    "a gap farther up": ({0: [(0, 3), (90, 3), (91, 3)]}, 3, 2, False, None),
    "a gap that damage made": ({0: [(0, 3), (90, 3)]}, 3, 2, True, None),
}


def frames(spark):
    batches, segments, checkpoints = [], [], []
    for topic, (logs, epoch, high_watermark, is_damaged, _) in GRID.items():
        copy = {"topic": topic, "partition": 0, "source": "raw:1"}
        noted = {"leader_epoch": (epoch, 0), "high_watermark": (high_watermark, None)}
        for name, (value, start) in noted.items():
            checkpoints += [] if value is None else [copy | {"name": name, "value": value, "start_offset": start}]
        for base, log in logs.items():
            bad = {"position": 61, "length": 9, "reason": "CORRUPT_BATCH", "next_offset": log[-1][0]}
            seen = {
                "path": f"{topic}/{base}",
                "kind": "raw",
                "first_offset": log[0][0],
                "end_offset": log[-1][0] + 1,
                "tail": "CLEAN",
            }
            seen |= {"bytes": 1_000, "batches": len(log), "is_decoded": True}
            segments.append(copy | seen | {"segment_base_offset": base, "unreadable": [bad] if is_damaged else []})
            before = None
            for offset, leader_epoch in log:
                place = {"segment_base_offset": base, "position": 100 * offset, "size": 100}
                gap = None if before is None else offset - before - 1
                row = {"base_offset": offset, "last_offset": offset, "partition_leader_epoch": leader_epoch, "offset_gap": gap}
                batches.append(copy | place | row)
                before = offset
    tables = {"record_batches": batches, "segments": segments, "checkpoints": checkpoints}
    return [spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schemas.TABLES[name])) for name, rows in tables.items()]


CONTRADICTED = {name: expected for name, (*_, expected) in GRID.items() if expected is not None}


def test_what_is_contradicted_at_the_end_of_a_segment(spark):
    record_batches, segments, checkpoints = frames(spark)
    found = contradicted_batches(epochs_of_segments(record_batches), segments, checkpoints)
    expected = [(name, offset, reason, 100 * offset, 100) for name, (offset, reason) in CONTRADICTED.items()]
    assert_rows(found, expected, "topic", "base_offset", "reason", "position", "size")


def test_a_contradicted_batch_damages_its_copy_and_is_quarantined(spark):
    record_batches, segments, checkpoints = frames(spark)
    notes = partition_notes(spark, [])
    instants = spark.createDataFrame([], "broker string, folder string, captured_at_ms long")
    expected = spark.createDataFrame([], "topic string, partition int")
    copies = coverage(segments, record_batches, checkpoints, notes, noted_leaders(notes), instants, expected).collect()
    lost = {name: offset for name, (offset, _) in CONTRADICTED.items()}
    damaged = {row["topic"]: row for row in copies if row["status"] == "DAMAGED" and not GRID[row["topic"]][3]}
    assert {topic: row["damaged_offset"] - 1 for topic, row in damaged.items()} == lost
    assert {row["unreadable_bytes"] for row in damaged.values()} == {100}
    rows = quarantine(segments, record_batches, checkpoints).where("length != 9")
    expected = [(topic, 100 * offset, 100, topic) for topic, offset in lost.items()]
    assert_rows(rows, expected, "topic", "position", "length", F.split("path", "/")[0])
