"""Tables that delta-rs keeps: what its commits say, and what they leave. Laws of both engines: test_store.py."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.engine.test_store import rows
from tests.support.frames import empty
from txnlib.core.schema import TABLES as CATALOGUE
from txnlib.engine import delta_rs
from txnlib.engine.delta_rs import DeltaRsTables
from txnlib.engine.store import RunStore
from txnlib.engine.tables import constraints_of, stored_columns
from txnlib.errors import UsageError
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES

NAME = "quarantine"
STAMPS = {"cluster": "eu", "run_id": "eu-1"}
OF_RUN = "run_id = 'eu-1'"


@pytest.fixture
def tables(spark, tmp_path):
    return DeltaRsTables(spark, str(tmp_path), str(tmp_path))


def stored(tables):
    return DeltaTable(f"{tables.output}/{NAME}")


def test_a_table_says_what_it_contains_and_what_it_demands(spark, tables):
    tables.write(NAME, rows(spark, 1), STAMPS, replaced=OF_RUN)
    comments = {field.name: field.metadata.get("comment") for field in stored(tables).schema().fields}
    assert comments == {column.name: column.comment for column in stored_columns(NAME)}
    metadata = stored(tables).metadata()
    assert (metadata.description, metadata.partition_columns) == (CATALOGUE[NAME].comment, ["run_id"])
    demanded = {key for key in metadata.configuration if key.startswith("delta.constraints.")}
    assert demanded == {f"delta.constraints.{name}" for name in constraints_of(NAME)}


def test_a_table_that_another_version_described_otherwise_goes_on(spark, tables, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(delta_rs, "stored_columns", lambda name: [replace(c, comment="…") for c in stored_columns(name)])
        tables.write(NAME, rows(spark, 1), STAMPS, replaced=OF_RUN)
    tables.write(NAME, rows(spark, 2), STAMPS, replaced=OF_RUN)
    assert [row["position"] for row in tables.read(NAME).collect()] == [2]
    assert {field.metadata["comment"] for field in stored(tables).schema().fields} == {"…"}


def test_rows_are_counted_as_they_pass(spark, tables):
    many = pa.concat_tables([arrow_of(rows(spark, number)) for number in range(5)])
    assert tables.write(NAME, rows(spark, *range(3)), STAMPS, replaced=OF_RUN).rows == 3
    assert tables.write(NAME, many, STAMPS, replaced=OF_RUN).rows == 5
    assert tables.write(NAME, spark.range(30_000).selectExpr(*_columns("id")), STAMPS, replaced=OF_RUN).rows == 30_000
    assert tables.write(NAME, empty(spark, TABLES[NAME]), STAMPS, replaced=OF_RUN).rows == 0
    assert tables.read(NAME).count() == 0


def test_rows_are_held_in_groups_of_bounded_size(spark, tables):
    tables.write(NAME, spark.range(100_000).selectExpr(*_columns("id")), STAMPS, replaced=OF_RUN)
    files = [pq.ParquetFile(path).metadata for path in Path(tables.output).rglob("*.parquet")]
    groups = [file.row_group(number).num_rows for file in files for number in range(file.num_row_groups)]
    assert sum(groups) == 100_000
    assert max(groups) <= 1 << 15


def _columns(position):
    given = {"position": position, "path": "'x'", "source": "'raw:1'", "reason": "'why'", "length": "1L"}
    return [
        f"CAST({given.get(field.name, 'NULL')} AS {field.dataType.simpleString()}) AS {field.name}"
        for field in TABLES[NAME]
    ]


def test_only_rows_that_fulfil_the_condition_are_deleted(spark, tables):
    for run in ("eu-1", "eu-2", "us-1"):
        tables.write(NAME, rows(spark, 1, 2), STAMPS | {"run_id": run}, replaced=None)
    tables.delete(NAME, "run_id IN ('eu-2', 'us-1')")
    assert {row["run_id"] for row in tables.read(NAME).collect()} == {"eu-1"}


def test_files_that_somebody_may_still_read_stay_for_a_week(spark, tables):
    for number in (1, 2):
        tables.write(NAME, rows(spark, number), STAMPS, replaced=OF_RUN)
    tables.vacuum(NAME)
    assert len(list(Path(tables.output, NAME).glob("*/*.parquet"))) == 2
    assert [row["position"] for row in tables.read(NAME).collect()] == [2]


@pytest.mark.parametrize("odd", ["[", "]", "\\", "^", "|", "%41", "\n", "\x7f"])
def test_a_path_that_would_be_read_as_another_is_refused_at_once(engine, tmp_path, odd):
    with pytest.raises(UsageError, match="delta-rs reads another path"):
        engine.store(f"{tmp_path}/a{odd}b", None)


@pytest.mark.parametrize("odd", [" ", "%", "'", '"', "#", "?", "*", "{", "~", "ü", "%g"])
def test_a_path_with_any_other_character_keeps_tables(engine, tmp_path, odd):
    run = RunStore(engine.store(f"{tmp_path}/a{odd}b", None), "eu", "eu-1")
    run.write(NAME, rows(engine.spark, 1))
    assert [row["position"] for row in run.read(NAME).collect()] == [1]
    assert len(list(tmp_path.iterdir())) == 1
