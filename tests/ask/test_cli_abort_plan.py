"""The printed plan: complete, in order, and safe from ids that imitate steps."""

from __future__ import annotations

import json
import re
import shlex

from tests.support.delta_tables import txn_audit
from tests.support.planned import HANGING, row_of, write_plan
from txnlib.ask.abort_plan_text import abort_plan, abort_plan_output
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.core.display import printable


def written(root):
    found, row = row_of(HANGING)
    write_plan(root, row)
    return found


def test_the_steps_stand_in_the_order_in_which_they_are_done(tmp_path):
    found = written(tmp_path)
    code, out, _ = txn_audit(tmp_path, "abort-plan")
    assert code == 0
    lines = out.splitlines()
    places = [
        next(i for i, line in enumerate(lines) if command in line)
        for command in (found.before[0].command, found.command)
    ]
    assert places == sorted(places)
    assert sum(line.startswith("1. ABORT") for line in lines) == 1
    assert any(found.after[1].must_print in line for line in lines[places[1] :])


def test_programs_get_every_field(tmp_path):
    found = written(tmp_path)
    (row,) = json.loads(txn_audit(tmp_path, "abort-plan", "--format", "json")[1])
    assert row["before"] == [{"command": step.command, "must_print": step.must_print} for step in found.before]
    assert (
        txn_audit(tmp_path, "abort-plan", "--format", "csv")[1]
        .splitlines()[0]
        .endswith("command,command_for_old_brokers")
    )


def test_kafka_has_no_such_command(tmp_path):
    written(tmp_path)
    assert txn_audit(tmp_path, "abort-plan", "--format", "kafka")[0] == 2


def test_a_command_that_must_wait_is_not_told_to_be_done(tmp_path):
    _, row = row_of(HANGING)
    write_plan(tmp_path, row | {"action": "ABORT_LATER", "do_not_abort_because": "it is too young"})
    for form, label in (("table", "   then    "), ("sh", "# then     ")):
        code, out, _ = txn_audit(tmp_path, "abort-plan", "--format", form)
        (line,) = [line for line in out.splitlines() if line.endswith(row["command"])]
        assert (code, line) == (0, f"{label}{row['command']}"), form


def test_steps_stand_in_the_order_of_the_plan_those_alike_at_the_place_of_the_first(tmp_path):
    _, row = row_of(HANGING)
    none = row | {"command": None, "command_for_old_brokers": None, "before": [], "after": [], "notes": None}
    later = [none | {"number": n, "action": "DO_NOT_ABORT"} for n in (2, 4)]
    write_plan(
        tmp_path, row | {"number": 1}, later[0], row | {"number": 3}, later[1], none | {"number": 5, "action": "WAIT"}
    )
    lines = txn_audit(tmp_path, "abort-plan")[1].partition("\n\n")[2].splitlines()
    assert re.findall(r"^ *(\d)\. ", "\n".join(lines), re.MULTILINE) == ["1", "2", "4", "3", "5"]


def test_a_command_wider_than_its_terminal_goes_on_where_a_shell_does(tmp_path):
    found = written(tmp_path)
    run = open_run(open_tables(str(tmp_path)))
    output = abort_plan_output(abort_plan(run), "run", "now")
    steps = [each.command for each in (*found.before, *found.after)]
    for width in (60, 80, 400, None):
        shown = re.findall(
            r"^   (?:before|do|after) +((?:.*\\\n)?.*)$", output.text("table", width=width), re.MULTILINE
        )
        assert {shlex.join(shlex.split(each.replace("\\\n", ""))) for each in shown} == {
            shlex.join(shlex.split(printable(each))) for each in (*steps, found.command)
        }
        assert any("\\\n" in each for each in shown) == (width in (60, 80))


def test_a_note_of_some_steps_names_them(tmp_path):
    _, row = row_of(HANGING)
    none = row | {"action": "DO_NOT_ABORT", "command": None, "command_for_old_brokers": None, "before": [], "after": []}
    notes = ("of one", "of both", "of both")
    write_plan(
        tmp_path,
        *[none | {"number": n, "do_not_abort_because": "of all", "notes": [note]} for n, note in enumerate(notes)],
    )
    out = txn_audit(tmp_path, "abort-plan")[1]
    assert [line for line in out.splitlines() if line.startswith("   note")] == [
        "   note    of all", "   note    0: of one", "   note    1, 2: of both",
    ]  # fmt: skip
