"""The copy of one partition: its segments, its topic id, how fast it is fetched, and how far."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from txnlib.core.display import printable
from txnlib.core.kafka.constants import MAX_INT64
from txnlib.wire_capture import capture_folder as files
from txnlib.wire_capture import cluster
from txnlib.wire_capture.client import Client, MovedError
from txnlib.wire_capture.cluster import Partition
from txnlib.wire_capture.fetch import FetchedLog, check_first_batch, fetch, knows_topics_by_id

_EVERY_SECONDS: Final = 5.0
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class Pace:
    """Waits so that all threads together fetch at most `rate` bytes per second; None for no limit."""

    def __init__(
        self,
        rate: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._clock, self._sleep = rate, clock, sleep
        self._lock = threading.Lock()
        self._free_at = clock()

    def __call__(self, count: int) -> None:
        """Counts bytes that were just fetched, and waits until the next ones may be."""
        if self._rate is None:
            return
        with self._lock:
            self._free_at = max(self._free_at, self._clock()) + count / self._rate
            due = self._free_at - self._clock()
        if due > 0:
            self._sleep(due)


class Progress:
    """Says how many offsets of how many are fetched, every few seconds, with the time that is left at this rate.

    Each part is named by what is fetched: what is still expected of it is replaced as soon as more is known.
    """

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out or sys.stderr, clock
        self._lock = threading.Lock()
        self._began = self._said_at = clock()
        self._done = self._bytes = 0
        self._left: dict[Hashable, int] = {}

    def say(self, text: str) -> None:
        """A line for the operator."""
        with self._lock:
            self._out.write(f"capture: {printable(text)}\n")
            self._out.flush()

    def expect(self, part: Hashable, offsets: int) -> None:
        """Says how many offsets of a part are still to be fetched."""
        with self._lock:
            self._left[part] = offsets

    def add(self, part: Hashable, offsets: int, count: int) -> None:
        """Adds offsets of a part that were fetched, and their bytes."""
        with self._lock:
            self._done += offsets
            self._bytes += count
            self._left[part] = max(0, self._left.get(part, 0) - offsets)
            now = self._clock()
            if now - self._said_at < _EVERY_SECONDS:
                return
            self._said_at = now
        self.say(self.text())

    def text(self) -> str:
        """How far the capture is, in words."""
        elapsed = max(self._clock() - self._began, 0.001)
        left = sum(self._left.values())
        total = self._done + left
        eta = f", about {duration_text(left * elapsed / self._done)} left" if self._done else ""
        percent = 100 * self._done // total if total else 100
        return f"{percent}% of {total} offsets, {size_text(self._bytes)} at {size_text(self._bytes / elapsed)}/s{eta}"


def size_text(count: float) -> str:
    """A number of bytes with its unit."""
    for unit in _UNITS:
        if count < 10240 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def duration_text(seconds: float) -> str:
    """A duration in seconds, minutes or hours."""
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else (f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h")
    )


# ---- What became of a partition


@dataclass(slots=True)
class Taken:
    """What became of one partition.

    `problem` says why it is missing or not whole; None if all of its scope is there. `is_lasting`: another call will
    not help until somebody changes something.
    """

    partition: Partition
    log_start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    #: The high watermark just before the last stable offset was asked for.
    mark_before: int | None = None
    captured_at_ms: int | None = None
    first_captured_at_ms: int | None = None
    fetched_from: int | None = None
    end_offset: int | None = None
    bytes: int = 0
    #: What the leader said about producers, and its high watermark just before.
    producers: list[dict[str, Any]] | None = None
    asked_mark: int | None = None
    answered_at_ms: int | None = None
    problem: str | None = None
    is_lasting: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool | None:
        """Whether something is open, by the leader's word; None if it did not say."""
        if self.last_stable is None or self.high_watermark is None:
            return None
        if any(each["current_transaction_start_offset"] is not None for each in self.producers or ()):
            return True
        return self.last_stable < self.high_watermark

    @property
    def may_be_open(self) -> bool:
        """Whether something is open, or may be open without delaying any record: if the log is empty, the leader raises
        the last stable offset to the log start."""
        is_emptied = self.last_stable is not None and self.last_stable == self.log_start == self.high_watermark
        return bool(self.is_open) or (is_emptied and bool(self.log_start))


def described_producers(taken: Taken) -> dict[str, Any]:
    """What its leader said about producers, as a line of describe-producers.jsonl."""
    return {
        "topic": taken.partition.topic,
        "partition": taken.partition.partition,
        "asked_at_ms": taken.answered_at_ms,
        "last_stable_offset": taken.last_stable,
        "high_watermark": taken.asked_mark,
        "producers": taken.producers,
    }


def noted(taken: Taken) -> dict[str, Any]:
    """What capture.json says of a partition."""
    known = {
        "leader": taken.partition.leader,
        "leader_epoch": taken.partition.leader_epoch,
        # Not `replicas`: with checkpoints of leaders only, they would prove topics deleted that this user cannot see.
        "assigned_replicas": list(taken.partition.replicas),
        "in_sync": list(taken.partition.in_sync),
        "log_start_offset": taken.log_start,
        "last_stable_offset": taken.last_stable,
        "high_watermark": taken.high_watermark,
        "high_watermark_before": taken.mark_before,
        "answered_at_ms": taken.answered_at_ms,
        "fetched_from": taken.fetched_from,
        "problem": taken.problem,
        "notes": taken.notes or None,
    }
    return {name: value for name, value in known.items() if value is not None}


