"""Random histories of a cluster's metadata: the records that a controller writes, and the states that they lead to.

The states are those of the simulated cluster, not of a reader: who led what, from which record to which.
"""

import random
from dataclasses import dataclass, field
from typing import Any

T0 = 1_700_000_000_000
BROKERS = (1, 2, 3)
Row = dict[str, Any]


@dataclass
class MetadataHistory:
    """One log. `rows` has the columns of metadata_log; `states` rows of partition_assignments, without what a snapshot
    hides."""

    seed: int
    rows: list[Row] = field(default_factory=list)
    states: list[Row] = field(default_factory=list)
    settings: list[Row] = field(default_factory=list)
    #: Offsets of records that do not count, because their controller transaction was aborted.
    aborted: set[int] = field(default_factory=set)
    _open: dict[tuple[str, int], Row] = field(default_factory=dict)
    _values: dict[tuple[str, str], Row] = field(default_factory=dict)
    _topics: dict[str, str] = field(default_factory=dict)
    _epoch: int = 1

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._append("LEADER_CHANGE")
        for _ in range(self.random.randrange(60, 120)):
            leading, others = [self._elect, self._shrink], [self._set, self._idle, self._abort, self._commit]
            self.random.choice([self._create, self._remove, self._elect, *leading, *others])()

    @property
    def counted(self) -> list[Row]:
        """The rows that count."""
        return [row for row in self.rows if row["offset"] not in self.aborted]

    @property
    def end(self) -> int:
        return self.rows[-1]["last_offset"] + 1 if self.rows else 0

    def at(self, offset: int) -> int:
        return T0 + 10 * offset

    def _append(self, kind: str, count: int = 1, **columns: Any) -> int:
        offset = self.end
        last = offset + count - 1
        where = {"source": "raw:1", "path": "log", "position": 0, "offset": offset, "last_offset": last}
        self.rows.append(
            {**where, "timestamp_ms": self.at(last), "controller_epoch": self._epoch, "type": kind, **columns}
        )
        return offset

    def _create(self) -> None:
        name, topic_id = f"t{self.random.randrange(3)}", f"id-{self.end}"
        if name in self._topics:
            return
        self._topics[name] = topic_id
        self._append("TOPIC_RECORD", name=name, topic_id=topic_id)
        for number in range(self.random.randrange(1, 3)):
            replicas = self.random.sample(BROKERS, self.random.randrange(1, 4))
            state = {"leader": replicas[0], "leader_epoch": 0, "isr": replicas, "replicas": replicas}
            offset = self._append(
                "PARTITION_RECORD", topic_id=topic_id, partition_id=number, sets_leader=True, **state, partition_epoch=0
            )
            self._begin(name, topic_id, number, state, offset, is_unclean=False)

    def _begin(self, name: str, topic_id: str, number: int, state: Row, offset: int, *, is_unclean: bool) -> None:
        before = self._open.get((name, number))
        if before is not None:
            before["until_offset"] = offset
        row = {"topic": name, "partition": number, "topic_id": topic_id, **state, "is_unclean": is_unclean}
        self._open[name, number] = row | {"since_offset": offset, "until_offset": None}
        self.states.append(self._open[name, number])

    def _elect(self) -> None:
        if not self._open:
            return
        (name, number), now = self.random.choice(sorted(self._open.items(), key=lambda item: item[0]))
        leader = self.random.choice([None, *now["replicas"]])
        isr = now["isr"] if leader is None or leader in now["isr"] else [leader]
        is_unclean = leader is not None and leader not in now["isr"]
        changed = {} if isr == now["isr"] else {"isr": isr}
        topic_id = self._topics[name]
        offset = self._append(
            "PARTITION_CHANGE_RECORD",
            topic_id=topic_id,
            partition_id=number,
            sets_leader=True,
            leader=leader,
            **changed,
        )
        state = {"leader": leader, "leader_epoch": now["leader_epoch"] + 1, "isr": isr, "replicas": now["replicas"]}
        self._begin(name, topic_id, number, state, offset, is_unclean=is_unclean)

    def _shrink(self) -> None:
        if not self._open:
            return
        (name, number), now = self.random.choice(sorted(self._open.items(), key=lambda item: item[0]))
        kept = [broker for broker in now["isr"] if broker == now["leader"] or self.random.random() < 0.5] or now["isr"]
        topic_id = self._topics[name]
        offset = self._append(
            "PARTITION_CHANGE_RECORD", topic_id=topic_id, partition_id=number, sets_leader=False, isr=kept
        )
        if kept != now["isr"]:
            state = {each: now[each] for each in ("leader", "leader_epoch", "replicas")} | {"isr": kept}
            self._begin(name, topic_id, number, state, offset, is_unclean=False)

    def _remove(self) -> None:
        if not self._topics or self.random.random() < 0.5:
            return
        name = self.random.choice(sorted(self._topics))
        offset = self._append("REMOVE_TOPIC_RECORD", topic_id=self._topics.pop(name))
        for key in [key for key in self._open if key[0] == name]:
            self._open.pop(key)["until_offset"] = offset
        for setting in [key for key in self._values if key[0] == name]:
            self._values.pop(setting)["until_offset"] = offset

    def _set(self) -> None:
        if not self._topics:
            return
        name, setting = self.random.choice(sorted(self._topics)), self.random.choice(["retention.ms", "cleanup.policy"])
        value = self.random.choice([None, "1", "2"])
        offset = self._append("CONFIG_RECORD", resource_type="TOPIC", resource_name=name, name=setting, value=value)
        before = self._values.get((name, setting))
        if value == (before or {}).get("value"):
            return
        if before is not None:
            self._values.pop((name, setting))["until_offset"] = offset
        if value is not None:
            row = {"scope": "TOPIC", "scope_name": name, "name": setting, "value": value}
            self._values[name, setting] = row | {"since_offset": offset, "until_offset": None}
            self.settings.append(self._values[name, setting])

    def _idle(self) -> None:
        self._append("NO_OP_RECORD", count=self.random.randrange(1, 50))

    def _abort(self) -> None:
        """A controller transaction that does not count."""
        begin = self._append("BEGIN_TRANSACTION_RECORD")
        self._append("TOPIC_RECORD", name="never", topic_id=f"never-{self.end}")
        if self._open and self.random.random() < 0.5:
            (name, number), _ = self.random.choice(sorted(self._open.items(), key=lambda item: item[0]))
            self._append(
                "PARTITION_CHANGE_RECORD",
                topic_id=self._topics[name],
                partition_id=number,
                sets_leader=True,
                leader=None,
            )
        if self.random.random() < 0.5:
            self._epoch += 1  # a new controller aborts what its predecessor began
        self.aborted.update(range(begin + 1, self._append("ABORT_TRANSACTION_RECORD")))

    def _commit(self) -> None:
        self._append("BEGIN_TRANSACTION_RECORD")
        self._create()
        self._append("END_TRANSACTION_RECORD")

    def snapshot(self, before: int, path: str = "snapshot", *, is_whole: bool = True) -> list[Row]:
        """The rows of a snapshot of the state before an offset."""
        held = [row for row in self.states if row["since_offset"] < before and not _ended(row, before)]
        values = [row for row in self.settings if row["since_offset"] < before and not _ended(row, before)]
        ids = {row["topic_id"]: row["topic"] for row in held}
        contents: list[Row] = [{"type": "SNAPSHOT_HEADER"}]
        contents += [{"type": "TOPIC_RECORD", "topic_id": topic_id, "name": name} for topic_id, name in ids.items()]
        for row in held:
            state = {each: row[each] for each in ("topic_id", "leader", "leader_epoch", "isr", "replicas")}
            contents.append(
                {"type": "PARTITION_RECORD", "partition_id": row["partition"], "sets_leader": True, **state}
            )
        for row in values:
            setting = {
                "resource_type": "TOPIC",
                "resource_name": row["scope_name"],
                "name": row["name"],
                "value": row["value"],
            }
            contents.append({"type": "CONFIG_RECORD", **setting})
        contents.append({"type": "SNAPSHOT_FOOTER"})
        where = {"source": "raw:2", "path": path, "position": 0, "snapshot_offset": before, "controller_epoch": 1}
        at_ms = self.at(before)
        rows = [
            {**where, "offset": n, "last_offset": n, "timestamp_ms": at_ms, **row} for n, row in enumerate(contents)
        ]
        if not is_whole:
            rows.pop(self.random.randrange(len(rows)))
        return rows


def _ended(row: Row, before: int) -> bool:
    return row["until_offset"] is not None and row["until_offset"] < before
