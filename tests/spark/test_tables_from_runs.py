"""Tables made of runs of batches, and those made of single batches."""

from importlib import import_module
from random import Random

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from tests.support.frames import assert_same, empty, frame, kept
from tests.support.rules import selected
from tests.support.run_logs import RandomLog, read_in_parts, read_rows
from txnlib.core.batch_runs import BATCH_HASH
from txnlib.core.coverage.truncated_tails import EPOCHS_OF_SEGMENTS
from txnlib.core.findings.copy_findings import DIFFERING_BATCHES
from txnlib.core.sql_text import IS_OPEN
from txnlib.core.tables.blocked_groups import READ_ENDS
from txnlib.core.tables.partitions import UNSTABLE_BATCHES
from txnlib.readers import batch_rows
from txnlib.spark.joins import select, single_batches
from txnlib.spark.producers.checked_batches import checked_batches
from txnlib.spark.producers.producer_spans import producer_spans
from txnlib.spark.schemas import PRODUCER, TABLES, TOPIC_PARTITION
from txnlib.spark.tables.batch_evidence import stamps_around

LOGS = 30
KEPT = ("topic", "partition", "source")


class Logs:
    """Random logs of three segments, some of which overlap, and a second copy of some of them."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, str, int, bytes]] = []
        self.coverage: list[dict] = []
        self.snapshots: list[dict] = []
        for partition in range(LOGS):
            self._add(Random(partition), partition)

    def _add(self, random: Random, partition: int) -> None:
        log = RandomLog(random, oddity=random.choice((0.0, 0.01, 0.03)))
        log.offset = random.choice((0, 0, 40_000))
        begin = log.offset
        parts = [(log.offset, log.segment(random.randrange(5, 60))) for _ in range(3)]
        overlap = None
        if random.random() < 0.2:
            # The first segment again, with the second one behind it.
            overlap = parts[1][0]
            parts[0] = (parts[0][0], parts[0][1] + parts[1][1])
        sources = ["raw:1", "raw:2"] if random.random() < 0.4 else ["raw:1"]
        for source in sources:
            kept = parts if source == "raw:1" else self._other_copy(random, parts)
            self.segments += [(partition, source, *part) for part in kept]
            mark = random.choice(
                (None, log.offset, random.randrange(begin, log.offset), random.randrange(begin, log.offset))
            )
            cut = random.randrange(begin, log.offset)
            epoch = random.randrange(log.leader_epoch + 1)
            truncated = [{"leader_epoch": epoch, "from_offset": cut}] if random.random() < 0.3 else None
            is_judged = source == "raw:1"
            row = {
                "topic": "orders",
                "partition": partition,
                "source": source,
                "is_judged": is_judged,
                "high_watermark": mark,
            }
            row |= {
                "first_offset": begin,
                "log_start_offset": begin,
                "read_from_offset": begin,
                "end_offset": log.offset,
            }
            self.coverage.append(row | {"truncated": truncated, "overlap_offset": overlap, "is_deleted": False})
        if begin and random.random() < 0.7:
            for pid in (8, 9, None):
                self.snapshots.append(_snapshot_row(partition, begin + random.choice((0, 2_000)), pid, begin - 7))

    def _other_copy(self, random: Random, parts: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """The same batches in other segments; sometimes with a batch that differs."""
        content = (
            parts[0][1] if len(parts[0][1]) > len(parts[1][1]) + 4_000 else b"".join(part for _, part in parts[:2])
        )
        content = b"".join(part for _, part in parts) if random.random() < 0.7 else content
        if random.random() < 0.5:
            # Another log goes on after the first segment.
            other = RandomLog(random, oddity=0.01)
            other.offset = parts[1][0]
            content = parts[0][1] + other.segment(60)
        return [(parts[0][0], content)]

    def rows(self, *, has_runs: bool) -> list[dict]:
        found = []
        for partition, source, base, content in self.segments:
            where = {"base_offset": base, "source": source, "partition": partition}
            random = Random(f"{where}")
            is_cut = has_runs and random.random() < 0.5
            found += (
                read_in_parts(random, content, **where) if is_cut else read_rows(content, has_runs=has_runs, **where)
            )
        return found


def _snapshot_row(partition: int, offset: int, pid: int | None, start: int) -> dict:
    where = {"topic": "orders", "partition": partition, "source": "raw:1", "path": "x", "snapshot_offset": offset}
    state = {"producer_epoch": 0, "last_sequence": 3, "last_offset": start, "offset_delta": 0, "last_timestamp_ms": 5}
    return where | ({"producer_id": pid, "current_txn_first_offset": start, **state} if pid is not None else {})


@pytest.fixture(scope="module")
def logs():
    return Logs()


@pytest.fixture(scope="module")
def both(spark, logs):
    """`record_batches` with runs, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_rows, "PAGE", 150)
        frames = {
            has_runs: frame(spark, TABLES["record_batches"], *logs.rows(has_runs=has_runs))
            for has_runs in (True, False)
        }
    return frames


@pytest.fixture
def small_pages(monkeypatch):
    # By name, because a package has its functions under the names of their modules.
    for module in ("txnlib.spark.producers.checked_batches", "txnlib.spark.tables.batch_evidence"):
        monkeypatch.setattr(import_module(module), "PAGE", 150)


