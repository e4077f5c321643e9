"""What every command says of tables of an older or a newer schema."""

from __future__ import annotations

import shlex
from pathlib import Path
from shutil import copytree

import pytest

import txnlib
from tests.support.delta_tables import txn_audit
from tests.support.older_tables import ADDED, as_if_added, make_older, note_number
from txnlib.ask.commands import COMMANDS, Reads

READING = {name: command for name, command in COMMANDS.items() if command.reads is not Reads.NOTHING}
#: Arguments where the example of a command names nothing that the sample has.
OTHERS = {"sql": '"SELECT topic, verdict, causes FROM latest_open_transactions"', "diff": ""}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    output = tmp_path_factory.mktemp("today") / "out"
    for as_of in ("2026-11-21T07:42:41.899Z", "2026-11-22T07:42:41.899Z"):
        txnlib.audit(repository / "examples" / "quickstart", output=output, as_of=as_of)
    return output


def asked(root: Path, name: str) -> tuple[int, str, str]:
    words = shlex.split(OTHERS.get(name, READING[name].example))
    code, out, err = txn_audit(root, name, *[word for word in words if word not in ("--html", "report.html")])
    return code, out.replace(str(root), "OUT"), err


@pytest.mark.parametrize("name", READING)
def test_a_command_reads_older_tables_as_if_they_had_all_columns(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    as_if_added(monkeypatch)
    older = make_older(copytree(tables, tmp_path / "older"))
    code, out, err = asked(older, name)
    code_now, now, err_now = asked(tables, name)
    assert err == err_now
    assert code == code_now
    assert code == 0
    if name not in ("report", "explain", "find-hanging", "findings", "sql", "coverage"):  # these show what is lacking
        assert out == now


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize(("number", "is_newer"), [("99", True), ("0", False), (None, False)])
def test_a_command_refuses_tables_of_another_schema_in_one_sentence(
    tables: Path, tmp_path: Path, name: str, number: str | None, is_newer: bool
) -> None:
    other = copytree(tables, tmp_path / "other")
    if number == "99":
        note_number(other, number)
    else:
        make_older(other, number)
    code, out, err = asked(other, name)
    assert (code, out) == (2, "")
    says = "a newer txnlib (schema 99" if is_newer else "an older txnlib ("
    assert err.startswith(f"txn-audit: {other}: its tables are of {says}")
    assert err.count("\n") == 1


def test_frames_without_an_engine_have_all_columns_too(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_if_added(monkeypatch)
    read = txnlib.read(make_older(copytree(tables, tmp_path / "older")))
    for name, column in (path.split(".") for path in ADDED if path.count(".") == 1):
        assert set(read[name][column].to_pylist()) <= {None}
    whole = txnlib.read(tables)["open_transactions"]
    found = read["open_transactions"]
    assert found.schema == whole.schema
    causes = [cause for row in found["causes"].to_pylist() for cause in row]
    assert causes
    assert {cause["evidence"] for cause in causes} == {None}
    assert [cause["cause"] for cause in causes] == [
        cause["cause"] for row in whole["causes"].to_pylist() for cause in row
    ]
