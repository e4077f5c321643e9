"""More open transactions than are gathered on the driver."""

from functools import partial
from importlib import import_module

from tests.support import live_output
from tests.support.memory_audits import audited
from txnlib.spark.reports.dossiers import open_now


def test_many_open_transactions_are_judged_as_few_are(spark, captures, monkeypatch):
    capture = captures / "cluster-3.9"
    options = ("--as-of", str(live_output.as_of(capture)))
    few = audited(spark, capture / "brokers", *options).rows("open_transactions")
    monkeypatch.setattr(import_module("txnlib.spark.reports.open_transactions"), "open_now", partial(open_now, most_together=0))
    many = audited(spark, capture / "brokers", *options, "--cluster", "many").rows("open_transactions")
    assert len(few) > 2

    def in_order(rows):
        return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["start_offset"], row["producer_id"]))

    assert in_order(many) == in_order(few)
