"""`txn-audit collect-plan`: what else to copy, from which broker, and why."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from txnlib.cli.output import Answer
from txnlib.queries.collect_plan import COLUMNS, commands, to_collect
from txnlib.queries.tables import Run

#: Most rows to show people. Programs get all rows.
SHOWN: Final = 40

_COVERAGE: Final = (
    "topic",
    "partition",
    "source",
    "broker",
    "leader",
    "is_leader",
    "is_judged",
    "is_decoded",
    "damaged_offset",
    "high_watermark",
    "status",
    "detail",
)
_NOT_ENDED: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


def collect_plan(run: Run, options: Namespace) -> Answer:
    """What to copy, most useful first, and the command for each broker."""
    undecided = run.rows(
        "open_transactions", ("topic", "partition", "coordinator_partition", "verdict", "reason"), [("verdict", "=", "UNKNOWN")]
    )
    listed: dict[tuple[str, int], int] = {}
    for row in run.rows("transactional_ids", ("partitions",), [("state", "IN", _NOT_ENDED)]):
        for place in row["partitions"] or ():
            key = place["topic"], place["partition"]
            listed[key] = listed.get(key, 0) + 1
    opened = set(run.grouped("open_transactions", ("topic", "partition"), "count(*)"))
    rows = to_collect(run.rows("coverage", _COVERAGE), undecided, listed, {(topic, partition) for topic, partition in opened})
    if not rows:
        return Answer(
            COLUMNS, rows, page=lambda _: "nothing is missing: every partition that is named was captured whole\n", whole=[]
        )
    more = f"and {len(rows) - SHOWN} more (--format csv has all)\n" if len(rows) > SHOWN else ""
    text = "".join(f"{line}\n" for line in commands(rows))
    return Answer(COLUMNS, rows, people=rows[:SHOWN], tail=f"{more}\n{text}", whole=rows)
