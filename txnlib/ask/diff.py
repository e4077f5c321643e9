"""The differences between two audits of a cluster, by their open transactions. Judges nothing."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.delta_rows import Tables, two_runs
from txnlib.ask.grid import fold
from txnlib.ask.queries import KEY, Key, Row, StoredRun, column_names, key_of, ms
from txnlib.ask.words import named
from txnlib.core.display import duration, printable, utc_time

Place = tuple[str, int]

#: Change -> what it means, in the order in which changes are shown.
CHANGES: Final[Mapping[str, str]] = {
    "NEW": "open now, and not then",
    "VERDICT": "open in both, and judged otherwise",
    "ENDED": "open then, and not now",
    "NOT_SEEN": "open then; its partition was not captured now, so it may be open still",
    "SEEN": "open now; its partition was not captured then, so it may have been open",
}
COLUMNS: Final = column_names(
    "change topic partition start_offset producer_id transactional_id verdict_then verdict_now reason_now says"
)
_SHOWN: Final = tuple(name for name in COLUMNS if name != "reason_now")
_OPEN: Final = column_names("topic partition producer_id start_offset transactional_id verdict reason explanation")


def differences_of_runs(then: StoredRun, now: StoredRun) -> CommandOutput:
    """Transactions that are new, ended or judged differently: one row per change.

    Programs also get the two runs, and the partitions that only one of them captured.
    """
    opened_then, opened_now = (list(map(named, run.rows("open_transactions", _OPEN))) for run in (then, now))
    captured_then, captured_now = _captured(then), _captured(now)
    before, after = {key_of(row): row for row in opened_then}, {key_of(row): row for row in opened_now}
    endings = _endings(now, before.keys() - after.keys())
    began = {key: "NEW" if key[:2] in captured_then else "SEEN" for key in after if key not in before}
    rows = [_row(change, None, after[key]) for key, change in began.items()]
    for key, row in before.items():
        if key not in after:
            rows.append(_row("ENDED" if key[:2] in captured_now else "NOT_SEEN", row, None, endings.get(key)))
        elif row["verdict"] != after[key]["verdict"]:
            rows.append(_row("VERDICT", row, after[key]))
    rows.sort(key=lambda row: (list(CHANGES).index(row["change"]), *key_of(row)))
    lost, added = _named(captured_then - captured_now), _named(captured_now - captured_then)
    whole = {
        "cluster": now.cluster,
        "then": {"run_id": then.run_id, "as_of_ms": then.as_of_ms},
        "now": {"run_id": now.run_id, "as_of_ms": now.as_of_ms},
        "changes": rows,
        "not_captured_now": lost,
        "not_captured_then": added,
    }
    head = (
        f"{printable(now.cluster)}: from {utc_time(then.as_of_ms)} to {utc_time(now.as_of_ms)} "
        f"({duration(now.as_of_ms - then.as_of_ms)}), {len(opened_then)} open then, {len(opened_now)} now\n\n"
    )
    counts = Counter(row["change"] for row in rows)
    tail = "\n" + "".join(
        f"{counts[change]} {change}: {meaning}\n" for change, meaning in CHANGES.items() if counts[change]
    )
    tail += "" if counts else "nothing changed\n"
    for label, places in (("not captured now, but then", lost), ("captured now, and not then", added)):
        tail += f"{label}: {printable(', '.join(places))}\n" if places else ""
    return CommandOutput(COLUMNS, rows, shown=_SHOWN, head=head, tail=partial(fold, tail), whole=lambda: whole)


def _captured(run: StoredRun) -> set[Place]:
    rows = run.rows("coverage", ("topic", "partition"), [("status", "<>", "MISSING")])
    return {(row["topic"], row["partition"]) for row in rows}


def _row(change: str, then: Row | None, now: Row | None, ended: str | None = None) -> Row:
    row = now if now is not None else then
    assert row is not None
    says = row["explanation"] if now is not None else (ended or CHANGES[change])
    return {
        "change": change,
        **{name: row[name] for name in COLUMNS[1:6]},
        "verdict_then": None if then is None else then["verdict"],
        "verdict_now": None if now is None else now["verdict"],
        "reason_now": None if now is None else now["reason"],
        "says": says,
    }


def _endings(now: StoredRun, gone: set[Key]) -> dict[Key, str]:
    """How transactions that are no longer open ended: from `ended_transactions` of the later run, else from their
    marker."""
    if not gone:
        return {}
    endings: dict[Key, str] = {}
    where = [("topic", "IN", {key[0] for key in gone}), ("first_offset", "IN", {key[3] for key in gone})]
    columns = ("topic", "partition", "producer_id", "first_offset", "marker_offset", "outcome", "completed")
    for row in now.rows("partition_transactions", columns, where):
        if row["marker_offset"] is not None:
            marker = (
                f"{row['outcome'] or 'a'} marker at offset {row['marker_offset']}, {utc_time(ms(row['completed']))}"
            )
            endings[row["topic"], row["partition"], row["producer_id"], row["first_offset"]] = marker
    ended = now.rows("ended_transactions", (*KEY, "says"))
    endings |= {key_of(row): row["says"] for row in ended}
    return {key: says for key, says in endings.items() if key in gone}


def _named(places: set[Place]) -> list[str]:
    return [f"{topic}-{partition}" for topic, partition in sorted(places)]


# ---- The command


def answer(tables: Tables, options: Namespace) -> CommandOutput:
    """Transactions that are new, ended or judged differently. Raises UsageError unless there are two runs of one
    cluster."""
    then, now = two_runs(tables, options.runs, run_id=options.run, as_of=options.as_of)
    return differences_of_runs(then, now)
