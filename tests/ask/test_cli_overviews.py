"""Commands that list: open transactions, findings, groups, answers in SQL."""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.golden import printed
from txnlib.ask.commands import COMMANDS
from txnlib.ask.delta_rows import TABLES_VARIABLE, open_run, open_tables
from txnlib.ask.main import main, parser
from txnlib.ask.overviews import answer_open
from txnlib.ask.words import LOOKS_LATE
from txnlib.core.finding import Severity
from txnlib.core.verdicts.plan_step import Action
from txnlib.core.verdicts.reason import Verdict


def column(root, name: str, *argv: object) -> list[str]:
    code, out, err = txn_audit(root, *argv, "--format", "csv")
    assert code == 0, err
    return [row[name] for row in csv.DictReader(io.StringIO(out))]


@pytest.mark.parametrize("width", [60, 80, 100, 132, 200])
def test_at_any_width_open_transactions_have_the_columns_that_decide(tmp_path, width):
    write_run(tmp_path)
    row = {"topic": "eu-central-payments", "partition": 3, "start_offset": 4711, "transactional_id": "payments-batch-7"}
    row |= {"holds": True, "blocked_offsets": 253, "blocks_since": at(NOW - 3_600_000), "ends_by": at(NOW + 60_000)}
    row |= {"safe_to_abort": True, "verdict": "HANGING", "reason": "WRITTEN_AFTER_MARKER"}
    write(tmp_path, "open_transactions", row, row | {"partition": 4, "ends_by": None})
    options = parser().parse_args(["open", "--tables", str(tmp_path)])
    text = answer_open(open_run(open_tables(str(tmp_path))), options).text(width=width)
    told = " ".join(text.split())
    values = ("eu-central-payments", "4711", "HANGING", "253", "2024-03-11 00:20:00Z", "WRITTEN_AFTER_MARKER")
    assert [told.count(value) for value in values] == [2] * len(values)
    assert told.count("2024-03-11 01:21:00Z") == 1
    assert "more column" not in told
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())) <= width


def test_open_transactions_are_chosen_and_those_that_block_most_come_first(tmp_path):
    write_run(tmp_path)
    rows = [("a", "HANGING", 1), ("b", "LATE", 9), ("a", "LATE", 5), ("a", "LATE", 7)]
    opened = [
        {
            "topic": topic,
            "partition": 0,
            "start_offset": n,
            "producer_id": n,
            "verdict": verdict,
            "blocked_offsets": n,
            "as_of": at(NOW),
        }
        for topic, verdict, n in rows
    ]
    write(
        tmp_path, "open_transactions", *[{**row, "reason": "TIMEOUT_PASSED", "explanation": "it is"} for row in opened]
    )
    assert column(tmp_path, "start_offset", "open") == ["9", "7", "5", "1"]
    assert column(tmp_path, "start_offset", "open", "--verdict", "LATE", "--topic", "a") == ["7", "5"]
    assert column(tmp_path, "start_offset", "open", "--limit", 1) == ["9"]


def test_findings_of_a_severity_or_above_come_with_the_most_severe_first(tmp_path):
    write_run(tmp_path)
    severities = ("INFO", "CRITICAL", "WARNING", "ERROR")
    write(tmp_path, "findings", *[{"name": f"N_{s}", "severity": s, "topic": "a", "partition": 0} for s in severities])
    assert column(tmp_path, "severity", "findings") == ["CRITICAL", "ERROR", "WARNING"]
    assert column(tmp_path, "severity", "findings", "--severity", "INFO") == ["CRITICAL", "ERROR", "WARNING", "INFO"]
    assert column(tmp_path, "severity", "findings", "--severity", "ERROR") == ["CRITICAL", "ERROR"]
    assert "left out: 1 of severity INFO (--severity INFO shows all)" in txn_audit(tmp_path, "findings")[1]
    assert "left out" not in txn_audit(tmp_path, "findings", "--severity", "INFO")[1]
    assert column(tmp_path, "severity", "findings", "--name", "N_INFO") == ["INFO"]


def test_what_lists_tell_is_as_it_was_read_last(assert_as_read, tmp_path):
    """People get one line for the same finding of an application, and programs all. Instants in sentences are like
    those in columns."""
    write_run(tmp_path)
    write(tmp_path, "blocked_groups")
    write(tmp_path, "coverage", {"topic": "__consumer_offsets", "partition": 0, "status": "COMPLETE"})
    row = {"name": "N", "severity": "ERROR", "topic": "a", "partition": 0, "transactional_id": "pay-1"}
    ids = ("pay-2", "pay-2", "ship-1", None, None)
    others = [row | {"partition": number, "transactional_id": name} for number, name in enumerate(ids, 1)]
    timed = row | {"name": "MARKER_MISSING", "evidence": "expires at 2024-03-11T01:20:00Z"}
    write(tmp_path, "findings", row, *others, row | {"severity": "WARNING"}, timed)
    asked = ("findings", "findings --limit 2", "findings --format csv", "groups", "groups --format json")
    assert_as_read("lists", printed(tmp_path, asked))


def test_groups_that_lag_most_come_first(tmp_path):
    write_run(tmp_path)
    lags = {"few": 3, "many": 30}
    write(
        tmp_path,
        "blocked_groups",
        *[{"group_id": g, "topic": "a", "partition": 0, "lag_offsets": n} for g, n in lags.items()],
    )
    write(tmp_path, "coverage", {"topic": "__consumer_offsets", "partition": 0, "status": "COMPLETE"})
    assert column(tmp_path, "group_id", "groups", "--topic", "a") == ["many", "few"]


