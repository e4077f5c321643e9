"""What a worker has loaded is looked through for garbage no more."""

from __future__ import annotations

import os

import pyarrow as pa

from txnlib.spark.python_tasks import begin_task


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