# ---- The copy of one partition


#: Bytes of a partition after which the capture notes how far it is, to go on from there if it is killed.
_NOTE_BYTES: Final = 16 << 20
_STATE: Final = ("first_offset", "next_offset", "last_epoch", "segment", "size", "total", "last_size")


def now_ms() -> int:
    """The time of this machine in epoch ms, as in the instants of copies."""
    return time.time_ns() // 1_000_000


def fetch_copy(client: Client, progress: Progress, pace: Pace, taken: Taken, folder: Path, *, begin: int) -> None:
    """Fetches a partition up to the high watermark of this instant, which is the instant of the copy.

    Goes on from what an earlier, interrupted fetch left. Raises as `fetch`; what was fetched stays.
    """
    instant = now_ms()
    marks = cluster.offsets(client, [taken.partition], cluster.LATEST)
    starts = cluster.offsets(client, [taken.partition], cluster.EARLIEST)
    if taken.partition not in marks or taken.partition not in starts:
        raise MovedError(f"broker {taken.partition.leader} does not say where {taken.partition.folder} begins and ends")
    until, start = marks[taken.partition], starts[taken.partition]
    if not 0 <= start <= until:
        raise MovedError(f"{taken.partition.folder} begins at {start}, its leader says, and ends at {until}")
    if taken.log_start is not None and taken.log_start > start:
        begin = start  # one of the two answers is damaged: from the lower one on, nothing is missing
    if taken.high_watermark is not None and until < taken.high_watermark:
        said = f"{taken.partition.folder} ended at {taken.high_watermark}, now at {until}"
        taken.high_watermark = None  # the next answer decides
        raise MovedError(said)
    if folder.exists() and files.read_topic_id(folder) != taken.partition.topic_id:
        taken.notes.append("its topic was created again since an earlier fetch: fetched from the start")
        files.remove(folder)
    log = _go_on(folder, max(begin, start))
    files.make_folder(folder)
    files.write_topic_id(folder, taken.partition.topic_id)
    before = log.next_offset
    progress.expect(taken.partition, max(0, until - before))
    done, counted, noted_bytes = log.next_offset, log.total, log.total

    def note() -> None:
        log.flush()
        files.write_json(files.state_file(folder), {name: getattr(log, name) for name in _STATE})

    def count_and_wait(count: int) -> None:
        nonlocal done, counted, noted_bytes
        progress.add(taken.partition, log.next_offset - done, log.total - counted)
        done, counted = log.next_offset, log.total
        if counted - noted_bytes >= _NOTE_BYTES:
            note()
            noted_bytes = counted
        pace(count)

    try:
        fetch(client, taken.partition, log, until, start=start, pace=count_and_wait)
    finally:
        note()
        progress.add(taken.partition, log.next_offset - done, log.total - counted)
        progress.expect(taken.partition, 0)  # what compaction removed, or a failure leaves to the next call
    _check_topic(client, taken, log, start, until)
    if log.segment is None:  # an empty log, which a broker has as an empty segment
        (folder / f"{before:020d}.log").touch(0o600)
    taken.fetched_from = before if log.first_offset is None else log.first_offset
    taken.end_offset, taken.bytes = log.next_offset, log.total
    if log.next_offset < until:
        taken.notes.append(f"its leader has nothing from offset {log.next_offset} up to its high watermark {until}")
    taken.log_start, taken.high_watermark, taken.captured_at_ms = start, until, instant


def _check_topic(client: Client, taken: Taken, log: FetchedLog, start: int, until: int) -> None:
    """Raises MovedError if the topic was created again meanwhile, so that what was fetched may be of both logs;
    TruncatedError, if brokers have no topic ids."""
    if taken.partition.topic_uuid is None:
        check_first_batch(client, taken.partition, log, start, until)
        return
    if knows_topics_by_id(client, taken.partition):
        return
    for each in cluster.metadata(client, [taken.partition.topic], taken.partition.leader).partitions:
        if each.partition == taken.partition.partition and each.topic_id != taken.partition.topic_id:
            raise MovedError(f"{taken.partition.topic} was created again")


def _go_on(folder: Path, begin: int) -> FetchedLog:
    """The log of an earlier, interrupted fetch, if there is one to go on with; else a new one."""
    log = kept_log(folder, begin)
    if log is None:
        files.remove(folder)
        return FetchedLog(folder, None, begin)
    log.cut()
    return log


def kept_log(folder: Path, begin: int) -> FetchedLog | None:
    """The log of an earlier, interrupted fetch, if it is there as noted and contains `begin`; else None.

    Somebody else may have written the notes, so a log counts only if its segments confirm them.
    """
    state = files.read_state(folder)
    if set(state) != set(_STATE) or not all(type(each) is int and -1 <= each <= MAX_INT64 for each in state.values()):
        return None
    log = FetchedLog(folder, **state)
    return log if state["first_offset"] <= begin <= log.next_offset and log.is_as_noted() else None
