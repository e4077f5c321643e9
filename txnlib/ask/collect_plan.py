"""The plan to collect more copies: what was not captured, and what stayed undecided for lack of it."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.rows import Row, StoredRun, column_names
from txnlib.core.copies import CoverageRow
from txnlib.core.display import counted, printable
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka_commands import option, refusal
from txnlib.core.rows import grouped
from txnlib.core.verdicts.reason import Reason

Place = tuple[str, int]

#: Need -> reason, most useful first if no transaction is undecided.
NEEDS: Final[Mapping[str, str]] = {
    "COORDINATOR_MISSING": "no copy of it: an id whose records would stand there cannot be ruled out",
    "COORDINATOR_UNCLEAR": "no copy proves which ids it does not have",
    "COORDINATOR_AGAIN": "copied too early, or with records lost: copy it again, after the partitions",
    "PARTITION_NAMED": "coordinators name it, and no copy of it was captured",
    "COPY_NOT_WHOLE": "the judged copy is incomplete",
    "NOT_THE_LEADERS": "an open transaction is judged by a copy that is not the leader's, and may lag behind it",
    "CHECKPOINTS": "no replication-offset-checkpoint of it: high watermarks are assumed to be the ends of the logs",
    "GROUPS": "only if it matters which groups wait",
}
COLUMNS: Final = ("number", "need", "topic", "partition", "broker", "undecided", "why")
GROUPS_TOPIC: Final = "__consumer_offsets"
#: The columns of `coverage` that decide whether a copy shows absence.
READ: Final = ("source", "log_start_offset", "read_from_offset", "damaged_offset", "tail", "is_decoded", "status")
_COVERAGE: Final = (
    *READ,
    *column_names("topic partition broker leader is_leader is_judged high_watermark is_nothing_open detail"),
)
_NOT_ENDED: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


def to_collect(
    coverage: Sequence[Row], undecided: Sequence[Row], listed: Mapping[Place, int], opened: set[Place]
) -> list[Row]:
    """What to copy, most useful first. Columns: COLUMNS.

    `undecided`: the UNKNOWN rows of open_transactions. `listed`: number of unfinished transactions that list each
    partition. `opened`: the partitions with open transactions.
    """
    copies = grouped(coverage, lambda row: (row["topic"], row["partition"]))
    waiting = _waiting(undecided, copies)
    needs: list[tuple[str, tuple[str | None, int | None], str | None, int, str]] = []
    for place, rows in copies.items():
        need, detail = _need(place, rows, waiting, listed, opened)
        if need is not None:
            leader = next(
                (row["leader"] for row in rows if row["leader"] is not None), None
            )  # if capture.json names it
            needs.append((need, place, leader, waiting.get(place, 0), detail))
    needs += [
        ("CHECKPOINTS", (None, None), broker, 0, NEEDS["CHECKPOINTS"]) for broker in _without_checkpoints(coverage)
    ]
    order = list(NEEDS)
    needs.sort(key=lambda each: (-each[3], order.index(each[0]), each[1][0] or "", each[1][1] or 0, each[2] or ""))
    return [
        {
            "number": n,
            "need": need,
            "topic": topic,
            "partition": partition,
            "broker": broker,
            "undecided": waits,
            "why": why,
        }
        for n, (need, (topic, partition), broker, waits, why) in enumerate(needs, start=1)
    ]


def _waiting(undecided: Iterable[Row], copies: Mapping[Place, list[Row]]) -> dict[Place, int]:
    """Partition -> number of undecided transactions that a better copy of it may decide."""
    unclear = [
        place for place, rows in copies.items() if place[0] == TRANSACTION_STATE_TOPIC and not shows_absence(rows)
    ]
    waiting: Counter[Place] = Counter()
    for row in undecided:
        match wanted_for(row):
            case Wanted.PARTITION:
                waiting[row["topic"], row["partition"]] += 1
            case Wanted.COORDINATOR:
                waiting[TRANSACTION_STATE_TOPIC, row["coordinator_partition"]] += 1
            case Wanted.EVERY_COORDINATOR:
                waiting.update(unclear)
    return waiting


def _need(
    place: Place, rows: Sequence[Row], waiting: Mapping[Place, int], listed: Mapping[Place, int], opened: set[Place]
) -> tuple[str | None, str]:
    """The need of one partition, if any, and why."""
    is_missing = all(row["status"] == "MISSING" for row in rows)
    judged = next((row for row in rows if row["is_judged"]), rows[0])
    detail = judged["detail"] or judged["status"].lower()
    if place[0] == TRANSACTION_STATE_TOPIC:
        if is_missing:
            return "COORDINATOR_MISSING", NEEDS["COORDINATOR_MISSING"]
        if not shows_absence(rows):
            return "COORDINATOR_UNCLEAR", f"{NEEDS['COORDINATOR_UNCLEAR']}: {detail}"
        return ("COORDINATOR_AGAIN", NEEDS["COORDINATOR_AGAIN"]) if waiting.get(place) else (None, "")
    if is_missing:
        if any(row.get("is_nothing_open") for row in rows) and not listed.get(place):
            return None, ""
        if place[0] == GROUPS_TOPIC and not listed.get(place):
            return "GROUPS", NEEDS["GROUPS"]
        number = listed.get(place, 0)
        who = (
            f"listed by {counted(number, 'unfinished transaction')}" if number else "no unfinished transaction lists it"
        )
        return "PARTITION_NAMED", f"{NEEDS['PARTITION_NAMED']}; {who}"
    if judged["status"] != "COMPLETE" or waiting.get(place):
        return "COPY_NOT_WHOLE", f"{NEEDS['COPY_NOT_WHOLE']}: {detail}"
    if place in opened and judged["is_leader"] is False:
        return "NOT_THE_LEADERS", NEEDS["NOT_THE_LEADERS"]
    return None, ""


def shows_absence(rows: Iterable[Row]) -> bool:
    """Whether some copy of a coordinator partition proves what it does not contain. Columns: READ."""
    return any(CoverageRow(**{name: row[name] for name in READ}).shows_absence for row in rows)


def _without_checkpoints(coverage: Iterable[Row]) -> list[str]:
    """Brokers from which segments but no high watermarks were captured."""
    marked: dict[str, bool] = {}
    for row in coverage:
        if row["status"] != "MISSING" and row["broker"] is not None and row["source"].startswith("raw:"):
            marked[row["broker"]] = marked.get(row["broker"], False) or row["high_watermark"] is not None
    return sorted(broker for broker, is_marked in marked.items() if not is_marked)


# ---- The copy that would settle an undecided transaction, by its reason. See `txn-audit collect-plan`


class Wanted(Enum):
    """What to copy, or to note in capture.json."""

    PARTITION = "PARTITION"
    COORDINATOR = "COORDINATOR"
    EVERY_COORDINATOR = "EVERY_COORDINATOR"
    METADATA = "METADATA"
    NOTES = "NOTES"


#: Reason of an UNKNOWN -> what would settle it.
WANTED: Final[Mapping[str, Wanted]] = {
    Reason.PARTITION_LOG_INCOMPLETE: Wanted.PARTITION,
    Reason.PARTITION_COPY_NOT_CURRENT: Wanted.PARTITION,
    Reason.COORDINATOR_RECORDS_COMPACTED: Wanted.PARTITION,
    Reason.COPIES_DISAGREE: Wanted.PARTITION,
    Reason.CORRUPT_MESSAGE: Wanted.PARTITION,
    Reason.BROKER_ANSWERED_OTHERWISE: Wanted.PARTITION,
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: Wanted.EVERY_COORDINATOR,
    Reason.COORDINATOR_LOG_DAMAGED: Wanted.COORDINATOR,
    Reason.COORDINATOR_COPY_NOT_CURRENT: Wanted.COORDINATOR,
    Reason.CAPTURE_SKEW: Wanted.COORDINATOR,
    Reason.METADATA_LOG_DAMAGED: Wanted.METADATA,
    Reason.BROKER_VERSION_UNKNOWN: Wanted.NOTES,
}


def wanted_for(row: Row) -> Wanted | None:
    """What would settle an open transaction; None if it is judged. An unknown owner may be at any coordinator."""
    wanted = WANTED.get(row["reason"]) if row["verdict"] == "UNKNOWN" else None
    if wanted not in (Wanted.COORDINATOR, Wanted.EVERY_COORDINATOR):
        return wanted
    return Wanted.EVERY_COORDINATOR if row["coordinator_partition"] is None else Wanted.COORDINATOR


def needed_for(row: Row) -> str:
    """The line of `collect-plan` that would settle an open transaction; empty if it is judged."""
    wanted = wanted_for(row)
    if wanted is None:
        return ""
    if wanted is Wanted.NOTES:
        return "note kafka_version in capture.json"
    if wanted is Wanted.METADATA:
        return f"{CLUSTER_METADATA_TOPIC}-0 of another broker"
    what = {
        Wanted.PARTITION: f"{row['topic']}-{row['partition']} from its leader",
        Wanted.COORDINATOR: (
            f"{TRANSACTION_STATE_TOPIC}-{row['coordinator_partition']} from its leader, after the partitions"
        ),
        Wanted.EVERY_COORDINATOR: f"every partition of {TRANSACTION_STATE_TOPIC} from its leader, after the partitions",
    }[wanted]
    return f"{what} (collect-plan)"


# ---- The plan to collect more copies as text: its most useful rows, and a command for each broker


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
    kept = ("need", "topic", "partition", "broker", "why")
    return CommandOutput(COLUMNS, rows, kept=kept, people=rows[:SHOWN], tail=f"{more}\n{text}", whole=lambda: rows)


def commands(rows: Sequence[Row]) -> list[str]:
    """The command for each broker: one, because a capture of a broker always includes its coordinators."""
    lines = []
    needed = [row for row in rows if row["need"] != "GROUPS"]
    for broker in sorted({row["broker"] for row in needed}, key=lambda each: (each is None, each)):
        own = [row for row in needed if row["broker"] == broker]
        where = (
            "on the leader of each, which kafka-topics.sh --describe names"
            if broker is None
            else f"on broker {printable(broker)}"
        )
        lines += [
            f"# {where}, whose coordinators are copied along",
            f"scripts/capture.sh --output CAPTURE --log-dirs DIRS {_selection(own)}",
        ]
    return lines


def _selection(rows: Sequence[Row]) -> str:
    named = [
        row for row in rows if row["topic"] not in (None, TRANSACTION_STATE_TOPIC) and refusal(row["topic"]) is None
    ]
    places = [(row["topic"], row["partition"]) for row in named]
    if not places:
        return "--step coordinators"
    if len(places) <= NAMED:
        return option("--partitions", ",".join(f"{topic}-{partition}" for topic, partition in places))
    return option("--topics", "|".join(sorted({re.escape(topic) for topic, _ in places})))


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """What to copy, most useful first, and the command for each broker."""
    columns = ("topic", "partition", "coordinator_partition", "verdict", "reason")
    undecided = run.rows("open_transactions", columns, [("verdict", "=", "UNKNOWN")])
    listed: Counter[Place] = Counter()
    for row in run.rows("transactional_ids", ("partitions",), [("state", "IN", _NOT_ENDED)]):
        listed.update((each["topic"], each["partition"]) for each in row["partitions"] or ())
    opened = run.grouped("open_transactions", ("topic", "partition"), "count(*)")
    places = {(topic, partition) for topic, partition in opened}
    return collect_plan_output(to_collect(run.rows("coverage", _COVERAGE), undecided, listed, places))
