"""Nights in an object store, a server of S3 on this machine. Spark has a client of its own for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support.daemons import assert_same_tables, audited
from tests.support.store_servers import Store, amazons, s3a_options
from txnlib.ask.delta_rows import open_tables, runs

TABLES = "s3a://audits/out"


@pytest.fixture
def amazon(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "server").mkdir()
    with amazons(tmp_path / "server") as store:
        store.client.create_dir("audits")
        yield store


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_nights_in_a_store_equal_full_audits(nights_here, repository, nights, amazon, engine):
    on_spark = ("--master", "local[2]", "--", *s3a_options()) if engine == "spark" else ()
    for night in nights:
        _, progress = audited(repository, "--input", str(night), "--output", TABLES, *on_spark)
    assert ", of which " in progress
    assert_same_tables(TABLES, nights_here)
    newest = runs(open_tables(TABLES))[0]["run_id"]
    seen = open_tables(TABLES).number("record_batches", "count(*)", [("run_id", "=", newest)])
    assert 0 < stored_rows("record_batches", newest) < seen


def stored_rows(table: str, run_id: str) -> int:
    """How many rows of a table a run wrote itself."""
    opened = DeltaTable(f"{TABLES}/{table}", storage_options={"AWS_ALLOW_HTTP": "true"})
    files = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    return sum(file["num_records"] for file in files if file["partition.run_id"] == run_id)
