"""The story of an open transaction: batches of the partition and coordinator records, in order of time.

Only brokers' clocks count. Markers, LogAppendTime batches and coordinator records have one; a CreateTime batch is known to be
between the broker-stamped batches around it. Each log keeps its own order. If the clocks do not decide the order between the two
logs, the protocol does: a partition is added before it is written to, and a transaction is decided before it is marked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from txnlib.ask.log_rows import METADATA_LOG, change_text
from txnlib.ask.rows import Row
from txnlib.core.display import printable
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES

#: Kafka's name of a state -> what it means for the transaction; None is a tombstone.
STATE_AFTER: Final[Mapping[str | None, str]] = {
    "Empty": "nothing begun",
    "Ongoing": "open",
    "PrepareCommit": "decided: COMMIT",
    "PrepareAbort": "decided: ABORT",
    "CompleteCommit": "finished: COMMIT",
    "CompleteAbort": "finished: ABORT",
    None: "expired",
}
_SHOWN_PARTITIONS: Final = 6


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One line of the story."""

    written_by: str
    record: str
    state_after: str
    #: The log: the partition, or the coordinator's partition of `__transaction_state`.
    log: str = ""
    #: First and last offset in that log; None for records that are left out.
    first_offset: int | None = None
    last_offset: int | None = None
    #: Brokers' clocks prove that it was written between these times. Equal if it is broker-stamped, None if unknown.
    after_ms: int | None = None
    before_ms: int | None = None
    #: Whether the step is part of the open transaction.
    is_open: bool = False
    #: Fields that data batches of one producer must share to be folded into one line.
    fold: tuple[object, ...] | None = None
    records: int = 0
    first_sequence: int | None = None
    last_sequence: int | None = None


@dataclass(frozen=True, slots=True)
class Stamps:
    """Broker-stamped batches of the partition: offsets in order, their times, and the known times before and after them."""

    offsets: Sequence[int] = ()
    times: Sequence[int] = ()
    before: int | None = None
    after: int | None = None

    def around(self, first_offset: int, last_offset: int) -> tuple[int | None, int | None]:
        """The newest time at a lower offset and the oldest time at a higher offset."""
        lower = [*([] if self.before is None else [self.before]), *self.times[: bisect_left(self.offsets, first_offset)]]
        upper = [*self.times[bisect_right(self.offsets, last_offset) :], *([] if self.after is None else [self.after])]
        return max(lower, default=None), min(upper, default=None)


def story_steps(
    place: ExplainedPlace, batches: Sequence[Row], stamps: Stamps, records: Sequence[Row], changes: Sequence[Row] = ()
) -> list[StoryStep]:
    """The story of `place`: its producer's `batches` on the partition and the `records` of its transactional id.

    `batches` are rows of record_batches by offset; `records` are rows of coordinator_states by offset, each with the number of
    records that were `left_out` before it. `changes` are rows of `leader_changes` of the partition and of its coordinator's.
    """
    on_partition = list(_partition_steps(place, batches, stamps))
    at_coordinator = list(_coordinator_steps(place, records))
    keys = _partition_keys(place, batches, on_partition, records)
    merged = list(_merge(list(zip(keys, on_partition, strict=True)), at_coordinator))
    return list(_folded(step for _, step in _merge(merged, list(_controller_steps(changes)))))


def is_stamped(batch: Row) -> bool:
    """Whether the timestamp of the batch is a broker's."""
    return bool(batch["is_control"]) or batch["timestamp_type"] == "LOG_APPEND_TIME"


# ---- Partition


def _partition_steps(place: ExplainedPlace, batches: Sequence[Row], stamps: Stamps) -> Iterator[StoryStep]:
    opened: int | None = None
    for batch in batches:
        first, last = batch["base_offset"], batch["last_offset"]
        if batch["is_control"]:
            opened = None
        elif batch["is_transactional"] and opened is None:
            opened = first
        stamped_ms = clock_ms(batch["max_timestamp_ms"]) if is_stamped(batch) else None
        lower, upper = stamps.around(first, last) if stamped_ms is None else (stamped_ms, stamped_ms)
        step = StoryStep(
            written_by="coordinator" if batch["is_control"] else f"producer {place.producer_id}",
            record=_marker(batch) if batch["is_control"] else "",
            state_after="closed" if opened is None else f"open from {opened}",
            log=f"{place.topic}-{place.partition}",
            first_offset=first,
            last_offset=last,
            after_ms=lower,
            before_ms=upper,
            is_open=opened is not None and opened == place.start_offset,
        )
        yield (
            step
            if batch["is_control"]
            else replace(
                step,
                fold=(batch["producer_epoch"], batch["is_transactional"], batch["timestamp_type"], opened),
                records=batch["records_count"] or 0,
                first_sequence=batch["base_sequence"],
                last_sequence=batch["last_sequence"],
            )
        )


