"""Times and bytes around each start, against a loop over batches."""

from __future__ import annotations

from random import Random

from txnlib.core.instants import clock_ms
from txnlib.spark import offset_buckets
from txnlib.spark.reports.surroundings import surroundings
from txnlib.spark.schemas import RECORD_BATCHES

SOURCE = "raw:1"


def batches_of(random: Random, partition: int) -> list[dict]:
    """A log with gaps, of which some batches are markers, and some stamped by the broker."""
    found, offset = [], random.randrange(3)
    for _ in range(random.randrange(60)):
        is_marker, is_stamped = random.random() < 0.2, random.random() < 0.2
        row = {
            "base_offset": offset,
            "size": random.randrange(1, 100),
            "is_control": is_marker,
            "max_timestamp_ms": random.randrange(50) - 5,
        }
        row |= {"timestamp_type": "LOG_APPEND_TIME" if is_stamped else "CREATE_TIME"}
        row |= {"producer_id": None if not is_marker and random.random() < 0.3 else 7}
        found.append({"topic": "t", "partition": partition, "source": SOURCE, **row})
        offset += random.choice((1, 1, 2, 3, 20))
    return found


def looked_for(rows: list[dict], start: int) -> tuple:
    def stamps(is_wanted) -> list[int]:
        marked = [row for row in rows if (row["is_control"] and row["producer_id"]) or row["timestamp_type"] == "LOG_APPEND_TIME"]
        return [ms for row in marked if is_wanted(row["base_offset"]) and (ms := clock_ms(row["max_timestamp_ms"])) is not None]

    before, after = stamps(lambda offset: offset < start), stamps(lambda offset: offset >= start)
    size = sum(row["size"] for row in rows if row["base_offset"] >= start)
    return max(before, default=None), min(after, default=None), size


def test_of_random_logs_with_many_starts_in_a_stretch_and_starts_whose_batches_are_lost(spark, monkeypatch):
    monkeypatch.setattr(offset_buckets, "BUCKET_OFFSETS", 16)
    random = Random(11)
    logs = {partition: batches_of(random, partition) for partition in range(40)}
    starts = [
        (partition, start)
        for partition, rows in logs.items()
        for start in {random.randrange(400) for _ in range(2)} | {row["base_offset"] for row in rows if random.random() < 0.2}
    ]
    expected = {(partition, start): looked_for(logs[partition], start) for partition, start in starts}
    assert sum(found != (None, None, 0) for found in expected.values()) > 100

    names = RECORD_BATCHES.names
    # A second copy of each partition, which is not the judged one, counts nothing.
    rows = [row | other for found in logs.values() for row in found for other in ({}, {"source": "raw:2"})]
    batches = spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], RECORD_BATCHES)
    opened = spark.createDataFrame(
        [("t", partition, SOURCE, start) for partition, start in starts for _ in range(2)],
        "topic string, partition int, source string, start_offset long",
    )
    found = {
        (row["partition"], row["start_offset"]): (row["stamped_before_ms"], row["stamped_after_ms"], row["bytes_from_here"])
        for row in surroundings(opened, batches).collect()
    }
    assert found == expected
