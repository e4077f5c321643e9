"""Audits that start from snapshots, against full audits of every real capture."""

import shutil

import pytest

from tests.support import live_output
from tests.support.memory_audits import audited

SAME = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset", "verdict", "kafka_find_hanging")


def judged(tables):
    return sorted(tuple(row[name] for name in SAME) for row in tables.rows("open_transactions"))


def stable(tables):
    return sorted((row["topic"], row["partition"], row["last_stable_offset"], row["is_late"]) for row in tables.rows("partitions"))


def states(tables):
    names = ("topic", "partition", "producer_id", "producer_epoch", "last_sequence", "current_transaction_start_offset")
    return sorted(tuple(map(str, (row[name] for name in names))) for row in tables.rows("producer_states"))


#: Those with a segment to skip.
LONG = ["causes-3.9", "cluster-3.9", "tools-3.7"]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "cluster-3.9" else pytest.mark.slow) for n in LONG])
def test_from_the_snapshots_on_as_from_the_beginning(spark, captures, name):
    given = (captures / name / "brokers", "--as-of", str(live_output.as_of(captures / name)))
    whole, short = audited(spark, *given), audited(spark, *given, "--start", "snapshot")
    assert (judged(short), stable(short), states(short)) == (judged(whole), stable(whole), states(whole))


@pytest.mark.slow
def test_segments_that_a_snapshot_stands_for_are_listed_and_not_read(spark, captures):
    tables = audited(spark, captures / "nights-3.9" / "night-3" / "brokers", "--start", "snapshot")
    skipped = [row for row in tables.rows("segments") if row["kind"] == "skipped"]
    assert skipped
    assert all(row["batches"] == 0 for row in skipped)
    short = [row for row in tables.rows("coverage") if row["read_from_offset"] and row["topic"] == skipped[0]["topic"]]
    assert short[0]["status"] == "COMPLETE"
    assert short[0]["detail"] == f"read from the snapshot at {short[0]['read_from_offset']} on"


@pytest.mark.slow
def test_a_corrupt_snapshot_stands_for_nothing(spark, captures, tmp_path):
    folder = shutil.copytree(captures / "nights-3.9" / "night-3" / "brokers", tmp_path / "brokers")
    for snapshot in folder.rglob("*.snapshot"):
        snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"?")
    tables = audited(spark, folder, "--start", "snapshot")
    assert not [row for row in tables.rows("segments") if row["kind"] == "skipped"]
