"""What else to copy: what was not captured, what would decide an undecided transaction, where the records of an id
are."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from txnlib.ask.command_output import CommandOutput
from txnlib.ask.grid import beside, command_lines
from txnlib.ask.queries import Row, StoredRun, column_names
from txnlib.ask.subject import GROUPS_TOPIC
from txnlib.ask.words import INSTANTS_ASSUMED
from txnlib.core.copies import UNOPENED, CoverageRow
from txnlib.core.display import BOOTSTRAP, counted, printable
from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka_commands import option, refusal
from txnlib.core.rows import grouped
from txnlib.core.verdicts.reason import Reason
from txnlib.errors import TxnlibError, UsageError

Place = tuple[str, int]

#: Need -> reason, most useful first if no transaction is undecided.
NEEDS: Final[Mapping[str, str]] = {
    "NOT_OPENED": "it is in the capture: let the audit open its files, and audit again",
    "COORDINATOR_MISSING": "no copy of it: an id whose records would stand there cannot be ruled out",
    "COORDINATOR_UNCLEAR": "no copy proves which ids it does not have",
    "COORDINATOR_AGAIN": "copied too early, or with records lost: copy it again, after the partitions",
    "PARTITION_NAMED": "coordinators name it, and no copy of it was captured",
    "COPY_NOT_WHOLE": "the judged copy is incomplete",
    "NOT_THE_LEADERS": "an open transaction is judged by a copy that is not the leader's, and may lag behind it",
    "CHECKPOINTS": "no replication-offset-checkpoint of it: high watermarks are assumed to be the ends of the logs",
    "GROUPS": "only if it matters which groups wait",
}
#: What `coverage` has as the leader of a partition without a leader.
NOBODY: Final = "-1"
COLUMNS: Final = ("number", "need", "topic", "partition", "broker", "undecided", "why")
#: The columns of `coverage` that decide whether a copy shows absence.
READ: Final = ("source", "log_start_offset", "read_from_offset", "damaged_offset", "tail", "is_decoded", "status")
_COVERAGE: Final = (
    *READ,
    *column_names(
        "topic partition broker leader is_leader is_judged high_watermark is_nothing_open detail captured_at"
    ),
)
_NOT_ENDED: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


def answer(run: StoredRun, options: Namespace) -> CommandOutput:
    """What to copy, most useful first, and the command for each broker."""
    columns = ("topic", "partition", "producer_id", "transactional_id", "coordinator_partition", "verdict", "reason")
    undecided = run.rows("open_transactions", columns, [("verdict", "=", "UNKNOWN")])
    listed: Counter[Place] = Counter()
    for row in run.rows("transactional_ids", ("partitions",), [("state", "IN", _NOT_ENDED)]):
        listed.update((each["topic"], each["partition"]) for each in row["partitions"] or ())
    opened = run.grouped("open_transactions", ("topic", "partition"), "count(*)")
    places = {(topic, partition) for topic, partition in opened}
    coverage = run.rows("coverage", _COVERAGE)
    is_assumed = any(row["captured_at"] is None for row in coverage if row["status"] != "MISSING")
    return collect_plan_output(to_collect(coverage, undecided, listed, places), is_instant_assumed=is_assumed)


def to_collect(
    coverage: Sequence[Row], undecided: Sequence[Row], listed: Mapping[Place, int], opened: set[Place]
) -> list[Row]:
    """What to copy, most useful first. Columns: COLUMNS.

    `undecided`: the UNKNOWN rows of open_transactions. `listed`: number of unfinished transactions that list each
    partition. `opened`: the partitions with open transactions.
    """
    copies = grouped(coverage, lambda row: (row["topic"], row["partition"]))
    waiting = _waiting(undecided, copies)
    coordinators = [place for place in copies if place[0] == TRANSACTION_STATE_TOPIC]
    is_none = len(coordinators) != 1 and not any(map(_is_captured, (copies[place] for place in coordinators)))
    found: list[tuple[Any, ...]] = []
    if is_none:
        why = f"no coordinator partition was captured: {NEEDS['COORDINATOR_MISSING']}"
        lost = {_transaction(row) for row in undecided if row["reason"] in _OF_COORDINATOR}
        found.append(("COORDINATOR_MISSING", TRANSACTION_STATE_TOPIC, None, None, len(lost), why))
    for place, rows in copies.items():
        need, why = _need(place, rows, waiting.get(place, 0), listed.get(place, 0), place in opened)
        if need and not (is_none and place in coordinators):
            leaders = [row["leader"] for row in rows if row["leader"] not in (None, NOBODY)]  # as capture.json names it
            found.append((need, *place, next(iter(leaders), None), waiting.get(place, 0), why))
    found += [("CHECKPOINTS", None, None, each, 0, NEEDS["CHECKPOINTS"]) for each in _without_checkpoints(coverage)]
    order = list(NEEDS)

    def use(row: tuple[Any, ...]) -> tuple[Any, ...]:
        need, topic, partition, broker, number, _ = row
        return -number, order.index(need), topic or "", partition or 0, broker or ""

    return [dict(zip(COLUMNS, (at, *row), strict=True)) for at, row in enumerate(sorted(found, key=use), start=1)]


def _is_captured(rows: Sequence[Row]) -> bool:
    return any(row["status"] != "MISSING" for row in rows)


def _transaction(row: Row) -> tuple[int, str | None]:
    """The key of a transaction: the same for all partitions on which it is undecided."""
    return row["producer_id"], row["transactional_id"]


def _waiting(undecided: Iterable[Row], copies: Mapping[Place, list[Row]]) -> dict[Place, int]:
    """Partition -> number of undecided transactions that a better copy of it may decide."""
    coordinators = [place for place in copies if place[0] == TRANSACTION_STATE_TOPIC]
    unclear = [place for place in coordinators if not shows_absence(copies[place])]
    waiting: dict[Place, set[tuple[int, str | None]]] = defaultdict(set)
    for row in undecided:
        number = row["coordinator_partition"]
        places: Sequence[Place] = ()
        if row["reason"] in _OF_PARTITION:
            places = [(row["topic"], row["partition"])]
        elif row["reason"] in _OF_COORDINATOR:
            # A transaction without a known owner may belong to any coordinator.
            places = (unclear or coordinators) if number is None else [(TRANSACTION_STATE_TOPIC, number)]
        for place in places:
            waiting[place].add(_transaction(row))
    return {place: len(transactions) for place, transactions in waiting.items()}


def _need(place: Place, rows: Sequence[Row], waiting: int, listed: int, is_open: bool) -> tuple[str, str]:
    """The need of one partition, and why; empty if there is none."""
    is_missing = not _is_captured(rows)
    judged = next((row for row in rows if row["is_judged"]), rows[0])
    detail, need = "", ""
    if place[0] == TRANSACTION_STATE_TOPIC:
        if is_missing:
            need = "COORDINATOR_MISSING"
        elif not shows_absence(rows):
            need, detail = "COORDINATOR_UNCLEAR", f": {_state(judged)}"
        elif waiting:
            need = "COORDINATOR_AGAIN"
    elif is_missing:
        if listed:
            need, detail = "PARTITION_NAMED", f"; listed by {counted(listed, 'unfinished transaction')}"
        elif not any(row.get("is_nothing_open") for row in rows):
            is_groups = place[0] == GROUPS_TOPIC
            need, detail = ("GROUPS", "") if is_groups else ("PARTITION_NAMED", "; no unfinished transaction lists it")
    elif judged["status"] != "COMPLETE" or waiting:
        need, detail = "COPY_NOT_WHOLE", f": {_state(judged)}"
    elif is_open and judged["is_leader"] is False:
        need = "NOT_THE_LEADERS"
    if need in ("COORDINATOR_UNCLEAR", "COPY_NOT_WHOLE") and judged["tail"] == UNOPENED:
        need, detail = "NOT_OPENED", f" ({_state(judged)})"
    return need, NEEDS.get(need, "") + detail


def _state(judged: Row) -> str:
    """What is known of the judged copy, in words."""
    said: str = judged["detail"] or judged["status"].lower()
    return "what it has is whole" if said == "complete" else said


def shows_absence(rows: Iterable[Row]) -> bool:
    """Whether some copy of a coordinator partition proves what it does not contain. Columns: READ."""
    return any(CoverageRow(**{name: row[name] for name in READ}).shows_absence for row in rows)


def _without_checkpoints(coverage: Iterable[Row]) -> list[str]:
    """Brokers from which segments but no high watermarks were captured."""
    read = [row for row in coverage if row["status"] != "MISSING" and row["broker"] is not None]
    segments = [row for row in read if row["source"].startswith("raw:")]
    marked = {row["broker"] for row in segments if row["high_watermark"] is not None}
    return sorted({row["broker"] for row in segments} - marked)


# ---- The copy that would settle an undecided transaction, by its reason. See `txn-audit collect-plan`


#: Reasons of an UNKNOWN that another copy of the partition would settle; and those that another copy of its coordinator
#: would settle.
_OF_PARTITION: Final = frozenset(
    {
        Reason.PARTITION_LOG_INCOMPLETE,
        Reason.PARTITION_COPY_NOT_CURRENT,
        Reason.COORDINATOR_RECORDS_COMPACTED,
        Reason.COPIES_DISAGREE,
        Reason.CORRUPT_MESSAGE,
        Reason.BROKER_ANSWERED_OTHERWISE,
    }
)
_OF_COORDINATOR: Final = frozenset(
    {
        Reason.COORDINATOR_PARTITION_NOT_CAPTURED,
        Reason.COORDINATOR_LOG_DAMAGED,
        Reason.COORDINATOR_COPY_NOT_CURRENT,
        Reason.CAPTURE_SKEW,
    }
)
#: Any other reason of an UNKNOWN -> what would settle it.
_OTHERS: Final[Mapping[str, str]] = {
    Reason.METADATA_LOG_DAMAGED: f"{CLUSTER_METADATA_TOPIC}-0 of another broker",
    Reason.BROKER_VERSION_UNKNOWN: "note kafka_version in capture.json",
}


def needed_for(row: Row) -> str:
    """The line of `collect-plan` that would settle an open transaction; empty if it is judged."""
    if row["verdict"] != "UNKNOWN":
        return ""
    if row["reason"] in _OF_PARTITION:
        return f"{row['topic']}-{row['partition']} from its leader (collect-plan)"
    if row["reason"] in _OF_COORDINATOR:
        number = row["coordinator_partition"]  # an unknown owner may be at any coordinator
        where = (
            f"every partition of {TRANSACTION_STATE_TOPIC}" if number is None else f"{TRANSACTION_STATE_TOPIC}-{number}"
        )
        return f"{where} from its leader, after the partitions (collect-plan)"
    return _OTHERS.get(row["reason"], "")


# ---- The plan to collect more copies as text: its most useful rows, and a command for each broker


#: Most rows to show people. Programs get all rows.
SHOWN: Final = 40
#: Most partitions that a command names. If there are more, it names their topics.
NAMED: Final = 50
_NOTHING: Final = "nothing is missing: every partition that is named was captured whole\n"


def collect_plan_output(rows: Sequence[Row], *, is_instant_assumed: bool = False) -> CommandOutput:
    """One row per copy to collect, then the commands."""
    head = f"{INSTANTS_ASSUMED}\n\n" if is_instant_assumed else ""
    if not rows:
        return CommandOutput(COLUMNS, rows, page=lambda _: head + _NOTHING, whole=list)
    more = f"and {len(rows) - SHOWN} more (--format csv has all)\n" if len(rows) > SHOWN else ""
    text = "".join(f"{line}\n" for line in commands(rows))
    kept = ("need", "topic", "partition", "broker", "why")
    tail = f"{more}\n{text}"
    return CommandOutput(COLUMNS, rows, head=head, kept=kept, people=rows[:SHOWN], tail=tail, whole=lambda: rows)


def commands(rows: Sequence[Row]) -> list[str]:
    """The command for each broker: one, because a capture of a broker always includes its coordinators."""
    lines = []
    needed = [row for row in rows if row["need"] not in ("GROUPS", "NOT_OPENED")]
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


# ---- The partition of __transaction_state of a transactional id. Needs no tables


LOCATED: Final = ("transactional_id", "coordinator_partition", "folder", "files")
#: Kafka's default of transaction.state.log.num.partitions.
DEFAULT: Final = 50
#: Files in the folder of a partition, without indexes, which are not read; and in the root of the log directory.
FILES: Final = ("*.log", "*.snapshot", "leader-epoch-checkpoint")
CHECKPOINTS: Final = ("replication-offset-checkpoint", "log-start-offset-checkpoint")


def locate(options: Namespace) -> CommandOutput:
    """The coordinator partition of each id, its folder, and the files to copy. Raises UsageError without ids or
    partitions."""
    ids = [*options.ids, *options.transactional_id]
    if not ids:
        raise UsageError("locate needs a transactional id")
    partitions, note = _partitions(options)
    if partitions < 1:
        raise UsageError(f"--partitions {partitions}: expected 1 or more (transaction.state.log.num.partitions)")
    rows = [_located(name, partition_for(name, partitions)) for name in ids]
    folders = sorted({(row["coordinator_partition"], row["folder"]) for row in rows})
    tail = partial(_what_to_copy, [folder for _, folder in folders])
    return CommandOutput(LOCATED, rows, shown=LOCATED[:3], tail=tail, notes=note)


def _partitions(options: Namespace) -> tuple[int, list[str]]:
    """The number of coordinator partitions: as given, else as an audit found it, else Kafka's default, with a note."""
    if options.partitions is not None:
        return options.partitions, []
    from txnlib.ask.delta_rows import default_root, open_run, open_tables  # takes 0.1 s, which other commands can skip

    try:
        run = open_run(open_tables(options.tables or default_root()))
    except TxnlibError:
        if options.tables is not None:
            raise
        of_kafka = "transaction.state.log.num.partitions"
        return DEFAULT, [f"assumed: {DEFAULT} partitions, Kafka's default of {of_kafka}; give --partitions or --tables"]
    found = run.settings["coordinator_partitions"]
    return (
        (found, [f"{found} partitions, as in run {run.run_id}"])
        if found
        else (DEFAULT, [f"assumed: {DEFAULT} partitions"])
    )


def _located(name: str, partition: int) -> Row:
    folder = f"{TRANSACTION_STATE_TOPIC}-{partition}"
    files = [*(f"{folder}/{file}" for file in FILES), *CHECKPOINTS]
    return {"transactional_id": name, "coordinator_partition": partition, "folder": folder, "files": files}


def _what_to_copy(folders: Sequence[str], width: int) -> str:
    named = ", ".join(f"{folder}/" for folder in folders)
    what = f"{' '.join(FILES)} of {named} and {' '.join(CHECKPOINTS)} from the root of the log directory"
    whence = "the leader of the partition, else any broker that has the folder, on its disk if it is down"
    leader = f"  leader   kafka-topics.sh {BOOTSTRAP} --describe --topic {TRANSACTION_STATE_TOPIC}"
    other = "scripts/capture.sh --output CAPTURE --log-dirs DIRS --step coordinators     # there: all that it has"
    lines = [
        "",
        *beside("copy", what, width, 9),
        *beside("from", whence, width, 9),
        *command_lines(leader, width, 11),
        f"  or       {other}",
    ]
    return "".join(f"{line}\n" for line in lines)
