"""Tables that only Spark can open: rows, and the report page, as without it."""

from dataclasses import replace

import pytest

from tests.ask.test_cli_report import make
from tests.support.delta_tables import NOW, at, spark_rows, write
from txnlib.ask.delta_rows import Tables, open_run, open_tables
from txnlib.ask.page_rows import page_rows_of
from txnlib.ask.queries import Filter
from txnlib.page.report_page import render_page

EVIL = "it's \\'; DROP \"x\" `y` {found}"
LAG = ("topic", "partition", "lag_ms", "as_of")


@pytest.fixture(scope="module")
def both(spark, tmp_path_factory):
    root = tmp_path_factory.mktemp("tables")
    rows = [
        {"topic": EVIL, "partition": i, "lag_ms": (None, 5, 9, 9)[i], "as_of": at(NOW + i), "is_late": i > 1}
        for i in range(4)
    ]
    write(root, "partitions", *rows, {"topic": "orders", "partition": 0, "lag_ms": 7, "as_of": None, "is_late": False})
    return spark_rows(spark, root), Tables(str(root))


FILTERS: list[list[Filter]] = [
    [],
    [("topic", "=", EVIL), ("partition", ">=", 1), ("partition", "<", 3)],
    [("topic", "<>", EVIL)],
    [("lag_ms", "IS", None)],
    [("as_of", "IS NOT", None), ("partition", "IN", [0, 2])],
    [("is_late", "=", True), ("lag_ms", ">", 5), ("lag_ms", "<=", 9)],
    [("topic", "IN", {EVIL, "\\", "'", None})],
]


@pytest.mark.parametrize("where", FILTERS, ids=range(len(FILTERS)))
def test_rows_meet_the_same_filters(both, where):
    by_spark, without = (rows.rows("partitions", LAG, where, order='"topic", "partition"') for rows in both)
    assert by_spark == without
    assert by_spark


def test_rows_come_in_the_same_order_and_no_more_than_asked_for(both):
    order = '"lag_ms" DESC NULLS LAST, "topic", "partition" DESC'
    by_spark, without = (rows.rows("partitions", LAG, order=order, limit=4) for rows in both)
    assert by_spark == without
    assert [row["lag_ms"] for row in by_spark] == [9, 9, 7, 5]


def test_numbers_are_the_same(both):
    distinct = """count(DISTINCT concat("topic", '-', cast("partition" AS string)))"""
    for expression in ("count(*)", distinct, 'max("lag_ms")', 'coalesce(sum("lag_ms"), 0)'):
        by_spark, without = (rows.number("partitions", expression) for rows in both)
        assert by_spark == without is not None
    several = {"last": 'max("as_of")', "late": 'coalesce(bool_or("is_late" AND "lag_ms" IS NOT NULL), FALSE)'}
    by_spark, without = (rows.one("partitions", several) for rows in both)
    assert by_spark == without == {"last": at(NOW + 3), "late": True}
    nobody: list[list[Filter]] = [[("topic", "=", "nobody")], [("topic", "IN", ())], [("topic", "=", None)]]
    assert [rows.number("partitions", 'max("lag_ms")', where) for rows in both for where in nobody] == [None] * 6
    by_spark, without = (rows.grouped("partitions", ("topic",), 'max("lag_ms")') for rows in both)
    assert by_spark == without == {(EVIL,): 9, ("orders",): 7}


def test_the_page_is_the_same_whoever_reads_the_tables(spark, tmp_path):
    make(tmp_path, 12)
    place = {
        "topic": "orders",
        "partition": 1,
        "offset": 7,
        "producer_id": 9,
        "transactional_id": "shop",
        "evidence": "a marker",
    }
    write(tmp_path, "findings", {**place, "name": "SPLIT_OUTCOME", "severity": "CRITICAL", "message": "it is split"})
    opened = {
        "topic": "stock",
        "partition": 0,
        "start_offset": 1,
        "producer_id": 1,
        "transactional_id": "a",
        "reason": "EXPECTED",
    }
    times = {"blocks_since": at(0), "first_seen": at(0), "runs_seen": 2}
    write(
        tmp_path, "open_transactions", {**opened, **times, "verdict": "OPEN", "explanation": "x", "blocked_offsets": 99}
    )
    late = {"producer_id": 2, "transactional_id": "b", "verdict": "LATE", "explanation": "x", "blocked_offsets": 9}
    reasons = ("TIMEOUT_NOT_PASSED", "OVERDUE")
    rows = [
        {**opened, **times, **late, "start_offset": n, "reason": reason} for n, reason in enumerate(reasons, start=2)
    ]
    write(tmp_path, "open_transactions", *rows)
    run = open_run(open_tables(str(tmp_path)))
    page = page_rows_of(run, tables="out", stories={})
    assert [row["verdict"] for row in page.opened] == ["HANGING"] * 12 + ["LATE", "LOOKS_LATE", "OPEN"]
    assert [row["offset"] for each in page.report.findings for row in each.places] == [7]
    by_spark = page_rows_of(replace(run, tables=spark_rows(spark, tmp_path)), tables="out", stories={})
    assert by_spark.report.extents == page.report.extents
    assert {"LATE", "LOOKS_LATE"} <= {*page.report.extents}
    assert render_page(by_spark) == render_page(page)
