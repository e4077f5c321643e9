"""The plan to collect more copies as text: its most useful rows, and a command for each broker."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from txnlib.core.display import printable
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.shell_words import option, refusal
from txnlib.queries import collect_plan as plan
from txnlib.queries.collect_plan import COLUMNS
from txnlib.queries.rows import Row, StoredRun
from txnlib.render.command_output import CommandOutput

#: Most rows to show people. Programs get all rows.
SHOWN: Final = 40
#: Most partitions that a command names. If there are more, it names their topics.
NAMED: Final = 50
_NOTHING: Final = "nothing is missing: every partition that is named was captured whole\n"


def collect_plan_output(rows: Sequence[Row]) -> CommandOutput:
    """One row per copy to collect, then the commands."""
    if not rows:
        return CommandOutput(COLUMNS, rows, page=lambda _: _NOTHING, whole=list)
    more = f"and {len(rows) - SHOWN} more (--format csv has all)\n" if len(rows) > SHOWN else ""
    text = "".join(f"{line}\n" for line in commands(rows))
    return CommandOutput(COLUMNS, rows, people=rows[:SHOWN], tail=f"{more}\n{text}", whole=lambda: rows)


def commands(rows: Sequence[Row]) -> list[str]:
    """The command for each broker: one, because a capture of a broker always includes its coordinators."""
    lines = []
    needed = [row for row in rows if row["need"] != "GROUPS"]
    for broker in sorted({row["broker"] for row in needed}, key=lambda each: (each is None, each)):
        own = [row for row in needed if row["broker"] == broker]
        where = (
            "on the leader of each, which kafka-topics.sh --describe names" if broker is None else f"on broker {printable(broker)}"
        )
        lines += [
            f"# {where}, whose coordinators are copied along",
            f"scripts/capture.sh --output CAPTURE --log-dirs DIRS {_selection(own)}",
        ]
    return lines


def _selection(rows: Sequence[Row]) -> str:
    named = [row for row in rows if row["topic"] not in (None, TRANSACTION_STATE_TOPIC) and refusal(row["topic"]) is None]
    places = [(row["topic"], row["partition"]) for row in named]
    if not places:
        return "--step coordinators"
    if len(places) <= NAMED:
        return option("--partitions", ",".join(f"{topic}-{partition}" for topic, partition in places))
    return option("--topics", "|".join(sorted({re.escape(topic) for topic, _ in places})))


def collect_plan(run: StoredRun, options: Namespace) -> CommandOutput:
    """What to copy, most useful first, and the command for each broker."""
    return collect_plan_output(plan.collect_plan(run))
