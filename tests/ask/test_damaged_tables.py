"""Tables that somebody damaged: one sentence with the name of the table, and what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.delta_tables import NOW, txn_audit, write_plan, write_run
from txnlib.ask import main as asked
from txnlib.ask.queries import StoredRun


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    path.write_bytes(b"\x1b[2J no table" * 100)


def lose(path: Path) -> None:
    path.unlink()


LOG, ROWS = "_delta_log/*.json", "*/*.parquet"


@pytest.mark.parametrize(
    ("files", "damage"), [(LOG, cut), (LOG, overwrite), (ROWS, cut), (ROWS, overwrite), (ROWS, lose)]
)
def test_a_damaged_table_is_named_with_what_to_do(tmp_path: Path, files: str, damage: Callable[[Path], None]) -> None:
    write_run(tmp_path)
    row = {"topic": "t", "partition": 0, "producer_id": 7, "start_offset": 1, "verdict": "HANGING", "reason": "R"}
    write_plan(tmp_path, row | {"transactional_id": "x"})
    for path in (tmp_path / "abort_plan").glob(files):
        damage(path)
    code, out, err = txn_audit(tmp_path, "abort-plan")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert f"{tmp_path}/abort_plan: reading failed, the table is damaged (" in err
    assert err.endswith("Run the audit again\n")
    assert "\x1b" not in err


@pytest.mark.parametrize("lost", ["_delta_log", ""])
def test_a_lost_table_is_empty_only_if_no_run_wrote_rows(tmp_path: Path, lost: str) -> None:
    write_run(tmp_path)
    row = {"topic": "t", "partition": 0, "producer_id": 7, "start_offset": 1, "verdict": "HANGING", "reason": "R"}
    write_plan(tmp_path, row | {"transactional_id": "x"})
    table = tmp_path / "abort_plan"
    table.rename(tmp_path / "elsewhere")
    assert txn_audit(tmp_path, "abort-plan")[0] == 0, "a table without rows is not made"

    (tmp_path / "elsewhere").rename(table)
    shutil.rmtree(tmp_path / "audit_runs")
    write_run(tmp_path, tables=["abort_plan"])
    assert txn_audit(tmp_path, "abort-plan")[0] == 0
    shutil.rmtree(table / lost)
    code, out, err = txn_audit(tmp_path, "abort-plan")
    assert (code, out) == (1, "")
    lost_log = "a run wrote rows, and the table's log is lost"
    assert err == f"txn-audit: {table}: reading failed, the table is damaged ({lost_log}). Run the audit again\n"

    write_run(tmp_path, as_of_ms=NOW + 1)
    assert txn_audit(tmp_path, "abort-plan")[0] == 0, "an audit whose plan is empty"


def test_an_odd_value_names_the_tables_that_were_read(tmp_path: Path, monkeypatch, capsys) -> None:
    write_run(tmp_path)
    row = {"topic": "t", "partition": 0, "producer_id": 7, "start_offset": 1, "verdict": "HANGING", "reason": "R"}
    write_plan(tmp_path, row | {"transactional_id": "x"})

    def answer(run: StoredRun, options: object) -> None:
        run.tables.rows("abort_plan", ("topic",))
        raise KeyError("\x1b[2J")

    monkeypatch.setattr(asked, "answer_of", lambda command: answer)
    assert asked.main(["abort-plan", "--tables", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("txn-audit: failed: KeyError: ")
    assert err.endswith("(read: abort_plan, audit_runs). If somebody changed these tables, run the audit again\n")
    assert "\x1b" not in err