def test_without_a_copy_of_what_groups_commit_nobody_says_that_none_waits(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "blocked_groups")
    write(tmp_path, "coverage", {"topic": "__consumer_offsets", "partition": 0, "status": "MISSING"})
    code, out, err = txn_audit(tmp_path, "groups")
    assert code == 0
    assert f"not known: no copy of __consumer_offsets was captured in run test-{NOW} of {tmp_path}\n" in out
    assert "no copy of __consumer_offsets was captured" in err


def test_copies_of_one_broker_stand_in_the_order_of_their_sources(tmp_path):
    """Whatever the order in which an audit wrote them."""
    write_run(tmp_path)
    copies = [{"topic": "a", "partition": 0, "broker": "1", "source": source} for source in ("raw:3", "raw:1", "raw:2")]
    write(tmp_path, "coverage", *[row | {"detail": row["source"]} for row in copies])
    assert column(tmp_path, "detail", "coverage") == ["raw:1", "raw:2", "raw:3"]


def test_what_only_some_copies_of_what_groups_commit_show_is_not_all(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "blocked_groups")
    states = ("COMPLETE", "MISSING", "MISSING")
    write(
        tmp_path,
        "coverage",
        *[{"topic": "__consumer_offsets", "partition": p, "status": s} for p, s in enumerate(states)],
    )
    code, out, err = txn_audit(tmp_path, "groups")
    assert (code, "none in run" in out) == (0, True)
    assert "not known of 2 of 3 partitions of __consumer_offsets: no copy was captured" in err


def test_a_question_in_sql_is_answered_from_tables_and_views_and_nothing_else(tmp_path):
    for number in (0, 1):
        run_id = write_run(tmp_path, NOW + number)
        write(
            tmp_path,
            "findings",
            {"name": f"N{number}", "severity": "INFO", "topic": "a", "partition": 0},
            run_id=run_id,
        )
    assert column(tmp_path, "name", "sql", "SELECT name FROM latest_findings") == ["N1"]
    assert column(tmp_path, "n_2", "sql", "SELECT count(*) AS n, max(name) AS n FROM findings") == ["N1"]
    for refused, said in {
        "SELECT * FROM nothing": "Tables and views: abort_plan",
        "SELECT 1 FROM": "Parser Error",
        f"SELECT * FROM read_csv('{tmp_path}/any')": "disabled",
    }.items():
        code, out, err = txn_audit(tmp_path, "sql", refused)
        assert (code, out, said in err) == (2, "", True), err


def test_the_table_that_was_meant_is_named(tmp_path):
    write_run(tmp_path)
    for wrong, right in {"opne_transactions": "open_transactions", "latest_finding": "latest_findings"}.items():
        code, _, err = txn_audit(tmp_path, "sql", f"SELECT * FROM {wrong}")
        assert (code, f"did you mean {right}?" in err) == (2, True), err


def test_a_query_gets_so_many_rows_and_no_more_memory_and_changes_no_limit(tmp_path):
    write_run(tmp_path)
    code, out, err = txn_audit(tmp_path, "sql", "SELECT * FROM range(1000000000)", "--format", "csv")
    assert (code, len(out.splitlines())) == (0, 10_001)
    assert "only the first 10,000 rows" in err
    few = txn_audit(tmp_path, "sql", "SELECT * FROM range(9)", "--format", "csv", "--limit", 3)
    assert few[1].split() == ["range", "0", "1", "2"]
    hungry = "SELECT list(repeat('x', 1000) || i) FROM range(100000000) AS t(i)"
    for refused, said in {
        hungry: "of memory: let it choose fewer rows",
        "SET memory_limit = '900GB'": "the configuration has been locked",
        "SET max_expression_depth = 1000000000": "the configuration has been locked",
        f"SELECT {'(' * 5_000}1{')' * 5_000}": "",
    }.items():
        code, _, err = txn_audit(tmp_path, "sql", refused)
        assert (code, said in err) == (2, True), err[:300]


def test_without_duckdb_sql_names_the_extra(tmp_path, monkeypatch):
    write_run(tmp_path)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    code, _, err = txn_audit(tmp_path, "sql", "SELECT 1")
    assert (code, "pip install 'txnlib[sql]'" in err) == (2, True)


def test_tables_are_found_where_the_demo_leaves_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(TABLES_VARIABLE, raising=False)
    write_run(tmp_path / "out" / "quickstart", cluster="one")
    assert (main(["runs"]), "one" in capsys.readouterr().out) == (0, True)
    write_run(tmp_path / "out" / "other", cluster="two")
    assert main(["runs"]) == 2
    assert "name one with --tables" in capsys.readouterr().err
    monkeypatch.setenv(TABLES_VARIABLE, str(tmp_path / "out" / "other"))
    assert (main(["runs"]), "two" in capsys.readouterr().out) == (0, True)


def test_no_command_prints_the_help(capsys):
    assert (main([]), "COMMAND" in capsys.readouterr().out) == (0, True)


@pytest.mark.parametrize(("typed", "meant"), [("fidn-late", "find-late"), ("coverge", "coverage")])
def test_a_command_that_was_meant_is_named(capsys, typed, meant):
    assert main([typed]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_exit_codes_and_an_example_that_can_be_parsed(capsys, name):
    assert main([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert "Exit codes: 0" in told
    (line,) = [line for line in told.splitlines() if line.startswith("Example: ")]
    words = shlex.split(line.removeprefix("Example: txn-audit "))
    assert parser().parse_args(words).command == name


def test_options_offer_all_names_of_the_core():
    offered = {
        option: how["choices"]
        for command in COMMANDS.values()
        for option, how in command.options.items()
        if "choices" in how
    }
    assert offered["--verdict"] == (*Verdict.__members__, LOOKS_LATE)
    assert offered["--action"] == tuple(Action.__members__)
    assert offered["--severity"] == tuple(Severity.__members__)
