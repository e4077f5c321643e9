"""Tables of an older schema: continued by an audit, or refused before they are read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import txnlib
from tests.support.both_engines import OF_RUN
from tests.support.older_tables import ADDED, as_if_added, make_older, note_number
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import TABLES, schema_number
from txnlib.engine.spark_tables import SparkTables
from txnlib.engine.store import RunStore, Store, opened
from txnlib.errors import OtherSchemaError
from txnlib.readers.arrow_schemas import arrow_schema
from txnlib.spark.frames import arrow_of
from txnlib.version import SCHEMA_NUMBER, SCHEMA_PROPERTY

MONDAY, TUESDAY = "2026-11-21T07:42:41.899Z", "2026-11-22T07:42:41.899Z"


@pytest.fixture(scope="module")
def monday(tmp_path_factory: pytest.TempPathFactory, repository: Path, engine: object) -> Path:
    output = tmp_path_factory.mktemp("nights") / "monday"
    txnlib.audit(repository / "examples" / "quickstart", output=output, as_of=MONDAY)
    return output


def audit(repository: Path, output: Path) -> None:
    txnlib.audit(repository / "examples" / "quickstart", output=output, as_of=TUESDAY)


def noted(output: Path) -> str | None:
    return DeltaTable(str(output / "audit_runs")).metadata().configuration.get(SCHEMA_PROPERTY)


def rows(output: Path, name: str, as_of: str) -> list[dict[str, Any]]:
    run_id = f"quickstart-{txnlib.open_audit(output, as_of=as_of).run_id.rpartition('-')[2]}"
    columns = [each.name for each in TABLES[name].columns if each.name not in {*OF_RUN, "settings", "counts"}]
    return sorted(Tables(str(output)).rows(name, columns, [("run_id", "=", run_id)]), key=repr)


def test_older_tables_are_continued_as_if_they_had_all_columns(
    monday: Path, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, whole = tmp_path / "older", copytree(monday, tmp_path / "whole")
    as_if_added(monkeypatch)
    make_older(copytree(monday, older))
    for output in (older, whole):
        audit(repository, output)
    assert noted(older) == str(SCHEMA_NUMBER)
    for name in TABLES:
        assert rows(older, name, TUESDAY) == rows(whole, name, TUESDAY), name
    for name, column in (path.split(".") for path in ADDED if path.count(".") == 1):
        assert {row.get(column) for row in rows(older, name, MONDAY)} <= {None}
    assert [cause["evidence"] for row in rows(older, "open_transactions", MONDAY) for cause in row["causes"]][:1] == [
        None
    ]
    assert rows(older, "hanging_transactions", MONDAY) == []
    assert {
        row["cluster"] for row in txnlib.open_audit(older).table("hanging_transactions").limit(0).collect()
    } == set()


def written(store: Store, run_id: str) -> None:
    """Writes rows of a run into three tables that have older columns."""
    run, now = RunStore(store, "eu", run_id), datetime.now(UTC)
    noted = {"as_of": now, "started_at": now, "status": "DONE", "settings": "{}", "version": "1", "engine": "x"}
    finding = {"name": "MARKER_MISSING", "severity": "ERROR", "topic": "orders", "evidence": f"of {run_id}"}
    unread = [{"position": 0, "length": 1, "reason": "why", "sample": f"of {run_id}"}]
    noted["counts"] = '{"tables": []}'
    segment = {"source": "raw:1", "path": "x", "kind": "raw", "unreadable": unread}
    for name, row in (("audit_runs", noted), ("findings", finding), ("segments", segment)):
        schema = arrow_schema(TABLES[name].columns)
        run.write(name, pa.Table.from_pylist([dict.fromkeys(schema.names) | row], schema))


def seen(store: Store, run_id: str) -> list[Any]:
    """What a run has where older tables have nothing."""
    run = RunStore(store, "eu", run_id)
    (noted,), (finding,), (segment,) = (
        arrow_of(run.read(name)).to_pylist() for name in ("audit_runs", "findings", "segments")
    )
    return [noted["engine"], finding["evidence"], segment["unreadable"][0]["sample"]]


@pytest.mark.parametrize(
    "added", [pytest.param(ADDED, marks=pytest.mark.both), ("findings.evidence",)], ids=["whole", "killed before"]
)
def test_an_engine_adds_what_tables_lack(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: tuple[str, ...]
) -> None:
    """An upgrade that was killed had upgraded the tables before."""
    first, again = (engine.store(str(tmp_path), None) for _ in range(2))
    written(first, "eu-1")
    assert noted(tmp_path) == str(SCHEMA_NUMBER)
    as_if_added(monkeypatch)
    make_older(tmp_path, added=added)
    store = opened(again)
    written(store, "eu-2")
    assert noted(tmp_path) == str(SCHEMA_NUMBER)
    lost = [None] * 3 if added is ADDED else ["x", None, "of eu-1"]
    assert seen(store, "eu-1") == lost
    assert seen(store, "eu-2") == ["x", "of eu-2", "of eu-2"]


@pytest.mark.both
def test_constraints_that_changed_are_replaced(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(engine.store(str(tmp_path), None), "eu-1")
    before = constraints(tmp_path)
    DeltaTable(str(tmp_path / "findings")).alter.add_constraint({"once": "severity <> 'NEVER'"})
    as_if_added(monkeypatch)
    monkeypatch.setattr(schema_number, "CONSTRAINED", {1: ("findings",)})
    note_number(tmp_path, "0")
    opened(engine.store(str(tmp_path), None))
    assert constraints(tmp_path) == before


def constraints(output: Path) -> set[str]:
    found = DeltaTable(str(output / "findings")).metadata().configuration
    return {key for key in found if key.startswith("delta.constraints.")}


@pytest.mark.classic
def test_tables_of_a_catalog_have_a_number_too(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS numbered")
    store = Store(spark, SparkTables(spark, None, "numbered"), None, "numbered")
    written(store, "eu-1")
    assert store.tables.noted_number() == str(SCHEMA_NUMBER)
    assert opened(store) is store
    spark.sql(f"ALTER TABLE numbered.audit_runs SET TBLPROPERTIES ('{SCHEMA_PROPERTY}' = '99')")
    with pytest.raises(OtherSchemaError, match="numbered: its tables are of a newer txnlib"):
        opened(store)
    spark.sql("DROP SCHEMA numbered CASCADE")


def test_tables_without_a_number_but_of_the_first_shape_are_continued(
    monday: Path, tmp_path: Path, engine: Any
) -> None:
    output = copytree(monday, tmp_path / "unnumbered")
    note_number(output, None)
    assert noted(output) is None
    assert txnlib.open_audit(output).counts
    opened(engine.store(str(output), None))
    assert noted(output) == str(SCHEMA_NUMBER)


@pytest.mark.parametrize("number", ["0", "99", None])
def test_tables_of_another_schema_are_refused_by_everything_that_opens_them(
    monday: Path, tmp_path: Path, repository: Path, number: str | None
) -> None:
    output = make_older(copytree(monday, tmp_path / "other"), number)
    before = sorted(output.rglob("*"))
    for opening in (
        lambda: audit(repository, output),
        lambda: txnlib.open_audit(output),
        lambda: txnlib.runs(output),
        lambda: txnlib.read(output),
    ):
        with pytest.raises(OtherSchemaError, match="newer" if number == "99" else "older"):
            opening()
    assert sorted(output.rglob("*")) == before
