"""More open transactions than are gathered on the driver."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from tests.support.memory_audits import audited
from txnlib.spark.reports.dossiers import open_now


def test_many_open_transactions_are_judged_as_few_are(spark, repository, monkeypatch):
    sample = repository / "examples" / "quickstart" / "brokers"
    few = audited(spark, sample).rows("open_transactions")
    monkeypatch.setattr(import_module("txnlib.spark.reports.open_transactions"), "open_now", partial(open_now, most_together=0))
    many = audited(spark, sample, "--cluster", "many").rows("open_transactions")
    assert len(few) > 2

    def in_order(rows):
        return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["start_offset"], row["producer_id"]))

    assert in_order(many) == in_order(few)
