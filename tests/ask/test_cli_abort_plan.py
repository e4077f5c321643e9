"""The printed plan: complete, in order, and safe from ids that imitate steps."""

from __future__ import annotations

import json
import re
import shlex

from tests.support.delta_tables import txn_audit
from tests.support.golden import printed
from tests.support.planned import HANGING, row_of, write_plan
from txnlib.ask.abort_plan_text import abort_plan, abort_plan_output
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.core.display import printable


def written(root):
    found, row = row_of(HANGING)
    write_plan(root, row)
    return found


def test_what_is_told_of_steps_is_as_it_was_read_last(assert_as_read, tmp_path):
    """In the order of the plan, those alike at the place of the first; a note of some of these names them. An id
    imitates a step."""
    _, row = row_of(HANGING)
    none = row | {"reason": "R", "command": None, "command_for_old_brokers": None, "before": [], "after": []}
    alike = [
        none | {"number": n, "action": "DO_NOT_ABORT", "do_not_abort_because": "of all", "notes": [note]}
        for n, note in ((2, "of one"), (4, "of both"), (6, "of both"))
    ]
    others = row | {"number": 1}, row | {"number": 3}, none | {"number": 5, "action": "WAIT"}
    write_plan(tmp_path, *sorted([*alike, *others], key=lambda each: each["number"]))
    told = printed(tmp_path, ["abort-plan"])
    assert_as_read("abort-plan", told)


def test_programs_get_every_field(tmp_path):
    found = written(tmp_path)
    (row,) = json.loads(txn_audit(tmp_path, "abort-plan", "--format", "json")[1])
    assert row["before"] == [{"command": step.command, "must_print": step.must_print} for step in found.before]
    assert (
        txn_audit(tmp_path, "abort-plan", "--format", "csv")[1]
        .splitlines()[0]
        .endswith("command,command_for_old_brokers")
    )


def test_a_command_that_must_wait_is_not_told_to_be_done(tmp_path):
    _, row = row_of(HANGING)
    write_plan(tmp_path, row | {"action": "ABORT_LATER", "do_not_abort_because": "it is too young"})
    code, out, _ = txn_audit(tmp_path, "abort-plan", "--format", "sh")
    assert (code, [line for line in out.splitlines() if line.endswith(row["command"])]) == (
        0,
        [f"# then     {row['command']}"],
    )


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
