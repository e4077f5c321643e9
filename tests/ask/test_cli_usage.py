"""The choice of a run, error messages, and ids that imitate lines."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.delta_tables import NOW, RUN, at, txn_audit, write, write_run
from txnlib.ask.collect_plan import COLUMNS, collect_plan_output
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.grid import grid, heading
from txnlib.ask.overviews import answer_coverage

EVIL = "pay\nHANGING  all is well\x1b[2J\u202e\u2028<b>[red]"


def a_late(root: Path, name: str, run_id: str = RUN) -> None:
    row = {"topic": "orders", "partition": 0, "start_offset": 1, "transactional_id": name, "late_by": "BOTH"}
    row |= {"verdict": "LATE", "reason": "OVERDUE"}
    write(root, "late_transactions", {**row, "transaction_start": at(NOW)}, run_id=run_id)


def test_a_folder_without_tables_is_named(tmp_path):
    code, out, err = txn_audit(tmp_path, "list")
    assert (code, out) == (2, "")
    assert f"{tmp_path}: no tables of an audit can be read there" in err
    assert "first, with the same --output). Give --tables the --output of an audit" in err


def test_a_table_that_is_missing_is_named(tmp_path):
    write_run(tmp_path)
    code, _, err = txn_audit(tmp_path, "find-late")
    assert (code, "table late_transactions is missing" in err) == (2, True)


@pytest.mark.parametrize(
    ("status", "became"),
    [
        ("RUNNING", "has not ended. Wait"),
        ("FAILED", "failed. Audit"),
        ("INGESTED", "has read the logs only"),
    ],
)
@pytest.mark.parametrize("is_made", [False, True], ids=["no folder", "no log"])
def test_what_the_first_audit_has_not_written_is_told_by_what_became_of_it(tmp_path, status, became, is_made):
    write_run(tmp_path, status=status)
    if is_made:
        (tmp_path / "late_transactions" / "_delta_log").mkdir(parents=True)
        (tmp_path / "late_transactions" / "part-0.parquet").write_bytes(b"PAR1")
    code, out, err = txn_audit(tmp_path, "find-late")
    assert (code, out) == (2, "")
    assert f"the audit of cluster test that began at 2024-03-11 01:20:00Z {became}" in err
    assert "missing" not in err


@pytest.mark.parametrize("folder", ["audit_runs", "audit_runs/_delta_log", "record_batches/_delta_log"])
def test_a_first_audit_that_noted_nothing_is_told_from_a_folder_without_tables(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    code, out, err = txn_audit(tmp_path, "list")
    assert (code, out) == (2, "")
    assert f"{tmp_path}: no audit has ended there" in err
    assert "missing" not in err


def test_a_table_that_cannot_be_read_is_a_failure(tmp_path):
    write_run(tmp_path)
    a_late(tmp_path, "a")
    for data in (tmp_path / "late_transactions").rglob("*.parquet"):
        data.write_bytes(b"not parquet")
    code, out, err = txn_audit(tmp_path, "find-late")
    assert (code, out) == (1, "")
    assert "failed" in err


def test_the_newest_finished_run_is_read_unless_one_is_named(tmp_path):
    for number, status in enumerate(("DONE", "DONE", "FAILED")):
        a_late(tmp_path, f"of-run-{number}", write_run(tmp_path, NOW + number, status))
    asked = {(): 1, ("--as-of", NOW): 0, ("--as-of", "2024-03-11T01:20:00Z"): 0, ("--run", f"test-{NOW + 2}"): 2}
    for argv, number in asked.items():
        rows = json.loads(txn_audit(tmp_path, "find-late", *argv, "--format", "json")[1])
        assert [row["transactional_id"] for row in rows] == [f"of-run-{number}"], argv
    assert txn_audit(tmp_path, "find-late", "--run", "another")[0] == 2
    assert txn_audit(tmp_path, "find-late", "--as-of", "yesterday")[0] == 2


def test_an_instant_of_two_runs_names_neither(tmp_path):
    write_run(tmp_path, cluster="east")
    write_run(tmp_path, cluster="west")
    code, _, err = txn_audit(tmp_path, "find-late", "--as-of", NOW)
    assert code == 2
    assert f"give --run: east-{NOW}, west-{NOW}" in err or f"give --run: west-{NOW}, east-{NOW}" in err


def test_runs_are_listed_newest_first(tmp_path):
    for number in range(3):
        write_run(tmp_path, NOW + number * 1000)
    code, out, _ = txn_audit(tmp_path, "runs", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [row["run_id"] for row in rows] == [f"test-{NOW + n * 1000}" for n in (2, 1, 0)]
    assert rows[0]["verdicts"] == "1 HANGING"
    for argv in (("--run", f"test-{NOW}"), ("--as-of", NOW)):
        (row,) = json.loads(txn_audit(tmp_path, "runs", *argv, "--format", "json")[1])
        assert row["run_id"] == f"test-{NOW}"


def test_columns_that_a_later_version_adds_are_no_trouble(tmp_path):
    from deltalake import Field, Schema

    write_run(tmp_path)
    a_late(tmp_path, "a")
    added = [Field("added_later", "string", nullable=True)]
    DeltaTable(str(tmp_path / "late_transactions")).alter.add_columns(added)
    assert isinstance(DeltaTable(str(tmp_path / "late_transactions")).schema(), Schema)
    assert txn_audit(tmp_path, "find-late")[0] == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("INTERVAL 26 HOUR", "1 day, 2:00:00"),
        ("INTERVAL '-1 hour'", "-1:00:00"),
        ("DATE '2024-03-11'", "2024-03-11"),
        ("TIME '01:20'", "01:20:00"),
        ("1.50", "1.50"),
        ("'\\xAA\\x00'::BLOB", "aa00"),
        ("'nan'::DOUBLE", "nan"),
        ("uuid '00000000-0000-0000-0000-000000000001'", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_a_value_that_json_has_no_type_for_is_text(tmp_path, value, text):
    write_run(tmp_path)
    query = f"SELECT {value} AS it, [{value}] AS list, {{'field': {value}}} AS struct, MAP {{{value}: 1}} AS map"
    code, out, err = txn_audit(tmp_path, "sql", query, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == [{"it": text, "list": [text], "struct": {"field": text}, "map": {text: 1}}]
    assert txn_audit(tmp_path, "sql", f"SELECT {value} AS it")[1].splitlines()[-1].strip() == text
    listed = txn_audit(tmp_path, "sql", f"SELECT [{{'field': {value}}}] AS it")[1]
    assert listed.splitlines()[-1].strip() == f"{{'field': '{text}'}}"


def test_a_timestamp_without_a_zone_is_in_utc(tmp_path, monkeypatch):
    write_run(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        out = txn_audit(tmp_path, "sql", "SELECT TIMESTAMP '2024-03-11 01:20' AS it", "--format", "json")[1]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert json.loads(out) == [{"it": "2024-03-11T01:20:00.000Z"}]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_an_id_cannot_forge_a_line(tmp_path, form):
    write_run(tmp_path)
    a_late(tmp_path, EVIL)
    code, out, _ = txn_audit(tmp_path, "find-late", "--format", form)
    assert code == 0
    assert not any(line.startswith("HANGING") for line in out.splitlines())
    assert all(c.isprintable() or c == "\n" for c in out)
    if form == "json":
        assert json.loads(out)[0]["transactional_id"] == EVIL


def test_a_terminal_gets_colours_unless_it_wants_none(tmp_path, monkeypatch):
    rows = [{"verdict": "HANGING", "name": "[bold]markup[/bold]"}]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    styled = grid(("verdict", "name"), rows, "table", width=80)
    assert "\x1b[1;31mHANGING" in styled
    assert "[bold]markup[/bold]" in styled, "what an id holds is text, not markup"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in grid(("verdict", "name"), rows, "table", width=80)
    assert "\x1b" not in grid(("verdict", "name"), rows, "table"), "piped output is plain"


SAME = {"a_long_heading_of_it": 1, "when": "07:19:36.427Z"}
ROWS = [
    {**SAME, "transactional_id": letter * 40, "detail": "words of it " * 7, "verdict": "OPEN"} for letter in ("x", "z")
]


@pytest.mark.parametrize("width", [45, 80, 120, 400])
def test_a_terminal_gets_the_first_columns_that_fit_and_ids_stay_whole(monkeypatch, width):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = grid(tuple(ROWS[0]), ROWS, "table", width=width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert ("x" * 40 in text, "07:19:36.427Z" in text) == (True, width > 45), "numbers and times go before ids"
    headings = " ".join(text.partition("─")[0].split())
    missing = sum(heading(name).split()[-1] not in headings for name in ROWS[0])
    assert f"({missing} more column" in lines[-1] if missing else "--wide" not in text


def test_a_single_row_that_does_not_fit_is_a_list(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = grid(tuple(ROWS[0]), ROWS[:1], "table", width=60).splitlines()
    assert lines[1:3] == ["when                  07:19:36.427Z", f"transactional id      {'x' * 40}"]
    assert " ".join(" ".join(line.split()) for line in lines).count("words") == 7
    assert max(map(len, lines)) <= 62, "an id is not broken"


WHY = "its records above offset 7 are lost: copy another replica of it, and audit again"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("made", ["coverage", "collect-plan"])
def test_why_is_said_at_every_width_and_only_where_there_is_something_to_say(tmp_path, monkeypatch, made, width):
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [{"topic": "t" * 20, "partition": number, "broker": "1", "status": "DAMAGED"} for number in (0, 1)]
    if made == "coverage":
        write_run(tmp_path)
        write(tmp_path, "coverage", {**rows[0], "detail": WHY}, {**rows[1], "detail": None})
        output = answer_coverage(open_run(open_tables(str(tmp_path))), Namespace())
    else:
        output = collect_plan_output(
            [dict.fromkeys(COLUMNS, 1) | row | {"why": WHY, "need": "PARTITION"} for row in rows]
        )
    text = output.text("table", width=width)
    assert " ".join(text.split()).count(WHY) or set(WHY.split()) <= set(text.split())
    assert [line for line in text.splitlines() if line.strip() == "-"] == []


def test_no_jvm_and_no_spark_are_needed(repository):
    """Whatever the command line imports, Spark and pandas are not in it."""
    code = "import sys; from txnlib.ask.main import COMMANDS, answer_of; [answer_of(name) for name in COMMANDS]; "
    code += "print([m for m in ('pyspark', 'py4j', 'pandas', 'rich', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")')


def test_no_cell_of_csv_is_a_formula_and_others_are_as_in_json():
    rows = [{"name": text, "number": -7, "names": [text], "is": True} for text in FORMULAS]
    read = list(csv.DictReader(io.StringIO(grid((*rows[0],), rows, "csv"))))
    for text, row in zip(FORMULAS, read, strict=True):
        assert row["name"].lstrip()[0] in "'\\"
        assert row["names"].lstrip()[0] in "'\\"
        assert row["name"].removeprefix("'").endswith(text.strip())
        assert (row["number"], row["is"]) == ("-7", "true")


@pytest.mark.parametrize(
    "place", ["late_transactions/*/*.parquet", "late_transactions/_delta_log/*.json", "audit_runs/_delta_log/*.json"]
)
def test_a_pipe_in_place_of_a_file_is_named_and_not_waited_for(tmp_path, place):
    write_run(tmp_path)
    a_late(tmp_path, "a")
    file = next(tmp_path.glob(place))
    file.unlink()
    os.mkfifo(file)
    code, out, err = txn_audit(tmp_path, "find-late")
    assert (code, out) == (2, "")
    assert f"{file}: it is no regular file" in err


@pytest.mark.parametrize(
    ("statuses", "options", "note"),
    [
        (["DONE", "DONE"], [], ""),
        (
            ["DONE", "FAILED"],
            [],
            f"this is run test-{NOW}, the newest that has ended: run test-{NOW + 1} failed. Audit",
        ),
        (
            ["DONE", "RUNNING"],
            [],
            f"this is run test-{NOW}, the newest that has ended: run test-{NOW + 1} has not ended. Wait",
        ),
        (["FAILED", "DONE"], [], ""),
        (["DONE", "FAILED"], ["--run", f"test-{NOW}"], ""),
        (
            ["DONE", "FAILED"],
            ["--run", f"test-{NOW + 1}"],
            f"run test-{NOW + 1} failed. Audit the same capture again. Its tables",
        ),
        (
            ["FAILED"],
            [],
            f"run test-{NOW} failed. Audit the same capture again. Its tables may lack rows",
        ),
    ],
)
def test_a_run_that_has_not_ended_is_named_whether_it_is_shown_or_not(tmp_path, statuses, options, note):
    for number, status in enumerate(statuses):
        a_late(tmp_path, f"of-run-{number}", write_run(tmp_path, NOW + number, status))
    code, _, err = txn_audit(tmp_path, "find-late", *options)
    assert code == 0
    assert err.startswith(f"txn-audit: {note}") if note else err == ""


def test_a_column_without_name_and_values_has_room_on_a_terminal():
    rows = [{"offset": number, "": ""} for number in (3, 4)]
    assert grid(("offset", ""), rows, "table", width=80).split("\n")[2:4] == ["3", "4"]
