"""Recorded output of Kafka's live tools, and the truth of each capture."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.audits import AuditTables


def as_of(capture: Path) -> int:
    """The instant (ms) at which find-hanging was asked."""
    clock = json.loads((capture / "live" / "clock.json").read_text())
    return min(asked[0] for name, asked in clock.items() if name.startswith("find-hanging") and "180min" not in name)


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a table that kafka-transactions.sh printed: cells padded with spaces, each followed by a tab."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return []
    header = [cell.strip() for cell in lines[0].split("\t") if cell.strip()]
    cells = [[cell.strip() for cell in line.split("\t")] for line in lines[1:] if "\t" in line]
    return [dict(zip(header, row, strict=False)) for row in cells]


def failed(path: Path) -> bool:
    """Whether the tool itself failed; the capture notes its exit code in a comment."""
    return "# exit" in path.read_text()


def number(cell: str) -> int | None:
    return None if cell in ("None", "-1") else int(cell)


def ms(instant: Any) -> int | None:
    return None if instant is None else round(instant.timestamp() * 1000)


Rows = dict[tuple[str, int, int], tuple[Any, ...]]
#: Column of the tool -> how its cell is read, and our column; of find-hanging, and of describe-producers.
HANGING: Final = {
    "ProducerEpoch": (int, "producer_epoch"),
    "CoordinatorEpoch": (number, "coordinator_epoch"),
    "StartOffset": (int, "start_offset"),
    "LastTimestamp": (int, "last_timestamp"),
    "Duration(min)": (int, "duration_minutes"),
}
PRODUCERS: Final = {
    "ProducerEpoch": (int, "producer_epoch"),
    "LatestCoordinatorEpoch": (number, "coordinator_epoch"),
    "LastSequence": (number, "last_sequence"),
    "LastTimestamp": (int, "last_timestamp"),
    "CurrentTransactionStartOffset": (number, "current_transaction_start_offset"),
}


def hanging(capture: Path) -> Rows:
    """Rows of find-hanging, by topic, partition and producer id."""
    found = {}
    for path in sorted((capture / "live").glob("find-hanging-broker-*.txt")):
        for row in table(path) if "180min" not in path.name else ():
            key = row["Topic"], int(row["Partition"]), int(row["ProducerId"])
            found[key] = tuple(read(row[name]) for name, (read, _) in HANGING.items())
    return found


def our_hanging(tables: AuditTables) -> Rows:
    return _ours((row for row in tables.rows("open_transactions") if row["kafka_find_hanging"]), HANGING)


def producers(capture: Path) -> Rows:
    """Rows of describe-producers, by topic, partition and producer id."""
    found = {}
    for path in sorted((capture / "live").glob("describe-producers-*.txt")):
        topic, partition = split(path.stem.removeprefix("describe-producers-"))
        for row in table(path):
            found[topic, partition, int(row["ProducerId"])] = tuple(
                read(row[name]) for name, (read, _) in PRODUCERS.items()
            )
    return found


def our_producers(tables: AuditTables) -> Rows:
    return _ours(tables.rows("producer_states"), PRODUCERS)


def _ours(rows: Iterable[dict[str, Any]], columns: Mapping[str, tuple[Any, str]]) -> Rows:
    ours = [name for _, name in columns.values()]
    return {
        (row["topic"], row["partition"], row["producer_id"]): tuple(
            ms(row[name]) if name == "last_timestamp" else row[name] for name in ours
        )
        for row in rows
    }


def listed(capture: Path) -> dict[str, tuple[Any, ...]] | None:
    """Rows of list: producer id and state; None where the tool failed or was not asked."""
    path = capture / "live" / "list.txt"
    if not path.exists() or failed(path):
        return None
    return {row["TransactionalId"]: (int(row["ProducerId"]), row["TransactionState"]) for row in table(path)}


def our_listed(tables: AuditTables) -> dict[str, tuple[Any, ...]]:
    return {
        row["transactional_id"].strip(): (row["producer_id"], row["state"])
        for row in tables.rows("transactional_ids")
        if row["state"] is not None
    }


_TOPIC_LINE: Final = re.compile(r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\S+)")


def leaderless(capture: Path) -> set[str]:
    """Partitions without a leader by capture.json, or by the live kafka-topics.sh where it was asked."""
    notes = json.loads((capture / "brokers" / "capture.json").read_text()).get("partitions", {})
    topics = capture / "live" / "topics.txt"
    told = _TOPIC_LINE.findall(topics.read_text()) if topics.exists() else []
    return {name for name, noted in notes.items() if noted["leader"] == -1} | {
        f"{topic}-{partition}" for topic, partition, leader in told if leader == "none"
    }


def truth(capture: Path) -> dict[str, Any]:
    """What was done: every transaction left open, with the verdict an audit should come to."""
    return json.loads((capture / "truth.json").read_text())


def stuck(capture: Path) -> set[tuple[str, int, int]]:
    """Partitions of transactions that were left prepared; which of them lack their marker is chance."""
    return {
        (*split(name), done["producer_id"])
        for done in truth(capture)["transactions"]
        if done["outcome"].startswith("PREPARE")
        for name in done["partitions"]
    }


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)
