"""A folder that one engine wrote is read and continued by the other: nobody can tell who wrote a table."""

from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.engine.test_store import ODD_CLUSTERS
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.core.schema import Array, Scalar, Struct
from txnlib.core.sql_text import quoted
from txnlib.engine.delta_rs import DeltaRsTables
from txnlib.engine.spark_tables import SparkTables
from txnlib.readers.arrow_schemas import arrow_schema
from txnlib.settings import Settings
from txnlib.spark.frames import arrow_of

pytestmark = pytest.mark.classic

#: With every type of a column, between them.
NAMES = ("open_transactions", "producer_spans")


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


def stored(folder, name):
    table = DeltaTable(f"{folder}/{name}")
    configuration = table.metadata().configuration
    # delta-rs stores conditions without superfluous parentheses.
    constraints = {key for key in configuration if key.startswith("delta.constraints.")}
    columns = [
        (field.name, str(field.type), field.nullable, field.metadata.get("comment")) for field in table.schema().fields
    ]
    statistics = configuration["delta.dataSkippingStatsColumns"]
    return columns, table.metadata().partition_columns, constraints, statistics, table.protocol().min_reader_version


def stamps(run_id, cluster="eu"):
    return {"cluster": cluster, "run_id": run_id}


@pytest.mark.parametrize("name", NAMES)
def test_both_engines_store_a_table_alike(spark, tmp_path, name):
    rows = any_rows(Random(name), name)
    by_spark, embedded = (
        SparkTables(spark, str(tmp_path / "spark")),
        DeltaRsTables(spark, *[str(tmp_path / "embedded")] * 2),
    )
    for tables in (by_spark, embedded):
        tables.write(name, rows, stamps("eu-1"), replaced="run_id = 'eu-1'")
    assert stored(embedded.output, name) == stored(by_spark.output, name)
    read = [arrow_of(SparkTables(spark, each.output).read(name)).to_pylist() for each in (by_spark, embedded)]
    assert sorted(map(repr, read[0])) == sorted(map(repr, read[1]))
    assert len(read[0]) == rows.num_rows


def test_engines_take_turns_at_a_table(spark, tmp_path):
    cluster = ODD_CLUSTERS[0]
    run, other = (Settings(cluster=cluster, as_of_ms=number, as_of_basis="given").run_id for number in (1, 2))
    by_spark, embedded = SparkTables(spark, str(tmp_path)), DeltaRsTables(spark, str(tmp_path), str(tmp_path))
    for number, tables in enumerate((by_spark, embedded, by_spark, embedded)):
        for run_id in (run, other)[: 2 - number % 2]:
            rows = waiting(f"{number}")
            tables.write("blocked_groups", rows, stamps(run_id, cluster), replaced=f"run_id = {quoted(run_id)}")
        found = by_spark.read("blocked_groups").select("run_id", "group_id").collect()
        expected = {run: f"{number}", other: f"{number - number % 2}"}
        assert sorted(tuple(row) for row in found) == sorted(expected.items())
    embedded.delete("blocked_groups", f"run_id = {quoted(run)}")
    assert [row["run_id"] for row in by_spark.read("blocked_groups").collect()] == [other]


def waiting(group):
    row = {"group_id": group, "topic": "orders", "partition": 0}
    return pa.Table.from_pylist([row], schema=arrow_schema(CATALOGUE["blocked_groups"].columns))
