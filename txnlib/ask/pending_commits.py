"""Groups whose offset commits are in an open transaction: they cannot fetch these offsets until it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txnlib.ask.queries import Filter, Row, StoredRun, among, column_names
from txnlib.ask.subject import GROUPS_TOPIC
from txnlib.core.display import counted, printable, some_of
from txnlib.core.rows import grouped

#: Most commits to read, groups to name, and partitions of a group.
MOST: Final = 10_000
SHOWN_GROUPS: Final = 3
SHOWN_PARTITIONS: Final = 4
_COMMIT: Final = column_names("topic partition producer_id offset group_id committed_topic committed_partition")


def put_commits(run: StoredRun, rows: Sequence[Row]) -> None:
    """Adds `pending_commits` to each open transaction: group_id, topic and partition of each offset that a group
    committed in it, each once. Only partitions of __consumer_offsets have any, and only if their records were
    decoded."""
    own = [row for row in rows if row["topic"] == GROUPS_TOPIC]
    for row in rows:
        row["pending_commits"] = []
    if not own:
        return
    first = min(row["start_offset"] for row in own)
    here: list[Filter] = [
        ("topic", "=", GROUPS_TOPIC),
        *among(own, "partition", "producer_id"),
        ("offset", ">=", first),
    ]
    commits = run.rows("committed_offsets", _COMMIT, here, order='"offset"', limit=MOST, is_optional=True)
    by_place = grouped(commits, lambda commit: (commit["partition"], commit["producer_id"]))
    for row in own:
        later = (
            commit
            for commit in by_place.get((row["partition"], row["producer_id"]), ())
            if commit["offset"] >= row["start_offset"]
        )
        named = ((each["group_id"], each["committed_topic"], each["committed_partition"]) for each in later)
        names = ("group_id", "topic", "partition")
        row["pending_commits"] = [dict(zip(names, each, strict=True)) for each in dict.fromkeys(named)]


def unstable_groups(run: StoredRun, topic: str | None = None) -> list[Row]:
    """A row for each group and partition whose committed offset the group cannot fetch, because the commit is in an
    open transaction. Columns: group_id, topic, partition, and the transaction as blocking_transactional_id and
    blocking_producer_id. `topic`: only of this one."""
    columns = ("topic", "partition", "producer_id", "start_offset", "transactional_id")
    place = '"partition", "start_offset"'
    here = [("topic", "=", GROUPS_TOPIC)]
    rows = run.rows("open_transactions", columns, here, order=place, limit=MOST, is_optional=True)
    put_commits(run, rows)
    found = [
        commit | {"blocking_transactional_id": row["transactional_id"], "blocking_producer_id": row["producer_id"]}
        for row in rows
        for commit in row["pending_commits"]
        if topic in (None, commit["topic"])
    ]
    return sorted(found, key=lambda each: (each["group_id"], each["topic"], each["partition"]))


def groups_text(row: Row) -> str:
    """Which groups cannot fetch which offsets; empty if no commit in the transaction is known."""
    of_groups = grouped(row.get("pending_commits") or (), lambda commit: commit["group_id"])
    unstable = "until it ends (UNSTABLE_OFFSET_COMMIT)"
    if len(of_groups) == 1:
        ((group, commits),) = of_groups.items()
        return f"{printable(group)} cannot fetch its offsets of {_places(commits)} {unstable}"
    said = [f"{printable(group)} ({_places(commits)})" for group, commits in list(of_groups.items())[:SHOWN_GROUPS]]
    more = len(of_groups) - len(said)
    names = ", ".join(said) + (f" and {counted(more, 'more group')}" if more > 0 else "")
    return f"{names} cannot fetch their offsets of these partitions {unstable}" if said else ""


def waiting_text(rows: Sequence[Row]) -> str:
    """Which groups cannot fetch offsets until these transactions end, as the end of a sentence; empty if none is known
    to wait."""
    groups = sorted({commit["group_id"] for row in rows for commit in row.get("pending_commits") or ()})
    if not groups:
        return ""
    named = some_of([printable(group) for group in groups], SHOWN_GROUPS)
    who = f"group {named} cannot fetch its" if len(groups) == 1 else f"groups {named} cannot fetch their"
    return f"; {who} offsets"


def dropped_text(row: Row) -> str:
    """What an abort drops of groups, as the end of a sentence; empty if nothing of the kind is known."""
    of_groups = grouped(row.get("pending_commits") or (), lambda commit: commit["group_id"])
    named = [f"{counted(len(of), 'offset commit')} of {printable(group)}" for group, of in of_groups.items()]
    more = len(named) - SHOWN_GROUPS
    return ", ".join(named[:SHOWN_GROUPS]) + (f" and of {counted(more, 'more group')}" if more > 0 else "")


def _places(commits: Sequence[Row]) -> str:
    return some_of([f"{printable(each['topic'])}-{each['partition']}" for each in commits], SHOWN_PARTITIONS)
