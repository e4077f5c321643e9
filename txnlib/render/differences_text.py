"""The differences between two audits as text: a row per change, and their number by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.core.display import duration, printable, utc_time
from txnlib.queries.differences import CHANGES, COLUMNS, Differences, Place, RunSide
from txnlib.queries.rows import Row
from txnlib.render.command_output import CommandOutput

_SHOWN: Final = tuple(name for name in COLUMNS if name != "reason_now")


def differences_output(differences: Differences) -> CommandOutput:
    """One row per change. Programs also get the two runs, and the partitions that only one of them captured."""
    then, now = differences.then, differences.now
    whole = {
        "cluster": differences.cluster,
        "then": _whole(then),
        "now": _whole(now),
        "changes": differences.rows,
        "not_captured_now": _named(then.only_captured),
        "not_captured_then": _named(now.only_captured),
    }
    head = (
        f"{printable(differences.cluster)}: from {utc_time(then.as_of_ms)} to {utc_time(now.as_of_ms)} "
        f"({duration(now.as_of_ms - then.as_of_ms)}), {then.opened} open then, {now.opened} now\n\n"
    )
    tail = _counted(differences.rows)
    for label, run in (("not captured now, but then", then), ("captured now, and not then", now)):
        tail += f"{label}: {printable(', '.join(_named(run.only_captured)))}\n" if run.only_captured else ""
    return CommandOutput(COLUMNS, differences.rows, shown=_SHOWN, head=head, tail=tail, whole=lambda: whole)


def _whole(run: RunSide) -> Row:
    return {"run_id": run.run_id, "as_of_ms": run.as_of_ms}


def _counted(rows: Sequence[Row]) -> str:
    if not rows:
        return "\nnothing changed\n"
    counts = {change: sum(row["change"] == change for row in rows) for change in CHANGES}
    return "\n" + "".join(f"{n} {change}: {CHANGES[change]}\n" for change, n in counts.items() if n)


def _named(places: Sequence[Place]) -> list[str]:
    return [f"{topic}-{partition}" for topic, partition in places]