@pytest.fixture(scope="module")
def coverage(spark, logs):
    return frame(spark, TABLES["coverage"], *logs.coverage)


@pytest.fixture(scope="module")
def snapshots(spark, logs):
    return frame(spark, TABLES["producer_snapshots"], *logs.snapshots)


@pytest.fixture(scope="module")
def spans(spark, both, coverage, snapshots):
    return {has_runs: kept(producer_spans(rows, snapshots, coverage)) for has_runs, rows in both.items()}


def test_there_are_far_fewer_rows(both):
    assert both[True].count() < 0.75 * both[False].count()


def test_single_batches_are_the_rows_without_runs(both):
    assert_same(single_batches(both[True], "TRUE"), both[False])


def test_the_hash_of_a_run_is_that_of_its_batches(both):
    per_copy = {key: rows.groupBy(*KEPT).agg(F.expr(f"bit_xor({BATCH_HASH}) AS hash")) for key, rows in both.items()}
    assert_same(per_copy[True], per_copy[False])


def assert_alike(found, more_than, condition="true"):
    """The rows are the same with runs and without. More than `more_than` of them fulfil the condition."""
    single = kept(found[False])
    assert single.where(condition).count() > more_than
    assert_same(found[True], single)


def test_producer_spans_are_the_same(spans):
    assert spans[False].where(IS_OPEN).count() > 50
    assert_alike(spans, 100, "suspect IS NOT NULL")


def test_leader_epochs_are_the_same(both):
    # Only the last batch of a segment, and a batch that is the only one of its epoch, are asked for.
    is_wanted = (F.col("batches") == 1) | (
        F.col("ends") == F.max("ends").over(Window.partitionBy(*KEPT, "segment_base_offset"))
    )
    of_batch = ("base_offset", "last_offset", "position", "size", "offset_gap")
    wanted = {name: F.when(is_wanted, F.col(name)) for name in of_batch}
    frames = {key: select(EPOCHS_OF_SEGMENTS, record_batches=rows).withColumns(wanted) for key, rows in both.items()}
    assert_same(frames[True], frames[False])


def test_copy_findings_are_the_same(both, coverage):
    found = {key: selected(DIFFERING_BATCHES, record_batches=rows, coverage=coverage) for key, rows in both.items()}
    assert len(found[False]) > 3
    assert sorted(map(repr, found[True])) == sorted(map(repr, found[False]))


def test_checked_batches_are_the_same(spark, both, spans, coverage, small_pages):
    segments = empty(spark, TABLES["segments"])
    found = {key: checked_batches(rows, spans[False], coverage, segments) for key, rows in both.items()}
    assert_alike(found, 20, "place = 'odd'")


def test_lags_are_the_same(spark, both, coverage):
    lagging = _lagging(coverage)
    found = {key: select(UNSTABLE_BATCHES, asked=lagging, record_batches=rows) for key, rows in both.items()}
    assert_alike(found, 20)


def _lagging(coverage):
    """Each judged copy with offsets that may lie inside of batches and runs."""
    stable = F.col("first_offset") + F.pmod(F.xxhash64("partition"), F.col("end_offset") - F.col("first_offset"))
    mark = F.coalesce("high_watermark", "end_offset")
    return coverage.where("is_judged").select(
        *TOPIC_PARTITION,
        "source",
        stable.alias("last_stable_offset"),
        F.greatest(mark, stable + 1).alias("high_watermark"),
    )


def test_readable_ends_are_the_same(both, spans, coverage):
    ends = _lagging(coverage).drop("high_watermark")
    found = {
        key: select(READ_ENDS, asked=ends, producer_spans=spans[False], record_batches=rows)
        for key, rows in both.items()
    }
    assert_same(found[True], found[False])


#: Which part of a log is below its log start, and below its high watermark.
MARKS = {"log_start_offset": 0.2, "high_watermark": 0.5}


def test_surroundings_are_the_same(both, spans, coverage, small_pages):
    length = F.col("end_offset") - F.col("first_offset")
    marks = [(F.col("first_offset") + (length * part).cast("long")).alias(name) for name, part in MARKS.items()]
    judged = coverage.where("is_judged").select(*TOPIC_PARTITION, "source", "first_offset", "end_offset", *marks)
    own = spans[False].where(IS_OPEN).select(*PRODUCER, F.col("first_offset").alias("start_offset"), "last_offset")
    thirds = F.sequence(1 + F.col("partition") % 3, F.lit(9), F.lit(3))
    places = F.transform(thirds, lambda n: F.col("first_offset") + n * 977)
    anywhere = judged.select(
        *TOPIC_PARTITION, F.explode(places).alias("start_offset"), F.lit(1).cast("long").alias("producer_id")
    )
    opened = own.unionByName(anywhere, allowMissingColumns=True).join(
        judged.drop("first_offset", "end_offset"), on=list(TOPIC_PARTITION), how="inner"
    )
    found = {
        key: stamps_around(opened, rows).withColumn("stamps", F.sort_array("stamps")) for key, rows in both.items()
    }
    assert_same(found[True], found[False])