def _marker(batch: Row) -> str:
    kind = batch["control_type"] or "transaction"
    coordinator = "not printed" if batch["coordinator_epoch"] is None else batch["coordinator_epoch"]
    return f"{kind} marker, epoch {batch['producer_epoch']}, coordinator epoch {coordinator}"


def _partition_keys(place: ExplainedPlace, batches: Sequence[Row], steps: Sequence[StoryStep], records: Sequence[Row]) -> list[Key]:
    """The time of each step, as far as it is known without the other log."""
    between = limits(place, batches, records)
    keys: list[Key] = []
    for batch, step, (lowest, highest) in zip(batches, steps, between, strict=True):
        lower = (-EVER if step.after_ms is None else step.after_ms, BATCH)
        upper = (EVER if step.before_ms is None else step.before_ms, BATCH)
        at = clock_ms(batch["max_timestamp_ms"])
        key = lower if at is None else (at, BATCH)
        if at is None or not lower <= key <= upper:
            # There is no time, or a wrong one. An open transaction was written as late as possible: nothing says otherwise.
            key = upper if step.is_open else lower
        keys.append(min(max(key, lowest), highest))
    return keys


# ---- Coordinator


def _coordinator_steps(place: ExplainedPlace, records: Sequence[Row]) -> Iterator[tuple[Key, StoryStep]]:
    reached: Key = (-EVER, 0)
    for record in records:
        if record["left_out"]:
            yield reached, StoryStep("", f"… {record['left_out']} records of {printable(record['transactional_id'])} left out", "")
        at = clock_ms(record["timestamp_ms"])
        rank = COMPLETION if record["state"] in COMPLETE else DECISION
        reached = max(reached, (reached[0] if at is None else at, rank))
        yield (
            reached,
            StoryStep(
                written_by="coordinator",
                record=_record(place, record),
                state_after=STATE_AFTER.get(record["state"], record["state"]),
                log=f"{TRANSACTION_STATE_TOPIC}-{record['coordinator_partition']}",
                first_offset=record["offset"],
                last_offset=record["offset"],
                after_ms=at,
                before_ms=at,
            ),
        )


def _record(place: ExplainedPlace, record: Row) -> str:
    name = printable(record["transactional_id"])
    if record["is_tombstone"]:
        return f"{name} tombstone"
    listed = record["partitions"] or []
    # The partition of the story comes first, in case there are too many to list.
    is_here = [lists({"partitions": [each]}, place) for each in listed]
    order = sorted(range(len(listed)), key=lambda i: not is_here[i]) if len(listed) > _SHOWN_PARTITIONS else range(len(listed))
    names = [f"{listed[i]['topic']}-{listed[i]['partition']}" for i in order][:_SHOWN_PARTITIONS]
    more = f", … {len(listed) - len(names)} more" if len(listed) > len(names) else ""
    text = f"{name} {record['state']} {{{', '.join(names)}{more}}}"
    return text if record["producer_id"] == place.producer_id else f"{text}, producer {record['producer_id']}"


# ---- Controller


def _controller_steps(changes: Sequence[Row]) -> Iterator[tuple[Key, StoryStep]]:
    for row in sorted(changes, key=lambda row: row["since_offset"]):
        what, detail = change_text(row)
        offset, at = row["since_offset"], row["at_ms"]
        yield (
            (at, DECISION),
            StoryStep("controller", f"{what}: {detail}", "", METADATA_LOG, offset, offset, after_ms=at, before_ms=at),
        )


# ---- Merge


def _merge(left: Sequence[tuple[Key, StoryStep]], right: Sequence[tuple[Key, StoryStep]]) -> Iterator[tuple[Key, StoryStep]]:
    """Both logs merged by key, each in its own order. A step with an earlier key than its predecessor follows it directly."""
    i = j = 0
    while i < len(left) or j < len(right):
        if j == len(right) or (i < len(left) and left[i][0] < right[j][0]):
            yield left[i]
            i += 1
        else:
            yield right[j]
            j += 1


def _folded(steps: Iterator[StoryStep]) -> Iterator[StoryStep]:
    """Folds batches that follow each other in the story into one line."""
    held: StoryStep | None = None
    for step in steps:
        if held is not None and held.fold is not None and held.fold == step.fold:
            held = replace(
                held,
                last_offset=step.last_offset,
                before_ms=step.before_ms,
                records=held.records + step.records,
                last_sequence=step.last_sequence,
            )
            continue
        if held is not None:
            yield _worded(held)
        held = step
    if held is not None:
        yield _worded(held)


