"""Real Delta tables: repeated runs, tables without rows, old runs."""

from datetime import UTC, datetime
from typing import Final

import pytest
from pyspark.sql import functions as F

from tests.support.frames import empty, frame, shape
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import ALWAYS_THERE
from txnlib.engine.retention import forget_runs
from txnlib.engine.spark_tables import SETTINGS, SparkTables
from txnlib.engine.store import RunStore
from txnlib.engine.tables import constraints_of, stored_columns
from txnlib.errors import MissingTableError, UsageError
from txnlib.settings import Settings
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES, spark_schema

#: Names of clusters.
ODD_CLUSTERS = ("o'brien's \\ 50% of \"é/ü\"", "北京", "上海")


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
def store(engine, tmp_path):
    return engine.store(str(tmp_path / "out"), None)


def positions(run):
    return sorted(row["position"] for row in run.read("quarantine").collect())


@pytest.mark.both
def test_writing_a_run_again_replaces_its_rows_and_no_others(spark, store):
    monday, tuesday = RunStore(store, "eu", "eu-1"), RunStore(store, "eu", "eu-2")
    monday.write("quarantine", rows(spark, 1, 2))
    tuesday.write("quarantine", rows(spark, 3))
    monday.write("quarantine", rows(spark, 4))
    for again in (monday, RunStore(store, "eu", "eu-1")):
        assert positions(again) == [4]
    assert positions(tuesday) == [3]
    assert tuesday.write("quarantine", empty(spark, TABLES["quarantine"])).rows == 0
    assert (positions(tuesday), positions(RunStore(store, "eu", "eu-2"))) == ([], [])


@pytest.mark.both
def test_what_the_core_made_is_read_as_it_is_stored(spark, store):
    """It stays in the driver, until the table is written again."""
    run = RunStore(store, "eu", "eu-1")
    for made in (arrow_of(rows(spark, 1, 2)), rows(spark, 3), arrow_of(rows(spark, 4))):
        run.write("quarantine", made)
        assert positions(run) == positions(RunStore(store, "eu", "eu-1"))
        assert run.rows("quarantine", ["position"]).num_rows == len(positions(run))
    assert positions(run) == [4]


@pytest.mark.both
def test_a_new_table_is_made_of_rows_that_are_computed_once(spark, store, tmp_path):
    """To ask whether there are any computes them all. Spark would end a Python worker in the middle, who complains."""
    run, computed = RunStore(store, "eu", "eu-1"), tmp_path / "computed"

    def noted(batches):
        for batch in batches:
            with computed.open("a") as file:
                file.write("row " * batch.num_rows)
            yield batch

    named = frame(spark, TABLES["aborted_transactions"], *[{"topic": topic} for topic in "abc"])
    assert run.write("aborted_transactions", named.mapInArrow(noted, named.schema)).rows == 3
    assert computed.read_text() == "row row row "


@pytest.mark.classic
def test_a_session_has_other_settings_only_while_something_is_written(spark, store, monkeypatch):
    def now():
        return {name: spark.conf.get(name, None) for name in SETTINGS}

    before, then, save = now(), [], SparkTables._save
    monkeypatch.setattr(SparkTables, "_save", lambda *given: (then.append(now()), save(*given)))
    RunStore(store, "eu", "eu-1").write("quarantine", rows(spark, 1))
    assert then == [SETTINGS]
    assert now() == before != SETTINGS


def test_a_cluster_is_named_as_people_please(spark, store):
    """Its runs have names without the characters that engines escape in paths."""
    for cluster in ODD_CLUSTERS:
        other, run = (
            RunStore(store, cluster, Settings(cluster=cluster, as_of_ms=n, as_of_basis="given").run_id) for n in (1, 2)
        )
        assert run.run_id.isascii()
        for each, position in ((other, 1), (run, 2), (run, 3)):
            each.write("quarantine", rows(spark, position))
        run.compact("quarantine")
        for position, each in ((3, run), (1, other)):
            assert positions(RunStore(store, cluster, each.run_id)) == [position]
    assert store.read_all("quarantine").count() == 2 * len(ODD_CLUSTERS)


