"""The printed plan: complete, in order, and safe from ids that imitate steps."""

from __future__ import annotations

import json

from tests.support.delta_tables import txn_audit
from tests.support.planned import HANGING, row_of, write_plan


def written(root):
    found, row = row_of(HANGING)
    write_plan(root, row)
    return found


def test_the_steps_stand_in_the_order_in_which_they_are_done(tmp_path):
    found = written(tmp_path)
    code, out, _ = txn_audit(tmp_path, "abort-plan")
    assert code == 0
    lines = out.splitlines()
    places = [next(i for i, line in enumerate(lines) if command in line) for command in (found.before[0].command, found.command)]
    assert places == sorted(places)
    assert sum(line.startswith("1. ABORT") for line in lines) == 1
    assert any(found.after[1].must_print in line for line in lines[places[1] :])


def test_programs_get_every_field(tmp_path):
    found = written(tmp_path)
    (row,) = json.loads(txn_audit(tmp_path, "abort-plan", "--format", "json")[1])
    assert row["before"] == [{"command": step.command, "must_print": step.must_print} for step in found.before]
    assert txn_audit(tmp_path, "abort-plan", "--format", "csv")[1].splitlines()[0].endswith("command,command_for_old_brokers")


def test_kafka_has_no_such_command(tmp_path):
    written(tmp_path)
    assert txn_audit(tmp_path, "abort-plan", "--format", "kafka")[0] == 2
