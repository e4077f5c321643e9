"""A hanging transaction, and its row in `abort_plan`."""

from pathlib import Path
from typing import Any

from tests.support.delta_tables import write, write_run
from txnlib.core.kafka_commands import abort
from txnlib.core.verdicts.plan_step import OpenTransaction, Plan, PlanCommand, plan

HANGING = OpenTransaction(
    topic="payments", partition=0, producer_id=7, producer_epoch=1, coordinator_epoch=None, start_offset=24,
    transactional_id="pay\n1. ABORT  everything", verdict="HANGING", reason="WRITTEN_AFTER_MARKER", safe_to_abort=True,
    abort_command=abort("payments", 0, 24),
)  # fmt: skip


def row_of(transaction: OpenTransaction) -> tuple[Plan, dict[str, Any]]:
    """The plan for a transaction, and its row in `abort_plan`."""
    found = plan(transaction)
    assert found is not None
    known = {
        name: getattr(transaction, name)
        for name in ("topic", "partition", "producer_id", "start_offset", "transactional_id")
    }
    row = {**known, "number": 1, "action": found.action.name, "verdict": transaction.verdict, "command": found.command}
    steps = {"before": _steps(found.before), "after": _steps(found.after)}
    return found, {**row, **steps, "command_for_old_brokers": found.command_for_old_brokers}


def write_plan(root: Path, *rows: dict[str, Any]) -> None:
    """Writes a run with these rows in `abort_plan`."""
    write_run(root)
    write(root, "abort_plan", *rows)


def _steps(steps: tuple[PlanCommand, ...]) -> list[dict[str, str]]:
    return [{"command": step.command, "must_print": step.must_print} for step in steps]
