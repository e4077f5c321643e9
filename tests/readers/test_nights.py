"""Random sequences of nights: the rows that count for each finished run are those of a full audit of its capture.

A log is what brokers make of it: it grows, rolls, is cut by an election, loses its front, is created again. What a
night sees of it may lack brokers and segments, and be damaged. Runs are carried out twice, out of order, next to each
other, and are killed.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.log_bytes import to_bytes
from tests.support.log_notation import TS, C, N, T
from tests.support.segments import rows_of_file
from txnlib.core.chains import FinishedRun, RunHistory
from txnlib.core.schema import TABLES
from txnlib.core.schema.rows_of_runs import replaced_rows, rows_of_runs
from txnlib.readers.capture import Capture, CaptureFile, FileKind, ResumedSegment
from txnlib.readers.capture_notes import CaptureNotes
from txnlib.readers.file_parts import first_segments, put_together, read_before, resumed_copies, unchanged_until
from txnlib.readers.table_readers import SEGMENT_PARTS_TABLE

Row = dict[str, Any]
VERSION = "1"
BATCH = tuple(column.name for column in TABLES["record_batches"].columns)
#: What a killed audit may leave: tables are written in this order.
WRITTEN = ("record_batches", "segments", "coverage", "audit_runs")


class Log:
    """The copies of a partition on two brokers: segments by base offset, each a list of batches as bytes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.end, self.epoch = chance, 0, 0
        self.copies: dict[int, dict[int, list[bytes]]] = {1: {0: []}, 2: {0: []}}
        self.grow()

    def batch(self) -> bytes:
        at, epoch, kind = self.end, self.epoch, self.chance.random()
        if kind < 0.2:
            self.end += 1
            return to_bytes(C(7, 0, 3, at=at, ts=TS + at, partition_leader_epoch=epoch))
        if kind < 0.4:
            self.end += 1
            return to_bytes(N(at=at, ts=TS + at, partition_leader_epoch=epoch))
        self.end += 2
        return to_bytes(T(7, 0, at, at + 1, at=at, ts=TS + at, partition_leader_epoch=epoch))

    def grow(self) -> None:
        self.append([self.batch() for _ in range(self.chance.randint(1, 4))])

    def append(self, batches: list[bytes]) -> None:
        for copy in self.copies.values():
            if copy[max(copy)] and self.chance.random() < 0.5:
                copy[offset_of(batches[0])] = []
            copy[max(copy)] += batches

    def cut(self) -> list[bytes]:
        """An election cuts the tail of both copies. Returns what was cut."""
        lost: dict[bytes, None] = {}
        bound = self.end - self.chance.randint(1, 6)
        for copy in self.copies.values():
            for base in sorted(copy, reverse=True):
                cut = [batch for batch in copy[base] if offset_of(batch) >= bound]
                copy[base] = [batch for batch in copy[base] if batch not in cut]
                lost |= dict.fromkeys(reversed(cut))
                if base > 0 and not copy[base] and base != min(copy):
                    del copy[base]
        batches = sorted(lost, key=offset_of)
        self.epoch += 1
        self.end = offset_of(batches[0]) if batches else self.end
        return batches

    def change(self) -> None:
        match self.chance.choice(["grow", "grow", "grow", "other", "same", "front", "again", "nothing"]):
            case "grow":
                self.grow()
            case "other":
                self.cut()
                self.grow()
            case "same":  # the producers' retries: the same bytes, but for the epoch of the leader, which no CRC covers
                if batches := self.cut():
                    self.end = offset_of(batches[-1]) + 2
                    self.append([batch[:12] + self.epoch.to_bytes(4, "big") + batch[16:] for batch in batches])
            case "front":
                for copy in self.copies.values():
                    if len(copy) > 1:
                        del copy[min(copy)]
            case "again":
                self.__init__(self.chance)  # type: ignore[misc]


