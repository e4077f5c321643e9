"""`txn-audit diff`: what changed between two runs of a cluster."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Final

from txnlib.cli.output import Answer
from txnlib.core.durations import duration
from txnlib.core.instants import parse_instant
from txnlib.errors import MissingTableError, UsageError
from txnlib.queries.differences import CHANGES, COLUMNS, Key, Place, differences, key_of
from txnlib.queries.tables import Row, Run, Tables, chosen_runs, ms, run_of
from txnlib.render.report_text import instant, printable

_OPEN: Final = (
    "topic",
    "partition",
    "producer_id",
    "start_offset",
    "transactional_id",
    "verdict",
    "reason",
    "explanation",
)
_SHOWN: Final = tuple(name for name in COLUMNS if name != "reason_now")


def diff(tables: Tables, options: Namespace) -> Answer:
    """Transactions that are new, ended or judged differently. Raises UsageError unless there are two runs of one cluster."""
    then, now = _two_runs(tables, options)
    rows_then, rows_now = (run.rows("open_transactions", _OPEN) for run in (then, now))
    captured_then, captured_now = _captured(then), _captured(now)
    rows = differences(
        rows_then,
        rows_now,
        captured_then=captured_then,
        captured_now=captured_now,
        endings=_endings(now, {key_of(row) for row in rows_then} - {key_of(row) for row in rows_now}),
    )
    lost, found = captured_then - captured_now, captured_now - captured_then
    whole = {
        "cluster": now.cluster,
        "then": {"run_id": then.run_id, "as_of_ms": then.as_of_ms},
        "now": {"run_id": now.run_id, "as_of_ms": now.as_of_ms},
        "changes": rows,
        "not_captured_now": _named(lost),
        "not_captured_then": _named(found),
    }
    head = (
        f"{printable(now.cluster)}: from {instant(then.as_of_ms)} to {instant(now.as_of_ms)} "
        f"({duration(now.as_of_ms - then.as_of_ms)}), {len(rows_then)} open then, {len(rows_now)} now\n\n"
    )
    tail = _counted(rows)
    for label, places in (("not captured now, but then", lost), ("captured now, and not then", found)):
        tail += f"{label}: {printable(', '.join(_named(places)))}\n" if places else ""
    return Answer(COLUMNS, rows, shown=_SHOWN, head=head, tail=tail, whole=whole)


def _counted(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "\nnothing changed\n"
    counts = {change: sum(row["change"] == change for row in rows) for change in CHANGES}
    return "\n" + "".join(f"{n} {change}: {CHANGES[change]}\n" for change, n in counts.items() if n)


def _two_runs(tables: Tables, options: Namespace) -> tuple[Run, Run]:
    """The two named runs; one named run and the newest; or the newest finished run and the one before it."""
    if len(options.runs) > 2:
        raise UsageError("diff takes at most two runs")
    done = [row for row in chosen_runs(tables) if row["status"] == "DONE"]
    if options.runs:
        named = [_named_run(tables, name) for name in options.runs]
        then, now = named if len(named) == 2 else (named[0], _newest(options, tables, done))
    else:
        now = _newest(options, tables, done)
        earlier = [row for row in done if row["cluster"] == now["cluster"] and row["as_of"] < now["as_of"]]
        if not earlier:
            raise UsageError(f"there is no run of {now['cluster']} before {now['run_id']}: `txn-audit runs` lists all runs")
        then = earlier[0]
    if then["cluster"] != now["cluster"]:
        raise UsageError(f"{then['run_id']} and {now['run_id']} are runs of different clusters")
    return run_of(tables, then), run_of(tables, now)


def _newest(options: Namespace, tables: Tables, done: list[Row]) -> Row:
    found = chosen_runs(tables, run_id=options.run, as_of=options.as_of) if options.run or options.as_of else done
    if not found:
        raise UsageError("no run has finished: `txn-audit runs` lists all runs")
    return found[0]


def _named_run(tables: Tables, name: str) -> Row:
    """The run with this id, else the run as of this instant."""
    rows = chosen_runs(tables)
    by_id = [row for row in rows if row["run_id"] == name]
    if by_id:
        return by_id[0]
    try:
        at = parse_instant(name)
    except UsageError as error:
        raise UsageError(f"no such run: {name}; `txn-audit runs` lists all runs") from error
    found = [row for row in rows if ms(row["as_of"]) == at]
    if len(found) != 1:
        raise UsageError(f"{len(found)} runs are as of {name}: `txn-audit runs` lists all runs")
    return found[0]


def _captured(run: Run) -> set[Place]:
    rows = run.rows("coverage", ("topic", "partition"), [("status", "<>", "MISSING")])
    return {(row["topic"], row["partition"]) for row in rows}


def _named(places: set[Place]) -> list[str]:
    return [f"{topic}-{partition}" for topic, partition in sorted(places)]


def _endings(now: Run, gone: set[Key]) -> dict[Key, str]:
    """How transactions that are no longer open ended: from `ended_transactions` of the later run, else from their marker."""
    if not gone:
        return {}
    said: dict[Key, str] = {}
    where = [("topic", "IN", {key[0] for key in gone}), ("first_offset", "IN", {key[3] for key in gone})]
    columns = ("topic", "partition", "producer_id", "first_offset", "marker_offset", "outcome", "completed")
    for row in now.rows("partition_transactions", columns, where):
        if row["marker_offset"] is not None:
            what = f"{row['outcome'] or 'a'} marker at offset {row['marker_offset']}, {instant(ms(row['completed']))}"
            said[row["topic"], row["partition"], row["producer_id"], row["first_offset"]] = what
    try:
        noted = now.rows("ended_transactions", ("topic", "partition", "producer_id", "start_offset", "says"))
    except MissingTableError:
        noted = []
    return {key: text for key, text in {**said, **{key_of(row): row["says"] for row in noted}}.items() if key in gone}
