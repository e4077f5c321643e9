"""A capture of a cluster, step by step.

First the coordinators, then the partitions in scope, then the coordinators again
(docs/rules/copies.md#two-capture-instants).
Nothing is written to the cluster. A partition that fails is named, and the others go on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from txnlib.core.kafka.constants import MAX_INT32, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.log_dir_files import number
from txnlib.core.rows import grouped
from txnlib.errors import UnreadableInputError, UsageError
from txnlib.wire_capture import capture_folder as files
from txnlib.wire_capture import cluster
from txnlib.wire_capture.client import Client, MovedError, RefusedError
from txnlib.wire_capture.cluster import NO_LEADER, Partition
from txnlib.wire_capture.fetch import DamagedError, TruncatedError
from txnlib.wire_capture.partition_copy import (
    Pace,
    Progress,
    Taken,
    described_producers,
    fetch_copy,
    kept_log,
    noted,
    now_ms,
)

OPEN: Final = "open"
ALL: Final = "all"
#: Offsets that are fetched before the earliest open transaction, to show what was before it.
CONTEXT_OFFSETS: Final = 5_000
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 1.0
#: How often the main thread looks whether it is interrupted.
_GLANCE_SECONDS: Final = 0.1
_NEEDED: Final = (
    "Without it the audit cannot tell what hangs: every open transaction will be UNKNOWN. Needed: the operations"
    " DESCRIBE and READ on it"
)
#: Brokers that may fail to say their settings before the capture goes on without.
_ASKED_FOR_SETTINGS: Final = 3
#: Leaders that are fetched from at the same time.
_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What to capture. `since_ms`: in scope ALL, capture only records from this instant on, and what is open."""

    output: Path
    topics: str | None = None
    scope: str = OPEN
    since_ms: int | None = None
    context: int = CONTEXT_OFFSETS
    limit_rate: int | None = None
    cluster: str | None = None
    #: Whether only to say what there is to capture, and write nothing.
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of each partition, and whether this user was refused the coordinators."""

    taken: list[Taken]
    is_without_coordinators: bool


def take_capture(client: Client, wanted: CaptureRequest, progress: Progress) -> Captured:
    """Captures a cluster to `wanted.output`.

    Raises UsageError if there is nothing to capture, and UnreadableInputError if no broker says what there is. After a
    KeyboardInterrupt, what was fetched stays, and the next call goes on from there.
    """
    return _Capture(client, wanted, progress).run()


class _Capture:
    def __init__(self, client: Client, wanted: CaptureRequest, progress: Progress) -> None:
        self._client, self._wanted, self._progress = client, wanted, progress
        self._fetch = partial(fetch_copy, client, progress, Pace(wanted.limit_rate, sleep=client.pause))
        self._taken: dict[Partition, Taken] = {}
        self._metadata: cluster.Metadata
        self._coordinators: tuple[Partition, ...] = ()
        self._earlier: files.Earlier

    def run(self) -> Captured:
        partitions, wanted = self._find(), self._wanted
        if wanted.is_dry_run:
            return self._foresee(partitions)
        self._earlier = files.read_notes(wanted.output, self._metadata.cluster_id).besides(
            {each.folder for each in self._taken}
        )
        files.follow_leaders(
            wanted.output, {each.folder: each.leader for each in self._taken if each.leader != NO_LEADER}
        )
        settings = self._settings()
        self._say_what_is_hidden()
        self._write_notes(settings, is_complete=False)
        self._progress.say(
            f"coordinator partitions: {len(self._coordinators)}, other partitions: {len(partitions)}, scope:"
            f" {wanted.scope}"
        )
        for each, end in cluster.offsets(self._client, self._coordinators, cluster.LATEST).items():
            self._progress.expect(each, end)
            self._taken[each].high_watermark = end
        self._take_each(self._coordinators, self._take_coordinator_first)
        self._look(partitions)
        self._ask_producers(partitions)
        in_scope = self._in_scope(partitions)
        left_out = set(partitions).difference(in_scope)
        files.remove_copies(wanted.output, {each.folder for each in left_out if self._taken[each].problem is None})
        self._plan(in_scope)
        self._take_each(
            in_scope, lambda taken: self._fetch(taken, self._folder(taken.partition), begin=taken.fetched_from or 0)
        )
        self._ask_coordinators()
        self._take_each(self._coordinators, self._take_coordinator_again)
        self._write_checkpoints()
        self._write_notes(settings, is_complete=True)
        return self._captured()

    def _captured(self) -> Captured:
        if self._client.lost:
            self._progress.say(cluster.lost_text(self._client.lost))
        return Captured(
            [self._taken[each] for each in sorted(self._taken)], is_without_coordinators=bool(self._metadata.refused)
        )

    def _foresee(self, partitions: list[Partition]) -> Captured:
        """What a capture would fetch now: of each partition, from which offset to which. Writes nothing."""
        files.read_notes(self._wanted.output, self._metadata.cluster_id)
        self._settings()
        self._say_what_is_hidden()
        self._look([*self._coordinators, *partitions])
        self._ask_producers(partitions)
        in_scope = self._in_scope(partitions)
        self._plan(in_scope)
        for partition in (*self._coordinators, *in_scope):
            taken, folder = self._taken[partition], self._folder(partition)
            if taken.problem is None and taken.high_watermark is None:
                taken.problem = f"broker {partition.leader} does not say where it ends"
            elif taken.problem is None:
                begin = max(taken.fetched_from or 0, taken.log_start or 0)
                is_same = files.read_topic_id(folder) == partition.topic_id
                kept = kept_log(folder, begin) if is_same else None
                taken.fetched_from, taken.end_offset = begin if kept is None else kept.next_offset, taken.high_watermark
        return self._captured()

    # ---- What there is

    def _find(self) -> list[Partition]:
        """The partitions besides the coordinators; notes what cannot be captured."""
        try:
            every = self._every_topic()
            own = cluster.metadata(self._client, [TRANSACTION_STATE_TOPIC])
        except MovedError as error:
            raise UnreadableInputError(
                "the cluster", f"no broker says what it has: {error}", "Then call it again"
            ) from error
        self._metadata, self._coordinators = replace(every, refused=own.refused), own.partitions
        if own.refused:
            self._progress.say(f"this user may not describe {TRANSACTION_STATE_TOPIC}. {_NEEDED}")
        elif not own.partitions:
            self._progress.say(
                f"there is no {TRANSACTION_STATE_TOPIC}: no producer ever asked this cluster for transactions"
            )
        pattern = None if self._wanted.topics is None else re.compile(self._wanted.topics)
        others = [
            each
            for each in every.partitions
            if not each.is_coordinator and (pattern is None or pattern.fullmatch(each.topic) is not None)
        ]
        if not others and pattern is not None:
            raise UsageError(f"--topics {pattern.pattern} matches no topic that this user may describe")
        if not others and not own.partitions:
            raise UsageError(
                "there is no topic that this user may describe. Needed: the operations DESCRIBE and READ on topics"
            )
        for each in (*own.partitions, *others):
            taken = self._taken[each] = Taken(each)
            if each.leader == NO_LEADER:
                taken.problem = "no broker leads it"
            elif each.is_readable is False:
                taken.problem, taken.is_lasting = "this user may not read it", True
        unreadable = sorted({each.topic for each in others if each.is_readable is False})
        if unreadable:
            self._progress.say(
                f"this user may not read {', '.join(unreadable)}. Needed: the operation READ on these topics"
            )
        if any(each.is_readable is False for each in own.partitions):
            self._progress.say(f"this user may not read {TRANSACTION_STATE_TOPIC}. {_NEEDED}")
        return others

    def _every_topic(self) -> cluster.Metadata:
        """The cluster's topics, once two answers in a row agree: a topic that a damaged answer lacks would be missed
        without a word."""
        last = cluster.metadata(self._client)
        for _ in range(_TRIES):
            before, last = last, cluster.metadata(self._client)
            if [(each, each.topic_id) for each in before.partitions] == [
                (each, each.topic_id) for each in last.partitions
            ]:
                return last
        self._progress.say("brokers answer differently what topics there are: those of the last answer are captured")
        return last

    def _settings(self) -> dict[str, str]:
        failed: Exception | None = None
        for broker in self._metadata.brokers[:_ASKED_FOR_SETTINGS]:
            try:
                return cluster.broker_settings(self._client, broker)
            except RefusedError as error:
                self._progress.say(
                    f"settings are not noted: {error}. Needed: the operation DESCRIBE_CONFIGS on the cluster"
                )
                return {}
            except (MovedError, OSError) as error:
                failed = error
        self._progress.say(f"settings are not noted: {failed}")
        return {}

    def _say_what_is_hidden(self) -> None:
        with suppress(MovedError):
            if cluster.hides_transactional_ids(self._client):
                self._progress.say(
                    "this user may not describe all transactional ids: the coordinators' own answers about the others"
                    " are missing. Needed: the operation DESCRIBE on all transactional ids"
                )

    def _look(self, partitions: Iterable[Partition]) -> None:
        """Notes of each partition, asked in this order: log start, high watermark (`mark_before`), last stable offset,
        high watermark.

        So the last stable offset may be too low for the last high watermark, never too high: what has ended may look
        open. A last stable offset below `mark_before` proves that something was open.
        """
        asked = [each for each in partitions if self._taken[each].problem is None]
        starts = cluster.offsets(self._client, asked, cluster.EARLIEST)
        before = cluster.offsets(self._client, asked, cluster.LATEST)
        answered_at = now_ms()
        stable = cluster.offsets(self._client, asked, cluster.LATEST, cluster.READ_COMMITTED)
        marks = cluster.offsets(self._client, asked, cluster.LATEST)
        for each in asked:
            taken = self._taken[each]
            taken.log_start, taken.last_stable, taken.high_watermark = (
                starts.get(each),
                stable.get(each),
                marks.get(each),
            )
            taken.answered_at_ms, taken.mark_before = answered_at, before.get(each)
            if taken.high_watermark is None or taken.last_stable is None:
                taken.answered_at_ms = None  # its leader moved: fetched, whatever the scope

    def _in_scope(self, partitions: Iterable[Partition]) -> list[Partition]:
        possible = [self._taken[each] for each in partitions if self._taken[each].problem is None]
        return [taken.partition for taken in possible if self._wanted.scope == ALL or taken.is_open is not False]

    def _ask_producers(self, partitions: Iterable[Partition]) -> None:
        """Notes the producers of partitions on which something is open, or may be, as their leaders describe them."""
        asked = [each for each in partitions if self._taken[each].may_be_open]
        for each, producers in cluster.active_producers(self._client, asked).items():
            taken = self._taken[each]
            taken.producers, taken.asked_mark = producers, taken.high_watermark

    def _plan(self, partitions: Iterable[Partition]) -> None:
        """Decides from which offset on each partition is fetched."""
        since: dict[Partition, int] = {}
        if self._wanted.scope == ALL and self._wanted.since_ms is not None:
            since = cluster.offsets(self._client, list(partitions), self._wanted.since_ms)
        for each in partitions:
            taken = self._taken[each]
            begin = taken.log_start or 0
            if taken.last_stable is not None and (self._wanted.scope == OPEN or self._wanted.since_ms is not None):
                starts = [producer["current_transaction_start_offset"] for producer in taken.producers or ()]
                earliest = min([taken.last_stable, *(start for start in starts if start is not None)])
                if self._wanted.scope == OPEN:
                    begin = max(begin, earliest - self._wanted.context)
                else:
                    after = since.get(each, begin)
                    begin = max(begin, min(earliest, taken.high_watermark or 0 if after == -1 else after))
            taken.fetched_from = begin
            self._progress.expect(each, max(0, (taken.high_watermark or begin) - begin))

    # ---- Fetching

    def _take_each(self, partitions: Iterable[Partition], take: Callable[[Taken], None]) -> None:
        """Fetches partitions: from several leaders at the same time, but from each leader one partition after the
        other."""
        of_leader = grouped(
            (each for each in partitions if self._taken[each].problem is None), lambda each: each.leader
        )

        def take_all(some: list[Partition]) -> None:
            for partition in some:
                self._take_one(self._taken[partition], take)

        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                left = {pool.submit(take_all, some) for some in of_leader.values()}
                while left:  # a signal just before an endless wait would not end it
                    done, left = wait(left, _GLANCE_SECONDS)
                    for each in done:
                        each.result()
            except BaseException:
                self._client.stop()  # leaving the pool waits for its threads
                raise

    def _take_one(self, taken: Taken, take: Callable[[Taken], None]) -> None:
        """Fetches one partition, again if its leader moved or its log was truncated meanwhile."""
        if taken.partition.leader in self._client.silent:
            self._refresh(taken)
        # A broker that was given up costs no time again: its partitions are left to the next call.
        if taken.partition.leader in self._client.silent:
            taken.problem = f"broker {taken.partition.leader} does not answer"
        else:
            self._try(taken, take)
        if taken.problem is not None:
            self._progress.say(f"{taken.partition.folder} is not whole: {taken.problem}")

    def _try(self, taken: Taken, take: Callable[[Taken], None]) -> None:
        for _ in range(_TRIES):
            try:
                take(taken)
            except MovedError as error:
                taken.problem = str(error)
                self._client.pause(_PAUSE_SECONDS)
                self._refresh(taken)
            except TruncatedError as error:
                taken.problem = str(error)
                taken.notes.append(f"fetched again: {error}")
                for first in (False, True):
                    files.remove(self._folder(taken.partition, first=first))
            except (RefusedError, DamagedError, OSError) as error:
                taken.problem, taken.is_lasting = str(error), not isinstance(error, OSError)
                break
            else:
                taken.problem = None
                return

    def _refresh(self, taken: Taken) -> None:
        """Asks who leads the partition now. If the leader moved, moves the copy to its folder: the new leader checks
        what was fetched before."""
        old = taken.partition
        with suppress(MovedError):
            for each in cluster.metadata(self._client, [old.topic]).partitions:
                if each.partition == old.partition and each.leader != NO_LEADER:
                    taken.partition = each
        if taken.partition.leader == old.leader:
            return
        taken.notes.append(
            f"its leader was broker {old.leader} when the capture began, then broker {taken.partition.leader}"
        )
        for first in (False, True):
            files.move(self._folder(old, first=first), self._folder(taken.partition, first=first))

    def _folder(self, partition: Partition, *, first: bool = False) -> Path:
        broker = self._wanted.output / str(partition.leader)
        return (broker / files.FIRST if first else broker) / partition.folder

    def _take_coordinator_first(self, taken: Taken) -> None:
        self._fetch(taken, self._folder(taken.partition, first=True), begin=0)
        taken.first_captured_at_ms = taken.captured_at_ms

    def _take_coordinator_again(self, taken: Taken) -> None:
        """Continues the first copy of a coordinator partition with what was appended since."""
        folder, earlier = self._folder(taken.partition), self._folder(taken.partition, first=True)
        if files.state_file(earlier).exists() and not files.state_file(folder).exists():
            files.copy(earlier, folder)
        self._fetch(taken, folder, begin=0)

    # ---- The other files

    def _ask_coordinators(self) -> None:
        """Writes what the coordinators say about their transactional ids, and how far their logs are fetched
        already."""
        own = {taken.partition.partition: taken for taken in self._taken.values() if taken.partition.is_coordinator}
        for broker in self._metadata.brokers:
            at = now_ms()
            try:
                ids = cluster.listed_ids(self._client, broker)
                described = cluster.described_transactions(self._client, broker, ids)
            except (MovedError, RefusedError, OSError) as error:
                if broker not in self._client.lost:
                    self._progress.say(f"the coordinators of broker {broker} did not answer: {error}")
                continue
            rows = []
            for each in described:
                partition = partition_for(each["transactional_id"], max(len(own), 1))
                end = own[partition].end_offset if partition in own else None
                where = {"asked_at_ms": at, "coordinator_partition": partition, "log_end_offset": end}
                rows.append({**where, **each})
            files.write_lines(self._wanted.output / str(broker) / files.DESCRIBED_TRANSACTIONS, rows)

    def _write_checkpoints(self) -> None:
        answered = [taken for taken in self._taken.values() if taken.high_watermark is not None]
        for broker, some in grouped(answered, lambda taken: taken.partition.leader).items():
            folder = self._wanted.output / str(broker)
            marks = {each.partition: each.high_watermark for each in some if each.high_watermark is not None}
            files.write_offsets(folder / "replication-offset-checkpoint", marks)
            starts = {each.partition: each.log_start for each in some if each.log_start is not None}
            files.write_offsets(folder / "log-start-offset-checkpoint", starts)
            rows = [described_producers(each) for each in some if each.producers is not None]
            files.write_lines(folder / files.DESCRIBED_PRODUCERS, rows)

    def _write_notes(self, settings: dict[str, str], *, is_complete: bool) -> None:
        from txnlib.settings import NOTED  # pydantic, which no other command of txn-audit loads

        instants = dict(self._earlier.instants)
        for taken in self._taken.values() if is_complete else ():
            of = taken.partition
            if taken.captured_at_ms is not None:
                instants[f"{of.leader}/{of.folder}"] = taken.captured_at_ms
            if taken.first_captured_at_ms is not None:
                instants[f"{of.leader}/{files.FIRST}/{of.folder}"] = taken.first_captured_at_ms
        features = self._client.features
        notes: dict[str, Any] = {
            "captured_by": files.CAPTURED_BY,
            "cluster": self._wanted.cluster or self._metadata.cluster_id,
            "cluster_id": self._metadata.cluster_id,
            "kafka_version": self._client.broker_version,
            "scope": self._wanted.scope,
            "transaction_version": features.get("transaction.version"),
            "features": features,
            "coordinator_partitions": len(self._coordinators) or None,
            **{name: number(settings.get(each, "").encode(), MAX_INT32) for each, name in NOTED.items()},
            "broker_settings": settings,
            "partitions": (
                self._earlier.partitions | {each.partition.folder: noted(each) for each in self._taken.values()}
            ),
            "captured_at_ms": instants,
        }
        files.write_json(
            self._wanted.output / files.CAPTURE_JSON,
            {name: value for name, value in notes.items() if value is not None},
        )
