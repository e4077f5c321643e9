"""Small tables, committed without Spark: nobody can tell them from those that Spark writes."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.delta.test_store import positions
from tests.delta.test_store import rows as stretches
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema import Array, Scalar, Struct
from txnlib.delta import local_tables
from txnlib.delta import store as store_module
from txnlib.engine.store import RunStore, Store
from txnlib.readers.arrow_schemas import arrow_schema
from txnlib.spark import local_rows
from txnlib.spark.frames import frame_of
from txnlib.spark.schemas import TABLES

#: One with every type of a column, and one that is partitioned by more than the run.
NAMES = ("open_transactions", "producer_spans")


@pytest.fixture
def by_spark(spark, tmp_path):
    return Store(spark, str(tmp_path / "by_spark"))


@pytest.fixture
def local(spark, tmp_path):
    return Store(spark, str(tmp_path / "local"), is_small=True)


def any_value(random, kind):
    match kind:
        case Array(element):
            return [any_value(random, element) for _ in range(random.randrange(3))]
        case Struct(fields):
            return {field.name: any_value(random, field.type) for field in fields}
    if random.random() < 0.2:
        return None
    return {
        Scalar.STRING: random.choice(("", "o'brien", "é\n\\", "x" * 300)),
        Scalar.INT: random.choice((0, -1, 2**31 - 1)),
        Scalar.LONG: random.choice((0, -1, 2**63 - 1)),
        Scalar.BOOLEAN: random.random() < 0.5,
        Scalar.TIMESTAMP: random.randrange(2**50),
    }[kind]


def any_rows(random, name):
    """Rows that meet the constraints of their table."""
    allowed = {"status": "COMPLETE", "verdict": "OPEN", "safe_to_abort": False, "is_newest": random.random() < 0.5}
    checks = str(CATALOGUE[name].checks)
    kinds = {column.name: column.type for column in CATALOGUE[name].columns}
    rows = []
    for _ in range(random.randrange(1, 9)):
        row = {column: any_value(random, kind) for column, kind in kinds.items()}
        required = {
            key: "" if kind == Scalar.STRING else 1 for key, kind in kinds.items() if f"{key} IS NOT NULL" in checks
        }
        known = {key: default if row[key] is None else row[key] for key, default in required.items()}
        rows.append({**row, **known, **{key: value for key, value in allowed.items() if key in row}})
    return pa.Table.from_pylist(rows, schema=arrow_schema(CATALOGUE[name].columns))


def stored(store, name):
    table = DeltaTable(f"{store.output}/{name}")
    configuration = table.metadata().configuration
    # delta-rs stores conditions without superfluous parentheses.
    constraints = {key for key in configuration if key.startswith("delta.constraints.")}
    columns = [
        (field.name, str(field.type), field.nullable, field.metadata.get("comment")) for field in table.schema().fields
    ]
    statistics = configuration["delta.dataSkippingStatsColumns"]
    return columns, table.metadata().partition_columns, constraints, statistics, table.protocol().min_reader_version


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_stored_as_spark_stores_it(spark, by_spark, local, name):
    rows = any_rows(Random(name), name)
    for store in (by_spark, local):
        RunStore(store, "eu", "eu-1").write(name, frame_of(spark, rows, TABLES[name]))
    assert stored(local, name) == stored(by_spark, name)
    spark_alone = replace(local, is_small=False)
    read = [sorted(map(str, store.read_all(name).collect())) for store in (by_spark, local, spark_alone)]
    assert read[0] == read[1] == read[2]
    assert len(read[0]) == rows.num_rows


def test_the_commits_are_not_those_of_spark_and_the_table_says_what_it_contains(spark, local):
    RunStore(local, "eu", "eu-1").write("quarantine", stretches(spark, 1))
    assert DeltaTable(f"{local.output}/quarantine").metadata().description == CATALOGUE["quarantine"].comment
    engines = {commit.get("engineInfo", "") for commit in DeltaTable(f"{local.output}/quarantine").history()}
    assert all(engine.startswith("delta-rs") for engine in engines)


def test_spark_and_the_driver_write_to_the_same_table(spark, local):
    spark_alone = replace(local, is_small=False)
    for number, store in enumerate((spark_alone, local, spark_alone)):
        RunStore(store, "eu", f"eu-{number}").write("quarantine", stretches(spark, number))
        RunStore(store, "eu", "eu-again").write("quarantine", stretches(spark, 10 + number))
    assert sorted(row["position"] for row in local.read_all("quarantine").collect()) == [0, 1, 2, 12]


@pytest.mark.parametrize("store_name", ["by_spark", "local"])
def test_a_row_that_violates_a_constraint_is_refused(spark, request, store_name):
    run = RunStore(request.getfixturevalue(store_name), "eu", "eu-1")
    run.write("quarantine", stretches(spark, 1))
    with pytest.raises(PySparkException, match="stretch_is_located"):
        run.write("quarantine", stretches(spark, 2).withColumn("reason", F.lit(None).cast("string")))
    assert positions(RunStore(run.store, "eu", "eu-1")) == [1]


def test_rows_that_do_not_fit_in_the_driver_are_written_by_spark(spark, local, monkeypatch):
    monkeypatch.setattr(local_rows, "MAX_ROWS", 2)
    run = RunStore(local, "eu", "eu-1")
    for few_or_many in ((1, 2), (1, 2, 3)):
        run.write("quarantine", stretches(spark, *few_or_many))
        assert positions(run) == list(few_or_many)
    engines = [commit["engineInfo"].partition("/")[0] for commit in DeltaTable(f"{local.output}/quarantine").history(2)]
    assert engines[0].startswith("Apache-Spark")
    assert engines[1].startswith("delta-rs")


def test_rows_that_are_too_many_to_keep_in_plans_are_read_from_the_table(spark, local, monkeypatch):
    monkeypatch.setattr(store_module, "KEPT_ROWS", 2)
    run = RunStore(local, "eu", "eu-1")
    for few_or_many in ((1, 2), (1, 2, 3), (4,)):
        run.write("quarantine", stretches(spark, *few_or_many))
        assert positions(run) == list(few_or_many)
        assert bool(run.read("quarantine").inputFiles()) == (len(few_or_many) > 2)
        assert not run.is_empty("quarantine")


def test_a_large_table_is_read_by_spark(spark, local, monkeypatch):
    RunStore(local, "eu", "eu-1").write("quarantine", stretches(spark, 1, 2))
    monkeypatch.setattr(local_tables, "MAX_FILE_BYTES", 10)
    assert local_tables.read(f"{local.output}/quarantine", "quarantine") is None
    assert positions(RunStore(local, "eu", "eu-1")) == [1, 2]


def test_rows_of_the_driver_are_written_by_spark_to_a_table_that_may_be_large(spark, local):
    run = RunStore(replace(local, large=frozenset({"quarantine"})), "eu", "run-1")
    run.write("quarantine", stretches(spark, 1, 2).toArrow())
    assert positions(run) == [1, 2]
    (commit, *_) = DeltaTable(f"{local.output}/quarantine").history(1)
    assert commit["engineInfo"].startswith("Apache-Spark")


class Refused:
    """A frame whose rows Spark does not send."""

    def __init__(self, why: str) -> None:
        self.why = why

    def limit(self, most: int):
        return self

    def toArrow(self) -> pa.Table:
        raise RuntimeError(self.why)  # Spark 4.2 throws an error of py4j, no PySparkException


def test_rows_that_spark_does_not_send_are_too_many():
    too_large = (
        "Total size of serialized results of 1 tasks (14.5 MiB) is bigger than spark.driver.maxResultSize (2.0 MiB)."
    )
    assert local_rows.collect(Refused(too_large)) is None
    with pytest.raises(RuntimeError, match="disk is full"):
        local_rows.collect(Refused("disk is full"))
