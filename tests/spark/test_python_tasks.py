"""Does every task get its work, and little else? What a worker has loaded is looked through for garbage no more."""

from __future__ import annotations

import os

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from txnlib.spark import python_tasks
from txnlib.spark.python_tasks import LISTED, begin_task, in_tasks, lists_of


@given(st.lists(st.integers(1, LISTED), max_size=40))
def test_lists_hold_all_work_in_order_and_none_is_much_longer_than_a_list_may_be(weights):
    lists = lists_of(weights, lambda weight: weight)
    assert [piece for each in lists for piece in each] == weights
    assert all(sum(each[:-1]) < LISTED for each in lists)
    assert all(sum(each) >= LISTED for each in lists[:-1]), "no list is cut short"


def test_work_of_several_lists_is_done_once_each(spark, monkeypatch):
    monkeypatch.setattr(python_tasks, "LISTED", 3)

    def read(piece):
        yield pa.RecordBatch.from_pylist([{"piece": piece}])

    found = in_tasks(spark, list(range(8)), read, "piece long")
    assert sorted(row["piece"] for row in found.collect()) == list(range(8))
    assert in_tasks(spark, [], read, "piece long").collect() == []


def test_a_worker_keeps_what_it_loaded_out_of_garbage_collection(spark):
    def read(tasks):
        import gc

        begin_task()
        begin_task()
        for _ in tasks:
            pass
        yield pa.RecordBatch.from_pylist([{"worker": os.getpid(), "frozen": gc.get_freeze_count()}])

    rows = spark.range(0, 2, 1, 2).mapInArrow(read, "worker long, frozen long").collect()
    assert all(row["worker"] != os.getpid() and row["frozen"] > 10_000 for row in rows), rows
