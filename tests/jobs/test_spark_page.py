"""The report page from tables that only Spark can open."""

from dataclasses import replace

from tests.ask.test_cli_report import make
from tests.support.delta_tables import at, spark_rows, write
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.page.page import render_page
from txnlib.page.page_rows import page_rows_of


def test_the_page_is_the_same_whoever_reads_the_tables(spark, tmp_path):
    make(tmp_path, 12)
    place = {"topic": "orders", "partition": 1, "offset": 7, "producer_id": 9, "transactional_id": "shop", "evidence": "a marker"}
    write(tmp_path, "findings", {**place, "name": "SPLIT_OUTCOME", "severity": "CRITICAL", "message": "it is split"})
    opened = {"topic": "stock", "partition": 0, "start_offset": 1, "producer_id": 1, "transactional_id": "a", "reason": "EXPECTED"}
    times = {"blocks_since": at(0), "first_seen": at(0), "runs_seen": 2}
    write(tmp_path, "open_transactions", {**opened, **times, "verdict": "OPEN", "explanation": "x", "blocked_offsets": 99})
    run = open_run(open_tables(str(tmp_path)))
    page = page_rows_of(run, tables="out", stories={})
    assert [row["verdict"] for row in page.opened] == ["HANGING"] * 12 + ["OPEN"], "the worst first"
    assert [row["offset"] for each in page.findings for row in each.places] == [7]
    by_spark = page_rows_of(replace(run, tables=spark_rows(spark, tmp_path)), tables="out", stories={})
    assert render_page(by_spark) == render_page(page)
