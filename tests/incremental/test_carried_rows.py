"""Rows carried over from an earlier run, in real Delta tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deltalake.exceptions import CommitFailedError
from pyspark.sql import functions as F

from tests.delta.test_store import positions, rows
from tests.support.frames import empty
from txnlib.delta.store import RunStore, Store
from txnlib.incremental import linked_tables
from txnlib.incremental.carried_rows import CarriedRows, ResumedTable
from txnlib.incremental.linked_files import DataFile, files_of
from txnlib.incremental.linked_tables import LinkedTables, remove_temporary_files
from txnlib.spark.schemas import PRODUCER_SPANS, QUARANTINE

NAME = "quarantine"


@pytest.fixture
def store(spark, tmp_path):
    return Store(spark, str(tmp_path / "out"))


@pytest.fixture(autouse=True)
def small_tables_are_linked(monkeypatch):
    monkeypatch.setattr(linked_tables, "MIN_LINKED_BYTES", 0)


def earlier_run(spark, store, *files):
    """A run with the rows of each list of positions in a file of their own."""
    run = RunStore(store, "eu", "eu-1")
    run.write(NAME, empty(spark, QUARANTINE))
    for places in files:
        run.append(NAME, rows(spark, *places))
    return run


def unchanged_below(run, position):
    return CarriedRows(run, lambda frame: frame.withColumn("is_unchanged", F.col("position") < position))


def write(run, new, carried, name=NAME):
    """Writes new rows and those carried over, and returns the writer."""
    tables = LinkedTables(run)
    tables.write(name, ResumedTable(new, carried))
    return tables


def inodes(store, run_id):
    return {file.path.stat().st_ino for file in files_of(Path(store.output, NAME), run_id)}


def test_unchanged_files_are_linked_and_unchanged_rows_of_other_files_are_written(spark, store):
    monday = earlier_run(spark, store, [1, 2], [3, 40], [50])
    tuesday = RunStore(store, "eu", "eu-2")
    written = write(tuesday, rows(spark, 4), unchanged_below(monday, 10))
    assert positions(tuesday) == [1, 2, 3, 4]
    assert positions(monday) == [1, 2, 3, 40, 50]
    assert len(inodes(store, "eu-2") & inodes(store, "eu-1")) == 1
    assert sorted(row["position"] for row in written.read_new(NAME).collect()) == [3, 4], "new, and of files that changed"
    assert tuesday.commit(NAME).rows == 4
    assert {row["run_id"] for row in store.read_all(NAME).where("position = 1").collect()} == {"eu-1", "eu-2"}
    assert not Path(store.output, linked_tables.TEMPORARY_FOLDER).exists()


def test_a_small_table_is_written_again(spark, store, monkeypatch):
    monkeypatch.setattr(linked_tables, "MIN_LINKED_BYTES", 1 << 20)
    monday, tuesday = earlier_run(spark, store, [1, 2], [30]), RunStore(store, "eu", "eu-2")
    write(tuesday, rows(spark, 4), unchanged_below(monday, 10))
    assert positions(tuesday) == [1, 2, 4]
    assert not inodes(store, "eu-2") & inodes(store, "eu-1")


def test_a_run_with_linked_files_can_be_repeated_replaced_and_resumed_from(spark, store):
    monday, tuesday, wednesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2"), RunStore(store, "eu", "eu-3")
    for _ in range(2):
        write(tuesday, rows(spark, 3), unchanged_below(monday, 10))
        assert positions(tuesday) == [1, 2, 3]
    write(wednesday, empty(spark, QUARANTINE), unchanged_below(tuesday, 3))
    assert positions(wednesday) == [1, 2]
    tuesday.write(NAME, rows(spark, 7))
    assert (positions(monday), positions(tuesday), positions(wednesday)) == ([1, 2], [7], [1, 2])
    assert tuesday.commit(NAME).rows == 1


def test_linked_files_outlive_the_run_they_came_from(spark, store):
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    write(tuesday, rows(spark, 3), unchanged_below(monday, 10))
    spark.sql(f"DELETE FROM {store.sql_name(NAME)} WHERE run_id = 'eu-1'")
    for file in Path(store.output, NAME, "run_id=eu-1").glob("part-*"):
        file.unlink()  # as VACUUM does, some days later
    assert positions(tuesday) == [1, 2, 3]
    tuesday.compact(NAME)
    assert positions(tuesday) == [1, 2, 3]


def test_no_row_is_read_of_files_that_statistics_prove_unchanged(spark, store):
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")

    def not_read(frame):
        return frame.withColumn("is_unchanged", F.raise_error(F.lit("was read")).isNotNull())

    write(tuesday, rows(spark, 3), CarriedRows(monday, not_read, frozenset({("orders", 1), ("other", 0)})))
    assert positions(tuesday) == [1, 2, 3]
    with pytest.raises(Exception, match="was read"):
        write(tuesday, rows(spark, 3), CarriedRows(monday, not_read, frozenset({("orders", 0)})))
    assert positions(tuesday) == [1, 2, 3]
    assert not Path(store.output, linked_tables.TEMPORARY_FOLDER).exists()


def test_temporary_files_of_an_interrupted_run_are_removed(spark, store, tmp_path):
    folders = {run_id: tmp_path / "out" / linked_tables.TEMPORARY_FOLDER / run_id / NAME for run_id in ("eu-1", "eu-2")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    remove_temporary_files(store, "eu-1")
    assert [folder.exists() for folder in folders.values()] == [False, True]


def file_with(topics=("a", "c"), partitions=(3, 7), values=None, nulls=None):
    least, most = ({"topic": topic, "partition": partition} for topic, partition in zip(topics, partitions, strict=True))
    return DataFile(Path("x"), values or {"run_id": "eu-1"}, 1, 1, least, most, nulls or {})


@pytest.mark.parametrize(
    ("changed", "file", "is_unchanged"),
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
def test_a_file_is_unchanged_if_it_can_have_no_row_of_a_changed_partition(changed, file, is_unchanged):
    assert CarriedRows(None, None, None if changed is None else frozenset(changed)).is_unchanged(file) is is_unchanged


def test_statistics_prove_only_files_with_the_given_values_and_without_null():
    newest = CarriedRows(None, None, frozenset(), partition_values={"is_newest": "false"})
    assert [newest.is_unchanged(file_with(values={"is_newest": value})) for value in ("false", "true", None)] == [
        True,
        False,
        False,
    ]
    assert not newest.is_unchanged(file_with()), "of a table with other partition columns"
    ended = CarriedRows(None, None, frozenset(), not_null=("marker_offset",))
    assert [ended.is_unchanged(file_with(nulls=nulls)) for nulls in ({"marker_offset": 0}, {"marker_offset": 1}, {})] == [
        True,
        False,
        False,
    ]


def test_a_run_with_letters_that_writers_escape_writes_its_rows(spark, store):
    run_id = "50% é-2"
    monday, other = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", run_id)
    for _ in range(2):
        written = write(other, rows(spark, 3), unchanged_below(monday, 2))
        assert positions(other) == [1, 3]
    assert written.read_new(NAME).count() == 2
    assert not files_of(Path(store.output, NAME), run_id)


def test_a_folder_whose_name_is_a_pattern_is_written_by_spark_alone(spark, tmp_path):
    store = Store(spark, str(tmp_path / "a[b]c"))
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    write(tuesday, rows(spark, 3), unchanged_below(monday, 2))
    assert positions(tuesday) == [1, 3]


def test_where_no_links_can_be_made_files_are_copied(spark, store, monkeypatch):
    def no_links(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    write(tuesday, rows(spark, 3), unchanged_below(monday, 2))
    assert positions(tuesday) == [1, 3]
    assert not inodes(store, "eu-2") & inodes(store, "eu-1")


def test_the_slower_of_two_writers_tries_again(spark, store, monkeypatch):
    monday, tuesday = earlier_run(spark, store, [1], [2]), RunStore(store, "eu", "eu-2")
    replace_run, others = linked_tables.replace_run, iter([RunStore(store, "us", "us-1")])

    def overtaken(table, run_id, files):
        for other in others:
            other.write(NAME, rows(spark, 9))
            raise CommitFailedError("overtaken")
        replace_run(table, run_id, files)

    monkeypatch.setattr(linked_tables, "replace_run", overtaken)
    write(tuesday, rows(spark, 3), unchanged_below(monday, 10))
    assert (positions(tuesday), positions(RunStore(store, "us", "us-1"))) == ([1, 2, 3], [9])


def spans(spark, *numbers):
    found = [{"topic": "orders", "partition": 0, "producer_id": n, "is_newest": n > 9} for n in numbers]
    return spark.createDataFrame([[row.get(name) for name in PRODUCER_SPANS.names] for row in found], PRODUCER_SPANS)


@pytest.mark.parametrize("is_old", [False, True], ids=["new table", "table of an older version"])
def test_newest_spans_have_a_partition_of_their_own_except_in_old_tables(spark, store, is_old):
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
    older = CarriedRows(
        monday,
        lambda rows: rows.withColumn("is_unchanged", ~F.col("is_newest")),
        frozenset(),
        partition_values={"is_newest": "false"},
    )
    written = write(tuesday, spans(spark, 3, 11), older, "producer_spans")
    found = {(row["producer_id"], row["is_newest"]) for row in tuesday.read("producer_spans").collect()}
    assert found == {(1, False), (2, False), (3, False), (11, True)}
    new = {row["producer_id"] for row in written.read_new("producer_spans").collect()}
    assert new == ({1, 2, 3, 11} if is_old else {3, 11})
    assert {row["producer_id"] for row in monday.read("producer_spans").where("is_newest").collect()} == {10}
    assert RunStore(store, "eu", "eu-0").read("producer_spans").count() == is_old
