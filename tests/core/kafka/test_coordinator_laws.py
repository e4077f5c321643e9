"""A small coordinator that keeps the rules, and never looks odd."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_notation import STATES, TS, judged, rec, topic_partition
from txnlib.core.kafka.odd_coordinator_records import SuspectStep, oddities
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import COMPLETE_STATES, PREPARED_STATES
from txnlib.core.rows import TopicPartition

EXHAUSTED = 32766
Record = TransactionLogEntry | None


def partitions(name: str) -> tuple[TopicPartition, ...]:
    return (topic_partition(name),)


@dataclass
class Coordinator:
    """One transactional id under one coordinator, whose clock may go back."""

    draw: st.DrawFn
    producer_ids: Iterator[int]
    last: Record = None
    #: Whether the last append timed out, and was taken back: then nothing is left to append again.
    was_taken_back: bool = False

    def next_record(self) -> Record:
        name = None if self.last is None else self.last.transaction_state.name
        choices = {
            None: [self.initialise],
            "EMPTY": [self.initialise, self.begin, self.expire, self.abort_nothing],
            "ONGOING": [self.add, self.end, self.bump_and_abort],
            "PREPARE_COMMIT": [self.complete, self.retry],
            "PREPARE_ABORT": [self.complete, self.retry],
            "COMPLETE_COMMIT": [self.initialise, self.begin, self.expire, self.abort_nothing, self.retry],
            "COMPLETE_ABORT": [self.initialise, self.begin, self.expire, self.abort_nothing, self.retry],
        }[name]
        if self.was_taken_back:
            choices = [choice for choice in choices if choice != self.retry]
        self.last, self.was_taken_back = self.draw(st.sampled_from(choices))(), False
        return self.last

    def take_back(self, before: Record) -> None:
        self.last, self.was_taken_back = before, True

    def now(self) -> int:
        return TS + self.draw(st.integers(-9, 9))

    def initialise(self) -> Record:
        timeout = self.draw(st.sampled_from([1, 60_000, 2147483647]))
        if self.last is None:
            pid, epoch = next(self.producer_ids), self.draw(st.sampled_from([0, EXHAUSTED - 1]))
        elif self.last.producer_epoch >= EXHAUSTED:
            pid, epoch = next(self.producer_ids), 0
        else:
            pid, epoch = self.last.producer_id, self.last.producer_epoch + 1
        return rec("E", pid, epoch, update=self.now(), transaction_timeout_ms=timeout)

    def begin(self) -> Record:
        if self.last.producer_epoch > EXHAUSTED:
            return self.initialise()
        now = self.now()
        return self._then(
            "O", start_timestamp_ms=now, last_update_timestamp_ms=now, transaction_partitions=partitions("a-0")
        )

    def expire(self) -> Record:
        return None

    def abort_nothing(self) -> Record:
        if self.last.producer_epoch >= EXHAUSTED:
            return self.initialise()
        now, bumped = self.now(), self.last.producer_epoch + 1
        begun = {"start_timestamp_ms": now, "last_update_timestamp_ms": now}
        return self._then("PA", producer_epoch=bumped, transaction_partitions=(), **begun)

    def add(self) -> Record:
        added = partitions(self.draw(st.sampled_from(["a-0", "b-0", "c-1"])))
        return self._then("O", transaction_partitions=(*self.last.transaction_partitions, *added))

    def end(self) -> Record:
        """By the client of transactions v1: the epoch stays."""
        return self._then(self.draw(st.sampled_from(["PC", "PA"])))

    def bump_and_abort(self) -> Record:
        """By a timeout, a fence, or a client of transactions v2."""
        is_announced = self.last.producer_epoch >= EXHAUSTED and self.draw(st.booleans())
        announced = next(self.producer_ids) if is_announced else None
        return self._then("PA", producer_epoch=self.last.producer_epoch + 1, next_producer_id=announced)

    def complete(self) -> Record:
        name = "CC" if self.last.transaction_state is STATES["PC"] else "CA"
        done = {"transaction_partitions": (), "next_producer_id": None}
        if self.last.next_producer_id is not None:
            return self._then(name, producer_id=self.last.next_producer_id, producer_epoch=0, **done)
        if self.last.producer_epoch > EXHAUSTED and self.draw(st.booleans()):
            return self._then(name, producer_id=next(self.producer_ids), producer_epoch=0, **done)
        return self._then(name, **done)

    def retry(self) -> Record:
        return replace(self.last, last_update_timestamp_ms=self.now())

    def _then(self, state: str, **fields: object) -> Record:
        return replace(
            self.last, **{"transaction_state": STATES[state], "last_update_timestamp_ms": self.now()} | fields
        )


#: A record, and the leader epoch of the batch around it.
Written = tuple[Record, int]


def found(before: Written, after: Written, *, is_consecutive: bool = True) -> list[object]:
    return list(oddities(SuspectStep(judged(*before), judged(*after), is_consecutive)))


@st.composite
def histories(draw: st.DrawFn) -> list[Written]:
    """Everything a coordinator wrote about an id, under ascending leader epochs."""
    coordinator = Coordinator(draw, count(40))
    written = [coordinator.next_record() for _ in range(draw(st.integers(1, 12)))]
    leader_epochs = sorted(draw(st.lists(st.integers(0, 3), min_size=len(written), max_size=len(written))))
    return list(zip(written, leader_epochs, strict=True))


@given(histories())
def test_nothing_is_odd_about_a_coordinator_that_keeps_the_rules(history: list[Written]) -> None:
    for before, after in pairwise(history):
        assert found(before, after) == [], (before, after)


@st.composite
def histories_with_phantoms(draw: st.DrawFn) -> list[Written]:
    """The same, but some appends time out: they stay in the log, and the coordinator goes on from before them.

    A Complete is appended until it succeeds.
    """
    coordinator, written = Coordinator(draw, count(40)), []
    for _ in range(draw(st.integers(1, 12))):
        before = coordinator.last
        written.append((coordinator.next_record(), 0))
        may_time_out = before is not None and written[-1][0] is not None
        if may_time_out and written[-1][0].transaction_state not in COMPLETE_STATES and draw(st.booleans()):
            coordinator.take_back(before)
    return written


@given(histories_with_phantoms())
def test_appends_that_timed_out_make_nothing_odd(history: list[Written]) -> None:
    for before, after in pairwise(history):
        if after[0] is None and before[0] is not None and before[0].transaction_state is STATES["O"]:
            continue  # an Ongoing id that expires is never explained away
        assert found(before, after) == [], (before, after)


@given(histories(), st.data())
def test_compaction_makes_nothing_odd(history: list[Written], data: st.DataObject) -> None:
    """Whatever is left, as long as the last record is, and the reader knows of the holes."""
    kept = [record for record in history[:-1] if data.draw(st.booleans())] + history[-1:]
    for before, after in pairwise(kept):
        assert found(before, after, is_consecutive=False) == [], (before, after)


@given(histories())
def test_a_stranger_is_noticed_inside_a_transaction(history: list[Written]) -> None:
    """Another producer id in the Prepare record is never explained away."""
    for before, (after, epoch) in pairwise(history):
        if after is None or after.transaction_state not in PREPARED_STATES:
            continue
        if before[0] is None or before[0].transaction_state is not STATES["O"]:
            continue
        assert found(before, (replace(after, producer_id=7), epoch)) != []