@pytest.mark.both
def test_a_row_that_violates_a_constraint_is_refused(spark, store):
    run = RunStore(store, "eu", "eu-1")
    run.write("quarantine", rows(spark, 1))
    with pytest.raises(Exception, match=r"stretch_is_located|failed validation"):
        run.write("quarantine", rows(spark, 2).withColumn("reason", F.lit(None).cast("string")))
    assert positions(RunStore(store, "eu", "eu-1")) == [1]


@pytest.mark.both
def test_an_instant_is_read_as_it_was_written(spark, store):
    at = datetime(2026, 11, 21, 7, 46, 12, 345_000, tzinfo=UTC)
    given = {"topic": "a", "partition": 0, "producer_id": 7, "producer_epoch": 0, "last_timestamp": at}
    RunStore(store, "eu", "eu-1").write("producer_states", frame(spark, TABLES["producer_states"], given))
    assert arrow_of(store.read_all("producer_states"))["last_timestamp"].to_pylist() == [at]
    assert [row["last_timestamp"] for row in Tables(store.output).rows("producer_states", ["last_timestamp"])] == [at]


@pytest.mark.both
def test_a_table_that_was_never_written_is_missing(store):
    with pytest.raises(MissingTableError, match="table quarantine is missing"):
        store.read_all("quarantine")
    assert not store.exists("quarantine")


GROUPS: Final = TABLES["blocked_groups"]


def waiting(spark, *groups):
    return frame(spark, GROUPS, *[{"group_id": group, "topic": "orders", "partition": 0} for group in groups])


@pytest.mark.both
def test_a_table_is_made_once_it_has_rows_and_reads_as_empty_until_then(spark, store):
    monday, tuesday = RunStore(store, "eu", "eu-1"), RunStore(store, "eu", "eu-2")
    assert monday.write("blocked_groups", empty(spark, GROUPS)).rows == 0
    assert not store.exists("blocked_groups")
    for again in (monday, RunStore(store, "eu", "eu-1")):
        assert again.is_empty("blocked_groups")
        assert shape(again.read("blocked_groups")) == shape(empty(spark, GROUPS))
    assert store.read_all("blocked_groups").columns == [each.name for each in stored_columns("blocked_groups")]
    assert Tables(str(store.output)).number("blocked_groups", "count(*)") == 0
    tuesday.write("blocked_groups", waiting(spark, "invoices"))
    assert [row["group_id"] for row in tuesday.read("blocked_groups").collect()] == ["invoices"]
    assert RunStore(store, "eu", "eu-1").is_empty("blocked_groups")


def test_a_run_without_rows_removes_those_of_its_earlier_attempt(spark, store):
    RunStore(store, "eu", "eu-1").write("blocked_groups", waiting(spark, "invoices", "mailer"))
    RunStore(store, "eu", "eu-2").write("blocked_groups", waiting(spark, "mailer"))
    RunStore(store, "eu", "eu-1").write("blocked_groups", empty(spark, GROUPS))
    assert RunStore(store, "eu", "eu-1").is_empty("blocked_groups")
    assert [row["run_id"] for row in store.read_all("blocked_groups").collect()] == ["eu-2"]


def test_the_tables_that_always_exist_are_made_without_rows(spark, store):
    RunStore(store, "eu", "eu-1").write("quarantine", empty(spark, TABLES["quarantine"]))
    assert store.exists("quarantine")
    assert TABLES.keys() >= ALWAYS_THERE


@pytest.mark.parametrize(("output", "schema"), [(None, None), ("x", "a.b"), (None, "a.b; DROP TABLE c")])
def test_a_place_is_a_folder_or_a_schema(engine, output, schema):
    with pytest.raises(UsageError):
        engine.store(output, schema)


@pytest.mark.parametrize("name", TABLES)
def test_constraints_are_of_columns_that_the_table_has(spark, name):
    columns = spark_schema(stored_columns(name))
    for condition in constraints_of(name).values():
        assert empty(spark, columns).where(condition).columns == columns.names


def test_old_runs_of_a_cluster_go_from_every_table_and_no_others(spark, store):
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
