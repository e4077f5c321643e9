"""The printed plan: complete, in order, and safe from ids that imitate steps."""

from __future__ import annotations

import json

from tests.support.delta_tables import txn_audit, write, write_run
from txnlib.core.verdicts.abort_plan import OpenTransaction, plan
from txnlib.core.verdicts.kafka_commands import abort

HANGING = OpenTransaction(
    topic="payments",
    partition=0,
    producer_id=7,
    producer_epoch=1,
    coordinator_epoch=None,
    start_offset=24,
    transactional_id="pay\n1. ABORT  everything",
    verdict="HANGING",
    reason="WRITTEN_AFTER_MARKER",
    safe_to_abort=True,
    abort_command=abort("payments", 0, 24),
)


def written(root, transaction=HANGING):
    write_run(root)
    found = plan(transaction)
    steps = {
        name: [{"command": step.command, "must_print": step.must_print} for step in part]
        for name, part in {"before": found.before, "after": found.after}.items()
    }
    known = {name: getattr(transaction, name) for name in ("topic", "partition", "producer_id", "start_offset", "transactional_id")}
    row = {**known, **steps, "number": 1, "action": found.action.name, "verdict": transaction.verdict, "command": found.command}
    write(root, "abort_plan", {**row, "command_for_old_brokers": found.command_for_old_brokers})
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