def _worded(step: StoryStep) -> StoryStep:
    if step.fold is None:
        return step
    epoch, is_transactional = step.fold[:2]
    text = f"{step.records} record{'' if step.records == 1 else 's'}, epoch {epoch}"
    if step.first_sequence is not None:
        is_one = step.first_sequence == step.last_sequence
        text += f", sequence {step.first_sequence}" + ("" if is_one else f"–{step.last_sequence}")
    return replace(step, record=text if is_transactional else f"{text}, not transactional")


# ---- The place of a batch among its coordinator's records. The protocol decides where clocks cannot


_ACTIVE: Final = frozenset(state.kafka_name for state in ACTIVE_STATES)
COMPLETE: Final = frozenset(state.kafka_name for state in COMPLETE_STATES)
_PREPARED: Final = frozenset(state.kafka_name for state in PREPARED_STATES)
EVER: Final = 1 << 62

#: Sort key of a step: ms by a broker's clock, then a rank.
Key = tuple[int, int]
DECISION, BEFORE_IT, BATCH, COMPLETION = 0, -1, 1, 2


@dataclass(frozen=True, slots=True)
class ExplainedPlace:
    """The transaction to explain."""

    topic: str
    partition: int
    producer_id: int
    start_offset: int


def limits(place: ExplainedPlace, batches: Sequence[Row], records: Sequence[Row]) -> list[tuple[Key, Key]]:
    """The smallest and the largest possible key of each batch of a producer, by offset."""
    keys: list[tuple[Key, Key]] = []
    marker: Row | None = None
    for batch in reversed(batches):
        if batch["is_control"]:
            marker = batch
            keys.append(_around_marker(place, batch, records))
        else:
            keys.append(_around_data(place, marker, records))
    return keys[::-1]


def _decision_of(place: ExplainedPlace, marker: Row, records: Sequence[Row]) -> Row | None:
    """The Prepare record of a marker: the newest before it whose transaction was not finished yet."""
    at, kind = clock_ms(marker["max_timestamp_ms"]), marker["control_type"]
    if at is None:
        return None
    prepared = [
        record
        for record in records
        if record["state"] in _PREPARED
        and record["timestamp_ms"] is not None
        and record["timestamp_ms"] <= at + CLOCKS_DIFFER_MS
        and record["producer_id"] == place.producer_id
        and (kind is None or record["state"] == f"Prepare{kind.capitalize()}")
        and lists(record, place)
    ]
    newest = max(prepared, key=lambda record: int(record["timestamp_ms"]), default=None)
    return None if newest is None or _finished_ms(newest, records) < at - CLOCKS_DIFFER_MS else newest


def _finished_ms(decision: Row, records: Sequence[Row]) -> int:
    """When the transaction was finished, if the records show it."""
    ends = [
        record["timestamp_ms"]
        for record in records
        if record["state"] in COMPLETE
        and record["transaction_number"] == decision["transaction_number"]
        and record["timestamp_ms"] is not None
    ]
    return min(ends, default=EVER)


def _around_marker(place: ExplainedPlace, marker: Row, records: Sequence[Row]) -> tuple[Key, Key]:
    decision = _decision_of(place, marker, records)
    if decision is None:
        return (-EVER, 0), (EVER, 0)
    return (decision["timestamp_ms"], BATCH), (_finished_ms(decision, records), BATCH)


def _around_data(place: ExplainedPlace, marker: Row | None, records: Sequence[Row]) -> tuple[Key, Key]:
    decision = _last(records) if marker is None else _decision_of(place, marker, records)
    if decision is None or decision["state"] not in _ACTIVE or not lists(decision, place):
        return (-EVER, 0), (EVER, 0)
    added = [
        record["timestamp_ms"]
        for record in records
        if record["state"] == "Ongoing"
        and record["transaction_number"] == decision["transaction_number"]
        and record["timestamp_ms"] is not None
        and lists(record, place)
    ]
    lowest = (min(added), BATCH) if added else (-EVER, 0)
    is_decided = decision["state"] in _PREPARED and decision["timestamp_ms"] is not None
    return lowest, (decision["timestamp_ms"], BEFORE_IT) if is_decided else (EVER, 0)


def _last(records: Sequence[Row]) -> Row | None:
    return records[-1] if records else None


def lists(record: Row, place: ExplainedPlace) -> bool:
    """Whether a coordinator record lists the partition."""
    return any(p["topic"] == place.topic and p["partition"] == place.partition for p in record["partitions"] or ())
