"""Tables as an older version of txnlib would have left them: without what was added since."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from txnlib.core.schema import schema_number
from txnlib.version import SCHEMA_PROPERTY

#: What the oldest number that is read lacks: columns, fields of structs, tables, one of them always there.
ADDED = (
    "audit_runs.engine",
    "coverage.detail",
    "findings.evidence",
    "hanging_transactions",
    "measured_clocks",
    "open_transactions.causes.evidence",
    "segments.unreadable.sample",
)


def as_if_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the first number had added these, and a number before it were read."""
    monkeypatch.setattr(schema_number, "ADDED", {1: ADDED})
    monkeypatch.setattr(schema_number, "OLDEST", 0)


def make_older(root: Path, number: str | None = "0", added: Iterable[str] = ADDED) -> Path:
    """Writes the tables anew without what was added, and with that number."""
    for path in added:
        name, *names = path.split(".")
        if not names:
            shutil.rmtree(root / name, ignore_errors=True)
        elif (root / name).is_dir():
            rows = DeltaTable(str(root / name)).to_pyarrow_dataset().to_table()
            shutil.rmtree(root / name)
            write_deltalake(str(root / name), _without(rows, names), partition_by=["run_id"])
    _forget(root, {path for path in added if "." not in path})
    note_number(root, number)
    return root


def note_number(root: Path, number: str | None) -> None:
    """Gives the tables a number of their schema, or none."""
    if number is None:
        rows = DeltaTable(str(root / "audit_runs")).to_pyarrow_dataset().to_table()
        shutil.rmtree(root / "audit_runs")
        write_deltalake(str(root / "audit_runs"), rows, partition_by=["run_id"])
    else:
        table = DeltaTable(str(root / "audit_runs"))
        table.alter.set_table_properties({SCHEMA_PROPERTY: number}, raise_if_not_exists=False)


def _forget(root: Path, tables: set[str]) -> None:
    """No run has made these tables."""
    rows = DeltaTable(str(root / "audit_runs")).to_pyarrow_dataset().to_table().to_pylist()
    for row in rows:
        counts = json.loads(row["counts"])
        less = json.dumps(counts | {"tables": sorted({*counts["tables"]} - tables)}).replace("'", "''")
        DeltaTable(str(root / "audit_runs")).update({"counts": f"'{less}'"}, predicate=f"run_id = '{row['run_id']}'")


def _without(rows: pa.Table, names: list[str]) -> pa.Table:
    name, *fields = names
    if not fields:
        return rows.drop_columns([name])
    kept = [_less(each, fields) for each in rows[name].to_pylist()]
    column = rows.schema.get_field_index(name)
    return rows.set_column(column, name, pa.array(kept, _type_less(rows.schema.field(name).type, fields)))


def _less(value: Any, fields: list[str]) -> Any:
    return None if value is None else [{k: v for k, v in each.items() if k != fields[0]} for each in value]


def _type_less(kind: pa.DataType, fields: list[str]) -> pa.DataType:
    return pa.list_(pa.struct([each for each in kind.value_type if each.name != fields[0]]))