def offset_of(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big")


@dataclass
class Cluster:
    """The tables of the audits of one cluster, and what full audits would have put there."""

    folder: Path
    log: Log
    chance: random.Random
    tables: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:"))
    segments: dict[str, list[Row]] = field(default_factory=dict)
    expected: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    nights: int = 0

    def __post_init__(self) -> None:
        columns = ", ".join(f'"{name}"' for name in BATCH)
        self.tables.execute(f"CREATE TABLE record_batches (run_id, chain, night, {columns})")
        self.tables.execute(
            "CREATE TABLE coverage (cluster, run_id, chain, night, topic, partition, source, batches_since,"
            " batches_from)"
        )
        self.tables.execute("CREATE TABLE audit_runs (cluster, run_id, as_of, finished, status, chain, night)")

    def capture(self) -> Capture:
        """What tonight shows: perhaps without a broker or a segment, perhaps damaged, perhaps with a preallocated
        end."""
        folder = self.folder / str(self.nights)
        self.nights += 1
        hidden_broker, is_front_away = self.chance.choice([None, None, None, None, 1, 2]), self.chance.random() < 0.2
        found = []
        for broker, copy in self.log.copies.items():
            for base, batches in copy.items():
                content = b"".join(batches)
                is_away = self.chance.random() < 0.05 or (is_front_away and base == min(copy))
                if broker == hidden_broker or (len(copy) > 1 and is_away):
                    continue
                if base == max(copy) and self.chance.random() < 0.3:
                    content += bytes(self.chance.randint(1, 500))
                if batches and self.chance.random() < 0.1:
                    content = self.damaged(broker, base, content)
                path = folder / str(broker) / "orders-0" / f"{base:020}.log"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                found.append(CaptureFile(str(path), FileKind.SEGMENT, f"raw:{broker}", len(content), "orders", 0, base))
        return Capture(tuple(found), CaptureNotes(), (str(folder),))

    def damaged(self, broker: int, base: int, content: bytes) -> bytes:
        """Content with a flipped bit where no run has read yet, or in a last batch that one has read.

        A night does not notice a bit that flips between these: docs/operations.md says so.
        """
        ends = [
            each["landmarks"][-1]["position"]
            for rows in self.segments.values()
            for each in rows
            if each["source"] == f"raw:{broker}" and each["segment_base_offset"] == base and each["landmarks"]
        ]
        begin = max(ends, default=0)
        if begin >= len(content):
            return content
        at = self.chance.randrange(begin, len(content))
        return content[:at] + bytes([content[at] ^ 1 << self.chance.randrange(8)]) + content[at + 1 :]

    def history(self) -> RunHistory:
        rows = self.tables.execute("SELECT run_id, as_of, finished, chain, night FROM audit_runs WHERE status = 'DONE'")
        return RunHistory(frozenset(FinishedRun(*row, VERSION) for row in rows))

    def audit(
        self, capture: Capture, as_of_ms: int, *, is_full: bool, history: RunHistory, until: int = len(WRITTEN)
    ) -> None:
        """One audit, killed before it writes its table number `until`. Refused if another one has ended since it was
        opened."""
        run_id = f"eu-{as_of_ms}"
        usable = [] if is_full else history.to_continue(VERSION, as_of_ms)
        earlier = usable[0] if usable and not history.is_continued(usable[0], but_at=[as_of_ms]) else None
        resumed = () if earlier is None else self.resumed(capture, earlier)
        chain = history.chain(run_id, as_of_ms, *history.next_place(run_id, earlier))
        if history != self.history():
            return
        self.expected.pop(run_id, None)
        self.tables.execute("DELETE FROM audit_runs WHERE run_id = ?", [run_id])
        place = {"run_id": run_id, "chain": chain.name, "night": chain.night}
        parts = {each.path: each for each in resumed}
        if until > 0:
            self.tables.execute(f"DELETE FROM record_batches WHERE {replaced_rows(chain, run_id)}")
            self.insert("record_batches", [place | row for file in capture.files for row in self.new_rows(file, parts)])
        if until > 1:
            before = {} if earlier is None else {_segment(row): row for row in self.segments[earlier.run_id]}
            self.segments[run_id] = [self.segment_row(file, parts, before) for file in capture.files]
        if until > 2:
            self.tables.execute("DELETE FROM coverage WHERE run_id = ?", [run_id])
            self.insert("coverage", [{"cluster": "eu"} | place | row for row in self.copies(capture, resumed, earlier)])
        status = "DONE" if until > 3 else "DIED"
        self.insert(
            "audit_runs", [{"cluster": "eu", "as_of": as_of_ms, "finished": self.nights, "status": status} | place]
        )
        if status == "DONE":
            full = [row for file in capture.files for row in rows_of_file("record_batches", file)]
            self.expected[run_id] = sorted(tuple(row[name] for name in BATCH) for row in full)
            assert self.segments[run_id] == [rows_of_file("segments", file)[0] for file in capture.files]

    def resumed(self, capture: Capture, earlier: FinishedRun) -> tuple[ResumedSegment, ...]:
        before = self.segments[earlier.run_id]
        files = {(file.topic, file.partition, file.source, file.offset): file.path for file in capture.files}
        found = []
        for row in before:
            path = files.get(_segment(row))
            at = None if path is None else unchanged_until(row, path)
            if at is not None:
                assert path is not None
                found.append(ResumedSegment(*_segment(row), path, at.position, at.last_offset, at.leader_epoch))
        return resumed_copies(
            found, [(_segment(row), bool(row["landmarks"])) for row in before], first_segments(capture)
        )

    def new_rows(self, file: CaptureFile, parts: dict[str, ResumedSegment]) -> Iterator[Row]:
        yield from rows_of_file("record_batches", _part_of(file, parts.get(file.path)))

    def segment_row(
        self, file: CaptureFile, parts: dict[str, ResumedSegment], before: dict[tuple[Any, ...], Row]
    ) -> Row:
        if (resumed := parts.get(file.path)) is None:
            return rows_of_file("segments", file)[0]
        (new,) = rows_of_file(SEGMENT_PARTS_TABLE, _part_of(file, resumed))
        row = before[(file.topic, file.partition, file.source, file.offset)]
        together = put_together([read_before(row, file.path, resumed.position, resumed.last_offset), new])
        del together["part_position"]
        return together

    def copies(
        self, capture: Capture, resumed: tuple[ResumedSegment, ...], earlier: FinishedRun | None
    ) -> Iterator[Row]:
        goes_on = {each.source for each in resumed}
        for copy, first in first_segments(capture).items():
            since = None
            if earlier is not None and copy[2] in goes_on:
                found = self.tables.execute(
                    "SELECT batches_since FROM coverage WHERE run_id = ? AND source = ?", [earlier.run_id, copy[2]]
                ).fetchone()
                since = earlier.night if found[0] is None else found[0]
            yield dict(zip(("topic", "partition", "source"), copy, strict=True)) | {
                "batches_since": since,
                "batches_from": None if since is None else first,
            }

    def insert(self, name: str, rows: list[Row]) -> None:
        for row in rows:
            columns = ", ".join(f'"{column}"' for column in row)
            self.tables.execute(
                f"INSERT INTO {name} ({columns}) VALUES ({', '.join('?' * len(row))})", list(row.values())
            )

    def check(self) -> None:
        """Every finished run has the rows of a full audit, whatever came after it."""
        query = rows_of_runs("record_batches").format(
            record_batches="record_batches", audit_runs="audit_runs", coverage="coverage"
        )
        found: dict[str, list[tuple[Any, ...]]] = {run_id: [] for run_id in self.expected}
        for _, run_id, *row in self.tables.execute(query):
            if run_id in found:
                found[run_id].append(tuple(row))
        for run_id, rows in self.expected.items():
            assert sorted(found[run_id]) == rows, run_id


def _part_of(file: CaptureFile, resumed: ResumedSegment | None) -> CaptureFile:
    if resumed is None:
        return file
    return replace(file, resume=resumed.state)


def _segment(row: Row) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["source"], row["segment_base_offset"]


def test_a_log_that_lost_its_front_is_resumed_and_one_that_got_it_back_is_not():
    orders = ("orders", 0, "raw:1")
    found = [ResumedSegment(*orders, base, f"{base}.log", 100, base + 9, 0) for base in (10, 20)]
    read = [((*orders, base), True) for base in (0, 10, 20)]
    assert resumed_copies(found, read, {orders: 10}) == tuple(found)
    assert resumed_copies(found, read, {orders: 0}) == (), "a segment that was read is no longer unchanged"
    assert resumed_copies(found, read[1:], {orders: 10}) == tuple(found)
    assert resumed_copies(found, read[1:], {orders: 0}) == (), "the run before may have read the first one"
    empty = [((*orders, 0), False), *read[1:]]
    assert resumed_copies(found, empty, {orders: 0}) == tuple(found), "no rows of it can count"


@pytest.mark.parametrize("seed", range(20))
def test_every_finished_run_has_the_rows_of_a_full_audit(tmp_path, seed):
    for number in range(8):
        chance = random.Random(f"{seed} {number}")
        cluster = Cluster(tmp_path / str(number), Log(chance), chance)
        as_of_ms, captures = 1_000, {}
        for _ in range(chance.randint(3, 6)):
            cluster.log.change()
            history, capture = cluster.history(), cluster.capture()
            as_of_ms += 10
            captures[as_of_ms] = capture
            how = chance.choice(["ordinary", "ordinary", "full", "twice", "older", "killed", "two at once"])
            if how == "killed":
                cluster.audit(
                    capture, as_of_ms, is_full=False, history=history, until=chance.randint(0, len(WRITTEN) - 1)
                )
            elif how != "older":
                cluster.audit(capture, as_of_ms, is_full=how == "full", history=history)
            if how == "two at once":  # the second was opened before the first ended
                cluster.audit(cluster.capture(), as_of_ms + 5, is_full=False, history=history)
            elif how in ("twice", "older"):
                again = chance.choice(sorted(captures))
                until = chance.choice([len(WRITTEN), len(WRITTEN), chance.randint(0, len(WRITTEN) - 1)])
                cluster.audit(captures[again], again, is_full=False, history=cluster.history(), until=until)
            cluster.check()
