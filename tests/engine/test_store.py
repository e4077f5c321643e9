"""Real Delta tables: repeated runs, constraints, comments of columns."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest
from pyarrow.parquet import ParquetFile
from txnlib.delta.local_tables import CONSTRAINTS, options_of
from txnlib.delta.tuning import Plans, Tuning, settings_kept

from tests.support.frames import empty, frame
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import ALWAYS_THERE
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.engine.retention import forget_runs
from txnlib.engine.store import RunStore, Store, stored_schema
from txnlib.errors import MissingTableError, UsageError
from txnlib.spark.schemas import TABLES

OUTPUT_TYPE = "spark.sql.parquet.outputTimestampType"


def rows(spark, *positions):
    known = {
        "topic": "orders",
        "partition": 0,
        "source": "raw:1",
        "path": "x.log",
        "length": 1,
        "reason": "why",
        "sample": "",
    }
    return frame(spark, TABLES["quarantine"], *[known | {"position": position} for position in positions])


@pytest.fixture
def store(spark, tmp_path):
    return Store(spark, str(tmp_path / "out"))


@pytest.fixture(params=[True, False], ids=["without Spark", "by Spark"])
def either(request, store):
    """A store that commits small tables without Spark, and one that does not."""
    return replace(store, is_small=request.param)


def positions(run):
    return sorted(row["position"] for row in run.read("quarantine").collect())


def test_writing_a_run_again_replaces_its_rows_and_no_others(spark, either):
    monday, tuesday = RunStore(either, "eu", "eu-1"), RunStore(either, "eu", "eu-2")
    monday.write("quarantine", rows(spark, 1, 2))
    tuesday.write("quarantine", rows(spark, 3))
    monday.write("quarantine", rows(spark, 4))
    for again in (
        monday,
        RunStore(either, "eu", "eu-1"),
        RunStore(replace(either, is_small=not either.is_small), "eu", "eu-1"),
    ):
        assert positions(again) == [4]
    assert positions(tuesday) == [3]
    tuesday.write("quarantine", empty(spark, TABLES["quarantine"]))
    assert (positions(tuesday), positions(RunStore(either, "eu", "eu-2")), tuesday.commit("quarantine").rows) == (
        [],
        [],
        0,
    )


def test_a_table_that_is_read_while_it_is_written_is_read_again(spark, either, monkeypatch):
    """Steps run at the same time. The night's coverage was kept as it was before it was reduced, and rows counted
    twice."""
    run = RunStore(either, "eu", "eu-1")
    run.write("quarantine", rows(spark, 1))
    commit = RunStore._commit_rows if either.is_small else RunStore._save

    def read_first(*given, **named):
        assert positions(run) == [1]
        return commit(*given, **named)

    monkeypatch.setattr(RunStore, commit.__name__, read_first)
    run.write("quarantine", rows(spark, 2))
    assert positions(run) == [2]


def test_a_cluster_is_named_as_people_please(spark, either):
    """Also in paths, where some characters are escaped."""
    cluster = "o'brien's \\ 50% of \"é/ü\""
    run, other = RunStore(either, cluster, f"{cluster}-1"), RunStore(either, cluster, f"{cluster}-2")
    other.write("quarantine", rows(spark, 1))
    for position in (2, 3):
        run.write("quarantine", rows(spark, position))
    run.compact("quarantine")
    assert (positions(run), positions(other)) == ([3], [1])
    assert run.commit("quarantine").rows == 1
    assert positions(RunStore(either, cluster, f"{cluster}-1")) == [3]


def test_every_row_names_cluster_and_run_and_every_column_keeps_its_comment(spark, store):
    RunStore(store, "eu", "eu-1").write("quarantine", rows(spark, 1))
    table = store.read_all("quarantine")
    assert [(row["cluster"], row["run_id"]) for row in table.collect()] == [("eu", "eu-1")]
    expected = {field.name: field.metadata["comment"] for field in stored_schema("quarantine")}
    assert {field.name: field.metadata.get("comment") for field in table.schema} == expected


def test_a_table_of_a_catalog_says_what_it_contains(spark):
    spark.sql("CREATE DATABASE commented")
    try:
        run = RunStore(Store(spark, schema="commented"), "eu", "eu-1")
        for position in (1, 2):
            run.write("quarantine", rows(spark, position))
        described = {
            row["col_name"]: row["data_type"] for row in spark.sql("DESCRIBE EXTENDED commented.quarantine").collect()
        }
        assert (described["Comment"], positions(run)) == (CATALOGUE["quarantine"].comment, [2])
    finally:
        spark.sql("DROP DATABASE commented CASCADE")


def test_times_are_written_as_every_reader_knows_them_and_those_written_before_are_read(spark, store, tmp_path):
    at = datetime(2026, 11, 21, 7, 46, 12, 345_000, tzinfo=UTC)
    given = {"topic": "a", "partition": 0, "producer_id": 7, "producer_epoch": 0, "last_timestamp": at}
    state = frame(spark, TABLES["producer_states"], given)
    kinds = []
    with settings_kept(spark):
        for number, prepare in enumerate(
            (lambda: spark.conf.set(OUTPUT_TYPE, "INT96"), lambda: Tuning(spark).tune(Plans.SMALL))
        ):
            prepare()
            RunStore(store, "eu", f"eu-{number}").write("producer_states", state)
            (file,) = (tmp_path / "out" / "producer_states" / f"run_id=eu-{number}").glob("*.parquet")
            columns = ParquetFile(file).schema
            kinds.append(columns.column(columns.names.index("last_timestamp")).physical_type)
    assert kinds == ["INT96", "INT64"]
    assert [row["last_timestamp"] for row in store.read_all("producer_states").toArrow().to_pylist()] == [at, at]
    assert [row["last_timestamp"] for row in Tables(store.output).rows("producer_states", ["last_timestamp"])] == [
        at,
        at,
    ]


def test_a_table_that_was_never_written_is_missing(either):
    with pytest.raises(MissingTableError, match="table quarantine is missing"):
        either.read_all("quarantine")
    assert not either.exists("quarantine")


GROUPS: Final = TABLES["blocked_groups"]


def waiting(spark, *groups):
    return frame(spark, GROUPS, *[{"group_id": group, "topic": "orders", "partition": 0} for group in groups])


def test_a_table_is_made_once_it_has_rows_and_reads_as_empty_until_then(spark, either):
    monday, tuesday = RunStore(either, "eu", "eu-1"), RunStore(either, "eu", "eu-2")
    monday.write("blocked_groups", empty(spark, GROUPS))
    assert not either.exists("blocked_groups")
    assert monday.commit("blocked_groups").rows == 0
    for again in (monday, RunStore(either, "eu", "eu-1")):
        assert again.is_empty("blocked_groups")
        assert again.read("blocked_groups").schema == GROUPS
    assert either.read_all("blocked_groups").columns == stored_schema("blocked_groups").names
    assert Tables(str(either.output)).number("blocked_groups", "count(*)") == 0
    tuesday.write("blocked_groups", waiting(spark, "invoices"))
    assert [row["group_id"] for row in tuesday.read("blocked_groups").collect()] == ["invoices"]
    assert RunStore(either, "eu", "eu-1").is_empty("blocked_groups")


def test_a_run_without_rows_removes_those_of_its_earlier_attempt(spark, either):
    RunStore(either, "eu", "eu-1").write("blocked_groups", waiting(spark, "invoices", "mailer"))
    RunStore(either, "eu", "eu-2").write("blocked_groups", waiting(spark, "mailer"))
    RunStore(either, "eu", "eu-1").write("blocked_groups", empty(spark, GROUPS))
    assert RunStore(either, "eu", "eu-1").is_empty("blocked_groups")
    assert [row["run_id"] for row in either.read_all("blocked_groups").collect()] == ["eu-2"]


def test_the_tables_that_always_exist_are_made_without_rows(spark, either):
    RunStore(either, "eu", "eu-1").write("quarantine", empty(spark, TABLES["quarantine"]))
    assert either.exists("quarantine")
    assert TABLES.keys() >= ALWAYS_THERE


@pytest.mark.parametrize(("output", "schema"), [(None, None), ("x", "a.b"), (None, "a.b; DROP TABLE c")])
def test_a_place_is_a_folder_or_a_schema(spark, output, schema):
    with pytest.raises(UsageError):
        Store(spark, output, schema)


@pytest.mark.parametrize("name", TABLES)
def test_constraints_are_of_columns_that_the_table_has(spark, name):
    for condition in options_of(name).values():
        assert empty(spark, stored_schema(name)).where(condition).columns == stored_schema(name).names
    assert CONSTRAINTS.keys() <= {"*", *TABLES}


def test_old_runs_of_a_cluster_go_from_every_table_and_no_others(spark, store):
    store = replace(store, is_small=True)  # a catalog, where Spark alone looks: test_chain.py
    runs = [RunStore(store, cluster, f"{cluster}-{day}") for cluster in ("eu", "us") for day in (1, 5, 9)]
    for run in runs:
        instant = datetime.fromtimestamp(int(run.run_id[-1]) * 86_400, UTC)
        row = {"as_of": instant, "started_at": instant, "status": "DONE", "settings": "{}", "version": "0"}
        run.write("audit_runs", frame(spark, TABLES["audit_runs"], row))
        run.write("quarantine", rows(spark, 1))
    assert forget_runs(store, "eu", before_ms=6 * 86_400_000) == ["eu-1", "eu-5"]
    for name in ("audit_runs", "quarantine"):
        left = {row["run_id"] for row in store.read_all(name).select("run_id").collect()}
        assert left == {"eu-9", "us-1", "us-5", "us-9"}, name
    assert forget_runs(store, "eu", before_ms=6 * 86_400_000) == []
