"""The command `explain`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.entries import does
from txnlib.ask.explain import OTHERS, explain
from txnlib.ask.grid import instant_json
from txnlib.ask.own_command import own_command
from txnlib.ask.queries import Row, StoredRun
from txnlib.ask.report_rows import complete
from txnlib.ask.story_text import output_of_explained
from txnlib.ask.stuck_ids import stuck_ids
from txnlib.ask.subject import equal, is_captured, open_place, readings
from txnlib.ask.transaction import whole_transaction
from txnlib.ask.transaction_text import output_of_transaction
from txnlib.ask.words import URGENCY, name_of, where
from txnlib.core.display import counted
from txnlib.core.schema import shown
from txnlib.errors import UsageError


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """The story of one open transaction from both logs; of a topic, what holds each partition, and the story of the
    most urgent. Raises UsageError if no transaction is open there."""
    topic = " ".join(options.where)
    if is_captured(run, topic) and not run.number("open_transactions", "count(*)", equal(transactional_id=topic)):
        return of_topic(run, topic)
    return _stuck(run, options.where) or output_of_explained(explain(run, *open_place(run, options.where)))


def _stuck(run: StoredRun, words: Sequence[str]) -> CommandOutput | None:
    """The newest transaction of a stuck id that has nothing open; None if the words name no such id."""
    named = [each for each in readings(words) if "topic" not in each]
    ids = [each["transactional_id"] for each in named if "transactional_id" in each]
    producers = [each["producer_id"] for each in named if "producer_id" in each]
    stuck = next(
        (each for each in stuck_ids(run) if each.transactional_id in ids or each.producer_id in producers), None
    )
    if stuck is None or run.number("open_transactions", "count(*)", equal(transactional_id=stuck.transactional_id)):
        return None
    return output_of_transaction(whole_transaction(run, stuck.transactional_id))


def of_topic(run: StoredRun, topic: str) -> CommandOutput:
    """A line for each transaction that holds a partition of the topic, and for each more urgent one that only waits:
    the most urgent first, then those that wait longest. Below, the story of the first.

    If no transaction holds a partition, the lines are about all that are open there.
    """
    rows = sorted(_urgent(run, topic), key=lambda row: (_urgency(row), row["holds"] is False))[:OTHERS]
    if not rows:
        raise UsageError(
            f"nothing is open on {topic}{_unseen(run, topic)}",
            hint=f"{own_command(run.tables.root, 'open')} lists what is",
        )
    complete(run, rows)
    first = rows[0]["partition"], rows[0]["start_offset"]
    story = output_of_explained(explain(run, topic, *first))
    told = [
        f"{where(row)} from offset {row['start_offset']}: {name_of(row)}, {does([row], run.as_of_ms)}" for row in rows
    ]
    head = "".join(f"{line}\n" for line in (*told, "", "THE FIRST OF THESE", ""))
    held = [
        {"topic": topic, **{name: row[name] for name in _HELD}, "verdict": name_of(row)}
        | {"ends_by": None if row["ends_by"] is None else instant_json(row["ends_by"])}
        for row in rows
    ]
    return replace(
        story,
        head=f"{head}{story.head}",
        whole=lambda: {"held": held, **(story.whole() if story.whole else {})},  # type: ignore[dict-item]
    )


def _urgent(run: StoredRun, topic: str) -> list[Row]:
    """The open transactions that hold a partition of a topic, and those that only wait but are more urgent than each of
    these. If none holds a partition, all that are open there."""
    order = '"blocks_since" NULLS LAST, "partition", "start_offset"'
    opened: list[Row] = []
    for holds in (True, False):
        rows = run.rows(
            "open_transactions", shown("report"), equal(topic=topic, holds=holds), order=order, limit=OTHERS
        )
        least = min(map(_urgency, opened), default=len(URGENCY))
        opened += [row for row in rows if holds or _urgency(row) < least]
    return opened or run.rows("open_transactions", shown("report"), equal(topic=topic), order=order, limit=OTHERS)


def _urgency(row: Row) -> int:
    return URGENCY.index(name_of(row))


def _unseen(run: StoredRun, topic: str) -> str:
    """What the copies may not show of a topic, as the end of a sentence; empty if they show all of it."""
    missing = run.number("coverage", "count(*)", equal(topic=topic, status="MISSING"))
    behind = run.number("partitions", "count(*)", [*equal(topic=topic), ("lag_offsets", ">", 0)])
    said = [
        *([f"{counted(missing, 'partition')} of it not captured"] if missing else []),
        *([f"consumers wait on {counted(behind, 'partition')} for what no copy shows"] if behind else []),
    ]
    return f" as far as copies show: {', '.join(said)}" if said else ""


_HELD: Final = ("partition", "start_offset", "producer_id", "transactional_id", "lag_offsets", "reason")
