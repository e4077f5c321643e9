"""Which records of the metadata log count: of a whole log, from a snapshot on, and with holes."""

import pytest

from tests.support.frames import frame
from tests.support.metadata_history import MetadataHistory
from txnlib.spark.metadata_log import metadata_log
from txnlib.spark.schemas import TABLES

SEEDS = range(3)


def counted(spark, rows):
    """Path and offset of each record that counts."""
    log = metadata_log(frame(spark, TABLES["metadata_log"], *rows)).where("is_effective")
    return sorted((row["path"], row["offset"]) for row in log.collect())


def places(rows):
    return sorted((row["path"], row["offset"]) for row in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_whole_log_each_record_counts_once_unless_it_was_aborted(spark, seed):
    history = MetadataHistory(seed)
    behind = [row | {"source": "raw:3", "path": "other"} for row in history.rows[: len(history.rows) // 2]]
    assert counted(spark, [*history.rows, *behind]) == places(history.counted)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_snapshot_stands_for_what_is_before_it(spark, seed):
    history = MetadataHistory(seed)
    # A controller takes no snapshot inside of its transactions.
    ends = ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD", "NO_OP_RECORD", "CONFIG_RECORD")
    outside = [row["last_offset"] + 1 for row in history.rows if row["type"] in ends]
    at = outside[len(outside) // 2]
    later = [row for row in history.rows if row["offset"] >= at]
    older = history.snapshot(at // 2, "older")
    broken = history.snapshot(history.end, "broken", is_whole=False)
    newest = history.snapshot(at)
    expected = [*newest, *(row for row in history.counted if row["offset"] >= at)]
    assert counted(spark, [*older, *newest, *broken, *later]) == places(expected)


def test_after_a_hole_nothing_counts(spark):
    history = MetadataHistory(3)
    gone = history.rows[len(history.rows) // 2]
    found = counted(spark, [row for row in history.rows if row is not gone])
    assert found == places(row for row in history.counted if row["offset"] < gone["offset"])


def test_a_snapshot_after_the_hole_counts_again(spark):
    history = MetadataHistory(4)
    gone = history.rows[len(history.rows) // 3]
    at = history.end - 1
    newest = history.snapshot(at)
    found = counted(spark, [*(row for row in history.rows if row is not gone), *newest])
    assert found == places([*newest, *(row for row in history.counted if row["offset"] > gone["offset"])])


def test_what_a_newer_controller_replaced_does_not_count(spark):
    rows = [
        {"source": "raw:1", "path": "a", "offset": n, "last_offset": n, "controller_epoch": 1, "type": "TOPIC_RECORD"}
        | {"timestamp_ms": n, "name": f"old-{n}", "topic_id": f"old-{n}"}
        for n in range(6)
    ]
    newer = [row | {"source": "raw:2", "path": "b"} for row in rows[:3]]
    newer += [
        row | {"source": "raw:2", "path": "b", "controller_epoch": 2, "topic_id": f"new-{row['offset']}"}
        for row in rows[3:5]
    ]
    log = metadata_log(frame(spark, TABLES["metadata_log"], *rows, *newer)).where("is_effective")
    assert sorted((row["offset"], row["topic_id"]) for row in log.collect()) == [
        (0, "old-0"),
        (1, "old-1"),
        (2, "old-2"),
        (3, "new-3"),
        (4, "new-4"),
    ]
