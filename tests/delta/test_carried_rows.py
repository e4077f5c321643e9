"""Rows carried over from an earlier run, in real Delta tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from tests.delta.test_store import positions, rows
from tests.support.frames import empty
from txnlib.delta import store as stores
from txnlib.delta.carried_rows import Held
from txnlib.delta.linked_files import DataFile, files_of
from txnlib.delta.store import RunStore, Store
from txnlib.spark.schemas import PRODUCER_SPANS, QUARANTINE

NAME = "quarantine"


@pytest.fixture
def store(spark, tmp_path):
    return Store(spark, str(tmp_path / "out"))


@pytest.fixture(autouse=True)
def small_tables_are_worth_it(monkeypatch):
    monkeypatch.setattr(stores, "WORTH_LINKING", 0)


def earlier_run(spark, store, *files):
    """A run whose rows stand in so many files, in each at the given positions."""
    run = RunStore(store, "eu", "eu-1")
    run.write(NAME, empty(spark, QUARANTINE))
    for places in files:
        run.append(NAME, rows(spark, *places))
    return run


def held_below(run, position):
    return Held(run, lambda frame: frame.withColumn("holds", F.col("position") < position))


def inodes(store, run_id):
    return {file.path.stat().st_ino for file in files_of(Path(store.output, NAME), run_id)}


def test_files_of_which_every_row_holds_are_linked_and_of_others_the_rows_that_hold_are_written(spark, store):
    monday = earlier_run(spark, store, [1, 2], [3, 40], [50])
    tuesday = RunStore(store, "eu", "eu-2")
    tuesday.write(NAME, rows(spark, 4), held_below(monday, 10))
    assert positions(tuesday) == [1, 2, 3, 4]
    assert positions(monday) == [1, 2, 3, 40, 50]
    assert len(inodes(store, "eu-2") & inodes(store, "eu-1")) == 1
    assert sorted(row["position"] for row in tuesday.read_own(NAME).collect()) == [3, 4], (
        "what is new, and what stood beside others"
    )
    assert tuesday.commit(NAME).rows == 4
    assert {row["run_id"] for row in store.read_all(NAME).where("position = 1").collect()} == {"eu-1", "eu-2"}
    assert not Path(store.output, stores.ASIDE).exists()


def test_a_small_table_is_written_again(spark, store, monkeypatch):
    monkeypatch.setattr(stores, "WORTH_LINKING", 1 << 20)
    monday, tuesday = earlier_run(spark, store, [1, 2], [30]), RunStore(store, "eu", "eu-2")
    tuesday.write(NAME, rows(spark, 4), held_below(monday, 10))
    assert positions(tuesday) == [1, 2, 4]
    assert not inodes(store, "eu-2") & inodes(store, "eu-1")


def test_a_run_that_took_over_is_repeated_replaced_and_taken_over_from(spark, store):
    monday, tuesday, wednesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2"), RunStore(store, "eu", "eu-3")
    for _ in range(2):
        tuesday.write(NAME, rows(spark, 3), held_below(monday, 10))
        assert positions(tuesday) == [1, 2, 3]
    wednesday.write(NAME, empty(spark, QUARANTINE), held_below(tuesday, 3))
    assert positions(wednesday) == [1, 2]
    tuesday.write(NAME, rows(spark, 7))
    assert (positions(monday), positions(tuesday), positions(wednesday)) == ([1, 2], [7], [1, 2])
    assert tuesday.commit(NAME).rows == 1


def test_what_a_run_took_over_outlives_the_run_it_came_from(spark, store):
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    tuesday.write(NAME, rows(spark, 3), held_below(monday, 10))
    spark.sql(f"DELETE FROM {store.sql_name(NAME)} WHERE run_id = 'eu-1'")
    for file in Path(store.output, NAME, "run_id=eu-1").glob("part-*"):
        file.unlink()  # as VACUUM does, some days later
    assert positions(tuesday) == [1, 2, 3]
    tuesday.compact(NAME)
    assert positions(tuesday) == [1, 2, 3]


def test_where_the_log_says_enough_no_row_is_looked_at(spark, store):
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")

    def not_looked_at(frame):
        return frame.withColumn("holds", F.raise_error(F.lit("looked at")).isNotNull())

    tuesday.write(NAME, rows(spark, 3), Held(monday, not_looked_at, frozenset({("orders", 1), ("other", 0)})))
    assert positions(tuesday) == [1, 2, 3]
    with pytest.raises(Exception, match="looked at"):
        tuesday.write(NAME, rows(spark, 3), Held(monday, not_looked_at, frozenset({("orders", 0)})))
    assert positions(tuesday) == [1, 2, 3]
    assert not Path(store.output, stores.ASIDE).exists()


def file_with(topics=("a", "c"), partitions=(3, 7), values=None, nulls=None):
    least, most = ({"topic": topic, "partition": partition} for topic, partition in zip(topics, partitions, strict=True))
    return DataFile(Path("x"), values or {"run_id": "eu-1"}, 1, 1, least, most, nulls or {})


@pytest.mark.parametrize(
    ("doubtful", "file", "is_whole"),
    [
        ([], file_with(), True),
        ([("b", 5)], file_with(), False),
        ([("a", 3)], file_with(), False),
        ([("c", 7)], file_with(), False),
        ([("b", 2), ("b", 8), ("d", 5), ("A", 5)], file_with(), True),
        (None, file_with(), False),
        ([], file_with(topics=(None, None)), False),
        ([], file_with(partitions=(None, 7)), False),
    ],
)
def test_a_file_is_whole_if_it_can_hold_nothing_doubtful(doubtful, file, is_whole):
    assert Held(None, None, None if doubtful is None else frozenset(doubtful)).is_whole(file) is is_whole


def test_a_file_is_told_of_only_if_it_is_of_the_kind(spark):
    newest = Held(None, None, frozenset(), told_of={"is_newest": "false"})
    assert [newest.is_whole(file_with(values={"is_newest": value})) for value in ("false", "true", None)] == [True, False, False]
    assert not newest.is_whole(file_with()), "of a table that is not parted so"
    ended = Held(None, None, frozenset(), without_null=("marker_offset",))
    assert [ended.is_whole(file_with(nulls=nulls)) for nulls in ({"marker_offset": 0}, {"marker_offset": 1}, {})] == [
        True,
        False,
        False,
    ]


def test_a_run_with_letters_that_writers_escape_writes_its_rows(spark, store):
    run_id = "50% é-2"
    monday, other = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", run_id)
    for _ in range(2):
        other.write(NAME, rows(spark, 3), held_below(monday, 2))
        assert positions(other) == [1, 3]
    assert other.read_own(NAME).count() == 2
    assert not inodes_named(store, run_id)


def inodes_named(store, run_id):
    return files_of(Path(store.output, NAME), run_id)


def test_a_folder_whose_name_is_a_pattern_is_written_by_spark_alone(spark, tmp_path):
    store = Store(spark, str(tmp_path / "a[b]c"))
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    tuesday.write(NAME, rows(spark, 3), held_below(monday, 2))
    assert positions(tuesday) == [1, 3]


def test_where_no_links_can_be_made_files_are_copied(spark, store, monkeypatch):
    def no_links(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    tuesday.write(NAME, rows(spark, 3), held_below(monday, 2))
    assert positions(tuesday) == [1, 3]
    assert not inodes(store, "eu-2") & inodes(store, "eu-1")


def test_whoever_is_slower_tries_again(spark, store, monkeypatch):
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    replace_run, others = stores.replace_run, iter([RunStore(store, "us", "us-1")])

    def overtaken(table, run_id, files):
        for other in others:
            other.write(NAME, rows(spark, 9))
            raise stores.CommitFailedError("overtaken")
        replace_run(table, run_id, files)

    monkeypatch.setattr(stores, "replace_run", overtaken)
    tuesday.write(NAME, rows(spark, 3), held_below(monday, 10))
    assert (positions(tuesday), positions(RunStore(store, "us", "us-1"))) == ([1, 2, 3], [9])


def spans(spark, *numbers):
    found = [{"topic": "orders", "partition": 0, "producer_id": n, "is_newest": n > 9} for n in numbers]
    return spark.createDataFrame([[row.get(name) for name in PRODUCER_SPANS.names] for row in found], PRODUCER_SPANS)


@pytest.mark.parametrize("is_old", [False, True], ids=["parted", "as older versions made it"])
def test_newest_spans_stand_apart_in_new_tables_and_as_they_did_in_old_ones(spark, store, is_old):
    monday, tuesday = RunStore(store, "eu", "eu-1"), RunStore(store, "eu", "eu-2")
    if is_old:
        old = (
            spans(spark, 1)
            .drop("is_newest", "suspects_count")
            .withColumn("cluster", F.lit("eu"))
            .withColumn("run_id", F.lit("eu-0"))
        )
        old.write.format("delta").partitionBy("run_id").option("delta.dataSkippingStatsColumns", "topic").save(
            f"{store.output}/producer_spans"
        )
    monday.write("producer_spans", spans(spark, 1, 2, 10))
    held = Held(monday, lambda rows: rows.withColumn("holds", ~F.col("is_newest")), frozenset(), told_of={"is_newest": "false"})
    tuesday.write("producer_spans", spans(spark, 3, 11), held)
    told = {(row["producer_id"], row["is_newest"]) for row in tuesday.read("producer_spans").collect()}
    assert told == {(1, False), (2, False), (3, False), (11, True)}
    own = {row["producer_id"] for row in tuesday.read_own("producer_spans").collect()}
    assert own == ({1, 2, 3, 11} if is_old else {3, 11})
    assert {row["producer_id"] for row in monday.read("producer_spans").where("is_newest").collect()} == {10}
    assert RunStore(store, "eu", "eu-0").read("producer_spans").count() == is_old
