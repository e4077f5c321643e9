"""Audits by either engine, and the comparison of their tables.

One process has one kind of PySpark. So the embedded engine has a process of its own, in which one audit follows the
other; classic Spark is that of the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

import txnlib
from tests.support.daemons import bare_environment
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import TABLES
from txnlib.core.schema.rows_of_runs import OF_PARTS

#: What each run has of its own.
OF_RUN: Final = {"started_at", "finished_at", "engine", "part", "parts"}
_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_PROGRAM: Final = "import json, sys, txnlib\nfor each in json.load(sys.stdin): txnlib.audit(**each)"


@dataclass(frozen=True)
class Asked:
    """An audit: what `txnlib.audit` is asked for."""

    capture: str
    output: str
    cluster: str | None = None
    mode: str = "incremental"


def audit_by_embedded(audits: Iterable[Asked]) -> None:
    """Carries out audits, one after the other, in a process with the embedded engine."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps([asdict(each) for each in audits]),
        env=bare_environment() | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def audit_by_spark(audits: Iterable[Asked]) -> None:
    """The same in this process, whose session is Spark's."""
    for each in audits:
        txnlib.audit(**asdict(each))


def engines_of(output: Path) -> list[str]:
    """The names of the engines that made the runs of a folder, by instant of the run."""
    runs = sorted(_rows(output, "audit_runs"), key=lambda row: row["as_of"])
    return [row["engine"].partition(" ")[0] for row in runs]


def differences(one: Path, other: Path) -> list[str]:
    """What differs between the tables of two folders: columns, with their comments; rows, but for what is of a run."""
    found = []
    for name in TABLES:
        schemas = [_schema(folder, name) for folder in (one, other)]
        if None not in schemas and schemas[0] != schemas[1]:
            found.append(f"{name}: {schemas}")
        rows = [rows_of(folder, name) for folder in (one, other)]
        if rows[0] != rows[1]:
            only = [sorted(set(rows[n]) - set(rows[1 - n]))[:2] for n in (0, 1)]
            found.append(f"{name}: {len(rows[0])} and {len(rows[1])} rows, such as {only}")
    return found


def rows_of(folder: Path, name: str) -> list[str]:
    """The rows of a table as text, but for what each run has of its own, in any order."""
    return sorted(
        repr({key: value for key, value in sorted(row.items()) if key not in OF_RUN}) for row in _rows(folder, name)
    )


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows that runs have in a table; none if it is not there."""
    path = f"{folder}/{name}"
    if not DeltaTable.is_deltatable(path):
        return []
    if name in OF_PARTS:
        return Tables(str(folder)).rows(name, ["cluster", "run_id", *TABLES[name].names])
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return rows


def _schema(folder: Path, name: str) -> str | None:
    path = f"{folder}/{name}"
    return DeltaTable(path).schema().to_json() if DeltaTable.is_deltatable(path) else None
